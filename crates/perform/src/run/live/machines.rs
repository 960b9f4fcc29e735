//! Virtual machines of a live run: the VM manager starts and moves them, as it does for `weft vm`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context;
use weft_bundle::config::managers::VmmPart;
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle;
use weft_bundle::names::VMM;
use weft_control::agent::{NodeKind, PortEnd, PortState};
use weft_control::vmm::{VmCreate, VmMigrate, VmMigration, VmPlace, VmWay};
use weft_control::{Answer, HexGuid, Request};
use weft_experiment::{Mark, Migrated, MigrationOutcome, MigrationRecord, VmPlan};
use weft_host::stack::Guids;
use weft_host::traffic::{Command, FlowReport};
use weft_machine::Time;
use weft_process::{Client, ClientError};
use weft_topology::NodeIndex;
use weft_vm::{Detach, Migrate, Route};
use weft_wire::{Guid, PortNum};

use super::{LOOK, Live};
use crate::run::migrations::{Migrations, Received};

/// How long machines may take to start, until their ports are active.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Longer than the VM manager takes to give up.
const PATIENCE: Duration = Duration::from_secs(160);

/// The machines of a live run.
#[derive(Default)]
pub(super) struct Machines {
    migrations: Migrations<u64>,
    /// Those under way: the machines, by the functions that they started in.
    moving: BTreeMap<u64, NodeIndex>,
    /// The agent of each machine's host.
    agents: BTreeMap<NodeIndex, String>,
    /// The agents of hosts, by the names that the VM manager has for them.
    hosts: BTreeMap<String, String>,
    /// The functions of hosts by their NodeGUIDs.
    functions: BTreeMap<String, Vec<Guid>>,
    /// The functions that machines are in, where GUIDs stay with those.
    now_in: BTreeMap<NodeIndex, Guid>,
    /// Commands for machines that are on their way.
    waiting: Vec<(NodeIndex, Command)>,
    marks: Vec<Mark>,
    answers: Answers,
}

/// A way for the VM manager's answers.
struct Answers {
    sender: mpsc::Sender<Heard>,
    come: mpsc::Receiver<Heard>,
}

/// The VM manager's answer to a migration.
struct Heard {
    id: u64,
    at: Instant,
    answer: Result<Box<VmMigration>, String>,
}

impl Default for Answers {
    fn default() -> Self {
        let (sender, come) = mpsc::channel();
        Self { sender, come }
    }
}

impl Live<'_, '_> {
    /// Starts all machines of the plan, and waits until their ports are active.
    pub(super) fn begin_machines(&mut self) -> anyhow::Result<()> {
        let plan = self.plan;
        if plan.machines().is_empty() {
            return Ok(());
        }
        let part: VmmPart = bundle::load(&self.lab.folder.bundle().manager(VMM))?;
        let functions = part.hosts.iter().map(|host| {
            (host.name.to_string(), host.slots.iter().map(|slot| slot.guid).collect::<Vec<Guid>>())
        });
        self.machines.functions = functions.collect();
        let agents = part.hosts.into_iter().map(|host| (host.name.to_string(), host.agent));
        self.machines.hosts = agents.collect();
        let mut client = Client::connect(&self.lab.folder.control(VMM))?;
        for vm in plan.machines() {
            let request = Request::VmCreate(VmCreate {
                name: vm.name.to_string(),
                host: Some(vm.host.to_string()),
                vf: Some(vm.vf),
                count: None,
                guid: vm.given.map(HexGuid),
                ..VmCreate::default()
            });
            client.ask(request, PATIENCE).with_context(|| format!("`{}` does not start", vm.name))?;
            let agent = self.machines.hosts.get(&vm.host.to_string()).cloned();
            self.machines.agents.insert(vm.born, agent.context("a host without an agent")?);
        }
        let until = Instant::now() + START_PATIENCE;
        while let Some(down) = self.machine_without_port()? {
            if Instant::now() > until {
                return Err(Failure::new(format!("the port of `{down}` does not become active"))
                    .hint("a laboratory of `weft up --vfs` shows more: weft status, weft vm ls"));
            }
            self.launcher.serve_until(Instant::now() + LOOK)?;
        }
        Ok(())
    }

    /// A machine whose port is not active yet.
    fn machine_without_port(&mut self) -> anyhow::Result<Option<String>> {
        for vm in self.plan.machines() {
            if !self.has_port(vm)? {
                return Ok(Some(vm.name.to_string()));
            }
        }
        Ok(None)
    }

