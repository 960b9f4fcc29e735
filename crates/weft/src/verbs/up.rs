//! `weft up`

mod spread;

use std::borrow::Cow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_topology::{Fabric, NodeIndex, PortRef, Virtualised};

use super::{count_of, seconds};
use crate::cli::{PlanArgs, Sm, UpArgs};
use crate::failure::Failure;
use crate::lab::folder::absolute;
use crate::lab::hub::HubConfig;
use crate::lab::launch::Launcher;
use crate::lab::progress::{Goal, StartPhase};
use crate::lab::run::{RunOptions, recordings};
use crate::lab::start::{self, From, goal};
use crate::lab::wanted::Wanted;
use crate::lab::{Base, Bundle, LabRecord, process, vfs};
use crate::output::{StdoutClosed, Table, print, print_json};
use crate::{opensm_process, sm_process, topology_file};

/// The name of a laboratory that is given none.
pub(super) const DEFAULT_NAME: &str = "default";

pub(super) fn run(name: Option<&str>, args: &UpArgs) -> anyhow::Result<()> {
    let begun = Instant::now();
    process::raise_file_limit();
    let mut run =
        RunOptions { record: args.record.as_deref().map(recordings).transpose()?, ..RunOptions::default() };
    if let Some(host) = &args.part {
        return spread::part(name, host, (args, run), begun);
    }
    match (&args.bundle, &args.file) {
        (Some(folder), _) => from_bundle(name, folder, (args, run), begun),
        (None, file) => {
            let file = file.as_deref().unwrap_or(Path::new(""));
            let cabling = cabling(file, &args.plan)?;
            let wanted = wanted(&cabling, file, &args.plan)?;
            if let Some(hosts) = &args.spread.hosts {
                return spread::over(name.unwrap_or(DEFAULT_NAME), wanted, hosts, args);
            }
            if wanted.opensm.is_some() {
                opensm_process::check()?;
            }
            let sm_at = wanted.sm.as_ref().map(|sm| sm.at.node);
            manager_files(args, sm_at, &mut run)?;
            let name = name.unwrap_or(DEFAULT_NAME);
            let at_first = at_first(&cabling, &args.plan);
            let goal = goal(&at_first, sm_at, Duration::from_secs(args.patience));
            bring_up(name, (&From::Plan(&wanted), &run), (&cabling.fabric, sm_at), (args, goal), begun)
        }
    }
}

/// Starts what was planned before.
fn from_bundle(
    name: Option<&str>,
    folder: &Path,
    (args, mut run): (&UpArgs, RunOptions),
    begun: Instant,
) -> anyhow::Result<()> {
    let bundle = Bundle::at(folder);
    let record = LabRecord::of_bundle(&bundle)?;
    if let Some(other) = name.filter(|name| *name != record.lab) {
        let (folder, lab) = (folder.display(), &record.lab);
        return Err(Failure::bad_input(format!(
            "{folder} is the bundle of the laboratory `{lab}`, not `{other}`"
        ))
        .hint(format!("leave out --lab, or plan it again with `weft plan --lab {other}`"))
        .into());
    }
    if let [host, ..] = record.other_hosts().as_slice() {
        let shown = folder.display();
        return Err(Failure::bad_input(format!("agents of {shown} run on other hosts, such as {host}"))
            .hint(format!(
                "start each host's part there, as with `weft up --part {host} {shown}`, or plan and start all of it at once \
                 with `weft up FILE --hosts`"
            ))
            .into());
    }
    if record.opensm.is_some() {
        opensm_process::check()?;
    }
    let fabric = topology_file::load(&bundle.topology())?;
    let sm_at = record.sm.as_ref().and_then(|sm| fabric.by_guid(sm.node));
    manager_files(args, sm_at, &mut run)?;
    let slots = record.slots().filter(|_| record.empty_slots);
    let at_first = vfs::unplugged(&fabric, slots.filter_map(|(_, slot)| fabric.by_guid(slot.guid)));
    let goal = goal(&at_first, sm_at, Duration::from_secs(args.patience));
    bring_up(&record.lab, (&From::Bundle(&bundle), &run), (&fabric, sm_at), (args, goal), begun)
}

