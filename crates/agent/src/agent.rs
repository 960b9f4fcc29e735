//! The process: sockets, tasks, beginning and end.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::LocalOptions;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_local};
use weft_control::event::ProcessEvent;
use weft_control::process::ProcessKind;
use weft_link::{Alarm, BindError, Cable, Handler, LinkConfig, LinkEvent, Links, Visitor};
use weft_metrics::{Guard, TokenHash};
use weft_process::lock::{LockError, LockFolder, ProcessLock};
use weft_process::{Clock, Counts, Crowd, EventLog, Server, Socket, next_client};
use weft_umad::user_mad::socket_path;

use crate::begin;
use crate::client;
use crate::config::AgentConfig;
use crate::core::{Core, Signals};
use crate::counter::Counter;
use crate::record::Recorder;
use crate::service::Door;
use crate::shared::Agent;
use crate::user;
use crate::visitors;
use weft_agent_config::ConfigError;

/// Programs connected at the same time, and connections of one process: `weft check` has one to each host of an agent.
const PROGRAMS_MAX: usize = 1280;
const PROGRAMS_OF_ONE_MAX: usize = 1024;
/// What the node was fed waits this long to be written together.
const RECORDING_GATHER: Duration = Duration::from_millis(20);

/// A wall clock that is set while a fault lasts is noticed within this time.
const CLOCK_LOOK: Duration = Duration::from_secs(60);

/// As Rust's own programs end when their main thread panics.
const PANIC_EXIT_CODE: i32 = 101;

/// Why an agent could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The configuration contradicts itself.
    #[error("the agent's configuration is wrong")]
    Config(#[from] ConfigError),
    /// Another process has the agent's lock.
    #[error("cannot take the agent's lock")]
    Lock(#[from] LockError),
    /// The UDP port or the identity is unusable.
    #[error("cannot open the agent's links")]
    Bind(#[from] BindError),
    /// A socket for programs or clients cannot be made.
    #[error("cannot listen on {}", path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The port for metrics cannot be had.
    #[error("cannot serve metrics on {address}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The runtime, a timer or the signals failed.
    #[error("the system refuses what an agent needs")]
    System(#[from] std::io::Error),
}

/// The agent as its links know it. The agent owns the links, so they must not own it.
struct Ear {
    agent: Weak<Agent>,
    visitors: mpsc::Sender<Visitor>,
}

impl Handler for Ear {
    fn on_event(&self, event: LinkEvent) {
        if let Some(agent) = self.agent.upgrade() {
            agent.with_core(|core| core.link_event(event));
        }
    }

    fn on_visitor(&self, visitor: Visitor) {
        if let Err(full) = self.visitors.try_send(visitor) {
            full.into_inner().refuse("too many clients");
            if let Some(agent) = self.agent.upgrade() {
                agent.with_core(|core| core.recorder.count(Counter::VisitorsTurnedAway));
            }
        }
    }
}

/// Runs an agent in its own runtime until SIGTERM, SIGINT or a request on its socket stops it.
///
/// Logs to standard error what `WEFT_LOG` asks for, `info` without it. A panic in any task ends the process:
/// half an agent would keep its links up and forward nothing.
pub fn run(config: &AgentConfig) -> Result<(), AgentError> {
    weft_process::log::log_to_stderr();
    end_on_panic();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(AgentError::System);
    runtime.and_then(|runtime| {
        let result = runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            weft_process::early::ready();
            let asked = async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            };
            serve(config, asked).await
        });
        // A resolver that waits for a server does not keep the process.
        runtime.shutdown_background();
        result
    })
}

/// Neighbours notice a process that has ended. A task that has ended leaves the others running, and the runtime keeps
/// the panic to itself.
fn end_on_panic() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(panic);
        std::process::exit(PANIC_EXIT_CODE);
    }));
}

/// Runs an agent until `stop` is ready or a program asks it to stop.
///
/// Needs a [`tokio::task::LocalSet`] or a [`tokio::runtime::LocalRuntime`].
pub async fn serve(config: &AgentConfig, stop: impl Future<Output = ()>) -> Result<(), AgentError> {
    config.part.check()?;
    let lock = ProcessLock::take(&config.lock_file)?;
    let folder = LockFolder::of(&config.lock_file)?;
    let signals = Rc::new(Signals::default());
    let alarm = Rc::new(Alarm::new()?);
    // No two processes of this agent begin in the same nanosecond: both would have to hold its lock.
    let clock = Clock::start();
    let events = EventLog::new(&config.part.name, clock);
    let recorder = Recorder::new(events.clone());
    let (core, cables) = Core::new(config, recorder, signals.clone(), clock, alarm.clone());
    let agent = Rc::new(Agent::new(core));
    let path = &config.attach_socket;
    let listener =
        weft_process::bind(path).map_err(|source| AgentError::Listen { path: path.to_owned(), source })?;
    let user_socket = socket_path(&config.attach_socket);
    let users = user::listen(&user_socket)
        .map_err(|source| AgentError::Listen { path: user_socket.clone(), source })?;
    let (sender, visitors) = mpsc::channel(visitors::VISITORS_MAX);
    let ear = Ear { agent: Rc::downgrade(&agent), visitors: sender };
    let links = open_links(config, clock, cables, ear)?;
    agent.with_core(|core| core.links = Some(links.clone()));
    let doors = open_doors(config, clock, events, &agent, visitors)?;
    // The links are there, and none of them is dialled yet.
    agent.with_core(Core::resume_faults);
    let mut tasks = Tasks(vec![
        spawn_local(accept_programs(agent.clone(), listener)),
        spawn_local(user::accept(agent.clone(), users)),
        spawn_local(ring(agent.clone(), alarm)),
        spawn_local(work(agent.clone(), signals.clone())),
        spawn_local(write_gathered(agent.clone(), signals.clone())),
        spawn_local(end_faults(agent.clone(), signals.clone())),
        spawn_local(begin::begin(agent.clone(), config.waits)),
    ]);
    tasks.0.extend(doors);
    agent.with_core(|core| core.recorder.process(ProcessEvent::Ready));
    tokio::select! {
        () = stop => {}
        () = signals.stop.notified() => {}
        () = folder.removed() => {}
    }
    lock.note_stop();
    agent.with_core(|core| core.recorder.process(ProcessEvent::Stopping));
    links.shutdown().await;
    // Their sockets go with them, while the lock is still held.
    tasks.end().await;
    agent.with_core(|core| {
        core.issm.clear();
        core.write_gathered();
        if let Some(recording) = &mut core.recording {
            recording.end();
        }
    });
    let _ = std::fs::remove_file(&user_socket);
    Ok(())
}

