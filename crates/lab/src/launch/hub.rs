//! The hub as `up` knows it: started, listened to, and started again when it dies before the laboratory is up.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags};
use weft_bundle::config::hub::forget_start;
use weft_bundle::failure::{Failure, Interrupted};
use weft_bundle::folder::{LabFile, LabFolder};
use weft_bundle::names::HUB;
use weft_control::{Event, EventFilter, Request, Since};
use weft_process::lock::holder;
use weft_process::{Client, ClientError, poll_for, readable};

use crate::process::{last_words, spawn_hub};
use crate::signals::Signals;

/// How long the hub has to serve, and to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The looks for its socket.
const LOOK: Duration = Duration::from_millis(1);
/// Hubs that may die before the laboratory is up.
const DEATHS_MAX: u32 = 3;

/// What `up` wants to hear.
const KINDS: [&str; 9] = [
    "start-progress",
    "start-failed",
    "lab-started",
    "process-ended",
    "progress",
    "routed",
    "route-failed",
    "partitions-left-out",
    "subnet-up",
];

/// The hub's process and the connection to it.
#[derive(Debug)]
pub(crate) struct HubLine<'a> {
    lab: &'a LabFolder,
    child: Option<Child>,
    client: Option<Client>,
    deaths: u32,
}

impl<'a> HubLine<'a> {
    pub(crate) fn new(lab: &'a LabFolder) -> Self {
        Self { lab, child: None, client: None, deaths: 0 }
    }

    /// Starts a hub and listens to all that has happened.
    pub(crate) fn start(&mut self, interrupt: &mut Signals) -> anyhow::Result<()> {
        let socket = self.lab.control(HUB);
        let mut deadline = Instant::now() + PATIENCE;
        self.child = Some(spawn_hub(self.lab)?);
        loop {
            self.client =
                Client::connect(&socket).ok().map(|client| listen(client, &socket)).transpose()?.flatten();
            if self.client.is_some() {
                return Ok(());
            }
            match self.child.as_mut().map(Child::try_wait).transpose().context("cannot ask for the hub")? {
                // It has not failed by itself.
                Some(Some(status)) if status.signal().is_some() => {
                    self.note_death(status)?;
                    self.child = Some(spawn_hub(self.lab)?);
                    deadline = Instant::now() + PATIENCE;
                }
                Some(None) if Instant::now() < deadline => {}
                // Somebody else has started one.
                Some(Some(_)) if Instant::now() < deadline && self.has_hub() => {}
                _ => return Err(self.failed()),
            }
            if readable(&*interrupt, Some(LOOK))? && interrupt.arrived() {
                return Err(Interrupted::NOTHING_RUNS.into());
            }
        }
    }

    /// Whether the laboratory has a hub, whoever started it.
    fn has_hub(&self) -> bool {
        holder(&self.lab.place(LabFile::HubLock)).is_ok_and(|holder| holder.is_some())
    }

    fn failed(&self) -> anyhow::Error {
        let last = last_words(&self.lab.log(HUB));
        let last = last.strip_prefix("error: ").unwrap_or(&last);
        Failure::new(format!("the hub failed: {last}")).hint("nothing is left running")
    }

    /// Counts a death, and says that there will be another hub if there will be.
    fn note_death(&mut self, status: ExitStatus) -> anyhow::Result<()> {
        self.deaths += 1;
        if self.deaths >= DEATHS_MAX {
            let last = last_words(&self.lab.log(HUB));
            let failure =
                Failure::new(format!("the hub ended {DEATHS_MAX} times, now with {status}: {last}"));
            return Err(failure.hint("nothing is left running"));
        }
        self.lab.say(&format!("the hub ended with {status}; another one goes on"));
        forget_start(self.lab)
    }

    /// Waits for events, for an interrupt, or until `timeout` has passed. Without a hub there are no events.
    pub(crate) fn wait(
        &mut self,
        interrupt: &mut Signals,
        timeout: Option<Duration>,
    ) -> anyhow::Result<Vec<Event>> {
        let mut events = self.drain()?;
        let timeout = if events.is_empty() { timeout } else { Some(Duration::ZERO) };
        let rings = {
            let mut fds = vec![PollFd::new(&*interrupt, PollFlags::IN)];
            fds.extend(self.client.iter().map(|client| PollFd::new(client, PollFlags::IN)));
            poll_for(&mut fds, timeout)?;
            !fds[0].revents().is_empty()
        };
        if rings && interrupt.arrived() {
            return Err(Interrupted::NOTHING_RUNS.into());
        }
        events.extend(self.drain()?);
        Ok(events)
    }

    /// The events that are there.
    fn drain(&mut self) -> anyhow::Result<Vec<Event>> {
        let mut events = Vec::new();
        while let Some(client) = &mut self.client {
            match client.next_event(Duration::ZERO) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(ClientError::Closed | ClientError::Io(_)) => self.client = None,
                Err(error) => return Err(error).context("the hub cannot be understood"),
            }
        }
        Ok(events)
    }

    /// Starts another hub where one has died; that goes on where the first one stood.
    pub(crate) fn go_on(&mut self, interrupt: &mut Signals) -> anyhow::Result<()> {
        if self.client.is_some() {
            return Ok(());
        }
        if let Some(mut child) = self.child.take() {
            // It has closed its connection, and may live on all the same.
            let _ = child.kill();
            self.note_death(child.wait().context("cannot wait for the hub's end")?)?;
        }
        self.start(interrupt)
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.client = None;
        if let Some(mut child) = self.child.take() {
            // One that has ended already is what we want.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Asks a hub for its events from the beginning; nothing when it dies meanwhile.
fn listen(mut client: Client, socket: &Path) -> anyhow::Result<Option<Client>> {
    let kinds = KINDS.iter().map(|kind| (*kind).to_owned()).collect();
    let filter = EventFilter { from: Since::Start, kinds, ..EventFilter::default() };
    match client.ask(Request::Events(filter), PATIENCE) {
        Ok(_) => Ok(Some(client)),
        Err(ClientError::Closed | ClientError::Io(_)) => Ok(None),
        // It was started from another program.
        Err(error) => {
            let (own, socket) = (env!("CARGO_PKG_VERSION"), socket.display());
            let failure =
                Failure::new(format!("the hub at {socket} is not understood by weft {own}: {error}"));
            Err(failure.hint("was weft replaced meanwhile? run the same `weft up` again"))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_hub_of_another_version_is_said_to_be_one() {
        for answer in [
            r#"{"v":2,"id":1,"error":{"code":"unknown-version","message":"version 1 of the protocol is not spoken here"}}"#,
            r#"{"v":9,"id":1,"tidings":[]}"#,
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("hub");
            let listener = UnixListener::bind(&path).unwrap();
            let hub = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
                stream.write_all(format!("{answer}\n").as_bytes()).unwrap();
            });
            let error = listen(Client::connect(&path).unwrap(), &path).unwrap_err();
            hub.join().unwrap();
            let said = weft_bundle::failure::in_words(&error);
            assert!(said.contains("is not understood by weft") && said.contains("hint: "), "{said}");
        }
    }
}