pub(super) fn bring_up(
    name: &str,
    (from, run): (&From<'_>, &RunOptions),
    (fabric, sm_at): (&Fabric, Option<NodeIndex>),
    (args, mut goal): (&UpArgs, Goal),
    begun: Instant,
) -> anyhow::Result<()> {
    goal.keep = Some(args.keep);
    let hub = HubConfig {
        restart: args.hub.restart.into(),
        http: args.hub.hub_metrics,
        door: args.hub.hub_door,
        ..HubConfig::default()
    };
    super::hub::tell_of_http(&hub, &Base::locate().lab(name)?.bundle());
    start::with(name, from, (run, hub), goal, begun, |mut launcher| {
        summarise_and_stay(&mut launcher, fabric, sm_at, args)?;
        if !args.foreground {
            launcher.release();
        }
        Ok(())
    })
}

/// Has the first subnet manager keep LIDs and its log where the user says.
pub(super) fn manager_files(
    args: &UpArgs,
    sm_at: Option<NodeIndex>,
    run: &mut RunOptions,
) -> anyhow::Result<()> {
    if sm_at.is_none() {
        return Ok(());
    }
    // The manager opens them, but by then everything has started.
    if let Some(path) = &args.guid2lid {
        sm_process::load_guid2lid(path)?;
        run.guid2lid = Some(absolute(path)?);
    }
    if let Some(path) = &args.history {
        sm_process::HistoryFile::check(path)?;
        run.history = Some(absolute(path)?);
    }
    Ok(())
}

/// The cabling of a file, with virtualised adapters where the command line asks for them.
pub(super) fn cabling(file: &Path, args: &PlanArgs) -> anyhow::Result<Virtualised> {
    vfs::cabling(topology_file::load(file)?, &args.vfs, args.sm.lmc)
}

/// The cabling when the laboratory starts: empty slots are unplugged.
fn at_first(cabling: &Virtualised, args: &PlanArgs) -> Fabric {
    let slots = cabling.adapters.iter().filter(|_| args.vfs.is_dynamic());
    vfs::unplugged(&cabling.fabric, slots.flat_map(|adapter| adapter.vfs.iter().copied()))
}

/// The laboratory that the command line plans.
pub(super) fn wanted<'a>(
    cabling: &'a Virtualised,
    file: &Path,
    args: &PlanArgs,
) -> anyhow::Result<Wanted<'a>> {
    if args.standby > 0 && args.sm_program() != Sm::Weft {
        return Err(Failure::bad_input("--standby is of weft's subnet manager")
            .hint("leave out --standby, or --sm")
            .into());
    }
    // A manager cannot sit in an empty slot.
    let fabric = &at_first(cabling, args);
    let program = args.sm_program();
    let managed_at = if program == Sm::None { None } else { Some(sm_place(fabric, file, args)?) };
    let sm_at = managed_at.filter(|_| program == Sm::Weft);
    let pm_at = if args.pm.pm { Some(pm_place(fabric, file, managed_at, args)?) } else { None };
    let standbys = standby_places(fabric, sm_at, pm_at, args)?;
    let vmm_at =
        if args.vfs.starts_manager() { Some(vmm_place(cabling, fabric, managed_at, args)?) } else { None };
    if let Some(listen) = args.ibsim.listen() {
        let who = listen.open_to();
        crate::output::say(&format!("warning: {who} can manage this fabric by ibsim's protocol at {listen}"));
    }
    let opensm = managed_at.filter(|_| program == Sm::Opensm);
    Ok(Wanted { opensm, ..Wanted::by(cabling, (sm_at, pm_at, vmm_at), standbys, (file, args))? })
}

fn summarise_and_stay(
    launcher: &mut Launcher<'_>,
    fabric: &Fabric,
    sm_at: Option<NodeIndex>,
    args: &UpArgs,
) -> anyhow::Result<()> {
    match summarise(launcher, fabric, sm_at, args.json) {
        // The summary's reader is gone; the laboratory runs all the same.
        Err(error) if error.is::<StdoutClosed>() => {}
        summarised => summarised?,
    }
    if args.foreground {
        crate::output::say("press Ctrl-C to take the laboratory down");
        launcher.stay()?;
    }
    Ok(())
}

