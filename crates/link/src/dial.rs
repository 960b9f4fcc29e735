//! The dialling end of a cable.

use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::{Duration, Instant};

use quinn::{Connecting, Connection, ConnectionError};
use tokio::time::timeout;
use weft_machine::Random;

use crate::cable::LinkEvent;
use crate::codec::{self, Control, ControlError, Hello};
use crate::gate::{PLACE_KEPT, Pass};
use crate::identity::node_name;
use crate::reason::RefusalReason;
use crate::state::{Inner, Slot};

const BACK_OFF_MIN_MS: u64 = 20;
const BACK_OFF_MAX_MS: u64 = 1000;
/// A cut link's peer is asked more often, so that mending shows at once.
const BACK_OFF_CUT_MAX_MS: u64 = 250;
/// A link that lived this long is dialled again without delay.
const STABLE: Duration = Duration::from_secs(1);
/// How long a peer has to answer at all; twice as long after each time that it did not, four times at most. QUIC repeats
/// itself after 1 and 3 s.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// Dials a cable for as long as the agent lives and the cable is there.
pub(crate) async fn dial_forever(inner: Rc<Inner>, slot: Rc<Slot>) {
    let over = || inner.stopped.get() || slot.removed.get();
    let mut failures = 0;
    loop {
        while !slot.enabled.get() && !over() {
            slot.wake.notified().await;
        }
        if over() {
            return;
        }
        let mut back_off_max_ms = BACK_OFF_MAX_MS;
        let reached = tokio::select! {
            reached = reach(&inner, &slot, failures) => reached,
            () = slot.gone.notified() => return,
        };
        match reached {
            Some((_, Ok((connection, peer)))) => {
                let began = Instant::now();
                inner.carry(&slot, connection, peer).await;
                failures = if began.elapsed() < STABLE { failures + 1 } else { 0 };
            }
            Some((address, Err(ControlError::Refused(reason)))) => {
                failures += 1;
                if reason.is_cut() {
                    back_off_max_ms = BACK_OFF_CUT_MAX_MS;
                }
                inner.tell_refused(Some(&slot), address, reason);
            }
            Some((_, Err(ControlError::Connection(_)))) | None => failures += 1,
        }
        if failures > 0 {
            rest(&inner, &slot, failures, back_off_max_ms).await;
        }
    }
}

/// Finds the peer and dials it once. `None` when its name does not resolve.
async fn reach(
    inner: &Rc<Inner>,
    slot: &Slot,
    failures: u32,
) -> Option<(SocketAddr, Result<(Connection, Hello), ControlError>)> {
    // Before it takes its place among the handshakes: a resolver may take its time.
    let address = find(inner, slot, failures).await?;
    Some((address, attempt(inner, slot, address, failures).await))
}

/// Waits before the next attempt. Being enabled again ends the wait.
async fn rest(inner: &Inner, slot: &Slot, failures: u32, back_off_max_ms: u64) {
    let delay = back_off(failures, back_off_max_ms, inner.config.jitter_seed ^ slot.link.0 as u64);
    let _ = timeout(delay, slot.wake.notified()).await;
}

/// Where the peer is now. `None` when its name does not resolve, which is counted and reported.
async fn find(inner: &Inner, slot: &Slot, failures: u32) -> Option<SocketAddr> {
    let (found, news) = inner.resolver.find(&slot.cable.remote_addr, inner.local, failures).await;
    if found.is_none() {
        slot.count(|stats| stats.unresolved += 1);
    }
    if let Some(failure) = news {
        inner.emit(LinkEvent::Lookup { link: slot.link, failure });
    }
    found
}

/// Dials once, when the gate lets it in and if the peer's port is open. A peer is dialled again only when the attempt
/// before has run out of time: on a busy machine a second handshake would only make both late.
async fn attempt(
    inner: &Rc<Inner>,
    slot: &Slot,
    address: SocketAddr,
    failures: u32,
) -> Result<(Connection, Hello), ControlError> {
    let pass = inner.gate.enter().await;
    slot.count(|stats| stats.dials += 1);
    // Not asked of a literal address the first time: such a laboratory begins to dial when all its agents listen. Where peers have
    // names they have containers, which begin one after the other and have addresses before their processes listen.
    let may_be_early = slot.cable.remote_addr.literal().is_none();
    if (may_be_early || slot.stats().dials > 1) && is_closed(address) {
        return Err(ControlError::Connection(ConnectionError::Reset));
    }
    let patience = Duration::from_millis(inner.config.handshake_timeout_ms);
    let in_time = timeout(patience, dial(inner, slot, address, pass, failures)).await;
    in_time.unwrap_or(Err(ControlError::Connection(ConnectionError::TimedOut)))
}

