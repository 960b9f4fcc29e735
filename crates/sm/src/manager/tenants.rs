//! Partitions that change while the subnet is up (IBA 10.9): which ports and blocks differ is written, and nothing else is asked.
//!
//! ```text
//!  new partitions ─▶ P_Keys that differ ─▶ done
//!
//!  where the engine reads partitions:
//!  new partitions ─▶ P_Keys in both (leavers are cut off) ─▶ a heavy sweep routes ─▶ P_Keys (newcomers are let in) ─▶ done
//! ```
//!
//! Heavy sweeps alone write whether a port looks at P_Keys at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weft_machine::Time;
use weft_routing::Partitions;
use weft_wire::{Guid, PKey, PortNum};

use super::SubnetManager;
use super::planned::reads_partitions;
use super::repair::in_order;
use super::sweep::Sweep;
use super::task::Task;
use crate::knowledge::{Held, HeldPort, Keys, Layout, Layouts, PortAt, Subnet, is_in_service, own_lid};
use crate::sweep::{Program, ReadTables, enforce_otherwise, host_behind, is_end_at, left_over};
use crate::sweep::{blocks, is_unread, key_ports, room, table as table_of};
use crate::{Event, Options, Reason, SweepKind};

/// Ports whose places of keys are remembered at most, those included that are not there.
const PORTS_MAX: usize = 0x1_0000;

/// Who has which P_Keys where, and how far a change is.
#[derive(Debug, Default)]
pub(super) struct Tenants {
    /// The P_Keys of every port; `None` where no port gets any.
    keys: Option<Arc<Keys>>,
    /// Those that ports have in the end.
    wanted: Option<Arc<Keys>>,
    /// Those that all ports are known to have, since a plan for all of them was acknowledged as a whole; `None` where some may have others.
    settled: Option<Arc<Keys>>,
    /// Whether all ports that the change under way does not look at have their keys.
    others_settled: bool,
    stage: Stage,
    layouts: Layouts,
    /// By switch and port, the host that was found there last.
    behind: BTreeMap<(Guid, PortNum), Guid>,
    /// Blocks of P_Keys that the change has written.
    smps: u64,
    /// What the last writes have left: keys that wait, and ports that are still in.
    waiting: u32,
    kept: u32,
    /// Keys that ports have no room for.
    left_out: u32,
}

/// How far a change of the partitions is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Rest,
    /// Leavers are cut off.
    Cut,
    /// A heavy sweep routes.
    Route,
    /// Newcomers are let in.
    Admit,
}

impl Tenants {
    pub(super) fn attach(&mut self, partitions: Option<&Partitions>, own: Guid) {
        self.keys = partitions.map(|partitions| Arc::new(Keys::new(partitions, own)));
        (self.wanted, self.stage) = (self.keys.clone(), Stage::Rest);
        self.unsettle();
    }

    /// Anybody may write anything from now on.
    pub(super) fn forget(&mut self) {
        self.layouts.clear();
        self.behind.clear();
        self.unsettle();
        if self.stage != Stage::Rest {
            // The next heavy sweep does all of it.
            self.stage = Stage::Admit;
            self.keys.clone_from(&self.wanted);
        }
    }

    /// Ports may hold other P_Keys than those that were acknowledged: the next change looks at all of them.
    pub(super) fn unsettle(&mut self) {
        self.settled = None;
    }

    pub(super) fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// Gives a subnet its P_Keys, and says which ports have no room for all of theirs.
    pub(super) fn give_keys(&mut self, subnet: &mut Subnet) -> Vec<Event> {
        self.unsettle();
        self.note_hosts(subnet);
        subnet.silent_hosts = Arc::new(self.behind.clone());
        subnet.keys = self.keys.clone();
        self.leave_out(subnet, |_| true)
    }

