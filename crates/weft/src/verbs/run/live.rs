//! A plan on processes: a laboratory of its own, told what to do over its agents' sockets.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use weft_experiment::{Action, Conservation, Driver, Late, Mark, Plan, PortPlace, PortSample};
use weft_host::traffic::{Command, FlowReport};
use weft_machine::Time;
use weft_topology::{NodeIndex, PortRef};
use weft_umad::{Client, ClientError, ControlReply, ControlRequest, PortStatus};
use weft_wire::{Guid, Lid};

use super::balance;
use super::marks::Listener;
use super::perform::{Stage, given_levels, has_port};
use crate::failure::Failure;
use crate::lab::launch::{Launcher, PM, SM};
use crate::lab::managers::{in_charge, subnet_managers};
use crate::sm_process::engine_report;
use crate::verbs::{Lab, fault};

/// How long an agent has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

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
    began: Instant,
}

impl<'a, 'l> Live<'a, 'l> {
    /// On a laboratory that is up. The plan's clock has not begun.
    pub(super) fn new(plan: &'a Plan, launcher: &'a mut Launcher<'l>, lab: Lab) -> anyhow::Result<Self> {
        let listener = Listener::new(lab.folder.clone());
        let (clients, began) = (BTreeMap::new(), Instant::now());
        Ok(Self { plan, launcher, lab, clients, listener, began })
    }

