//! `weft events` on laboratories of real processes: by the hub, without one, and from one to the other.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{Home, signal, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::common;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn up(home: &Home, options: &[&str]) {
    let tree = home.small_tree();
    home.weft(&[&["up", "--pack", "4"], options, &[text(&tree)]].concat()).succeeds();
}

fn pid(home: &Home, name: &str) -> u32 {
    home.processes().into_iter().find(|(process, _)| process == name).unwrap().1
}

fn kill_hub(home: &Home) {
    signal(pid(home, "hub"), Signal::KILL);
    wait_until("the hub is dead", || pid(home, "hub") == 0);
}

/// A follower whose events and complaints are kept.
struct Follower {
    child: Child,
    events: mpsc::Receiver<Value>,
    seen: Vec<Value>,
}

impl Follower {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let arguments = [&["events", "--follow", "--json"], arguments].concat();
        let mut child =
            home.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (send, events) = mpsc::channel();
        std::thread::spawn(move || {
            let events = lines.map_while(Result::ok).map(|line| serde_json::from_str(&line).unwrap());
            events.for_each(|event| drop(send.send(event)));
        });
        Self { child, events, seen: Vec::new() }
    }

    /// Waits for one event.
    #[track_caller]
    fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.wait_for_all(what, &[&wanted]).remove(0)
    }

    /// Waits for several events, in whatever order processes come to tell them.
    #[track_caller]
    fn wait_for_all(&mut self, what: &str, wanted: &[&dyn Fn(&Value) -> bool]) -> Vec<Value> {
        let mut found = vec![Value::Null; wanted.len()];
        let deadline = Instant::now() + PATIENCE;
        loop {
            let event = self.events.recv_timeout(PATIENCE);
            let event = event.unwrap_or_else(|_| panic!("no event: {what}; seen: {:#?}", self.seen));
            self.seen.push(event.clone());
            for (_, found) in wanted.iter().zip(&mut found).filter(|(wanted, _)| wanted(&event)) {
                *found = event.clone();
            }
            if found.iter().all(|found| !found.is_null()) {
                return found;
            }
            assert!(Instant::now() < deadline, "not all came: {what}; seen: {:#?}", self.seen);
        }
    }

    /// Its end, with all events that it showed and what it said.
    fn end(mut self) -> (bool, Vec<Value>, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let success = self.child.wait().unwrap().success();
        self.seen.extend(self.events.iter());
        (success, self.seen, said)
    }
}

fn is(event: &Value, source: &str, name: &str) -> bool {
    event["source"] == source && event["event"] == name
}

/// The numbers of the events of each life of each source, in the order in which they came.
fn numbers(events: &[Value]) -> BTreeMap<(String, String), Vec<u64>> {
    let mut numbers: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for event in events {
        let text = |name: &str| event[name].as_str().unwrap().to_owned();
        let of = numbers.entry((text("source"), text("incarnation"))).or_default();
        of.push(event["sequence"].as_u64().unwrap());
    }
    numbers
}

#[test]
fn followed_events_go_on_through_hubs_that_die_and_return() {
    let home = Home::new();
    up(&home, &["--pm"]);
    let mut follower = Follower::start(&home, &["--since", "start"]);
    follower.wait_for_all(
        "SUBNET UP and the hub",
        &[&|event| is(event, "sm", "subnet-up"), &|event| is(event, "hub", "process-ready")],
    );
    kill_hub(&home);
    // Now the processes tell themselves, the fault as well.
    home.weft(&["fault", "link-down", "host-0:1"]).succeeds();
    let told = follower.wait_for_all(
        "the fault and the cut",
        &[&|event| event["event"] == "fault", &|event| event["event"] == "link-down"],
    );
    assert_eq!((&told[0]["fault"], &told[0]["place"]), (&"link-down".into(), &Value::Null), "{told:?}");
    // A process that is started meanwhile is heard, too.
    home.weft(&["fault", "restart", "pm"]).succeeds();
    follower.wait_for("the new pm", |event| is(event, "pm", "process-ready"));
    home.weft(&["hub", "--detached"]).succeeds();
    let ready = follower.wait_for("the second hub", |event| is(event, "hub", "process-ready"));
    assert!(ready["place"].is_u64(), "{ready}");
    home.weft(&["fault", "link-up", "host-0:1"]).succeeds();
    let told = follower.wait_for_all(
        "the repair and the link",
        &[&|event| event["fault"] == "link-up", &|event| event["event"] == "link-up"],
    );
    assert_eq!(told[0]["source"], "hub");
    home.weft(&["down"]).succeeds();
    let (success, seen, said) = follower.end();
    assert!(success, "{said}");
    assert!(said.contains("no hub of `default` answers; asking every process"), "{said}");
    assert!(said.contains("hint: start one with `weft hub --detached`"), "{said}");
    for ((source, _), numbers) in numbers(&seen) {
        let all: Vec<u64> = (0..numbers.len() as u64).collect();
        assert_eq!(numbers, all, "{source}: nothing twice, and nothing left out");
    }
}

#[test]
fn without_a_hub_every_process_is_asked() {
    let home = Home::new();
    up(&home, &[]);
    let by_hub = home.weft(&["events", "--json"]);
    assert!(by_hub.succeeds().stderr.is_empty(), "{}", by_hub.stderr);
    kill_hub(&home);
    let asked = home.weft(&["events", "--json"]);
    assert!(asked.succeeds().stderr.contains("weft hub --detached"), "{}", asked.stderr);
    let parse =
        |text: &str| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let (by_hub, asked) = (parse(&by_hub.stdout), parse(&asked.stdout));
    for events in [&by_hub, &asked] {
        assert!(events.is_sorted_by_key(|event| event["time"].as_str().unwrap().to_owned()));
        assert!(events.iter().any(|event| is(event, "sm", "subnet-up")));
    }
    // All but what the hub said of itself.
    let mut of_processes = numbers(&by_hub);
    of_processes.retain(|(source, _), _| source != "hub");
    let own = numbers(&asked);
    for (of, numbers) in of_processes {
        assert!(own[&of].len() >= numbers.len(), "{of:?}");
    }
    // A process that hangs keeps no one else's events back.
    let agent = pid(&home, "a0001");
    signal(agent, Signal::STOP);
    let asked = home.weft(&["events", "--fields"]);
    signal(agent, Signal::CONT);
    assert!(asked.succeeds().stderr.contains("a0001 did not answer"), "{}", asked.stderr);
    assert!(asked.stdout.contains(" subnet-up ") && asked.stdout.contains(" a0000 "), "{}", asked.stdout);
}

#[test]
fn faults_set_by_a_user_are_events() {
    let home = Home::new();
    up(&home, &[]);
    home.weft(&["fault", "restart", "host-0"]).succeeds();
    let events = home.weft(&["events", "--fields"]).succeeds().stdout.clone();
    let is_restart = |line: &str| {
        line.contains(" fault ") && line.contains(" fault=restart ") && line.contains(" target=a000")
    };
    assert!(events.lines().any(is_restart), "{events}");
    // The same for people.
    let events = home.weft(&["events", "--kind", "fault,link-down"]).succeeds().stdout.clone();
    let faults = events.lines().filter(|line| line.contains(" hub fault restart a000"));
    assert_eq!(faults.count(), 1, "{events}");
}
