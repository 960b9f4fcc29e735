//! `weft up`

mod hosts;
mod places;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_bundle::config::hub::HubConfig;
use weft_bundle::config::managers::IbsimPart;
use weft_bundle::config::run::{RunOptions, recordings};
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::folder::{LabFolder, absolute};
use weft_bundle::plan::vfs;
use weft_bundle::plan::wanted::Wanted;
use weft_bundle::record::LabRecord;
use weft_bundle::topology_file;
use weft_lab::launch::Launcher;
use weft_lab::pieces::{self, Managers, PieceLine};
use weft_lab::progress::{Goal, StartPhase};
use weft_lab::scene::TapeTo;
use weft_lab::site::refuse_other_hosts;
use weft_lab::start::{self, From, goal};
use weft_lab::watch;
use weft_managers::{opensm, sm};
use weft_topology::{Fabric, Virtualised};
use weft_wire::GidPrefix;

use super::seconds;
use crate::cli::plan::{PlanArgs, Sm, UpArgs};
use crate::engine_options::warn_of_fallback;
use crate::front;
use crate::output::{StdoutClosed, Table, print, print_json, say};
use crate::wanted::Seats;

/// The name of a laboratory that is given none.
pub(super) const DEFAULT_NAME: &str = "default";

pub(super) fn run(name: Option<&str>, args: &UpArgs) -> anyhow::Result<()> {
    let begun = Instant::now();
    weft_process::raise_file_limit();
    if let Some(name) = name {
        // Before anything is read.
        crate::front::base().lab(name)?;
    }
    let mut run =
        RunOptions { record: args.record.as_deref().map(recordings).transpose()?, ..RunOptions::default() };
    if let Some(host) = &args.part {
        return hosts::share(name, host, args, run, begun);
    }
    match (&args.bundle, &args.file) {
        (Some(folder), _) => from_bundle(name, folder, args, run, begun),
        (None, file) => {
            let file = file.as_deref().unwrap_or(Path::new(""));
            let cabling = cabling(file, &args.plan)?;
            let mut wanted = wanted(&cabling, file, &args.plan)?;
            if args.hub.watch {
                wanted.metrics = wanted.metrics.or(Some(0));
            }
            if let Some(hosts) = &args.spread.hosts {
                return hosts::over(name.unwrap_or(DEFAULT_NAME), wanted, hosts, args);
            }
            if !wanted.opensms.is_empty() {
                opensm::check(&front::program()?)?;
            }
            manager_files(args, wanted.sm.is_some(), &mut run)?;
            let name = name.unwrap_or(DEFAULT_NAME);
            let at_first = at_first(&cabling, &args.plan);
            let goal = goal(&at_first, wanted.leaders(), Duration::from_secs(args.patience));
            let started =
                Started { name, from: &From::Plan(&wanted), fabric: &cabling.fabric, whole: None, goal };
            bring_up(started, args, &run, begun)
        }
    }
}

/// Starts what was planned before.
fn from_bundle(
    name: Option<&str>,
    folder: &Path,
    args: &UpArgs,
    mut run: RunOptions,
    begun: Instant,
) -> anyhow::Result<()> {
    let bundle = Bundle::at(folder);
    let record = LabRecord::of_bundle(&bundle)?;
    if let Some(other) = name.filter(|name| *name != record.lab) {
        let (folder, lab) = (folder.display(), &record.lab);
        let message = format!("{folder} is the bundle of the laboratory `{lab}`, not `{other}`");
        return Err(Failure::bad_input(message)
            .hint(format!("leave out --lab, or plan it again with `weft plan --lab {other}`")));
    }
    refuse_other_hosts(&bundle, &record)?;
    if !record.opensms.is_empty() {
        opensm::check(&front::program()?)?;
    }
    let fabric = topology_file::load(&bundle.topology())?;
    manager_files(args, record.sm.is_some(), &mut run)?;
    let slots = record.slots().filter(|_| record.empty_slots);
    let at_first = vfs::unplugged(&fabric, slots.filter_map(|(_, slot)| fabric.by_guid(slot.guid)));
    let goal = goal(&at_first, record.leaders_in(&fabric), Duration::from_secs(args.patience));
    let (name, from) = (&record.lab, &From::Bundle(&bundle));
    bring_up(Started { name, from, fabric: &fabric, whole: None, goal }, args, &run, begun)
}

