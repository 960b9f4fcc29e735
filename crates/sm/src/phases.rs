//! From one phase of a sweep to the next.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_routing::{BLOCK_ENTRIES, ForwardingTable, PortLids, Routes};
use weft_wire::{Guid, NodeType, PortInfo, VirtualLane, capability};

use crate::activate::Activate;
use crate::congestion::Regulate;
use crate::discover::{Cabling, Discover, Settings};
use crate::held::{Held, remember};
use crate::key::PortAt;
use crate::light::Check;
use crate::manager::{Doing, SubnetManager};
use crate::partitions::left_over;
use crate::program::Program;
use crate::read_tables::ReadTables;
use crate::repair::Repairs;
use crate::route::{Computed, adopt_lids, give_lids, management_lane, route};
use crate::sa::{AskedTables, Myself};
use crate::subnet::{Subnet, is_up};
use crate::sweep::Sweep;
use crate::{Event, Phase, Reason, SmpCounts, SweepKind};

/// Stands for the sweep interval where there are no light sweeps: retries get no further apart, and light sweeps come
/// as long as anything is in doubt.
const INTERVAL_DEFAULT: Time = Time::from_secs(10);

impl SubnetManager {
    pub(crate) fn start_heavy(&mut self, now: Time, reason: Reason) {
        self.start_heavy_without(now, reason, None);
    }

    /// A heavy sweep that knows of a cable that is gone: `gone` is the end that may not have noticed.
    fn start_heavy_without(&mut self, now: Time, reason: Reason, gone: Option<PortAt>) {
        let Some(own) = self.own else { return };
        self.sweeps += 1;
        self.agenda.sweep_begins();
        self.traps.clear();
        self.requests.counts = SmpCounts::default();
        self.sweep = Sweep::begin(now, self.requests.stats().retries);
        self.repairs.touched = None;
        self.repairs.afresh = matches!(reason, Reason::Command | Reason::Unbalanced);
        self.say(Event::SweepStarted { kind: SweepKind::Heavy, reason });
        self.enter(now, Some(Phase::Discover));
        let before = self.standing.take();
        let cabling = before.as_ref().map(|subnet| Cabling::of(subnet, gone)).unwrap_or_default();
        self.set_aside(before);
        let (own_port, own_guid) = (own.port, own.port_guid);
        let (claim, candidate) = (Some(self.options.clone()), !self.election.state.is_in_charge());
        let settings = Settings { own_port, own_guid, clear: true, candidate, ask_managers: true, claim };
        self.doing = Doing::Discover(Box::new(Discover::new(settings, cabling)));
    }

    pub(crate) fn start_light(&mut self, now: Time, reason: Reason) {
        let Some(subnet) = self.standing.take() else { return self.agenda.heavy(now, reason) };
        if !self.own_port_down {
            self.say(Event::SweepStarted { kind: SweepKind::Light, reason });
        }
        self.requests.counts = SmpCounts::default();
        let can_repair = subnet.routed.is_proven();
        let mut check = Check::light(subnet, &self.options).for_repair(can_repair);
        if !self.own_port_down {
            check = self.read_back(now, check);
        }
        self.doing = Doing::Light(Box::new(check));
    }

    /// Adds what is to be read back to a light sweep.
    fn read_back(&mut self, now: Time, check: Check) -> Check {
        if let Some(since) = self.requests.unconfirmed.take_everything() {
            self.audit.begin(since);
        }
        let most = self.options.audit_smps as usize;
        let unconfirmed = self.requests.unconfirmed.due(now, most);
        let memory = std::mem::take(&mut self.memory);
        let part = self.audit.part(now, &check.subnet, &memory, &self.options, most - unconfirmed.len());
        check.with_read_back(now, memory, self.sm_lid, unconfirmed, part)
    }

    /// A light sweep is over.
    fn looked_through(&mut self, now: Time, mut check: Check) {
        if !self.own_port_down {
            self.memory = std::mem::take(&mut check.memory);
            // Unless it was cut short, all that was to be read back has been.
            if check.found.is_none() {
                self.requests.unconfirmed.settle(check.began, &check.unconfirmed);
                self.audit.finished();
            }
        }
        self.looked(now, check, None);
    }

