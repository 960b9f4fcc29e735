//! `weft run`

mod balance;
mod live;
mod marks;
mod perform;
mod virtual_time;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde::Serialize;
use weft_device::Crossbar;
use weft_experiment::{Driver, ExperimentFile, Plan, Recording, Report, RunId, RunResult};
use weft_machine::Time;

use super::Lab;
use crate::cli::{Pack, RunArgs};
use crate::failure::Failure;
use crate::lab::plan::{Wanted, WantedPm, WantedSm};
use crate::lab::{Base, start};
use crate::output::{Table, print, print_json, say};
use live::Live;
use perform::perform;
use virtual_time::Virtual;

/// Links of a laboratory whose processes may be kept waiting by traffic.
const LINK_TIMEOUT_MS: u64 = 5000;
/// How long a laboratory may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);

/// One run to be made.
struct Job {
    file: usize,
    run: RunId,
    driver: Driver,
}

pub(super) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    crate::lab::process::raise_file_limit();
    let files = read_all(args)?;
    let jobs = jobs(args, &files)?;
    let progress = progress(jobs.len() as u64);
    let (simulated, live): (Vec<&Job>, Vec<&Job>) =
        jobs.iter().partition(|job| job.driver == Driver::Virtual);
    let mut results = Vec::new();
    // Live runs have the machine to themselves.
    for job in live {
        results.push((job, one(&files, job, &progress)?));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.jobs.unwrap_or(0)).build();
    let made: Vec<anyhow::Result<(&Job, RunResult)>> = pool.context("cannot start threads")?.install(|| {
        simulated.par_iter().map(|job| one(&files, job, &progress).map(|result| (*job, result))).collect()
    });
    for result in made {
        results.push(result?);
    }
    progress.finish_and_clear();
    report(args, &files, results)
}

/// The experiments that are meant, in order of their names.
fn read_all(args: &RunArgs) -> anyhow::Result<Vec<ExperimentFile>> {
    let mut paths = Vec::new();
    for path in &args.files {
        if !path.is_dir() {
            paths.push(path.clone());
            continue;
        }
        if !args.all {
            return Err(Failure::bad_input(format!("{} is a folder", path.display()))
                .hint("`--all` runs every experiment in it")
                .into());
        }
        let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        found.sort();
        if found.is_empty() {
            return Err(Failure::bad_input(format!("{} has no experiments", path.display()))
                .hint("experiments are files that end in .toml")
                .into());
        }
        paths.append(&mut found);
    }
    paths.iter().map(|path| read(path, args.crossbar)).collect()
}

fn read(path: &Path, crossbar: Option<Crossbar>) -> anyhow::Result<ExperimentFile> {
    let name = path.display().to_string();
    let text = crate::input::read_to_string(path)
        .map_err(|error| Failure::bad_input(format!("cannot read {name}: {error}")))?;
    let mut file =
        ExperimentFile::parse(&name, &text).map_err(|error| Failure::bad_input(error.to_string()))?;
    if let Some(crossbar) = crossbar {
        file = file.with_crossbar(crossbar);
    }
    file.check(&mut load).map_err(|error| Failure::bad_input(error.to_string()))?;
    Ok(file)
}

/// The text of a topology file that another file names.
fn load(included: &str, from: &str) -> Result<String, String> {
    let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(included);
    crate::input::read_to_string(&beside).map_err(|error| error.to_string())
}

/// What is to be run, and how.
fn jobs(args: &RunArgs, files: &[ExperimentFile]) -> anyhow::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for (file, experiment) in files.iter().enumerate() {
        for (axis, _) in &args.only {
            if files.len() == 1 && !experiment.axes().iter().any(|(name, _)| name == axis) {
                let axes: Vec<String> = experiment.axes().into_iter().map(|(name, _)| name).collect();
                return Err(Failure::bad_input(format!("{} has no axis `{axis}`", experiment.name()))
                    .hint(format!("its axes are: {}", axes.join(", ")))
                    .into());
            }
        }
        let (live, simulated) = (experiment.plain().live, experiment.plain().simulated);
        let mut drivers = Vec::new();
        if live && !args.simulated {
            drivers.push(Driver::Live);
        }
        if simulated && (args.simulated || args.both || !live) {
            drivers.push(Driver::Virtual);
        }
        for run in experiment.runs().into_iter().filter(|run| is_wanted(args, run)) {
            jobs.extend(drivers.iter().map(|driver| Job { file, run: run.clone(), driver: *driver }));
        }
    }
    if jobs.is_empty() {
        return Err(Failure::bad_input("nothing is left to be run")
            .hint("--only and --seed choose among the variants and seeds of the file, --virtual wants an experiment that may be simulated")
            .into());
    }
    Ok(jobs)
}

fn is_wanted(args: &RunArgs, run: &RunId) -> bool {
    let chosen = |(axis, label): &(String, String)| {
        run.choices.iter().all(|(name, choice)| name != axis || choice == label)
    };
    // Several labels of one axis are alternatives.
    let axes = args.only.iter().map(|(axis, _)| axis);
    let fits = |axis: &String| args.only.iter().filter(|(name, _)| name == axis).any(chosen);
    axes.into_iter().all(fits) && (args.seeds.is_empty() || args.seeds.contains(&run.seed))
}