/// Where the subnet manager sits.
fn sm_place(fabric: &Fabric, file: &Path, args: &PlanArgs) -> anyhow::Result<PortRef> {
    if let Some(name) = &args.sm.sm_at {
        return named_place(fabric, name, "--sm-at");
    }
    let place = fabric.attach_place();
    place.with_context(|| format!("{} has no node for a subnet manager", file.display()))
}

/// Where the performance manager sits: on an HCA of its own if there is one with a way to the subnet manager.
fn pm_place(
    fabric: &Fabric,
    file: &Path,
    sm_at: Option<PortRef>,
    args: &PlanArgs,
) -> anyhow::Result<PortRef> {
    if let Some(name) = &args.pm.pm_at {
        return named_place(fabric, name, "--pm-at");
    }
    let pieces = fabric.components();
    let together = |node: NodeIndex| {
        sm_at.is_none_or(|sm| node != sm.node && pieces.get(node.index()) == pieces.get(sm.node.index()))
    };
    let mut hosts = fabric.hosts().filter(|(index, _)| together(*index));
    let own = hosts.find_map(|(index, node)| Some(PortRef::new(index, node.attach_port()?)));
    let place = own.or(sm_at).or_else(|| fabric.attach_place());
    place.with_context(|| format!("{} has no node for a performance manager", file.display()))
}

/// Where the VM manager sits: at a physical function, of its own if there is one with a way to the subnet manager.
fn vmm_place(
    cabling: &Virtualised,
    fabric: &Fabric,
    sm_at: Option<PortRef>,
    args: &PlanArgs,
) -> anyhow::Result<PortRef> {
    let is_function = |node| cabling.adapters.iter().any(|adapter| adapter.vfs.contains(&node));
    if let Some(name) = &args.vfs.vmm_at {
        let place = named_place(fabric, name, "--vmm-at")?;
        if is_function(place.node) {
            return Err(Failure::bad_input(format!("--vmm-at: `{name}` is a virtual function"))
                .hint("the subnet manager takes moves from hosts alone: name a host's adapter")
                .into());
        }
        return Ok(place);
    }
    let pieces = fabric.components();
    let together = |node: NodeIndex| {
        sm_at.is_none_or(|sm| node != sm.node && pieces.get(node.index()) == pieces.get(sm.node.index()))
    };
    let own = cabling.adapters.iter().map(|adapter| adapter.pf).find(|pf| together(*pf));
    let own = own.and_then(|pf| Some(PortRef::new(pf, fabric.node(pf).attach_port()?)));
    own.or(sm_at).or_else(|| fabric.attach_place()).context("the topology has no node for a VM manager")
}

/// Where subnet managers stand by: at hosts of their own with a way to the first, the performance manager's last.
fn standby_places(
    fabric: &Fabric,
    sm_at: Option<PortRef>,
    pm_at: Option<PortRef>,
    args: &PlanArgs,
) -> anyhow::Result<Vec<PortRef>> {
    if args.standby > 0 && args.sm.election.priority == Some(0) {
        return Err(Failure::bad_input("--priority 0 leaves no lower priority for the standby managers")
            .hint("use --priority 1 or higher with --standby")
            .into());
    }
    let pieces = fabric.components();
    let piece = |node: NodeIndex| pieces.get(node.index());
    let with_sm = |node: NodeIndex| sm_at.is_some_and(|sm| node != sm.node && piece(node) == piece(sm.node));
    let hosts = fabric.hosts().filter(|(index, _)| with_sm(*index));
    let mut places: Vec<PortRef> =
        hosts.filter_map(|(index, node)| Some(PortRef::new(index, node.attach_port()?))).collect();
    places.sort_by_key(|place| pm_at.is_some_and(|pm| pm.node == place.node));
    let wanted = usize::from(args.standby);
    if places.len() < wanted {
        let message =
            format!("{wanted} standby managers want hosts of their own, and there are {}", places.len());
        return Err(Failure::bad_input(message).hint(format!("use --standby {}", places.len())).into());
    }
    places.truncate(wanted);
    Ok(places)
}

