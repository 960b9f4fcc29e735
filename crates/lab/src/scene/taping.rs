//! Tapes of a laboratory that runs: by whoever wants one, or by a process of its own that lives with the laboratory.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::{LabFolder, absolute};
use weft_bundle::names::HUB;
use weft_control::Role;
use weft_page::tape::{Recorder, TAPE_BYTES_MAX, TapeError};
use weft_page::{Counts, Registry, Stage, record};
use weft_process::lock::{LockError, ProcessLock};
use weft_process::{Client, log, readable, utc_now};

use crate::process::{TAPER, spawn_taper};
use crate::scene::{Guests, Seen, show};
use crate::signals::{SIGHUP, SIGINT, SIGTERM, Signals};

/// Names that are tried in a folder.
const NAMES_MAX: u32 = 10_000;
/// How often it is looked whether there is a hub.
const LOOK: Duration = Duration::from_millis(20);

/// Where a tape goes, and how large it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapeTo {
    /// Its file.
    pub path: PathBuf,
    /// Its size at most.
    pub bytes_max: u64,
}

impl TapeTo {
    /// This file, or another one of this name in the folder `to`, with the bound that tapes have.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn file_or_folder(to: &Path, name: &str) -> anyhow::Result<Self> {
        let is_folder = to.is_dir() || to.as_os_str().to_string_lossy().ends_with('/');
        let path = if is_folder { free_in(to, name)? } else { to.to_owned() };
        Ok(Self { path: absolute(&path)?, bytes_max: TAPE_BYTES_MAX })
    }

    /// Begins the tape.
    ///
    /// # Errors
    /// When its file cannot be written.
    pub fn begin(&self, lab: &str, began_ms: u64) -> anyhow::Result<Recorder<BufWriter<File>>> {
        let path = self.path.display();
        let file = File::create(&self.path)
            .map_err(|error| Failure::bad_input(format!("cannot write {path}: {error}")))?;
        Recorder::begin(BufWriter::new(file), lab, began_ms, self.bytes_max)
            .map_err(|error| self.cannot(&error))
    }

    /// Why it is not written.
    pub fn cannot(&self, error: &TapeError) -> anyhow::Error {
        Failure::new(format!("cannot write {}: {error}", self.path.display())).into()
    }
}

/// A file of a folder that is not there yet: `NAME.tape`, `NAME-2.tape` and so on.
fn free_in(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::bad_input(format!("cannot make {}: {error}", folder.display())))?;
    let of = |number: u32| match number {
        1 => folder.join(format!("{name}.tape")),
        number => folder.join(format!("{name}-{number}.tape")),
    };
    let free = (1..=NAMES_MAX).map(of).find(|path| !path.exists());
    free.ok_or_else(|| Failure::bad_input(format!("{} is full of tapes", folder.display())).into())
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taped {
    /// The tape's size.
    pub bytes: u64,
    /// Whether it ended because it has reached its bound.
    pub is_full: bool,
}

/// Tapes a laboratory until it ends, or `has_enough` says so.
///
/// # Errors
/// When the tape cannot be written, or the laboratory cannot be shown.
pub fn tape(
    folder: &LabFolder,
    to: &TapeTo,
    guests: Guests,
    has_enough: impl Fn() -> bool,
) -> anyhow::Result<Taped> {
    let mut recorder = to.begin(folder.name(), now_ms())?;
    let stage = Stage::new(Counts::new(&Registry::new()));
    // A tape has no buttons, whoever makes it.
    let seen = Seen { guests, ..Seen::default() };
    let scene = show(folder, &stage, Role::Viewer, seen)?;
    let ended = || scene.is_finished() || has_enough();
    let is_full = record(&stage, &mut recorder, ended).map_err(|error| to.cannot(&error))?;
    Ok(Taped { bytes: recorder.written(), is_full })
}

fn now_ms() -> u64 {
    utc_now().as_nanos() / 1_000_000
}

/// A tape that a thread writes, until this goes.
#[derive(Debug)]
pub struct Taping {
    thread: Option<JoinHandle<anyhow::Result<Taped>>>,
    has_enough: Arc<AtomicBool>,
}

impl Taping {
    /// Begins to tape a laboratory.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn begin(folder: &LabFolder, to: &TapeTo, guests: Guests) -> anyhow::Result<Self> {
        let has_enough = Arc::new(AtomicBool::new(false));
        let (folder, to, enough) = (folder.clone(), to.clone(), has_enough.clone());
        let run = move || tape(&folder, &to, guests, || enough.load(Ordering::Relaxed));
        let thread = std::thread::Builder::new().name("tape".into()).spawn(run);
        Ok(Self { thread: Some(thread.context("cannot start a thread")?), has_enough })
    }

    /// Ends the tape.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn end(mut self) -> anyhow::Result<Taped> {
        self.has_enough.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or_else(|| anyhow::bail!("the tape's thread has ended"))
    }
}

impl Drop for Taping {
    fn drop(&mut self) {
        self.has_enough.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the process that tapes a laboratory of this machine from its start to its end.
pub(crate) fn start(lab: &LabFolder, to: &TapeTo) -> anyhow::Result<()> {
    // Whoever wants a tape hears at once that it cannot be written.
    to.begin(lab.name(), now_ms())?;
    lab.make_locks([TAPER.to_owned()])?;
    spawn_taper(lab, &to.path, to.bytes_max).map(drop)
}

/// Runs that process. It holds a lock of the laboratory, so whoever takes that down ends it too.
pub(crate) fn run(lab: &LabFolder, to: &TapeTo) -> anyhow::Result<()> {
    let signals = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let lock = match ProcessLock::take(&lab.locks().join(TAPER)) {
        Err(LockError::Removed { .. }) => return Ok(()),
        lock => lock?,
    };
    log::log_to_stderr();
    while Client::connect(&lab.control(HUB)).is_err() {
        let is_over = !lab.exists().unwrap_or(false);
        if is_over || readable(&signals, Some(LOOK))? {
            lock.note_stop();
            return Ok(());
        }
    }
    let wanted = || readable(&signals, Some(Duration::ZERO)).unwrap_or(true);
    let taped = tape(lab, to, Guests::default(), wanted)?;
    let why = if taped.is_full { "; it has reached its bound" } else { "" };
    tracing::info!("wrote {}: {} bytes{why}", to.path.display(), taped.bytes);
    lock.note_stop();
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gets_a_tape_of_a_new_name_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let tapes = folder.path().join("tapes/");
        let names = [1, 2, 3].map(|_| {
            let to = TapeTo::file_or_folder(&tapes, "x5").unwrap();
            to.begin("x5", 0).unwrap();
            to.path.file_name().unwrap().to_str().unwrap().to_owned()
        });
        assert_eq!(names, ["x5.tape", "x5-2.tape", "x5-3.tape"]);
        let file = folder.path().join("day.tape");
        assert_eq!(TapeTo::file_or_folder(&file, "x5").unwrap().path, file);
        let nowhere = TapeTo::file_or_folder(&file.join("none"), "x5").unwrap();
        let error = nowhere.begin("x5", 0).unwrap_err();
        assert!(error.to_string().contains("cannot write"), "{error}");
    }
}
