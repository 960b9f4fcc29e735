//! From one phase of a sweep to the next.

use std::collections::BTreeSet;

use weft_machine::Time;

use super::patience::interval;
use super::sweep::Sweep;
use super::task::Task;
use super::{LIGHT_LATER, SubnetManager};
use crate::knowledge::{Adapters, Held, PortAt, Subnet, is_up, remember};
use crate::moves::Late;
use crate::sa::{AskedTables, Myself, Published};
use crate::sweep::{
    Activate, Check, Discover, Past, Program, ReadTables, Regulate, Settings, Standing, route,
};
use crate::{Event, Output, Reason, SweepKind, SweepPhase};

impl SubnetManager {
    pub(super) fn start_heavy(&mut self, now: Time, reason: Reason) {
        self.start_heavy_without(now, reason, None);
    }

    /// A heavy sweep that knows of a cable that is gone: `gone` is the end that may not have noticed.
    fn start_heavy_without(&mut self, now: Time, reason: Reason, gone: Option<PortAt>) {
        let Some(own) = self.own_port.at else { return };
        self.tally.sweeps += 1;
        self.agenda.sweep_begins();
        self.desk.late = Late::default();
        self.traps.clear();
        self.requests.begin_sweep();
        self.desk.forget_tables();
        let afresh = matches!(reason, Reason::Command | Reason::Unbalanced);
        self.sweep = Sweep::begin(now, self.requests.stats().retries, afresh);
        self.say(Event::SweepStarted { kind: SweepKind::Heavy, reason });
        let cabling = self.known.begin_discovery(gone);
        let (own_port, own_guid) = (own.port, own.guid);
        let (claim, candidate) = (Some(self.options.clone()), !self.election.state.is_in_charge());
        let settings = Settings { own_port, own_guid, clear: true, candidate, ask_managers: true, claim };
        self.turn_to(now, Task::Discover(Box::new(Discover::new(settings, cabling))));
    }

    pub(super) fn start_light(&mut self, now: Time, reason: Reason) {
        let Some(subnet) = self.known.take_subnet() else { return self.agenda.heavy(now, reason) };
        if !self.own_port.down {
            self.say(Event::SweepStarted { kind: SweepKind::Light, reason });
        }
        self.requests.begin_sweep();
        let can_repair = subnet.routed.is_proven();
        let mut check = Check::light(subnet, &self.options).for_repair(can_repair);
        if !self.own_port.down {
            check = self.read_back(now, check);
        }
        self.turn_to(now, Task::Light(Box::new(check)));
    }

    /// Adds what is to be read back to a light sweep.
    fn read_back(&mut self, now: Time, check: Check) -> Check {
        if let Some(since) = self.requests.unconfirmed.take_everything() {
            self.audit.begin(since);
        }
        let most = self.options.sweeps.audit_smps as usize;
        let unconfirmed = self.requests.unconfirmed.due(now, most);
        let memory = std::mem::take(&mut self.known.memory);
        let part = self.audit.part(now, &check.subnet, &memory, &self.options, most - unconfirmed.len());
        check.with_read_back(now, memory, self.own_port.sm_lid, unconfirmed, part)
    }

    /// A light sweep ends before it has found anything, and is made again soon.
    pub(super) fn postpone_light(&mut self, now: Time, mut check: Check) {
        self.requests.abandon(now, &check);
        if !self.own_port.down {
            self.known.memory = std::mem::take(&mut check.memory);
        }
        self.known.keep_subnet(check.subnet);
        self.agenda.light(now + LIGHT_LATER, Reason::Interval);
    }

    /// A light sweep is over.
    fn looked_through(&mut self, now: Time, mut check: Check) {
        if !self.own_port.down {
            self.known.memory = std::mem::take(&mut check.memory);
            // Unless it was cut short, all that was to be read back has been.
            if check.found.is_none() {
                self.requests.unconfirmed.settle(check.began, &check.unconfirmed);
                self.audit.finished();
            }
            if check.has_read_otherwise() {
                self.tenants.unsettle();
            }
        }
        self.looked(now, check, None);
    }

    pub(super) fn start_look(&mut self, now: Time, reason: Reason, nodes: BTreeSet<u32>) {
        let Some(subnet) = self.known.take_subnet() else { return };
        self.requests.begin_sweep();
        let can_repair = subnet.routed.is_proven();
        let check = Check::look(subnet, &self.options, nodes.into_iter()).for_repair(can_repair);
        self.turn_to(now, Task::Look(Box::new(check), reason));
    }

