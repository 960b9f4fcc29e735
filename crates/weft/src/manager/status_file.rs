//! The file in which a manager says how it is.
//!
//! It is replaced as a whole. Its time of modification is the last moment at which what it says held: where nothing
//! changes it is set again each second, and where a full disk keeps news out it stands still. So a reader can tell how
//! old the news is, also of a manager that hangs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use weft_wire::printable_json;

use crate::lab::folder::replace;

/// How often a status that stands is confirmed, and one that could not be written is tried again.
const INTERVAL: Duration = Duration::from_secs(1);

/// What is older than this is not what a manager that runs would say now.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(5);

/// A manager's own end of its status file.
#[derive(Debug)]
pub(crate) struct StatusFile {
    path: Option<PathBuf>,
    failed: bool,
    next: Instant,
}

impl StatusFile {
    /// Writes nothing yet; never anything without a path.
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, failed: false, next: Instant::now() }
    }

    /// Writes what has changed, or confirms what is there; whether all that changed is written. That the file cannot
    /// be written is logged once and no reason to stop.
    pub(crate) fn write(&mut self, changed: bool, status: impl FnOnce() -> Vec<u8>) -> bool {
        let Some(path) = &self.path else { return true };
        let due = self.next <= Instant::now();
        if !due && (!changed || self.failed) {
            return !changed;
        }
        let written = if changed { replace(path, &status()) } else { confirm(path) };
        self.next = Instant::now() + INTERVAL;
        match written {
            Ok(()) => self.failed = false,
            Err(error) if !self.failed => {
                self.failed = true;
                tracing::error!("{error:#}");
            }
            Err(_) => {}
        }
        !self.failed
    }

    /// When to write again even if nothing happens.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.path.is_some().then_some(self.next)
    }
}

/// Says that what is written still holds. This needs no room on the disk.
fn confirm(path: &Path) -> anyhow::Result<()> {
    let file = File::options().write(true).open(path)?;
    Ok(file.set_modified(SystemTime::now())?)
}

/// A status as it is written.
pub(crate) fn bytes(status: &impl Serialize) -> Vec<u8> {
    let text = serde_json::to_string(status).expect("a status holds nothing that JSON cannot say");
    printable_json(&text).into_owned().into_bytes()
}

/// How long ago what a manager's file says held; `None` where there is none.
pub(crate) fn age(path: &Path) -> Option<Duration> {
    let modified = std::fs::metadata(path).and_then(|found| found.modified()).ok()?;
    // A clock that was set back makes it new, not an error.
    Some(modified.elapsed().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_grows_old_and_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.json");
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        let set_old = || File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        let due = |file: &mut StatusFile| file.next = Instant::now();
        let mut file = StatusFile::new(Some(path.clone()));
        assert!(file.write(true, || b"one".to_vec()));
        assert!(age(&path).unwrap() < STALE_AFTER);
        // Nothing new: confirmed when that is due.
        set_old();
        assert!(file.write(false, || unreachable!()));
        assert!(age(&path).unwrap() > STALE_AFTER);
        due(&mut file);
        assert!(file.write(false, || unreachable!()));
        assert!(age(&path).unwrap() < STALE_AFTER);
        // A disk without room.
        set_old();
        std::os::unix::fs::symlink("/dev/full", folder.path().join("status.json.new")).unwrap();
        assert!(!file.write(true, || b"two".to_vec()));
        due(&mut file);
        assert!(!file.write(true, || b"two".to_vec()));
        assert!(age(&path).unwrap() > STALE_AFTER);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        // Room again.
        std::fs::remove_file(folder.path().join("status.json.new")).unwrap();
        due(&mut file);
        assert!(file.write(true, || b"two".to_vec()));
        assert_eq!(
            (std::fs::read(&path).unwrap(), age(&path).unwrap() < STALE_AFTER),
            (b"two".to_vec(), true)
        );
        assert_eq!(age(&folder.path().join("nowhere")), None);
    }
}
