//! A hub of remote processes: the list of revoked identities that it got outlives it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::ports::free_port;
use common::{Home, Running, planned_port, text, wait_until};
use rustix::process::Signal;
use tokio::io::AsyncWriteExt as _;
use weft_link::{Call, Credentials, Identity, Peer, Protocol, VisitorStream};
use weft_wire::Guid;

use crate::common;

/// A planned laboratory, and its bundle as containers have it: without the authority's key.
struct Apart {
    home: Home,
    bundle: PathBuf,
    far: PathBuf,
    at: String,
}

impl Apart {
    fn plan() -> Self {
        let home = Home::new();
        let beside = |name: &str| home.base().with_file_name(name);
        let (tree, bundle, far) = (home.small_tree(), beside("bundle"), beside("far"));
        let options = ["--no-sm", "--pack", "all", "--udp-port", &planned_port()];
        home.weft(&[&["plan", text(&tree), "--out", text(&bundle)], &options[..]].concat()).succeeds();
        assert!(Command::new("cp").arg("-r").args([&bundle, &far]).status().unwrap().success());
        std::fs::remove_file(far.join("ca.key")).unwrap();
        let at = format!("127.0.0.1:{}", free_port());
        Self { home, bundle, far, at }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.home.base().with_file_name(name)
    }

    fn agent(&self) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args(["agent", "--bundle", text(&self.far), "--as", "a0000"]);
        command.args(["--run", text(&self.folder("agent"))]);
        Running::start_command(&mut command)
    }

    fn hub(&self) -> Running {
        let run = self.folder("hub");
        let arguments = ["hub", "--bundle", text(&self.far), "--run", text(&run), "--door", &self.at];
        Running::start(&self.home, &arguments)
    }

    fn with(&self, who: &str, arguments: &[&str]) -> common::Done {
        let identity = self.bundle.join(format!("identities/{who}.pem"));
        self.home.weft(&[&["--at", &self.at, "--identity", text(&identity)], arguments].concat())
    }

    fn wait_until_it_runs(&self) {
        wait_until("the hub reaches the agent", || {
            self.with("operator", &["ask", "a0000", "agent-status"]).code == 0
        });
    }

    /// Revokes where the authority's key is.
    fn revoke(&self, name: &str) -> common::Done {
        self.with("operator", &["identity", "revoke", name, "--in", text(&self.bundle)])
    }
}

fn kill(mut process: Running) {
    assert!(process.is_running());
    process.signal(Signal::KILL);
    process.end();
}

#[test]
fn a_restarted_hub_keeps_and_passes_on_revocations() {
    let apart = Apart::plan();
    let (agent, hub) = (apart.agent(), apart.hub());
    apart.wait_until_it_runs();
    apart.with("viewer", &["status"]).succeeds();
    apart.revoke("viewer").succeeds();
    apart.with("viewer", &["status"]).fails(1, "Revoked");
    let kept = apart.folder("hub").join("revoked.pem");
    assert!(kept.exists(), "the hub keeps the list");

    kill(hub);
    kill(agent);
    let (agent, hub) = (apart.agent(), apart.hub());
    apart.wait_until_it_runs();
    apart.with("viewer", &["status"]).fails(1, "Revoked");
    // The agent has forgotten, and gets the list again.
    let knows = || {
        let events = apart.with("operator", &["events", "--json"]).stdout;
        events.lines().any(|line| line.contains("identities-revoked") && line.contains("a0000"))
    };
    wait_until("the agent that came back is told", knows);
    kill(agent);
    kill(hub);
}

