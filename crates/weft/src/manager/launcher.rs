//! The line to the launcher, as long as there is one.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::event::{PollFd, PollFlags};
use weft_umad::launch::{self, FromLauncher, LineDecoder, ToLauncher};

use crate::lab::process::poll_for;

/// Says what happens to whoever launches; says nothing when nobody does.
#[derive(Debug)]
pub(crate) struct LauncherLine {
    stream: Option<UnixStream>,
}

impl LauncherLine {
    /// Connects to whoever launches, if anybody does.
    pub(crate) fn connect(path: Option<&Path>) -> Self {
        Self { stream: path.and_then(|path| UnixStream::connect(path).ok()) }
    }

    /// Says that this process is ready.
    pub(crate) fn ready(&mut self, name: &str) {
        self.send(&ToLauncher::Ready { agent: name.to_owned(), pid: std::process::id() });
    }

    /// Sends, or gives the line up.
    pub(crate) fn send(&mut self, message: &ToLauncher) {
        let Some(stream) = &mut self.stream else { return };
        if stream.write_all(launch::line(message).as_bytes()).is_err() {
            self.stream = None;
        }
    }

    /// Waits until the launcher says to go on, or is gone; false when `stops` says so of a desk that rings.
    pub(crate) fn wait_for_go<D: AsFd>(
        &mut self,
        desk: &mut D,
        mut stops: impl FnMut(&mut D) -> bool,
    ) -> anyhow::Result<bool> {
        let mut decoder = LineDecoder::new();
        while let Some(stream) = &mut self.stream {
            let (says, rings) = {
                let mut fds = [PollFd::new(stream, PollFlags::IN), PollFd::new(&*desk, PollFlags::IN)];
                poll_for(&mut fds, None)?;
                (!fds[0].revents().is_empty(), !fds[1].revents().is_empty())
            };
            if rings && stops(desk) {
                return Ok(false);
            }
            if !says {
                continue;
            }
            let mut bytes = [0; 256];
            match stream.read(&mut bytes) {
                Ok(0) | Err(_) => self.stream = None,
                Ok(count) => decoder.feed(bytes.get(..count).unwrap_or_default()),
            }
            match decoder.next_message() {
                Ok(Some(FromLauncher::Go)) => return Ok(true),
                Ok(None) => {}
                Err(_) => self.stream = None,
            }
        }
        Ok(true)
    }

    /// Whether there is still somebody to tell.
    pub(crate) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// What to watch for the launcher's end.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(AsFd::as_fd)
    }

    /// Reads what is there; the launcher says no more, so anything but its end is ignored.
    pub(crate) fn read_ready(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        if !matches!(stream.read(&mut [0; 256]), Ok(count) if count > 0) {
            self.stream = None;
        }
    }
}
