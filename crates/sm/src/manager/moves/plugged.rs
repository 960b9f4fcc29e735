//! Machines that have moved: whether they are at their new places, and their ports in service.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_wire::Guid;

use super::super::SubnetManager;
use super::super::sweep::Sweep;
use super::super::task::Task;
use crate::knowledge::{PortAt, Subnet};
use crate::moves::Plug;
use crate::sweep::{Program, ReadTables};
use crate::{Event, Reason, SweepKind};

impl SubnetManager {
    /// Looks whether those who have moved are at their new places.
    pub(in crate::manager) fn start_plug(&mut self, now: Time) {
        let Some(subnet) = self.known.take_subnet() else { return };
        let (mut expected, mut unknown) = (BTreeMap::new(), Vec::new());
        for (guid, away) in self.desk.away() {
            let Some((switch, port)) = away.expected else { continue };
            let Some(node) = subnet.by_guid.get(&switch) else { continue };
            let place = PortAt { node: *node, port };
            match subnet.guid_behind(place) == Some(guid) {
                true => drop(expected.insert(place, guid)),
                // The last sweep has not seen it, so that a sweep has to once it is there.
                false => unknown.push(place),
            }
        }
        if expected.is_empty() && unknown.is_empty() {
            return self.known.keep_subnet(subnet);
        }
        self.requests.begin_sweep();
        let away = self.desk.away().map(|(guid, _)| guid).collect();
        self.turn_to(now, Task::Plug(Box::new(Plug::new(subnet, expected, &unknown, away))));
    }

    /// Places have been looked at. Ports of those who are there are configured.
    pub(in crate::manager) fn plugged(&mut self, now: Time, plug: Plug) {
        let Plug { mut subnet, infos, there, odd, .. } = plug;
        if let Some(guid) = odd {
            self.known.keep_subnet(subnet);
            return self.start_heavy(now, Reason::StateChange { guid });
        }
        for (place, end) in &there {
            for at in [place, end] {
                infos.get(at).into_iter().for_each(|info| subnet.note(*at, *info));
            }
            let guid = subnet.end_guid(*end);
            self.desk.release(guid);
            let renews = self.succession.relevelled.remove(&guid);
            subnet.port_mut(*end).into_iter().for_each(|port| port.reregister |= renews);
            // It is another device than the one that had this GUID before.
            let node = subnet.guid(end.node);
            self.known.memory.remove(&node);
        }
        self.look_at_trapped(now, &subnet);
        let Some((first, _)) = there.first_key_value() else { return self.known.keep_subnet(subnet) };
        let reason = Reason::StateChange { guid: subnet.guid(first.node) };
        let touched = there.keys().map(|place| place.node).collect();
        self.configure_ports(now, subnet, touched, reason);
    }

    /// Writes what ports lack that have come up, as a repair does.
    fn configure_ports(&mut self, now: Time, subnet: Subnet, touched: BTreeSet<u32>, reason: Reason) {
        self.tally.sweeps += 1;
        self.sweep = Sweep::repair(now, self.requests.stats().retries, touched);
        self.say(Event::SweepStarted { kind: SweepKind::Repair, reason });
        let memory = std::mem::take(&mut self.known.memory);
        let ReadTables { subnet, held, .. } = ReadTables::new(subnet, memory, &self.options);
        let program = Program::new(now, subnet, held, self.tenants.layouts(), &self.options);
        let total = program.total() as u64;
        self.turn_to(now, Task::Program(Box::new(program)));
        self.tally.progress.total = total;
    }

    /// A heavy sweep has found what there is: who is where it belongs is waited for no more.
    pub(in crate::manager) fn note_arrivals(&mut self, now: Time, subnet: &Subnet) {
        let is_there = |guid: Guid, (switch, port): (Guid, weft_wire::PortNum)| {
            let place = subnet.by_guid.get(&switch).map(|node| PortAt { node: *node, port });
            place.and_then(|place| subnet.guid_behind(place)) == Some(guid)
        };
        let there =
            self.desk.away().filter(|(guid, away)| away.expected.is_some_and(|at| is_there(*guid, at)));
        let there: Vec<Guid> = there.map(|(guid, _)| guid).collect();
        there.into_iter().for_each(|guid| self.desk.release(guid));
        self.look_at_trapped(now, subnet);
    }
}
