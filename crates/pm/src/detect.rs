//! Algorithm 1 of dFtree: which hosts are hot spots, and who contributes to them or suffers from them.
//!
//! * A **hot spot** is an HCA when the switch's port that leads to it is congested: data waits there because the HCA
//!   takes in less than is sent to it.
//! * A **contributor** is any other HCA whose own port is congested and less utilised than the limit. Victims show the
//!   same and get the same notice: they send nothing to the hot spot, so nothing of theirs moves.
//!
//! * A **hidden** sender is an HCA that sends less than the limit and does not wait. Its transport's window may be smaller
//!   than the buffers on its way: then it waits for acknowledgements, its port has nothing to send, and PortXmitWait, which
//!   counts a port that has (IBA 16.1.3.5), stands still, as at a host with little to say. It gets
//!   notice of a hot spot that has outlived the sweep which found it, and so the algorithm as
//!   published. A host that sends nothing there moves nothing.
//!
//! These are no hot spots:
//!
//! * A switch's port towards another switch. It waits because a hot spot behind it fills buffers up to here.
//! * An HCA's own port. It waits because of somebody else.
//! * A host behind a link that is slower than the others, but takes in all that comes. Its switch's port sends without a
//!   pause, and PortXmitWait does not count while a port sends.
//! * A host whose senders all get more than the limit out of their links is one, but no one is
//!   notified: they have their fair share, and no one suffers.
//! * The hot spot itself, as its own contributor: what it sends to itself does not cross the fabric.
//!
//! A hot spot's port keeps waiting when its flows have moved to the slow lane, because there they still bring more than
//! the host takes; it is below the threshold only when they have ended. PortXmitWait counts a port that has something to
//! send and sends nothing, whatever the lane.
//!
//! A busy host's port waits too, the longer the more the fabric carries: at 12 Gb/s in the mean,
//! with links of 16 and hosts of 12.9, every third waits over half as long as a hot spot's
//! (docs/experiments.md). That is harmless while all senders have more than the limit. But a sender
//! below it for a moment gets notice of them all; its packets then queue on the slow lane, and its
//! share never recovers. So further hot spots need a higher threshold in several sweeps, and a hidden sender
//! is below the limit in two of them: one whose cable was cut is silent for one, and has what it had before then.
//!
//! Several hot spots share the slow lane, and one may fill its buffers: the port of another then
//! does not wait, though its senders offer as much; on the fast lane they would block everybody. So
//! none ends while another's port waits on the slow lane (PortVLXmitWait). A port that waits on
//! other lanes alone holds up nothing there: its host has a sender with a fair share and no notice.
//!
//! A port of which nothing is known in this sweep, or only the least that it waited, is neither below nor above the
//! threshold unless that least is above it; nothing changes then.
//!
//! [`DetectorKind::Printed`](crate::DetectorKind) is the algorithm as the paper prints it: no hidden senders, one threshold for all, and a hot
//! spot ends with the first sweep in which its port is below it.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::{Guid, Lid};

/// A switch's port towards a host, in this sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facing {
    /// The host's port.
    pub(crate) host: Guid,
    pub(crate) lid: Lid,
    /// Ticks per second of fabric time, and whether that is all; `None` when it was not read.
    pub(crate) congestion: Option<(u64, bool)>,
    /// The same of the slow lane alone; `None` where it is not known, or only the least.
    pub(crate) slow_wait: Option<u64>,
}

/// A host's own port, in this sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) host: Guid,
    pub(crate) lid: Lid,
    /// Ticks per second of fabric time; the least that it waited is enough. `None` when it was not read.
    pub(crate) congestion: Option<u64>,
    /// Millionths of the link's rate; `None` when it is not known.
    pub(crate) utilisation_ppm: Option<u32>,
}

/// A hot spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HotSpot {
    pub(crate) lid: Lid,
    /// The sweep that found it.
    pub(crate) since: u64,
}

/// What a sweep has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The host with this port and LID has become a hot spot.
    Began { host: Guid, lid: Lid, congestion: u64 },
    /// It is none any more, or has another LID.
    Ended { host: Guid, lid: Lid },
}

/// The limits of algorithm 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) threshold: u64,
    /// Beside other hot spots; never below the threshold.
    pub(crate) further: u64,
    pub(crate) utilisation_ppm: u32,
    /// Sweeps in a row to become a hot spot, and to be none any more.
    pub(crate) hysteresis: (u32, u32),
    /// Whether there are no rules but the paper's.
    pub(crate) is_printed: bool,
}

/// Below this share of its link, in millionths, a host's port sends acknowledgements and management at most. Acknowledging
/// every fourth packet of 2048 bytes takes 0.4 %. Windows hide few senders at a time: those of many fill all buffers.
const IDLE_PPM: u32 = 5000;

/// Sweeps in a row above the further threshold: what comes by chance to a host does not last.
const FURTHER_SWEEPS: u32 = 3;

/// The hot spots, and who is on the way to becoming one or to being none any more.
#[derive(Debug)]
pub(crate) struct Detector {
    limits: Limits,
    pub(crate) hot: BTreeMap<Guid, HotSpot>,
    /// Sweeps in a row above the threshold of those that are none, and below it of those that are one.
    streaks: BTreeMap<Guid, u32>,
    /// Hosts that sent less than the limit in this sweep, and of these the ones that did in the sweep before it too.
    low: BTreeSet<Guid>,
    hidden: BTreeSet<Guid>,
}

