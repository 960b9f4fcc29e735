//! Hubs of laboratories of real processes: what they know, what they start again, and what goes on without them.

mod killed;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use common::ports::free_port;
use common::{Home, Running, runs, signal, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use weft_control::hub::{EndKind, LabStatus, ProcessLine, ProcessState, RestartPolicy};
use weft_control::{Answer, ErrorCode, EventFilter, NamePage, Request, Since};
use weft_process::{Client, ClientError, utc_now};

use crate::common;

const PATIENCE: Duration = Duration::from_secs(30);

fn up(home: &Home, options: &[&str]) {
    let tree = home.small_tree();
    home.weft(&[&["up", "--pack", "4"], options, &[text(&tree)]].concat()).succeeds();
}

fn socket(home: &Home) -> PathBuf {
    home.lab("default").join("control/hub")
}

fn hub(home: &Home) -> Client {
    Client::connect(&socket(home)).unwrap()
}

/// What the hub says, if there is one.
fn status(home: &Home) -> Option<LabStatus> {
    let mut client = Client::connect(&socket(home)).ok()?;
    match client.ask(Request::LabStatus(NamePage::default()), PATIENCE).ok()? {
        Answer::LabStatus(status) => Some(*status),
        other => panic!("{other:?}"),
    }
}

fn line(home: &Home, name: &str) -> Option<ProcessLine> {
    status(home)?.processes.into_iter().find(|process| process.name == name)
}

fn wait_for_state(home: &Home, name: &str, state: ProcessState) {
    wait_until(&format!("{name} is {}", state.name()), || {
        line(home, name).is_some_and(|line| line.state == state)
    });
}

fn all_ready(status: &LabStatus) -> bool {
    status.alive == status.expected && status.processes.iter().all(|line| line.state == ProcessState::Ready)
}

fn pid(home: &Home, name: &str) -> u32 {
    home.processes().into_iter().find(|(process, _)| process == name).unwrap().1
}

fn kill(home: &Home, name: &str) {
    match pid(home, name) {
        0 => {}
        pid => signal(pid, Signal::KILL),
    }
}

#[test]
fn a_hub_knows_every_process_and_passes_requests_on() {
    let home = Home::new();
    up(&home, &["--pm"]);
    wait_until("all is ready", || status(&home).is_some_and(|status| all_ready(&status)));
    let known = status(&home).unwrap();
    let names: Vec<_> = known.processes.iter().map(|line| line.name.as_str()).collect();
    assert_eq!((names, known.restart), (vec!["a0000", "a0001", "pm", "sm"], RestartPolicy::Never));
    for line in &known.processes {
        assert_eq!(line.pid, Some(pid(&home, &line.name)), "{line:?}");
    }
    assert!(runs(pid(&home, "hub")));
    let mut client = hub(&home);
    let relay =
        |process: &str, request| Request::Relay { process: process.into(), request: Box::new(request) };
    let Answer::SmStatus(sm) = client.ask(relay("sm", Request::SmStatus), PATIENCE).unwrap() else {
        panic!("a status")
    };
    assert!(sm.subnet_up);
    client.ask(relay("sm", Request::SmSweep), PATIENCE).unwrap();
    match client.ask(relay("pm", Request::SmStatus), PATIENCE) {
        Err(ClientError::Refused(error)) => assert_eq!(error.code, ErrorCode::NotHere),
        other => panic!("{other:?}"),
    }
    let ended = EventFilter { kinds: vec!["process-ended".into()], ..EventFilter::default() };
    client.ask(Request::Events(ended), PATIENCE).unwrap();
    home.weft(&["fault", "kill", "pm"]).succeeds();
    let event = client.next_event(PATIENCE).unwrap().unwrap();
    assert!(event.to_string().contains("pm was killed on purpose"), "{event}");
    // The file of events has it as well.
    home.events()
        .wait_for("the end of pm", |event| event["event"] == "process-ended" && event["process"] == "pm");
    assert_eq!(line(&home, "pm").unwrap().last_end.unwrap().how, EndKind::KilledOnPurpose);
}

/// Standard streams, lock, socket, inotify, the runtime's own, signals, the journal, and clients.
const DESCRIPTORS_BESIDE: usize = 24;

#[test]
fn a_hub_has_one_descriptor_for_each_process() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", "--pm", "--restart", "on-failure", text(&tree)]).succeeds();
    wait_until("all is ready", || status(&home).is_some_and(|status| all_ready(&status)));
    let folder = format!("/proc/{}/fd", pid(&home, "hub"));
    let open = || std::fs::read_dir(&folder).unwrap().count();
    let before = open();
    assert!(before <= 10 + DESCRIPTORS_BESIDE, "{before}");
    // Processes that come and go leave none behind.
    for restarts in 1..=3 {
        kill(&home, "pm");
        wait_until("pm is started again", || line(&home, "pm").is_some_and(|line| line.restarts == restarts));
        wait_for_state(&home, "pm", ProcessState::Ready);
    }
    wait_until("what was open for the start is closed", || open() <= before + 1);
}

