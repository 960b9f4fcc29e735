//! A server and a desk over real sockets, with clients good and bad.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::runtime::{Builder, LocalOptions};
use weft_control::event::{LabEvent, ProcessEvent};
use weft_control::fault::Word;
use weft_control::process::{Clients, Condition, Identity, ProcessKind};
use weft_control::schema::samples;
use weft_control::sm::{Instructed, SmStatus};
use weft_control::{
    Answer, Error, ErrorCode, Event, EventFilter, EventKind, HexGuid, ReplyBody, ReplyLine, Request,
    RequestLine, Role, Since,
};
use weft_metrics::Page;
use weft_process::{
    CLIENTS_OF_ONE_MAX, Call, Client, ClientError, Clock, Counts, Desk, DeskOptions, EVENTS_MAX, EventLog,
    Manned, NoCapture, Requester, Server, Service, open_desk,
};

/// Much longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A subnet manager that shows how many sweeps clients have asked it for.
struct Fake;

impl Manned for Fake {
    type Figures = u64;

    fn render(figures: &u64) -> Page {
        let mut page = Page::new();
        page.gauge("weft_test_sweeps", "Sweeps").count(&[], *figures);
        page
    }

    fn show(figures: &u64, age: Duration, request: &Request) -> Option<Result<Answer, Error>> {
        let Request::SmStatus = request else { return None };
        let age_ms = u64::try_from(age.as_millis()).unwrap();
        Some(Ok(Answer::SmStatus(Box::new(SmStatus {
            age_ms,
            heavy_sweeps: *figures,
            ..SmStatus::default()
        }))))
    }

    fn takes(request: &Request) -> bool {
        matches!(request, Request::SmSweep | Request::SmInstruct { .. })
    }
}

/// A process whose loop runs in a thread of the test.
struct Process {
    folder: tempfile::TempDir,
    events: EventLog,
    /// While it is set the loop takes no calls.
    busy: Arc<AtomicBool>,
    driver: Option<std::thread::JoinHandle<()>>,
}

impl Process {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::start();
        let events = EventLog::new("sm", clock);
        let identity = Identity {
            lab: "x".into(),
            name: "sm".into(),
            kind: ProcessKind::Sm,
            version: "0.1.0".into(),
            pid: 7,
            incarnation: clock.incarnation(),
        };
        let control = Some(folder.path().join("sm"));
        let options = DeskOptions {
            identity,
            clock,
            events: events.clone(),
            control,
            metrics: None,
            papers: None,
            door: None,
            folder: None,
        };
        let desk = open_desk::<Fake>(options).unwrap();
        let busy = Arc::new(AtomicBool::new(false));
        let driver = std::thread::spawn({
            let busy = busy.clone();
            move || drive(desk, &busy)
        });
        Self { folder, events, busy, driver: Some(driver) }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("sm")
    }

    fn client(&self) -> Client {
        Client::connect(&self.path()).unwrap()
    }

    fn raw(&self) -> Raw {
        let stream = UnixStream::connect(self.path()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Raw(BufReader::new(stream))
    }

    fn clients(&self) -> Clients {
        match self.client().ask(Request::Clients, PATIENCE).unwrap() {
            Answer::Clients(clients) => clients,
            other => panic!("{other:?}"),
        }
    }

    fn wait_until(&self, what: &str, mut holds: impl FnMut(&Clients) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // As long as those that have left are not all gone, one more is turned away, or hung up on.
            let counted = self.client().ask(Request::Clients, PATIENCE);
            if matches!(&counted, Ok(Answer::Clients(counts)) if holds(counts)) {
                return;
            }
            assert!(Instant::now() < deadline, "{what}: {counted:?}");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.busy.store(false, Ordering::Relaxed);
        let stopped = self.client().ask(Request::Shutdown, PATIENCE);
        if !std::thread::panicking() {
            assert!(matches!(stopped, Ok(Answer::Done)), "{stopped:?}");
            self.driver.take().unwrap().join().unwrap();
        }
    }
}