/// The laboratory that is started.
pub(super) struct Started<'a> {
    name: &'a str,
    from: &'a From<'a>,
    fabric: &'a Fabric,
    /// The record of the laboratory that this is a share of.
    whole: Option<&'a LabRecord>,
    goal: Goal,
}

pub(super) fn bring_up(
    started: Started<'_>,
    args: &UpArgs,
    run: &RunOptions,
    begun: Instant,
) -> anyhow::Result<()> {
    let Started { name, from, fabric, whole, mut goal } = started;
    goal.keep = Some(args.keep);
    let hub = HubConfig {
        restart: args.hub.restart,
        http: match args.hub.hub_metrics {
            None if args.hub.watch => Some(watch::free_address()?),
            given => given,
        },
        door: args.hub.hub_door,
        ..HubConfig::default()
    };
    let lab = crate::front::base().lab(name)?;
    super::hub::tell_of_http(&hub, &lab.bundle());
    let watched = hub.http.filter(|_| args.hub.watch);
    let tape = args.tape.as_deref().map(|to| TapeTo::file_or_folder(to, name)).transpose()?;
    let tape = tape.map(|to| TapeTo { bytes_max: args.tape_megabytes * 1_000_000, ..to });
    let taped = tape.as_ref().map(|to| to.path.clone());
    let run = start::Run { options: run, hub, tape };
    start::with(&crate::front::base(), name, from, run, goal, begun, |mut launcher| {
        if let Some(http) = watched {
            watch_it(&lab, http);
        }
        if let Some(path) = taped {
            say(&format!("taping to {}; `weft ui --tape` shows it", path.display()));
        }
        summarise_and_stay(&mut launcher, fabric, whole, args)?;
        if !args.foreground {
            launcher.release();
        }
        Ok(())
    })
}

/// Starts a Prometheus. A laboratory without one is still a laboratory.
fn watch_it(lab: &LabFolder, hub: SocketAddr) {
    if !watch::is_installed() {
        say("no Prometheus is installed, so none watches the laboratory\nhint: apt-get install prometheus");
        return;
    }
    match watch::start(lab, hub) {
        Ok(address) => {
            say(&format!(
                "consoles: http://{address}/consoles/index.html\nalerts:   http://{address}/alerts"
            ));
        }
        Err(error) => say(&format!("warning: {}", weft_bundle::failure::in_words(&error))),
    }
}

/// Has the first subnet manager keep LIDs and its log where the user says.
pub(super) fn manager_files(args: &UpArgs, has_manager: bool, run: &mut RunOptions) -> anyhow::Result<()> {
    if !has_manager {
        return Ok(());
    }
    // The manager opens them, but by then everything has started.
    if let Some(path) = &args.guid2lid {
        sm::load_guid2lid(path)?;
        run.guid2lid = Some(absolute(path)?);
    }
    if let Some(path) = &args.history {
        sm::HistoryFile::check(path)?;
        run.history = Some(absolute(path)?);
    }
    Ok(())
}

/// The cabling of a file, with virtualised adapters where the command line asks for them.
pub(super) fn cabling(file: &Path, args: &PlanArgs) -> anyhow::Result<Virtualised> {
    vfs::cabling(topology_file::load(file)?, &args.vfs.functions(), args.sm.lmc)
}

/// The cabling when the laboratory starts: empty slots are unplugged.
fn at_first(cabling: &Virtualised, args: &PlanArgs) -> Fabric {
    let slots = cabling.adapters.iter().filter(|_| args.vfs.functions().is_dynamic());
    vfs::unplugged(&cabling.fabric, slots.flat_map(|adapter| adapter.vfs.iter().copied()))
}

