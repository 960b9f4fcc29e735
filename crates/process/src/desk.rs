//! For a driver that waits with poll(2): a thread serves the control socket and `/metrics`, takes the signals, and
//! rings when something is for the driver's loop.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use prometheus::Registry;
use tokio::runtime::{Builder, LocalOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use weft_control::process::{Condition, Identity, ProcessKind};
use weft_control::{Answer, Error, ErrorCode, Request};
use weft_metrics::{Guard, NoAnswer, Page, Source};

use crate::lock::LockFolder;
use crate::{Clock, Counts, DoorCounts, EventLog, NoCapture, Papers, Server, Service, Socket, not_here};

/// A driver that has not answered by then is busy: what it said last has to do.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// Figures that are no older are shown again: pages of a long list cost one look.
const FIGURES_AGE_MAX: Duration = Duration::from_millis(50);
/// How long an order may take, such as one that another process has to answer.
const ORDER_TIME_MAX: Duration = Duration::from_secs(30);
/// A driver's loop that is at one thing for longer is taken for stuck.
const STUCK_AFTER: Duration = Duration::from_secs(30);
/// The most calls that wait for the driver.
const CALLS_MAX: usize = 4096;

/// What a driver shows and does, as the thread knows it.
pub trait Manned: 'static {
    /// All that it shows at one moment.
    type Figures: Clone + Send + 'static;

    /// The figures as Prometheus is shown them.
    fn render(figures: &Self::Figures) -> Page;

    /// Counts up whenever Prometheus is shown something new, if that is not at every moment: see [`Source::editions`].
    fn editions(_figures: &Self::Figures) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Answers a request that only looks, from figures of this age; `None` for one that the driver itself carries out
    /// or that is for another kind of process.
    fn show(_figures: &Self::Figures, _age: Duration, _request: &Request) -> Option<Result<Answer, Error>> {
        None
    }

    /// Whether the driver itself carries a request out. It takes [`Request::Begin`] in any case.
    fn takes(_request: &Request) -> bool {
        false
    }

    /// How long a request that it carries out may take, such as one that another process has to answer.
    fn patience(_request: &Request) -> Duration {
        ORDER_TIME_MAX
    }
}

/// How a desk is set up.
#[derive(Debug)]
pub struct DeskOptions {
    /// Who the process is.
    pub identity: Identity,
    /// Its clocks.
    pub clock: Clock,
    /// Its events.
    pub events: EventLog,
    /// Its control socket; none for a process without a laboratory.
    pub control: Option<PathBuf>,
    /// Where it serves `/metrics` and `/healthz`, and to whom.
    pub metrics: Option<(TcpListener, Guard)>,
    /// What it proves itself with to others; none where it talks to none over the network.
    pub papers: Option<Arc<dyn Papers>>,
    /// What its door counts, where it has one.
    pub door: Option<DoorCounts>,
    /// The folder of its lock, with which it ends; none for a process without a laboratory.
    pub folder: Option<LockFolder>,
}

/// Something for the driver.
#[derive(Debug)]
pub enum Call<F> {
    /// SIGTERM, SIGINT or a client's `shutdown`.
    Stop,
    /// SIGHUP.
    Hangup,
    /// A client's request; the answer goes there.
    Order(Request, oneshot::Sender<Result<Answer, Error>>),
    /// Somebody looks.
    Figures(oneshot::Sender<F>),
}

/// The driver's side: readable while somebody calls.
#[derive(Debug)]
pub struct Desk<F> {
    bell: UnixStream,
    calls: mpsc::Receiver<Call<F>>,
}

impl<F> AsFd for Desk<F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl<F> Desk<F> {
    /// Does what has been called for, for a driver that carries no requests out and has nothing to read again; `figures` is what
    /// it shows. False when it is to stop.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn attend(&mut self, figures: impl Fn() -> F) -> io::Result<bool> {
        let mut calls = Vec::new();
        if !self.take(&mut calls) {
            return Err(io::Error::other("the thread that serves clients has ended"));
        }
        for call in calls {
            // A client may have gone since it asked.
            match call {
                Call::Stop => return Ok(false),
                Call::Hangup => {}
                Call::Order(_, reply) => drop(reply.send(Ok(Answer::Done))),
                Call::Figures(reply) => drop(reply.send(figures())),
            }
        }
        Ok(true)
    }

    /// Everything that has been called for; false when the thread has ended, and with it the desk's use.
    pub fn take(&mut self, calls: &mut Vec<Call<F>>) -> bool {
        // The bell does not block, and one that rings on is heard again.
        let open = !matches!(self.bell.read(&mut [0; 256]), Ok(0));
        calls.extend(self.calls.try_iter());
        open
    }
}