    pub(crate) fn start_look(&mut self, reason: Reason, nodes: BTreeSet<u32>) {
        let Some(subnet) = self.standing.take() else { return };
        self.requests.counts = SmpCounts::default();
        let can_repair = subnet.routed.is_proven();
        let check = Check::look(subnet, &self.options, nodes.into_iter()).for_repair(can_repair);
        self.doing = Doing::Look(Box::new(check), reason);
    }

    /// The step under way is done.
    pub(crate) fn advance(&mut self, now: Time) {
        match std::mem::replace(&mut self.doing, Doing::Idle) {
            doing @ (Doing::Detached | Doing::Idle) => self.doing = doing,
            Doing::Discover(discover) => self.discovered(now, *discover),
            Doing::ReadTables(learn) => self.learned(now, *learn),
            Doing::Program(program) => self.programmed(now, *program),
            Doing::Activate(activate) => self.activated(now, *activate),
            Doing::Regulate(regulate) => self.regulated(now, *regulate),
            Doing::Verify(check) => self.verified(now, *check),
            Doing::Light(check) => self.looked_through(now, *check),
            Doing::Look(check, reason) => self.looked(now, *check, Some(reason)),
            Doing::Tables(read) => self.sa.take_tables(now, *read),
        }
    }

    /// Reads the tables that subnet administration is asked for. False: there are none, or nobody to ask.
    pub(crate) fn start_tables(&mut self) -> bool {
        let wanted = self.sa.wanted_tables();
        let Some(subnet) = self.standing.as_ref().filter(|_| !wanted.is_empty() && !self.own_port_down)
        else {
            return false;
        };
        self.doing = Doing::Tables(Box::new(AskedTables::new(wanted, subnet)));
        true
    }

    /// Tells subnet administration how the subnet is now.
    fn publish(&mut self, now: Time, subnet: &Subnet) {
        let (guid, lid) = (self.own.map_or(Guid(0), |own| own.port_guid), self.sm_lid);
        self.sa.meet(self.election.peers.clone());
        self.sa.learn(now, subnet, &self.memory, Myself { guid, lid, act_count: 0 });
    }

    fn discovered(&mut self, now: Time, mut discover: Discover) {
        self.sweep.unanswered += discover.unanswered;
        self.sweep.refused += discover.refused;
        let own_port_up = discover.own_port_info().map(is_up);
        self.own_lid = discover.own_port_info().map_or(self.own_lid, |info| info.lid);
        let on_switch = discover.is_on_switch();
        if (own_port_up == Some(true) || on_switch) && !self.contend(now, &mut discover) {
            // Somebody else writes, at least for now.
            return self.enter(now, None);
        }
        let mut subnet = discover.finish();
        subnet.routed = std::mem::take(&mut self.routed);
        if own_port_up == Some(true) || on_switch {
            self.own_port_silent = false;
            if std::mem::take(&mut self.own_port_down) {
                self.say(Event::OwnPortUp);
            }
            self.compare(&subnet);
            self.keep_a_lane(&mut subnet);
            self.give_keys(&mut subnet);
            self.demand_registration(&mut subnet);
            self.enter(now, Some(Phase::Learn));
            let memory = std::mem::take(&mut self.memory);
            let learn = ReadTables::new(subnet, memory, &self.options);
            self.inherits |= learn.has_to_read();
            self.doing = Doing::ReadTables(Box::new(learn));
            return;
        }
        self.enter(now, None);
        self.is_up = false;
        self.own_port_silent &= own_port_up.is_none();
        if own_port_up.is_none() {
            if !std::mem::replace(&mut self.own_port_silent, true) {
                self.say(Event::OwnPortSilent);
            }
            self.set_aside(Some(subnet));
            self.incomplete = self.incomplete.saturating_add(1);
            let delay = self.retry_delay();
            return self.agenda.heavy(now + delay, Reason::Incomplete);
        }
        self.standing = Some(subnet);
        if !std::mem::replace(&mut self.own_port_down, true) {
            self.say(Event::OwnPortDown);
        }
        // Whoever drives the attachment says when there is a link again.
        self.agenda.light(now + self.interval(), Reason::OwnPort);
    }

