//! The dialling end of a cable.

use std::rc::Rc;
use std::time::{Duration, Instant};

use quinn::{Connection, ConnectionError};
use tokio::time::timeout;
use weft_machine::Random;

use crate::cable::LinkIndex;
use crate::codec::{self, Control, ControlError, Hello};
use crate::identity::node_name;
use crate::links::Inner;
use crate::reason::RefusalReason;

const BACK_OFF_MIN_MS: u64 = 20;
const BACK_OFF_MAX_MS: u64 = 1000;
/// A cut link's peer is asked more often, so that mending shows at once.
const BACK_OFF_CUT_MAX_MS: u64 = 250;
/// A link that lived this long is dialled again without delay.
const STABLE: Duration = Duration::from_secs(1);

/// Dials a cable for as long as the agent lives.
pub(crate) async fn dial_forever(inner: Rc<Inner>, link: LinkIndex) {
    let slot = inner.slot(link);
    let patience = Duration::from_millis(inner.config.link_timeout_ms);
    let mut failures = 0;
    loop {
        while !slot.enabled.get() && !inner.stopped.get() {
            slot.wake.notified().await;
        }
        if inner.stopped.get() {
            return;
        }
        slot.count(|stats| stats.dials += 1);
        let mut back_off_max_ms = BACK_OFF_MAX_MS;
        match timeout(patience, dial(&inner, link)).await {
            Ok(Ok((connection, peer))) => {
                let began = Instant::now();
                inner.carry(link, connection, peer).await;
                failures = if began.elapsed() < STABLE { failures + 1 } else { 0 };
            }
            Ok(Err(ControlError::Refused(reason))) => {
                failures += 1;
                if reason.is_cut() {
                    back_off_max_ms = BACK_OFF_CUT_MAX_MS;
                }
                inner.tell_refused(Some(link), slot.cable.remote_addr, reason);
            }
            Ok(Err(ControlError::Connection(_))) | Err(_) => failures += 1,
        }
        if failures > 0 {
            let delay = back_off(failures, back_off_max_ms, inner.config.jitter_seed ^ link.0 as u64);
            // Being enabled again ends the wait.
            let _ = timeout(delay, slot.wake.notified()).await;
        }
    }
}

/// One attempt, up to the moment when both hellos have passed.
async fn dial(inner: &Rc<Inner>, link: LinkIndex) -> Result<(Connection, Hello), ControlError> {
    let cable = inner.slot(link).cable;
    let name = node_name(cable.remote.guid);
    let connecting = inner
        .endpoint
        .connect_with(inner.client.clone(), cable.remote_addr, &name)
        .map_err(|_| ControlError::Connection(ConnectionError::LocallyClosed))?;
    let connection = connecting.await.map_err(meaning)?;
    let result = exchange(inner, link, &connection).await;
    if let Err(ControlError::Refused(reason)) = &result {
        connection.close(reason.close_code().var_int(), reason.to_string().as_bytes());
    }
    result
        .map(|hello| (connection, hello))
        .map_err(|error| if let ControlError::Connection(error) = error { meaning(error) } else { error })
}

async fn exchange(
    inner: &Rc<Inner>,
    link: LinkIndex,
    connection: &Connection,
) -> Result<Hello, ControlError> {
    let (mut send, mut receive) = connection.open_bi().await?;
    codec::write(&mut send, &Control::Hello(inner.hello(link))).await?;
    let Control::Hello(peer) = codec::read(&mut receive).await? else {
        return Err(ControlError::Refused(RefusalReason::Malformed));
    };
    if peer.lab != inner.config.lab {
        return Err(ControlError::Refused(RefusalReason::WrongLab(peer.lab)));
    }
    // TLS has compared the certificate with the node's name already.
    let cable = inner.slot(link).cable;
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

/// The wait after so many failures: doubling from 20 ms, with up to a half taken off by chance so that the
/// cables of a restarted switch are not dialled in step.
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
