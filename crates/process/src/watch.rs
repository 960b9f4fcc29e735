//! Changes in folders that inotify watches.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use rustix::fs::inotify::{ReadFlags, Reader};

/// What changed in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A file of this name appeared.
    Appeared(String),
    /// More changed than the system kept.
    Overflowed,
    /// A file of this name was removed.
    Removed(String),
    /// The folder is gone.
    Gone,
}

/// What has changed since the last call, at most a buffer of it.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when nothing has.
pub fn changes(inotify: impl AsFd) -> io::Result<Vec<Change>> {
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