    /// Finds the lane that is management's alone, and says which it is.
    fn keep_a_lane(&mut self, subnet: &mut Subnet) {
        subnet.management = management_lane(subnet, &self.options);
        let lane = subnet.management.map(VirtualLane);
        if self.options.management_lane && self.management != Some(lane) {
            self.management = Some(lane);
            self.say(Event::ManagementLane { lane });
        }
    }

    /// Says who has which P_Keys, and whose table has no room for all.
    fn give_keys(&mut self, subnet: &mut Subnet) {
        subnet.keys = self.keys.clone();
        let left_over: Vec<Event> = subnet
            .end_ports()
            .filter_map(|(at, _)| {
                let partitions = left_over(subnet, at) as u32;
                let port_guid = subnet.end_guid(at);
                (partitions > 0).then_some(Event::PartitionsLeftOut { port_guid, partitions })
            })
            .collect();
        self.say_all(left_over);
    }

    /// Hosts of which this manager has no subscriptions, since it has just begun or they have been away, are to subscribe
    /// (again): it sets their port's ClientReregister once.
    fn demand_registration(&self, subnet: &mut Subnet) {
        let hosts: Vec<PortAt> = registering(subnet).collect();
        for at in hosts {
            let known = self.reregistered.contains(&subnet.end_guid(at));
            if let Some(port) = subnet.port_mut(at) {
                port.reregister = !known;
            }
        }
    }

    /// Notes who has been told to subscribe, and forgets who is not there any more.
    fn note_registration(&mut self, subnet: &Subnet) {
        let told = registering(subnet).filter(|at| subnet.port(*at).is_some_and(|port| !port.reregister));
        let now: BTreeSet<Guid> = told.map(|at| subnet.end_guid(at)).collect();
        let ports = now.difference(&self.reregistered).count() as u32;
        self.reregistered = now;
        if ports > 0 {
            self.say(Event::Reregister { ports });
        }
    }

    /// Says who has come and who has gone.
    fn compare(&mut self, subnet: &Subnet) {
        let now: BTreeMap<_, _> = subnet
            .nodes
            .iter()
            .map(|node| (node.guid(), (node.info.node_type, node.description.clone())))
            .collect();
        let before = std::mem::take(&mut self.known);
        for (guid, (kind, description)) in &before {
            if !now.contains_key(guid) {
                let (guid, kind, description) = (*guid, *kind, description.clone());
                self.say(match kind {
                    NodeType::Hca => Event::HostCutOff { guid, description },
                    _ => Event::NodeLost { guid, kind, description },
                });
            }
        }
        for (guid, (kind, description)) in &now {
            if !before.contains_key(guid) {
                self.say(Event::NodeFound { guid: *guid, kind: *kind, description: description.clone() });
            }
        }
        self.progress.switches = subnet.switches().count() as u32;
        self.progress.hosts = now.len() as u32 - self.progress.switches;
        self.known = now;
    }

    fn learned(&mut self, now: Time, learn: ReadTables) {
        self.sweep.unanswered += learn.unanswered;
        let ReadTables { mut subnet, held, .. } = learn;
        self.enter(now, Some(Phase::Assign));
        let before = self.guid2lid.clone();
        if std::mem::take(&mut self.adopts) {
            adopt_lids(&subnet, &mut self.guid2lid, &self.options);
        }
        let events = give_lids(&mut subnet, &mut self.guid2lid, &self.options);
        self.say_all(events);
        if self.guid2lid != before {
            self.persist();
        }
        self.enter(now, Some(Phase::Route));
        self.route(&mut subnet, &held);
        self.enter(now, Some(Phase::Program));
        let program = Program::new(subnet, held, &self.options);
        self.sm_lid = program.sm_lid();
        self.own_lid = self.sm_lid;
        self.progress.total = program.total() as u64;
        self.doing = Doing::Program(Box::new(program));
    }