/// The laboratory that the command line plans.
pub(super) fn wanted<'a>(
    cabling: &'a Virtualised,
    file: &Path,
    args: &PlanArgs,
) -> anyhow::Result<Wanted<'a>> {
    if args.standby > 0 && args.sm_program() != Sm::Weft {
        return Err(
            Failure::bad_input("--standby is of weft's subnet manager").hint("leave out --standby, or --sm")
        );
    }
    if args.sm.subnet_prefix != GidPrefix::DEFAULT && args.sm_program() != Sm::Weft {
        return Err(Failure::bad_input("--subnet-prefix is of weft's subnet manager")
            .hint("leave out --subnet-prefix, or --sm"));
    }
    // A manager cannot sit in an empty slot.
    let fabric = &at_first(cabling, args);
    let program = args.sm_program();
    let seats = if program == Sm::None { Vec::new() } else { places::managers(fabric, file, args)? };
    let managed_at = seats.first().copied();
    let sm_at = managed_at.filter(|_| program == Sm::Weft);
    let pms = if args.pm.pm { places::pms(fabric, file, &seats, args)? } else { Vec::new() };
    let weft_at = if program == Sm::Weft { &seats[..] } else { &[] };
    let standbys = places::others(fabric, weft_at, &pms, args)?;
    let starts_vmm = args.vfs.starts_manager();
    let vmms = if starts_vmm { places::vmms(cabling, fabric, &seats, args)? } else { Vec::new() };
    if let Some(IbsimPart { listen, .. }) = args.ibsim.part() {
        let who = listen.open_to();
        crate::output::say(&format!("warning: {who} can manage this fabric by ibsim's protocol at {listen}"));
    }
    let opensms = if program == Sm::Opensm { places::opensms(fabric, &seats, args) } else { Vec::new() };
    let seats = Seats { sm: sm_at, pms, vmms, standbys };
    Ok(Wanted { opensms, ..crate::wanted::wanted(cabling, seats, file, args)? })
}

fn summarise_and_stay(
    launcher: &mut Launcher<'_>,
    fabric: &Fabric,
    whole: Option<&LabRecord>,
    args: &UpArgs,
) -> anyhow::Result<()> {
    for report in launcher.routings() {
        warn_of_fallback(&args.plan.sm.engine, &report.engine, &report.fallbacks);
    }
    match summary(launcher, fabric, whole).print(args.json) {
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

#[derive(Serialize, Deserialize)]
struct Summary {
    phases: Vec<Row>,
    subnet_up_s: Option<f64>,
    /// Nodes that no subnet manager reaches.
    unreachable: Vec<String>,
    /// The pieces of the fabric, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<PieceLine>,
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

fn summary(launcher: &Launcher<'_>, fabric: &Fabric, whole: Option<&LabRecord>) -> Summary {
    let record = whole.unwrap_or(launcher.record);
    let managers = Managers::of(fabric, record);
    let phases = &launcher.phases;
    let mut before = Duration::ZERO;
    let mut rows = Vec::new();
    for phase in StartPhase::ALL {
        let Some(end) = phases.finished(phase) else { continue };
        let took = end.saturating_sub(before);
        let (end_s, took_s) = (end.as_secs_f64(), took.as_secs_f64());
        rows.push(Row { phase: phase.name().into(), count: phases.count(phase).done, end_s, took_s });
        before = end;
    }
    Summary {
        phases: rows,
        subnet_up_s: launcher.subnet_up.as_ref().map(|up| up.at.as_secs_f64()),
        unreachable: managers.unreachable(fabric),
        pieces: managers.lines(fabric),
        smps: launcher.subnet_up.as_ref().and_then(|up| up.smps),
        routing: launcher.subnet_up.as_ref().map(|up| up.routing.clone()).unwrap_or_default(),
    }
}

impl Summary {
    fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return print_json(self);
        }
        let mut table = Table::headed("phase | count | at s | took s");
        for row in &self.phases {
            let time = |seconds_f: f64| seconds(Duration::from_secs_f64(seconds_f));
            table.row(&[&row.phase, &row.count, &time(row.end_s), &time(row.took_s)]);
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
        text += &pieces::text(&self.pieces);
        print(&text)
    }
}

/// Prints what a share's `up --json` has said.
pub(super) fn print_summary_of(said: &str, json: bool) -> anyhow::Result<()> {
    let summary: Summary = serde_json::from_str(said).context("a host's summary is invalid")?;
    summary.print(json)
}
