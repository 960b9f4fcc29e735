//! A plan on processes: a laboratory of its own, which follows requests at its agents' sockets.

mod asking;
mod machines;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_control::agent::{AgentStatus, PortEnd};
use weft_control::fault::FaultId;
use weft_control::{Answer, ErrorCode, HexGuid, Request, Utc};
use weft_experiment::{
    Action, Conservation, Driver, HostReconfigurations, Late, Mark, Plan, PortPlace, PortSample,
};
use weft_fault::{BadIdentity, Damage, Fault, Impaired, Nodes, Process, Sign};
use weft_host::traffic::{Command, FlowReport};
use weft_lab::faults;
use weft_lab::launch::Launcher;
use weft_lab::managers::{in_charge, subnet_managers};
use weft_lab::scene::Guests;
use weft_lab::view::Lab;
use weft_machine::Time;
use weft_process::{Client, utc_now};
use weft_routing::EngineReport;
use weft_sm::Signalled;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum};

use super::balance;
use super::marks::Listener;
use super::stage::{Stage, given_levels, has_port};
use crate::film::PlanFlows;
use machines::{Machines, merged};

/// How long the performance manager has to learn the fabric, and how often it is looked whether it has.
const LEARN_PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// How long what is under way at the end has to arrive, and how long nothing must have moved for it.
const DRAIN_PATIENCE: Duration = Duration::from_secs(15);
const DRAIN_LOOK: Duration = Duration::from_millis(300);

/// A laboratory that a plan is carried out on.
pub(super) struct Live<'a, 'l> {
    plan: &'a Plan,
    launcher: &'a mut Launcher<'l>,
    lab: Lab,
    clients: BTreeMap<String, Client>,
    listener: Listener,
    machines: Machines,
    began: Instant,
    /// The same by the wall clock.
    began_utc: Utc,
    /// The flows for whoever shows the laboratory, where it is taped.
    shown: Option<(PlanFlows<'a>, Guests)>,
}

impl<'a, 'l> Live<'a, 'l> {
    /// On a laboratory that is up. The plan's clock has not begun.
    pub(super) fn new(plan: &'a Plan, launcher: &'a mut Launcher<'l>, lab: Lab) -> anyhow::Result<Self> {
        let listener = Listener::new(lab.folder.clone());
        let (clients, machines) = (BTreeMap::new(), Machines::default());
        let (began, began_utc) = (Instant::now(), utc_now());
        let shown = None;
        Ok(Self { plan, launcher, lab, clients, listener, machines, began, began_utc, shown })
    }

    /// Tells how the plan's flows are, for a tape.
    pub(super) fn tell_guests(&mut self, guests: Guests) {
        self.shown = Some((PlanFlows::of(self.plan), guests));
    }

    /// Waits until the performance manager knows the fabric, tells the hosts what they are to know, and begins the plan's
    /// clock.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        let plan = self.plan;
        let deadline = Instant::now() + LEARN_PATIENCE;
        while plan.pm.is_some() && !self.listener.has_learned()? {
            if Instant::now() > deadline {
                return Err(Failure::new("the performance manager does not learn the fabric")
                    .hint("its log is kept with `weft up --pm` and tells why"));
            }
            self.launcher.serve_until(Instant::now() + LOOK)?;
        }
        self.begin_machines()?;
        let given = if plan.levels.is_empty() { Vec::new() } else { given_levels(plan, self.lids()?) };
        self.command(given.iter().chain(&plan.setup).map(|(node, command)| (*node, command)))?;
        self.ask_all(&Request::ResetLateness, |_, _| None)?;
        self.listener.skip()?;
        (self.began, self.began_utc) = (Instant::now(), utc_now());
        Ok(())
    }

