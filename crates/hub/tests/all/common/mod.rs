//! A folder of control sockets, processes that serve there from threads, and hubs.

#![allow(dead_code, reason = "not every test file needs all of it")]

mod ledger;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use weft_control::agent::{PlacedCable, PortEnd};
use weft_control::event::{LabEvent, ProcessEvent};
use weft_control::hub::{EndKind, LabStatus, ProcessLine, ProcessState, RestartPolicy};
use weft_control::process::{Identity, ProcessKind};
use weft_control::{Answer, Error, Event, EventFilter, EventKind, HexGuid, Incarnation, NamePage, Request};
use weft_hub::{Lab, LabError, Options, StartOptions, Target, Trace};
use weft_process::{Client, Clock, Counts, EventLog, NoCapture, Server, Service, bind, not_here};

pub(crate) use ledger::Ledger;

/// Much longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn ready() -> EventKind {
    EventKind::Process(ProcessEvent::Ready)
}

pub(crate) fn is_end_of(event: &Event, name: &str, kind: EndKind) -> bool {
    matches!(&event.kind, EventKind::Lab(LabEvent::ProcessEnded { process, how, .. }) if process == name && *how == kind)
}

/// The next events.
pub(crate) fn events_from(client: &mut Client, count: usize) -> Vec<Event> {
    (0..count).map(|_| client.next_event(PATIENCE).unwrap().expect("an event in time")).collect()
}

/// Reads until a text has come.
pub(crate) fn read_until(stream: &mut impl Read, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        assert_ne!(count, 0, "it ended without {wanted:?}: {text}");
        text += &String::from_utf8_lossy(&piece[..count]);
    }
    text
}

/// What processes leave, and what the hub does with the laboratory.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) traces: BTreeMap<String, Trace>,
    pub(crate) goes_down: bool,
    /// Processes that were started for the first time, and those that were asked to begin.
    pub(crate) spawned: Vec<String>,
    pub(crate) begun: Vec<String>,
    /// The start of the laboratory is over.
    pub(crate) has_started: bool,
    /// Processes that cannot be started.
    pub(crate) broken: BTreeSet<String>,
    /// Starts, and when.
    pub(crate) starts: Vec<(String, Instant)>,
    /// The processes that were started.
    pub(crate) pids: Vec<u32>,
    /// The list of revoked identities that a later hub reads.
    pub(crate) revoked: Option<String>,
    /// The journal of flows.
    pub(crate) flows: Option<String>,
    /// Nothing more can be kept.
    pub(crate) is_full: bool,
    /// Processes that have said who they are.
    pub(crate) met: Vec<String>,
    /// The lists of revoked identities that processes were sent.
    pub(crate) told: Vec<(String, String)>,
    /// The processes that serve metrics.
    pub(crate) targets: Vec<Target>,
}