impl Detector {
    pub(crate) fn new(limits: Limits) -> Self {
        let (hot, streaks) = (BTreeMap::new(), BTreeMap::new());
        let (low, hidden) = (BTreeSet::new(), BTreeSet::new());
        Self { limits, hot, streaks, low, hidden }
    }

    /// The first half of algorithm 1: marks and clears hot spots.
    pub(crate) fn judge(&mut self, sweep: u64, facing: &[Facing]) -> Vec<Finding> {
        let mut findings = self.leave_out(facing);
        let threshold = self.limits.threshold;
        let (begins_above, begins_after) = self.to_begin();
        let is_blocked = !self.limits.is_printed && facing.iter().any(|port| self.blocks(port));
        for port in facing {
            let Some((congestion, exact)) = port.congestion else { continue };
            let is_hot = self.hot.contains_key(&port.host);
            let is_quiet = exact && congestion < threshold;
            let counts = if is_hot { is_quiet && !is_blocked } else { congestion > begins_above };
            if !counts {
                // A port that is not known to be below the threshold does not end a streak of being above it.
                if exact || congestion > begins_above {
                    self.streaks.remove(&port.host);
                }
                continue;
            }
            let streak = self.streaks.entry(port.host).or_default();
            *streak += 1;
            let needed = if is_hot { self.limits.hysteresis.1 } else { begins_after };
            if *streak < needed {
                continue;
            }
            self.streaks.remove(&port.host);
            let (host, lid) = (port.host, port.lid);
            if is_hot {
                self.hot.remove(&host);
                findings.push(Finding::Ended { host, lid });
            } else {
                self.hot.insert(host, HotSpot { lid, since: sweep });
                findings.push(Finding::Began { host, lid, congestion });
            }
        }
        findings
    }

    /// The ticks that begin a hot spot, and for how many sweeps in a row.
    fn to_begin(&self) -> (u64, u32) {
        let Limits { threshold, further, hysteresis: (sweeps, _), .. } = self.limits;
        match self.limits.is_printed || self.hot.is_empty() || further == threshold {
            true => (threshold, sweeps),
            false => (further, sweeps.max(FURTHER_SWEEPS)),
        }
    }

    /// Whether packets for this port may hold up others on the slow lane: it leads to a hot spot, waits, and is not known to
    /// wait on other lanes alone.
    fn blocks(&self, port: &Facing) -> bool {
        let threshold = self.limits.threshold;
        let waits = port.congestion.is_some_and(|(congestion, _)| congestion > threshold);
        waits && port.slow_wait.is_none_or(|wait| wait > threshold) && self.hot.contains_key(&port.host)
    }

    /// Hot spots that are not in the fabric any more, or have another LID.
    fn leave_out(&mut self, facing: &[Facing]) -> Vec<Finding> {
        if self.hot.is_empty() && self.streaks.is_empty() {
            return Vec::new();
        }
        let there: BTreeSet<(Guid, Lid)> = facing.iter().map(|port| (port.host, port.lid)).collect();
        let hosts: BTreeSet<Guid> = facing.iter().map(|port| port.host).collect();
        let gone: Vec<_> = self
            .hot
            .iter()
            .filter(|(host, spot)| !there.contains(&(**host, spot.lid)))
            .map(|(host, spot)| Finding::Ended { host: *host, lid: spot.lid })
            .collect();
        self.hot.retain(|host, spot| there.contains(&(*host, spot.lid)));
        self.streaks.retain(|host, _| hosts.contains(host));
        gone
    }

    /// Takes the hosts' own ports of this sweep, each sweep while there are hot spots.
    pub(crate) fn look_at(&mut self, sources: &[Source]) {
        let sends = |source: &&Source| source.utilisation_ppm.is_some_and(|share| share >= IDLE_PPM);
        let low = sources.iter().filter(sends).filter(|source| self.is_below_limit(source));
        let low: BTreeSet<Guid> = low.map(|source| source.host).collect();
        let before = std::mem::replace(&mut self.low, low);
        self.hidden = self.low.intersection(&before).copied().collect();
    }

    /// The second half: whether a host takes part in hot spots or suffers from them.
    pub(crate) fn contributes(&self, source: &Source) -> bool {
        let congested = source.congestion.is_some_and(|congestion| congestion > self.limits.threshold);
        congested && self.is_below_limit(source)
    }

    /// Whether a host may take part in this hot spot without waiting for credit, as far as counters can tell.
    /// It has sent less than the limit in this sweep and in the one before.
    pub(crate) fn may_contribute(&self, sweep: u64, spot: &HotSpot, source: &Source) -> bool {
        !self.limits.is_printed && spot.since < sweep && self.hidden.contains(&source.host)
    }

    fn is_below_limit(&self, source: &Source) -> bool {
        source.utilisation_ppm.is_some_and(|share| share < self.limits.utilisation_ppm)
    }
}

#[cfg(test)]
mod tests;