    fn since(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The balance of packets once the hosts have stopped and what is under way has arrived. What keeps standing in
    /// buffers, as in a deadlock, is in flight.
    fn balance(&mut self) -> anyhow::Result<Conservation> {
        let flows = self.plan.flows.iter();
        let stops: Vec<(NodeIndex, Command)> = flows
            .flat_map(|flow| flow.senders.iter().map(|sender| (*sender, Command::Stop { flow: flow.flow })))
            .collect();
        self.command(stops.iter().map(|(node, command)| (*node, command)))?;
        let any = |is: fn(&Action) -> bool| self.plan.steps.iter().any(|step| is(&step.action));
        let took = any(|action| matches!(action, Action::Fault(Fault::LinkDown(_))));
        let forgot = any(|action| matches!(action, Action::Fault(Fault::Kill(Process::Agent(_)))));
        let deadline = Instant::now() + DRAIN_PATIENCE;
        let mut before = None;
        loop {
            // The agents do not answer at the same moment, and what moves meanwhile is seen twice or not at all.
            let mut devices = Vec::new();
            self.list_all(Request::Account, |answer| {
                let Answer::Account { devices: listed, more } = answer else { return (None, false) };
                devices.extend(listed);
                (devices.last().map(|device| PortEnd::of_node(device.node)), more)
            })?;
            // They come in the order of their answers.
            devices.sort_by_key(|device| device.node);
            if before.as_ref() == Some(&devices) || Instant::now() > deadline {
                return Ok(balance::of_devices(&devices, took, forgot));
            }
            before = Some(devices);
            self.launcher.serve_until(Instant::now() + DRAIN_LOOK)?;
        }
    }

    /// What tells the LID of a port.
    fn lids(&mut self) -> anyhow::Result<impl Fn(Guid) -> Option<Lid>> {
        let mut lids = BTreeMap::new();
        self.list_all(Request::Ports, |answer| {
            let Answer::Ports { ports, more } = answer else { return (None, false) };
            let last = ports.last().map(|port| port.end);
            lids.extend(ports.into_iter().map(|port| (port.end, port.lid)));
            (last, more)
        })?;
        let fabric = self.plan.fabric.clone();
        Ok(move |wanted| {
            let node = fabric.nodes().iter().find(|node| has_port(node, wanted))?;
            let (port, _) = node.external_ports().find(|(_, own)| own.guid == wanted)?;
            lids.get(&PortEnd { node: HexGuid(node.guid), port }).copied()
        })
    }

    /// Pulls the cable of a port out at both ends, or plugs it in again.
    fn set_cable(&mut self, port: PortRef, up: bool) -> anyhow::Result<()> {
        let peer = self.plan.fabric.peer(port).context("no cable there")?;
        let lower = port.min(peer);
        let id: FaultId = format!("run-{}-{}", lower.node.index(), lower.port).parse()?;
        self.set_damage(&id, [port, peer].map(Damage::Unplugged), up)
    }

    /// Impairs the cable of a port, or ends that.
    fn set_impaired(&mut self, impaired: Impaired<PortRef>, ends: bool) -> anyhow::Result<()> {
        let Impaired { at, way, how, seed } = impaired;
        let peer = self.plan.fabric.peer(at).context("no cable there")?;
        let (node, port, word) = (at.node.index(), at.port, how.word().name());
        let id: FaultId = format!("run-{word}-{node}-{port}-{}-{seed}", way.name()).parse()?;
        self.set_damage(&id, impaired.damage(peer), ends)
    }

    /// Freezes a node, or lets it go on.
    fn set_frozen(&mut self, node: NodeIndex, ends: bool) -> anyhow::Result<()> {
        let id: FaultId = format!("run-freeze-{}", node.index()).parse()?;
        self.set_damage(&id, [Damage::Frozen(PortRef::new(node, PortNum::ZERO))], ends)
    }

    /// Has a node's agent present a bad identity, or its own again.
    fn set_bad_identity(&mut self, node: NodeIndex, bad: Option<BadIdentity>) -> anyhow::Result<()> {
        let id: FaultId = format!("run-bad-identity-{}", node.index()).parse()?;
        let at = PortRef::new(node, PortNum::ZERO);
        if let Some(identity) = bad {
            faults::planned::issue_bad(&self.lab, node, identity, &self.lab.folder.bundle())?;
        }
        let identity = bad.unwrap_or(BadIdentity::Expired);
        self.set_damage(&id, [Damage::BadIdentity { at, identity }], bad.is_none())
    }

    /// Unplugs all cables between some nodes and the others, or plugs them in again.
    fn set_parted(&mut self, nodes: &Nodes<NodeIndex>, ends: bool) -> anyhow::Result<()> {
        let places: Vec<String> = nodes.0.iter().map(|node| node.index().to_string()).collect();
        let mut name = places.join("-");
        // An id is short; two sets that begin alike differ in their lengths and sums.
        if name.len() > 32 {
            let sum: usize = nodes.0.iter().map(|node| node.index()).sum();
            name = format!("{}-{}-{sum}", &name[..24], nodes.0.len());
        }
        let id: FaultId = format!("run-partition-{name}").parse()?;
        let within = |end: PortRef| nodes.0.contains(&end.node);
        let fabric = self.plan.fabric.clone();
        let between = fabric.cables().filter(|cable| within(cable.a) != within(cable.b));
        self.set_damage(&id, between.flat_map(|cable| [cable.a, cable.b]).map(Damage::Parted), ends)
    }

    /// Has the agents at the ends of a cable break something, or put it right.
    fn set_damage(
        &mut self,
        id: &FaultId,
        damage: impl IntoIterator<Item = Damage<PortRef>>,
        ends: bool,
    ) -> anyhow::Result<()> {
        for damage in damage {
            let node = HexGuid(self.plan.fabric.node(damage.end().node).guid);
            let agent = self.agent_of(node.0)?;
            let damage = damage.map(|end| PortEnd { node, port: end.port });
            let request = match ends {
                false => Request::SetFault { id: id.clone(), damage, for_ms: None },
                true => Request::ClearFault { id: id.clone() },
            };
            match self.ask(&agent, request) {
                // A cable that was whole is whole again.
                Err(error) if ends && is_unknown(&error) => {}
                told => drop(told?),
            }
        }
        Ok(())
    }
}

/// Whether the agent knows no such fault.
fn is_unknown(error: &anyhow::Error) -> bool {
    error.downcast_ref::<weft_control::Error>().is_some_and(|error| error.code == ErrorCode::NotFound)
}

impl Stage for Live<'_, '_> {
    fn driver(&self) -> Driver {
        Driver::Live
    }

