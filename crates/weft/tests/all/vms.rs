//! Virtual machines in a live laboratory: they are created, move with their addresses, and end; what is refused, and what a kill leaves.

use std::collections::BTreeMap;

use common::capturing::Capturing;
use common::machines::{listed, state};
use common::{Home, Running, text, wait_until};
use serde_json::Value;

use crate::common;

fn up(home: &Home, options: &[&str]) {
    let file = home.small_tree();
    let up: Vec<&str> = ["up", text(&file)].into_iter().chain(options.iter().copied()).collect();
    home.weft(&up).succeeds();
}

/// Blocks of forwarding tables that each switch has been written, by GUID.
fn lft_writes(home: &Home) -> BTreeMap<String, u64> {
    let processes = home.json(&["ps", "--json"]);
    let devices =
        processes.as_array().unwrap().iter().flat_map(|process| process["devices"].as_array().unwrap());
    let writes = devices.map(|device| (&device["guid"], device["lft_writes"].as_u64().unwrap_or(0)));
    writes
        .filter(|(_, count)| *count > 0)
        .map(|(guid, count)| (guid.as_str().unwrap().to_owned(), count))
        .collect()
}

/// Tables that are written more often than before.
fn since(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let more = now.iter().map(|(guid, count)| (guid.clone(), count - before.get(guid).copied().unwrap_or(0)));
    more.filter(|(_, count)| *count > 0).collect()
}

/// The device before the last of a path: each hop is one that packets leave.
fn last_switch(home: &Home, to: &str) -> String {
    let trace = home.json(&["trace", "host-1", to, "--json"]);
    let hops = trace["hops"].as_array().unwrap();
    hops.last().unwrap()["node"].as_str().unwrap().to_owned()
}

