//! `weft run`

mod balance;
mod busy;
mod keep;
mod live;
mod marks;
mod migrations;
mod perform;
mod summary;
mod virtual_time;

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::ProgressBar;
use weft_bundle::config::hub::HubConfig;
use weft_bundle::config::run::RunOptions;
use weft_bundle::failure::{EXIT_INTERRUPTED, Failure, Interrupted};
use weft_bundle::names::SM;
use weft_bundle::place::groups::Pack;
use weft_bundle::plan::vfs::unplugged;
use weft_bundle::plan::wanted::{Attach, Wanted, WantedPm, WantedSm, random_sa_key};
use weft_experiment::{Driver, ExperimentFile, Plan, Recording, RunId, RunResult};
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_lab::start;
use weft_lab::view::Lab;
use weft_machine::Time;
use weft_process::readable;

use crate::cli::RunArgs;
use crate::output::say;
use crate::progress;
use keep::{Shelves, Store};
use live::Live;
use perform::perform;
use summary::report;
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

/// What the thread that gathers results hears.
enum News {
    /// The job at this place has ended, or was left out as others had failed.
    Ended(usize, anyhow::Result<Option<Box<RunResult>>>),
    /// The user wants no more of it.
    Interrupted,
}

/// What the making of runs needs.
struct Runs<'a> {
    files: &'a [ExperimentFile],
    store: &'a Store,
    progress: &'a ProgressBar,
    /// What laboratories of live runs are called.
    lab: String,
    allow_busy: bool,
    /// No further run is to begin.
    stop: AtomicBool,
}

/// `lab`: what laboratories of live runs are called, one after the other.
pub(super) fn run(lab: Option<&str>, args: &RunArgs) -> anyhow::Result<ExitCode> {
    weft_process::raise_file_limit();
    let files = read_all(args)?;
    let jobs = jobs(args, &files)?;
    let store = Store::open(args.report.as_deref(), args.resume, &files, &jobs)?;
    let mut shelves = Shelves::new(args.report.as_deref(), &files, &jobs);
    let progress = bar(jobs.len() as u64);
    let (stop, allow_busy) = (AtomicBool::new(false), args.allow_busy);
    let lab = lab.map_or_else(|| format!("run-{}", std::process::id()), str::to_owned);
    let runs = Runs { files: &files, store: &store, progress: &progress, lab, allow_busy, stop };
    let (send, receive) = mpsc::channel();
    watch_signals(send.clone())?;
    let made = make(args, &runs, &jobs, &mut shelves, (&send, &receive));
    // What has ended is reported, whatever became of the rest.
    progress.finish_and_clear();
    let reported = report(args, &mut shelves);
    made.and(reported)
}

/// Reports what has ended and ends the program. Runs in virtual time that go on hold nothing that would have to be
/// cleared up, and a laboratory has ended before this is called.
fn end_interrupted(args: &RunArgs, runs: &Runs<'_>, shelves: &mut Shelves<'_>) -> ! {
    runs.progress.finish_and_clear();
    if let Err(error) = report(args, shelves) {
        crate::failure::report(&error);
    }
    let (ended, wanted) = shelves.count();
    let rest = if args.report.is_some() { "; continue with --resume" } else { "" };
    say(&format!("interrupted: {ended} of {wanted} runs have ended{rest}"));
    std::process::exit(EXIT_INTERRUPTED.into())
}