#[test]
fn a_laboratory_has_one_hub_and_does_without() {
    let home = Home::new();
    up(&home, &[]);
    let first = pid(&home, "hub");
    home.weft(&["hub"]).fails(1, &format!("runs already as process {first}"));
    home.weft(&["hub", "--detached"]).fails(1, "runs already");
    assert_eq!(pid(&home, "hub"), first);
    let killed = utc_now();
    signal(first, Signal::KILL);
    wait_until("the hub is dead", || pid(&home, "hub") == 0);
    for verb in [
        &["check"][..],
        &["status"],
        &["links"],
        &["events"],
        &["fault", "kill", "host-0"],
        &["fault", "restart", "host-0"],
    ] {
        home.weft(verb).succeeds();
    }
    // Another one finds everything, and what happened before it began.
    home.weft(&["hub", "--detached"]).succeeds();
    wait_until("all is ready", || status(&home).is_some_and(|status| all_ready(&status)));
    let mut client = hub(&home);
    let all = EventFilter { from: Since::Start, sources: vec!["sm".into()], ..EventFilter::default() };
    client.ask(Request::Events(all), PATIENCE).unwrap();
    let mut sequence = 0;
    loop {
        let event = client.next_event(PATIENCE).unwrap().unwrap();
        assert_eq!(event.sequence, sequence);
        sequence += 1;
        if event.kind.name() == "subnet-up" {
            break;
        }
    }
    // How long there was none is known from when the first still lived.
    let is_end = |event: &Value| event["event"] == "fault-cost" && event["fault"] == "end of hub";
    let cost = home.events().wait_for("the end of the first hub", is_end);
    let [began, lasted] = ["began_ns", "lasted_ns"].map(|of| cost[of].as_u64().unwrap());
    assert!(began <= killed.as_nanos() + 1_000_000_000, "{cost}");
    assert!(began + lasted > killed.as_nanos() && began + lasted <= utc_now().as_nanos(), "{cost}");
    let processes = home.processes();
    home.weft(&["down"]).succeeds();
    assert!(home.is_empty());
    assert!(processes.iter().all(|(_, pid)| !runs(*pid)), "{processes:?}");
}

#[test]
fn only_what_failed_is_started_again_and_only_if_wanted() {
    let home = Home::new();
    up(&home, &["--pm", "--restart", "on-failure"]);
    wait_until("all is ready", || status(&home).is_some_and(|status| all_ready(&status)));
    let agent = pid(&home, "a0000");
    signal(agent, Signal::KILL);
    wait_until("the agent is started again", || line(&home, "a0000").is_some_and(|line| line.restarts == 1));
    wait_for_state(&home, "a0000", ProcessState::Ready);
    assert_ne!(pid(&home, "a0000"), agent);
    // Asked to stop, and killed on purpose: both stay dead, for another hub as well.
    signal(pid(&home, "pm"), Signal::TERM);
    home.weft(&["fault", "kill", "sm"]).succeeds();
    for (name, how) in [("pm", EndKind::InOrder), ("sm", EndKind::KilledOnPurpose)] {
        wait_for_state(&home, name, ProcessState::Ended);
        assert_eq!(line(&home, name).unwrap().last_end.unwrap().how, how, "{name}");
    }
    kill(&home, "hub");
    kill(&home, "a0001");
    wait_until("both are dead", || pid(&home, "hub") + pid(&home, "a0001") == 0);
    home.weft(&["hub", "--detached"]).succeeds();
    // What failed while no hub was there is started; by then the others would have been.
    wait_for_state(&home, "a0001", ProcessState::Ready);
    for name in ["pm", "sm"] {
        let line = line(&home, name).unwrap();
        assert_eq!((line.state, line.restarts, line.restart_in_ms), (ProcessState::Ended, 0, None), "{name}");
    }
    // What the user starts again is as any other.
    home.weft(&["fault", "restart", "sm"]).succeeds();
    wait_for_state(&home, "sm", ProcessState::Ready);
    kill(&home, "sm");
    wait_until("sm is started again", || line(&home, "sm").is_some_and(|line| line.restarts == 1));
    wait_for_state(&home, "sm", ProcessState::Ready);
    wait_until("the fabric is whole", || home.weft(&["check"]).code == 0);
}