/// A hub that begins on another machine, or without the folder that it had, takes from the agents what it has lost.
#[test]
fn a_hub_without_its_folder_relearns_from_agents() {
    let apart = Apart::plan();
    let (agent, hub) = (apart.agent(), apart.hub());
    apart.wait_until_it_runs();
    let cables = || {
        let done = apart.with("operator", &["links", "--json"]);
        let links: serde_json::Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
        links.as_array().unwrap().len()
    };
    let planned = cables();
    apart.revoke("viewer").succeeds();
    apart.with("operator", &["topo", "disconnect", "host-0:1"]).succeeds();
    assert_eq!(cables(), planned - 1);
    kill(hub);
    std::fs::remove_dir_all(apart.folder("hub")).unwrap();
    let hub = apart.hub();
    apart.wait_until_it_runs();
    wait_until("the hub learns of the cable", || cables() == planned - 1);
    apart.with("operator", &["topo", "diff"]).succeeds();
    wait_until("the hub learns of the revocation", || apart.folder("hub").join("revoked.pem").exists());
    apart.with("viewer", &["status"]).fails(1, "Revoked");
    // An agent that begins again has what its bundle says, and the hub tells it what it had.
    let is_as_written = || apart.with("operator", &["topo", "diff"]).code == 0;
    let restarted = |agent| {
        kill(agent);
        apart.agent()
    };
    let agent = restarted(agent);
    wait_until("the agent has no cable there again", is_as_written);
    assert_eq!(cables(), planned - 1);
    apart.with("operator", &["topo", "disconnect", "host-1:1"]).succeeds();
    apart.with("operator", &["topo", "connect", "host-0:1", "switch-1-0:2"]).succeeds();
    let agent = restarted(agent);
    wait_until("the agent has the cable where it was put", is_as_written);
    assert_eq!(cables(), planned - 1);
    // Both begin again, and the hub's folder is there.
    kill(hub);
    let agent = restarted(agent);
    let hub = apart.hub();
    wait_until("the agent has the cable where it was put", is_as_written);
    assert_eq!(cables(), planned - 1);
    kill(agent);
    kill(hub);
}

/// The hub's connection to the old life is reset when the new one has had clients already: these are not sent away for that.
#[test]
fn an_agent_that_is_back_at_once_is_not_out_of_reach_again() {
    let apart = Apart::plan();
    let (agent, hub) = (apart.agent(), apart.hub());
    apart.wait_until_it_runs();
    kill(agent);
    let agent = apart.agent();
    apart.wait_until_it_runs();
    // By the next word of the hub, which comes every second.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        apart.with("operator", &["ask", "a0000", "agent-status"]).succeeds();
    }
    kill(agent);
    kill(hub);
}

/// Everything that a viewer's identity can take, until this is dropped.
struct Greedy {
    left: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Connections to the hub's door, conversations in each, and connections to the agent itself, that a greedy viewer tries to have.
const GREED: (usize, usize, usize) = (12, 40, 70);

impl Greedy {
    fn take_all(apart: &Apart) -> Self {
        let read = |file: &str| std::fs::read_to_string(apart.bundle.join(file)).unwrap();
        let identity = Identity::from_pem(&read("ca.pem"), read("identities/viewer.pem"));
        let record: serde_json::Value = serde_json::from_str(&read("lab.json")).unwrap();
        let agent = &record["agents"][0];
        let agent_at: SocketAddr = agent["address"].as_str().unwrap().parse().unwrap();
        let node: Guid = serde_json::from_value(agent["devices"][0]["guid"].clone()).unwrap();
        let hub_at: SocketAddr = apart.at.parse().unwrap();
        let (left, stays) = tokio::sync::oneshot::channel();
        let (took, has_all) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let credentials = Credentials::new(identity).unwrap();
                let hub = Peer::Role("hub".into());
                let mut held: (Vec<Call>, Vec<VisitorStream>) = Default::default();
                for _ in 0..GREED.0 {
                    let call = Call::place(hub_at, &hub, &credentials, Protocol::Relay).await.unwrap();
                    for _ in 0..GREED.1 {
                        // A connection that is refused ends at any of these.
                        let Ok(mut stream) = call.stream().await else { break };
                        let said = stream.write_all(b"{\"control\":\"a0000\"}\n").await;
                        held.1.extend(said.is_ok().then_some(stream));
                    }
                    held.0.push(call);
                }
                for _ in 0..GREED.2 {
                    let call =
                        Call::place(agent_at, &Peer::Node(node), &credentials, Protocol::Control).await;
                    let call = call.unwrap();
                    held.1.extend(call.stream().await);
                    held.0.push(call);
                }
                took.send(()).unwrap();
                let _ = stays.await;
            });
        });
        has_all.recv().unwrap();
        Self { left: Some(left), thread: Some(thread) }
    }
}

