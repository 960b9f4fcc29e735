//! Experiments, in series: each run on processes or in virtual time, its recording kept, and its report written.
//!
//! ```text
//!   files ──▶ jobs ──▶ live runs, one after the other; runs in virtual time, on all cores ──▶ shelves ──▶ reports, summary
//! ```

mod balance;
mod busy;
mod job;
mod keep;
mod laboratory;
mod live;
mod marks;
mod migrations;
mod stage;
mod summary;
mod tapes;
mod virtual_time;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use anyhow::Context;
use weft_bundle::failure::{Failure, Interrupted};
use weft_bundle::folder::Base;
use weft_device::{Crossbar, LaneShare, Profile};
use weft_experiment::{Driver, ExperimentFile, Plan, Recording, RunResult};
use weft_lab::scene::TapeTo;
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_machine::Time;
use weft_process::readable;

use job::{Job, driver_name, jobs, load, read_all};
use keep::{Shelves, Store};
use laboratory::in_laboratory;
use stage::perform;
use tapes::Tapes;
use virtual_time::Virtual;

pub use summary::{Row, Summary};

/// The runs to make, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Experiment files, or folders of them.
    pub files: Vec<PathBuf>,
    /// Run every experiment of the folders; without it a folder is an error.
    pub all: bool,
    /// The folder for recordings and reports.
    pub report: Option<PathBuf>,
    /// Tape each run: a file where there is one run, or a folder.
    pub tape: Option<PathBuf>,
    /// Take recordings of an earlier series from there.
    pub resume: bool,
    /// Run in virtual time instead of on processes.
    pub simulated: bool,
    /// Run on processes and in virtual time.
    pub both: bool,
    /// Run live on a busy machine, too.
    pub allow_busy: bool,
    /// Choices of variant axes: name of the axis, and label. Several labels of one axis are alternatives.
    pub only: Vec<(String, String)>,
    /// The seeds to run; all of each file where there are none.
    pub seeds: Vec<u64>,
    /// The crossbar of all switches, instead of the files'.
    pub crossbar: Option<Crossbar>,
    /// What becomes of the share of a link that a lane does not use, instead of what the files say.
    pub lane_share: Option<LaneShare>,
    /// Run under further conditions, to see for which the verdicts hold.
    pub conditions: bool,
    /// Hardware whose constants hold where the files give no number.
    pub profile: Option<&'static Profile>,
    /// Concurrent runs in virtual time: as many as there are cores where it is not said.
    pub jobs: Option<usize>,
}

/// Hears how far a series is, from all of its threads.
pub trait Progress: fmt::Debug + Send + Sync {
    /// That many runs are to be made.
    fn begins(&self, runs: usize);
    /// Where a run is. Called often.
    fn is_at(&self, text: &str);
    /// A run has ended.
    fn has_ended(&self, text: &str);
}

/// The result of a series.
#[derive(Debug)]
pub struct Outcome {
    /// The runs that have ended; an error where their reports cannot be written.
    pub summary: anyhow::Result<Summary>,
    /// Why not all have, if so.
    pub stopped: Option<Stop>,
}