/// Killed at any moment of the start: `up` has another one go on, and says so.
#[test]
fn a_hub_killed_during_the_start_is_replaced() {
    use std::process::Stdio;
    for pause_us in [0, 3_000, 20_000, 60_000, 120_000] {
        let home = Home::new();
        let tree = home.small_tree();
        let mut command = home.command(&["up", "--pm", "--standby", "1", text(&tree)]);
        let up = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lock = home.lab("default").join("locks/hub");
        let holder = || weft_process::lock::holder(&lock).ok().flatten();
        wait_until("the hub runs", || holder().is_some());
        let first = holder().unwrap();
        // Not awaited: any moment will do.
        std::thread::park_timeout(Duration::from_micros(pause_us));
        let _ = rustix::process::kill_process(first, Signal::KILL);
        let output = up.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "after {pause_us} µs: {said}");
        if let Some(second) = holder().filter(|second| *second != first) {
            assert!(said.contains("another one goes on"), "after {pause_us} µs, {second:?}: {said}");
            wait_until("all is ready", || status(&home).is_some_and(|status| all_ready(&status)));
        }
        home.weft(&["check"]).succeeds();
        home.weft(&["down"]).succeeds();
        assert!(home.is_empty());
    }
}

#[test]
fn without_a_policy_the_dead_stay_dead() {
    let home = Home::new();
    up(&home, &["--pm"]);
    wait_for_state(&home, "pm", ProcessState::Ready);
    kill(&home, "pm");
    wait_for_state(&home, "pm", ProcessState::Ended);
    let line = line(&home, "pm").unwrap();
    assert_eq!((line.last_end.unwrap().how, line.restart_in_ms), (EndKind::Failed, None));
}

#[test]
fn verbs_work_without_a_frozen_hub_and_say_so() {
    let home = Home::new();
    up(&home, &["--pm"]);
    let frozen = || !home.json(&["fault", "ls", "--json"]).as_array().unwrap().is_empty();
    home.weft(&["fault", "freeze", "hub"]).succeeds();
    assert!(frozen());
    assert!(home.weft(&["events"]).succeeds().stderr.contains("is frozen (fault f1)"));
    for verb in ["ps", "status", "check", "links"] {
        home.weft(&[verb]).succeeds();
    }
    home.weft(&["fault", "thaw", "hub"]).succeeds();
    wait_until("the hub answers", || status(&home).is_some_and(|status| all_ready(&status)));
    // What others took note of while it was frozen, it has heard since.
    wait_until("the hub knows that it was frozen", || {
        let events = home.weft(&["events", "--json"]).stdout;
        let noted = |word: &str| events.contains(&format!("\"fault\":\"{word}\",\"target\":\"hub\""));
        noted("freeze") && noted("thaw")
    });
    home.weft(&["fault", "freeze", "hub", "--for", "500ms"]).succeeds();
    wait_until("its time is over", || !frozen());
    assert!(status(&home).is_some());
    // The performance manager, in the same way.
    home.weft(&["fault", "freeze", "pm", "--for", "500ms"]).succeeds();
    assert!(frozen());
    wait_until("its time is over", || !frozen());
    wait_for_state(&home, "pm", ProcessState::Ready);
    // Frozen processes end with the laboratory, and whoever waits to let them go on.
    for process in ["hub", "sm", "pm"] {
        home.weft(&["fault", "freeze", process, "--for", "90m"]).succeeds();
    }
    let status = home.weft(&["status"]).succeeds().stdout.clone();
    let ps = home.json(&["ps", "--json"]);
    for process in ["hub", "sm", "pm"] {
        assert!(
            status.contains(&format!("`weft fault thaw {process}` lets it go on")),
            "{process}: {status}"
        );
        let line = ps.as_array().unwrap().iter().find(|line| line["process"] == process).unwrap();
        assert_eq!(line["state"], "frozen");
    }
    home.weft(&["down"]).succeeds();
    assert!(home.is_empty());
}

