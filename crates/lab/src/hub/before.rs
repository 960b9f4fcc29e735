//! The hub before this one. No other process notes when it ended, so the file of its lock does: it is touched for as long as a hub lives.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use weft_bundle::folder::{LabFile, LabFolder};
use weft_control::Utc;
use weft_process::lock::{LastWord, last_word};
use weft_process::utc_now;

const NANOS: u64 = 1_000_000_000;

/// Takes note that the hub lives. To open the file and close it would let go of the lock.
pub(crate) fn beat(lab: &LabFolder) {
    // Where that fails, the next hub takes this one to have ended earlier.
    let _ = set(lab, utc_now());
}

fn set(lab: &LabFolder, moment: Utc) -> rustix::io::Result<()> {
    let time = Timespec::try_from(Duration::from_nanos(moment.as_nanos())).unwrap_or_default();
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, lab.place(LabFile::HubLock), &times, AtFlags::empty())
}

/// When the last hub lived still, if it has ended without a word. Must not be asked by one that has the lock.
pub(crate) fn last_beat(lab: &LabFolder) -> Option<Utc> {
    let path = lab.place(LabFile::HubLock);
    if last_word(&path).ok()? != LastWord::Runs {
        return None;
    }
    let told = path.metadata().ok()?;
    Some(Utc::from_nanos(u64::try_from(told.mtime()).ok()? * NANOS + u64::try_from(told.mtime_nsec()).ok()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use weft_process::lock::ProcessLock;

    use super::*;

    #[test]
    fn the_end_of_a_hub_that_said_nothing_is_known_by_its_last_beat() {
        let folder = tempfile::tempdir().unwrap();
        let lab = LabFolder::of_run(folder.path(), "x").unwrap();
        lab.prepare_for(weft_bundle::names::HUB).unwrap();
        let path = lab.place(LabFile::HubLock);
        assert_eq!(last_beat(&lab), None, "there was none");
        let began = utc_now();
        let lock = ProcessLock::take(&path).unwrap();
        set(&lab, Utc::from_nanos(NANOS)).unwrap();
        beat(&lab);
        drop(lock);
        assert!((began..=utc_now()).contains(&last_beat(&lab).unwrap()));
        ProcessLock::take(&path).unwrap().note_stop();
        assert_eq!(last_beat(&lab), None, "it said that it ends");
    }
}
