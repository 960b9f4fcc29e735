//! Laboratories over several hosts: `up --hosts`, `up --part`, and what becomes of them. In place of ssh a script runs what it is given on
//! this machine, in a home for each host; tests/tests/all/hosts.rs has real ones.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{Done, Home, signal, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::common;

/// What stands in for ssh: it finds its host behind `--`, and runs the line in the host's home.
const SSH: &str = "#!/bin/sh
while [ \"$1\" != -- ]; do shift; done
if [ -e \"$HOSTS/$2.unreachable\" ]; then
    echo \"ssh: connect to host $2 port 22: No route to host\" >&2
    exit 255
fi
if [ -e \"$HOSTS/$2.clock\" ]; then
    export WEFT_CLOCK_OFFSET=\"$(cat \"$HOSTS/$2.clock\")\"
fi
WEFT_HOME=\"$HOSTS/$2\" exec sh -c \"$3\"
";

/// Two hosts, each an address of this machine and a home.
struct Site {
    home: Home,
    hosts: [String; 2],
}

impl Site {
    fn new() -> Self {
        let home = Home::new();
        let ssh = home.write("ssh", SSH);
        std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
        // Tests run at the same time, and each has the same ports.
        let own = std::process::id();
        let host = |last: u32| format!("127.{}.{}.{last}", 100 + own / 250 % 100, 1 + own % 250);
        Self { home, hosts: [host(1), host(2)] }
    }

    fn folder(&self) -> PathBuf {
        self.home.base().parent().unwrap().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(arguments);
        let path = format!("{}:{}", self.folder().display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("HOSTS", self.folder());
        command
    }

    fn weft(&self, arguments: &[&str]) -> Done {
        Done::of(self.command(arguments).output().unwrap())
    }

    fn up(&self, options: &[&str]) -> Command {
        self.up_with(&self.home.small_tree(), options)
    }

    fn up_with(&self, file: &Path, options: &[&str]) -> Command {
        let hosts = self.hosts.join(",");
        let own = ["up", "--hosts", &hosts, "--remote-weft", env!("CARGO_BIN_EXE_weft"), text(file)];
        self.command(&[&own[..], options].concat())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.weft(arguments).succeeds().stdout).unwrap()
    }

    /// A host's home.
    fn of(&self, host: usize) -> PathBuf {
        self.folder().join(&self.hosts[host])
    }

    fn is_empty(&self, host: usize) -> bool {
        std::fs::read_dir(self.of(host)).into_iter().flatten().next().is_none()
    }

    fn nothing_is_left(&self) {
        assert!(self.is_empty(0) && self.is_empty(1), "a part is left on its host");
        assert!(self.home.is_empty(), "the laboratory is still known here");
    }

    /// Starts a host's part from the folder of a bundle, as a batch system would.
    fn part(&self, host: usize, bundle: &Path) -> Child {
        let arguments = ["up", "--part", &self.hosts[host], "--foreground", text(bundle)];
        let mut command = self.home.command(&arguments);
        command.env("WEFT_HOME", self.of(host)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for host in 0..2 {
            let mut down = self.home.command(&["down", "--all"]);
            let _ = down.env("WEFT_HOME", self.of(host)).stderr(Stdio::null()).status();
        }
    }
}

/// Each manager runs on the host of the node that it sits at, and each host waits for its own.
#[test]
fn planes_over_two_hosts_have_a_manager_on_each() {
    let site = Site::new();
    let file = site.home.write("x.topo", include_str!("../../../../topologies/two-planes.topo"));
    let seats = ["--sm-at", "plane-1", "--sm-at", "plane-2", "--pm"];
    let said = Done::of(site.up_with(&file, &seats).output().unwrap());
    for line in ["SUBNET UP", "piece of `plane-1`: sm at plane-1:0", "piece of `plane-2`: sm-2 at plane-2:0"]
    {
        assert!(said.succeeds().stdout.contains(line), "{line}: {}", said.stdout);
    }
    let record = std::fs::read(site.home.lab("default").join("lab.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let host =
        |manager: &str| record["doors"][manager].as_str().unwrap().split_once(':').unwrap().0.to_owned();
    assert_ne!(host("sm"), host("sm-2"), "{record:#}");
    let check = site.json(&["check", "--json"]);
    assert_eq!((&check["ok"], &check["subnet_up"]), (&true.into(), &true.into()), "{check:#}");
    assert_eq!(check["pieces"].as_array().unwrap().len(), 2, "{check:#}");
    let names = ["sm", "sm-2", "pm", "pm-2"];
    let all_run = || {
        let running = site.json(&["ps", "--json"]);
        let runs = |name: &str| {
            let processes = running.as_array().unwrap();
            processes.iter().any(|one| one["process"] == name && one["state"] == "running")
        };
        names.iter().all(|name| runs(name))
    };
    assert!(all_run());
    site.weft(&["fault", "kill", "pm-2"]).succeeds();
    wait_until("its end is known", || !all_run());
    site.weft(&["fault", "restart", "pm-2"]).succeeds();
    wait_until("all run again", all_run);
    site.weft(&["down"]).succeeds();
    site.nothing_is_left();
}

#[test]
fn a_laboratory_over_two_hosts_comes_up_is_broken_and_goes() {
    let site = Site::new();
    let said = Done::of(site.up(&["--pm", "--standby", "1"]).output().unwrap());
    assert!(said.succeeds().stdout.contains("SUBNET UP"), "{}", said.stdout);
    site.weft(&["check"]).succeeds();
    let running = site.json(&["ps", "--json"]);
    let all_run =
        |processes: &Value| processes.as_array().unwrap().iter().all(|one| one["state"] == "running");
    assert_eq!(running.as_array().unwrap().len(), 8 + 3 + 1);
    assert!(all_run(&running), "{running}");
    for verb in [
        &["status"][..],
        &["links"],
        &["trace", "host-0", "host-3"],
        &["top", "--json"],
        &["fault", "ls"],
        &["sm", "ls"],
    ] {
        let done = site.weft(verb);
        assert!(verb[0] == "sm" || done.code == 0, "{verb:?}: {}", done.stderr);
    }
    site.weft(&["record", "host-0"]).fails(2, "whose processes run on other hosts");
    // By the name of a node, as on one machine: on whichever host it is.
    site.weft(&["fault", "kill", "host-3"]).succeeds();
    wait_until("its end is known", || !all_run(&site.json(&["ps", "--json"])));
    site.weft(&["fault", "restart", "host-3"]).succeeds();
    site.weft(&["fault", "restart", "sm-2"]).succeeds();
    wait_until("all run again", || all_run(&site.json(&["ps", "--json"])));
    wait_until("the fabric has healed", || site.weft(&["check"]).code == 0);
    // An agent that begins again with the files of its host gets back the cables that it had.
    site.weft(&["topo", "disconnect", "switch-1-1:4"]).succeeds();
    site.weft(&["fault", "restart", "switch-1-1"]).succeeds();
    wait_until("all run again", || all_run(&site.json(&["ps", "--json"])));
    wait_until("the agent is told what it had", || site.weft(&["topo", "diff"]).code == 0);
    let mut there = site.home.command(&["topo", "connect", "switch-1-1:4", "switch-2-1:2"]);
    let refused = Done::of(there.env("WEFT_HOME", site.of(1)).output().unwrap());
    refused.fails(2, "of 8 nodes of `default` run on this host");
    site.weft(&["topo", "connect", "switch-1-1:4", "switch-2-1:2"]).succeeds();
    wait_until("the fabric is whole", || {
        site.weft(&["check"]).stdout.contains("SUBNET UP: every cabled port is Active")
    });
    Done::of(site.up(&[]).output().unwrap()).fails(1, "already running");
    let said = site.weft(&["down"]);
    assert!(said.succeeds().stderr.contains(&site.hosts[1]), "{}", said.stderr);
    site.nothing_is_left();
}

/// A moment is taken for right when it is closer than this; clocks are wrong by an hour.
const CLOSE_NS: u64 = 30 * 60 * 1_000_000_000;

fn moment(text: &Value) -> u64 {
    text.as_str().unwrap().parse::<weft_control::Utc>().unwrap().as_nanos()
}

/// One host is an hour ahead of this one, the other an hour behind.
#[test]
fn clock_offsets_between_hosts_do_not_shift_fault_times() {
    let site = Site::new();
    for (host, offset) in site.hosts.iter().zip(["+1h", "-3600s"]) {
        std::fs::write(site.folder().join(format!("{host}.clock")), offset).unwrap();
    }
    Done::of(site.up(&["--pm"]).output().unwrap()).succeeds();
    site.weft(&["check"]).succeeds();
    let now = || weft_process::utc_now().as_nanos();
    let is_close = |moment: u64| now().abs_diff(moment) < CLOSE_NS;
    // Both ends of the cable keep the fault, on either host.
    site.weft(&["fault", "link-down", "host-0:1", "--for", "4s"]).succeeds();
    site.weft(&["fault", "link-down", "host-3:1", "--for", "4s"]).succeeds();
    for fault in site.json(&["fault", "ls", "--json"]).as_array().unwrap() {
        assert!(is_close(moment(&fault["since"])) && is_close(moment(&fault["until"])), "{fault}");
    }
    wait_until("the faults end by themselves", || {
        site.json(&["fault", "ls", "--json"]).as_array().unwrap().is_empty()
    });
    wait_until("the fabric has healed", || site.weft(&["check"]).code == 0);
    let events = || -> Vec<Value> {
        let lines = site.weft(&["events", "--json"]).stdout;
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    wait_until("the costs of both are told", || {
        events().iter().filter(|event| event["event"] == "fault-cost").count() == 2
    });
    let events = events();
    for cost in events.iter().filter(|event| event["event"] == "fault-cost") {
        for after in ["lasted_ns", "detected_after_ns", "rerouted_after_ns", "restored_after_ns"] {
            assert!(cost[after].as_u64().is_some_and(|after| after < CLOSE_NS), "{after}: {cost}");
        }
    }
    for times in site.json(&["fault", "times", "--json"]).as_array().unwrap() {
        for after in ["age_ns", "detected_after_ns", "rerouted_after_ns", "restored_after_ns"] {
            assert!(times[after].as_u64().is_some_and(|after| after < CLOSE_NS), "{after}: {times}");
        }
    }
    // Clocks are as wrong as they were set, the hub says so, and people read times of this machine's clock.
    let ahead: std::collections::BTreeSet<i64> =
        events.iter().filter_map(|event| Some(event["ahead_ns"].as_i64()? / 1_000_000_000)).collect();
    assert!(ahead.iter().any(|ahead| ahead.abs_diff(3600) < 60), "{ahead:?}");
    assert!(ahead.iter().any(|ahead| ahead.abs_diff(-3600) < 60), "{ahead:?}");
    let said = site.weft(&["events", "--fields"]);
    let shown = said.stdout.lines().map(|line| Value::from(line.split(' ').next().unwrap()));
    let shown: Vec<u64> = shown.map(|time| moment(&time)).collect();
    assert!(shown.is_sorted() && shown.iter().all(|shown| is_close(*shown)), "{}", said.stdout);
    assert!(!events.iter().any(|event| event["event"] == "peer-refused"), "{events:?}");
    site.weft(&["down"]).succeeds();
}

/// What a page of metrics says; the whole answer.
fn get(url: &str) -> String {
    use std::io::{Read as _, Write as _};
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn vms_move_between_hosts_and_all_processes_serve_metrics() {
    let site = Site::new();
    Done::of(site.up(&["--vfs", "2", "--pm", "--metrics"]).output().unwrap()).succeeds();
    let listed = site.json(&["metrics", "--list", "--json"]);
    let urls: Vec<&str> =
        listed.as_array().unwrap().iter().map(|target| target["url"].as_str().unwrap()).collect();
    let processes = site.json(&["ps", "--json"]).as_array().unwrap().len();
    assert_eq!(urls.len(), processes - 1, "all but the hub: {listed}");
    for url in urls {
        assert!(get(url).contains("weft_build_info"), "{url}");
    }
    assert!(site.home.lab("default").join("prometheus.yml").exists());
    let refused = Done::of(site.up(&["--metrics=9100", "--lab", "other"]).output().unwrap());
    refused.fails(2, "--metrics=9100 names a port of one machine");

    site.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
    site.weft(&["vm", "migrate", "web1", "host-3"]).succeeds();
    let machines = site.weft(&["vm", "ls"]).succeeds().stdout.clone();
    assert!(machines.contains("web1") && machines.contains("host-3"), "{machines}");
    site.weft(&["fault", "kill", "vmm"]).succeeds();
    site.weft(&["fault", "restart", "vmm"]).succeeds();
    wait_until("the manager knows its machine again", || site.weft(&["vm", "ls"]).stdout.contains("web1"));
    wait_until("`weft check` is content", || site.weft(&["check"]).code == 0);
    site.weft(&["down"]).succeeds();
    site.nothing_is_left();
}

#[test]
fn identities_renew_on_other_hosts_and_failures_are_named() {
    let site = Site::new();
    Done::of(site.up(&["--lab", "mine", "--pm"]).output().unwrap()).succeeds();
    let file = |host: usize, name: &str| site.of(host).join(format!("mine/identities/{name}.pem"));
    let identity = |host: usize, name: &str| std::fs::read(file(host, name)).unwrap();
    let of_pm = usize::from(file(1, "pm").exists());
    let before = [identity(0, "a0000"), identity(1, "a0007"), identity(of_pm, "pm")];
    let said = site.weft(&["identity", "renew", "--all"]);
    assert!(said.succeeds().stderr.contains("running processes renewed"), "{}", said.stderr);
    let after = [identity(0, "a0000"), identity(1, "a0007"), identity(of_pm, "pm")];
    assert!(before.iter().zip(&after).all(|(before, after)| before != after));
    let told = site.weft(&["events", "--json"]).succeeds().stdout.clone();
    let renewed = |process: &str| {
        told.lines()
            .any(|line| line.contains("\"identity-renewed\"") && line.contains(&format!("\"{process}\"")))
    };
    assert!(["a0000", "a0007", "sm", "pm"].into_iter().all(renewed), "{told}");
    // Those that begin again show what was issued.
    site.weft(&["fault", "restart", "host-3"]).succeeds();
    wait_until("`weft check` is content", || site.weft(&["check"]).code == 0);

    let unreachable = site.folder().join(format!("{}.unreachable", site.hosts[1]));
    std::fs::write(&unreachable, "").unwrap();
    let said = site.weft(&["identity", "renew", "a0007"]);
    said.fails(1, &format!("{} has not taken what was issued", site.hosts[1]))
        .fails(1, "run the same command again");
    std::fs::remove_file(&unreachable).unwrap();
    site.weft(&["identity", "renew", "a0007"]).succeeds();
    site.weft(&["record", "host-0"])
        .fails(2, "hint: run it where the process runs: `ssh HOST weft --lab mine");
    let refused = Done::of(site.up(&["--lab", "other", "--ibsim-socket", "mine"]).output().unwrap());
    refused
        .fails(2, "programs under ibsim's library find agents of their own machine")
        .fails(2, "weft shell");

    // A part takes nothing that is not its own.
    let mut take = site.home.command(&["--lab", "mine", "identity", "take"]);
    take.env("WEFT_HOME", site.of(0)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, text) in
        [("identities/a0007.pem", after[1].clone()), ("identities/a0000.pem", b"nonsense".to_vec())]
    {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(text.len() as u64);
        archive.append_data(&mut header, name, text.as_slice()).unwrap();
        let mut child = take.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, &archive.into_inner().unwrap()).unwrap();
        drop(input);
        let done = Done::of(child.wait_with_output().unwrap());
        done.fails(2, "these are no identities of this part").fails(2, name);
    }
    assert_eq!(identity(0, "a0000"), after[0]);
    site.weft(&["down"]).succeeds();
    site.nothing_is_left();
}

#[test]
fn a_start_that_fails_on_one_host_leaves_nothing() {
    let site = Site::new();
    let unreachable = site.folder().join(format!("{}.unreachable", site.hosts[1]));
    std::fs::write(&unreachable, "").unwrap();
    let said = Done::of(site.up(&[]).output().unwrap());
    said.fails(1, "No route to host").fails(1, "must log in without a question");
    site.nothing_is_left();
    std::fs::remove_file(&unreachable).unwrap();
    // A laboratory of that name runs on one of the hosts already.
    let tree = site.home.small_tree();
    let alone = |arguments: &[&str]| {
        Done::of(site.home.command(arguments).env("WEFT_HOME", site.of(1)).output().unwrap())
    };
    alone(&["up", "--lab", "mine", text(&tree)]).succeeds();
    Done::of(site.up(&["--lab", "mine"]).output().unwrap()).fails(1, "already running");
    assert!(site.is_empty(0) && site.home.is_empty());
    alone(&["check", "--lab", "mine"]).succeeds();
}

/// A start that failed is kept to be looked into: nothing was ever started on the host that could not be reached, so it need not
/// be reached to take the rest down.
#[test]
fn down_after_a_failed_up_asks_only_hosts_that_have_something() {
    let site = Site::new();
    std::fs::write(site.folder().join(format!("{}.unreachable", site.hosts[1])), "").unwrap();
    let kept = Done::of(site.up(&["--keep", "--patience", "5"]).output().unwrap());
    kept.fails(1, "No route to host").fails(1, "is left as it is");
    assert!(site.home.lab("default").exists());
    site.weft(&["down"]).succeeds();
    site.nothing_is_left();
}

#[test]
fn down_keeps_an_unreachable_host_without_forget() {
    let site = Site::new();
    assert_eq!(site.up(&[]).output().unwrap().status.code(), Some(0));
    let unreachable = site.folder().join(format!("{}.unreachable", site.hosts[1]));
    std::fs::write(&unreachable, "").unwrap();
    site.weft(&["down"]).fails(1, &site.hosts[1]).fails(1, "No route to host").fails(1, "--forget");
    assert!(site.is_empty(0) && !site.is_empty(1) && site.home.lab("default").exists());
    site.weft(&["down", "--forget"]).succeeds();
    assert!(site.home.is_empty() && !site.is_empty(1));
}

#[test]
fn parts_start_from_a_folder_and_a_hub_of_its_own_watches_them() {
    let site = Site::new();
    let (tree, bundle) = (site.home.small_tree(), site.folder().join("bundle"));
    let hosts = site.hosts.join(",");
    site.weft(&["plan", text(&tree), "--hosts", &hosts, "--lab", "batch", "--out", text(&bundle)]).succeeds();
    site.weft(&["up", "--part", "elsewhere", text(&bundle)]).fails(2, &hosts.replace(',', ", "));
    let mut parts = [site.part(0, &bundle), site.part(1, &bundle)];
    let (run, door) = (site.folder().join("run"), format!("{}:7443", site.hosts[0]));
    let mut hub = site.command(&["hub", "--bundle", text(&bundle), "--run", text(&run), "--door", &door]);
    let mut hub = hub.stderr(Stdio::null()).spawn().unwrap();
    let operator = bundle.join("identities/operator.pem");
    let check = ["--at", &door, "--identity", text(&operator), "check"];
    wait_until("all is well", || site.weft(&check).code == 0);
    assert!(parts.iter_mut().all(|part| part.try_wait().unwrap().is_none()), "a part does not stay");
    for part in &parts {
        signal(part.id(), Signal::TERM);
    }
    for part in &mut parts {
        part.wait().unwrap();
    }
    signal(hub.id(), Signal::TERM);
    hub.wait().unwrap();
    assert!(site.is_empty(0) && site.is_empty(1), "a part is left");
}

#[test]
fn an_incomplete_or_foreign_version_part_is_refused() {
    let site = Site::new();
    let (tree, bundle) = (site.home.small_tree(), site.folder().join("bundle"));
    site.weft(&["plan", text(&tree), "--hosts", &site.hosts.join(","), "--out", text(&bundle)]).succeeds();
    let part = ["up", "--part", &site.hosts[1], text(&bundle)];
    // A host needs nothing of the others, nor the authority's key.
    for file in ["ca.key", "identities/a0000.pem", "agents/a0000.json", "identities/operator.pem"] {
        std::fs::remove_file(bundle.join(file)).unwrap();
    }
    let own = bundle.join("identities/a0007.pem");
    let identity = std::fs::read(&own).unwrap();
    std::fs::remove_file(&own).unwrap();
    site.weft(&part).fails(2, "is not whole").fails(2, "a0007.pem");
    std::fs::write(&own, identity).unwrap();
    let record = std::fs::read_to_string(bundle.join("lab.json")).unwrap();
    std::fs::write(bundle.join("lab.json"), &record[..record.len() / 2]).unwrap();
    site.weft(&part).fails(2, "lab.json is invalid").fails(2, "weft plan");
    let other = record.replacen(env!("CARGO_PKG_VERSION"), "77.0.0", 1);
    std::fs::write(bundle.join("lab.json"), other).unwrap();
    site.weft(&part).fails(1, "planned by weft 77.0.0").fails(1, "install weft 77.0.0");
    std::fs::write(bundle.join("lab.json"), record).unwrap();
    site.weft(&["--lab", "other", "up", "--part", &site.hosts[1], text(&bundle)]).fails(2, "not `other`");
    // Alone it waits for the others in vain.
    site.weft(&[&part[..], &["--patience", "2"]].concat()).fails(1, "nothing is left running");
    site.nothing_is_left();
}