/// Whether the system says at once that no socket is bound to an address, as it does within a machine. QUIC would repeat
/// its first packet in vain until the handshake times out; it drops the one byte that is sent here.
pub(crate) fn is_closed(address: SocketAddr) -> bool {
    let local: SocketAddr = match address {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let ask = || {
        let socket = UdpSocket::bind(local)?;
        socket.set_nonblocking(true)?;
        socket.connect(address)?;
        socket.send(&[0])?;
        socket.take_error()
    };
    matches!(ask(), Ok(Some(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused)
}

/// Waits for a peer's first answer, in a place among the handshakes at first and then without one.
async fn answer(
    inner: &Inner,
    connecting: &mut Connecting,
    pass: Pass,
    failures: u32,
) -> Result<Option<Pass>, ConnectionError> {
    // To be awaited once: it may not be asked for again.
    let mut answered = std::pin::pin!(connecting.handshake_data());
    if let Ok(answered) = timeout(PLACE_KEPT, &mut answered).await {
        return answered.map(|_| Some(pass));
    }
    // A peer that has not answered before may be gone, which says nothing of the machine.
    if failures == 0 {
        inner.gate.learn(PLACE_KEPT);
    }
    drop(pass);
    let patience = FIRST_ANSWER * (1 << failures.min(2));
    let answered = timeout(patience.saturating_sub(PLACE_KEPT), answered).await;
    answered.unwrap_or(Err(ConnectionError::TimedOut)).map(|_| None)
}

/// One attempt, up to the moment when both hellos have passed.
async fn dial(
    inner: &Rc<Inner>,
    slot: &Slot,
    address: SocketAddr,
    pass: Pass,
    failures: u32,
) -> Result<(Connection, Hello), ControlError> {
    let name = node_name(slot.cable.remote.guid);
    let began = Instant::now();
    let mut connecting = inner
        .endpoint
        .connect_with(inner.client.clone(), address, &name)
        .map_err(|_| ControlError::Connection(ConnectionError::LocallyClosed))?;
    let _pass = answer(inner, &mut connecting, pass, failures).await.map_err(meaning)?;
    let connection = connecting.await.map_err(meaning)?;
    let result = exchange(inner, slot, &connection).await;
    if result.is_ok() {
        inner.gate.learn(began.elapsed());
    }
    if let Err(ControlError::Refused(reason)) = &result {
        connection.close(reason.close_code().var_int(), reason.to_string().as_bytes());
    }
    result
        .map(|hello| (connection, hello))
        .map_err(|error| if let ControlError::Connection(error) = error { meaning(error) } else { error })
}

async fn exchange(inner: &Rc<Inner>, slot: &Slot, connection: &Connection) -> Result<Hello, ControlError> {
    let (mut send, mut receive) = connection.open_bi().await?;
    codec::write(&mut send, &Control::Hello(inner.hello(slot))).await?;
    let Control::Hello(peer) = codec::read(&mut receive).await? else {
        return Err(ControlError::Refused(RefusalReason::Malformed));
    };
    if peer.lab != inner.config.lab {
        return Err(ControlError::Refused(RefusalReason::WrongLab(peer.lab)));
    }
    // TLS has compared the certificate with the node's name already.
    let cable = &slot.cable;
    if (peer.from, peer.to) != (cable.remote, cable.local) {
        return Err(ControlError::Refused(RefusalReason::NotCabled { from: peer.from, to: peer.to }));
    }
    codec::write(&mut send, &Control::Ready).await?;
    Ok(peer)
}

/// A failure that means a refusal becomes one.
pub(crate) fn meaning(error: ConnectionError) -> ControlError {
    RefusalReason::of(&error).map_or(ControlError::Connection(error), ControlError::Refused)
}

/// The wait after `failures` failures: doubling from 20 ms, with up to a half taken off by chance
/// so that the cables of a restarted switch are not dialled in step.
fn back_off(failures: u32, max_ms: u64, seed: u64) -> Duration {
    let full_ms = (BACK_OFF_MIN_MS << failures.saturating_sub(1).min(10)).min(max_ms);
    let chance = Random::new(seed.wrapping_add(u64::from(failures) << 32)).draw();
    Duration::from_micros(full_ms * 500 + chance % (full_ms * 500))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_back_off_doubles_to_its_cap_and_is_spread() {
        for failures in 1..40 {
            let full = Duration::from_millis((20 << (failures - 1).min(10)).min(1000));
            for seed in 0..20 {
                let delay = back_off(failures, BACK_OFF_MAX_MS, seed);
                assert!(delay >= full / 2 && delay <= full, "{failures} failures, seed {seed}: {delay:?}");
            }
        }
        assert_ne!(back_off(7, BACK_OFF_MAX_MS, 1), back_off(7, BACK_OFF_MAX_MS, 2));
        assert!(back_off(30, BACK_OFF_CUT_MAX_MS, 1) <= Duration::from_millis(250));
    }
}
