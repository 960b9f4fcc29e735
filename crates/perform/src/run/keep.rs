//! Results of a series of runs so far, on disk: a recording per run, and each experiment's report.
//!
//! ```text
//!   FOLDER/EXPERIMENT/runs/….json   a recording, written as its run ends; what `--resume` reads
//!                     runs/report-files   what the report consists of
//!                     report.md …   the report of the runs that have ended
//!          index.md                 leads to all reports where there are several
//!          conditions.md            for which conditions their verdicts hold, where the series has conditions
//! ```

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_bundle::failure::Failure;
use weft_bundle::input;
use weft_experiment::{ExperimentFile, Plan, Recording, Report, RunResult};

use super::job::{Job, driver_name};

/// Rewriting a report may take one part in this many of the time.
const WRITING_SHARE: u32 = 10;

/// The list of a report's files.
const WRITTEN: &str = "runs/report-files";

/// A run's recording as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    fingerprint: Cow<'a, str>,
    recording: Cow<'a, Recording>,
}

/// Where recordings are, for the threads that make runs.
#[derive(Debug)]
pub(super) struct Store {
    folder: Option<PathBuf>,
    resume: bool,
}

impl Store {
    /// Makes the folders and tries whether they can be written, before hours of runs depend on it. Earlier recordings
    /// of these jobs go unless they are resumed; those of other variants and seeds stay.
    pub(super) fn open(
        folder: Option<&Path>,
        resume: bool,
        files: &[ExperimentFile],
        jobs: &[Job],
    ) -> anyhow::Result<Self> {
        let store = Self { folder: folder.map(Path::to_owned), resume };
        let mut stems: Vec<String> = files.iter().map(stem).collect();
        stems.sort();
        if let Some(twice) = stems.windows(2).find(|pair| pair[0] == pair[1]).filter(|_| folder.is_some()) {
            return Err(Failure::bad_input(format!("two experiments are called {}", twice[0]))
                .hint("give each a --report folder of its own"));
        }
        for (index, file) in files.iter().enumerate() {
            let Some(runs) = store.runs(&stem(file)) else { break };
            let prepare = || {
                std::fs::create_dir_all(&runs)?;
                for job in jobs.iter().filter(|job| job.file == index && !resume) {
                    match std::fs::remove_file(runs.join(name(job))) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                        _ => {}
                    }
                }
                let probe = runs.join("probe");
                std::fs::write(&probe, b"weft")?;
                std::fs::remove_file(probe)
            };
            prepare().map_err(|error: std::io::Error| {
                Failure::bad_input(format!("cannot write reports to {}: {error}", runs.display()))
                    .hint("choose another folder with --report")
            })?;
        }
        Ok(store)
    }

    /// The recording of a run that has ended before, if it is of this very plan and program.
    pub(super) fn kept(&self, file: &ExperimentFile, job: &Job, fingerprint: &str) -> Option<Recording> {
        let path = self.runs(&stem(file)).filter(|_| self.resume)?.join(name(job));
        let kept: Kept<'_> = serde_json::from_slice(&input::read(&path).ok()?).ok()?;
        (kept.fingerprint == fingerprint).then(|| kept.recording.into_owned())
    }

    /// Keeps the recording of a run that has ended.
    pub(super) fn keep(
        &self,
        file: &ExperimentFile,
        job: &Job,
        fingerprint: &str,
        recording: &Recording,
    ) -> anyhow::Result<()> {
        let Some(runs) = self.runs(&stem(file)) else { return Ok(()) };
        let kept = Kept { fingerprint: fingerprint.into(), recording: Cow::Borrowed(recording) };
        put(&runs.join(name(job)), &serde_json::to_vec(&kept)?)
    }

    fn runs(&self, stem: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(stem).join("runs"))
    }
}

/// One experiment's runs that have ended, in the order of its jobs, and its report.
struct Shelf {
    nth: Vec<usize>,
    runs: Vec<RunResult>,
    wanted: usize,
    /// Its report lacks runs that have ended.
    stale: bool,
    written: Instant,
    writing_took: Duration,
}

/// All experiments' runs that have ended.
pub(super) struct Shelves<'a> {
    folder: Option<PathBuf>,
    files: &'a [ExperimentFile],
    shelves: Vec<Shelf>,
}

impl<'a> Shelves<'a> {
    pub(super) fn new(folder: Option<&Path>, files: &'a [ExperimentFile], jobs: &[Job]) -> Self {
        let shelf = |file| Shelf {
            nth: Vec::new(),
            runs: Vec::new(),
            wanted: jobs.iter().filter(|job| job.file == file).count(),
            stale: false,
            written: Instant::now(),
            writing_took: Duration::ZERO,
        };
        let shelves = (0..files.len()).map(shelf).collect();
        Self { folder: folder.map(Path::to_owned), files, shelves }
    }