fn named_place(fabric: &Fabric, name: &str, option: &str) -> anyhow::Result<PortRef> {
    let index = super::find(fabric, name)?;
    let node = fabric.node(index);
    let port = node.attach_port().ok_or_else(|| {
        Failure::bad_input(format!("`{}` has no cable", fabric.label(index)))
            .hint(format!("choose another node with {option}"))
    })?;
    Ok(PortRef::new(index, port))
}

#[derive(Serialize, Deserialize)]
struct Summary {
    phases: Vec<Row>,
    subnet_up_s: Option<f64>,
    unreachable: Vec<String>,
    smps: Option<u64>,
    /// The engine, why those before it did not serve, and what its routing does not keep.
    routing: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    phase: Cow<'static, str>,
    count: u64,
    end_s: f64,
    took_s: f64,
}

fn summarise(
    launcher: &Launcher<'_>,
    fabric: &Fabric,
    sm_at: Option<NodeIndex>,
    json: bool,
) -> anyhow::Result<()> {
    let phases = launcher.phases();
    let mut before = Duration::ZERO;
    let mut rows = Vec::new();
    for phase in StartPhase::ALL {
        let Some(end) = phases.finished(phase) else { continue };
        let took = end.saturating_sub(before);
        let (end_s, took_s) = (end.as_secs_f64(), took.as_secs_f64());
        rows.push(Row { phase: phase.name().into(), count: phases.count(phase).done, end_s, took_s });
        before = end;
    }
    let summary = Summary {
        phases: rows,
        subnet_up_s: launcher.subnet_up().map(|up| up.at.as_secs_f64()),
        unreachable: unreachable(fabric, sm_at),
        smps: launcher.subnet_up().and_then(|up| up.smps),
        routing: launcher.subnet_up().map(|up| up.routing.clone()).unwrap_or_default(),
    };
    summary.print(json)
}

impl Summary {
    fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return print_json(self);
        }
        let mut table = Table::new(&["phase", "count", "at s", "took s"]);
        for row in &self.phases {
            let time = |seconds_f: f64| seconds(Duration::from_secs_f64(seconds_f));
            table.row([row.phase.to_string(), row.count.to_string(), time(row.end_s), time(row.took_s)]);
        }
        let mut text = table.to_string();
        if let Some(up) = self.subnet_up_s {
            text += &format!("SUBNET UP after {up:.3} s");
            text += &self.smps.map_or_else(String::new, |smps| format!(", {smps} SMPs"));
            text.push('\n');
        }
        for line in &self.routing {
            text += &format!("{line}\n");
        }
        if !self.unreachable.is_empty() {
            let shown: Vec<&str> = self.unreachable.iter().take(5).map(String::as_str).collect();
            let more = if self.unreachable.len() > 5 { ", …" } else { "" };
            text += &format!(
                "not cabled to the subnet manager's piece of the fabric: {} ({}{more})\n",
                count_of(self.unreachable.len(), "node"),
                shown.join(", ")
            );
        }
        print(&text)
    }
}

/// Prints what a part's `up --json` has said.
pub(super) fn print_summary_of(said: &str, json: bool) -> anyhow::Result<()> {
    let summary: Summary = serde_json::from_str(said).context("a host's summary is invalid")?;
    summary.print(json)
}

/// Nodes that no cable connects with the subnet manager.
fn unreachable(fabric: &Fabric, sm_at: Option<NodeIndex>) -> Vec<String> {
    let pieces = fabric.components();
    let Some(piece) = sm_at.and_then(|sm| pieces.get(sm.index())) else { return Vec::new() };
    let outside = fabric.iter().filter(|(index, _)| pieces.get(index.index()) != Some(piece));
    outside.map(|(index, _)| fabric.label(index)).collect()
}
