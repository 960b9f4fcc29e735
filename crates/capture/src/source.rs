//! The agents that packets come from.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use weft_bundle::failure::Failure;
use weft_bundle::folder::{LabFile, LabFolder};
use weft_control::agent::{Captured, Tap};
use weft_control::{Answer, ReplyBody, Request};
use weft_lab::agents::PATIENCE;
use weft_lab::signals::Signals;
use weft_process::lock::holder;
use weft_process::{Client, ClientError, poll_for};
use weft_wire::count_of;

use crate::plan::Plan;

/// How long all agents together have to tell the last packets.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// How often an agent that is not there is looked for. What it sends before it is found is not captured.
const RETRY: Duration = Duration::from_millis(50);

/// All agents of a capture.
#[derive(Debug)]
pub(crate) struct Sources {
    lab: LabFolder,
    sources: Vec<Source>,
    retry_at: Option<Instant>,
    /// Packets that agents did not tell.
    lost: u64,
}

#[derive(Debug)]
struct Source {
    agent: String,
    socket: PathBuf,
    tap: Tap,
    state: State,
    /// Packets lost in this connection, as far as it has reported.
    lost_told: u64,
    /// How many nanoseconds the agent's clock is ahead of this process's.
    ahead_ns: i64,
}

#[derive(Debug)]
enum State {
    /// There is no agent.
    Absent,
    /// By a request of this number.
    Capturing(Client, u64),
    /// Asked to tell the last packets.
    Ending(Client),
    Ended,
}

/// What a connection has come to.
enum Read {
    GoesOn,
    /// All packets were sent; this many were lost in all.
    Ended(u64),
    Gone,
}

