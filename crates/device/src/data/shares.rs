//! Lanes that are held to their shares of a link ([`LaneShare`]): a clock for each lane of an output.
//!
//! A lane may begin a packet when its clock allows it, and the packet sets the clock on by its time on the link over the lane's
//! share. A lane with packets and credit whose clock lies behind waits for others' packets; it catches up later. One that has had
//! nothing to send, or no credit, has lost that time.
//!
//! Lanes of the high table are not held: the table's limit is theirs. Neither is a lane that no table has, such as
//! all lanes before the tables are written.

use weft_machine::Time;
use weft_wire::{PortNum, VirtualLane, VlArbitrationTable};

use super::arbiter::entries;
use super::crossbar::Speed;
use super::index::{LaneIndex, LaneSet, PerLane, PerPort};
use super::output::Phase;
use super::{DataPath, DataPathOptions};
use crate::LaneShare;
use crate::moment::NEVER;

/// The clocks of a device's lanes.
#[derive(Debug)]
pub(super) struct Shares {
    /// Whether lanes without packets lend theirs.
    lends_idle: bool,
    clocks: PerLane<Clock>,
    /// By port.
    held: PerPort<Held>,
    shift: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// In the low table; 0 is not held to a share.
    weight: u32,
    /// When the next packet may begin.
    opens: Time,
    /// When the lane last ceased to have packets and credit.
    ceased: Time,
}

/// The lanes of an output that are held to shares.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    lanes: LaneSet,
    speed: Speed,
}

impl Shares {
    /// Those of a switch; none where lanes lend their shares, or where packets take no time.
    pub(super) fn new(options: &DataPathOptions, ports: usize, shift: u8) -> Option<Box<Self>> {
        let lends_idle = match options.lane_share {
            LaneShare::Lent => return None,
            LaneShare::Waiting => true,
            LaneShare::Fixed => false,
        };
        let (clocks, held) =
            (PerLane::of(Clock::default(), ports << shift), PerPort::of(Held::default(), ports));
        options.shaped.then(|| Box::new(Self { lends_idle, clocks, held, shift }))
    }

    /// The link begins, at this speed.
    pub(super) fn link_up(&mut self, output: PortNum, speed: Speed) {
        self.held[output].speed = speed;
        for lane in self.lanes() {
            let clock = &mut self.clocks[LaneIndex::new(output, lane, self.shift)];
            (clock.opens, clock.ceased) = (Time::ZERO, Time::ZERO);
        }
    }

    /// An output has other tables, or another number of lanes. What the old ones had lanes wait for ends now, and what they saved up.
    pub(super) fn tables_changed(
        &mut self,
        at: Time,
        output: PortNum,
        tables: &[VlArbitrationTable; 4],
        lanes: u8,
    ) {
        let high: LaneSet = entries(&tables[2..], lanes).iter().map(|entry| entry.0).collect();
        let low = entries(&tables[..2], lanes);
        self.held[output].lanes = LaneSet::EMPTY;
        for lane in self.lanes() {
            let weights = low.iter().filter(|entry| entry.0 == lane && !high.contains(lane));
            let weight = weights.map(|entry| u32::from(entry.1)).sum();
            let clock = &mut self.clocks[LaneIndex::new(output, lane, self.shift)];
            (clock.weight, clock.opens) = (weight, at);
            if weight > 0 {
                self.held[output].lanes.insert(lane);
            }
        }
    }

    fn lanes(&self) -> impl Iterator<Item = VirtualLane> + use<> {
        (0..15).map(VirtualLane).take(1 << self.shift)
    }

    /// A lane has packets and credit again.
    pub(super) fn begins(&mut self, at: Time, lane: LaneIndex) {
        let clock = &mut self.clocks[lane];
        if at > clock.ceased {
            clock.opens = clock.opens.max(at);
        }
    }

    /// A lane has no packets, or no credit, any more.
    pub(super) fn ceases(&mut self, at: Time, lane: LaneIndex) {
        self.clocks[lane].ceased = at;
    }

    /// A packet of `size` bytes leaves by a lane. In `wanted` are the lanes of this output with packets in line.
    pub(super) fn sent(&mut self, at: Time, output: PortNum, lane: VirtualLane, size: u16, wanted: LaneSet) {
        let Held { lanes, speed } = self.held[output];
        if !lanes.contains(lane) {
            return;
        }
        let keeps = |other: &VirtualLane| !self.lends_idle || *other == lane || wanted.contains(*other);
        let weight = |lane| self.clocks[LaneIndex::new(output, lane, self.shift)].weight;
        let all: u32 = lanes.iter().filter(keeps).map(weight).sum();
        let own = weight(lane);
        let clock = &mut self.clocks[LaneIndex::new(output, lane, self.shift)];
        if own < all {
            clock.opens += speed.time_of_share(size, own, all);
        } else {
            // One that is alone has the whole link, and saves up nothing.
            clock.opens = clock.opens.max(at);
        }
    }

    /// Of the lanes in `ready` those that may begin a packet.
    fn open(&self, at: Time, output: PortNum, ready: LaneSet) -> LaneSet {
        ready.iter().filter(|lane| self.opens(output, *lane) <= at).collect()
    }

    /// When the first of those in `ready` that may not yet may.
    fn opening(&self, at: Time, output: PortNum, ready: LaneSet) -> Time {
        ready.iter().map(|lane| self.opens(output, lane)).filter(|opens| *opens > at).min().unwrap_or(NEVER)
    }

    fn opens(&self, output: PortNum, lane: VirtualLane) -> Time {
        if self.held[output].lanes.contains(lane) {
            self.clocks[LaneIndex::new(output, lane, self.shift)].opens
        } else {
            Time::ZERO
        }
    }
}

impl DataPath {
    /// Of the lanes in `ready` those that their shares allow a packet. Where there are none, the port waits for arbitration, which
    /// PortXmitWait counts as it counts missing credit (IBA 16.1.3.5).
    #[inline]
    pub(super) fn allowed(&mut self, at: Time, output: PortNum, ready: LaneSet) -> LaneSet {
        let Some(shares) = &self.shares else { return ready };
        let open = shares.open(at, output, ready);
        if open.is_empty() {
            // It keeps no input waiting meanwhile.
            self.release_claim(output);
            let out = &mut self.outs[output];
            if out.phase == Phase::Idle {
                out.wait.begin(at);
            }
        }
        open
    }

    /// When an output with credit that waits for a lane's share looks again.
    #[inline]
    pub(super) fn share_opens(&self, at: Time, output: PortNum) -> Time {
        self.shares.as_ref().map_or(NEVER, |shares| shares.opening(at, output, self.outs[output].ready))
    }
}
