//! What the command line can do: one file per verb.

mod ask;
mod at;
mod bench;
mod capture;
mod chaos;
mod check;
mod compose;
mod containers;
mod down;
mod events;
mod fault;
mod health;
mod hub;
mod identity;
mod k8s;
mod links;
mod metrics;
mod pieces;
mod plan;
mod ps;
mod replay;
mod report;
mod routes;
mod run;
mod seats;
mod shell;
mod sim;
mod sm;
mod status;
mod study;
mod sysfs;
mod top;
mod topo;
mod trace;
mod up;
mod vm;

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_control::vm::{Slot, SlotState};
use weft_lab::gateway::Gateway;
use weft_lab::slots::read_slots;
use weft_managers::pm::PmConfig;
use weft_managers::sm::SmConfig;
use weft_managers::vmm::VmmConfig;
use weft_sm::LidScheme;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{Guid, PortNum, count_of};

use crate::cli::{
    AgentProcessArgs, BenchVerb, Cli, MeteredProcessArgs, ProcessArgs, SmProcessArgs, Verb, VmmProcessArgs,
    completed,
};
use crate::output;
use crate::sm_options::sm_options;

/// Does what the command line says.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let gateway = at::enter(&cli)?;
    let means = at::Means::of(&cli.verb);
    let lab = || match &gateway {
        Some(gateway) => Ok(gateway.folder().clone()),
        None => at::here(cli.lab.as_deref(), &means),
    };
    match cli.verb {
        Verb::Up(args) => up::run(cli.lab.as_deref(), &args)?,
        Verb::Compose(args) => compose::run(cli.lab.as_deref(), &args)?,
        Verb::K8s(args) => k8s::run(cli.lab.as_deref(), &args)?,
        Verb::Plan(args) => plan::run(cli.lab.as_deref(), &args)?,
        Verb::Identity(verb) => identity::run(lab(), &verb)?,
        Verb::Down(args) => down::run(cli.lab.as_deref(), &args)?,
        Verb::Ps(args) => ps::run(&lab()?, args.json)?,
        Verb::Status(args) => status::run(&lab()?, args.json)?,
        Verb::Top(args) => top::run(&lab()?, &args)?,
        Verb::Metrics(args) => metrics::run(&lab()?, &args)?,
        Verb::Links(args) => links::run(&lab()?, args.json)?,
        Verb::Trace(args) => trace::run(&lab()?, &args)?,
        Verb::Check(args) => return check::run(&lab()?, &args),
        Verb::Hub(args) => match (&args.bundle, &args.run) {
            (Some(bundle), Some(run)) => hub::apart(bundle, run, &args)?,
            _ => hub::run(&lab()?, &args)?,
        },
        Verb::Events(args) => events::run(&lab()?, &args)?,
        Verb::Ask(args) => ask::run(&lab()?, &args)?,
        Verb::Capture(args) => capture::run(&lab()?, &args)?,
        Verb::Shell(args) => return shell::run(&lab()?, &args),
        Verb::Sysfs(args) => sysfs::run(&lab()?, &args)?,
        Verb::Record(args) => replay::record(&lab()?, &args)?,
        Verb::Replay(args) => return replay::run(&args),
        Verb::Fault(verb) => fault::run(&lab()?, &verb)?,
        Verb::Chaos(args) => return chaos::run(lab, &args),
        Verb::Run(args) => return run::run(cli.lab.as_deref(), &args),
        Verb::Vm(verb) => vm::run(&lab()?, &verb)?,
        Verb::Topo(verb) => return topo::run(lab, &verb),
        Verb::Routes(verb) => return routes::run(&verb),
        Verb::Study(verb) => return study::run(&verb),
        Verb::Bench(BenchVerb::Smp(args)) => return bench::smp(&lab()?, &args),
        Verb::Bench(BenchVerb::Up(args)) => return bench::up(&args),
        Verb::Bench(BenchVerb::Door(args)) => return bench::door(&args),
        Verb::Bench(BenchVerb::Move(args)) => return bench::moves(&lab()?, &args),
        Verb::Sim(args) => sim::run(&args)?,
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut completed(), "weft", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
        }
        Verb::Sm(args) => match &args.verb {
            Some(verb) => sm::run(&lab()?, verb)?,
            None => run_sm(&args.process)?,
        },
        Verb::Pm(args) => pm(&args)?,
        Verb::Vmm(args) => vmm(&args)?,
        Verb::Ibsim(args) => ibsim(&args)?,
        Verb::Opensm(args) => opensm(&args)?,
        Verb::Health(args) => health::run(&args)?,
        Verb::BenchEcho => bench::echo()?,
    }
    gateway.map_or(Ok(()), Gateway::leave)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs one agent.
