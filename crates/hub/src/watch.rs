//! The folder of control sockets.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What changed in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A file of this name appeared.
    Appeared(String),
    /// More changed than the system kept.
    Overflowed,
    /// A file of this name was removed.
    Removed(String),
    /// The folder is gone.
    Gone,
}

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
            if let Ok(changes) = ready.try_io(|inotify| read(inotify.get_ref())) {
                return changes;
            }
        }
    }
}

fn read(inotify: &OwnedFd) -> io::Result<Vec<Change>> {
    let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
    let mut reader = Reader::new(inotify, &mut buffer);
    let mut changes = Vec::new();
    loop {
        let event = match reader.next() {
            Ok(event) => event,
            Err(rustix::io::Errno::AGAIN) if !changes.is_empty() => return Ok(changes),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let flags = event.events();
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            changes.push(Change::Overflowed);
        } else if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED) {
            changes.push(Change::Gone);
        } else if let Some(name) = event.file_name().and_then(|name| name.to_str().ok()) {
            let change = if flags.contains(ReadFlags::DELETE) { Change::Removed } else { Change::Appeared };
            changes.push(change(name.to_owned()));
        }
        if reader.is_buffer_empty() {
            return Ok(changes);
        }
    }
}
