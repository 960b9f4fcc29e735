//! Liveness of an agent's peers, with one look at all of its links every fifth of the link timeout.
//!
//! If the peer is a process of this machine, the kernel tells ([`crate::process`]) and nothing is
//! sent. Otherwise a dialler that has heard nothing for a fifth of the timeout says something; its
//! peer acknowledges, and asks by itself only when the dialler is late. A peer is gone when nothing
//! was heard at four looks in a row: between four and five fifths after its last word. Over a long
//! way the timeout is multiplied to hold eight round trips, as QUIC measures them: three questions
//! can be answered, of which two may be lost. Over a lossy way the questions go on for longer, so
//! that all are lost once in a million times at most ([`Distance`]). QUIC's own keepalives and idle
//! timer are not used: they cost a timer, a wake-up and two packets for each link.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use quinn::{ConnectionStats, PathStats};

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

/// Up to these numbers of a thousand packets that are lost on their way, a peer may be silent for one link timeout, two, or three; with
/// more for four. There is time for 3, 7, 11 and 15 questions, each of which fails if it is lost or its answer is.
const LOST_PER_MILLE: [u64; 3] = [5, 72, 150];

/// Packets that are taken to have arrived before the first one: the loss of a few at the beginning says little.
const TRUSTED: u64 = 1000;

/// How far away a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Distance {
    /// Looks from one question to the next.
    far: u32,
    /// How many times longer it may be silent for the packets that are lost on the way.
    lossy: u32,
}

impl Distance {
    /// Of a process whose end the kernel tells.
    const WATCHED: Self = Self { far: RARELY, lossy: 1 };

    /// As QUIC has measured it.
    fn of(path: &PathStats, timeout: Duration) -> Self {
        let needed = path.rtt.saturating_mul(ROUND_TRIPS).as_micros().div_ceil(timeout.as_micros().max(1));
        let far = u32::try_from(needed).unwrap_or(RARELY).clamp(1, RARELY);
        let lost = path.lost_packets.saturating_mul(1000) / path.sent_packets.saturating_add(TRUSTED);
        let lossy = 1 + LOST_PER_MILLE.iter().filter(|most| lost >= **most).count() as u32;
        Self { far, lossy }
    }

    /// How many times longer than the link timeout a peer may be silent.
    fn stretch(self) -> u32 {
        self.far * self.lossy
    }
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

/// What to do after a number of looks in a row without a word.
fn judge(unheard: u32, dials: bool, distance: Distance) -> Finding {
    let asks = if dials { DIALLER_ASKS } else { ACCEPTOR_ASKS } * distance.far;
    if unheard >= SILENT * distance.stretch() {
        Finding::Gone
    } else if unheard >= asks && (unheard - asks).is_multiple_of(distance.far) {
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
        let distance =
            if self.process.is_some() { Distance::WATCHED } else { Distance::of(&stats.path, timeout) };
        judge(self.unheard.get(), dials, distance)
    }

    /// How long the peer may be silent: its process is gone when the kernel says so, and otherwise when it has not run for the
    /// link timeout.
    pub(crate) fn timeout(&self, timeout: Duration) -> Duration {
        let stretch = || Distance::of(&self.connection.stats().path, timeout).stretch();
        if self.process.is_some() { timeout } else { timeout * stretch() }
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

    fn near(far: u32) -> Distance {
        Distance { far, lossy: 1 }
    }

    fn path(rtt: Duration, (lost_packets, sent_packets): (u64, u64)) -> PathStats {
        let mut path = PathStats::default();
        (path.rtt, path.lost_packets, path.sent_packets) = (rtt, lost_packets, sent_packets);
        path
    }

    /// Looks from the first without a word on.
    fn findings(dials: bool, distance: Distance) -> Vec<(u32, Finding)> {
        let all = (1..=4 * SILENT * RARELY).map(|unheard| (unheard, judge(unheard, dials, distance)));
        all.filter(|(_, finding)| *finding != Finding::Nothing)
            .take_while(|(_, f)| *f != Finding::Gone)
            .collect()
    }

    #[test]
    fn the_dialler_probes_first_and_both_probe_before_giving_up() {
        assert_eq!(findings(true, near(1)), [(1, Finding::Ask), (2, Finding::Ask), (3, Finding::Ask)]);
        assert_eq!(findings(false, near(1)), [(2, Finding::Ask), (3, Finding::Ask)]);
        assert_eq!(judge(4, true, near(1)), Finding::Gone);
    }

    #[test]
    fn a_watched_peer_is_asked_rarely() {
        let watched = Distance::WATCHED;
        assert_eq!(findings(true, watched), [(16, Finding::Ask), (32, Finding::Ask), (48, Finding::Ask)]);
        assert_eq!(findings(false, watched), [(32, Finding::Ask), (48, Finding::Ask)]);
        assert_eq!(judge(64, false, watched), Finding::Gone);
    }

    /// Near peers have the timeout that was given; far ones have room for three questions and their answers.
    #[test]
    fn a_far_peer_has_longer() {
        let (ms, timeout) = (Duration::from_millis, Duration::from_secs(2));
        let far = |round_trip, timeout| Distance::of(&path(round_trip, (0, 1000)), timeout);
        for (round_trip, times) in [(0, 1), (1, 1), (250, 1), (251, 2), (300, 2), (600, 3), (10_000, RARELY)]
        {
            assert_eq!(far(ms(round_trip), timeout), near(times), "{round_trip} ms");
        }
        for round_trip in (0..4000).map(ms) {
            let times = far(round_trip, timeout).stretch();
            // The dialler asks at the first such look, and gives up three looks later.
            let answered_by = timeout * times * (SILENT - DIALLER_ASKS) / LOOKS;
            assert!(answered_by >= round_trip * 4, "{round_trip:?}");
        }
        assert_eq!(far(Duration::MAX, Duration::ZERO), near(RARELY));
    }

    /// The dialler's questions are all in vain once in a million times at most, as a question and its answer are lost by chance,
    /// each for itself; with as many lost as a link can have and one timeout less they would be more often.
    #[test]
    fn probes_over_a_lossy_path_all_fail_once_in_a_million() {
        let in_vain = |per_mille: u64, lossy: u32| {
            let arrives = 1.0 - per_mille as f64 / 1000.0;
            let questions = findings(true, Distance { far: 1, lossy }).len();
            (1.0 - arrives * arrives).powi(i32::try_from(questions).unwrap())
        };
        for (lossy, most) in (1..).zip(LOST_PER_MILLE) {
            assert!(in_vain(most, lossy) <= 1e-6, "{most} of a thousand: {}", in_vain(most, lossy));
            assert!(in_vain(most + 10, lossy) > 1e-6, "{most} of a thousand: more is possible");
        }
        let sent = 1_000_000;
        for (per_mille, lossy) in [(0, 1), (4, 1), (10, 2), (50, 2), (100, 3), (200, 4), (900, 4)] {
            let distance =
                Distance::of(&path(Duration::ZERO, (per_mille * sent / 1000, sent)), Duration::MAX);
            assert_eq!(distance, Distance { far: 1, lossy }, "{per_mille} of a thousand");
        }
        let few = Distance::of(&path(Duration::ZERO, (4, 8)), Duration::from_secs(2));
        assert_eq!(few, near(1), "what is lost at the beginning says little");
    }
}
