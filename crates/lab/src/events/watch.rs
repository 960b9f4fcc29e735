//! The folder of control sockets: which processes appear, and when the laboratory goes.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use anyhow::Context;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use weft_bundle::folder::LabFolder;

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A process listens.
    Appeared(String),
    /// More changed than the system kept.
    Overflowed,
    /// The laboratory is gone.
    Gone,
}

/// Watches a laboratory's control sockets.
#[derive(Debug)]
pub(crate) struct Watch {
    inotify: OwnedFd,
    /// The name of the folder of control sockets in the laboratory's.
    control: std::ffi::OsString,
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
        let control = control.file_name().unwrap_or_default().to_owned();
        Ok(Self { inotify, control })
    }

    /// What has changed since the last call.
    pub(crate) fn changes(&self) -> anyhow::Result<Vec<Change>> {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut changes = Vec::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(rustix::io::Errno::AGAIN) => return Ok(changes),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error).context("cannot read what changed"),
            };
            let (flags, name) = (event.events(), event.file_name());
            let name = name.map(|name| OsStr::from_bytes(name.to_bytes()));
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                changes.push(Change::Overflowed);
            } else if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED)
                || (flags.contains(ReadFlags::DELETE) && name == Some(self.control.as_os_str()))
            {
                changes.push(Change::Gone);
            } else if let Some(name) = name.filter(|_| !flags.contains(ReadFlags::DELETE))
                && let Some(name) = name.to_str().filter(|name| !name.starts_with('.'))
            {
                changes.push(Change::Appeared(name.to_owned()));
            }
        }
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
