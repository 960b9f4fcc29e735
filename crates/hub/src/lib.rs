//! A laboratory's hub: starts and watches its processes, collects their events, passes requests on, and starts again what failed.
//!
//! ```text
//!   control/sm ──events──┐                       ┌── control/hub ──▶ clients: events, lab-status, relay
//!   control/pm ──events──┼─▶ Roster, EventLog ───┤
//!   control/a0 ──events──┘      │                └── HTTP ──▶ /metrics /healthz /status /events /sd
//!                               └─▶ Start, Restarts ──▶ Lab::spawn, Lab::start
//! ```
//!
//! A hub starts the processes, but needs not be their parent. It finds them by their control sockets in one folder, which it
//! watches, and knows of an end by the hang-up of the one connection that it has to each. So a hub can end and another one
//! go on at any time, also while the laboratory starts; MADs never pass it. [`Roster`], [`Start`], [`Restarts`] and
//! [`heard`] know neither sockets nor clocks; [`run`] drives them.

mod admission;
mod faults;
mod flows;
mod gone;
pub mod heard;
mod http;
mod metrics;
pub mod query;
pub mod restarts;
pub mod roster;
mod service;
mod shared;
pub mod start;
mod starter;
mod talk;
mod targets;
mod tend;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Child;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, Semaphore};
use weft_control::agent::{PlacedCable, PortEnd};
use weft_control::event::{LabEvent, ProcessEvent};
use weft_control::hub::{EndKind, ProcessState, RestartPolicy};
use weft_control::process::{Identity, ProcessKind};
use weft_control::{Answer, EventKind, HexGuid, PastPlace, Utc};
use weft_metrics::Guard;
use weft_process::{Change, Clock, Counts, DoorCounts, EventLog, Papers, Server, bind, utc_now};

pub use restarts::Restarts;
pub use roster::Roster;
pub use service::RELAYS_MAX;
pub use start::{Start, StartOptions};
pub use targets::Target;

use flows::Flows;
use gone::GoneVms;
use metrics::Metrics;
use service::Desk;
use shared::{Shared, State};
use tend::Tender;
use watch::Watch;

/// How often the hub looks after processes that it cannot hear.
const SILENT_LOOK: Duration = Duration::from_secs(2);
/// How often it takes note that it lives.
pub const BEAT: Duration = Duration::from_secs(1);

/// What a process has left of its life, apart from its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// It lives.
    Alive,
    /// It has ended.
    Ended(EndKind),
    /// It was never started.
    NeverStarted,
}

/// Why a laboratory cannot do what its hub asks, for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LabError(String);

impl From<String> for LabError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for LabError {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// What a hub cannot know of itself: how processes are found dead, and how they are started.
pub trait Lab: Send + Sync + 'static {
    /// What a process has left: of a remote one nothing is known here.
    fn trace(&self, _process: &str) -> Trace {
        Trace::NeverStarted
    }

    /// Whether the laboratory is being taken down: then nothing is started any more.
    fn is_going_down(&self) -> bool {
        false
    }

    /// Starts a process that is to wait for the word to begin, and does not wait for it.
    ///
    /// # Errors
    /// Says why it cannot be started, for people.
    fn spawn(&self, process: &str) -> Result<Child, LabError> {
        self.start(process)
    }

    /// Wall-clock nanoseconds in one nanosecond of fabric time, where packets take time.
    fn dilation(&self) -> Option<u32> {
        None
    }

    /// Takes note that the laboratory has started: another hub does not do it again.
    fn note_start(&self) {}

    /// Takes note that the hub lives, for the next one. Called every [`BEAT`].
    fn beat(&self);

    /// Keeps a list of revoked identities, as PEM text, for a hub that begins later.
    ///
    /// # Errors
    /// Says why it cannot, for people.
    fn keep_revoked(&self, list: &str) -> Result<(), LabError>;

    /// Keeps the journal of flows, as JSON, for a hub that begins later.
    ///
    /// # Errors
    /// Says why it cannot, for people.
    fn keep_flows(&self, json: &str) -> Result<(), LabError>;

    /// The journal of flows, where there is one.
    fn kept_flows(&self) -> Option<String>;

    /// A piece of how the laboratory was in the last minutes, as an answer to `past`.
    fn past(&self, from: PastPlace) -> Answer {
        Answer::Past { from, text: String::new(), next: None }
    }

    /// Reads again of which processes the laboratory consists; from now on these can be started.
    ///
    /// # Errors
    /// Says why that cannot be read, for people.
    fn plan(&self) -> Result<Vec<(String, ProcessKind)>, LabError>;

    /// The processes that serve metrics, other than the hub: those of the newest plan, whether or not they run.
    ///
    /// # Errors
    /// Says why that cannot be read, for people.
    fn targets(&self) -> Result<Arc<[Target]>, LabError>;

