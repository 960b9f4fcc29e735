//! How an agent knows that its peers live, with one look at all of its links every fifth of the link timeout.
//!
//! Where the peer is a process of this machine the kernel tells ([`crate::process`]) and nothing is sent. Elsewhere
//! silence tells, and so that there is none, the dialler says something after a fifth of the timeout in which it has heard
//! nothing; its peer acknowledges, and asks by itself only when the dialler is late. A peer is gone when nothing was heard
//! at four looks in a row: between four and five fifths after its last word. Over a long way all of that takes as many times longer
//! as the timeout has to be doubled, tripled and so on to hold eight round trips, as QUIC measures them: so three questions have
//! time to be answered, of which two may be lost. QUIC's own keepalives and idle timer are not
//! used: they cost a timer, a wake-up of their own and two packets for each link, however many links there are.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use quinn::ConnectionStats;

use crate::live::Live;
use crate::process::ProcessId;
use crate::reason::{CloseCode, DownReason};
use crate::state::{Inner, Slot};

/// Looks in the time of a link timeout.
const LOOKS: u32 = 5;
/// Looks in a row without a word from the peer, or at which its process had not run, after which it is gone.
const SILENT: u32 = LOOKS - 1;
/// Such looks after which the dialler asks.
const DIALLER_ASKS: u32 = 1;
/// Such looks after which the acceptor asks: the dialler is late.
const ACCEPTOR_ASKS: u32 = 2;
/// Where the kernel tells of the peer, questions are rarer by so much. They find that the path to it is broken.
const RARELY: u32 = 16;

/// Round trips that a link timeout holds at least.
const ROUND_TRIPS: u32 = 8;

/// How many times longer than the link timeout a peer at this distance may be silent.
fn stretch(round_trip: Duration, timeout: Duration) -> u32 {
    let needed = round_trip.saturating_mul(ROUND_TRIPS).as_micros().div_ceil(timeout.as_micros().max(1));
    u32::try_from(needed).unwrap_or(RARELY).clamp(1, RARELY)
}

/// What is to be done about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Nothing,
    /// The peer is to be asked for a sign of life.
    Ask,
    /// The peer is gone.
    Gone,
}

/// What to do after a number of looks in a row without a word, where all takes `rarely` times longer.
fn judge(unheard: u32, dials: bool, rarely: u32) -> Finding {
    let asks = if dials { DIALLER_ASKS } else { ACCEPTOR_ASKS } * rarely;
    if unheard >= SILENT * rarely {
        Finding::Gone
    } else if unheard >= asks && (unheard - asks).is_multiple_of(rarely) {
        Finding::Ask
    } else {
        Finding::Nothing
    }
}

impl Live {
    /// Looks whether anything was heard since the last look.
    fn look(&self, dials: bool, timeout: Duration) -> Finding {
        let stats = self.connection.stats();
        let heard = heard(&stats);
        let same = self.heard.replace(heard) == heard;
        self.unheard.set(if same { self.unheard.get() + 1 } else { 0 });
        if self.process.as_ref().is_some_and(|process| process.stood() >= SILENT) {
            return Finding::Gone;
        }
        let rarely = if self.process.is_some() { RARELY } else { stretch(stats.path.rtt, timeout) };
        judge(self.unheard.get(), dials, rarely)
    }

    /// How long the peer may be silent: its process is gone when the kernel says so, and otherwise when it has not run for the
    /// link timeout.
    pub(crate) fn timeout(&self, timeout: Duration) -> Duration {
        if self.process.is_some() { timeout } else { timeout * stretch(self.connection.rtt(), timeout) }
    }
}

impl Slot {
    /// Says something that the peer acknowledges. If packets wait to go out, those are enough.
    fn ask(&self) {
        let live = self.live();
        let Some(live) = live.as_ref().filter(|live| live.connection.datagram_send_buffer_space() > 0) else {
            return;
        };
        // A connection that has ended is its reader's business.
        let _ = live.connection.send_datagram(Bytes::new());
        self.count(|stats| stats.asked += 1);
    }
}