    /// The step under way is done.
    pub(super) fn advance(&mut self, now: Time) {
        match std::mem::replace(&mut self.task, Task::Idle) {
            task @ (Task::Detached | Task::Idle) => self.task = task,
            Task::Discover(discover) => self.discovered(now, *discover),
            Task::ReadTables(tables) => self.tables_read(now, *tables),
            Task::Program(program) => self.programmed(now, *program),
            Task::Activate(activate, held) => self.activated(now, *activate, held),
            Task::Regulate(regulate) => self.regulated(now, *regulate),
            Task::Verify(check) => self.verified(now, *check),
            Task::Light(check) => self.looked_through(now, *check),
            Task::Look(check, reason) => self.looked(now, *check, Some(reason)),
            Task::Tables(read) => self.sa.take_tables(now, *read),
            Task::Move(carry) => self.carried(now, *carry),
            // It has no requests that could end.
            task @ Task::Drain(..) => self.task = task,
            Task::Plug(plug) => self.plugged(now, *plug),
        }
    }

    /// Reads the tables that subnet administration is asked for. False: there are none, or no node to ask.
    pub(super) fn start_tables(&mut self, now: Time) -> bool {
        let wanted = self.sa.wanted_tables();
        let Some(subnet) = self.known.subnet.as_ref().filter(|_| !wanted.is_empty() && !self.own_port.down)
        else {
            return false;
        };
        let tables = AskedTables::new(wanted, subnet);
        self.turn_to(now, Task::Tables(Box::new(tables)));
        true
    }

    /// Tells subnet administration how the subnet is now.
    fn publish(&mut self, now: Time, subnet: &Subnet, is_routed: bool) {
        let (guid, lid) = (self.own_port.guid(), self.own_port.sm_lid);
        self.sa.managers = self.election.peers.clone();
        let away = self.desk.away().map(|(guid, _)| guid).collect();
        let myself = Myself { guid, lid, act_count: 0 };
        self.sa.subnet_changed(now, subnet, &self.known.memory, Published { myself, away, is_routed });
    }

    fn discovered(&mut self, now: Time, mut discover: Discover) {
        self.sweep.note(discover.unanswered, discover.refused);
        if let Some(before) = discover.take_before_again() {
            return self.functions_found(now, discover, before);
        }
        let own_port_up = discover.own_port_info().map(is_up);
        if let Some(info) = discover.own_port_info() {
            self.own_port.lid = info.lid;
        }
        let on_switch = discover.is_on_switch();
        let found = discover.own_port_info().copied();
        if (own_port_up == Some(true) || on_switch) && !self.contend(now, &mut discover) {
            // Somebody else writes, at least for now.
            return self.enter(now, None);
        }
        let mut subnet = discover.finish();
        self.known.pass_routing(&mut subnet);
        if own_port_up == Some(true) || on_switch {
            self.succession.arrive(now, self.own_port.guid(), found, &self.options);
            return self.begin_configuration(now, subnet);
        }
        self.enter(now, None);
        self.known.is_up = false;
        if own_port_up.is_none() {
            let silent = self.own_port.found_silent();
            self.say_all(silent);
            self.known.set_aside(Some(subnet));
            self.patience.is_incomplete();
            let delay = self.patience.retry_delay(&self.options);
            return self.agenda.heavy(now + delay, Reason::Incomplete);
        }
        self.known.keep_subnet(subnet);
        let down = self.own_port.found_down();
        self.say_all(down);
        // The driver of the attachment says when there is a link again.
        self.agenda.light(now + interval(&self.options), Reason::OwnPort);
    }

    /// The subnet is this manager's to configure: what nodes hold is read first.
    pub(super) fn begin_configuration(&mut self, now: Time, mut subnet: Subnet) {
        let up = self.own_port.found_up();
        self.say_all(up);
        let nodes = self.known.compare(&subnet);
        self.say_all(nodes);
        self.tally.found(&subnet);
        let lane = self.known.keep_a_lane(&mut subnet, &self.options);
        self.say_all(lane);
        subnet.is_contested = self.election.has_met;
        subnet.learned = self.learning.learned.clone();
        let left_out = self.tenants.give_keys(&mut subnet);
        self.say_all(left_out);
        self.succession.demand_registration(&mut subnet);
        let memory = std::mem::take(&mut self.known.memory);
        let read = ReadTables::new(subnet, memory, &self.options);
        if read.has_to_read() {
            self.succession.inherits = true;
        }
        self.turn_to(now, Task::ReadTables(Box::new(read)));
    }