pub(crate) fn agent(args: &AgentProcessArgs) -> anyhow::Result<()> {
    detach(args.metered.process.detached);
    let AgentProcessArgs { metered, record } = args;
    weft_managers::agent::run(&metered.process.start(), metered.metrics_port, record.clone())
}

/// Runs the performance manager.
pub(crate) fn pm(args: &MeteredProcessArgs) -> anyhow::Result<()> {
    detach(args.process.detached);
    weft_managers::pm::run(PmConfig::of_bundle(&args.process.start(), args.metrics_port)?)
}

/// Runs the VM manager.
pub(crate) fn vmm(args: &VmmProcessArgs) -> anyhow::Result<()> {
    detach(args.metered.process.detached);
    let VmmProcessArgs { metered, die_after } = args;
    weft_managers::vmm::run(VmmConfig::of_bundle(
        &metered.process.start(),
        metered.metrics_port,
        die_after.clone(),
    )?)
}

/// Runs the subnet manager.
pub(crate) fn run_sm(args: &SmProcessArgs) -> anyhow::Result<()> {
    detach(args.detached);
    weft_managers::sm::run(match args.process() {
        Some(process) => SmConfig::of_bundle(&process.start(), args.files())?,
        None => {
            // As OpenSM does.
            let options = sm_options(&args.sm, None, (false, LidScheme::Prepopulated))?;
            let at = (args.ibsim.clone().unwrap_or_default(), args.at.clone().unwrap_or_default());
            // Nobody may be reading; that is no fault.
            let announce = |line: &str| drop(output::print(line));
            SmConfig::on_ibsim(at, (args.files(), options), (announce, args.once))
        }
    })
}

/// Serves programs under ibsim's library.
fn ibsim(args: &ProcessArgs) -> anyhow::Result<()> {
    detach(args.detached);
    weft_managers::ibsim::run(&args.start())
}

/// Runs unmodified OpenSM.
fn opensm(args: &ProcessArgs) -> anyhow::Result<()> {
    detach(args.detached);
    weft_managers::opensm::run(&args.start(), &crate::program::path()?)
}

/// Leaves the session of the terminal, so that what happens to it does not happen to the laboratory.
fn detach(detached: bool) {
    if detached {
        // It fails for the leader of a process group, whose session is its own affair.
        let _ = rustix::process::setsid();
    }
}

/// What stands before the name of a virtual machine, where a node is named.
const VM_PREFIX: &str = "vm:";

/// What was written down about a laboratory, and its cabling.
struct Lab {
    folder: LabFolder,
    record: weft_bundle::record::LabRecord,
    fabric: weft_topology::Fabric,
    /// The slots of virtual machines, where they were asked for.
    slots: BTreeMap<NodeIndex, Slot>,
    /// Whether it is all of the laboratory, and not a piece of it.
    whole: bool,
}

/// The fabric does not know a slot that is not plugged in: its GUID is this and its index.
const NOBODY: u64 = 0xfffe_0000_0000_0000;

impl Lab {
    fn load(folder: &LabFolder) -> anyhow::Result<Self> {
        let record = weft_bundle::record::LabRecord::load(folder)
            .with_context(|| format!("the laboratory `{}` is not whole", folder.name()))?;
        let fabric = weft_bundle::topology_file::load(&folder.bundle().topology())?;
        Ok(Self { folder: folder.clone(), record, fabric, slots: BTreeMap::new(), whole: true })
    }