#[test]
fn a_hub_ends_with_its_laboratory() {
    let home = Home::new();
    let tree = home.small_tree();
    // In the foreground, where all ends with `up`: nothing of it is started again.
    let arguments = ["up", "--foreground", "--restart", "on-failure", "--json", text(&tree)];
    let mut running = Running::start(&home, &arguments);
    running.wait_for_line("}");
    wait_until("the hub serves", || status(&home).is_some_and(|status| all_ready(&status)));
    let processes = home.processes();
    running.signal(Signal::INT);
    assert!(running.end().success());
    assert!(home.is_empty());
    assert!(processes.iter().all(|(_, pid)| !runs(*pid)), "{processes:?}");
    // A hub in the foreground ends when its laboratory does.
    up(&home, &[]);
    kill(&home, "hub");
    wait_until("the hub is dead", || pid(&home, "hub") == 0);
    let mut foreground = Running::start(&home, &["hub"]);
    wait_until("the hub serves", || status(&home).is_some_and(|status| all_ready(&status)));
    assert!(foreground.is_running());
    home.weft(&["down"]).succeeds();
    assert!(foreground.end().success());
}

#[test]
fn a_hub_serves_http_where_it_is_told_to() {
    let home = Home::new();
    let port = free_port();
    up(&home, &["--hub-metrics", &port.to_string()]);
    let get = |path: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    wait_until("all is ready", || status(&home).is_some_and(|status| all_ready(&status)));
    assert!(get("/metrics").contains("weft_hub_processes{state=\"ready\"} 3\n"));
    assert!(get("/healthz").ends_with("ok\n"));
    assert!(get("/status").contains("\"expected\":3"));
    let scraped = home.weft(&["metrics"]);
    let job = format!("job_name: weft-hub\n    static_configs:\n      - targets: [\"127.0.0.1:{port}\"]");
    assert!(scraped.succeeds().stdout.contains(&job), "{}", scraped.stdout);
    // Another laboratory's hub cannot have the same port, which is said before anything runs.
    let tree = home.small_tree();
    let arguments =
        ["--lab", "other", "up", "--pack", "all", "--no-sm", "--hub-metrics", &port.to_string(), text(&tree)];
    let other = home.weft(&arguments);
    other.fails(1, "cannot serve the hub's HTTP on").fails(1, "hint: ");
    home.weft(&["--lab", "other", "ps"]).fails(1, "no laboratory `other` is running");
}

/// Off loopback the hub serves TLS only, and only its owner can read the laboratory's token.
#[test]
fn a_hub_shows_strangers_nothing() {
    let home = Home::new();
    let port = free_port();
    let tree = home.small_tree();
    let everywhere = format!("0.0.0.0:{port}");
    let up = home.weft(&["up", "--pack", "all", "--hub-metrics", &everywhere, text(&tree)]);
    up.succeeds();
    let token = home.lab("default").join("identities/http.token");
    assert!(up.stderr.contains(text(&token)), "{}", up.stderr);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&token).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let record = std::fs::read_to_string(home.lab("default").join("lab.json")).unwrap();
    let token = std::fs::read_to_string(token).unwrap();
    assert!(token.len() == 64 && !record.contains(&token), "processes know its hash");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let bearer = format!("Authorization: Bearer {token}");
    let _ =
        write!(stream, "GET /status HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1 200"), "plain HTTP gets an answer");
    let pages = format!("https://pages.http.weft:{port}/status");
    let mut curl = std::process::Command::new("curl");
    curl.args([
        "--silent",
        "--fail",
        "--cacert",
        text(&home.lab("default").join("ca.pem")),
        "--header",
        &bearer,
    ]);
    curl.args(["--resolve", &format!("pages.http.weft:{port}:127.0.0.1"), &pages]);
    let shown = curl.output().expect("curl must be installed");
    assert!(String::from_utf8(shown.stdout).unwrap().contains("\"expected\""), "{:?}", shown.status);
}

