//! Recabling that is interrupted: the next verb finishes it, or the laboratory goes.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;

use common::{Done, Home, signal, text, wait_until};
use rustix::process::Signal;

use crate::common;

const CHORD: [&str; 4] = ["topo", "connect", "switch-0:5", "switch-2:5"];
const FINISHED: &str = "finished an interrupted `weft topo connect switch-0:5 switch-2:5`";

/// A ring of four switches with a host each; ports 4 to 6 of every switch are free.
fn ring(home: &Home) -> PathBuf {
    let path = home.base().with_file_name("ring.topo");
    let options = ["--switches", "4", "--hosts", "1", "--radix", "6", "-o", text(&path)];
    home.weft(&[&["topo", "gen", "ring"][..], &options].concat()).succeeds();
    path
}

fn up(options: &[&str]) -> Home {
    let home = Home::new();
    let file = ring(&home);
    home.weft(&[&["up", text(&file)], options].concat()).succeeds();
    home
}

fn diff(home: &Home) -> Done {
    home.weft(&["topo", "diff"])
}

/// The chord is there and what the agents have is what is written down.
#[track_caller]
fn has_chord(home: &Home) {
    wait_until("the agents have what is written down", || diff(home).code == 0);
    let links = home.json(&["links", "--json"]);
    let is_chord = |link: &serde_json::Value| {
        let port = |end: &str| (link[end]["node"].as_str().unwrap().to_owned(), link[end]["port"].clone());
        let mut ends = [port("a"), port("b")];
        ends.sort_by(|a, b| a.0.cmp(&b.0));
        ends == [("switch-0".to_owned(), 5.into()), ("switch-2".to_owned(), 5.into())]
    };
    assert!(links.as_array().unwrap().iter().any(is_chord), "{links}");
    wait_until("`weft check` is content", || home.weft(&["check"]).code == 0);
    home.weft(&CHORD).fails(2, "a cable to switch-2:5 is in switch-0:5 already");
}

fn pid(home: &Home, process: &str) -> u32 {
    home.processes().into_iter().find(|(name, _)| name == process).unwrap().1
}

/// The agent of a node.
fn agent_of(home: &Home, node: &str) -> String {
    let processes = home.json(&["ps", "--json"]);
    let is_of = |process: &&serde_json::Value| {
        process["devices"].as_array().is_some_and(|devices| devices.iter().any(|one| one["label"] == node))
    };
    let found = processes.as_array().unwrap().iter().find(is_of);
    found.unwrap_or_else(|| panic!("{processes}"))["process"].as_str().unwrap().to_owned()
}

#[test]
fn an_interrupted_change_is_finished_by_the_next() {
    let home = up(&["--metrics"]);
    let lab = home.lab("default");
    let (journal, in_the_way) = (lab.join("recabling.json"), lab.join("prometheus.yml"));
    let agents = ["switch-0", "switch-2"].map(|node| format!("agents/{}.json", agent_of(&home, node)));
    let written = [&agents[0], &agents[1], "topology"].map(|file| lab.join(file));
    let before = written.each_ref().map(|file| std::fs::read(file).unwrap());
    // Its agents know, and what is written last cannot be.
    std::fs::remove_file(&in_the_way).unwrap();
    std::fs::create_dir(&in_the_way).unwrap();
    home.weft(&CHORD).fails(1, "the cables are as wanted, but that is not written down");
    assert!(journal.exists());
    // As if it had been killed before it wrote anything; and one of the agents begins again, and knows nothing.
    for (file, text) in written.iter().zip(&before) {
        assert_ne!(std::fs::read(file).unwrap(), *text, "{}", file.display());
        std::fs::write(file, text).unwrap();
    }
    home.weft(&["fault", "restart", "switch-0"]).succeeds();
    std::fs::remove_dir(&in_the_way).unwrap();
    let told = diff(&home);
    assert!(told.stderr.contains(FINISHED), "{}", told.stderr);
    assert!(!told.stderr.contains("warning"), "{}", told.stderr);
    assert!(!journal.exists() && in_the_way.is_file());
    has_chord(&home);
}

/// A change that is killed when this step is done, and what the next verb says of it.
fn killed_at(home: &Home, step: &str, change: &[&str]) -> String {
    let arguments = [&["topo"][..], change].concat();
    let ended = home.command(&arguments).env("WEFT_KILL_AT", step).output().unwrap();
    assert_eq!(ended.status.signal(), Some(Signal::KILL.as_raw()), "{step}: {ended:?}");
    let journal = home.lab("default").join("recabling.json");
    assert!(journal.exists(), "{step}");
    let told = diff(home);
    assert!(!told.stderr.contains("warning"), "{step}: {}", told.stderr);
    assert!(!journal.exists(), "{step}: {}", told.stderr);
    let last = diff(home);
    assert!(!last.stderr.contains("interrupted"), "{step}: {}", last.stderr);
    told.stderr
}