/// The early end of a series.
#[derive(Debug)]
pub enum Stop {
    /// A signal has broken it off.
    Interrupted {
        /// Runs that have ended.
        ended: usize,
        /// Runs that were to be made.
        wanted: usize,
    },
    /// A run could not be made; the first, if several could not.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// What the thread that gathers results hears.
enum News {
    /// The job at this place has ended, or was left out as others had failed.
    Ended(usize, anyhow::Result<Option<Box<RunResult>>>),
    /// The user wants no more of it.
    Interrupted,
}

/// What the making of runs needs.
struct Runs {
    files: Vec<ExperimentFile>,
    jobs: Vec<Job>,
    store: Store,
    progress: Arc<dyn Progress>,
    /// The folder of laboratories of live runs, and their name.
    base: Base,
    lab: String,
    allow_busy: bool,
    tapes: Tapes,
    /// No further run is to begin.
    stop: AtomicBool,
    /// No one waits for the runs that go on.
    abandoned: AtomicBool,
}

/// Makes all runs of some experiments. SIGINT, SIGTERM and SIGHUP break it off; they have no other effect on this process from then on.
///
/// `lab`: the name of live runs' laboratories, which come one after the other.
///
/// # Errors
/// Where no run begins: files or options are wrong, or reports cannot be written.
pub fn run(
    base: &Base,
    lab: &str,
    options: &Options,
    progress: Arc<dyn Progress>,
) -> anyhow::Result<Outcome> {
    weft_process::raise_file_limit();
    let files = read_all(options)?;
    let jobs = jobs(options, &files)?;
    let store = Store::open(options.report.as_deref(), options.resume, &files, &jobs)?;
    progress.begins(jobs.len());
    let (base, lab, allow_busy) = (base.clone(), lab.to_owned(), options.allow_busy);
    let [stop, abandoned] = [false; 2].map(AtomicBool::new);
    let tapes = Tapes::of(options.tape.as_deref(), jobs.len())?;
    let runs = Runs { files, jobs, store, progress, base, lab, allow_busy, tapes, stop, abandoned };
    let runs = Arc::new(runs);
    let mut shelves = Shelves::new(options.report.as_deref(), &runs.files, &runs.jobs);
    let (send, receive) = mpsc::channel();
    watch_signals(send.clone())?;
    let stopped = make(options, &runs, &mut shelves, &send, &receive).err();
    // What has ended is reported, whatever became of the rest.
    Ok(Outcome { summary: Summary::of(&mut shelves), stopped })
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
    options: &Options,
    runs: &Arc<Runs>,
    shelves: &mut Shelves<'_>,
    send: &mpsc::Sender<News>,
    receive: &mpsc::Receiver<News>,
) -> Result<(), Stop> {
    let of = |driver| (0..).zip(&runs.jobs).filter(move |(_, job)| job.driver == driver);
    // Live runs have the machine to themselves.
    for (nth, job) in of(Driver::Live) {
        match runs.one(job) {
            Ok(result) => shelves.put(nth, job, result)?,
            Err(error) if error.is::<Interrupted>() => return Err(runs.interrupted(shelves)),
            Err(error) => return Err(error.into()),
        }
        if matches!(receive.try_recv(), Ok(News::Interrupted)) {
            return Err(runs.interrupted(shelves));
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs.unwrap_or(0)).build();
    let pool = pool.context("cannot start threads")?;
    for (nth, _) in of(Driver::Virtual) {
        let (runs, send) = (runs.clone(), send.clone());
        pool.spawn(move || {
            let stopped = runs.stop.load(Ordering::Relaxed);
            let made = || runs.one_or_panic(&runs.jobs[nth]).map(|run| Some(Box::new(run)));
            // No one listens any more after an interrupt.
            let _ = send.send(News::Ended(nth, if stopped { Ok(None) } else { made() }));
        });
    }
    let mut failed = None;
    for _ in of(Driver::Virtual) {
        let taken = match receive.recv().context("no thread makes runs any more")? {
            News::Interrupted => return Err(runs.interrupted(shelves)),
            News::Ended(_, Ok(None)) => Ok(()),
            News::Ended(nth, Ok(Some(result))) => shelves.put(nth, &runs.jobs[nth], *result),
            News::Ended(_, Err(error)) => Err(error),
        };
        if let Err(error) = taken {
            runs.stop.store(true, Ordering::Relaxed);
            failed.get_or_insert(error);
        }
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
}

impl Runs {
    /// Leaves runs in virtual time to themselves, which end soon and hold nothing that would have to be cleared up. A live run's
    /// laboratory has ended before this is called.
    fn interrupted(&self, shelves: &Shelves<'_>) -> Stop {
        self.stop.store(true, Ordering::Relaxed);
        self.abandoned.store(true, Ordering::Relaxed);
        let (ended, wanted) = shelves.count();
        Stop::Interrupted { ended, wanted }
    }

    /// The same as [`Runs::one`], where a panic is an error: the series waits for the end of every run.
    fn one_or_panic(&self, job: &Job) -> anyhow::Result<RunResult> {
        let made = std::panic::catch_unwind(AssertUnwindSafe(|| self.one(job)));
        let name = self.files[job.file].name();
        made.unwrap_or_else(|_| {
            Err(anyhow::anyhow!("{name} ({}) ended in a panic, a fault of weft", job.run))
        })
    }

    /// Makes a live run, once the machine is quiet enough for a valid one.
    fn live(
        &self,
        plan: &Plan,
        title: &str,
        tape: Option<&TapeTo>,
        tell: &dyn Fn(Time) -> anyhow::Result<()>,
    ) -> anyhow::Result<Recording> {
        if !self.allow_busy {
            busy::wait_until_quiet(|waits| self.progress.is_at(&format!("{title}: {waits}")))?;
        }
        in_laboratory(&self.base, &self.lab, plan, tape, tell)
    }

    /// Makes one run, or takes it from an earlier series; its recording is kept before this returns.
    fn one(&self, job: &Job) -> anyhow::Result<RunResult> {
        let file = &self.files[job.file];
        let plan = file.plan(&job.run, &mut load).map_err(|error| Failure::bad_input(error.to_string()))?;
        let title = format!("{} ({})", file.name(), job.run);
        let tell = |at: Time| {
            if self.abandoned.load(Ordering::Relaxed) {
                return Err(Interrupted::NO_RESULT.into());
            }
            self.progress.is_at(&format!("{title}: {:.1} s", at.as_secs_f64()));
            Ok(())
        };
        let fingerprint = keep::fingerprint(&plan);
        let (recording, how) = match self.store.kept(file, job, &fingerprint) {
            Some(recording) => (recording, ", as before"),
            None => {
                let tape = self.tapes.to(file, job)?;
                let tape = tape.as_ref();
                let recording = match job.driver {
                    Driver::Virtual => perform(&plan, &mut Virtual::begin(&plan, tape)?, &tell),
                    Driver::Live => self.live(&plan, &title, tape, &tell),
                };
                let recording = recording.with_context(|| format!("{title} could not be run"))?;
                self.store.keep(file, job, &fingerprint, &recording)?;
                (recording, "")
            }
        };
        self.progress.has_ended(&format!("{title}, {}{how}", driver_name(job.driver)));
        Ok(file.result(&plan, &recording).map_err(|error| Failure::bad_input(error.to_string()))?)
    }
}