    /// Gives other P_Keys to a subnet that has not changed otherwise. Gives the ports at which something may differ, and what there is
    /// to say; `None` where a switch's port is to look at other packets.
    fn give_other_keys(
        &mut self,
        subnet: &mut Subnet,
        options: &Options,
    ) -> Option<(Vec<PortAt>, Vec<Event>)> {
        subnet.keys = self.keys.clone();
        // A change that is broken off has written some ports.
        let settled = self.settled.take();
        self.others_settled = settled.is_some();
        let settled = settled.as_ref().zip(self.keys.as_ref());
        let Some(changed) = settled.map(|(settled, keys)| settled.changed(keys)) else {
            let left_out = self.leave_out(subnet, |_| true);
            let is_same = !enforce_otherwise(subnet, subnet.cabled_ports().map(|(at, ..)| at), options);
            return is_same.then(|| (key_ports(subnet, |_| true), left_out));
        };
        let ports = key_ports(subnet, |guid| changed.contains(&guid));
        let were_left_out = self.left_out > 0;
        let left_out = self.leave_out(subnet, |guid| were_left_out || changed.contains(&guid));
        let is_same = !enforce_otherwise(subnet, ports.iter().copied(), options);
        is_same.then_some((ports, left_out))
    }

    /// Finds the ports among those that are `asked` for that have no room for all of their keys.
    fn leave_out(&mut self, subnet: &Subnet, asked: impl Fn(Guid) -> bool) -> Vec<Event> {
        let left_out: Vec<(Guid, u32)> = subnet
            .end_ports()
            .map(|(at, _)| (subnet.end_guid(at), at))
            .filter(|(guid, _)| asked(*guid))
            .map(|(guid, at)| (guid, left_over(subnet, at) as u32))
            .filter(|(_, partitions)| *partitions > 0)
            .collect();
        self.left_out = left_out.iter().map(|(_, partitions)| partitions).sum();
        let event =
            |(guid, partitions): (Guid, u32)| Event::PartitionsLeftOut { port_guid: guid.into(), partitions };
        left_out.into_iter().map(event).collect()
    }

    /// Takes down who is behind which port; of those that are silent, who was.
    fn note_hosts(&mut self, subnet: &Subnet) {
        let silent: Vec<_> = subnet
            .silent_ports()
            .filter_map(|at| {
                let port = (subnet.node(at.node)?.guid(), at.port);
                Some((port, *self.behind.get(&port)?))
            })
            .collect();
        let hosts = subnet.cabled_ports().filter_map(|(at, _, peer)| {
            let is_host = !subnet.node(peer.node)?.is_switch() && subnet.node(at.node)?.is_switch();
            is_host.then_some(((subnet.node(at.node)?.guid(), at.port), subnet.end_guid(peer)))
        });
        self.behind = hosts.chain(silent).collect();
    }

    /// Takes down what ports hold before anything is written.
    pub(super) fn find(
        &mut self,
        now: Time,
        subnet: &Subnet,
        held: &[Held],
        ends: &[PortAt],
        options: &Options,
    ) {
        let rested = now + quarantine(options);
        for at in ends {
            let is_fresh =
                subnet.port(*at).is_some_and(|port| !is_in_service(port) && own_lid(port).is_none());
            self.layouts.find(subnet.end_guid(*at), is_fresh, rested);
        }
        self.settle(now, subnet, held, ends, options);
    }

    /// Takes down what ports hold as far as it is known.
    fn settle(&mut self, now: Time, subnet: &Subnet, held: &[Held], ends: &[PortAt], options: &Options) {
        if self.keys.is_none() {
            return;
        }
        let rested = now + quarantine(options);
        for at in ends.iter().copied() {
            let Some(held) = held.get(at.node as usize).and_then(|held| held.port(at.port)) else { continue };
            let room = room(subnet, at);
            if is_known(held, room) && room > 0 {
                self.layouts.settle(now, subnet.end_guid(at), table_of(held, room), rested);
            }
        }
        if self.layouts.len() > PORTS_MAX {
            let present: BTreeSet<Guid> = self.behind.values().copied().collect();
            self.layouts.retain(|guid| present.contains(&guid));
        }
    }