    /// Computes tables, and says by which engine. Where none serves the subnet, all stays as it is.
    fn route(&mut self, subnet: &mut Subnet, held: &[Held]) {
        let afresh = self.repairs.afresh;
        self.repairs = Repairs::default();
        subnet.routed.withdraw();
        match route(subnet, &self.options) {
            Ok(mut computed) => {
                if let Some(standing) = standing(subnet, held, &computed).filter(|_| !afresh) {
                    computed.keep(&subnet.fabric, standing);
                }
                self.say(Event::Routed(computed.routing.report.clone()));
                subnet.routed = computed.into_routed(subnet);
            }
            Err(message) => {
                self.sweep.unrouted = true;
                self.say(Event::RouteFailed { message });
            }
        }
        self.progress.lids = subnet.routed.lids().len() as u32;
    }

    fn programmed(&mut self, now: Time, program: Program) {
        self.sweep.unanswered += program.unanswered;
        self.sweep.refused += program.refused;
        let Some(program) = self.repaired(now, program) else { return };
        self.enter(now, Some(Phase::Activate));
        self.held = program.held;
        let activate = Activate::new(program.subnet, self.sm_lid, &self.options);
        self.doing = Doing::Activate(Box::new(activate));
    }

    fn activated(&mut self, now: Time, activate: Activate) {
        self.sweep.unanswered += activate.unanswered;
        self.sweep.refused += activate.refused;
        self.note_registration(&activate.subnet);
        let held = std::mem::take(&mut self.held);
        self.memory = remember(&activate.subnet, held);
        debug_assert_eq!(activate.ports_active, activate.subnet.ports_active(), "each change was counted");
        self.progress.ports_active = activate.ports_active;
        if self.options.congestion_control {
            self.doing = Doing::Regulate(Box::new(Regulate::new(activate.subnet, &self.options)));
        } else if std::mem::take(&mut self.inherits) {
            self.doing = Doing::Regulate(Box::new(Regulate::look(activate.subnet, &self.options)));
        } else {
            self.verify(now, activate.subnet);
        }
    }

    fn regulated(&mut self, now: Time, regulate: Regulate) {
        self.sweep.unanswered += regulate.unanswered;
        self.sweep.refused += regulate.refused;
        self.say_all(regulate.said());
        self.verify(now, regulate.subnet);
    }

    fn verify(&mut self, now: Time, subnet: Subnet) {
        self.enter(now, Some(Phase::Verify));
        let check = match self.repairs.touched.take() {
            Some(nodes) => Check::look(subnet, &self.options, nodes.into_iter()),
            None => Check::verify(subnet, &self.options),
        };
        self.doing = Doing::Verify(Box::new(check));
    }

    fn verified(&mut self, now: Time, check: Check) {
        self.enter(now, None);
        let Some(reason) = check.found else {
            self.resweeps = 0;
            return self.settle(now, check.subnet, true);
        };
        self.resweeps += 1;
        if self.resweeps <= self.options.resweeps_max {
            self.standing = Some(check.subnet);
            return self.start_heavy_without(now, reason, check.gone);
        }
        let sweeps = std::mem::take(&mut self.resweeps);
        self.say(Event::Unsettled { sweeps });
        self.settle(now, check.subnet, false);
        let delay = self.retry_delay();
        self.agenda.heavy(now + delay, reason);
    }

    /// A heavy sweep is over.
    pub(crate) fn settle(&mut self, now: Time, subnet: Subnet, settled: bool) {
        let retries = self.requests.stats().retries;
        let mut summary = self.sweep.summary(now, &subnet, self.requests.counts, retries);
        summary.sweeps = self.sweeps;
        summary.complete &= settled;
        self.is_up = true;
        self.progress.ports_silent = summary.ports_silent;
        self.publish(now, &subnet);
        let is_routed = subnet.routed.routing().is_some();
        self.standing = Some(subnet);
        let lacking = summary.ports_refused + summary.ports_left_out + summary.ports_without_lid;
        let again = self.sweep.is_lacking(lacking);
        if summary.complete {
            self.incomplete = 0;
        } else {
            self.incomplete = self.incomplete.saturating_add(1);
        }
        if again {
            let delay = self.retry_delay();
            self.agenda.heavy(now + delay, Reason::Incomplete);
        } else {
            self.plan_light(now);
        }
        self.look_again_at_managers(now);
        if is_routed {
            self.plan_proof(now);
        }
        self.say(if summary.complete { Event::SubnetUp(summary) } else { Event::SweepIncomplete(summary) });
    }