/// How many frames have come that only the peer can have sent: what fails decryption does not count.
fn heard(stats: &ConnectionStats) -> u64 {
    let frames = &stats.frame_rx;
    frames.acks + frames.datagram + frames.stream + frames.ping + u64::from(frames.handshake_done)
}

/// Looks at all links for as long as the agent lives.
pub(crate) async fn watch(inner: Rc<Inner>) {
    let pause = inner.link_timeout() / LOOKS;
    while !inner.stopped.get() {
        tokio::time::sleep(pause).await;
        inner.look();
    }
}

impl Inner {
    /// The link timeout of near peers.
    pub(crate) fn link_timeout(&self) -> Duration {
        Duration::from_millis(self.config.link_timeout_ms)
    }

    fn look(&self) {
        self.processes.look(SILENT);
        let timeout = self.link_timeout();
        for slot in self.slots.borrow().iter().flatten() {
            let finding = slot.live().as_ref().map(|live| live.look(slot.cable.dials(), timeout));
            match finding {
                Some(Finding::Gone) => slot.close(CloseCode::Silent, DownReason::Silent),
                Some(Finding::Ask) => slot.ask(),
                Some(Finding::Nothing) | None => {}
            }
        }
    }

    /// A process of this machine has ended, and all links to it with it.
    pub(crate) fn process_ended(&self, id: &ProcessId) {
        for slot in self.slots.borrow().iter().flatten() {
            let is_its = |live: &Live| live.process.as_ref().is_some_and(|process| process.id == *id);
            if slot.live().as_ref().is_some_and(is_its) {
                slot.close(CloseCode::Silent, DownReason::PeerDied);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks from the first without a word on.
    fn findings(dials: bool, rarely: u32) -> Vec<(u32, Finding)> {
        let all = (1..=64).map(|unheard| (unheard, judge(unheard, dials, rarely)));
        all.filter(|(_, finding)| *finding != Finding::Nothing)
            .take_while(|(_, f)| *f != Finding::Gone)
            .collect()
    }

    #[test]
    fn the_dialler_asks_at_once_the_acceptor_later_and_both_before_they_give_up() {
        assert_eq!(findings(true, 1), [(1, Finding::Ask), (2, Finding::Ask), (3, Finding::Ask)]);
        assert_eq!(findings(false, 1), [(2, Finding::Ask), (3, Finding::Ask)]);
        assert_eq!(judge(4, true, 1), Finding::Gone);
    }

    #[test]
    fn a_watched_peer_is_asked_rarely() {
        assert_eq!(findings(true, RARELY), [(16, Finding::Ask), (32, Finding::Ask), (48, Finding::Ask)]);
        assert_eq!(findings(false, RARELY), [(32, Finding::Ask), (48, Finding::Ask)]);
        assert_eq!(judge(64, false, RARELY), Finding::Gone);
    }

    /// Near peers have the timeout that was given; far ones have room for three questions and their answers.
    #[test]
    fn a_far_peer_has_longer() {
        let (ms, timeout) = (Duration::from_millis, Duration::from_secs(2));
        for (round_trip, times) in [(0, 1), (1, 1), (250, 1), (251, 2), (300, 2), (600, 3), (10_000, RARELY)]
        {
            assert_eq!(stretch(ms(round_trip), timeout), times, "{round_trip} ms");
        }
        for round_trip in (0..4000).map(ms) {
            let times = stretch(round_trip, timeout);
            // The dialler asks at the first such look, and gives up three looks later.
            let answered_by = timeout * times * (SILENT - DIALLER_ASKS) / LOOKS;
            assert!(answered_by >= round_trip * 4, "{round_trip:?}");
        }
        assert_eq!(stretch(Duration::MAX, Duration::ZERO), RARELY);
    }
}