    /// Of these ports, those that have not acknowledged that they are in a partition no more: how many partitions, 0 where their
    /// tables could not be read, and whether their switches keep them out.
    fn kept(&self, subnet: &Subnet, held: &[Held], ports: &[PortAt]) -> Vec<(Guid, u32, bool)> {
        let Some(keys) = &self.keys else { return Vec::new() };
        let is_left = |guid: Guid, key: &PKey| {
            let is_it = |other: &PKey| other.partition() == key.partition();
            key.partition() != 0 && !keys.of(guid).iter().any(is_it)
        };
        let unread = ends(subnet, ports.iter().copied()).into_iter().filter_map(|at| {
            let held = held.get(at.node as usize)?.port(at.port)?;
            is_unread(subnet, at, held, &self.layouts).then(|| subnet.end_guid(at))
        });
        let unread: BTreeSet<Guid> = unread.collect();
        let mut kept = Vec::new();
        for at in ports.iter().copied().filter(|at| !is_end_at(subnet, *at)) {
            let Some(guid) = host_behind(subnet, at) else { continue };
            let table = self.layouts.of(guid).map_or(&[][..], Layout::table);
            let count = table.iter().filter(|key| is_left(guid, key)).count();
            if count == 0 && !unread.contains(&guid) {
                continue;
            }
            let info = subnet.port(at).and_then(|port| port.info);
            let looks = info.is_some_and(|info| info.partition_enforcement_inbound);
            // A block that no one has acknowledged may hold anything.
            let filter = held.get(at.node as usize).and_then(|held| held.port(at.port));
            let filter = filter.filter(|held| is_known(held, room(subnet, at)));
            let filter = filter.map(|held| table_of(held, room(subnet, at))).unwrap_or_default();
            let is_cut_off = looks && !filter.is_empty() && !filter.iter().any(|key| is_left(guid, key));
            kept.push((guid, count as u32, is_cut_off));
        }
        kept
    }

    /// Whether each of these ports has acknowledged all that it was given.
    fn have_all(subnet: &Subnet, held: &[Held], ports: &[PortAt], options: &Options) -> bool {
        let has_all = |at: &PortAt| {
            let held = held.get(at.node as usize).and_then(|held| held.port(at.port));
            let mut blocks = blocks(subnet, *at, options);
            held.is_some_and(|held| blocks.all(|block| held.p_keys(block).is_some()))
        };
        ports.iter().all(has_all)
    }
}

/// Whether all blocks of a port's table are known to have been written, or were read.
fn is_known(held: &HeldPort, room: usize) -> bool {
    (0..room.div_ceil(32)).all(|block| held.p_keys(block as u16).is_some())
}

/// Those of some ports that have a LID.
fn ends(subnet: &Subnet, ports: impl Iterator<Item = PortAt>) -> Vec<PortAt> {
    ports.filter(|at| is_end_at(subnet, *at)).collect()
}

fn quarantine(options: &Options) -> Time {
    Time::from_millis(options.routing.p_key_quarantine_ms)
}

impl SubnetManager {
    /// There are other partitions from now on.
    pub(super) fn take_partitions(&mut self, now: Time, partitions: Partitions) {
        let before = self.options.routing.engine.partitions.replace(partitions);
        let after = self.options.routing.engine.partitions.as_ref();
        let Some(own) = self.own_port.at else { return self.partitions_taken() };
        let wanted = after.map(|after| Arc::new(Keys::new(after, own.guid)));
        let is_rerouted = reads_partitions(&self.options) && before.as_ref() != after;
        let is_same = wanted == self.tenants.wanted && !is_rerouted;
        if is_same {
            // A change that is under way says so when it is done.
            if self.tenants.stage == Stage::Rest {
                self.partitions_taken();
            }
            return;
        }
        self.tenants.wanted.clone_from(&wanted);
        if !self.election.state.is_in_charge() {
            (self.tenants.keys, self.tenants.stage) = (wanted, Stage::Rest);
            return self.partitions_taken();
        }
        let both = self.tenants.keys.as_ref().zip(wanted.as_ref()).filter(|_| is_rerouted);
        let both = both.map(|(before, after)| Arc::new(before.meet(after)));
        self.tenants.stage = if is_rerouted { Stage::Cut } else { Stage::Admit };
        self.tenants.keys = if is_rerouted { both.or_else(|| self.tenants.keys.clone()) } else { wanted };
        self.agenda.partitions(now);
    }

    /// Says what a change has come to.
    fn partitions_taken(&mut self) {
        let in_charge = self.election.state.is_in_charge();
        let Tenants { smps, waiting, kept, left_out, .. } = self.tenants;
        self.tenants.smps = 0;
        self.say(Event::PartitionsTaken { in_charge, smps, waiting, kept, left_out });
    }

