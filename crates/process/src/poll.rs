//! Waiting for descriptors, and how many of them a process may have.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit, setrlimit};

/// poll(2), for ever without a timeout; an interruption counts as nothing being ready.
///
/// # Errors
/// What the system says, as when there is no memory.
pub fn poll_for(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    // What is longer than the system can count is for ever.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(io::Error::new(
            io::Error::from(error).kind(),
            format!("cannot wait for events: {}", io::Error::from(error)),
        )),
    }
}

/// Waits until a descriptor is readable; false when `timeout` passed first.
///
/// # Errors
/// As [`poll_for`].
pub fn readable(fd: impl AsFd, timeout: Option<Duration>) -> io::Result<bool> {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll_for(&mut fds, timeout)?;
    Ok(!fds[0].revents().is_empty())
}

/// Lets this process open as many files as it may: a large laboratory needs a descriptor or two per agent.
pub fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Best effort: where it fails, opening a file fails later with the system's own words.
    let _ = setrlimit(Resource::Nofile, limit);
}