/// Starts the thread. It ends with the process.
///
/// # Errors
/// When the socket cannot be bound, or the system refuses threads, sockets or signals.
pub fn open_desk<M: Manned>(options: DeskOptions) -> io::Result<Desk<M::Figures>> {
    let (near, far) = UnixStream::pair()?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    let (sender, calls) = mpsc::sync_channel(CALLS_MAX);
    let (started, outcome) = mpsc::channel();
    std::thread::Builder::new().name("desk".into()).spawn(move || {
        let runtime = match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => runtime,
            Err(error) => return drop(started.send(Err(error))),
        };
        let caller = Caller::<M>::new(far, sender, &options);
        runtime.block_on(async {
            match Posts::set_up(options, caller) {
                Err(error) => drop(started.send(Err(error))),
                Ok(posts) => {
                    let _ = started.send(Ok(()));
                    posts.man().await;
                }
            }
        });
    })?;
    // A thread that ended without a word has panicked.
    outcome.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that serves has ended")))?;
    Ok(Desk { bell: near, calls })
}

/// All that the thread attends to.
struct Posts<M: Manned> {
    caller: Rc<Caller<M>>,
    server: Rc<Server<Rc<Caller<M>>>>,
    control: Option<Socket>,
    metrics: Option<(tokio::net::TcpListener, Guard)>,
    stop: [Signal; 2],
    hangup: Signal,
    folder: Option<LockFolder>,
}

impl<M: Manned> Posts<M> {
    fn set_up(options: DeskOptions, caller: Caller<M>) -> io::Result<Self> {
        let DeskOptions { identity, clock, events, control, metrics, papers, door, folder } = options;
        let caller = Rc::new(caller);
        let counts = Counts::new(&caller.registry);
        if let Some(door) = door {
            door.register(&caller.registry);
        }
        let serve = |listener: TcpListener| {
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)
        };
        let stop = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
        let hangup = signal(SignalKind::hangup())?;
        crate::early::ready();
        Ok(Self {
            server: Rc::new(Server::new(identity, clock, events, counts, caller.clone()).with_papers(papers)),
            caller,
            control: control.as_deref().map(crate::bind).transpose()?,
            metrics: metrics
                .map(|(listener, guard)| Ok::<_, io::Error>((serve(listener)?, guard)))
                .transpose()?,
            stop,
            hangup,
            folder,
        })
    }

    async fn man(self) {
        let Self { caller, server, control, metrics, stop, mut hangup, folder } = self;
        let [mut terminate, mut interrupt] = stop;
        if let Some(socket) = control {
            tokio::task::spawn_local(server.serve(socket));
        }
        if let Some((listener, guard)) = metrics {
            tokio::task::spawn_local(weft_metrics::serve(listener, guard, Shown(caller.clone())));
        }
        let mut removed = pin!(async {
            match folder {
                Some(folder) => folder.removed().await,
                None => pending().await,
            }
        });
        let mut is_removed = false;
        loop {
            let call = tokio::select! {
                _ = terminate.recv() => Call::Stop,
                () = &mut removed, if !is_removed => {
                    is_removed = true;
                    Call::Stop
                }
                _ = interrupt.recv() => Call::Stop,
                _ = hangup.recv() => Call::Hangup,
            };
            // A full desk means a stuck driver, and then only SIGKILL helps.
            let _ = caller.call(call);
        }
    }
}

/// The thread's way to the driver.
struct Caller<M: Manned> {
    bell: UnixStream,
    calls: mpsc::SyncSender<Call<M::Figures>>,
    events: EventLog,
    kind: ProcessKind,
    registry: Registry,
    last: RefCell<Option<Last<M::Figures>>>,
    /// Since when the driver has owed an answer.
    since: Cell<Option<Instant>>,
}

/// What the driver said last.
struct Last<F> {
    at: Instant,
    /// How many events there had been.
    events: u64,
    figures: F,
}

