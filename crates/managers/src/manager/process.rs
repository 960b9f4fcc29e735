//! The loop around a manager's machine.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use weft_control::event::ProcessEvent;
use weft_control::process::ProcessKind;
use weft_control::{Answer, Request};
use weft_machine::{Machine, Time};
use weft_process::{Call, EventLog, readable};
use weft_umad::ClientError;

use crate::manager::attachment::Attachment;
use crate::manager::eager::Eagerness;
use crate::manager::{Manager, News, Seat};
use crate::post::Held;

/// The pause after a failed attachment, doubled each time.
const BACK_OFF: std::ops::Range<Duration> = Duration::from_millis(20)..Duration::from_secs(2);

/// Why a manager without its desk ends.
const DESK_ENDED: &str = "the thread that serves clients has ended";

/// A manager's process.
pub struct Process<M: Manager> {
    seat: Seat,
    held: Held<M::Figures>,
    /// Calls that came before the manager began.
    calls: Vec<Call<M::Figures>>,
}

impl<M: Manager> Process<M> {
    /// Takes its post.
    pub fn begin(seat: Seat, name: &str, kind: ProcessKind) -> anyhow::Result<Self> {
        let held = seat.post.take::<M>(name, kind)?;
        Ok(Self { seat, held, calls: Vec::new() })
    }

    /// What happens to the process, and who wants to hear of it.
    pub fn events(&self) -> EventLog {
        self.held.events.clone()
    }

    /// Runs the manager until a signal asks it to end, or it is done.
    pub fn run(mut self, manager: M) -> anyhow::Result<()> {
        self.held.publish(ProcessEvent::Ready);
        if self.seat.waits && !self.wait_for_begin()? {
            self.held.note_stop();
            return Ok(());
        }
        let mut around = Loop::new(self, manager);
        around.run()?;
        around.process.held.note_stop();
        Ok(())
    }

    /// Waits until a client says to begin; false when the process is asked to stop before.
    fn wait_for_begin(&mut self) -> anyhow::Result<bool> {
        loop {
            readable(&self.held.desk, None)?;
            anyhow::ensure!(self.held.desk.take(&mut self.calls), DESK_ENDED);
            if self.calls.iter().any(|call| matches!(call, Call::Stop)) {
                return Ok(false);
            }
            // Answered in its turn, with all that was called for before.
            if self.calls.iter().any(|call| matches!(call, Call::Order(Request::Begin, _))) {
                return Ok(true);
            }
        }
    }
}

fn is_refusal(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClientError::Refused { .. }))
}

/// The manager with all that surrounds it.
struct Loop<M: Manager> {
    process: Process<M>,
    manager: M,
    start: Instant,
    client: Option<Attachment>,
    back_off: Duration,
    attach_at: Instant,
    wake_at: Option<Instant>,
    /// It was asked to stop, and has to have done so by then.
    stop_by: Option<Instant>,
    eagerness: Eagerness,
    /// The last thing that happened was an answer.
    conversing: bool,
}

/// What is there to handle.
struct Ready {
    client: bool,
    desk: bool,
    bell: bool,
}

impl<M: Manager> Loop<M> {
    fn new(process: Process<M>, manager: M) -> Self {
        let now = Instant::now();
        Self {
            process,
            manager,
            start: now,
            client: None,
            back_off: BACK_OFF.start,
            attach_at: now,
            wake_at: None,
            stop_by: None,
            eagerness: Eagerness::default(),
            conversing: false,
        }
    }

    fn run(&mut self) -> anyhow::Result<()> {
        loop {
            if self.client.is_none() && self.attach_at <= Instant::now() {
                self.attach();
            }
            self.drain();
            let now = self.now();
            let end = self.manager.end_turn(now, self.stop_by.is_some());
            let is_time_up = self.stop_by.is_some_and(|at| at <= Instant::now() || self.client.is_none());
            if end.done || is_time_up {
                return Ok(());
            }
            self.wake_at = end.wake_at.into_iter().chain(self.stop_by).min();
            let ready = self.wait()?;
            self.conversing = ready.client;
            if ready.desk {
                self.attend()?;
            }
            if ready.bell {
                let now = self.now();
                self.manager.rung(now);
            }
            if ready.client
                && let Err(error) = self.receive()
            {
                self.detach(&error);
            }
            let now = self.now();
            if self.manager.machine().poll_timeout().is_some_and(|due| due <= now) {
                self.manager.machine().handle_timeout(now);
            }
        }
    }