fn progress(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template("{pos}/{len} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Makes one run.
fn one(files: &[ExperimentFile], job: &Job, progress: &ProgressBar) -> anyhow::Result<RunResult> {
    let file = &files[job.file];
    let plan = file.plan(&job.run, &mut load).map_err(|error| Failure::bad_input(error.to_string()))?;
    let title = format!("{} ({})", file.name(), job.run);
    let tell = |at: Time| progress.set_message(format!("{title}: {:.1} s", at.as_secs_f64()));
    let recording = match job.driver {
        Driver::Virtual => perform(&plan, &mut Virtual::begin(&plan)?, &tell),
        Driver::Live => live(&plan, &tell),
    };
    let recording = recording.with_context(|| format!("{title} could not be run"))?;
    progress.inc(1);
    // Where no bar is drawn, a line tells of each run that has ended.
    if let Some(all) = progress.length().filter(|all| *all > 1 && progress.is_hidden()) {
        say(&format!("{}/{all} {title}, {}", progress.position(), driver_name(job.driver)));
    }
    Ok(file.result(&plan, &recording).map_err(|error| Failure::bad_input(error.to_string()))?)
}

/// Makes one run in a laboratory of its own, which ends with it.
fn live(plan: &Plan, tell: &dyn Fn(Time)) -> anyhow::Result<Recording> {
    let wanted = Wanted {
        m_key: weft_wire::MKey(0),
        fabric: &plan.fabric,
        topology: plan.file.clone(),
        sm: Some(WantedSm { at: plan.sm_at, options: plan.sm.clone(), guid2lid: None }),
        standbys: Vec::new(),
        pm: plan.pm.clone().map(|options| WantedPm { at: plan.pm_at, options }),
        metrics: None,
        device: plan.device.clone(),
        hosts: Some(plan.stack.clone()),
        cables: (plan.cable_delay, plan.cable_delays.clone()),
        pack: Pack::Devices(1),
        udp_port: None,
        link_timeout_ms: LINK_TIMEOUT_MS,
        ibsim: None,
    };
    let name = format!("run-{}", std::process::id());
    let goal = start::goal(&plan.fabric, Some(plan.sm_at.node), PATIENCE);
    start::with(&name, &wanted, goal, Instant::now(), |mut launcher| {
        let lab = Lab::load(&Base::locate().lab(&name)?)?;
        let mut stage = Live::new(plan, &mut launcher, lab)?;
        stage.begin()?;
        perform(plan, &mut stage, tell)
    })
}

fn driver_name(driver: Driver) -> &'static str {
    if driver == Driver::Live { "live" } else { "virtual" }
}

/// A line of the summary.
#[derive(Serialize)]
struct Row {
    experiment: String,
    run: String,
    driver: &'static str,
    /// Against the model.
    result: String,
    /// Printed figures that ours agree with, and how many there are.
    paper: (usize, usize),
}

#[derive(Serialize)]
struct Summary {
    runs: Vec<Row>,
    report: Option<String>,
    failures: Vec<String>,
}

/// Writes the reports, says what became of each run, and fails when something is not as expected.
fn report(
    args: &RunArgs,
    files: &[ExperimentFile],
    results: Vec<(&Job, RunResult)>,
) -> anyhow::Result<ExitCode> {
    let mut by_file: Vec<Vec<RunResult>> = files.iter().map(|_| Vec::new()).collect();
    for (job, result) in results {
        by_file[job.file].push(result);
    }
    let mut rows = Vec::new();
    let mut reports = Vec::new();
    for (file, runs) in files.iter().zip(&by_file).filter(|(_, runs)| !runs.is_empty()) {
        rows.extend(runs.iter().map(|run| row(file, run)));
        let stem =
            Path::new(file.name()).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
        reports.push((stem, Report::new(file, runs)));
    }
    let failures: Vec<String> = reports
        .iter()
        .flat_map(|(stem, report)| report.failures.iter().map(move |failure| format!("{stem}: {failure}")))
        .collect();
    let written = args.report.as_deref().map(|folder| write(folder, &reports)).transpose()?;
    let summary = Summary { runs: rows, report: written, failures };
    if args.json {
        print_json(&summary)?;
    } else {
        print(&text(&summary))?;
    }
    if summary.failures.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    summary.failures.iter().for_each(|failure| say(&format!("not as expected: {failure}")));
    Ok(ExitCode::FAILURE)
}

fn row(file: &ExperimentFile, run: &RunResult) -> Row {
    let failed = run.verdict.failures().count();
    let printed = run.verdict.findings.iter().filter_map(|finding| finding.agrees);
    Row {
        experiment: file.name().to_owned(),
        run: run.run.to_string(),
        driver: driver_name(run.driver),
        result: if failed == 0 {
            "as the model says".to_owned()
        } else {
            format!("{failed} not as expected")
        },
        paper: (printed.clone().filter(|agrees| *agrees).count(), printed.count()),
    }
}

fn text(summary: &Summary) -> String {
    let mut table = Table::new(&["experiment", "run", "driver", "result", "paper"]);
    for row in &summary.runs {
        let (agree, printed) = row.paper;
        let paper = if printed == 0 { String::new() } else { format!("{agree} of {printed} agree") };
        let (experiment, run) = (row.experiment.clone(), row.run.clone());
        table.row([experiment, run, row.driver.to_owned(), row.result.clone(), paper]);
    }
    let report = summary.report.as_ref().map(|path| format!("report: {path}\n")).unwrap_or_default();
    format!("{table}{report}")
}

/// Writes every report into a folder of its own, and a page that leads to them when there are several.
fn write(folder: &Path, reports: &[(String, Report)]) -> anyhow::Result<String> {
    let put = |path: &Path, text: &str| -> anyhow::Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    for (stem, report) in reports {
        for (name, text) in &report.files {
            put(&folder.join(stem).join(name), text)?;
        }
    }
    let first = match reports {
        [(stem, _)] => folder.join(stem).join("report.md"),
        _ => {
            let page = folder.join("index.md");
            put(&page, &weft_experiment::index(reports))?;
            page
        }
    };
    Ok(first.display().to_string())
}