    /// Whether the port of a machine is active.
    fn has_port(&mut self, vm: &VmPlan) -> anyhow::Result<bool> {
        let (end, agent) = (self.machine_end(vm), self.agent_of_machine(vm)?);
        let ports = self.ports_of(&BTreeSet::from([agent]))?;
        Ok(ports.get(&end).is_some_and(|port| port.state == PortState::Active))
    }

    /// The port of a machine, which keeps its GUID or has that of its function.
    fn machine_end(&self, vm: &VmPlan) -> PortEnd {
        let own = || vm.given.unwrap_or(self.plan.fabric.node(vm.born).guid);
        let node = self.machines.now_in.get(&vm.born).copied().unwrap_or_else(own);
        PortEnd { node: HexGuid(node), port: PortNum(1) }
    }

    fn agent_of_machine(&self, vm: &VmPlan) -> anyhow::Result<String> {
        self.machines.agents.get(&vm.born).cloned().context("a machine that has not started")
    }

    /// The function that the machine started in whose port this is; other ends are in the cabling.
    pub(super) fn node_of(&self, end: PortEnd) -> Option<NodeIndex> {
        let vm = self.plan.machines().iter().find(|vm| self.machine_end(vm).node == end.node);
        let known = || self.plan.fabric.by_guid(end.node.0).filter(|node| !self.is_left(*node));
        vm.map(|vm| vm.born).or_else(known)
    }

    /// Whether it is a function that no machine is known to be in: one may be about to leave it, or have just arrived.
    fn is_left(&self, node: NodeIndex) -> bool {
        let adapters = self.plan.vms.iter().flat_map(|vms| &vms.adapters);
        self.plan.stack.guids == Guids::Dynamic
            && adapters.flat_map(|adapter| &adapter.vfs).any(|vf| *vf == node)
    }

    /// Tells a machine something, when it is not on its way.
    pub(super) fn tell_machine(&mut self, vm: &VmPlan, command: &Command) -> anyhow::Result<()> {
        if self.machines.moving.values().any(|moving| *moving == vm.born) {
            self.machines.waiting.push((vm.born, command.clone()));
            return Ok(());
        }
        let (end, agent) = (self.machine_end(vm), self.agent_of_machine(vm)?);
        let told = self.ask(&agent, Request::Host { end, command: command.clone() });
        told.map(drop).with_context(|| format!("`{}` does not take a command", vm.name))
    }

    /// Asks the VM manager to move a machine. The answer comes by itself.
    pub(super) fn migrate(&mut self, migrate: &Migrate) -> anyhow::Result<()> {
        let vm = self.plan.machines().iter().find(|vm| vm.name == migrate.vm);
        let born = vm.context("a machine that the plan does not know")?.born;
        let (before, at) = (self.received()?, self.since());
        let id = self.machines.migrations.records().len() as u64;
        self.machines.migrations.begin(id, migrate, at, before);
        self.machines.moving.insert(id, born);
        let (control, sender) = (self.lab.folder.control(VMM), self.machines.answers.sender.clone());
        let request = Request::VmMigrate(told(migrate));
        let ask = move || {
            let answer = Client::connect(&control).and_then(|mut client| client.ask(request, PATIENCE));
            let answer = match answer {
                Ok(Answer::VmMigrate(migration)) => Ok(migration),
                Ok(_) => Err("the VM manager answers something else".to_owned()),
                Err(ClientError::Refused(error)) => Err(error.message),
                Err(error) => Err(format!("the VM manager does not answer: {error}")),
            };
            // The run may have ended.
            let _ = sender.send(Heard { id, at: Instant::now(), answer });
        };
        std::thread::Builder::new().name("migrate".into()).spawn(ask).context("cannot start a thread")?;
        Ok(())
    }

    /// Whether a migration is under way, or the port of a machine that has moved is being set up.
    pub(super) fn is_migrating(&self) -> bool {
        !self.machines.moving.is_empty() || self.machines.migrations.set_up_next().is_some()
    }

    /// Counts what functions have received for the last migration, once the port of its machine is active.
    fn look_at_port(&mut self) -> anyhow::Result<()> {
        let Some((id, name)) = self.machines.migrations.set_up_next() else { return Ok(()) };
        let vm = self.plan.machines().iter().find(|vm| vm.name.to_string() == name);
        if self.has_port(vm.context("a machine that the plan does not know")?)? {
            let now = self.received()?;
            self.machines.migrations.is_set_up(id, &now);
        }
        Ok(())
    }

