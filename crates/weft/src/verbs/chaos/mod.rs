//! `weft chaos`
//!
//! ```text
//!   seed ──▶ draw ──▶ carry out, in virtual time or on the laboratory ──▶ judge ──▶ the next seed
//!                                                                          │
//!                          schedule.toml, fabric.topo ◀── shrink ◀── violation
//! ```

mod leaks;
mod live;
mod simulated;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use weft_bundle::failure::{EXIT_INTERRUPTED, Failure};
use weft_bundle::folder::{self, LabFolder};
use weft_bundle::topology_file;
use weft_chaos::{Planned, named, resolved, shrink};
use weft_experiment::{Beside, ScheduleFile};
use weft_fault::FaultCost;
use weft_topology::{Fabric, NodeIndex, PortRef};

use crate::cli::ChaosArgs;
use crate::output::{print, print_json};

/// A fault with its place in the fabric.
type Step = Planned<NodeIndex, PortRef>;

/// Names of files in the report's folder.
const SCHEDULE: &str = "schedule.toml";
const FABRIC: &str = "fabric.topo";
const REPORT: &str = "report.json";

/// What came of it.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    /// Every schedule was survived.
    ok: bool,
    /// Schedules that were carried out.
    schedules: u64,
    /// Faults in them.
    faults: u64,
    /// The first seed.
    seed: u64,
    /// What the faults cost that took links with them.
    cost: FaultCost,
    /// What was wrong, and what brings it about.
    violation: Option<Found>,
    /// Whether somebody interrupted it.
    interrupted: bool,
}

/// A violation.
#[derive(Debug, Serialize)]
struct Found {
    /// The seed of its schedule.
    seed: u64,
    /// What is wrong.
    what: String,
    /// Faults of the schedule as it was drawn, and as it was shrunk.
    drawn: usize,
    left: usize,
    /// Smaller schedules that were tried.
    tries: u32,
    /// The faults that are left, in words.
    faults: Vec<String>,
    /// The file that replays it.
    file: Option<PathBuf>,
}

pub(super) fn run(
    lab: impl FnOnce() -> anyhow::Result<LabFolder>,
    args: &ChaosArgs,
) -> anyhow::Result<ExitCode> {
    if args.draw {
        let (fabric, schedule) = if args.simulated {
            let site = simulated::site(args, None)?;
            let schedule = site.whole.draw(args.seed);
            (site.whole.fabric, schedule)
        } else {
            live::drawn(&lab()?, args.seed)?
        };
        let faults = schedule.iter().map(|planned| named(&fabric, planned)).collect();
        print(&ScheduleFile { seed: args.seed, faults, ..ScheduleFile::default() }.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let replay = args.replay.as_deref().map(read_schedule).transpose()?;
    let outcome = if args.simulated {
        simulated::run(args, replay.as_ref())?
    } else {
        live::run(&lab()?, args, replay.as_ref())?
    };
    if let Some(report) = &args.report {
        let text = serde_json::to_string_pretty(&outcome)? + "\n";
        write(report, REPORT, &text)?;
    }
    if args.json {
        print_json(&outcome)?;
    } else {
        print(&text(&outcome, args.simulated))?;
    }
    Ok(match (outcome.ok, outcome.interrupted) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(EXIT_INTERRUPTED),
        (true, false) => ExitCode::SUCCESS,
    })
}

/// A schedule from a file, and where that lies.
struct Replay {
    path: PathBuf,
    file: ScheduleFile,
}

impl Replay {
    /// Its faults in a fabric.
    fn in_fabric(&self, fabric: &Fabric) -> anyhow::Result<Vec<Step>> {
        let resolve = |planned| resolved(fabric, planned);
        let steps = self.file.faults.iter().map(resolve).collect::<Result<Vec<_>, _>>();
        let wrong = |error| Failure::bad_input(format!("{}: {error}", self.path.display()));
        Ok(steps.map_err(|error| wrong(error).hint("it was drawn for another fabric"))?)
    }
}

fn read_schedule(path: &Path) -> anyhow::Result<Replay> {
    let name = path.display().to_string();
    let text = weft_bundle::input::read_to_string(path)
        .map_err(|error| Failure::bad_input(format!("cannot read {name}: {error}")))?;
    let file = ScheduleFile::parse(&name, &text).map_err(|error| Failure::bad_input(error.to_string()))?;
    Ok(Replay { path: path.to_owned(), file })
}

/// Where a schedule was carried out, and where what replays it is written to, if it is.
struct Place<'a> {
    /// With what the schedule names.
    fabric: &'a Fabric,
    /// As a file has it, to which `beside` is added.
    cabling: &'a Fabric,
    beside: Beside,
    report: Option<&'a Path>,
}