    /// The laboratory for nodes of these names: live, where one names a virtual machine.
    fn load_for<'a>(folder: &LabFolder, mut names: impl Iterator<Item = &'a str>) -> anyhow::Result<Self> {
        let names_vm = names.any(|name| name.starts_with(VM_PREFIX));
        if names_vm { Self::load_live(folder) } else { Self::load(folder) }
    }

    /// The same with what sits in slots of virtual machines now: functions that are plugged in have the GUIDs of their
    /// identities, others have no cable.
    fn load_live(folder: &LabFolder) -> anyhow::Result<Self> {
        let mut lab = Self::load(folder)?;
        let told = read_slots(folder, &lab.record)?;
        lab.slots =
            told.into_iter().filter_map(|(guid, slot)| Some((lab.fabric.by_guid(guid)?, slot))).collect();
        // First all give up their GUIDs: two slots may have swapped theirs.
        for &index in lab.slots.keys() {
            let nobody = Guid(NOBODY | u64::from(index.0));
            lab.fabric.identify(index, nobody, nobody);
        }
        let mut names = BTreeMap::new();
        for (&index, slot) in &lab.slots {
            if slot.plugged {
                lab.fabric.identify(index, slot.identity.node.0, slot.identity.port.0);
            } else {
                lab.fabric.disconnect(PortRef::new(index, PortNum(1)));
            }
            names.insert(slot.slot.0, lab.fabric.node(index).guid);
        }
        lab.record.rename(&names);
        Ok(lab)
    }

    /// The GUID by which an agent finds a node: a slot that is not plugged in has the one that it began with.
    fn guid_at_agent(&self, node: NodeIndex) -> Guid {
        let slot = self.slots.get(&node).filter(|slot| !slot.plugged);
        slot.map_or_else(|| self.fabric.node(node).guid, |slot| slot.slot.0)
    }

    /// The slot that a virtual machine is in; of several the one where it runs, or else stands still.
    fn find_vm(&self, name: &str) -> anyhow::Result<NodeIndex> {
        let here = self.slots.iter().filter(|(_, slot)| slot.vm.as_deref() == Some(name));
        let here = here.filter(|(_, slot)| slot.state != SlotState::Reserved);
        let found = here.min_by_key(|(_, slot)| slot.state != SlotState::Running);
        found.map(|(index, _)| *index).ok_or_else(|| {
            Failure::bad_input(format!("virtual machine `{name}` is in no slot of a running agent"))
                .hint("`weft vm ls` lists them")
                .into()
        })
    }

    /// The node of that id, GUID or description, or the slot of `vm:NAME`.
    fn find(&self, name: &str) -> anyhow::Result<NodeIndex> {
        match name.strip_prefix(VM_PREFIX) {
            Some(vm) => self.find_vm(vm),
            None => find(&self.fabric, name),
        }
    }

    /// The node meant; without a name the subnet manager's, or where it would be.
    fn node_or_seat(&self, name: Option<&str>) -> anyhow::Result<NodeIndex> {
        let sm = || self.record.sm.as_ref().and_then(|sm| self.fabric.by_guid(sm.node));
        match name {
            Some(name) => self.find(name),
            None => sm()
                .or_else(|| self.fabric.attach_place().map(|place| place.node))
                .or_else(|| self.fabric.iter().map(|(index, _)| index).next())
                .context("the laboratory has no nodes"),
        }
    }

    /// What a person can type for a node of this GUID; the name that it gives itself where the cabling has no such node.
    fn label(&self, guid: weft_wire::Guid, said: &str) -> String {
        let known = self.fabric.by_guid(guid).map(|index| self.fabric.label(index));
        known.unwrap_or_else(|| weft_wire::Printable(said).to_string())
    }

    /// `NODE:PORT`. The node's name may itself contain colons.
    fn port(&self, text: &str) -> anyhow::Result<PortRef> {
        let malformed = || {
            Failure::bad_input(format!("`{text}` is not NODE:PORT"))
                .hint("name a node and one of its ports, such as leaf1:3")
        };
        let (node, port) = text.rsplit_once(':').ok_or_else(malformed)?;
        let port = PortRef::new(self.find(node)?, PortNum(port.parse().map_err(|_| malformed())?));
        self.has_port(port)?;
        Ok(port)
    }

    /// Refuses a port that its node does not have, with a cable or without.
    fn has_port(&self, port: PortRef) -> Result<(), Failure> {
        if port.port != PortNum::ZERO && self.fabric.port(port).is_some() {
            return Ok(());
        }
        let (node, label) = (self.fabric.node(port.node), self.fabric.label(port.node));
        let message = format!("`{label}` has ports 1 to {}, not {}", node.port_count(), port.port);
        Err(Failure::bad_input(message))
    }

    /// The same of a port that has a cable, and the port at its other end.
    fn cable(&self, text: &str) -> anyhow::Result<(PortRef, PortRef)> {
        let port = self.port(text)?;
        let peer = self.fabric.peer(port).ok_or_else(|| {
            Failure::bad_input(format!("no cable is in {text}")).hint("`weft links` lists the cables")
        })?;
        Ok((port, peer))
    }
}

/// The node of that id, GUID or description.
fn find(fabric: &weft_topology::Fabric, name: &str) -> anyhow::Result<weft_topology::NodeIndex> {
    fabric.find(name).map_err(|error| {
        Failure::bad_input(error.to_string())
            .hint("nodes are named by description, GUID (0x…) or id, as `weft ps` lists them")
            .into()
    })
}

/// A duration as people read it.
fn seconds(duration: std::time::Duration) -> String {
    format!("{:.3}", duration.as_secs_f64())
}
