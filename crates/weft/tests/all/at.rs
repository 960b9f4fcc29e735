//! `--at`: verbs on a remote laboratory, by the door of its hub.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use common::ports::free_port;
use common::{Home, Running, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::common;
use crate::ui::Page;

/// A laboratory whose hub has a door, and the arguments that lead there.
struct Behind {
    lab: Home,
    /// A remote user.
    user: Home,
    at: String,
}

impl Behind {
    fn up(options: &[&str]) -> Self {
        let lab = Home::new();
        let tree = lab.small_tree();
        Self::up_in(lab, &[options, &[text(&tree)]].concat())
    }

    /// The last of the arguments is the fabric's file.
    fn up_in(lab: Home, arguments: &[&str]) -> Self {
        let port = free_port().to_string();
        lab.weft(&[&["up", "--pack", "4", "--hub-door", &port], arguments].concat()).succeeds();
        Self { lab, user: Home::new(), at: format!("127.0.0.1:{port}") }
    }

    fn identity(&self, role: &str) -> String {
        text(&self.lab.lab("default").join(format!("identities/{role}.pem"))).to_owned()
    }

    fn with(&self, role: &str, arguments: &[&str]) -> common::Done {
        let identity = self.identity(role);
        self.user.weft(&[&["--at", &self.at, "--identity", &identity], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let done = self.with("operator", arguments);
        done.succeeds();
        serde_json::from_str(&done.stdout).unwrap()
    }
}

/// The names of all fields, wherever they are.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(shape).collect(),
        _ => Value::Null,
    }
}

#[test]
fn verbs_tell_from_elsewhere_what_they_tell_at_home() {
    let behind = Behind::up(&["--pm"]);
    for verb in [
        &["ps", "--json"][..],
        &["status", "--json"],
        &["links", "--json"],
        &["trace", "host-0", "host-3", "--json"],
        &["check", "--json"],
        &["fault", "ls", "--json"],
    ] {
        assert_eq!(shape(&behind.json(verb)), shape(&behind.lab.json(verb)), "{verb:?}");
    }
    // What stands still is the same to the last byte.
    for verb in [&["trace", "host-0", "host-3"][..], &["ask", "a0000", "devices"], &["ps"]] {
        let (far, near) = (behind.with("operator", verb), behind.lab.weft(verb));
        assert_eq!(far.succeeds().stdout, near.stdout, "{verb:?}");
    }
    let shown = behind.with("viewer", &["ask", "hub", "metrics"]).succeeds().stdout.clone();
    assert!(shown.contains("weft_control_door_ignored_total"), "{shown}");
    let told = behind.with("operator", &["events", "--json"]);
    assert!(told.succeeds().stdout.contains("\"subnet-up\""), "{}", told.stdout);
    // Only the mark of each client's folder was there, and it has gone with the client.
    assert!(behind.user.is_empty(), "clients leave nothing behind");
}

/// Options of the routing are the subnet manager's to tell: no configuration can be read behind a door.
#[test]
fn lanes_and_cuts_are_judged_from_elsewhere_as_at_home() {
    let lab = Home::new();
    lab.weft(&["topo", "gen", "ring", "--switches", "5", "--hosts", "1", "-o", "ring.topo"]).succeeds();
    let behind = Behind::up_in(lab, &["--engine", "lash", "--lanes", "4", "ring.topo"]);
    let lanes = |check: &Value| check["deadlock"].clone();
    let (far, near) = (behind.json(&["check", "--json"]), behind.lab.json(&["check", "--json"]));
    assert_eq!((&near["deadlock"]["by_lane"], lanes(&far)), (&Value::Bool(true), lanes(&near)));
    let links = behind.lab.json(&["links", "--json"]);
    let is_switch = |end: &Value| end["node"].as_str().unwrap().starts_with("switch");
    let between = |link: &&Value| is_switch(&link["a"]) && is_switch(&link["b"]);
    let links: Vec<&Value> = links.as_array().unwrap().iter().filter(between).collect();
    assert_eq!(links.len(), 5);
    for link in links {
        let port = format!("{}:{}", link["a"]["node"].as_str().unwrap(), link["a"]["port"]);
        let verb = ["links", "--if-cut", &port, "--json"];
        assert_eq!(behind.json(&verb), behind.lab.json(&verb), "{port}");
    }
}

#[test]
fn the_page_from_elsewhere_shows_partitions_as_they_are() {
    let lab = Home::new();
    lab.write("partitions", "Default=0x7fff : ALL=full ;\nweb=0x0102 : ;\n");
    let tree = lab.small_tree();
    let behind = Behind::up_in(lab, &["--partitions", "partitions", text(&tree)]);
    let identity = behind.identity("viewer");
    let arguments = ["--at", &behind.at, "--identity", &identity, "ui", "--no-browser"];
    let page = Page::serve(Running::start(&behind.user, &arguments));
    let mut watch = page.watch();
    let web = |state: &Value| state["partitions"]["0x0102"].clone();
    watch.until("the partition is there", |state| web(state)["members"] == 0);
    behind.lab.weft(&["partition", "join", "web", "host-1"]).succeeds();
    watch.until("its member is there", |state| web(state)["full"] == serde_json::json!(["host-1"]));
    page.close();
}

#[test]
fn faults_from_elsewhere_last_and_end() {
    let behind = Behind::up(&[]);
    behind.with("operator", &["fault", "link-down", "host-0:1"]).succeeds();
    wait_until("the cut is known at home", || {
        behind.lab.json(&["fault", "ls", "--json"]).as_array().is_some_and(|faults| faults.len() == 1)
    });
    assert_eq!(behind.with("operator", &["check"]).code, 1, "a host without its cable is not reached");
    behind.with("operator", &["fault", "clear", "--all"]).succeeds();
    wait_until("all hosts are reached again", || behind.with("operator", &["check"]).code == 0);
    behind
        .with("operator", &["fault", "freeze", "sm"])
        .fails(1, "hint: of a container: `docker pause CONTAINER`");
}

/// Each life of a process, by its name.
fn lives(behind: &Behind) -> BTreeMap<String, (String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let status = behind.json(&["ask", "hub", "lab-status"]);
    let lines = status["processes"].as_array().unwrap();
    lines
        .iter()
        .map(|line| (text(&line["name"]), (text(&line["state"]), text(&line["incarnation"]))))
        .collect()
}

#[test]
fn remotely_killed_processes_come_back_by_their_starter() {
    let behind = Behind::up(&["--pm", "--restart", "on-failure"]);
    behind.with("viewer", &["fault", "kill", "sm"]).fails(1, "`kill` needs the operator role");
    for target in ["host-0", "sm", "pm"] {
        let before = lives(&behind);
        let done = behind.with("operator", &["fault", "restart", target]);
        assert!(done.succeeds().stderr.contains("restarted"), "{}", done.stderr);
        let after = lives(&behind);
        let is_new = |name: &&String| before[*name].1 != after[*name].1;
        let begun: Vec<&String> = before.keys().filter(is_new).collect();
        assert_eq!(begun.len(), 1, "{target}: {begun:?} have begun new lives");
        assert!(target == "host-0" || begun[0].as_str() == target, "{target}: {begun:?}");
    }
    let done = behind.with("operator", &["fault", "kill", "host-1"]);
    assert!(done.succeeds().stderr.contains("may start it again"), "{}", done.stderr);
    wait_until("what was killed is back", || lives(&behind).values().all(|(state, _)| state == "ready"));
    wait_until("all hosts are reached again", || behind.with("operator", &["check"]).code == 0);
    let events = behind.with("operator", &["events", "--json", "--since", "start"]);
    let faults = |word: &str| events.stdout.matches(&format!("\"fault\":\"{word}\"")).count();
    assert_eq!((faults("kill"), faults("restart")), (4, 3), "{}", events.stdout);
}

#[test]
fn a_remotely_killed_process_stays_dead_without_a_starter() {
    let behind = Behind::up(&[]);
    behind.with("operator", &["fault", "kill", "host-0"]).succeeds();
    assert_eq!(lives(&behind).values().filter(|(state, _)| state == "ended").count(), 1);
    let again = behind.with("operator", &["fault", "kill", "host-0"]);
    assert!(again.succeeds().stderr.contains("is not running"), "{}", again.stderr);
}

/// The hub starts what it had started before: no one else would, and a wait for that would be in vain.
#[test]
fn a_restart_from_elsewhere_is_the_hubs_where_it_starts_all() {
    let behind = Behind::up(&[]);
    let before = lives(&behind);
    let begun = Instant::now();
    behind.with("operator", &["fault", "kill", "host-0"]).succeeds();
    behind.with("operator", &["fault", "restart", "host-0"]).succeeds();
    behind.with("operator", &["fault", "restart", "sm"]).succeeds();
    // What a container engine is waited for.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let after = lives(&behind);
    assert!(after.values().all(|(state, _)| state == "ready"), "{after:?}");
    let is_new = |name: &&String| before[*name].1 != after[*name].1;
    assert_eq!(before.keys().filter(is_new).count(), 2, "host-0's agent and the manager: {after:?}");
    let ask = |role: &str, process: &str| {
        let fields = format!("{{\"process\":\"{process}\"}}");
        behind.with(role, &["ask", "hub", "start-process", &fields])
    };
    ask("viewer", "sm").fails(1, "needs the operator role");
    ask("operator", "sm").succeeds();
    ask("operator", "none").fails(1, "no process is called `none`");
}

/// Its faults are those of a laboratory at home; the processes tell what they hold.
#[test]
fn chaos_from_elsewhere_is_survived() {
    let behind = Behind::up(&["--restart", "on-failure"]);
    let drawn = |seed: u64| {
        let seed = seed.to_string();
        behind.with("operator", &["chaos", "--draw", "--seed", &seed]).succeeds().stdout.clone()
    };
    // The hub is started again by its container, and here by none.
    let fits = |text: &String| text.contains("kill = ") && !text.contains("\"hub\"");
    let schedule = (1..300).map(drawn).find(fits).unwrap();
    let file = behind.user.write("schedule.toml", &schedule);
    let told = behind.json(&["chaos", "--replay", text(&file), "--json"]);
    assert_eq!((&told["ok"], &told["schedules"]), (&Value::Bool(true), &1.into()), "{schedule}: {told}");
}

#[test]
fn cables_are_moved_from_elsewhere_and_written_down_at_home() {
    let behind = Behind::up(&[]);
    let links = |far: bool| {
        let links =
            if far { behind.json(&["links", "--json"]) } else { behind.lab.json(&["links", "--json"]) };
        let links = links.as_array().unwrap().clone();
        let end = |end: &Value| format!("{}:{}", end["node"].as_str().unwrap(), end["port"]);
        links.iter().map(|link| [end(&link["a"]), end(&link["b"])]).collect::<Vec<_>>()
    };
    let of_host = links(true).into_iter().find(|ends| ends.contains(&"host-0:1".to_owned())).unwrap();
    let leaf = of_host.iter().find(|end| *end != "host-0:1").unwrap().as_str();
    behind
        .with("viewer", &["topo", "disconnect", "host-0:1"])
        .fails(1, "`disconnect-cable` needs the operator role");
    assert!(behind.with("viewer", &["topo", "diff"]).succeeds().stdout.is_empty());
    behind.with("operator", &["topo", "disconnect", "host-0:1"]).succeeds();
    for far in [true, false] {
        assert!(!links(far).contains(&of_host), "{far}");
    }
    behind.with("operator", &["topo", "diff"]).succeeds();
    let other = behind.with("operator", &["topo", "connect", "host-0:1", "host-1:1"]);
    other.fails(2, "is in host-1:1 already");
    let back = behind.with("operator", &["topo", "connect", "host-0:1", leaf]);
    assert!(!back.succeeds().stderr.contains("no link yet"), "{}", back.stderr);
    behind.lab.weft(&["topo", "diff"]).succeeds();
    behind.lab.weft(&["fault", "restart", "host-0"]).succeeds();
    wait_until("the cable is there again", || behind.with("operator", &["topo", "diff"]).code == 0);
    wait_until("all hosts are reached again", || behind.with("operator", &["check"]).code == 0);
    let refused = behind.with("operator", &["topo", "add-host", "new", "--at", leaf]);
    refused.fails(2, "hint: nodes come and go where the laboratory's processes are started");
}

/// A remote follower goes on when the hub has died and is back.
#[test]
fn followed_events_go_on_from_elsewhere_when_the_hub_is_back() {
    let behind = Behind::up(&[]);
    let identity = behind.identity("viewer");
    let follow = ["--at", &behind.at, "--identity", &identity, "events", "--fields", "--follow"];
    let follow = [&follow[..], &["--since", "start"]].concat();
    let mut follower = Running::start(&behind.user, &follow);
    follower.wait_for_line("subnet-up");
    behind.lab.weft(&["fault", "kill", "hub"]).succeeds();
    behind.lab.weft(&["fault", "restart", "hub"]).succeeds();
    behind.lab.weft(&["fault", "link-down", "host-0:1", "--for", "1s"]).succeeds();
    follower.wait_for_line("fault-cleared");
    follower.signal(Signal::INT);
    follower.end();
}

/// Every cable takes 3 ms: what a cable is like goes with it, in its agents and in what is written down.
#[test]
fn a_cable_that_is_moved_from_elsewhere_keeps_its_delay() {
    let (lab, user) = (Home::new(), Home::new());
    let (tree, bundle) = (lab.small_tree(), lab.base().with_file_name("bundle"));
    lab.weft(&["plan", text(&tree), "--pack", "4", "--out", text(&bundle)]).succeeds();
    let parts = |folder: &std::path::Path| {
        let parts = std::fs::read_dir(folder.join("agents")).unwrap().map(|entry| entry.unwrap().path());
        parts.map(|path| (path.clone(), read_json(&path))).collect::<Vec<_>>()
    };
    for (path, mut part) in parts(&bundle) {
        for cable in part["cables"].as_array_mut().unwrap() {
            cable["delay_ns"] = 3_000_000.into();
        }
        std::fs::write(path, part.to_string()).unwrap();
    }
    let port = free_port().to_string();
    lab.weft(&["up", "--bundle", text(&bundle)]).succeeds();
    lab.weft(&["fault", "kill", "hub"]).succeeds();
    lab.weft(&["hub", "--detached", "--door", &port]).succeeds();
    let behind = Behind { lab, user, at: format!("127.0.0.1:{port}") };
    let links = behind.json(&["links", "--json"]);
    let end = |end: &Value| format!("{}:{}", end["node"].as_str().unwrap(), end["port"]);
    let peer = |of: &str| {
        let ends = links.as_array().unwrap().iter().map(|link| [end(&link["a"]), end(&link["b"])]);
        ends.clone()
            .find(|ends| ends.contains(&of.to_owned()))
            .unwrap()
            .into_iter()
            .find(|end| end != of)
            .unwrap()
    };
    behind.with("operator", &["topo", "disconnect", "host-3:1"]).succeeds();
    behind.with("operator", &["topo", "move", "host-0:1", &peer("host-3:1")]).succeeds();
    behind.with("operator", &["topo", "diff"]).succeeds();
    let written = parts(&behind.lab.lab("default"));
    let cables: Vec<&Value> =
        written.iter().flat_map(|(_, part)| part["cables"].as_array().unwrap()).collect();
    assert!(cables.iter().all(|cable| cable["delay_ns"] == 3_000_000), "{cables:?}");
    for (_, part) in &written {
        let agent = part["name"].as_str().unwrap();
        let ports = behind.json(&["ask", agent, "ports"]);
        let cabled = ports["ports"].as_array().unwrap().iter().filter(|port| port["peer"].is_object());
        assert!(cabled.clone().count() > 0, "{ports}");
        assert!(cabled.into_iter().all(|port| port["delay_ns"] == 3_000_000), "{ports}");
    }
}

fn read_json(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn viewers_look_and_strangers_stay_outside() {
    let behind = Behind::up(&[]);
    for verb in [&["status"][..], &["links"], &["ps"], &["ask", "a0000", "agent-status"]] {
        behind.with("viewer", verb).succeeds();
    }
    behind.with("viewer", &["ask", "sm", "sm-sweep"]).fails(1, "forbidden");
    behind
        .with("viewer", &["fault", "link-down", "host-0:1"])
        .fails(1, "`set-fault` needs the operator role");
    // Packets are an operator's.
    assert_ne!(behind.with("viewer", &["trace", "host-0", "host-3"]).code, 0);
    // A process of the laboratory whose certificate names a node, and no role.
    behind.with("a0000", &["status"]).fails(1, "the certificate names no role");
    let other = Behind::up(&[]);
    let stranger = other.identity("operator");
    let refused = behind.user.weft(&["--at", &behind.at, "--identity", &stranger, "status"]);
    refused.fails(1, "cannot talk to a hub at");
    assert!(behind.user.is_empty(), "clients that failed leave nothing behind");
}

#[test]
fn verbs_without_remote_support_are_refused_with_a_hint() {
    let home = Home::new();
    let at = ["--at", "127.0.0.1:9", "--identity", "nowhere.pem"];
    home.weft(&[&at[..], &["down"]].concat()).fails(2, "hint: take it down where it was started");
    for verb in [&["record", "host-0"][..], &["bench", "move"]] {
        home.weft(&[&at[..], verb].concat()).fails(2, "hint: run it where the process runs");
    }
    home.weft(&[&at[..], &["shell", "--ibsim", "--", "true"]].concat()).fails(2, "hint: leave out --ibsim");
    for verb in [&["topo", "gen", "ring"][..], &["chaos", "x.topo", "--virtual"]] {
        home.weft(&[&at[..], verb].concat()).fails(2, "hint: leave out --at");
    }
    home.weft(&[&at[..], &["status"]].concat()).fails(1, "cannot read the identity nowhere.pem");
    home.weft(&["--at", "127.0.0.1:9", "status"]).fails(2, "hint: give --identity");
    home.weft(&["--at", "127.0.0.1", "status"]).fails(2, "has no port");
    home.weft(&["--identity", "x", "status"]).fails(2, "--at");
}