    fn play_until(&mut self, at: Time) -> anyhow::Result<()> {
        let until = self.began + Duration::from_nanos(at.as_nanos());
        while self.is_migrating() && Instant::now() < until {
            self.launcher.serve_until(until.min(Instant::now() + LOOK))?;
            self.hear_machines()?;
        }
        self.launcher.serve_until(until)
    }

    fn act(&mut self, action: &Action) -> anyhow::Result<()> {
        let named = |process: &Process<NodeIndex>| process.map(|node| self.plan.fabric.node(node).id.clone());
        match action {
            Action::Host(node, command) => self.command([(*node, command)]),
            Action::Fault(Fault::Kill(process)) => faults::kill(&self.lab, &named(process)),
            Action::Fault(Fault::Restart(process)) => faults::restart(&self.lab, &named(process)).map(drop),
            Action::Fault(Fault::LinkDown(port)) => self.set_cable(*port, false),
            Action::Fault(Fault::LinkUp(port)) => self.set_cable(*port, true),
            Action::Fault(Fault::Freeze(Process::Agent(node))) => self.set_frozen(*node, false),
            Action::Fault(Fault::Thaw(Process::Agent(node))) => self.set_frozen(*node, true),
            Action::Fault(Fault::Freeze(process)) => {
                faults::freeze(&self.lab, &named(process), None).map(drop)
            }
            Action::Fault(Fault::Thaw(process)) => faults::thaw(&self.lab, &named(process)),
            Action::Fault(Fault::Partition(nodes)) => self.set_parted(nodes, false),
            Action::Fault(Fault::Heal(nodes)) => self.set_parted(nodes, true),
            Action::Fault(Fault::BadIdentity(presented)) => {
                self.set_bad_identity(presented.node, Some(presented.identity))
            }
            Action::Fault(Fault::GoodIdentity(node)) => self.set_bad_identity(*node, None),
            Action::Fault(Fault::Impair(impaired)) => self.set_impaired(*impaired, false),
            Action::Fault(Fault::Clear(impaired)) => self.set_impaired(*impaired, true),
            Action::Migrate(migrate) => self.migrate(migrate),
        }
    }

    fn act_together(&mut self, actions: &[&Action]) -> anyhow::Result<()> {
        let commands = actions.iter().filter_map(|action| match action {
            Action::Host(node, command) => Some((*node, command)),
            _ => None,
        });
        self.command(commands)?;
        let mut others = actions.iter().filter(|action| !matches!(action, Action::Host(..)));
        others.try_for_each(|action| self.act(action))
    }