/// Shrinks a schedule that has found a violation, and writes what replays it.
fn found(
    Place { fabric, cabling, beside, report }: Place<'_>,
    seed: u64,
    (schedule, what): (Vec<Step>, String),
    (tries_max, mut fails): (u32, impl FnMut(&[Step]) -> Option<String>),
) -> anyhow::Result<Found> {
    let (drawn, mut last) = (schedule.len(), what);
    let (left, tries) = shrink(schedule, tries_max, |smaller| match fails(smaller) {
        Some(what) => {
            last = what;
            true
        }
        None => false,
    });
    let faults: Vec<Planned<String, String>> = left.iter().map(|planned| named(fabric, planned)).collect();
    let word = |planned: &Planned<String, String>| {
        let lasts = planned.lasts.map_or_else(String::new, |lasts| format!(" for {} s", lasts.as_secs_f64()));
        format!("at {} s: {}{lasts}", planned.at.as_secs_f64(), planned.fault)
    };
    let words = faults.iter().map(word).collect();
    let file = report
        .map(|folder| -> anyhow::Result<PathBuf> {
            write(folder, FABRIC, &cabling.write_ibnetdiscover())?;
            let topology = Some(FABRIC.to_owned());
            let schedule = ScheduleFile { title: last.clone(), topology, seed, beside, faults };
            write(folder, SCHEDULE, &schedule.to_string())
        })
        .transpose()?;
    Ok(Found { seed, what: last, drawn, left: left.len(), tries, faults: words, file })
}

fn write(report: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(report).with_context(|| format!("cannot make {}", report.display()))?;
    let path = report.join(name);
    folder::replace(&path, text.as_bytes())?;
    Ok(path)
}

/// The fabric that a schedule's file names.
fn fabric_of(replay: &Replay) -> anyhow::Result<Fabric> {
    let named = replay.file.topology.as_deref().ok_or_else(|| {
        Failure::bad_input(format!("{} names no `topology`", replay.path.display()))
            .hint("give the topology file: `weft chaos FILE --virtual --replay SCHEDULE`")
    })?;
    topology_file::load(&replay.path.parent().unwrap_or(Path::new("")).join(named))
}

/// What faults cost at worst; a dash where no process remembers.
fn costs(cost: &FaultCost) -> String {
    if cost.detected == 0 {
        return String::new();
    }
    let seconds = |nanos: Option<u64>| {
        nanos.map_or_else(|| "-".to_owned(), |nanos| format!("{:.3} s", nanos as f64 / 1e9))
    };
    format!(
        "{} cut links; worst case: detected after {}, rerouted after {}, restored after {}, {} pairs of hosts disconnected\n",
        weft_wire::count_of(cost.detected as usize, "fault"),
        seconds(cost.detected_after_ns_max),
        seconds(cost.rerouted_after_ns_max),
        seconds(cost.restored_after_ns_max),
        cost.pairs_lost_max.map_or_else(|| "-".to_owned(), |pairs| pairs.to_string()),
    )
}

fn text(outcome: &Outcome, simulated: bool) -> String {
    let count = weft_wire::count_of;
    let (schedules, faults) = (outcome.schedules as usize, outcome.faults as usize);
    let mut text = format!("{}, {}: ", count(schedules, "schedule"), count(faults, "fault"));
    let Some(found) = &outcome.violation else {
        text += if outcome.interrupted { "interrupted, no violation until then\n" } else { "no violation\n" };
        return text + &costs(&outcome.cost);
    };
    text += &format!("violation with seed {}\n{}\n", found.seed, found.what);
    text +=
        &format!("{} of {} are left after {} tries:\n", found.left, count(found.drawn, "fault"), found.tries);
    for fault in &found.faults {
        text += &format!("  {fault}\n");
    }
    text += &match &found.file {
        Some(file) => {
            let where_to = if simulated { " --virtual" } else { "" };
            format!("replay: weft chaos{where_to} --replay {}\n", file.display())
        }
        None => "--report FOLDER writes a schedule that replays it\n".to_owned(),
    };
    text
}