    /// Writes the P_Keys that differ into the subnet as it is known.
    pub(super) fn start_partitions(&mut self, now: Time) {
        let may = self.known.is_up && !self.own_port.down && self.election.state.is_in_charge();
        let subnet = if may { self.known.take_subnet() } else { None };
        let Some(mut subnet) = subnet else { return self.agenda.heavy(now, Reason::Partitions) };
        let Some((ports, left_out)) = self.tenants.give_other_keys(&mut subnet, &self.options) else {
            self.known.keep_subnet(subnet);
            return self.agenda.heavy(now, Reason::Partitions);
        };
        self.tally.sweeps += 1;
        self.requests.begin_sweep();
        self.sweep = Sweep::of_keys(now, self.requests.stats().retries);
        self.say(Event::SweepStarted { kind: SweepKind::Repair, reason: Reason::Partitions });
        self.say_all(left_out);
        let held = in_order(&subnet, std::mem::take(&mut self.known.memory));
        let read = ReadTables::p_keys(subnet, held, ports, &self.options);
        self.turn_to(now, Task::ReadTables(Box::new(read)));
    }

    /// What ports hold is known.
    pub(super) fn keys_read(&mut self, now: Time, read: ReadTables) {
        let ReadTables { subnet, held, key_ports, .. } = read;
        let ends = ends(&subnet, key_ports.iter().copied());
        self.tenants.find(now, &subnet, &held, &ends, &self.options);
        let program = Program::of_p_keys(now, subnet, held, key_ports, self.tenants.layouts(), &self.options);
        let total = program.total() as u64;
        self.turn_to(now, Task::Program(Box::new(program)));
        self.tally.progress.total = total;
    }

    /// P_Keys have been written, with other tables or alone.
    pub(super) fn keys_written(&mut self, now: Time, program: &Program) {
        let Program { subnet, held, .. } = program;
        let Some((ports, of_all)) = program.p_key_ports() else { return };
        let ends = ends(subnet, ports.iter().copied());
        self.tenants.settle(now, subnet, held, &ends, &self.options);
        let waiting: Vec<(PortAt, usize)> = program.waiting_keys().collect();
        self.tenants.waiting = waiting.iter().map(|(_, count)| *count as u32).sum();
        for (at, count) in waiting {
            let (port_guid, partitions) = (subnet.end_guid(at).into(), count as u32);
            self.say(Event::PartitionsWait { port_guid, partitions });
        }
        if let Some(at) = self.tenants.layouts.next(now).filter(|_| self.tenants.waiting > 0) {
            self.agenda.partitions(at);
        }
        let kept = self.tenants.kept(subnet, held, ports);
        self.tenants.kept = kept.len() as u32;
        let is_settled = (of_all || self.tenants.others_settled)
            && self.tenants.waiting == 0
            && kept.is_empty()
            && Tenants::have_all(subnet, held, ports, &self.options);
        self.tenants.settled = subnet.keys.clone().filter(|_| is_settled);
        self.say_all(kept.into_iter().map(|(guid, partitions, is_cut_off)| Event::PartitionsKept {
            port_guid: guid.into(),
            partitions,
            is_cut_off,
        }));
    }

    /// A sweep that gives keys is over: `keys` are those that it had.
    pub(super) fn keys_settled(&mut self, now: Time, keys: Option<&Arc<Keys>>, discovered: bool) {
        if self.tenants.stage == Stage::Rest {
            return;
        }
        let had = keys.zip(self.tenants.keys.as_ref()).is_some_and(|(had, own)| Arc::ptr_eq(had, own));
        self.tenants.smps += self.requests.counts.set_p_keys;
        match self.tenants.stage {
            Stage::Cut if had || self.tenants.keys.is_none() => {
                self.tenants.stage = Stage::Route;
                self.agenda.heavy(now, Reason::Partitions);
            }
            Stage::Route if discovered && !self.sweep.unrouted => {
                self.tenants.stage = Stage::Admit;
                self.tenants.keys.clone_from(&self.tenants.wanted);
                self.agenda.partitions(now);
            }
            Stage::Admit if had => {
                self.tenants.stage = Stage::Rest;
                self.partitions_taken();
            }
            _ => {}
        }
    }
}