impl Drop for Greedy {
    fn drop(&mut self) {
        drop(self.left.take());
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// A viewer that takes what it can get keeps neither operators nor the hub from anything.
#[test]
fn a_greedy_viewer_holds_up_nobody() {
    let apart = Apart::plan();
    let (agent, hub) = (apart.agent(), apart.hub());
    apart.wait_until_it_runs();
    let _greedy = Greedy::take_all(&apart);
    let shows = |process: &str, wanted: &str| {
        let done = apart.with("operator", &["ask", process, "metrics"]);
        done.succeeds().stdout.lines().any(|line| line.contains(wanted))
    };
    wait_until("four connections are refused", || shows("hub", "weft_control_door_clients_refused_total 4"));
    // Of 320 conversations 16 are passed on.
    let refused = "weft_control_door_conversations_refused_total 304";
    wait_until("conversations are refused", || shows("hub", refused));
    apart.with("viewer", &["status"]).fails(1, "too many clients of this identity");
    for verb in [&["ask", "a0000", "agent-status"][..], &["ps"], &["links"]] {
        apart.with("operator", verb).succeeds();
    }
    // The agent's places are taken as far as may be; a hub that begins again finds its own.
    kill(hub);
    let hub = apart.hub();
    apart.wait_until_it_runs();
    let status = apart.with("operator", &["ask", "a0000", "agent-status"]);
    let status: serde_json::Value = serde_json::from_str(&status.succeeds().stdout).unwrap();
    assert_eq!(status["counts"]["visitors_turned_away"], 62, "{status}");
    kill(agent);
    kill(hub);
}

/// Simultaneous revocations wait for each other: none is lost.
#[test]
fn revocations_at_the_same_time_are_all_on_the_list() {
    let home = Home::new();
    let (tree, bundle) = (home.small_tree(), home.base().with_file_name("bundle"));
    home.weft(&["plan", text(&tree), "--out", text(&bundle), "--no-sm"]).succeeds();
    let names: Vec<String> = (0..8).map(|agent| format!("a{agent:04}")).collect();
    let revoke =
        |name: &String| home.command(&["identity", "revoke", name, "--in", text(&bundle)]).spawn().unwrap();
    let running: Vec<_> = names.iter().map(revoke).collect();
    for mut one in running {
        assert!(one.wait().unwrap().success());
    }
    let listed = home.weft(&["identity", "ls", "--in", text(&bundle)]).succeeds().stdout.clone();
    assert_eq!(listed.matches("revoked on ").count(), names.len(), "{listed}");
    assert!(leftovers(&bundle).is_empty(), "{:?}", leftovers(&bundle));
}

/// Files that were to replace others.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().contains(".new")).collect()
}

/// The first process of a container has no default for signals, so one that comes before its handler would be lost.
#[test]
fn a_process_that_is_told_to_end_before_it_is_ready_ends() {
    let home = Home::new();
    let beside = |name: &str| home.base().with_file_name(name);
    let (tree, bundle, run) = (home.small_tree(), beside("bundle"), beside("run"));
    home.weft(&["plan", text(&tree), "--pm", "--vfs", "1", "--out", text(&bundle)]).succeeds();
    for (verb, name, file) in [
        ("agent", Some("a0000"), "agents/a0000.json"),
        ("sm", Some("sm"), "managers/sm.json"),
        ("pm", Some("pm"), "managers/pm.json"),
        ("vmm", Some("vmm"), "managers/vmm.json"),
        ("hub", None, "lab.json"),
    ] {
        // It waits for its configuration in a file that no one writes.
        let file = bundle.join(file);
        std::fs::remove_file(&file).unwrap();
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        let named = name.iter().flat_map(|name| ["--as", name]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.args([verb, "--bundle", text(&bundle), "--run", text(&run)]).args(named);
        let mut process = command.spawn().unwrap();
        // This is opened once the process has opened it.
        let _writer = std::fs::File::options().write(true).open(&file).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_child(&process), Signal::TERM).unwrap();
        assert_eq!(process.wait().unwrap().code(), Some(0), "{verb}");
    }
}