    fn tables_read(&mut self, now: Time, read: ReadTables) {
        self.sweep.note(read.unanswered, 0);
        if self.sweep.is_of_keys {
            return self.keys_read(now, read);
        }
        let ends: Vec<PortAt> = read.subnet.end_ports().map(|(at, _)| at).collect();
        self.tenants.find(now, &read.subnet, &read.held, &ends, &self.options);
        let ReadTables { mut subnet, held, .. } = read;
        self.enter(now, Some(SweepPhase::Assign));
        subnet.adapters = Adapters::find(&subnet.fabric, &self.options);
        let away = self.desk.away().map(|(_, away)| away.lid).collect();
        let (events, counts, file) = self.succession.give_lids(now, &mut subnet, &held, away, &self.options);
        self.tally.gave_vm_lids(counts);
        self.say_all(events);
        self.outputs.extend(file.map(Output::Persist));
        self.enter(now, Some(SweepPhase::Route));
        self.route(&mut subnet, &held);
        let program = Program::new(now, subnet, held, self.tenants.layouts(), &self.options);
        self.own_port.give_lid(program.sm_lid);
        let total = program.total() as u64;
        self.turn_to(now, Task::Program(Box::new(program)));
        self.tally.progress.total = total;
    }

    /// Computes tables, and says by which engine. Where none serves the subnet, all stays as it is.
    fn route(&mut self, subnet: &mut Subnet, held: &[Held]) {
        let afresh = self.sweep.afresh || self.learning.is_new;
        subnet.routed.withdraw();
        match route(subnet, &self.options, Some(&mut self.known.paths)) {
            Ok(mut computed) => {
                self.learning.is_new = false;
                let away: Vec<_> = self.desk.away().map(|(_, away)| away.lid).collect();
                let standing = (!afresh).then(|| Standing::new(subnet, held, &computed));
                let is_dynamic = self.options.is_dynamic();
                let past = || Past::routed(subnet, &computed, standing.as_ref(), &away, held, is_dynamic);
                self.known.history.note(past);
                standing.into_iter().for_each(|standing| _ = computed.keep(subnet, standing));
                computed.keep_rows(&away, subnet, held);
                self.say(Event::Routed(computed.routing.report.clone()));
                subnet.routed = computed.into_routed(subnet);
            }
            Err(message) => {
                self.sweep.unrouted = true;
                self.say(Event::RouteFailed { message });
            }
        }
        self.tally.progress.lids = subnet.routed.lids.len() as u32;
    }

    fn programmed(&mut self, now: Time, program: Program) {
        self.sweep.note(program.unanswered, program.refused + program.others);
        self.keys_written(now, &program);
        self.met_others(now, program.others);
        let Some(program) = self.repaired(now, program) else { return };
        let activate = Activate::new(program.subnet, self.own_port.sm_lid, &self.options);
        self.turn_to(now, Task::Activate(Box::new(activate), program.held));
    }

    fn activated(&mut self, now: Time, activate: Activate, held: Vec<Held>) {
        self.sweep.note(activate.unanswered, activate.refused + activate.others);
        self.met_others(now, activate.others);
        let ports = self.succession.note_registration(&activate.subnet);
        self.say_all((ports > 0).then_some(Event::Reregister { ports }));
        self.known.memory = remember(&activate.subnet, held);
        debug_assert_eq!(activate.ports_active, activate.subnet.ports_active(), "each change was counted");
        self.tally.progress.ports_active = activate.ports_active;
        if self.options.congestion.is_on {
            let regulate = Regulate::new(activate.subnet, &self.options);
            self.turn_to(now, Task::Regulate(Box::new(regulate)));
        } else if std::mem::take(&mut self.succession.inherits) {
            let regulate = Regulate::look(activate.subnet, &self.options);
            self.turn_to(now, Task::Regulate(Box::new(regulate)));
        } else {
            self.verify(now, activate.subnet);
        }
    }

    /// Machines have come to ports since they were found, so that nothing was written there: another sweep finds the manager that moved them.
    fn met_others(&mut self, now: Time, ports: u32) {
        if ports > 0 {
            self.agenda.heavy(now, Reason::Managers);
        }
    }

    fn regulated(&mut self, now: Time, regulate: Regulate) {
        self.sweep.note(regulate.unanswered, regulate.refused);
        self.say_all(regulate.said());
        self.verify(now, regulate.subnet);
    }

    fn verify(&mut self, now: Time, subnet: Subnet) {
        let touched = self.sweep.touched.take().map(|mut nodes| {
            // Where someone else is yet to come a port is down; the switch is looked at then.
            let guid = |node: &u32| subnet.guid(*node);
            nodes.retain(|node| !self.desk.keeps_trap(guid(node)));
            nodes
        });
        let check = match touched {
            Some(nodes) => Check::look(subnet, &self.options, nodes.into_iter()),
            None => Check::verify(subnet, &self.options),
        };
        self.turn_to(now, Task::Verify(Box::new(check)));
    }