    /// Does what has been called for.
    fn attend(&mut self) -> anyhow::Result<()> {
        let mut calls = std::mem::take(&mut self.process.calls);
        anyhow::ensure!(self.process.held.desk.take(&mut calls), DESK_ENDED);
        let mut looks = Vec::new();
        for call in calls {
            match call {
                Call::Stop => {
                    tracing::info!("stopping");
                    self.process.held.note_stop();
                    self.process.held.publish(ProcessEvent::Stopping);
                    self.stop_by.get_or_insert(Instant::now() + M::STOP_PATIENCE);
                    self.tell(News::Stop);
                }
                Call::Hangup => self.tell(News::Hangup),
                // The client may have gone.
                Call::Order(Request::Begin, reply) => drop(reply.send(Ok(Answer::Done))),
                Call::Order(request, reply) => {
                    let now = self.now();
                    if let Some(input) = self.manager.order(request, reply) {
                        self.manager.machine().handle_input(now, input);
                    }
                }
                Call::Figures(reply) => looks.push(reply),
            }
        }
        if !looks.is_empty() {
            // What was called for before is to be seen, and one look serves all who ask at once.
            self.drain_machine();
            let figures = self.manager.figures(self.now(), self.client.is_some());
            looks.into_iter().for_each(|reply| drop(reply.send(figures.clone())));
        }
        Ok(())
    }

    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn tell(&mut self, news: News) {
        let now = self.now();
        match &news {
            News::Attached { node_guid, port_guid, .. } => {
                let (node_guid, port_guid) = ((*node_guid).into(), (*port_guid).into());
                self.process.held.publish(ProcessEvent::Attached { node_guid, port_guid });
            }
            News::Detached => {
                self.process.held.publish(ProcessEvent::Detached);
                self.manager.detached();
            }
            _ => {}
        }
        if let Some(input) = self.manager.input(news) {
            self.manager.machine().handle_input(now, input);
        }
    }

    fn attach(&mut self) {
        match self.open() {
            Ok((client, news)) => {
                if let News::Attached { node_guid, port_guid, port } = &news {
                    tracing::info!(%node_guid, %port_guid, %port, "attached");
                }
                self.client = Some(client);
                self.back_off = BACK_OFF.start;
                self.tell(news);
            }
            Err(error) => {
                if self.back_off == BACK_OFF.start {
                    tracing::warn!(error = format!("{error:#}"), "cannot attach; trying on");
                }
                self.attach_at = Instant::now() + self.back_off;
                self.back_off = (self.back_off * 2).min(BACK_OFF.end);
            }
        }
    }

    fn open(&self) -> anyhow::Result<(Attachment, News)> {
        let place = &self.process.seat.attach;
        match Attachment::open(place, M::registrations()) {
            Err(error) if !M::NEEDS_REGISTRATIONS && is_refusal(&error) => {
                tracing::info!(error = format!("{error:#}"), "attaching without registrations");
                Attachment::open(place, Vec::new())
            }
            opened => opened,
        }
    }

    fn detach(&mut self, error: &anyhow::Error) {
        tracing::warn!(error = format!("{error:#}"), "the attachment is gone");
        self.client = None;
        // Two processes of one identity must not take the attachment from each other without a pause.
        let pause = if is_refusal(error) { BACK_OFF.end } else { Duration::ZERO };
        self.attach_at = Instant::now() + pause;
        self.tell(News::Detached);
    }

    /// Takes everything that one read brings.
    fn receive(&mut self) -> anyhow::Result<()> {
        if let Some(client) = &mut self.client {
            client.read_ready()?;
        }
        while let Some(client) = &mut self.client
            && let Some(news) = client.next()?
        {
            self.tell(news);
            self.drain_machine();
        }
        Ok(())
    }

    /// Does all that the machine wants, and writes what it sends.
    fn drain(&mut self) {
        self.drain_machine();
        if let Some(client) = &mut self.client
            && let Err(error) = client.flush()
        {
            self.detach(&error);
            self.drain_machine();
        }
    }

    fn drain_machine(&mut self) {
        while let Some(output) = self.manager.machine().poll_output() {
            let Some(mad) = self.manager.take(output) else { continue };
            // Without an attachment the machine's own timeout says that no one answers.
            let sent = self.client.as_mut().map(|client| client.send(&mad));
            if let Some(Err(error)) = sent {
                tracing::error!(error = format!("{error:#}"), "cannot send");
            }
        }
    }

    /// Waits for the first of everything that can happen.
    fn wait(&mut self) -> anyhow::Result<Ready> {
        let now = self.now();
        let machine = self.manager.machine().poll_timeout();
        let machine = machine.map(|due| Duration::from_nanos(due.saturating_sub(now).as_nanos()));
        let attach = self.client.is_none().then_some(self.attach_at);
        let own = attach.into_iter().chain(self.wake_at);
        let own = own.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = machine.into_iter().chain(own).min();
        if !self.process.calls.is_empty() {
            return Ok(Ready { client: false, desk: true, bell: false });
        }
        let mut fds = vec![PollFd::new(&self.process.held.desk, PollFlags::IN)];
        let bell = self.manager.bell();
        let (client_at, bell_at) = (1, 1 + usize::from(self.client.is_some()));
        if let Some(client) = &self.client {
            fds.push(PollFd::new(client, client.interest()));
        }
        if let Some(bell) = &bell {
            fds.push(PollFd::new(bell, PollFlags::IN));
        }
        self.eagerness.poll(&mut fds, timeout, self.conversing)?;
        let ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let (client, bell) = (self.client.is_some() && ready(client_at), bell.is_some() && ready(bell_at));
        Ok(Ready { desk: ready(0), client, bell })
    }
}
