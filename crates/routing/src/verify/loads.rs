//! The number of pairs of hosts that use each channel.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::ground::{Ground, is_channel};
use super::order::Order;

/// By channel: how many pairs of a host's LID and a host use it. Threads may add to it at once: sums do not depend on the
/// order of their terms.
#[derive(Debug)]
pub(crate) struct Loads {
    /// By switch: how many LIDs of hosts are on it.
    pub(crate) hosts: Vec<u64>,
    pairs: Vec<AtomicU64>,
}

impl Loads {
    pub(crate) fn new(ground: &Ground<'_>) -> Self {
        let mut hosts = vec![0; ground.len()];
        for end in ground.ends.iter().filter(|end| end.host) {
            hosts[end.switch as usize] += 1;
        }
        let pairs = std::iter::repeat_with(AtomicU64::default).take(ground.to.len()).collect();
        Self { hosts, pairs }
    }

    /// The pairs on a channel.
    pub(crate) fn of(&self, channel: u32) -> u64 {
        self.pairs[channel as usize].load(Relaxed)
    }

    /// Moves pairs onto a channel, or from it.
    pub(crate) fn shift(&mut self, channel: u32, pairs: u64, onto: bool) {
        let load = self.pairs[channel as usize].get_mut();
        *load = if onto { *load + pairs } else { load.saturating_sub(pairs) };
    }

    /// Adds what all hosts send to one LID by these exits, or takes it away. `senders` is room to work in.
    pub(crate) fn weigh(
        &self,
        ground: &Ground<'_>,
        order: &Order,
        exits: &[u32],
        add: bool,
        senders: &mut Vec<u64>,
    ) {
        senders.clone_from(&self.hosts);
        for switch in &order.switches {
            let (exit, sent) = (exits[*switch as usize], senders[*switch as usize]);
            if is_channel(exit) && sent > 0 {
                let change = if add { sent } else { sent.wrapping_neg() };
                self.pairs[exit as usize].fetch_add(change, Relaxed);
                senders[ground.to[exit as usize] as usize] += sent;
            }
        }
    }
}