/// The steps of every change, in order.
const STEPS: [&str; 8] = ["begun", "started", "told", "noted", "parts", "topology", "record", "repeated"];

#[test]
fn a_cable_that_comes_is_there_wherever_its_verb_was_killed() {
    let home = up(&[]);
    for step in STEPS {
        let told = killed_at(&home, step, &CHORD[1..]);
        assert!(told.contains(FINISHED), "{step}: {told}");
        assert_eq!(diff(&home).code, 0, "{step}");
        home.weft(&CHORD).fails(2, "a cable to switch-2:5 is in switch-0:5 already");
        home.weft(&["topo", "disconnect", "switch-2:5"]).succeeds();
    }
}

#[test]
fn a_host_that_comes_is_there_wherever_its_verb_was_killed() {
    let home = up(&[]);
    for step in STEPS {
        let told = killed_at(&home, step, &["add-host", "new", "--at", "switch-2:4"]);
        assert!(told.contains("finished an interrupted `weft topo add-host new`"), "{step}: {told}");
        assert_eq!(diff(&home).code, 0, "{step}");
        assert!(common::runs(pid(&home, &agent_of(&home, "new"))), "{step}");
        home.weft(&["topo", "remove", "new"]).succeeds();
    }
}

#[test]
fn a_host_that_goes_is_gone_wherever_its_verb_was_killed() {
    let home = up(&[]);
    for step in STEPS.iter().chain(&["stopped", "revoked", "forgotten"]) {
        home.weft(&["topo", "add-host", "new", "--at", "switch-2:4"]).succeeds();
        let (agent, process) = (agent_of(&home, "new"), pid(&home, &agent_of(&home, "new")));
        let told = killed_at(&home, step, &["remove", "new"]);
        assert!(told.contains("finished an interrupted `weft topo remove new`"), "{step}: {told}");
        assert_eq!(diff(&home).code, 0, "{step}");
        wait_until("its agent has ended", || !common::runs(process));
        assert!(!home.lab("default").join(format!("identities/{agent}.pem")).exists(), "{step}");
    }
    wait_until("`weft check` is content", || home.weft(&["check"]).code == 0);
}

