//! In which order packets for one LID pass the switches.

use super::ground::{ARRIVES, Ground, LOST, is_channel};

/// The exits for one LID, by switch: of one table, or of two that switches may mix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exits<'a> {
    pub(crate) first: &'a [u32],
    pub(crate) second: Option<&'a [u32]>,
}

impl<'a> Exits<'a> {
    /// Those of one table.
    pub(crate) fn of(first: &'a [u32]) -> Self {
        Self { first, second: None }
    }

    /// How many tables there are.
    pub(crate) fn tables(&self) -> usize {
        1 + usize::from(self.second.is_some())
    }

    /// The channels by which a switch may send, each once, with the number of the first table that says so.
    pub(crate) fn channels(&self, switch: u32) -> impl Iterator<Item = (usize, u32)> + use<> {
        let first = self.first[switch as usize];
        let second = self.second.map(|second| second[switch as usize]).filter(|second| *second != first);
        let channel =
            |(table, exit): (usize, Option<u32>)| Some((table, exit.filter(|exit| is_channel(*exit))?));
        [Some(first), second].into_iter().enumerate().filter_map(channel)
    }
}

/// The hops of packets that do not arrive.
pub(crate) const NEVER: u32 = u32::MAX;

/// The switches in order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// By switch: how many channels to it have not been served.
    waiting: Vec<u32>,
    /// Every switch that is neither on a loop nor behind one, each before those that it sends to.
    pub(crate) switches: Vec<u32>,
    /// By switch: how many channels its packets take.
    pub(crate) hops: Vec<u32>,
}

impl Order {
    /// Puts the switches in order (Kahn 1962).
    pub(crate) fn sort(&mut self, ground: &Ground<'_>, exits: Exits<'_>) {
        let switches = ground.len() as u32;
        self.waiting.clear();
        self.waiting.resize(switches as usize, 0);
        for switch in 0..switches {
            for (_, channel) in exits.channels(switch) {
                self.waiting[ground.to[channel as usize] as usize] += 1;
            }
        }
        self.switches.clear();
        self.switches.extend((0..switches).filter(|switch| self.waiting[*switch as usize] == 0));
        let mut served = 0;
        while let Some(switch) = self.switches.get(served).copied() {
            served += 1;
            for (_, channel) in exits.channels(switch) {
                let next = ground.to[channel as usize];
                self.waiting[next as usize] -= 1;
                if self.waiting[next as usize] == 0 {
                    self.switches.push(next);
                }
            }
        }
    }

    /// Whether packets can go round in a loop.
    pub(crate) fn has_loop(&self) -> bool {
        self.switches.len() < self.waiting.len()
    }

    /// Lets every switch send on what it has, in order; those on loops and behind them until `pass` tells of no switch
    /// any more that what it sent was new to the next.
    pub(crate) fn settle(&self, mut pass: impl FnMut(u32) -> bool) {
        for switch in &self.switches {
            pass(*switch);
        }
        if !self.has_loop() {
            return;
        }
        let waiting = (0..).zip(&self.waiting).filter(|(_, waiting)| **waiting > 0);
        let behind: Vec<u32> = waiting.map(|(switch, _)| switch).collect();
        loop {
            let mut new = false;
            for switch in &behind {
                new |= pass(*switch);
            }
            if !new {
                return;
            }
        }
    }

    /// Counts the hops by one table; after [`Self::sort`].
    pub(crate) fn count(&mut self, ground: &Ground<'_>, exits: &[u32]) {
        self.hops.clear();
        self.hops.resize(exits.len(), NEVER);
        for switch in self.switches.iter().rev() {
            self.hops[*switch as usize] = match exits[*switch as usize] {
                ARRIVES => 0,
                LOST => NEVER,
                channel => self.hops[ground.to[channel as usize] as usize].saturating_add(1),
            };
        }
    }
}
