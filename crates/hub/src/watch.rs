//! The folder of control sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weft_process::{Change, changes};

/// Tells what changes in a folder.
pub(crate) struct Watch(AsyncFd<OwnedFd>);

impl Watch {
    /// Watches from now on.
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&inotify, folder, flags)?;
        // The descriptor is owned here and kept open, which is what the deprecation is about; the replacement is `unsafe`.
        #[expect(deprecated, reason = "see above")]
        let watched = AsyncFd::with_interest(inotify, Interest::READABLE)?;
        Ok(Self(watched))
    }

    /// Waits for changes. Cancelling loses none.
    pub(crate) async fn next(&self) -> io::Result<Vec<Change>> {
        loop {
            let mut ready = self.0.readable().await?;
            if let Ok(changes) = ready.try_io(|inotify| changes(inotify.get_ref())) {
                return changes;
            }
        }
    }
}