/// The stages of a move, in their order.
fn stages_of(moved: &Value) -> String {
    let stages = moved["stages"].as_array().unwrap().iter();
    stages.map(|stage| stage["stage"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_plan_of_a_machine_without_a_lid_says_so() {
    let home = Home::new();
    up(&home, &["--no-sm", "--vfs", "1", "--lids", "dynamic"]);
    home.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
    home.weft(&["vm", "plan", "web1", "host-2"]).fails(1, "`web1` has no LID yet");
}

fn lives_moves_and_ends(lids: &str) {
    let home = Home::new();
    up(&home, &["--vfs", "2", "--lids", lids]);
    let created = home.weft(&["vm", "create", "web1", "--host", "host-0"]);
    created.succeeds();
    assert!(created.stdout.contains("`web1` runs on host-0 vf1"), "{}", created.stdout);
    home.weft(&["check", "--wait", "30"]).succeeds();
    let before = listed(&home, "web1").unwrap();
    assert!(before["virtual_port_lid"].as_u64().unwrap() > 0, "{before}");
    assert_eq!((&before["system_name"], &before["virtual_port_state"]), (&"host-0".into(), &"Active".into()));

    // All tables at once would have a loop on the way. The refusal leaves the subnet manager's picture of who is where as it is.
    home.weft(&["vm", "plan", "web1", "host-3", "--method", "full"]).fails(1, "no plan is safe: in round 1");

    // The plan names what is then written, and no other switch is.
    let plan = home.json(&["vm", "plan", "web1", "host-3", "--json"]);
    let mut planned: BTreeMap<String, u64> = BTreeMap::new();
    for write in plan["writes"].as_array().unwrap() {
        *planned.entry(write["switch"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let first = lft_writes(&home);
    let moved = home.json(&["vm", "migrate", "web1", "host-3", "--json"]);
    assert_eq!(since(&first, &lft_writes(&home)), planned, "{plan}");
    // Two leaves and a spine at least, and both vSwitches.
    assert_eq!(moved["counts"]["vswitch_smps"], 2, "{moved}");
    assert_eq!(moved["counts"]["physical_smps"], plan["counts"]["physical_smps"]);
    assert!(planned.len() >= 5, "{plan}");
    assert_eq!(
        stages_of(&moved),
        "reserve pre-copy hold freeze export import reroute commit activate release",
        "{moved}"
    );

    // A machine's name stands for its function wherever a node is named.
    let mut capture = home.command(&["capture", "vm:web1", "--count", "1", "--json"]);
    let mut packets = Running::start_command(&mut capture);
    wait_until("a packet is captured", || {
        home.weft(&["trace", "vm:web1", "host-1"]).succeeds();
        !packets.is_running()
    });
    assert!(packets.end().success());
    home.weft(&["fault", "link-down", "vm:db:1"]).fails(2, "virtual machine `db` is in no slot");

    // It keeps its addresses, and packets find it.
    let after = listed(&home, "web1").unwrap();
    for kept in ["virtual_port_lid", "virtual_port_guid"] {
        assert_eq!(after[kept], before[kept], "{after}");
    }
    assert_eq!(after["system_name"], "host-3");
    home.weft(&["check", "--wait", "30"]).succeeds();
    assert_eq!(last_switch(&home, "vm:web1"), "host-3 vSwitch");
    let back = home.weft(&["vm", "migrate", "web1", "host-0", "--cold", "--method", "itrc"]);
    back.succeeds();
    assert!(back.stdout.contains("itrc: "), "{}", back.stdout);
    home.weft(&["check", "--wait", "30"]).succeeds();
    assert_eq!(last_switch(&home, "vm:web1"), "host-0 vSwitch");

    let fleet = home.weft(&["vm", "create", "fleet", "--count", "7"]);
    fleet.succeeds();
    let status = home.weft(&["status"]);
    assert!(status.stdout.contains("8 virtual machines (8 running); 0 of 8 slots free"), "{}", status.stdout);
    assert!(status.stdout.contains("moves: 2 done, 0 undone"), "{}", status.stdout);
    home.weft(&["vm", "create", "more"]).fails(1, "only 0 virtual functions are free, and 1 are needed");
    home.weft(&["vm", "destroy", "web1"]).succeeds();
    assert_eq!(listed(&home, "web1"), None);
    home.weft(&["vm", "destroy", "web1"]).fails(1, "no virtual machine is called `web1`");
    home.weft(&["check", "--wait", "30"]).succeeds();
    home.weft(&["down"]).succeeds();
}

#[test]
fn with_prepopulated_lids_it_lives_moves_and_ends() {
    lives_moves_and_ends("prepopulated");
}

#[test]
fn with_dynamic_lids_it_lives_moves_and_ends() {
    lives_moves_and_ends("dynamic");
}

/// The P_Keys in the table of the port that a virtual machine has.
fn p_keys(home: &Home, vm: &str) -> Vec<String> {
    let sys = home.base().join("sys");
    home.weft(&["sysfs", "--node", &format!("vm:{vm}"), text(&sys)]).succeeds();
    let table = sys.join("class/infiniband/weft_0/ports/1/pkeys");
    let key = |place| std::fs::read_to_string(table.join(format!("{place}"))).unwrap().trim().to_owned();
    (0..3).map(key).collect()
}

#[test]
fn partitions_and_rate_move_with_a_virtual_machine() {
    let home = Home::new();
    home.write("partitions", "web=0x1 : 0x0200484500000001=full, 0x0200484600000001;\n");
    up(&home, &["--vfs", "2", "--partitions", "partitions"]);
    let create = |name: &str, more: &[&str]| home.weft(&[&["vm", "create", name], more].concat());
    let first = ["--host", "host-0", "--vf", "1"];
    let refused = |p_keys: &str, place: &[&str], says: &str| {
        create("bad", &[&["--pkey", p_keys], place].concat()).fails(1, says);
    };
    refused("0x0000", &first, "P_Key 0x0000 names no partition");
    refused("0x8000", &first, "P_Key 0x8000 names no partition");
    refused("0x7fff", &first, "every virtual machine is in the default partition");
    refused("0x8001,1", &first, "P_Key 0x0001 names a partition for the second time");
    refused("0x8002", &first, "which is not in partition 0x8002");
    refused("0x8001", &["--host", "host-0", "--vf", "2"], "not in partition 0x8001");
    refused("0x8001", &["--host", "host-1"], "hint: `weft up --partitions FILE` names members by GUID");
    create("bad", &["--pkey", "0x10000"]).fails(2, "a P_Key is a number of 16 bits");
    for rate in ["0", "NaN", "1e9"] {
        create("bad", &["--rate", rate]).fails(2, "a rate is a number of Gb/s from 0.001 to 4000");
    }
    let request = r#"{"name": "bad", "rate_mbps": 0}"#;
    home.weft(&["ask", "vmm", "vm-create", request]).fails(1, "a rate of 0 lets nothing pass");
    assert_eq!(home.json(&["vm", "ls", "--json"]), serde_json::json!([]));

    create("web1", &[&["--pkey", "0x8001", "--rate", "2.5"], &first[..]].concat()).succeeds();
    home.weft(&["check", "--wait", "30"]).succeeds();
    assert_eq!(p_keys(&home, "web1"), ["0x7fff", "0x8001", "0x0000"]);
    home.weft(&["vm", "migrate", "web1", "host-3"]).succeeds();
    home.weft(&["check", "--wait", "30"]).succeeds();
    assert_eq!(p_keys(&home, "web1"), ["0x7fff", "0x8001", "0x0000"]);
    let listed = listed(&home, "web1").unwrap();
    assert_eq!((&listed["pkeys"], &listed["rate_mbps"]), (&serde_json::json!(["0x8001"]), &2500.into()));
    let slots = home.json(&["ask", "host-3", "slots"]);
    let slot = slots["slots"].as_array().unwrap().iter().find(|slot| slot["vm"] == "web1").unwrap();
    assert_eq!(
        (&slot["identity"]["rate_mbps"], &slot["identity"]["p_keys"]),
        (&2500.into(), &serde_json::json!([0x8001]))
    );
    home.weft(&["down"]).succeeds();
}

#[test]
fn bad_input_is_refused_in_words_and_nothing_is_lost() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--vfs", "1", "--sa-key", "1"])
        .fails(2, "--sa-key 1 is known to everyone");
    home.weft(&["up", text(&file), "--vfs", "1", "--vmm-at", "host-0 vf1"]).fails(2, "is a virtual function");
    up(&home, &["--vfs", "1", "--lids", "dynamic"]);
    let refused = |arguments: &[&str], says: &str| {
        let all: Vec<&str> = ["vm"].into_iter().chain(arguments.iter().copied()).collect();
        let done = home.weft(&all);
        assert_ne!(done.code, 0, "{arguments:?}: {}", done.stdout);
        assert!(done.stderr.contains(says), "{arguments:?}: {}", done.stderr);
        let lines = done.stderr.lines().count();
        assert!(lines <= 2, "one line and a hint: {}", done.stderr);
    };
    refused(&["migrate", "web1", "host-1"], "weft vm ls");
    home.weft(&["vm", "create", "web1", "--host", "host-0", "--guid", "0x0200000000000abc"]).succeeds();
    home.weft(&["vm", "create", "web2", "--host", "host-1"]).succeeds();
    let before = home.json(&["vm", "ls", "--json"]);
    refused(&["create", "web1"], "already called `web1`");
    refused(&["create", "a b"], "`a b` cannot be a name");
    refused(&["create", "new", "--host", "nowhere"], "nowhere");
    refused(&["create", "new", "--host", "host-0"], "all 1 virtual functions of host `host-0`");
    refused(&["create", "new", "--host", "host-2", "--vf", "2"], "there is no host-2 vf2");
    refused(&["create", "new", "--guid", "0x0"], "GUID 0 names no port");
    refused(&["create", "new", "--pkey", "0x8001"], "the subnet manager has no partitions");
    refused(&["create", "new", "--guid", "0x0200000000000abc"], "in use by `web1`");
    refused(&["create", "new", "--count", "3"], "only 2 virtual functions are free");
    refused(&["migrate", "web1", "host-0"], "is on host `host-0` already");
    refused(&["migrate", "web1", "host-1"], "all 1 virtual functions of host `host-1`");
    refused(&["plan", "web1", "host-1"], "all 1 virtual functions of host `host-1`");
    refused(&["forget", "web1", "--force"], "`web1` is not in doubt");
    assert_eq!(home.json(&["vm", "ls", "--json"]), before);

    // One thing at a time with one machine.
    let mut events = home.events();
    let slow = Running::start(&home, &["vm", "migrate", "web1", "host-2", "--pre-copy", "3000"]);
    events
        .wait_for("the move begins", |event| event["event"] == "vm-move-step" && event["step"] == "reserve");
    refused(&["migrate", "web1", "host-3"], "`web1` is busy: it moves to host-2 vf1");
    refused(&["destroy", "web1"], "`web1` is busy");
    assert!(slow.end().success());
    assert_eq!(listed(&home, "web1").unwrap()["system_name"], "host-2");

    // A subnet manager that does not take the key refuses before the machine is frozen.
    let keys = home.lab("default").join("identities/keys.json");
    let mut known: Value = serde_json::from_slice(&std::fs::read(&keys).unwrap()).unwrap();
    known["sa_key"] = 77.into();
    std::fs::write(&keys, known.to_string()).unwrap();
    home.weft(&["fault", "restart", "vmm"]).succeeds();
    wait_until("the VM manager begins", || state(&home, "web1") == "running");
    let denied = home.weft(&["vm", "migrate", "web1", "host-3"]);
    denied.fails(1, "`web1` stays on its host");
    assert!(denied.stderr.contains("key"), "{}", denied.stderr);
    assert_eq!(state(&home, "web1"), "running");

    // A host whose agent is dead.
    home.weft(&["fault", "kill", "host-3"]).succeeds();
    wait_until("its host is known to be away", || {
        home.weft(&["vm", "migrate", "web1", "host-3"]).stderr.contains("host `host-3` cannot be reached")
    });
    home.weft(&["down"]).succeeds();
}

#[test]
fn the_keys_of_management_are_nowhere_to_be_read() {
    let home = Home::new();
    up(&home, &["--vfs", "1"]);
    home.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
    let capture = home.base().join("all.pcap");
    let capturing = Capturing::start(&home, &["all", "-w", text(&capture), "--json"]);
    home.weft(&["vm", "migrate", "web1", "host-3"]).succeeds();
    let captured = capturing.interrupt().succeeds().stdout.clone();
    assert!(captured.contains("VmMove"), "the request that shows the key was captured");
    let lab = home.lab("default");
    let keys = lab.join("identities/keys.json");
    let key = serde_json::from_slice::<Value>(&std::fs::read(&keys).unwrap()).unwrap()["sa_key"].clone();
    let key = key.as_u64().unwrap();
    assert!(key > 1, "a random one");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&keys).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let forms = [key.to_string(), format!("{key:x}"), format!("{key:016x}")];
    let mut files = vec![lab.join("lab.json"), lab.join("vms.journal")];
    for folder in ["logs", "managers", "agents"] {
        files.extend(std::fs::read_dir(lab.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    for file in files {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert!(!forms.iter().any(|form| text.contains(form)), "the key is in {}", file.display());
    }
    let packets = std::fs::read(&capture).unwrap();
    assert!(!packets.windows(8).any(|bytes| bytes == key.to_be_bytes()), "the key is in the capture");
    let answers = [
        captured,
        home.weft(&["ask", "vmm", "vmm-status"]).stdout,
        home.weft(&["ask", "sm", "sm-status"]).stdout,
        home.weft(&["events", "--json"]).stdout,
    ];
    assert!(!answers.iter().any(|answer| forms.iter().any(|form| answer.contains(form))));
    home.weft(&["down"]).succeeds();
}

/// The VM manager is killed at three moments of a move: before the machine is frozen, while it is, and when the destination may run.
#[test]
fn a_move_ends_when_its_manager_is_killed_and_starts_again() {
    let home = Home::new();
    up(&home, &["--vfs", "1"]);
    home.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
    let address = |home: &Home| {
        let port = listed(home, "web1").unwrap();
        (port["virtual_port_lid"].clone(), port["virtual_port_guid"].clone())
    };
    let before = address(&home);
    // From the start, and read in order: nothing that happens before the stream stands is missed.
    let mut events = home.events();
    let mut at = "host-0";
    for (stage, step, ends) in [
        ("--pre-copy", "reserve", "undone"),
        ("--stop-copy", "freeze", "undone"),
        ("--resume", "commit", "done"),
    ] {
        let to = if at == "host-0" { "host-3" } else { "host-0" };
        let moving = Running::start(&home, &["vm", "migrate", "web1", to, stage, "20000"]);
        events.wait_for(step, |event| event["event"] == "vm-move-step" && event["step"] == step);
        home.weft(&["fault", "kill", "vmm"]).succeeds();
        assert!(!moving.end().success());
        home.weft(&["fault", "restart", "vmm"]).succeeds();
        events.wait_for(ends, |event| event["event"] == "vm-move-step" && event["step"] == ends);
        at = if ends == "done" { to } else { at };
        let runs = || {
            listed(&home, "web1")
                .is_some_and(|port| port["vm_state"] == "running" && port["system_name"] == at)
        };
        wait_until("it runs at one of both", runs);
        home.weft(&["check", "--wait", "30"]).succeeds();
        assert_eq!(address(&home), before, "after a kill at {step}");
        assert_eq!(last_switch(&home, "vm:web1"), format!("{at} vSwitch"));
    }
    // Nothing is left over: there and back again.
    home.weft(&["vm", "migrate", "web1", "host-1"]).succeeds();
    home.weft(&["vm", "migrate", "web1", "host-0"]).succeeds();

    // Its host dies, and that is known for sure.
    home.weft(&["fault", "kill", "host-0"]).succeeds();
    events.wait_for("it is lost", |event| event["event"] == "vm-lost" && event["vm"] == "web1");
    assert_eq!(state(&home, "web1"), "lost");
    home.weft(&["vm", "migrate", "web1", "host-2"]).fails(1, "web1");
    home.weft(&["vm", "forget", "web1"]).succeeds();
    assert_eq!(listed(&home, "web1"), None);
    home.weft(&["down"]).succeeds();
}

#[test]
fn a_laboratory_has_one_vm_manager_or_none() {
    let home = Home::new();
    up(&home, &["--vfs", "1", "--no-vmm"]);
    home.weft(&["vm", "ls"]).fails(1, "this laboratory has no VM manager");
    home.weft(&["down"]).succeeds();
    up(&home, &["--vfs", "1", "--pack", "all"]);
    let lab = home.lab("default");
    let folder = text(&lab);
    let second = home.weft(&["vmm", "--bundle", folder, "--run", folder, "--as", "vmm"]);
    second.fails(1, "locked by another process");
    // All hosts are in one agent: machines move within it.
    home.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
    home.weft(&["vm", "migrate", "web1", "host-3"]).succeeds();
    home.weft(&["check", "--wait", "30"]).succeeds();
    assert_eq!(last_switch(&home, "vm:web1"), "host-3 vSwitch");
    home.weft(&["down"]).succeeds();
}

/// Adapters of one make often have one description. A silent host is named so that it can be found, and its functions are not.
#[test]
fn silent_hosts_of_one_description_are_named_by_their_ids() {
    let home = Home::new();
    home.weft(&["topo", "gen", "xgft", "--children", "2,3", "--parents", "1,2", "-o", "three.topo"])
        .succeeds();
    let path = home.folder().join("three.topo");
    let written = std::fs::read_to_string(&path).unwrap();
    let alike = (0..6).fold(written, |text, host| text.replace(&format!("host-{host} mlx5_0"), "ConnectX"));
    std::fs::write(&path, alike).unwrap();
    let options =
        ["--vfs", "2", "--lids", "dynamic", "--engine", "ftree,no_fallback", "--packet-life-time", "14"];
    home.weft(&[&["up", "three.topo"], &options[..]].concat()).succeeds();
    let [from, to] = ["H-0200484300000400", "H-0200484300000500"];
    home.weft(&["vm", "create", "web1", "--host", from]).succeeds();
    home.weft(&["fault", "link-down", "switch-1-0:4"]).succeeds();
    home.weft(&["check", "--wait", "30"]).succeeds();
    let plan = home.json(&["vm", "plan", "web1", to, "--json"]);
    let named: Vec<&Value> = plan["peers"].as_array().unwrap().iter().map(|peer| &peer["host"]).collect();
    assert_eq!(named, [from], "{plan}");
    home.weft(&["down"]).succeeds();
}

/// A machine that leaves a leaf through which a spine is reached that another leaf has no cable to: what it turned round could wait in a circle.
#[test]
fn on_a_damaged_tree_the_old_host_follows_late() {
    let home = Home::new();
    home.weft(&["topo", "gen", "xgft", "--children", "2,3", "--parents", "1,2", "-o", "three.topo"])
        .succeeds();
    let options =
        ["--vfs", "1", "--lids", "dynamic", "--engine", "ftree,no_fallback", "--packet-life-time", "14"];
    home.weft(&[&["up", "three.topo"], &options[..]].concat()).succeeds();
    home.weft(&["vm", "create", "web1", "--host", "host-4"]).succeeds();
    home.weft(&["fault", "link-down", "switch-1-0:4"]).succeeds();
    home.weft(&["check", "--wait", "30"]).succeeds();

    let plan = home.json(&["vm", "plan", "web1", "host-5", "--json"]);
    assert_eq!(
        (&plan["counts"]["update"], &plan["counts"]["late"]),
        (&"ordered-late".into(), &1.into()),
        "{plan}"
    );
    let last = plan["writes"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["name"], &last["after_drain"]), (&"host-4 vSwitch".into(), &true.into()), "{plan}");
    // One switch may hold a packet for 67 ms (LifeTimeValue 14). The host that is silent is the old one.
    let silent = &plan["peers"][0];
    assert_eq!((&silent["host"], plan["peers"].as_array().unwrap().len()), (&"host-4".into(), 1), "{plan}");
    assert_eq!(plan["counts"]["silence_ns"], 67_109_000, "{plan}");
    let text = home.weft(&["vm", "plan", "web1", "host-5"]).stdout;
    assert!(text.contains(", ordered-late, instead of ftreeminrc, ordered"), "{text}");
    assert!(
        text.contains("silent for up to 68.000 ms after the move, less the time of `--stop-copy`: host-4 ("),
        "{text}"
    );
    let refused = home.weft(&["vm", "migrate", "web1", "host-5", "--late", "refuse"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("wait for each other in a circle"),
        "{}",
        refused.stderr
    );
    let moved = home.weft(&["vm", "migrate", "web1", "host-5"]);
    moved.succeeds();
    assert!(moved.stderr.contains("silent for up to 68.000 ms after the move: host-4"), "{}", moved.stderr);
    assert!(moved.stdout.contains("for hosts at 1 switch, "), "{}", moved.stdout);
    assert!(
        moved.stdout.contains("; 1 switch late, when packets to the old place are gone"),
        "{}",
        moved.stdout
    );
    // It waits for late rows.
    home.weft(&["check", "--wait", "30"]).succeeds();
    let events = home.weft(&["events", "--fields"]).stdout;
    let [late, finished] = ["move-late", "move-finished"].map(|kind| events.find(kind));
    assert!(late.is_some() && late < finished, "{events}");
    home.weft(&["trace", "host-4", "vm:web1"]).succeeds();
    home.weft(&["down"]).succeeds();
}

/// Min-hop's packets can wait for each other round a ring, whatever moves. That no proof covers that lane is said in words and in JSON.
#[test]
fn an_unproved_move_is_reported() {
    let home = Home::new();
    let file = home.small_tree().with_file_name("ring.topo");
    let ring = ["topo", "gen", "ring", "--switches", "6", "--hosts", "1", "-o", text(&file)];
    home.weft(&ring).succeeds();
    home.weft(&["up", text(&file), "--vfs", "1", "--engine", "minhop,no_fallback"]).succeeds();
    home.weft(&["vm", "create", "web1", "--host", "host-0"]).succeeds();
    home.weft(&["check", "--wait", "30"]).succeeds();
    let plan = home.json(&["vm", "plan", "web1", "host-3", "--json"]);
    assert_eq!(plan["counts"]["unproved_lanes"], serde_json::json!([0]), "{plan}");
    for verb in ["plan", "migrate"] {
        let said = home.weft(&["vm", verb, "web1", "host-3"]);
        said.succeeds();
        assert!(said.stdout.contains("; not proved on VL 0, where"), "{verb}: {}", said.stdout);
    }
    home.weft(&["down"]).succeeds();
}

/// Two hosts at each of two leaves: the machine goes round, within a leaf and across in turns, and nothing is left of it.
#[test]
fn the_bench_moves_a_machine_within_leaves_and_across() {
    let home = Home::new();
    up(&home, &["--vfs", "1", "--lids", "dynamic", "--engine", "ftree,no_fallback"]);
    let report = home.json(&["bench", "move", "--count", "2", "--pause", "0", "--allow-busy", "--json"]);
    let leaf = |host: &Value| host.as_str().unwrap()["host-".len()..].parse::<u32>().unwrap() / 2;
    // The leaf and both vSwitches; two leaves, two spines and both vSwitches.
    for (kind, smps) in [("within_a_leaf", 3), ("across", 6)] {
        let series = &report[kind];
        assert_eq!(series["smps"], serde_json::json!([smps, smps]), "{report}");
        for hosts in series["hosts"].as_array().unwrap() {
            assert_eq!(leaf(&hosts[0]) == leaf(&hosts[1]), kind == "within_a_leaf", "{report}");
        }
        let took: Vec<f64> =
            series["took_ms"].as_array().unwrap().iter().map(|took| took.as_f64().unwrap()).collect();
        assert!(took.len() == 2 && took.iter().all(|took| *took > 0.0), "{report}");
        assert_eq!(series["took"]["median_ms"].as_f64(), Some(took[0].min(took[1])), "{report}");
        assert_eq!(series["took"]["p90_ms"].as_f64(), Some(took[0].max(took[1])), "{report}");
    }
    assert_eq!(home.json(&["vm", "ls", "--json"]), serde_json::json!([]));
    home.weft(&["down"]).succeeds();
}