    /// Writes down which cables agents were ordered to take out and to put in.
    ///
    /// # Errors
    /// Says why that cannot be, for people.
    fn write_cables(&self, taken_out: &[[PortEnd; 2]], put_in: &[PlacedCable]) -> Result<(), LabError>;

    /// Whether an agent may tell events of a node with this GUID and description, as far as they are said.
    fn may_tell_of(&self, agent: &str, node: Option<HexGuid>, description: Option<&str>) -> bool;

    /// A process has said who it is, for the first time or in another life. Must not wait.
    fn met(&self, _process: &str) {}

    /// Whether its processes are started by its hub.
    fn starts_processes(&self) -> bool {
        false
    }

    /// Starts a process again, and waits until it has begun. The hub waits for the process's end.
    ///
    /// # Errors
    /// Says why it does not run, for people.
    fn start(&self, process: &str) -> Result<Child, LabError>;
}

/// How a hub is set up.
#[derive(Debug)]
pub struct Options {
    /// The hub's identity.
    pub identity: Identity,
    /// Its clocks.
    pub clock: Clock,
    /// The folder of all control sockets, the hub's own among them.
    pub folder: PathBuf,
    /// The processes that the laboratory was planned with.
    pub expected: Vec<(String, ProcessKind)>,
    /// How it starts the laboratory; nothing where that has been done.
    pub start: Option<StartOptions>,
    /// Which processes it starts again.
    pub restart: RestartPolicy,
    /// Where it serves HTTP, and to whom.
    pub http: Option<(TcpListener, Guard)>,
    /// What it proves itself with to others, and verifies lists of revoked identities with.
    pub papers: Arc<dyn Papers>,
    /// What its door counts, where it has one.
    pub door: Option<DoorCounts>,
    /// The identities that are revoked, as PEM text.
    pub revoked: Option<String>,
    /// When the hub before it lived still, if that has ended without a word.
    pub before: Option<Utc>,
}

/// Runs a hub until SIGTERM, SIGINT, a client's `shutdown`, or the folder's end. `ready` is called when it serves.
///
/// Needs a local runtime of tokio with all drivers.
///
/// # Errors
/// When the folder cannot be watched, or the system refuses sockets or signals.
pub async fn run(options: Options, lab: Arc<dyn Lab>, ready: impl FnOnce()) -> io::Result<()> {
    let Options { identity, clock, folder, expected, start, restart, http, papers, door, revoked, before } =
        options;
    let stops = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    weft_process::early::ready();
    let children = signal(SignalKind::child())?;
    // Watched before it is read, so that nothing falls between.
    let watch = Watch::new(&folder)?;
    let log = EventLog::merging(&identity.name, clock);
    let mut roster = Roster::default();
    let now = utc_now();
    expected.iter().for_each(|(name, kind)| roster.expect(name, *kind, now));
    let start = start.map(|options| Start::new(&expected, options, Duration::ZERO));
    let starts_lab = start.is_some();
    let state = State {
        roster,
        restarts: Restarts::new(restart),
        start: start.unwrap_or_else(Start::over),
        children: BTreeMap::new(),
        gone_vms: GoneVms::default(),
        revoked: revoked.map(Arc::from),
    };
    let shared = Arc::new(Shared::new(lab, identity.clone(), log.clone(), papers.clone(), state));
    let Identity { kind, version, pid, .. } = identity.clone();
    shared.tell(EventKind::Process(ProcessEvent::Started { kind, version: version.clone(), pid }));
    let registry = prometheus::Registry::new();
    let counts = Counts::new(&registry);
    if let Some(door) = door {
        door.register(&registry);
    }
    let metrics = Arc::new(Metrics::new(registry, version));
    let tender = Tender::new(shared.clone(), folder.clone(), identity.name.clone());
    let stop = Arc::new(Notify::new());
    let socket = bind(&folder.join(&identity.name))?;
    let (flows, starting) = Flows::new(shared.clone(), folder.clone());
    let (relays, desk_shared) = (Semaphore::new(RELAYS_MAX), shared.clone());
    let desk = Desk {
        shared: desk_shared,
        metrics: metrics.clone(),
        folder,
        relays,
        stop: stop.clone(),
        tender: tender.clone(),
        flows: flows.clone(),
    };
    let server = Rc::new(Server::new(identity, clock, log, counts, desk).with_papers(Some(papers)));
    let serving = tokio::task::spawn_local(server.serve(socket));
    if let Some((listener, guard)) = http {
        serve_pages(listener, guard, shared.clone(), metrics.clone(), flows.clone())?;
    }
    tender.scan()?;
    let hub = Hub { shared, metrics, tender };
    tokio::task::spawn_local(restarts(hub.shared.clone(), hub.metrics.clone()));
    tokio::task::spawn_local(faults::watch(hub.shared.clone(), now));
    tokio::task::spawn_local(flows.watch(starting));
    ready();
    hub.shared.tell(EventKind::Process(ProcessEvent::Ready));
    before
        .into_iter()
        .for_each(|lived| hub.shared.tell(faults::end_of_hub(&hub.shared.identity.name, lived)));
    match starts_lab {
        true => drop(tokio::task::spawn_local(starter::run(hub.shared.clone(), hub.tender.clone()))),
        false => hub.look_for_the_dead(&[ProcessState::Expected]),
    }
    let ended = hub.watch_over(&watch, stops, children, &stop).await;
    hub.shared.tell(EventKind::Process(ProcessEvent::Stopping));
    serving.abort();
    ended
}

