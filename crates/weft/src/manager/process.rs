//! The loop around a manager's machine.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use weft_machine::{Machine, Time};
use weft_metrics::{Desk, open_desk};
use weft_umad::ClientError;
use weft_umad::launch::ToLauncher;
use weft_umad::lock::ProcessLock;

use super::attachment::Attachment;
use super::eager::Eagerness;
use super::orders::Orders;
use super::{LauncherLine, Manager, News, Seat};
use crate::failure::Failure;
use crate::lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};

/// The pause after a failed attachment, doubled each time.
const BACK_OFF: std::ops::Range<Duration> = Duration::from_millis(20)..Duration::from_secs(2);

/// A manager's process.
pub(crate) struct Process<M: Manager> {
    seat: Seat,
    _lock: Option<ProcessLock>,
    stop: Signals,
    hangup: Signals,
    launcher: LauncherLine,
    orders: Option<Orders>,
    desk: Option<Desk<M::Figures>>,
}

impl<M: Manager> Process<M> {
    /// Takes the lock, the signals and the port for metrics. What is missing, the launcher is told.
    pub(crate) fn begin(seat: &Seat) -> anyhow::Result<Self> {
        let lock = seat.lock.as_deref().map(ProcessLock::take).transpose()?;
        weft_agent::log_to_stderr();
        let (stop, hangup) = (Signals::watch(&[SIGTERM, SIGINT])?, Signals::watch(&[SIGHUP])?);
        let mut launcher = LauncherLine::connect(seat.launch.as_deref());
        let desk = seat.metrics.map(serve_metrics::<M>).transpose().inspect_err(|error| {
            launcher.send(&ToLauncher::Failed { agent: M::NAME.to_owned(), reason: error.to_string() });
        })?;
        let orders = seat.orders.as_deref().map(Orders::listen).transpose()?;
        Ok(Self { seat: seat.clone(), _lock: lock, stop, hangup, launcher, orders, desk })
    }

    /// Runs the manager until a signal asks it to end, or it is done.
    pub(crate) fn run(mut self, manager: M) -> anyhow::Result<()> {
        self.launcher.ready(M::NAME);
        if self.launcher.wait_for_go(&self.stop)? {
            Loop::new(self, manager).run()?;
        }
        Ok(())
    }
}

fn serve_metrics<M: Manager>(address: SocketAddr) -> anyhow::Result<Desk<M::Figures>> {
    let served = TcpListener::bind(address).and_then(|listener| open_desk(listener, M::render));
    served.map_err(|error| {
        Failure::new(format!("cannot serve metrics on {address}: {error}"))
            .hint("end the program that has the port, or choose other ports with --metrics")
            .into()
    })
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
    /// Told to stop, and to have done so by then.
    stop_by: Option<Instant>,
    eagerness: Eagerness,
    /// The last thing that happened was an answer.
    conversing: bool,
}

/// What is there to handle.
struct Ready {
    stop: bool,
    hangup: bool,
    launcher: bool,
    client: bool,
    orders: bool,
    desk: bool,
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
            let end = self.manager.end_turn(now, &mut self.process.launcher);
            let is_time_up = self.stop_by.is_some_and(|at| at <= Instant::now() || self.client.is_none());
            if end.done || is_time_up {
                return Ok(());
            }
            self.wake_at = end.wake_at.into_iter().chain(self.stop_by).min();
            let ready = self.wait()?;
            self.conversing = ready.client;
            if ready.stop && self.process.stop.arrived() {
                tracing::info!("stopping");
                self.stop_by.get_or_insert(Instant::now() + M::STOP_PATIENCE);
                self.tell(News::Stop);
            }
            if ready.hangup && self.process.hangup.arrived() {
                self.tell(News::Hangup);
            }
            if ready.orders {
                while let Some((order, from)) = self.process.orders.as_ref().and_then(Orders::next) {
                    self.tell(News::Order(order, from));
                }
            }
            if ready.launcher {
                self.process.launcher.read_ready();
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
            if ready.desk
                && let Some(desk) = &mut self.process.desk
                && !desk.answer(|| self.manager.figures(now))
            {
                tracing::error!("the thread that serves metrics has ended");
                self.process.desk = None;
            }
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn tell(&mut self, news: News) {
        let now = self.now();
        if !matches!(news, News::Mad(_)) {
            self.manager.note(&news);
        }
        if let Some(input) = M::input(news) {
            self.manager.machine().handle_input(now, input);
        }
    }

    fn attach(&mut self) {
        match self.open() {
            Ok((client, news)) => {
                tracing::info!(?news, "attached");
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
        let opened = Attachment::open(place, M::registrations());
        let refused = |error: &anyhow::Error| {
            error.downcast_ref().is_some_and(|error| matches!(error, ClientError::Refused { .. }))
        };
        match opened {
            Err(error) if !M::NEEDS_REGISTRATIONS && refused(&error) => {
                tracing::info!(error = format!("{error:#}"), "attaching without registrations");
                Attachment::open(place, Vec::new())
            }
            opened => opened,
        }
    }

    fn detach(&mut self, error: &anyhow::Error) {
        tracing::warn!(error = format!("{error:#}"), "the attachment is gone");
        self.client = None;
        self.attach_at = Instant::now();
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
            let Some(mad) = self.manager.take(output, &mut self.process.launcher) else { continue };
            // Without an attachment the machine's own timeout says that nobody answers.
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
        let mut fds = vec![
            PollFd::new(&self.process.stop, PollFlags::IN),
            PollFd::new(&self.process.hangup, PollFlags::IN),
        ];
        let launcher = self.process.launcher.fd();
        let (mut launcher_at, mut client_at, mut desk_at) = (usize::MAX, usize::MAX, usize::MAX);
        let mut orders_at = usize::MAX;
        if let Some(orders) = &self.process.orders {
            orders_at = fds.len();
            fds.push(PollFd::new(orders, PollFlags::IN));
        }
        if let Some(launcher) = &launcher {
            launcher_at = fds.len();
            fds.push(PollFd::new(launcher, PollFlags::IN));
        }
        if let Some(client) = &self.client {
            client_at = fds.len();
            fds.push(PollFd::new(client, client.interest()));
        }
        if let Some(desk) = &self.process.desk {
            desk_at = fds.len();
            fds.push(PollFd::new(desk, PollFlags::IN));
        }
        self.eagerness.poll(&mut fds, timeout, self.conversing)?;
        let ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Ready {
            stop: ready(0),
            hangup: ready(1),
            launcher: ready(launcher_at),
            client: ready(client_at),
            orders: ready(orders_at),
            desk: ready(desk_at),
        })
    }
}
