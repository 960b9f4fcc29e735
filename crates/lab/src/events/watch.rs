//! The folder of control sockets: which processes appear, and when the laboratory goes.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::Context;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use weft_bundle::folder::LabFolder;
use weft_process::{Change, changes};

/// Watches a laboratory's control sockets.
#[derive(Debug)]
pub(crate) struct Watch {
    inotify: OwnedFd,
    /// The name of the folder of control sockets in the laboratory's.
    control: String,
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

impl Watch {
    pub(crate) fn new(lab: &LabFolder) -> anyhow::Result<Self> {
        let inotify =
            inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).context("cannot watch files")?;
        let (folder, control) = (lab.path(), lab.control_folder());
        let watch = |path: &std::path::Path, flags| {
            inotify::add_watch(&inotify, path, flags | WatchFlags::ONLYDIR)
                .with_context(|| format!("cannot watch {}", path.display()))
        };
        watch(&control, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        // A folder that something holds open goes without a word of its own; the one around it tells.
        watch(folder, WatchFlags::DELETE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF)?;
        let control = control.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { inotify, control })
    }

    /// What has changed since the last call.
    pub(crate) fn changes(&self) -> anyhow::Result<Vec<Change>> {
        let changes = match changes(&self.inotify) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Vec::new(),
            changes => changes.context("cannot read what changed")?,
        };
        let own = |change| match change {
            Change::Removed(name) => (name == self.control).then_some(Change::Gone),
            Change::Appeared(name) if name.starts_with('.') => None,
            change => Some(change),
        };
        Ok(changes.into_iter().filter_map(own).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_that_appear_and_the_end_are_seen() {
        let base = tempfile::tempdir().unwrap();
        let lab = LabFolder::of_run(&base.path().join("lab"), "x").unwrap();
        lab.prepare_for("sm").unwrap();
        let watch = Watch::new(&lab).unwrap();
        assert_eq!(watch.changes().unwrap(), []);
        let control = lab.control_folder();
        std::fs::write(control.join(".sm"), "").unwrap();
        std::fs::rename(control.join(".sm"), control.join("sm")).unwrap();
        // What else goes in the laboratory's folder is not its end.
        std::fs::write(lab.path().join("x"), "").unwrap();
        std::fs::remove_file(lab.path().join("x")).unwrap();
        assert_eq!(watch.changes().unwrap(), [Change::Appeared("sm".into())]);
        // Held open, the folder itself tells nothing.
        let _open = std::fs::File::open(&control).unwrap();
        std::fs::remove_dir_all(&control).unwrap();
        assert!(watch.changes().unwrap().contains(&Change::Gone));
    }
}
