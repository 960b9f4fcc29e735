//! P_Key tables among the writes: what changes in a switch's port is acknowledged before the host behind it is written, whoever
//! joins or leaves. A leaver that does not answer is cut off there.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;

use super::Program;
use super::write::Write;
use crate::Options;
use crate::knowledge::{Held, Layouts, PortAt, Subnet};
use crate::sweep::partitions::{self, Block, Changes};

/// P_Key tables being written.
#[derive(Debug, Default)]
pub(super) struct KeyWrites {
    /// What blocks hold meanwhile that are written twice.
    first: BTreeMap<(PortAt, u16), Block>,
    /// Keys that wait until a place has rested.
    waiting: BTreeMap<PortAt, usize>,
    /// The ports that are looked at; `None` where P_Keys are not.
    ports: Option<Vec<PortAt>>,
    /// Whether those are all ports.
    of_all: bool,
    /// Ports that have not taken a first block: in the next one a key would be gone.
    broken: BTreeSet<PortAt>,
}

impl Program {
    /// The P_Key tables of these ports that differ, and nothing else.
    pub(crate) fn of_p_keys(
        now: Time,
        subnet: Subnet,
        held: Vec<Held>,
        ports: Vec<PortAt>,
        layouts: &Layouts,
        options: &Options,
    ) -> Self {
        let mut program = Self::nothing(subnet, held, options);
        program.plan_p_keys(now, ports, layouts);
        program.planned()
    }

    /// Plans those of all ports.
    pub(super) fn plan_all_p_keys(&mut self, now: Time, layouts: &Layouts) {
        self.keys.of_all = true;
        self.plan_p_keys(now, partitions::ports(&self.subnet, |_| true), layouts);
    }

    fn plan_p_keys(&mut self, now: Time, ports: Vec<PortAt>, layouts: &Layouts) {
        for at in ports.iter().copied() {
            let Some(held) = self.held.get_mut(at.node as usize).and_then(|held| held.port_mut(at.port))
            else {
                continue;
            };
            let Changes { first, last, waiting } =
                partitions::changes(now, &self.subnet, at, held, layouts, &self.options);
            for (block, bytes) in first {
                self.keys.first.insert((at, block), bytes);
                held.set_p_keys(block, Some(&bytes));
                self.plan.push(Write::PKeys { at, block, is_first: true });
            }
            for (block, bytes) in last {
                held.set_p_keys(block, Some(&bytes));
                self.plan.push(Write::PKeys { at, block, is_first: false });
            }
            if waiting > 0 {
                self.keys.waiting.insert(at, waiting);
            }
        }
        self.keys.ports = Some(ports);
    }

    /// The order among the writes of P_Keys, when it is certain which there are.
    pub(super) fn give_turns(&mut self) {
        let mut of_port: BTreeMap<PortAt, Vec<u32>> = BTreeMap::new();
        for (place, write) in (0..).zip(&self.plan) {
            if let Write::PKeys { at, .. } = write {
                of_port.entry(*at).or_default().push(place);
            }
        }
        let is_first =
            |place: &u32| matches!(self.plan.get(*place as usize), Some(Write::PKeys { is_first: true, .. }));
        for (at, writes) in &of_port {
            if writes.iter().any(is_first) {
                writes.windows(2).for_each(|pair| self.turns.after(pair[1], pair[0]));
            }
            if !partitions::is_end_at(&self.subnet, *at) {
                continue;
            }
            let filter = self.subnet.port(*at).and_then(|port| of_port.get(&port.peer?));
            for before in filter.into_iter().flatten() {
                writes.iter().for_each(|write| self.turns.after(*write, *before));
            }
        }
    }

    /// What is written into a block now.
    pub(super) fn p_keys(&self, at: PortAt, block: u16, is_first: bool) -> Option<&Block> {
        if is_first {
            return self.keys.first.get(&(at, block));
        }
        self.held.get(at.node as usize)?.port(at.port)?.p_keys(block)
    }

    /// A port has not taken a block.
    pub(super) fn forget_p_keys(&mut self, at: PortAt, block: u16, is_first: bool) {
        if is_first {
            self.keys.broken.insert(at);
        }
        if let Some(port) = self.held.get_mut(at.node as usize).and_then(|held| held.port_mut(at.port)) {
            port.set_p_keys(block, None);
        }
    }

    /// Sends a write of the plan, when who is behind a machine's port has been looked at.
    pub(super) fn begin(&mut self, place: u32, write: Write) {
        if matches!(write, Write::PKeys { at, .. } if self.keys.broken.contains(&at)) {
            self.forget(write);
            return self.done(place);
        }
        match self.machine(write) {
            Some(at) => self.guard.begin(at, place),
            None => self.cleared.push(place),
        }
    }

    /// A write is done, whatever came of it: those that have waited for it go.
    pub(super) fn done(&mut self, place: u32) {
        for next in self.turns.done(place) {
            if let Some(write) = self.plan.get(next as usize).copied()
                && (next as usize) < self.next
            {
                self.begin(next, write);
            }
        }
    }

    /// The ports whose P_Keys it writes where they differ, and whether those are all ports; `None` where it writes none.
    pub(crate) fn p_key_ports(&self) -> Option<(&[PortAt], bool)> {
        Some((self.keys.ports.as_deref()?, self.keys.of_all))
    }

    /// Ports of hosts with the number of keys that wait until a place has rested.
    pub(crate) fn waiting_keys(&self) -> impl Iterator<Item = (PortAt, usize)> {
        let waiting = self.keys.waiting.iter().map(|(at, count)| (*at, *count));
        waiting.filter(move |(at, _)| partitions::is_end_at(&self.subnet, *at))
    }
}