    fn reports(&mut self) -> anyhow::Result<Vec<(NodeIndex, Vec<FlowReport>)>> {
        let mut all = Vec::new();
        let began = self.began;
        let mut hosts_of_flows = Vec::new();
        self.list_all(Request::Flows, |answer| {
            let now = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let Answer::Flows { hosts, more } = answer else { return (None, false) };
            let last = hosts.last().map(|host| host.end);
            for mut host in hosts {
                // The agent's clock began when the agent did.
                for moved in host.flows.iter_mut().flat_map(|flow| &mut flow.moves) {
                    let ago = host.now_ns.saturating_sub(moved.at.as_nanos());
                    moved.at = Time::from_nanos(now.saturating_sub(ago));
                }
                hosts_of_flows.push((host.end, host.flows));
            }
            (last, more)
        })?;
        for (end, flows) in hosts_of_flows {
            all.extend(self.node_of(end).map(|node| (node, flows)));
        }
        Ok(merged(all))
    }

    fn ports(&mut self, ports: &[PortPlace]) -> anyhow::Result<Vec<PortSample>> {
        let end = |place: &PortPlace| PortEnd {
            node: HexGuid(self.plan.fabric.node(place.port.node).guid),
            port: place.port.port,
        };
        let ends: Vec<PortEnd> = ports.iter().map(end).collect();
        let agents = ends.iter().map(|end| self.agent_of(end.node.0)).collect::<anyhow::Result<_>>()?;
        let told = self.ports_of(&agents)?;
        let mut samples = Vec::new();
        for end in &ends {
            samples.push(told.get(end).map_or_else(PortSample::default, |status| PortSample {
                xmit_wait: status.totals.xmit_wait,
                xmit_data: status.totals.xmit_words,
                rcv_data: status.totals.rcv_words,
                xmit_discards: status.totals.xmit_discards,
            }));
        }
        Ok(samples)
    }

    fn show(&mut self, reports: &[(NodeIndex, Vec<FlowReport>)], _: &[Mark]) -> anyhow::Result<()> {
        let now = self.since();
        if let Some((flows, guests)) = &mut self.shown {
            guests.are(flows.lines(now, reports));
        }
        Ok(())
    }

    fn clock(&self) -> Time {
        self.since()
    }

    fn fault_signs(&mut self) -> anyhow::Result<Vec<(Time, Sign<String>)>> {
        let began = self.began_utc.as_nanos();
        // Of when a fault begins and ends the plan tells.
        faults::times::signs(&self.lab)?
            .into_iter()
            .filter(|(_, sign)| !matches!(sign, Sign::Begun { .. } | Sign::Ended(_)))
            .map(|(at, sign)| Ok((Time::from_nanos(at.saturating_sub(began)), sign)))
            .collect()
    }

    fn marks(&mut self) -> anyhow::Result<Vec<Mark>> {
        let now = self.since();
        let mut marks = self.listener.marks(now, self.plan)?;
        marks.extend(self.machine_marks());
        Ok(marks)
    }

    fn signalled(&mut self) -> anyhow::Result<Option<Signalled>> {
        let managers = subnet_managers(&self.lab.folder, &self.lab.record)?;
        Ok(in_charge(&managers).and_then(|manager| manager.told.status()).map(|status| status.signalled))
    }

    fn reconfigurations(&mut self) -> Option<Vec<HostReconfigurations>> {
        None
    }

    fn migrations(&mut self) -> anyhow::Result<Vec<weft_experiment::MigrationRecord>> {
        Ok(self.migration_records())
    }

    fn routed_by(&mut self) -> anyhow::Result<String> {
        let managers = subnet_managers(&self.lab.folder, &self.lab.record)?;
        let status = in_charge(&managers).and_then(|manager| manager.told.status());
        let routing = status.and_then(|status| status.routing.as_ref());
        Ok(routing.map(EngineReport::brief).unwrap_or_default())
    }

    fn close(&mut self) -> anyhow::Result<(Conservation, Option<Late>)> {
        let conservation = self.balance()?;
        let mut late = Late::default();
        self.ask_all(&Request::AgentStatus, |_, answer| {
            let Answer::AgentStatus(AgentStatus { lateness: told, .. }) = answer else { return None };
            // The latest agent speaks for the run.
            late.count += told.count;
            late.p50 = late.p50.max(Time::from_nanos(told.p50_ns));
            late.p99 = late.p99.max(Time::from_nanos(told.p99_ns));
            late.max = late.max.max(Time::from_nanos(told.max_ns));
            None
        })?;
        Ok((conservation, Some(late)))
    }
}