    fn looked(&mut self, now: Time, mut check: Check, trap: Option<Reason>) {
        let (mut found, gone, own_port_down) = (check.verdict(), check.gone, self.own_port_down);
        if let (None, Some(changes)) = (found, check.changes.take().filter(|changes| !changes.is_empty())) {
            let reason = trap.unwrap_or(Reason::StateChange { guid: changes.guid(&check.subnet) });
            match self.repair(now, check.subnet, &changes, reason) {
                None => return,
                Some(subnet) => (check.subnet, found) = (subnet, Some(reason)),
            }
        }
        self.progress.ports_silent = check.subnet.silent_ports().count() as u32;
        if self.is_up {
            self.publish(now, &check.subnet);
        }
        self.standing = Some(check.subnet);
        match found {
            Some(reason) => self.start_heavy_without(now, trap.unwrap_or(reason), gone),
            None if own_port_down => self.agenda.light(now + self.interval(), Reason::OwnPort),
            None if trap.is_some() => {}
            None => {
                self.incomplete = self.incomplete.saturating_add(1);
                self.plan_light(now);
                self.say(Event::Quiet);
            }
        }
    }

    /// The next light sweep: soon when somebody has been silent, else when it is time.
    fn plan_light(&mut self, now: Time) {
        let interval = self.options.sweep_interval_ms;
        if self.progress.ports_silent > 0 {
            let delay = self.retry_delay();
            self.agenda.light(now + delay, Reason::Incomplete);
            return;
        }
        self.incomplete = 0;
        if interval > 0 || self.is_in_doubt() {
            self.agenda.light(now + self.interval(), Reason::Interval);
        }
    }

    /// Doubles with every sweep in a row that was not complete, up to the sweep interval.
    fn retry_delay(&self) -> Time {
        let doublings = self.incomplete.saturating_sub(1).min(16);
        let delay = Time::from_millis(self.options.retry_delay_ms.max(1).saturating_mul(1 << doublings));
        delay.min(self.interval())
    }

    /// The sweep interval, or what stands for it where there are no light sweeps.
    pub(crate) fn interval(&self) -> Time {
        let interval = Time::from_millis(self.options.sweep_interval_ms);
        if interval == Time::ZERO { INTERVAL_DEFAULT } else { interval }
    }
}

/// The tables that the switches hold, if all are known: for the LIDs that there are, since others have no route.
fn standing(subnet: &Subnet, held: &[Held], computed: &Computed) -> Option<Routes> {
    let top = computed.lids.top();
    let mut routes = Routes { tables: vec![ForwardingTable::default(); subnet.nodes.len()] };
    for (node, _) in subnet.switches() {
        let (table, held) = (routes.tables.get_mut(node as usize)?, held.get(node as usize)?);
        *table = ForwardingTable::new(top);
        for lid in computed.lids.iter().flat_map(PortLids::iter) {
            let block = held.lft_block(lid.0 / BLOCK_ENTRIES as u16)?;
            table.set(lid, block[usize::from(lid.0) % BLOCK_ENTRIES]);
        }
    }
    Some(routes)
}

/// The ports of hosts that can be told to subscribe again.
fn registering(subnet: &Subnet) -> impl Iterator<Item = PortAt> {
    let can = |at: PortAt, info: &PortInfo| {
        let is_host = subnet.node(at.node).is_some_and(|node| !node.is_switch());
        is_host && info.capability_mask & capability::IS_CLIENT_REREGISTRATION_SUPPORTED != 0
    };
    subnet
        .end_ports()
        .filter(move |(at, port)| port.info.is_some_and(|info| can(*at, &info)))
        .map(|(at, _)| at)
}