fn drive(mut desk: Desk<u64>, busy: &AtomicBool) {
    let mut sweeps = 0;
    loop {
        poll(&mut [PollFd::new(&desk, PollFlags::IN)], None).unwrap();
        while busy.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let mut calls = Vec::new();
        assert!(desk.take(&mut calls));
        for call in calls {
            match call {
                Call::Stop => return,
                Call::Hangup => {}
                Call::Order(Request::SmSweep, reply) => {
                    sweeps += 1;
                    reply.send(Ok(Answer::Done)).unwrap();
                }
                Call::Order(_, reply) => {
                    reply.send(Ok(Answer::SmInstruct { outcome: Instructed::NotMaster })).unwrap();
                }
                Call::Figures(reply) => drop(reply.send(sweeps)),
            }
        }
    }
}

/// A client that writes what it likes.
struct Raw(BufReader<UnixStream>);

impl Raw {
    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    fn reply(&mut self) -> ReplyLine {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        ReplyLine::parse(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn error(&mut self) -> (Option<u64>, ErrorCode) {
        let reply = self.reply();
        match reply.body {
            ReplyBody::Error(error) => (reply.id, error.code),
            other => panic!("{other:?}"),
        }
    }
}

fn died(slot: u32) -> EventKind {
    EventKind::Lab(LabEvent::ProgramDied { slot })
}

#[test]
fn a_process_says_who_and_how_it_is_and_does_what_it_is_told() {
    let process = Process::start();
    let mut client = process.client();
    let Answer::Hello(hello) = client.ask(Request::Hello, PATIENCE).unwrap() else { panic!("no hello") };
    assert_eq!((hello.identity.name.as_str(), hello.role), ("sm", Role::Operator));
    let Answer::Health(health) = client.ask(Request::Health, PATIENCE).unwrap() else { panic!("no health") };
    assert_eq!(health.condition, Condition::Ready);
    let sweeps = |client: &mut Client| match client.ask(Request::SmStatus, PATIENCE).unwrap() {
        Answer::SmStatus(status) => status.heavy_sweeps,
        other => panic!("{other:?}"),
    };
    // Whoever has given an order sees it done, however short ago the last look was.
    for expected in 0..20 {
        assert_eq!(sweeps(&mut client), expected);
        assert_eq!(client.ask(Request::SmSweep, PATIENCE).unwrap(), Answer::Done);
    }
    let Answer::Metrics { text } = client.ask(Request::Metrics, PATIENCE).unwrap() else { panic!("no page") };
    assert!(
        text.contains("\nweft_test_sweeps 20\n")
            && text.contains("weft_control_requests_total{request=\"sm-sweep\"} 20\n"),
        "{text}"
    );
    let wrong = client.ask(Request::PmStatus, PATIENCE).unwrap_err();
    assert!(matches!(wrong, ClientError::Refused(Error { code: ErrorCode::NotHere, .. })), "{wrong}");
}

#[test]
fn wrong_lines_are_answered_and_the_connection_lives_on() {
    let process = Process::start();
    let mut raw = process.raw();
    let mut long = vec![b'x'; 16 << 20];
    long.push(b'\n');
    for (line, expected) in [
        (&b"\xff\n"[..], (None, ErrorCode::InvalidUtf8)),
        (b"nonsense\n", (None, ErrorCode::Malformed)),
        (b"{\"v\":9,\"id\":3,\"request\":{\"type\":\"hello\"}}\n", (Some(3), ErrorCode::UnknownVersion)),
        (b"{\"v\":1,\"id\":4,\"request\":{\"type\":\"dance\"}}\n", (Some(4), ErrorCode::UnknownRequest)),
        (b"{\"v\":1,\"id\":5,\"request\":{\"type\":\"cancel\"}}\n", (Some(5), ErrorCode::InvalidRequest)),
        (
            b"{\"v\":1,\"id\":6,\"request\":{\"type\":\"cancel\",\"request\":5}}\n",
            (Some(6), ErrorCode::NotFound),
        ),
        (&long, (None, ErrorCode::LineTooLong)),
    ] {
        raw.send(line);
        assert_eq!(raw.error(), expected);
    }
    for byte in b"{\"v\":1,\"id\":8,\"request\":{\"type\":\"hello\"}}\r\n" {
        raw.send(&[*byte]);
    }
    assert!(matches!(raw.reply(), ReplyLine { id: Some(8), body: ReplyBody::Answer(_), .. }));
    raw.send(b"{\"v\":1,\"id\":9,");
    drop(raw);
    process.wait_until("a half line is counted", |clients| clients.half_lines == 1);
    let errors = process.clients().errors;
    assert_eq!((errors["malformed"], errors["line-too-long"], errors["invalid-utf8"]), (1, 1, 1));
}

#[test]
fn events_are_told_from_where_a_client_wants_them() {
    let process = Process::start();
    (0..3).for_each(|slot| drop(process.events.publish(died(slot))));
    let mut client = process.client();
    let from = |from, kinds: &[&str]| {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        Request::Events(EventFilter { from, kinds, ..EventFilter::default() })
    };
    client.ask(from(Since::Start, &["program-died"]), PATIENCE).unwrap();
    let again = client.ask(from(Since::Now, &[]), PATIENCE).unwrap_err();
    assert!(matches!(again, ClientError::Refused(Error { code: ErrorCode::TooMany, .. })));
    process.events.publish(EventKind::Process(ProcessEvent::Ready));
    process.events.publish(died(3));
    let next = |client: &mut Client| -> Event { client.next_event(PATIENCE).unwrap().unwrap() };
    let mut last = next(&mut client);
    for slot in 0..4 {
        assert_eq!(last.kind, died(slot));
        if slot < 3 {
            last = next(&mut client);
        }
    }
    assert_eq!(client.next_event(Duration::ZERO).unwrap(), None);
    let mut later = process.client();
    let after = Since::After { incarnation: last.incarnation, sequence: last.sequence - 2 };
    later.ask(from(after, &[]), PATIENCE).unwrap();
    assert_eq!(next(&mut later).kind, EventKind::Process(ProcessEvent::Ready));
    assert_eq!(next(&mut later).kind, died(3));
}

#[test]
fn the_past_has_an_end_and_a_fault_is_noted() {
    let process = Process::start();
    (0..300).for_each(|slot| drop(process.events.publish(died(slot))));
    let mut client = process.client();
    let fault = Request::NoteFault { fault: Word::Kill, target: "leaf1".into() };
    assert_eq!(client.ask(fault, PATIENCE).unwrap(), Answer::Done);
    let filter = |kinds: &[&str]| {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        Request::Events(EventFilter { from: Since::Start, past_only: true, kinds, ..EventFilter::default() })
    };
    for (kinds, expected) in [(&[][..], 301), (&["fault"], 1), (&["subnet-up"], 0)] {
        // The same connection again and again: what has ended may be asked for again.
        let id = client.post(filter(kinds)).unwrap();
        let mut last = None;
        for told in 0.. {
            let line = client.next_line(PATIENCE).unwrap().unwrap();
            assert_eq!(line.id, Some(id));
            match line.body {
                ReplyBody::Answer(answer) if told == 0 => assert!(matches!(*answer, Answer::Subscribed(_))),
                ReplyBody::Event(event) => last = Some(event),
                ReplyBody::Answer(answer) => {
                    assert_eq!((*answer, told - 1), (Answer::EventsEnded, expected), "{kinds:?}");
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        let fault = LabEvent::Fault { fault: Word::Kill, target: "leaf1".into() };
        assert!(expected == 0 || last.unwrap().kind == EventKind::Lab(fault));
    }
}

#[test]
fn a_slow_reader_sees_a_counted_gap_and_delays_no_other() {
    let process = Process::start();
    let mut slow = process.raw();
    slow.send(b"{\"v\":1,\"id\":1,\"request\":{\"type\":\"events\"}}\n");
    assert!(matches!(slow.reply().body, ReplyBody::Answer(_)));
    // Far more than the sockets and the log hold.
    let all = EVENTS_MAX as u32 * 3;
    (0..all).for_each(|slot| drop(process.events.publish(died(slot))));
    let mut quick = process.client();
    assert!(matches!(quick.ask(Request::Hello, PATIENCE), Ok(Answer::Hello(_))));
    let (mut told, mut lost, mut next) = (0, 0, 0);
    while next < u64::from(all) {
        let ReplyBody::Event(event) = slow.reply().body else { panic!("only events come") };
        match event.kind {
            EventKind::Process(ProcessEvent::EventsLost { count }) => {
                assert_eq!(event.sequence, next + count - 1, "the gap's end");
                lost += count;
            }
            _ => {
                assert_eq!(event.sequence, next);
                told += 1;
            }
        }
        next = event.sequence + 1;
    }
    assert!(lost > 0, "the reader was slow enough");
    assert_eq!(told + lost, u64::from(all));
    assert_eq!(process.clients().events_skipped, lost);
}

#[test]
fn a_thousand_clients_of_one_process_leave_room_for_others() {
    let process = Process::start();
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: files.maximum, maximum: files.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let subscribe = Request::Events(EventFilter::default());
    let mut clients: Vec<Client> = (0..CLIENTS_OF_ONE_MAX).map(|_| process.client()).collect();
    for client in &mut clients {
        client.ask(subscribe.clone(), PATIENCE).unwrap();
    }
    let refused = process.client().ask(Request::Hello, PATIENCE).unwrap_err();
    // It may be gone before it is asked; then the error has gone with it.
    let is_told = matches!(refused, ClientError::Refused(Error { code: ErrorCode::TooMany, .. }));
    assert!(is_told || matches!(refused, ClientError::Closed | ClientError::Io(_)), "{refused}");
    process.events.publish(died(5));
    for client in &mut clients {
        assert_eq!(client.next_event(PATIENCE).unwrap().unwrap().kind, died(5));
    }
    let Answer::Clients(counts) = clients[0].ask(Request::Clients, PATIENCE).unwrap() else {
        panic!("no counts")
    };
    assert_eq!(
        (counts.connected, counts.of_one_turned_away, counts.turned_away),
        (CLIENTS_OF_ONE_MAX as u64, 1, 0)
    );
    assert!(asks_from_another_process(&process.path()), "another process is kept out");
    drop(clients);
    process.wait_until("all have left", |counts| counts.connected == 1);
}

/// The socket that the test below asks in a process of its own.
const OTHERS_SOCKET: &str = "WEFT_TEST_CONTROL_SOCKET";

fn asks_from_another_process(path: &std::path::Path) -> bool {
    let mut other = std::process::Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "server::another_process_asks"]).env(OTHERS_SOCKET, path);
    other.output().unwrap().status.success()
}

/// Asks a process of its own where no other test names one.
#[test]
fn another_process_asks() {
    let own = std::env::var_os(OTHERS_SOCKET).is_none().then(Process::start);
    let path = own.as_ref().map_or_else(|| std::env::var_os(OTHERS_SOCKET).unwrap().into(), Process::path);
    let answer = Client::connect(&path).unwrap().ask(Request::Hello, PATIENCE).unwrap();
    assert!(matches!(answer, Answer::Hello(_)), "{answer:?}");
}

#[test]
fn a_client_that_never_reads_is_not_read_from_for_ever() {
    let process = Process::start();
    let mut rude = process.raw();
    rude.0.get_ref().set_nonblocking(true).unwrap();
    let line = b"{\"v\":1,\"id\":1,\"request\":{\"type\":\"metrics\"}}\n";
    let mut sent = 0;
    // Until both directions are full: then the server neither reads nor keeps.
    let mut quiet = 0;
    while quiet < 200 {
        match rude.0.get_mut().write(line) {
            Ok(count) => (sent, quiet) = (sent + count, 0),
            Err(_) => {
                quiet += 1;
                assert!(matches!(process.client().ask(Request::Hello, PATIENCE), Ok(Answer::Hello(_))));
            }
        }
        assert!(sent < 64 << 20, "the server reads on though nothing is read from it");
    }
    let mut rest = [0; 1];
    assert_eq!(rude.0.get_mut().read(&mut rest).unwrap(), 1, "its answers wait for it");
}

#[test]
fn a_busy_driver_shows_what_it_said_last() {
    let process = Process::start();
    let mut client = process.client();
    client.ask(Request::SmStatus, PATIENCE).unwrap();
    process.busy.store(true, Ordering::Relaxed);
    process.events.publish(died(0));
    let Answer::SmStatus(status) = client.ask(Request::SmStatus, PATIENCE).unwrap() else {
        panic!("no status")
    };
    assert!(status.age_ms > 1000, "{}", status.age_ms);
    assert!(matches!(process.client().ask(Request::Hello, PATIENCE), Ok(Answer::Hello(_))));
    let Answer::Health(health) = client.ask(Request::Health, PATIENCE).unwrap() else { panic!("no health") };
    assert!(health.busy_ms > 1000, "{}", health.busy_ms);
    process.busy.store(false, Ordering::Relaxed);
    let Answer::SmStatus(status) = client.ask(Request::SmStatus, PATIENCE).unwrap() else {
        panic!("no status")
    };
    assert_eq!(status.age_ms, 0);
}

#[test]
fn an_instruction_has_its_outcome() {
    let process = Process::start();
    let instruction = weft_control::sm::Instruction::Disable;
    let request = Request::SmInstruct { guid: HexGuid::default(), instruction };
    let answer = process.client().ask(request, PATIENCE).unwrap();
    assert_eq!(answer, Answer::SmInstruct { outcome: Instructed::NotMaster });
}

/// A process that has nothing of its own to say.
struct Mute;

impl Service for Mute {
    type Capture = NoCapture;

    async fn answer(&self, request: Request) -> Result<Answer, Error> {
        Err(weft_process::not_here(&request, ProcessKind::Agent))
    }
}

#[test]
fn any_stream_serves_and_a_viewer_changes_nothing() {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let clock = Clock::start();
        let events = EventLog::new("a0", clock);
        let identity = Identity {
            lab: "x".into(),
            name: "a0".into(),
            kind: ProcessKind::Agent,
            version: "0.1.0".into(),
            pid: 7,
            incarnation: clock.incarnation(),
        };
        let counts = Counts::new(&prometheus::Registry::new());
        let server = Server::new(identity, clock, events, counts, Mute);
        // A stream so narrow that every line crosses it in pieces.
        let (near, far) = tokio::io::duplex(16);
        let talk = async {
            let (read, mut write) = tokio::io::split(near);
            let mut lines = tokio::io::BufReader::new(read).lines();
            for (id, request) in (0..).zip(samples()) {
                let is_change = Role::Viewer.check(&request).is_err();
                let line = RequestLine { id, request }.to_line();
                write.write_all(line.as_bytes()).await.unwrap();
                let reply = ReplyLine::parse(lines.next_line().await.unwrap().unwrap().as_bytes()).unwrap();
                assert_eq!(reply.id, Some(id));
                let refused =
                    matches!(reply.body, ReplyBody::Error(Error { code: ErrorCode::Forbidden, .. }));
                assert_eq!(refused, is_change, "{reply:?}");
            }
        };
        tokio::join!(server.converse(far, Role::Viewer, Requester::Identity(None)), talk);
    });
}