impl Source {
    /// Asks the agent to tell packets; false when it is not running.
    fn open(&mut self) -> anyhow::Result<bool> {
        let mut client = match Client::connect(&self.socket) {
            Err(ClientError::Connect { .. }) => return Ok(false),
            connected => connected?,
        };
        let answered = client.ahead_ns(PATIENCE).and_then(|ahead_ns| {
            self.ahead_ns = ahead_ns;
            let request = client.post(Request::Capture { tap: self.tap.clone() })?;
            let line = client.next_line(PATIENCE)?.ok_or(ClientError::TimedOut(PATIENCE))?;
            Ok((request, line.body))
        });
        let request = match answered {
            Ok((request, ReplyBody::Answer(_))) => request,
            Ok((_, ReplyBody::Error(error))) | Err(ClientError::Refused(error)) => {
                return Err(Failure::new(format!("agent {} does not capture: {error}", self.agent)).into());
            }
            Ok(_) => anyhow::bail!("agent {} answers something else", self.agent),
            // It was just about to end.
            Err(ClientError::Closed | ClientError::Io(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        self.state = State::Capturing(client, request);
        self.lost_told = 0;
        Ok(true)
    }

    /// Takes what has come.
    fn read(&mut self, take: &mut impl FnMut(Captured)) -> anyhow::Result<Read> {
        let (State::Capturing(client, _) | State::Ending(client)) = &mut self.state else {
            return Ok(Read::GoesOn);
        };
        loop {
            match client.next_line(Duration::ZERO) {
                Ok(None) => return Ok(Read::GoesOn),
                Ok(Some(line)) => match line.body {
                    ReplyBody::Captured(mut captured) => {
                        self.lost_told += u64::from(captured.lost);
                        captured.time_ns = captured.time_ns.saturating_sub_signed(self.ahead_ns);
                        take(*captured);
                    }
                    ReplyBody::Answer(answer) => {
                        if let Answer::CaptureEnded(totals) = *answer {
                            return Ok(Read::Ended(totals.lost));
                        }
                    }
                    ReplyBody::Error(_) | ReplyBody::Event(_) => {}
                },
                Err(ClientError::Closed | ClientError::Io(_)) => return Ok(Read::Gone),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Sources {
    /// Begins to capture at all agents that run; none at all is an error.
    pub(crate) fn open(lab: &LabFolder, plan: Plan) -> anyhow::Result<Self> {
        let source = |(agent, tap): (String, Tap)| {
            let socket = lab.control(&agent);
            Source { agent, socket, tap, state: State::Absent, lost_told: 0, ahead_ns: 0 }
        };
        let sources = plan.taps.into_iter().map(source).collect();
        let mut sources = Self { lab: lab.clone(), sources, retry_at: None, lost: 0 };
        let absent = sources.look_for_absent()?;
        if absent == sources.sources.len() {
            return Err(
                Failure::new("none of these nodes' agents is running").hint("`weft ps` lists the processes")
            );
        }
        if absent > 0 {
            lab.say(&format!("not running yet: {}; captured once up", count_of(absent, "agent")));
        }
        Ok(sources)
    }

    /// How many agents there are.
    pub(crate) fn count(&self) -> usize {
        self.sources.len()
    }

    /// Packets that agents did not tell.
    pub(crate) fn lost(&self) -> u64 {
        self.lost + self.sources.iter().map(|source| source.lost_told).sum::<u64>()
    }

    /// Waits for packets and takes some; false when the laboratory is being taken down.
    pub(crate) fn wait(
        &mut self,
        signals: &Signals,
        timeout: Option<Duration>,
        mut take: impl FnMut(Captured),
    ) -> anyhow::Result<bool> {
        let retry = self.retry_at.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = [timeout, retry].into_iter().flatten().min();
        let mut gone = 0;
        for index in self.ready(Some(signals), timeout)? {
            gone += usize::from(matches!(self.read(index, &mut take)?, Read::Gone));
        }
        if gone > 0 {
            if self.is_being_taken_down() {
                return Ok(false);
            }
            self.lab.say(&format!("{} ended; captured again once back", count_of(gone, "agent")));
            self.retry_at = Some(Instant::now() + RETRY);
        }
        if self.retry_at.is_some_and(|at| at <= Instant::now()) {
            self.look_for_absent()?;
            return Ok(!self.is_being_taken_down());
        }
        Ok(true)
    }

    /// Lets every agent tell its last packets, and waits for them.
    pub(crate) fn end(&mut self, mut take: impl FnMut(Captured)) -> anyhow::Result<()> {
        for source in &mut self.sources {
            source.state = match std::mem::replace(&mut source.state, State::Ended) {
                State::Capturing(mut client, request) => match client.post(Request::Cancel { request }) {
                    Ok(_) => State::Ending(client),
                    Err(_) => State::Ended,
                },
                _ => State::Ended,
            };
        }
        let deadline = Instant::now() + END_PATIENCE;
        while self.sources.iter().any(|source| matches!(source.state, State::Ending(_))) {
            let left = deadline.saturating_duration_since(Instant::now());
            let ready = self.ready(None, Some(left))?;
            if ready.is_empty() && left.is_zero() {
                self.lab.say("some agents do not tell their last packets");
                break;
            }
            for index in ready {
                self.read(index, &mut take)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, index: usize, take: &mut impl FnMut(Captured)) -> anyhow::Result<Read> {
        let Some(source) = self.sources.get_mut(index) else { return Ok(Read::GoesOn) };
        let read = source.read(take)?;
        let (state, lost) = match read {
            Read::GoesOn => return Ok(read),
            Read::Ended(lost) => (State::Ended, lost),
            Read::Gone => (State::Absent, source.lost_told),
        };
        source.state = state;
        source.lost_told = 0;
        self.lost += lost;
        Ok(read)
    }

    /// The agents from which something can be read, after waiting for it.
    fn ready(&self, signals: Option<&Signals>, timeout: Option<Duration>) -> anyhow::Result<Vec<usize>> {
        let clients = self.sources.iter().enumerate().filter_map(|(index, source)| match &source.state {
            State::Capturing(client, _) | State::Ending(client) => Some((index, client)),
            _ => None,
        });
        let (indices, mut fds): (Vec<usize>, Vec<PollFd<'_>>) =
            clients.map(|(index, client)| (index, PollFd::new(client, PollFlags::IN))).unzip();
        fds.extend(signals.map(|signals| PollFd::new(signals, PollFlags::IN)));
        poll_for(&mut fds, timeout)?;
        let ready = indices.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(index, _)| index).collect())
    }

    /// Tries the agents that are not there; how many are still absent.
    fn look_for_absent(&mut self) -> anyhow::Result<usize> {
        let mut absent = 0;
        for source in self.sources.iter_mut().filter(|source| matches!(source.state, State::Absent)) {
            absent += usize::from(!source.open()?);
        }
        self.retry_at = (absent > 0).then(|| Instant::now() + RETRY);
        Ok(absent)
    }

    fn is_being_taken_down(&self) -> bool {
        let lock = self.lab.place(LabFile::DownLock);
        !lock.exists() || holder(&lock).is_ok_and(|holder| holder.is_some())
    }
}