impl<M: Manned> Caller<M> {
    fn new(bell: UnixStream, calls: mpsc::SyncSender<Call<M::Figures>>, options: &DeskOptions) -> Self {
        let (events, kind) = (options.events.clone(), options.identity.kind);
        let (last, since) = (RefCell::default(), Cell::new(None));
        Self { bell, calls, events, kind, registry: Registry::new(), last, since }
    }

    fn call(&self, call: Call<M::Figures>) -> Result<(), Error> {
        self.calls.try_send(call).map_err(|error| match error {
            mpsc::TrySendError::Full(_) => busy(),
            mpsc::TrySendError::Disconnected(_) => Error::new(ErrorCode::Stopping, "the process stops"),
        })?;
        // A bell that cannot ring any louder is heard anyway.
        let _ = (&self.bell).write(&[1]);
        Ok(())
    }

    /// The driver's figures and their age: new ones, or the last when it is busy.
    async fn figures(&self) -> Result<(M::Figures, Duration), Error> {
        // Whoever has heard of an event must not be shown what was before it.
        let events = self.events.published();
        let fresh = |last: &&Last<_>| last.events == events && last.at.elapsed() <= FIGURES_AGE_MAX;
        if let Some(last) = self.last.borrow().as_ref().filter(fresh) {
            return Ok((last.figures.clone(), Duration::ZERO));
        }
        let (sender, receiver) = oneshot::channel();
        self.call(Call::Figures(sender))?;
        let asked = Instant::now();
        self.since.set(self.since.get().or(Some(asked)));
        match tokio::time::timeout(ANSWER_TIME_MAX, receiver).await {
            Ok(Ok(figures)) => {
                self.since.set(None);
                let last = Last { at: Instant::now(), events, figures: figures.clone() };
                self.last.replace(Some(last));
                Ok((figures, Duration::ZERO))
            }
            Ok(Err(_)) => Err(Error::new(ErrorCode::Stopping, "the process stops")),
            Err(_) => {
                let last = self.last.borrow();
                last.as_ref().map(|last| (last.figures.clone(), last.at.elapsed())).ok_or_else(busy)
            }
        }
    }
}

fn busy() -> Error {
    Error::new(ErrorCode::Busy, "the process is too busy to answer").hint("its log tells what it does")
}

impl<M: Manned> Service for Rc<Caller<M>> {
    type Capture = NoCapture;

    async fn answer(&self, request: Request) -> Result<Answer, Error> {
        match request {
            Request::Shutdown => self.call(Call::Stop).map(|()| Answer::Done),
            order if order == Request::Begin || M::takes(&order) => {
                let (sender, receiver) = oneshot::channel();
                let patience = M::patience(&order);
                self.call(Call::Order(order, sender))?;
                let answered = tokio::time::timeout(patience, receiver).await;
                // What was before the order is not what is after it.
                self.last.take();
                match answered {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(_)) => Err(Error::new(ErrorCode::Stopping, "the process stops")),
                    Err(_) => Err(busy()),
                }
            }
            look => {
                let (figures, age) = self.figures().await?;
                if look == Request::Metrics {
                    return Ok(Answer::Metrics { text: M::render(&figures).encode(&self.registry) });
                }
                M::show(&figures, age, &look).unwrap_or_else(|| Err(not_here(&look, self.kind)))
            }
        }
    }

    async fn condition(&self) -> (Condition, Duration) {
        let answered = self.figures().await;
        let busy = self.since.get().map(|since| since.elapsed()).unwrap_or_default();
        let condition = match answered {
            Err(error) if error.code == ErrorCode::Stopping => Condition::Stopping,
            _ if busy > STUCK_AFTER => Condition::Stuck,
            _ => Condition::Ready,
        };
        (condition, busy)
    }
}

/// What HTTP shows.
struct Shown<M: Manned>(Rc<Caller<M>>);

impl<M: Manned> Source for Shown<M> {
    async fn page(&self) -> Result<Page, NoAnswer> {
        self.0.figures().await.map(|(figures, _)| M::render(&figures)).map_err(|_| NoAnswer)
    }

    async fn editions(&self) -> Option<watch::Receiver<u64>> {
        let (figures, _) = self.0.figures().await.ok()?;
        M::editions(&figures)
    }

    async fn is_healthy(&self) -> bool {
        self.0.condition().await.0 == Condition::Ready
    }

    fn registry(&self) -> Registry {
        self.0.registry.clone()
    }
}