/// Opens the control socket and, where it is wanted, the port for metrics; clients over QUIC are served, too.
fn open_doors(
    config: &AgentConfig,
    clock: Clock,
    events: EventLog,
    agent: &Rc<Agent>,
    visitors: mpsc::Receiver<Visitor>,
) -> Result<Vec<JoinHandle<()>>, AgentError> {
    let identity = weft_process::identity(&config.part.lab, &config.part.name, ProcessKind::Agent, clock);
    agent.with_core(|core| core.recorder.process(weft_process::started(&identity)));
    let registry = prometheus::Registry::new();
    let counts = Counts::new(&registry);
    let door = Door::new(agent.clone(), registry);
    let metrics = listen_for_scrapers(config)?;
    let path = &config.control_socket;
    let socket =
        weft_process::bind(path).map_err(|source| AgentError::Listen { path: path.to_owned(), source })?;
    let server = Server::new(identity, clock, events, counts, door.clone());
    let server = Rc::new(server.with_papers(config.papers.clone()));
    let scraped = metrics.map(|(listener, guard)| spawn_local(weft_metrics::serve(listener, guard, door)));
    let visited = spawn_local(visitors::serve(agent.clone(), server.clone(), visitors));
    Ok([visited, spawn_local(server.serve(socket))].into_iter().chain(scraped).collect())
}

/// The agent's own tasks; they end with it.
struct Tasks(Vec<JoinHandle<()>>);

impl Tasks {
    /// Ends them, and waits until they have.
    async fn end(mut self) {
        let tasks = std::mem::take(&mut self.0);
        tasks.iter().for_each(JoinHandle::abort);
        for task in tasks {
            // It was aborted, or had ended.
            let _ = task.await;
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

fn open_links(config: &AgentConfig, clock: Clock, cables: Vec<Cable>, ear: Ear) -> Result<Links, BindError> {
    let mut settings = LinkConfig::new(&config.part.lab, clock.incarnation().0);
    settings.link_timeout_ms = config.part.link_timeout_ms;
    Links::bind(config.part.bind, &config.credentials, settings, cables, Rc::new(ear))
}

fn listen_for_scrapers(config: &AgentConfig) -> Result<Option<(TcpListener, Guard)>, AgentError> {
    let Some(address) = config.part.metrics else { return Ok(None) };
    let cannot = |source| AgentError::Metrics { address, source };
    let token = config.part.http_token.as_deref().map(str::parse::<TokenHash>).transpose();
    let token = token.map_err(|error| cannot(std::io::Error::other(error)))?;
    let tls = config.credentials.https().ok().zip(token);
    let guard = Guard::at(address, tls).map_err(|error| cannot(std::io::Error::other(error)))?;
    let listener = std::net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    });
    listener.map(|listener| Some((listener, guard))).map_err(cannot)
}

async fn accept_programs(agent: Rc<Agent>, socket: Socket) {
    let mut programs = tokio::task::JoinSet::new();
    let crowd = Crowd::new(PROGRAMS_MAX, PROGRAMS_OF_ONE_MAX);
    loop {
        let stream = next_client(|| socket.accept(), &mut programs).await;
        match crowd.enter(&stream) {
            Ok(seat) => {
                let agent = agent.clone();
                programs.spawn_local(async move {
                    client::serve(agent, stream).await;
                    drop(seat);
                });
            }
            Err(why) => agent.with_core(|core| core.recorder.turn_away(why)),
        }
    }
}

async fn ring(agent: Rc<Agent>, alarm: Rc<Alarm>) {
    while alarm.ring().await.is_ok() {
        agent.with_core(Core::wake);
    }
}

async fn work(agent: Rc<Agent>, signals: Rc<Signals>) {
    loop {
        signals.work.notified().await;
        agent.with_core(|_| ());
        // The reactor's turn: programs and links must not wait for packets that go round inside.
        tokio::task::yield_now().await;
    }
}

async fn write_gathered(agent: Rc<Agent>, signals: Rc<Signals>) {
    loop {
        signals.recording.notified().await;
        tokio::time::sleep(RECORDING_GATHER).await;
        agent.with_core(Core::write_gathered);
    }
}

/// Ends faults when their time is over.
async fn end_faults(agent: Rc<Agent>, signals: Rc<Signals>) {
    loop {
        let next = agent.with_core(|core| core.faults.next_end());
        tokio::select! {
            () = signals.faults.notified() => {}
            () = tokio::time::sleep(next.unwrap_or_default().min(CLOCK_LOOK)), if next.is_some() => {
                agent.with_core(Core::end_expired);
            }
        }
    }
}