    /// Takes the result of the job at this place, and writes the experiment's report as often as that costs little.
    pub(super) fn put(&mut self, nth: usize, job: &Job, result: RunResult) -> anyhow::Result<()> {
        let shelf = &mut self.shelves[job.file];
        let at = shelf.nth.partition_point(|before| *before < nth);
        shelf.nth.insert(at, nth);
        shelf.runs.insert(at, result);
        shelf.stale = true;
        let whole = shelf.runs.len() == shelf.wanted;
        if whole || shelf.written.elapsed() >= shelf.writing_took * WRITING_SHARE {
            self.write(job.file)?;
        }
        Ok(())
    }

    /// Runs that have ended, and runs wanted.
    pub(super) fn count(&self) -> (usize, usize) {
        let ended = self.shelves.iter().map(|shelf| shelf.runs.len()).sum();
        (ended, self.shelves.iter().map(|shelf| shelf.wanted).sum())
    }

    /// Experiments of which a run has ended, with their runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = (&ExperimentFile, &[RunResult])> {
        let all = self.files.iter().zip(&self.shelves);
        all.map(|(file, shelf)| (file, shelf.runs.as_slice())).filter(|(_, runs)| !runs.is_empty())
    }

    /// All reports, with the names of their folders.
    pub(super) fn reports(&self) -> Vec<(String, Report)> {
        self.runs().map(|(file, runs)| (stem(file), Report::new(file, runs))).collect()
    }

    /// Writes what is not written yet, and a page that leads to the reports where there are several. Where to begin
    /// to read, if anything is written at all.
    pub(super) fn finish(&mut self, reports: &[(String, Report)]) -> anyhow::Result<Option<String>> {
        for file in 0..self.files.len() {
            if self.shelves[file].stale {
                self.write(file)?;
            }
        }
        let Some(folder) = &self.folder else { return Ok(None) };
        if let Some(page) = weft_experiment::conditions(reports) {
            put(&folder.join("conditions.md"), page.as_bytes())?;
        }
        let first = match reports {
            [] => return Ok(None),
            [(stem, _)] => folder.join(stem).join("report.md"),
            _ => {
                let page = folder.join("index.md");
                put(&page, weft_experiment::index(reports).as_bytes())?;
                page
            }
        };
        Ok(Some(first.display().to_string()))
    }

    fn write(&mut self, file: usize) -> anyhow::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let begun = Instant::now();
        let (experiment, shelf) = (&self.files[file], &mut self.shelves[file]);
        let report = Report::new(experiment, &shelf.runs);
        let folder = folder.join(stem(experiment));
        // A report of fewer runs has figures of its own.
        let list = folder.join(WRITTEN);
        let before = input::read_to_string(&list).unwrap_or_default();
        for name in before.lines().filter(|name| !report.files.contains_key(*name) && is_plain(name)) {
            let _ = std::fs::remove_file(folder.join(name));
        }
        let names: Vec<&str> = report.files.keys().map(String::as_str).collect();
        put(&list, names.join("\n").as_bytes())?;
        for (name, text) in &report.files {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)
                    .with_context(|| format!("cannot make {}", parent.display()))?;
            }
            let partial = (name == "report.md" && shelf.runs.len() < shelf.wanted)
                .then(|| incomplete(text, shelf.runs.len(), shelf.wanted));
            put(&path, partial.as_ref().unwrap_or(text).as_bytes())?;
        }
        (shelf.stale, shelf.written, shelf.writing_took) = (false, Instant::now(), begun.elapsed());
        Ok(())
    }
}

/// Whether a name is of a file in the folder itself.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
}

/// A page that says below its title that runs are missing.
fn incomplete(page: &str, ended: usize, wanted: usize) -> String {
    let (title, rest) = page.split_once('\n').unwrap_or((page, ""));
    format!("{title}\n\n**Incomplete: {ended} of {wanted} runs have ended.**\n{rest}")
}

/// What an experiment's folder is called.
pub(super) fn stem(file: &ExperimentFile) -> String {
    Path::new(file.name()).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into())
}

/// What a run's file is called: words for people, and a hash that keeps runs of the same words apart.
pub(super) fn name(job: &Job) -> String {
    let run = format!("{} {}", job.run, driver_name(job.driver));
    let words: String = run.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{words:.100}-{:016x}.json", hash(run.as_bytes()))
}

/// What a recording depends on: the plan with everything resolved, and the program that carries it out.
pub(super) fn fingerprint(plan: &Plan) -> String {
    let program = std::env::current_exe().and_then(std::fs::metadata);
    let program = program.map(|meta| (meta.len(), meta.modified().ok())).ok();
    let text = format!("{} {program:?} {plan:?}", env!("CARGO_PKG_VERSION"));
    format!("{:016x}", hash(text.as_bytes()))
}

/// FNV-1a of 64 bits: the same for ever, unlike the standard library's hashes.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Replaces a file as a whole, so that what is there is never half a report.
fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let written = std::fs::write(&new, bytes).and_then(|()| std::fs::rename(&new, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}