/// Tells of interrupts from now on; they end nothing of themselves any more.
fn watch_signals(send: mpsc::Sender<News>) -> anyhow::Result<()> {
    let mut signals = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let watch = move || {
        while readable(&signals, None).is_ok() {
            if signals.arrived() && send.send(News::Interrupted).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(watch).context("cannot start a thread")?;
    Ok(())
}

/// Makes all runs. Each result is on its shelf when the next is waited for.
fn make(
    args: &RunArgs,
    runs: &Runs<'_>,
    jobs: &[Job],
    shelves: &mut Shelves<'_>,
    (send, receive): (&mpsc::Sender<News>, &mpsc::Receiver<News>),
) -> anyhow::Result<()> {
    // Live runs have the machine to themselves.
    for (nth, job) in jobs.iter().enumerate().filter(|(_, job)| job.driver == Driver::Live) {
        match runs.one(job) {
            Ok(result) => shelves.put(nth, job, result)?,
            Err(error) if error.is::<Interrupted>() => end_interrupted(args, runs, shelves),
            Err(error) => return Err(error),
        }
        if matches!(receive.try_recv(), Ok(News::Interrupted)) {
            end_interrupted(args, runs, shelves);
        }
    }
    let live = jobs.iter().filter(|job| job.driver == Driver::Live).count();
    let simulated = jobs.iter().enumerate().filter(|(_, job)| job.driver == Driver::Virtual);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.jobs.unwrap_or(0)).build();
    pool.context("cannot start threads")?.in_place_scope(|scope| {
        for (nth, job) in simulated {
            let send = send.clone();
            scope.spawn(move |_| {
                let stopped = runs.stop.load(Ordering::Relaxed);
                let result =
                    if stopped { Ok(None) } else { runs.one_or_panic(job).map(|run| Some(Box::new(run))) };
                // Nobody listens any more when the program ends.
                let _ = send.send(News::Ended(nth, result));
            });
        }
        let mut failed = None;
        for _ in 0..jobs.len() - live {
            let taken = match receive.recv().context("no thread makes runs any more")? {
                News::Interrupted => end_interrupted(args, runs, shelves),
                News::Ended(_, Ok(None)) => Ok(()),
                News::Ended(nth, Ok(Some(result))) => shelves.put(nth, &jobs[nth], *result),
                News::Ended(_, Err(error)) => Err(error),
            };
            if let Err(error) = taken {
                runs.stop.store(true, Ordering::Relaxed);
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    })
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
    paths.iter().map(|path| read(path, args)).collect()
}

fn read(path: &Path, args: &RunArgs) -> anyhow::Result<ExperimentFile> {
    let name = path.display().to_string();
    let text = weft_bundle::input::read_to_string(path)
        .map_err(|error| Failure::bad_input(format!("cannot read {name}: {error}")))?;
    let file = match args.profile {
        Some(profile) => ExperimentFile::parse_with_profile(&name, &text, profile),
        None => ExperimentFile::parse(&name, &text),
    };
    let mut file = file.map_err(|error| Failure::bad_input(error.to_string()))?;
    if let Some(crossbar) = args.crossbar {
        file = file.with_crossbar(crossbar);
    }
    file.check(&mut load).map_err(|error| Failure::bad_input(error.to_string()))?;
    Ok(file)
}

/// The text of a topology file that another file names.
fn load(included: &str, from: &str) -> Result<String, String> {
    let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(included);
    weft_bundle::input::read_to_string(&beside).map_err(|error| error.to_string())
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
        return Err(Failure::bad_input("no run matches --only and --seed")
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

fn bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), progress::target());
    bar.set_style(progress::style("{pos}/{len} {msg} {elapsed}"));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

impl Runs<'_> {
    /// The same as [`Runs::one`], where a panic is an error: the series waits for the end of every run.
    fn one_or_panic(&self, job: &Job) -> anyhow::Result<RunResult> {
        let made = std::panic::catch_unwind(AssertUnwindSafe(|| self.one(job)));
        let name = self.files[job.file].name();
        made.unwrap_or_else(|_| {
            Err(anyhow::anyhow!("{name} ({}) ended in a panic, a fault of weft", job.run))
        })
    }

    /// Makes a live run, once the machine is quiet enough for a valid one.
    fn live(&self, plan: &Plan, title: &str, tell: &dyn Fn(Time)) -> anyhow::Result<Recording> {
        if !self.allow_busy {
            busy::wait_until_quiet(|waits| self.progress.set_message(format!("{title}: {waits}")))?;
        }
        in_laboratory(&self.lab, plan, tell)
    }

    /// Makes one run, or takes it from an earlier series; its recording is kept before this returns.
    fn one(&self, job: &Job) -> anyhow::Result<RunResult> {
        let file = &self.files[job.file];
        let plan = file.plan(&job.run, &mut load).map_err(|error| Failure::bad_input(error.to_string()))?;
        let title = format!("{} ({})", file.name(), job.run);
        let tell = |at: Time| self.progress.set_message(format!("{title}: {:.1} s", at.as_secs_f64()));
        let fingerprint = keep::fingerprint(&plan);
        let (recording, how) = match self.store.kept(file, job, &fingerprint) {
            Some(recording) => (recording, ", as before"),
            None => {
                let recording = match job.driver {
                    Driver::Virtual => perform(&plan, &mut Virtual::begin(&plan)?, &tell),
                    Driver::Live => self.live(&plan, &title, &tell),
                };
                let recording = recording.with_context(|| format!("{title} could not be run"))?;
                self.store.keep(file, job, &fingerprint, &recording)?;
                (recording, "")
            }
        };
        self.progress.inc(1);
        // Where no bar is drawn, a line tells of each run that has ended.
        if let Some(all) = self.progress.length().filter(|all| *all > 1 && self.progress.is_hidden()) {
            say(&format!("{}/{all} {title}, {}{how}", self.progress.position(), driver_name(job.driver)));
        }
        Ok(file.result(&plan, &recording).map_err(|error| Failure::bad_input(error.to_string()))?)
    }
}

/// Makes one run in a laboratory of its own, which ends with it.
fn in_laboratory(name: &str, plan: &Plan, tell: &dyn Fn(Time)) -> anyhow::Result<Recording> {
    let mut sm = plan.sm.clone();
    let adapters = plan.vms.as_ref().map(|vms| vms.adapters.as_slice()).unwrap_or_default();
    let is_dynamic = plan.vms.as_ref().is_some_and(|vms| vms.is_dynamic);
    if plan.vms.is_some() {
        sm.sa_key = random_sa_key();
    }
    let wanted = Wanted {
        m_key: weft_wire::MKey(0),
        fabric: &plan.fabric,
        adapters,
        empty_slots: is_dynamic,
        slots_qp0: true,
        topology: plan.file.clone(),
        sa_key: sm.sa_key,
        sm: Some(WantedSm { at: plan.sm_at, options: sm }),
        standbys: Vec::new(),
        opensms: Vec::new(),
        pms: plan.pm.clone().map(|options| WantedPm { at: plan.pm_at, options }).into_iter().collect(),
        doors: std::collections::BTreeMap::new(),
        vmms: plan.vms.iter().map(|vms| vms.vmm_at).collect(),
        metrics: None,
        metrics_port: None,
        device: plan.device.clone(),
        hosts: Some(plan.stack.clone()),
        cables: (plan.cable_delay, plan.cable_delays.clone()),
        pack: Pack::Devices(1),
        udp_port: None,
        link_timeout_ms: Some(LINK_TIMEOUT_MS),
        hosted: None,
        attach: Attach::Unix,
        ibsim: None,
    };
    let empty = adapters.iter().filter(|_| is_dynamic).flat_map(|adapter| adapter.vfs.iter().copied());
    let manager = [(SM.to_owned(), plan.sm_at)];
    let goal = start::goal(&unplugged(&plan.fabric, empty), manager, PATIENCE);
    start::with(
        (&crate::front::base(), name),
        &start::From::Plan(&wanted),
        (&RunOptions::default(), HubConfig::default()),
        goal,
        Instant::now(),
        |mut launcher| {
            let lab = Lab::load(&crate::front::base().lab(name)?)?;
            let mut stage = Live::new(plan, &mut launcher, lab)?;
            stage.begin()?;
            perform(plan, &mut stage, tell)
        },
    )
}

fn driver_name(driver: Driver) -> &'static str {
    if driver == Driver::Live { "live" } else { "virtual" }
}