/// Serves the hub's pages from now on.
fn serve_pages(
    listener: TcpListener,
    guard: Guard,
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
    flows: Rc<Flows>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    // Off loopback a guard wants TLS and the token.
    let is_guarded = !address.ip().is_loopback();
    let counts = metrics.http();
    let pages = http::Pages { shared, metrics, flows, address, is_guarded };
    tokio::task::spawn_local(weft_metrics::serve_site(listener, guard, counts, pages));
    Ok(())
}

struct Hub {
    shared: Arc<Shared>,
    metrics: Arc<Metrics>,
    tender: Rc<Tender>,
}

impl Hub {
    /// Sees to everything but clients and due starts, until the hub is to stop.
    async fn watch_over(
        &self,
        watch: &Watch,
        [mut terminate, mut interrupt]: [Signal; 2],
        mut child_ended: Signal,
        stop: &Notify,
    ) -> io::Result<()> {
        let mut look = tokio::time::interval(SILENT_LOOK);
        let mut beat = tokio::time::interval(BEAT);
        loop {
            tokio::select! {
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                () = stop.notified() => return Ok(()),
                _ = child_ended.recv() => self.look_at(self.shared.reap()),
                _ = beat.tick() => self.shared.lab.beat(),
                _ = look.tick() => self.look_for_the_dead(&[ProcessState::Silent]),
                changes = watch.next() => for change in changes? {
                    match change {
                        Change::Appeared(name) => self.tender.appeared(&name),
                        // A folder with a bound socket goes without a word; the socket's file goes before it.
                        Change::Removed(name) if name == self.shared.identity.name => return Ok(()),
                        Change::Removed(_) => {}
                        Change::Overflowed => self.tender.scan()?,
                        Change::Gone => return Ok(()),
                    }
                },
            }
        }
    }

    /// Looks whether processes without a connection, which tells of their end, live.
    fn look_for_the_dead(&self, states: &[ProcessState]) {
        let names = states.iter().flat_map(|state| self.shared.state().roster.in_state(*state));
        self.look_at(names.collect());
    }

    /// Looks at processes, but not at those whose tasks see to it, nor at children that have not got to their lock yet.
    fn look_at(&self, names: Vec<String>) {
        for name in names {
            if !self.tender.is_tended(&name) && !self.shared.is_unreaped(&name) {
                self.shared.gone(&name, self.shared.lab.trace(&name));
            }
        }
    }
}

/// Starts what is due, one process after the other.
async fn restarts(shared: Arc<Shared>, metrics: Arc<Metrics>) {
    loop {
        let due = shared.state().restarts.next_due().map(|due| due.saturating_sub(shared.elapsed()));
        tokio::select! {
            () = shared.due.notified() => continue,
            () = tokio::time::sleep(due.unwrap_or(Duration::MAX)) => {}
        }
        while let Some(process) = { shared.state().restarts.take_due(shared.elapsed()) } {
            start(&shared, &metrics, &process).await;
        }
    }
}

/// Starts a process, unless somebody else does or wants it dead.
async fn start(shared: &Arc<Shared>, metrics: &Metrics, process: &str) {
    match starter::stays_up(shared).await.trace(process) {
        Trace::Ended(EndKind::Failed) => {}
        Trace::Alive => return,
        trace => return shared.gone(process, trace),
    }
    let started = starter::again(shared, process).await;
    let process = process.to_owned();
    let event = match started {
        Ok(restarted) => restarted,
        Err(reason) => {
            metrics.restarts_failed.inc();
            let elapsed = shared.elapsed();
            let pause = shared.state().restarts.ended(&process, EndKind::Failed, elapsed);
            let retry_ms = pause.map_or(0, |pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
            LabEvent::RestartFailed { process, reason: reason.to_string(), retry_ms }
        }
    };
    shared.tell(EventKind::Lab(event));
}