#[test]
fn ps_and_status_tell_what_the_hub_knows_and_who_hangs() {
    let home = Home::new();
    up(&home, &["--pm", "--restart", "on-failure"]);
    wait_until("all is ready", || status(&home).is_some_and(|status| all_ready(&status)));
    kill(&home, "pm");
    wait_until("pm is started again", || line(&home, "pm").is_some_and(|line| line.restarts == 1));
    wait_for_state(&home, "pm", ProcessState::Ready);
    let of = |name: &str| {
        let listed = home.json(&["ps", "--json"]);
        listed.as_array().unwrap().iter().find(|process| process["process"] == name).unwrap().clone()
    };
    let pm = of("pm");
    assert_eq!((&pm["restarts"], &pm["last_end"]["how"]), (&1.into(), &"failed".into()), "{pm}");
    assert_eq!((&pm["state"], &of("sm")["last_end"]), (&"running".into(), &serde_json::Value::Null));
    let known = home.json(&["status", "--json"]);
    assert_eq!((&known["processes"]["alive"], &known["processes"]["restarts"]), (&4.into(), &1.into()));
    let shown = home.weft(&["status"]).succeeds().stdout.clone();
    assert!(shown.contains("\n4 of 4 processes run; restarts: 1\n"), "{shown}");
    // What hangs is not called running, an agent or a manager.
    let frozen = [pid(&home, "a0001"), pid(&home, "pm")];
    frozen.iter().for_each(|pid| signal(*pid, Signal::STOP));
    let listed = home.json(&["ps", "--json"]);
    frozen.iter().for_each(|pid| signal(*pid, Signal::CONT));
    for process in listed.as_array().unwrap() {
        let name = process["process"].as_str().unwrap();
        let expected = if ["a0001", "pm"].contains(&name) { "silent" } else { "running" };
        assert_eq!(process["state"], expected, "{process}");
    }
    // Without a hub the rest is as ever.
    kill(&home, "hub");
    wait_until("the hub is dead", || pid(&home, "hub") == 0);
    let sm = of("sm");
    assert_eq!((&sm["state"], &sm["restarts"]), (&"running".into(), &serde_json::Value::Null));
    assert_eq!(home.json(&["status", "--json"])["processes"], serde_json::Value::Null);
}

/// The hub, managers and agents are killed at any moment; in the end the policy has brought back all that a hub found.
#[test]
fn a_hub_restarts_processes_after_random_kills() {
    use rand::{RngExt, SeedableRng};
    for seed in 0..2 {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        let home = Home::new();
        up(&home, &["--pm", "--restart", "on-failure"]);
        for _ in 0..8 {
            match rng.random_range(0..6) {
                0 => {
                    kill(&home, "hub");
                    wait_until("the hub is dead", || pid(&home, "hub") == 0);
                }
                1 => kill(&home, "sm"),
                2 => kill(&home, "pm"),
                3 => kill(&home, "a0001"),
                4 => {
                    kill(&home, "hub");
                    kill(&home, ["sm", "pm", "a0000"][rng.random_range(0..3)]);
                }
                _ => {}
            }
            if pid(&home, "hub") == 0 && rng.random_range(0..2) == 0 {
                home.weft(&["hub", "--detached"]).succeeds();
            }
        }
        if pid(&home, "hub") == 0 {
            home.weft(&["hub", "--detached"]).succeeds();
        }
        wait_until(&format!("seed {seed}: all is ready"), || {
            status(&home).is_some_and(|status| all_ready(&status))
        });
        wait_until(&format!("seed {seed}: the fabric is whole"), || home.weft(&["check"]).code == 0);
        let processes = home.processes();
        home.weft(&["down"]).succeeds();
        assert!(home.is_empty(), "seed {seed}");
        assert!(processes.iter().all(|(_, pid)| !runs(*pid)), "seed {seed}: {processes:?}");
    }
}