    /// Takes the VM manager's answers that have come.
    pub(super) fn hear_machines(&mut self) -> anyhow::Result<()> {
        while let Ok(Heard { id, at, answer }) = self.machines.answers.come.try_recv() {
            let (now, plan) = (self.received()?, self.plan);
            let Some(vms) = &plan.vms else { continue };
            let born = self.machines.moving.remove(&id);
            let outcome = match answer {
                Ok(migration) => {
                    let agent = self.machines.hosts.get(&migration.to.host).cloned();
                    self.machines.agents.extend(born.zip(agent));
                    let functions = self.machines.functions.get(&migration.to.host);
                    let function =
                        functions.and_then(|all| all.get(usize::from(migration.to.vf).checked_sub(1)?));
                    let function = function.copied().filter(|_| plan.stack.guids == Guids::Dynamic);
                    self.machines.now_in.extend(born.zip(function));
                    MigrationOutcome::Done(Box::new(migrated(*migration)))
                }
                Err(words) => MigrationOutcome::Refused(words),
            };
            let since = at.saturating_duration_since(self.began).as_nanos();
            let at = Time::from_nanos(u64::try_from(since).unwrap_or(u64::MAX));
            let mark = self.machines.migrations.end(id, at, outcome, &now, vms);
            self.machines.marks.extend(mark);
            for (born, command) in std::mem::take(&mut self.machines.waiting) {
                if let Some(vm) = plan.born_in(born) {
                    self.tell_machine(vm, &command)?;
                }
            }
        }
        self.look_at_port()
    }

    /// Marks of migrations since the last call.
    pub(super) fn machine_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.machines.marks)
    }

    /// What became of all migrations.
    pub(super) fn migration_records(&self) -> Vec<MigrationRecord> {
        self.machines.migrations.records()
    }

    /// What all devices have received so far, by their agents' counts.
    fn received(&mut self) -> anyhow::Result<Received> {
        let (mut received, fabric) = (Received::default(), self.plan.fabric.clone());
        self.list_all(Request::Devices, |answer| {
            let Answer::Devices { devices, more } = answer else { return (None, false) };
            for device in &devices {
                match fabric.by_guid(device.node.0).filter(|_| device.kind == NodeKind::Switch) {
                    Some(switch) => drop(received.lft_writes.insert(switch, device.lft_writes)),
                    None => received.function_sets += device.smp_sets,
                }
            }
            (devices.last().map(|device| PortEnd::of_node(device.node)), more)
        })?;
        Ok(received)
    }
}

/// Of a machine that is on its way two agents may tell: the one that has moved more goes on.
pub(super) fn merged(all: Vec<(NodeIndex, Vec<FlowReport>)>) -> Vec<(NodeIndex, Vec<FlowReport>)> {
    let bytes = |reports: &[FlowReport]| reports.iter().map(|report| report.bytes).sum::<u64>();
    let mut merged: BTreeMap<NodeIndex, Vec<FlowReport>> = BTreeMap::new();
    for (node, reports) in all {
        let known = merged.entry(node).or_default();
        if known.is_empty() || bytes(&reports) > bytes(known) {
            *known = reports;
        }
    }
    merged.into_iter().collect()
}

/// A migration in the control protocol's words.
fn told(migrate: &Migrate) -> VmMigrate {
    let Route { method, order: update, late } = migrate.route;
    let way = VmWay { vm: migrate.vm.to_string(), host: migrate.host.to_string(), method, update, late };
    VmMigrate {
        way,
        cold: migrate.cold,
        early_detach: migrate.detach == Detach::Early,
        pre_copy_ms: migrate.hypervisor.pre_copy.as_millis(),
        stop_copy_ms: migrate.hypervisor.stop_copy.as_millis(),
        resume_ms: migrate.hypervisor.resume.as_millis(),
    }
}

/// The VM manager's answer as a report has it.
fn migrated(migration: VmMigration) -> Migrated {
    let place = |place: &VmPlace| format!("{} vf{}", place.host, place.vf);
    Migrated {
        from: place(&migration.from),
        to: place(&migration.to),
        stages: migration.stages.into_iter().map(|one| (one.stage, Time::from_nanos(one.took_ns))).collect(),
        downtime: migration.downtime_ns.map(Time::from_nanos),
        silent_after: migration.silent_after_ns.map(Time::from_nanos),
        total: Time::from_nanos(migration.total_ns),
        told: migration.counts,
        notes: migration.notes,
    }
}
