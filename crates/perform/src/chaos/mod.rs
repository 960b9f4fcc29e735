//! Schedules of faults, carried out and judged.
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
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::front::Front;
use weft_bundle::folder::{self, LabFolder};
use weft_bundle::topology_file;
use weft_chaos::{Planned, named, resolved, shrink};
use weft_experiment::{Beside, ScheduleFile};
use weft_fault::FaultCost;
use weft_sim::SeededBug;
use weft_sm::LidScheme;
use weft_topology::{Fabric, NodeIndex, PortRef};

/// A fault with its place in the fabric.
type Step = Planned<NodeIndex, PortRef>;

/// Names of files in the report's folder.
const SCHEDULE: &str = "schedule.toml";
const FABRIC: &str = "fabric.topo";
const REPORT: &str = "report.json";

/// Schedules to draw or to replay, and where to carry them out.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The topology file of the fabric in virtual time; the schedule's own where it is not said.
    pub file: Option<PathBuf>,
    /// The seed of the first schedule; each further one has the next.
    pub seed: u64,
    /// The number of schedules in virtual time.
    pub schedules: u64,
    /// How long schedules begin on a laboratory.
    pub lasts: Duration,
    /// A schedule from a file instead of drawn ones.
    pub replay: Option<PathBuf>,
    /// The folder for the report, and for the schedule and the fabric of a violation.
    pub report: Option<PathBuf>,
    /// The fabric in virtual time, beside what the replayed schedule says.
    pub beside: BesideOptions,
    /// A bug that is put in on purpose, in virtual time.
    pub seeded_bug: Option<SeededBug>,
}

/// What a fabric in virtual time has beside its nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct BesideOptions {
    /// A performance manager.
    pub pm: bool,
    /// Standby subnet managers.
    pub standbys: u8,
    /// Virtual functions of every HCA, with a VM manager.
    pub vfs: Option<u32>,
    /// When virtual functions get their LIDs; prepopulated where it is not said.
    pub lids: Option<LidScheme>,
}

/// The result of all schedules.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Every schedule was survived.
    pub ok: bool,
    /// Schedules that were carried out.
    pub schedules: u64,
    /// Faults in them.
    pub faults: u64,
    /// The first seed.
    pub seed: u64,
    /// What the faults cost that took links with them.
    pub cost: FaultCost,
    /// What was wrong, and what brings it about.
    pub violation: Option<Found>,
    /// Whether a signal broke it off.
    pub interrupted: bool,
}

/// A violation.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The seed of its schedule.
    pub seed: u64,
    /// What is wrong.
    pub what: String,
    /// Faults of the schedule as it was drawn.
    pub drawn: usize,
    /// Faults of the schedule as it was shrunk.
    pub left: usize,
    /// Smaller schedules that were tried.
    pub tries: u32,
    /// The faults that are left, in words.
    pub faults: Vec<String>,
    /// The file that replays it.
    pub file: Option<PathBuf>,
}

/// The schedule of the first seed, as a file that can be replayed.
///
/// `lab`: the laboratory whose faults are drawn; without one those of the fabric in virtual time.
///
/// # Errors
/// Where there is no such fabric.
pub fn drawn(lab: Option<&LabFolder>, options: &Options) -> anyhow::Result<ScheduleFile> {
    let (fabric, schedule) = match lab {
        None => {
            let site = simulated::site(options, None)?;
            let schedule = site.whole.draw(options.seed);
            (site.whole.fabric, schedule)
        }
        Some(lab) => live::drawn(lab, options.seed)?,
    };
    let faults = schedule.iter().map(|planned| named(&fabric, planned)).collect();
    Ok(ScheduleFile { seed: options.seed, faults, ..ScheduleFile::default() })
}

/// Carries schedules out until one finds a violation, which is shrunk.
///
/// `lab`: the laboratory whose processes are broken; without one it is done in virtual time. `front` hears of progress.
///
/// # Errors
/// Where the fabric, the laboratory or the schedule to replay is not as it should be before the first fault, or the report cannot be
/// written. A laboratory that does not heal is a violation and no error.
pub fn run(front: &Front, lab: Option<&LabFolder>, options: &Options) -> anyhow::Result<Outcome> {
    let replay = options.replay.as_deref().map(read_schedule).transpose()?;
    let work = front.listener.work();
    let outcome = match lab {
        None => simulated::run(options, replay.as_ref(), work)?,
        Some(lab) => live::run(lab, options, replay.as_ref(), work)?,
    };
    if let Some(report) = &options.report {
        let text = serde_json::to_string_pretty(&outcome)? + "\n";
        write(report, REPORT, &text)?;
    }
    Ok(outcome)
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
        steps.map_err(|error| wrong(error).hint("it was drawn for another fabric"))
    }
}

fn read_schedule(path: &Path) -> anyhow::Result<Replay> {
    let name = path.display().to_string();
    let text = weft_bundle::input::given(path)?;
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

/// A schedule that has found a violation, and the violation.
struct Violation {
    seed: u64,
    schedule: Vec<Step>,
    what: String,
}

/// Shrinks a schedule that has found a violation, and writes what replays it.
fn found(
    Place { fabric, cabling, beside, report }: Place<'_>,
    Violation { seed, schedule, what }: Violation,
    tries_max: u32,
    mut fails: impl FnMut(&[Step]) -> Option<String>,
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