pub(crate) struct Folder {
    folder: tempfile::TempDir,
    pub(crate) book: Arc<Mutex<Book>>,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("control")).unwrap();
        Self { folder, book: Arc::default() }
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.folder.path().join("control")
    }

    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.control().join(name)
    }

    pub(crate) fn leave(&self, name: &str, trace: Trace) {
        self.book.lock().unwrap().traces.insert(name.to_owned(), trace);
    }

    pub(crate) fn process(&self, name: &str) -> Process {
        self.process_that_knows(name, "")
    }

    /// One with a list of revoked identities.
    pub(crate) fn process_that_knows(&self, name: &str, list: &str) -> Process {
        self.leave(name, Trace::Alive);
        Process::start(self.control(), name, self.book.clone(), Ledger::of(list))
    }

    /// A process that says these lines to whoever connects first, and nothing more.
    pub(crate) fn raw_process(&self, name: &str, lines: &str) -> Option<UnixStream> {
        self.leave(name, Trace::Ended(EndKind::Failed));
        let listener = UnixListener::bind(self.socket(".raw")).unwrap();
        std::fs::rename(self.socket(".raw"), self.socket(name)).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(format!("{lines}\n").as_bytes()).unwrap();
        Some(stream)
    }

    pub(crate) fn hub(&self) -> Hub {
        self.hub_that_restarts(RestartPolicy::Never)
    }

    pub(crate) fn hub_that_restarts(&self, restart: RestartPolicy) -> Hub {
        let expected = vec![("sm".to_owned(), ProcessKind::Sm), ("pm".to_owned(), ProcessKind::Pm)];
        self.hub_of(expected, None, restart)
    }

    /// A hub that starts these agents and a subnet manager, if another has not done it.
    pub(crate) fn hub_that_starts(&self, agents: &[&str]) -> Hub {
        let agents = agents.iter().map(|name| ((*name).to_owned(), ProcessKind::Agent));
        let expected = agents.chain([("sm".to_owned(), ProcessKind::Sm)]).collect();
        let start = StartOptions { patience: PATIENCE, nodes: None, cores: 1, has_first_sm: true };
        let is_new = !self.book.lock().unwrap().has_started;
        self.hub_of(expected, is_new.then_some(start), RestartPolicy::Never)
    }

    fn hub_of(
        &self,
        expected: Vec<(String, ProcessKind)>,
        start: Option<StartOptions>,
        restart: RestartPolicy,
    ) -> Hub {
        let http = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = http.local_addr().unwrap();
        let (folder, book) = (self.control(), self.book.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
            runtime.block_on(async {
                let clock = Clock::start();
                let revoked = book.lock().unwrap().revoked.clone();
                let options = Options {
                    identity: identity("hub", ProcessKind::Hub, clock),
                    clock,
                    folder,
                    expected,
                    start,
                    restart,
                    http: Some((http, weft_metrics::Guard::loopback())),
                    papers: Arc::new(Ledger::of(revoked.as_deref().unwrap_or_default())),
                    door: None,
                    revoked,
                    before: None,
                };
                let lab = Arc::new(Fake(book));
                tokio::select! {
                    ended = weft_hub::run(options, lab, || ready.send(()).unwrap()) => ended.unwrap(),
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        });
        is_ready.recv_timeout(PATIENCE).unwrap();
        Hub { socket: self.socket("hub"), at, stop: Some(stop), thread: Some(thread) }
    }
}

fn identity(name: &str, kind: ProcessKind, clock: Clock) -> Identity {
    Identity {
        lab: "test".into(),
        name: name.into(),
        kind,
        version: "0.1.0".into(),
        pid: std::process::id(),
        incarnation: clock.incarnation(),
    }
}

struct Fake(Arc<Mutex<Book>>);

impl Lab for Fake {
    fn trace(&self, process: &str) -> Trace {
        self.0.lock().unwrap().traces.get(process).copied().unwrap_or(Trace::NeverStarted)
    }

    fn beat(&self) {}

    fn is_going_down(&self) -> bool {
        self.0.lock().unwrap().goes_down
    }

    fn spawn(&self, process: &str) -> Result<Child, LabError> {
        let mut book = self.0.lock().unwrap();
        book.spawned.push(process.to_owned());
        if book.broken.contains(process) {
            return Err("no such luck".into());
        }
        // It ends with the hub's thread, which holds the pipe.
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let child = child.map_err(|error| LabError::from(error.to_string()))?;
        book.pids.push(child.id());
        book.traces.insert(process.to_owned(), Trace::Alive);
        Ok(child)
    }

    fn note_start(&self) {
        self.0.lock().unwrap().has_started = true;
    }

    fn keep_revoked(&self, list: &str) -> Result<(), LabError> {
        let mut book = self.0.lock().unwrap();
        if book.is_full {
            return Err("no space left".into());
        }
        book.revoked = Some(list.to_owned());
        Ok(())
    }

    fn keep_flows(&self, json: &str) -> Result<(), LabError> {
        let mut book = self.0.lock().unwrap();
        if book.is_full {
            return Err("no space left".into());
        }
        book.flows = Some(json.to_owned());
        Ok(())
    }

    fn kept_flows(&self) -> Option<String> {
        self.0.lock().unwrap().flows.clone()
    }

    fn plan(&self) -> Result<Vec<(String, ProcessKind)>, LabError> {
        Err("nothing is planned anew".into())
    }

    fn write_cables(&self, _: &[[PortEnd; 2]], _: &[PlacedCable]) -> Result<(), LabError> {
        Err("nothing is written down".into())
    }

    fn targets(&self) -> Result<Arc<[Target]>, LabError> {
        let book = self.0.lock().unwrap();
        if book.is_full {
            return Err("no space left".into());
        }
        Ok(book.targets.clone().into())
    }

    /// Each agent has one node, which is called as the agent is.
    fn may_tell_of(&self, agent: &str, _: Option<HexGuid>, description: Option<&str>) -> bool {
        description.is_none_or(|description| description == agent)
    }

    fn met(&self, process: &str) {
        self.0.lock().unwrap().met.push(process.to_owned());
    }

    /// The processes that a hub starts are no threads, because it waits for their end: they live until they are killed.
    fn start(&self, process: &str) -> Result<Child, LabError> {
        let mut book = self.0.lock().unwrap();
        book.starts.push((process.to_owned(), Instant::now()));
        if book.broken.contains(process) {
            return Err("no such luck".into());
        }
        book.traces.insert(process.to_owned(), Trace::Alive);
        let child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn();
        let child = child.map_err(|error| LabError::from(error.to_string()))?;
        book.pids.push(child.id());
        Ok(child)
    }
}

/// A process of its own thread.
pub(crate) struct Process {
    folder: PathBuf,
    name: String,
    clock: Clock,
    events: EventLog,
    book: Arc<Mutex<Book>>,
    stop: Option<oneshot::Sender<bool>>,
    thread: Option<JoinHandle<()>>,
}

impl Process {
    fn start(folder: PathBuf, name: &str, book: Arc<Mutex<Book>>, papers: Ledger) -> Self {
        let clock = Clock::start();
        let events = EventLog::new(name, clock);
        let (stop, stopped) = oneshot::channel();
        let (up, is_up) = mpsc::channel();
        let (own_folder, own_name, own_events) = (folder.clone(), name.to_owned(), events.clone());
        let own_book = book.clone();
        let thread = std::thread::spawn(move || {
            let runtime =
                Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
            runtime.block_on(async {
                let path = own_folder.join(&own_name);
                let socket = bind(&path).unwrap();
                let identity = identity(&own_name, ProcessKind::Sm, clock);
                let counts = Counts::new(&prometheus::Registry::new());
                let willing = Willing(own_name.clone(), own_book);
                let server = Server::new(identity, clock, own_events, counts, willing);
                let server = Rc::new(server.with_papers(Some(Arc::new(papers))));
                tokio::task::spawn_local(server.serve(socket));
                up.send(()).unwrap();
                if stopped.await != Ok(true) {
                    // What a killed process leaves stays: the file is kept from the socket's clean-up.
                    std::fs::rename(&path, kept(&path)).unwrap();
                }
            });
        });
        is_up.recv_timeout(PATIENCE).unwrap();
        Self { folder, name: name.to_owned(), clock, events, book, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn publish(&self, kind: EventKind) {
        self.events.publish(kind);
    }

    pub(crate) fn incarnation(&self) -> Incarnation {
        self.clock.incarnation()
    }

    /// As SIGKILL does: the socket's file stays.
    pub(crate) fn kill(self) {
        self.end(EndKind::Failed);
    }

    pub(crate) fn end(mut self, how: EndKind) {
        self.book.lock().unwrap().traces.insert(self.name.clone(), Trace::Ended(how));
        let _ = self.stop.take().unwrap().send(how == EndKind::InOrder);
        self.thread.take().unwrap().join().unwrap();
        if how != EndKind::InOrder {
            let path = self.folder.join(&self.name);
            std::fs::rename(kept(&path), &path).unwrap();
        }
    }
}

/// Out of the hub's sight.
fn kept(path: &std::path::Path) -> PathBuf {
    path.with_file_name(format!(".{}.kept", path.file_name().unwrap().display()))
}

struct Willing(String, Arc<Mutex<Book>>);

impl Service for Willing {
    type Capture = NoCapture;

    async fn answer(&self, request: Request) -> Result<Answer, Error> {
        match request {
            Request::SmSweep => Ok(Answer::Done),
            Request::Begin => {
                self.1.lock().unwrap().begun.push(self.0.clone());
                Ok(Answer::Done)
            }
            other => Err(not_here(&other, ProcessKind::Sm)),
        }
    }

    fn revoked(&self, list: &str, _: bool) -> Result<(), Error> {
        self.1.lock().unwrap().told.push((self.0.clone(), list.to_owned()));
        Ok(())
    }
}

pub(crate) struct Hub {
    socket: PathBuf,
    at: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Hub {
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    pub(crate) fn listen(&self, filter: EventFilter) -> Client {
        let mut client = self.client();
        client.ask(Request::Events(filter), PATIENCE).unwrap();
        client
    }

    pub(crate) fn page(&self, page: NamePage) -> LabStatus {
        match self.client().ask(Request::LabStatus(page), PATIENCE).unwrap() {
            Answer::LabStatus(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn status(&self) -> LabStatus {
        self.page(NamePage::default())
    }

    pub(crate) fn find(&self, name: &str) -> Option<ProcessLine> {
        self.status().processes.into_iter().find(|process| process.name == name)
    }

    pub(crate) fn line(&self, name: &str) -> ProcessLine {
        self.find(name).unwrap()
    }

    pub(crate) fn metrics(&self) -> String {
        match self.client().ask(Request::Metrics, PATIENCE).unwrap() {
            Answer::Metrics { text } => text,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done() {
            assert!(Instant::now() < deadline, "it never happened: {what}; {:#?}", self.status());
            std::thread::yield_now();
        }
    }

    #[track_caller]
    pub(crate) fn wait_for_state(&self, name: &str, state: ProcessState) {
        self.wait_until(&format!("{name} is {}", state.name()), || {
            self.find(name).is_some_and(|process| process.state == state)
        });
    }

    #[track_caller]
    pub(crate) fn wait_for_events(&self, count: u64) {
        self.wait_until(&format!("{count} events"), || self.status().events >= count);
    }

    /// Sends a request and leaves the connection open.
    pub(crate) fn open(&self, path: &str, host: &str, more: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        if !path.is_empty() {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
        }
        stream
    }

    /// The whole answer to a request.
    pub(crate) fn get(&self, path: &str, host: &str) -> String {
        let mut answer = String::new();
        self.open(path, host, "").read_to_string(&mut answer).unwrap();
        answer
    }

    /// Ends without a word.
    pub(crate) fn kill(mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.thread.take().unwrap().join().unwrap();
    }

    /// Waits for its own end.
    pub(crate) fn join(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