/// Has an agent plug in a cable that only it knows of, or unplug it.
fn plant(home: &Home, agent: &str, request: &serde_json::Value) {
    use std::io::{BufRead as _, BufReader, Write as _};
    let socket = home.lab("default").join("control").join(agent);
    let mut socket = std::os::unix::net::UnixStream::connect(socket).unwrap();
    socket.write_all(format!("{{\"v\":1,\"id\":1,\"request\":{request}}}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(socket).read_line(&mut answer).unwrap();
    assert!(answer.contains("done"), "{answer}");
}

/// An agent refuses, and the verb is killed while it undoes what the others have done, or before it knows.
#[test]
fn a_refused_change_is_dropped_wherever_the_verb_was_killed() {
    let home = up(&[]);
    let agent = agent_of(&home, "switch-2");
    let links = home.json(&["links", "--json"]);
    let ends = |link: &serde_json::Value| [link["a"].clone(), link["b"].clone()];
    let ends: Vec<serde_json::Value> = links.as_array().unwrap().iter().flat_map(ends).collect();
    let switch = ends.iter().find(|end| end["node"] == "switch-2").unwrap();
    let node = switch["guid"].clone();
    assert!(node.is_string(), "{switch}");
    let (end, peer) = (
        serde_json::json!({"node": node, "port": 4}),
        serde_json::json!({"node": "0x0000000000000099", "port": 1}),
    );
    let plug = serde_json::json!({
        "type": "connect-cable", "end": end, "peer": peer, "peer_address": "127.0.0.1:9", "delay_ns": 0
    });
    plant(&home, &agent, &plug);
    let add = ["add-host", "new", "--at", "switch-2:4"];
    let before = home.processes().len();
    for step in ["begun", "started", "refused", "undoing", "given-up"] {
        let told = killed_at(&home, step, &add);
        assert!(told.contains("dropped an interrupted `weft topo add-host new`"), "{step}: {told}");
        assert_eq!(home.processes().len(), before, "{step}");
        assert!(!home.lab("default").join("identities/a0008.pem").exists(), "{step}");
    }
    plant(&home, &agent, &serde_json::json!({"type": "disconnect-cable", "end": end, "peer": peer}));
    home.weft(&[&["topo"][..], &add].concat()).succeeds();
    wait_until("`weft check` is content", || home.weft(&["check"]).code == 0);
}

/// The disk is full when a change begins: nothing changes, and when there is room it is made.
#[test]
fn on_a_full_disk_a_change_is_refused_and_nothing_is_lost() {
    let home = Home::new();
    let file = ring(&home);
    let script =
        "mount -t tmpfs -o size=4m,mode=700 tmpfs \"$WEFT_HOME\" && \"$0\" up \"$1\" --no-sm || exit 9
        head -c 8m /dev/zero > \"$WEFT_HOME\"/filler 2>/dev/null
        \"$0\" topo connect switch-0:5 switch-2:5; echo \"code $?\" >&2
        rm \"$WEFT_HOME\"/filler
        \"$0\" topo diff && \"$0\" topo connect switch-0:5 switch-2:5 && \"$0\" topo diff && echo whole
        \"$0\" down";
    std::fs::create_dir_all(home.base()).unwrap();
    let mut command = std::process::Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_weft"), text(&file)]);
    let output = command.env("WEFT_HOME", home.base()).env("NO_COLOR", "1").output().unwrap();
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.ends_with("whole\n"), "{out}\n{said}");
    assert!(said.contains("code 1") && said.contains("No space left on device"), "{said}");
    assert!(said.contains("hint: make room, and run the same command again"), "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{said}");
    assert!(!said.contains("interrupted"), "{said}");
}

/// A journal that cannot be read names the way out.
#[test]
fn a_journal_of_another_version_says_what_to_do() {
    let home = up(&[]);
    let journal = home.lab("default").join("recabling.json");
    std::fs::write(&journal, "{\"stage\":\"dreaming\"}").unwrap();
    diff(&home).fails(1, "an interrupted change cannot be finished").fails(1, "hint: remove ");
    std::fs::remove_file(&journal).unwrap();
    assert_eq!(diff(&home).code, 0);
}

/// An agent that does not answer may have done its part or not: the change waits for the next verb.
#[test]
fn an_unanswered_change_is_finished_once_the_agent_answers() {
    let home = up(&[]);
    let stopped = pid(&home, &agent_of(&home, "switch-0"));
    signal(stopped, Signal::STOP);
    let done = home.weft(&CHORD);
    signal(stopped, Signal::CONT);
    done.fails(1, "whether it has done its part is not known");
    assert!(home.lab("default").join("recabling.json").exists());
    let told = diff(&home);
    assert!(told.stderr.contains(FINISHED), "{}", told.stderr);
    has_chord(&home);
}

#[test]
fn a_laboratory_goes_down_while_it_is_recabled() {
    let home = up(&[]);
    let stopped = pid(&home, &agent_of(&home, "switch-0"));
    signal(stopped, Signal::STOP);
    let mut change = home.command(&CHORD).spawn().unwrap();
    let journal = home.lab("default").join("recabling.json");
    wait_until("the change has begun", || journal.exists());
    home.weft(&["down"]).succeeds();
    assert_eq!(change.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    assert!(home.is_empty() && !common::runs(stopped));
}

/// As after a verb that was killed when it had issued an identity and informed no process.
#[test]
fn an_identity_that_was_issued_is_put_to_use() {
    let home = Home::new();
    let (file, bundle) = (ring(&home), home.base().with_file_name("bundle"));
    home.weft(&["plan", text(&file), "--pack", "leaf", "--out", text(&bundle)]).succeeds();
    let up = || home.weft(&["up", "--bundle", text(&bundle)]).succeeds().code;
    up();
    let name = agent_of(&home, "host-0");
    assert_eq!(name, agent_of(&home, "switch-0"), "they share an agent");
    let identity = home.lab("default").join(format!("identities/{name}.pem"));
    let change = ["topo", "move", "host-0:1", "switch-2:6"];
    home.weft(&change).fails(1, "no identity can be issued");
    home.weft(&[&change[..], &["--in", text(&bundle)]].concat()).succeeds();
    let issued = std::fs::read(&identity).unwrap();
    home.weft(&["down"]).succeeds();
    up();
    assert_ne!(std::fs::read(&identity).unwrap(), issued);
    std::fs::write(&identity, issued).unwrap();
    let moved = home.json(&[&change[..], &["--json"]].concat());
    assert_eq!(moved["links_up"], true, "{moved}");
    wait_until("`weft check` is content", || home.weft(&["check"]).code == 0);
    // It goes on naming the host, which has no cable to another agent any more.
    home.weft(&["topo", "move", "host-0:1", "switch-0:1"]).succeeds();
    home.weft(&["fault", "restart", "switch-0"]).succeeds();
    wait_until("`weft check` is content", || home.weft(&["check"]).code == 0);
}
