//! Ways of the packets for one LID, with the channels that they hold and want at the same time.

use weft_wire::PortNum;

use super::ground::Ground;
use super::order::{Exits, Order};
use super::rows::{Bits, Rows};
use super::sources::{Part, Sent, Sources};
use crate::bits::ones;

/// Who wants to know about channels and lanes.
pub(crate) trait Sink {
    /// A channel carries packets, on these lanes.
    fn carry(&mut self, channel: u32, lanes: u16);
    /// Packets that hold `first` on any of `held` may want `second` on any of `wanted`.
    fn depend(&mut self, first: u32, held: u16, second: u32, wanted: u16);
}

/// Follows the packets for one LID where no packet changes lanes: `lanes` has, by switch, the lanes by which its own
/// end ports send, and afterwards those of all that comes by.
fn flow(ground: &Ground<'_>, order: &Order, exits: Exits<'_>, lanes: &mut [u16], sink: &mut impl Sink) {
    order.settle(|switch| {
        let carried = lanes[switch as usize];
        if carried == 0 {
            return false;
        }
        let mut new = false;
        for (_, channel) in exits.channels(switch) {
            sink.carry(channel, carried);
            let next = ground.to[channel as usize];
            new |= carried & !lanes[next as usize] != 0;
            lanes[next as usize] |= carried;
            for (_, wanted) in exits.channels(next) {
                sink.depend(channel, carried, wanted, carried);
            }
        }
        new
    });
}

/// One LID and what decides where its packets go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journey<'a> {
    pub(crate) ground: &'a Ground<'a>,
    pub(crate) rows: &'a Rows,
    pub(crate) part: &'a Part,
    pub(crate) order: &'a Order,
    pub(crate) exits: Exits<'a>,
}

/// Follows the packets for one LID where lanes may change on the way.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    /// By switch and table: what is on the channel that it sends by.
    held: Vec<Held>,
}

/// What is on a channel.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// The levels of its packets, as bits.
    levels: u16,
    /// By level, the lanes.
    lanes: Bits,
}

impl Held {
    /// Adds packets of some levels, with the lanes that a row has for them.
    fn add(&mut self, levels: u16, bits: &Bits) {
        for level in ones(levels) {
            if bits[level] != 0 {
                self.levels |= 1 << level;
                self.lanes[level] |= bits[level];
            }
        }
    }

    fn all(&self) -> u16 {
        ones(self.levels).fold(0, |all, level| all | self.lanes[level])
    }
}

/// Follows what sources send, the quick way where every level has one lane everywhere.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    sent: Sent,
    lanes: Vec<u16>,
    spread: Spread,
}

impl Follower {
    /// Begins with a block of destinations.
    pub(crate) fn begin(&mut self, ground: &Ground<'_>, rows: &Rows, sources: &Sources<'_>, parts: &[Part]) {
        if let Some(bits) = rows.constant() {
            self.sent.find(ground, sources, bits, parts);
        }
    }

    /// By destination of the block: the lanes by which switches' own end ports send, where no packet changes lanes.
    pub(crate) fn sent(&self) -> &Sent {
        &self.sent
    }

    /// Follows what goes to the destination at this place of the block.
    pub(crate) fn run(
        &mut self,
        place: usize,
        journey: &Journey<'_>,
        sources: &Sources<'_>,
        sink: &mut impl Sink,
    ) {
        if journey.rows.constant().is_none() {
            return self.spread.run(journey, sources, sink);
        }
        self.lanes.clear();
        self.lanes.extend_from_slice(self.sent.lanes(place));
        flow(journey.ground, journey.order, journey.exits, &mut self.lanes, sink);
    }
}

impl Spread {
    /// Follows what all `sources` send.
    pub(crate) fn run(&mut self, journey: &Journey<'_>, sources: &Sources<'_>, sink: &mut impl Sink) {
        self.held.clear();
        self.held.resize(journey.ground.len() * journey.exits.tables(), Held::default());
        for switch in 0..journey.ground.len() as u32 {
            self.inject(journey, sources, switch);
        }
        journey.order.settle(|switch| self.pass(journey, switch, sink));
    }

    fn inject(&mut self, journey: &Journey<'_>, sources: &Sources<'_>, switch: u32) {
        let target = sources.target(journey.part);
        for group in sources.on(switch) {
            let sent = sources.levels(group, &target);
            for (table, channel) in journey.exits.channels(switch) {
                let exit = journey.ground.from[channel as usize].1;
                let bits = journey.rows.bits(switch, PortNum(group.entry), exit);
                self.held[switch as usize * journey.exits.tables() + table].add(sent, bits);
            }
        }
    }

    /// Sends on what is at a switch, and tells whether that is new to the next.
    fn pass(&mut self, journey: &Journey<'_>, switch: u32, sink: &mut impl Sink) -> bool {
        let Journey { ground, rows, exits, .. } = journey;
        let mut new = false;
        for (table, channel) in exits.channels(switch) {
            let held = self.held[switch as usize * exits.tables() + table];
            if held.levels == 0 {
                continue;
            }
            sink.carry(channel, held.all());
            let (next, entry) = (ground.to[channel as usize], ground.entry[channel as usize]);
            for (next_table, wanted) in exits.channels(next) {
                let bits = rows.bits(next, entry, ground.from[wanted as usize].1);
                let there = &mut self.held[next as usize * exits.tables() + next_table];
                for level in ones(held.levels) {
                    new |= bits[level] & !there.lanes[level] != 0;
                    if bits[level] != 0 {
                        sink.depend(channel, held.lanes[level], wanted, bits[level]);
                    }
                }
                there.add(held.levels, bits);
            }
        }
        new
    }
}