    /// Waits until the performance manager knows the fabric, tells the hosts what they are to know, and begins the plan's
    /// clock.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        let plan = self.plan;
        let deadline = Instant::now() + LEARN_PATIENCE;
        while plan.pm.is_some() && !self.listener.has_learned()? {
            if Instant::now() > deadline {
                return Err(Failure::new("the performance manager does not learn the fabric")
                    .hint("its log is kept with `weft up --pm` and tells why")
                    .into());
            }
            self.launcher.serve_until(Instant::now() + LOOK)?;
        }
        let given = if plan.levels.is_empty() { Vec::new() } else { given_levels(plan, self.lids()?) };
        for (node, command) in given.iter().chain(&plan.setup) {
            self.tell(*node, command)?;
        }
        for agent in self.lab.record.agents.clone() {
            self.ask(&agent.name, &ControlRequest::ResetLateness)?;
        }
        self.listener.skip()?;
        self.began = Instant::now();
        Ok(())
    }

    fn since(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The agent that runs a node.
    fn agent_of(&self, guid: Guid) -> anyhow::Result<String> {
        let (agent, _) = self.lab.record.device(guid).context("the laboratory has no such node")?;
        Ok(agent.name.clone())
    }

    fn tell(&mut self, node: NodeIndex, command: &Command) -> anyhow::Result<()> {
        let host = self.plan.fabric.node(node);
        let (guid, name) = (host.guid, self.plan.fabric.label(node));
        let port = host.attach_port().with_context(|| format!("`{name}` has no cable"))?;
        let agent = self.agent_of(guid)?;
        let request = ControlRequest::Host { node: guid, port, command: command.clone() };
        match self.ask(&agent, &request)? {
            Some(ControlReply::Failed { reason }) => Err(Failure::new(format!("`{name}`: {reason}")).into()),
            // A host that is dead does nothing, as the plan may want.
            _ => Ok(()),
        }
    }

    /// An agent's answer, `None` when it is dead.
    fn ask(&mut self, agent: &str, request: &ControlRequest) -> anyhow::Result<Option<ControlReply>> {
        if !self.clients.contains_key(agent) {
            match Client::connect(&self.lab.folder.agent_socket(agent)) {
                Err(ClientError::Connect { .. }) => return Ok(None),
                connected => drop(self.clients.insert(agent.to_owned(), connected?)),
            }
        }
        let Some(client) = self.clients.get_mut(agent) else { return Ok(None) };
        match client.control(request.clone(), PATIENCE) {
            Err(ClientError::Io(_) | ClientError::Closed) => {
                self.clients.remove(agent);
                Ok(None)
            }
            reply => reply.map(Some).with_context(|| format!("the agent {agent} does not answer")),
        }
    }

    /// Every agent's answer, by name; dead ones are left out.
    fn ask_all(&mut self, request: &ControlRequest) -> anyhow::Result<Vec<ControlReply>> {
        let agents: Vec<String> = self.lab.record.agents.iter().map(|agent| agent.name.clone()).collect();
        agents.iter().filter_map(|agent| self.ask(agent, request).transpose()).collect()
    }

    /// The balance of packets once the hosts have stopped and what is under way has arrived. What keeps standing in
    /// buffers, as in a deadlock, is in flight.
    fn balance(&mut self) -> anyhow::Result<Conservation> {
        for flow in &self.plan.flows {
            for sender in &flow.senders {
                self.tell(*sender, &Command::Stop(flow.flow))?;
            }
        }
        let took = self.plan.steps.iter().any(|step| matches!(step.action, Action::Cut(_)));
        let forgot = self.plan.steps.iter().any(|step| matches!(step.action, Action::Kill(_)));
        let deadline = Instant::now() + DRAIN_PATIENCE;
        let mut before = None;
        loop {
            // The agents are asked one after the other, and what moves meanwhile is seen twice or not at all.
            let accounts = self.ask_all(&ControlRequest::Account)?;
            let devices: Vec<_> = accounts.into_iter().filter_map(balance::devices).flatten().collect();
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
        for reply in self.ask_all(&ControlRequest::Ports)? {
            let ControlReply::Ports(ports) = reply else { continue };
            lids.extend(ports.into_iter().map(|port| ((port.end.node, port.end.port), port.lid)));
        }
        let fabric = self.plan.fabric.clone();
        Ok(move |wanted| {
            let node = fabric.nodes().iter().find(|node| has_port(node, wanted))?;
            let (port, _) = node.external_ports().find(|(_, own)| own.guid == wanted)?;
            lids.get(&(node.guid, port)).copied()
        })
    }

    fn set_cable(&mut self, port: PortRef, up: bool) -> anyhow::Result<()> {
        let peer = self.plan.fabric.peer(port).context("no cable there")?;
        for end in [port, peer] {
            let node = self.plan.fabric.node(end.node).guid;
            let agent = self.agent_of(node)?;
            self.ask(&agent, &ControlRequest::SetCable { node, port: end.port, up })?;
        }
        Ok(())
    }

    fn node(&self, guid: Guid) -> Option<NodeIndex> {
        self.plan.fabric.iter().find(|(_, node)| node.guid == guid).map(|(index, _)| index)
    }
}

impl Stage for Live<'_, '_> {
    fn driver(&self) -> Driver {
        Driver::Live
    }

    fn play_until(&mut self, at: Time) -> anyhow::Result<()> {
        let until = self.began + Duration::from_nanos(at.as_nanos());
        self.launcher.serve_until(until)
    }

    fn act(&mut self, action: &Action) -> anyhow::Result<()> {
        let name = |index: &NodeIndex| self.plan.fabric.node(*index).id.clone();
        match action {
            Action::Host(node, command) => self.tell(*node, command),
            Action::Cut(port) => self.set_cable(*port, false),
            Action::Restore(port) => self.set_cable(*port, true),
            Action::Kill(node) => fault::kill_named(&self.lab, &name(node)),
            Action::Start(node) => fault::start_named(&self.lab, &name(node)),
            Action::KillSm => fault::kill_named(&self.lab, SM),
            Action::StartSm => fault::start_named(&self.lab, SM),
            Action::KillPm => fault::kill_named(&self.lab, PM),
            Action::StartPm => fault::start_named(&self.lab, PM),
        }
    }

    fn reports(&mut self) -> anyhow::Result<Vec<(NodeIndex, Vec<FlowReport>)>> {
        let mut all = Vec::new();
        for reply in self.ask_all(&ControlRequest::Flows)? {
            let now = self.since();
            let ControlReply::Flows(hosts) = reply else { continue };
            for mut host in hosts {
                // The agent's clock began when the agent did.
                let told = Time::from_nanos(host.now_ns);
                for moved in host.flows.iter_mut().flat_map(|flow| &mut flow.moves) {
                    moved.at = now.saturating_sub(told.saturating_sub(moved.at));
                }
                all.extend(self.node(host.end.node).map(|node| (node, host.flows)));
            }
        }
        all.sort_by_key(|(node, _)| *node);
        Ok(all)
    }

    fn ports(&mut self, ports: &[PortPlace]) -> anyhow::Result<Vec<PortSample>> {
        let mut agents: BTreeMap<String, Vec<PortStatus>> = BTreeMap::new();
        let mut samples = Vec::new();
        for place in ports {
            let node = self.plan.fabric.node(place.port.node).guid;
            let agent = self.agent_of(node)?;
            if !agents.contains_key(&agent) {
                let told = match self.ask(&agent, &ControlRequest::Ports)? {
                    Some(ControlReply::Ports(told)) => told,
                    _ => Vec::new(),
                };
                agents.insert(agent.clone(), told);
            }
            let told = agents.get(&agent).and_then(|told| {
                told.iter().find(|status| status.end.node == node && status.end.port == place.port.port)
            });
            samples.push(told.map_or_else(PortSample::default, |status| PortSample {
                xmit_wait: status.totals.xmit_wait,
                xmit_data: status.totals.xmit_words,
                rcv_data: status.totals.rcv_words,
                xmit_discards: status.totals.xmit_discards,
            }));
        }
        Ok(samples)
    }

    fn marks(&mut self) -> anyhow::Result<Vec<Mark>> {
        let now = self.since();
        self.listener.marks(now, &self.plan.fabric)
    }

    fn routed_by(&mut self) -> anyhow::Result<String> {
        let managers = subnet_managers(&self.lab.folder, &self.lab.record)?;
        let status = in_charge(&managers).and_then(|manager| manager.told.status());
        let routing = status.and_then(|status| status.routing.as_ref());
        Ok(routing.map(|report| engine_report(report).brief()).unwrap_or_default())
    }

    fn close(&mut self) -> anyhow::Result<(Conservation, Option<Late>)> {
        let conservation = self.balance()?;
        let mut late = Late::default();
        for reply in self.ask_all(&ControlRequest::Status)? {
            let ControlReply::Status(status) = reply else { continue };
            let told = status.lateness;
            // The latest agent speaks for the run.
            late.count += told.count;
            late.p50 = late.p50.max(Time::from_nanos(told.p50_ns));
            late.p99 = late.p99.max(Time::from_nanos(told.p99_ns));
            late.max = late.max.max(Time::from_nanos(told.max_ns));
        }
        Ok((conservation, Some(late)))
    }
}