    fn verified(&mut self, now: Time, check: Check) {
        self.enter(now, None);
        let Some(reason) = check.found else {
            self.patience.resweeps = 0;
            return self.settle(now, check.subnet, true);
        };
        match self.patience.resweep(&self.options) {
            Ok(()) => {
                self.known.keep_subnet(check.subnet);
                self.start_heavy_without(now, reason, check.gone);
            }
            Err(sweeps) => {
                self.say(Event::Unsettled { sweeps });
                self.settle(now, check.subnet, false);
                let delay = self.patience.retry_delay(&self.options);
                self.agenda.heavy(now + delay, reason);
            }
        }
    }

    /// A heavy sweep is over.
    pub(super) fn settle(&mut self, now: Time, subnet: Subnet, settled: bool) {
        let retries = self.requests.stats().retries;
        let mut summary = self.sweep.summary(now, &subnet, self.requests.counts, retries);
        summary.sweeps = self.tally.sweeps;
        summary.complete &= settled;
        self.known.is_up = true;
        self.tally.progress.ports_silent = summary.ports_silent;
        match self.sweep.is_of_keys {
            true => self.sa.keys_changed(now, &subnet),
            false => self.publish(now, &subnet, true),
        }
        self.release_late(now);
        // In a repair those who have moved are known at their new places, and need not be there yet.
        match self.sweep.discovers {
            true => self.note_arrivals(now, &subnet),
            false => self.look_at_trapped(now, &subnet),
        }
        let is_routed = subnet.routed.routing().is_some();
        let keys = subnet.keys.clone();
        self.known.keep_subnet(subnet);
        let awaited = self.succession.awaited();
        // A sweep before the VM manager's word has nothing to give them, and holds up the moves that wait.
        let without_lid = summary.ports_without_lid.saturating_sub(awaited.map_or(0, |(ports, _)| ports));
        let again = self.sweep.is_lacking(summary.ports_refused + summary.ports_left_out + without_lid);
        if summary.complete {
            self.patience.incomplete = 0;
        } else {
            self.patience.is_incomplete();
        }
        if again {
            let delay = self.patience.retry_delay(&self.options);
            self.agenda.heavy(now + delay, Reason::Incomplete);
        } else {
            if let Some((_, until)) = awaited {
                self.agenda.heavy(until, Reason::Incomplete);
            }
            self.plan_light(now);
        }
        self.look_again_at_managers(now);
        if is_routed && !self.sweep.is_of_keys {
            self.plan_proof(now);
        }
        self.say(if summary.complete { Event::SubnetUp(summary) } else { Event::SweepIncomplete(summary) });
        self.keys_settled(now, keys.as_ref(), self.sweep.discovers);
    }

    fn looked(&mut self, now: Time, mut check: Check, trap: Option<Reason>) {
        let (mut found, gone, own_port_down) = (check.verdict(), check.gone, self.own_port.down);
        if let (None, Some(changes)) = (found, check.changes.take().filter(|changes| !changes.is_empty())) {
            let reason = trap.unwrap_or(Reason::StateChange { guid: changes.guid(&check.subnet) });
            let Some(subnet) = self.take_functions(now, check.subnet, &changes, reason) else { return };
            match self.repair(now, subnet, &changes, reason) {
                None => return,
                Some(subnet) => (check.subnet, found) = (subnet, Some(reason)),
            }
        }
        let silent = check.subnet.silent_ports().count() as u32;
        if silent == 0 && self.tally.progress().ports_silent > 0 {
            // Their links are down now: that is the answer that the fabric lacked.
            found = found.or(Some(Reason::Incomplete));
        }
        self.tally.progress.ports_silent = silent;
        if self.known.is_up {
            self.publish(now, &check.subnet, false);
        }
        self.known.keep_subnet(check.subnet);
        match found {
            Some(reason) => self.start_heavy_without(now, trap.unwrap_or(reason), gone),
            None if own_port_down => self.agenda.light(now + interval(&self.options), Reason::OwnPort),
            None if trap.is_some() => {}
            None => {
                self.patience.is_incomplete();
                self.plan_light(now);
                self.say(Event::Quiet);
            }
        }
    }

    /// The next light sweep: soon when somebody has been silent, else when it is time. Repairs do not put it off, or one after the other
    /// would for ever.
    fn plan_light(&mut self, now: Time) {
        if self.tally.progress().ports_silent > 0 {
            let delay = self.patience.retry_delay(&self.options);
            self.agenda.light_by(now + delay, Reason::Incomplete);
            return;
        }
        self.patience.incomplete = 0;
        if self.options.sweeps.sweep_interval_ms > 0 || self.is_in_doubt() {
            self.agenda.light_by(now + interval(&self.options), Reason::Interval);
        }
    }
}
