//! A laboratory on three machines by ssh: network namespaces, each with an sshd of its own that has its own host key and folder.
//!
//! Long tier: `cargo nextest run --profile long -p weft-judges hosts::`, as root.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use weft_judges::{SshSite, is_root, output_of, wait_until};

const MACHINES: usize = 3;
const LAB: &str = "three";

/// What a command says that fails, in one line and a hint.
#[track_caller]
fn refusal(mut command: Command) -> String {
    let Output { status, stderr, .. } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert!(!status.success(), "{command:?} succeeds: {said}");
    for label in ["error: ", "hint: "] {
        assert_eq!(said.lines().filter(|line| line.starts_with(label)).count(), 1, "{said}");
    }
    said
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn a_laboratory_runs_on_three_machines_and_heals() {
    if !is_root() {
        return;
    }
    let site = SshSite::make();
    output_of(&mut site.up(&site.all(), &["--pm", "--standby", "1", "--pack", "leaf"]));
    output_of(&mut site.weft(&["check"]));
    let running = site.json(&["ps", "--json"]);
    let states: Vec<&str> =
        running.as_array().unwrap().iter().map(|process| process["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["running"; 4 + 3 + 1], "{running}");
    each_machine_has_its_own_identities(&site);

    // A switch with its host, on another machine than the manager.
    output_of(&mut site.weft(&["fault", "kill", "S3"]));
    wait_until("S3 is missed", || site.nodes() < 8);
    output_of(&mut site.weft(&["fault", "restart", "S3"]));
    site.heals("after fault kill and restart");
    let told = output_of(&mut site.weft(&["events", "--json"]));
    assert!(told.contains("\"link-down\"") && told.contains("\"kill\""), "{told}");

    // Schedules break it from here: by ssh what signals processes, by the hub all else.
    let told = site.json(&["chaos", "--seed", "7", "--minutes", "1", "--json"]);
    assert_eq!(told["ok"], Value::Bool(true), "{told}");

    site.machines.cut(3);
    wait_until("the machine is missed", || site.nodes() < 8);
    site.machines.mend(3);
    site.heals("after a machine was cut off");

    // A schedule may have started another hub.
    let running = site.json(&["ps", "--json"]);
    let hub = running.as_array().unwrap().iter().find(|process| process["process"] == "hub").unwrap();
    let hub = rustix::process::Pid::from_raw(i32::try_from(hub["pid"].as_i64().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(hub, rustix::process::Signal::KILL).unwrap();
    wait_until("the hub is gone", || !site.weft(&["ps"]).output().unwrap().status.success());
    assert!(refusal(site.weft(&["ps"])).contains("weft hub --detached"));
    output_of(&mut site.weft(&["hub", "--detached"]));
    wait_until("the next hub hears of all", || {
        let processes = site.json(&["ps", "--json"]);
        processes.as_array().unwrap().iter().all(|process| process["state"] == "running")
    });
    output_of(&mut site.weft(&["check"]));

    assert!(refusal(site.up(&site.all(), &[])).contains("already running"));
    site.machines.cut(2);
    let told = refusal(site.weft(&["down"]));
    assert!(told.contains("10.77.0.2") && told.contains("tries again"), "{told}");
    site.machines.mend(2);
    output_of(&mut site.weft(&["down"]));
    (1..=MACHINES).for_each(|machine| site.is_gone_from(machine));
    assert!(!site.path("w").join(LAB).exists());
}

#[test]
fn managers_metrics_and_identities_work_across_machines() {
    if !is_root() {
        return;
    }
    let site = SshSite::make();
    output_of(&mut site.up(&site.all(), &["--vfs", "2", "--pm", "--metrics"]));
    output_of(&mut site.weft(&["vm", "create", "web1", "--host", "H1"]));
    output_of(&mut site.weft(&["vm", "migrate", "web1", "H3"]));
    let machines = output_of(&mut site.weft(&["vm", "ls"]));
    assert!(machines.contains("web1") && machines.contains("H3"), "{machines}");
    wait_until("`check` finds nothing", || site.weft(&["check"]).output().unwrap().status.success());

    // Over TLS, to who shows the token.
    let home = site.path("w").join(LAB);
    let token = std::fs::read_to_string(home.join("identities/http.token")).unwrap();
    let listed = site.json(&["metrics", "--list", "--json"]);
    for target in listed.as_array().unwrap() {
        let url = target["url"].as_str().unwrap();
        let place = url.strip_prefix("https://").unwrap().strip_suffix("/metrics").unwrap();
        let (host, port) = place.rsplit_once(':').unwrap();
        let mut curl = site.here("curl");
        curl.args(["-sS", "--max-time", "20", "--cacert"]).arg(home.join("ca.pem"));
        curl.args(["--resolve", &format!("pages.http.weft:{port}:{host}")]);
        curl.args(["-H", &format!("Authorization: Bearer {token}")]);
        let page = output_of(curl.arg(format!("https://pages.http.weft:{port}/metrics")));
        assert!(page.contains("weft_build_info"), "{target}: {page}");
    }

    let identity = |machine: usize| {
        let folder = std::fs::read_dir(site.part(machine).join("identities")).unwrap();
        let files =
            folder.map(|entry| entry.unwrap().path()).filter(|path| path.extension().unwrap() == "pem");
        files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    let before: Vec<_> = (1..=MACHINES).flat_map(identity).collect();
    output_of(&mut site.weft(&["identity", "renew", "--all"]));
    for (path, old) in before {
        assert_ne!(std::fs::read(&path).unwrap(), old, "{}", path.display());
    }
    wait_until("`check` finds nothing", || site.weft(&["check"]).output().unwrap().status.success());
    output_of(&mut site.weft(&["down"]));
    (1..=MACHINES).for_each(|machine| site.is_gone_from(machine));
}

#[test]
fn opensm_manages_the_subnet_from_one_of_the_machines() {
    if !is_root() {
        return;
    }
    let site = SshSite::make();
    output_of(&mut site.up(&site.all(), &["--sm", "opensm"]));
    let is_sound = || site.weft(&["check"]).output().unwrap().status.success();
    wait_until("`check` finds nothing", is_sound);
    output_of(&mut site.weft(&["fault", "kill", "sm"]));
    output_of(&mut site.weft(&["fault", "restart", "sm"]));
    wait_until("OpenSM runs again", || {
        let processes = site.json(&["ps", "--json"]);
        let is_opensm = |process: &&Value| process["process"] == "opensm";
        processes.as_array().unwrap().iter().find(is_opensm).is_some_and(|one| one["state"] == "running")
    });
    wait_until("`check` finds nothing", is_sound);
    output_of(&mut site.weft(&["down"]));
    (1..=MACHINES).for_each(|machine| site.is_gone_from(machine));
}

/// No machine has the authority's key, or a key of what runs on another machine.
fn each_machine_has_its_own_identities(site: &SshSite) {
    let record: Value =
        serde_json::from_slice(&std::fs::read(site.path("w").join(LAB).join("lab.json")).unwrap()).unwrap();
    for machine in 1..=MACHINES {
        let address = site.machines.address(machine);
        let here = |place: &str| place.rsplit_once(':').unwrap().0 == address;
        let agents = record["agents"].as_array().unwrap().iter();
        let agents = agents.filter(|agent| here(agent["address"].as_str().unwrap()));
        let managers = record["doors"].as_object().unwrap().iter();
        let managers =
            managers.filter(|(_, door)| here(door.as_str().unwrap())).map(|(name, _)| name.clone());
        let managers: Vec<String> = managers.collect();
        let mut due: Vec<String> = agents.map(|agent| agent["name"].as_str().unwrap().to_owned()).collect();
        due.extend(managers.iter().cloned());
        let mut due: Vec<String> = due.iter().map(|name| format!("{name}.pem")).collect();
        due.extend((!managers.is_empty()).then(|| "keys.json".to_owned()));
        due.sort();
        let found = std::fs::read_dir(site.part(machine).join("identities")).unwrap();
        let mut found: Vec<String> =
            found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        found.sort();
        assert_eq!(found, due, "on {address}");
        assert!(!site.part(machine).join("ca.key").exists());
    }
}

#[test]
fn a_failed_start_over_ssh_says_why_and_leaves_nothing() {
    if !is_root() {
        return;
    }
    let site = SshSite::make();
    let all = site.all();
    let left = |site: &SshSite| {
        (1..=MACHINES).for_each(|machine| site.is_gone_from(machine));
        assert!(!site.path("w").join(LAB).exists(), "the laboratory is still known here");
    };

    site.know(&[1, 2]);
    let told = refusal(site.up(&all, &[]));
    assert!(told.contains("cannot reach 10.77.0.3: Host key verification failed"), "{told}");
    left(&site);
    // Another machine's key under this name.
    let known = std::fs::read_to_string(site.path("known_hosts")).unwrap();
    std::fs::write(site.path("known_hosts"), known.replace("10.77.0.2 ", "10.77.0.3 ")).unwrap();
    let told = refusal(site.up("10.77.0.3", &[]));
    assert!(told.contains("another than the one in known_hosts"), "{told}");
    left(&site);
    site.know(&[1, 2, 3]);

    let told = refusal(site.up("10.77.0.1,10.77.0.99", &[]));
    assert!(told.contains("cannot reach 10.77.0.99"), "{told}");
    left(&site);

    let told = refusal(site.up(&all, &["--remote-weft", "/nowhere/weft"]));
    assert!(told.contains("cannot run `/nowhere/weft`"), "{told}");
    left(&site);
    let touched = site.path("touched");
    let hostile = format!("/nowhere/$(touch {0});touch {0}", touched.display());
    refusal(site.up(&all, &["--remote-weft", &hostile]));
    assert!(!touched.exists(), "what is given to a host's shell was not quoted");

    site.key("stranger");
    let config = std::fs::read_to_string(site.path("ssh_config")).unwrap();
    std::fs::write(site.path("ssh_config"), config.replace("/id\n", "/stranger\n")).unwrap();
    let told = refusal(site.up("10.77.0.1", &[]));
    assert!(told.contains("Permission denied"), "{told}");
    std::fs::write(site.path("ssh_config"), config).unwrap();

    interrupted(&site, rustix::process::Signal::INT);
    left(&site);
    // Without an orderly end, parts notice that their connection has ended.
    interrupted(&site, rustix::process::Signal::KILL);
    (1..=MACHINES).for_each(|machine| site.is_gone_from(machine));
    output_of(&mut site.weft(&["down"]));
    left(&site);
}

/// A start of which one machine does not come up is interrupted.
fn interrupted(site: &SshSite, by: rustix::process::Signal) {
    // It takes connections, and says nothing.
    signal(site.daemons[2].as_ref().unwrap(), rustix::process::Signal::STOP);
    let mut up = site.up(&site.all(), &[]);
    let mut up = up.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("two parts have begun", || {
        (1..=2).all(|machine| site.part(machine).join("locks/hub").exists())
    });
    signal(&up, by);
    // Whoever is asked to end tries to reach the third.
    wait_until("`up` ends", || up.try_wait().unwrap().is_some());
    signal(site.daemons[2].as_ref().unwrap(), rustix::process::Signal::CONT);
}
