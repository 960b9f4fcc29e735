//! Partitions of a running laboratory: changed by the verb and by SIGHUP, and the same under another manager.

use serde_json::{Value, json};
use weft_bundle::folder::LabFolder;
use weft_lab::partitions::{Change, Tenants};
use weft_lab::view::Lab;
use weft_machine::Time;
use weft_routing::files::partitions::PartitionsFile;
use weft_sim::{SimOptions, Simulation};
use weft_sm::PartEnforce;

use super::common::{self, Home, text, wait_until};

/// The first places of a host's P_Key table.
fn keys(home: &Home, host: &str, places: usize) -> Vec<String> {
    let sys = home.base().join("sys");
    home.weft(&["sysfs", "--node", host, text(&sys)]).succeeds();
    let table = sys.join("class/infiniband/weft_0/ports/1/pkeys");
    let key = |place| std::fs::read_to_string(table.join(format!("{place}"))).unwrap().trim().to_owned();
    (0..places).map(key).collect()
}

/// A tree of four hosts, with a standby manager and these partitions.
fn up(home: &Home, partitions: Option<&str>) {
    let file = home.small_tree();
    let mut arguments =
        vec!["up", text(&file), "--standby", "1", "--polling-ms", "500", "--polling-retries", "1"];
    if let Some(partitions) = partitions {
        home.write("partitions", partitions);
        arguments.extend(["--partitions", "partitions"]);
    }
    home.weft(&arguments).succeeds();
}

fn file(home: &Home) -> String {
    std::fs::read_to_string(home.lab("default").join("partitions.conf")).unwrap()
}

fn smps(home: &Home, arguments: &[&str]) -> u64 {
    home.json(&[&["partition"], arguments, &["--json"]].concat())["smps"].as_u64().unwrap()
}

#[test]
fn hosts_join_and_leave_while_the_fabric_runs() {
    let home = Home::new();
    up(&home, Some("# of the plan\nDefault=0x7fff : ALL=limited, SELF=full ;\nweb=0x0102 : ;   # empty\n"));
    for (host, count) in [("host-1", 2), ("host-2", 2)] {
        let change = ["join", "web", host];
        assert_eq!(smps(&home, &[&change[..], &["--dry-run"]].concat()), count, "of {host} and its switch");
        assert_eq!(smps(&home, &change), count);
        assert_eq!(smps(&home, &change), 0, "once more");
    }
    assert_eq!(keys(&home, "host-1", 3), ["0x7fff", "0x8102", "0x0000"]);
    // A lower key moves no other.
    assert_eq!(smps(&home, &["add", "db=0x0050"]), 0);
    home.weft(&["partition", "join", "db", "host-1", "limited"]).succeeds();
    home.weft(&["partition", "join", "db", "host-3"]).succeeds();
    assert_eq!(keys(&home, "host-1", 3), ["0x7fff", "0x8102", "0x0050"]);
    let listed = home.json(&["partition", "ls", "--json"]);
    let counts = |row: &Value| (row["name"].clone(), row["full"].clone(), row["limited"].clone());
    let rows: Vec<_> = listed.as_array().unwrap().iter().map(counts).collect();
    assert_eq!(rows[1..], [("web".into(), 2.into(), 0.into()), ("db".into(), 1.into(), 1.into())]);
    let members = home.weft(&["partition", "ls", "--members"]);
    let line = |what: &str| members.succeeds().stdout.lines().any(|line| line.contains(what));
    assert!(line("host-3") && line("limited"), "{}", members.stdout);
    assert_eq!(smps(&home, &["leave", "web", "host-1"]), 2);
    assert_eq!(keys(&home, "host-1", 3), ["0x7fff", "0x0000", "0x0050"]);
    assert!(file(&home).starts_with("# of the plan\n") && file(&home).contains("# empty"), "{}", file(&home));
    // Another manager reads the file and the ports, and changes nothing.
    home.weft(&["fault", "kill", "sm"]).succeeds();
    wait_until("the standby is master", || {
        let status = home.json(&["status", "--json"]);
        status["sm"]["subnet_up"] == true && status.to_string().contains("\"sm-2\"")
    });
    assert_eq!(smps(&home, &["join", "web", "host-2"]), 0);
    // Its own port, which is host-1's, is a full member of the default partition.
    assert_eq!(keys(&home, "host-1", 3), ["0xffff", "0x0000", "0x0050"]);
    home.weft(&["down"]).succeeds();
}

#[test]
fn sighup_reads_the_partitions_file_again() {
    let home = Home::new();
    up(&home, Some("web=0x0102 : ;\n"));
    let (_, sm) = home.processes().into_iter().find(|(name, _)| name == "sm").unwrap();
    let mut events = home.events();
    let mut hangup = |what: &str, event: &str| {
        common::signal(sm, rustix::process::Signal::HUP);
        events.wait_for(what, |seen| seen["event"] == event)
    };
    let taken = hangup("nothing has changed", "partitions-taken");
    assert_eq!((&taken["smps"], &taken["in_charge"]), (&json!(0), &json!(true)), "{taken}");
    let path = home.lab("default").join("partitions.conf");
    std::fs::write(&path, "web=0x0102 : ;\nstray=0x10000 : ;\n").unwrap();
    let refused = hangup("it is invalid", "partitions-refused");
    assert!(
        refused["message"].as_str().unwrap().contains("partitions.conf:2:7: a P_Key must be"),
        "{refused}"
    );
    std::fs::write(&path, format!("web=0x0102 : {}=full ;\n", host_guid(&home))).unwrap();
    let taken = hangup("one has joined", "partitions-taken");
    assert_eq!(taken["smps"], 2, "{taken}");
    assert_eq!(keys(&home, "host-1", 2), ["0x7fff", "0x8102"]);
    home.weft(&["down"]).succeeds();
}

/// The GUID of host-1's port, as `weft partition` writes it.
fn host_guid(home: &Home) -> String {
    let topology = std::fs::read_to_string(home.lab("default").join("topology")).unwrap();
    let fabric = weft_topology::parse("topology", &topology).unwrap();
    let node = fabric.find("host-1").unwrap();
    let (_, port) = fabric.node(node).end_ports().next().unwrap();
    port.guid.to_string()
}

#[test]
fn bad_changes_are_refused_in_one_line() {
    let home = Home::new();
    up(&home, None);
    let refused = |arguments: &[&str], says: &str| {
        let done = home.weft(&[&["partition"], arguments].concat());
        done.fails(2, says);
        assert!(done.stderr.contains("hint:"), "{}", done.stderr);
    };
    refused(&["join", "web", "host-1"], "this laboratory has no partitions file");
    home.weft(&["partition", "add", "web"]).succeeds();
    assert!(file(&home).ends_with("web=0x0001 : ;\n"), "{}", file(&home));
    let before = file(&home);
    refused(&["add", "web"], "there is a partition `web` already");
    refused(&["add", "db=0x8002"], "P_Key 0x8002 names no partition that can be added");
    refused(&["add", "db=0x7fff"], "P_Key 0x7fff names no partition");
    refused(&["add", "db=1"], "P_Key 0x0001 is that of web");
    refused(&["add", "a;b"], "`a;b` cannot be a partition's name");
    refused(&["join", "db", "host-1"], "no partition is called `db`; there are Default, web");
    refused(&["join", "web", "host-9"], "host-9");
    refused(&["join", "web", "0x77"], "0x77");
    refused(&["leave", "web", "host-1"], "`host-1` is not in web");
    refused(&["leave", "Default", "host-1"], "every port is in the default partition");
    refused(&["rm", "Default"], "every port is in the default partition");
    assert_eq!(file(&home), before, "nothing was written");
    home.weft(&["partition", "join", "web", "host-1"]).succeeds();
    home.weft(&["partition", "join", "web", "host-2", "limited"]).succeeds();
    refused(&["leave", "web", "host-1"], "`host-1` is the last full member of web");
    assert_eq!(smps(&home, &["rm", "web"]), 4, "of two hosts and their switches");
    home.weft(&["down"]).succeeds();
}

/// Whoever edits the file by hand takes no lock: a change that was read before theirs is refused, and theirs stays.
#[test]
fn an_editors_change_is_not_written_over() {
    let home = Home::new();
    up(&home, Some("web=0x0102 : ;\n"));
    let lab = Lab::load(&LabFolder::of_run(&home.lab("default"), "default").unwrap()).unwrap();
    let tenants = Tenants::of(&lab).unwrap();
    let add = Change::Add { name: "db".to_owned(), pkey: Some(0x50), ipoib: false };
    let edited = tenants.edited(&add).unwrap();
    let by_hand = "web=0x0102 : ;\n# mine\nshop=0x0200 : ;\n";
    std::fs::write(home.lab("default").join("partitions.conf"), by_hand).unwrap();
    let refused = tenants.write(&edited).map(drop).unwrap_err();
    assert!(refused.to_string().contains("partitions.conf has changed since it was read"), "{refused:#}");
    assert_eq!(weft_bundle::failure::code_of(&refused), 2, "as other refusals");
    assert_eq!(file(&home), by_hand);
    let heard = tenants.write(&tenants.edited(&add).unwrap()).unwrap();
    assert!(heard.iter().all(|heard| heard.taken.is_some()), "{heard:?}");
    assert_eq!(file(&home), format!("{by_hand}db=0x0050 : ;\n"));
    home.weft(&["down"]).succeeds();
}

/// A port with room for 32 keys has the default partition's and 31 more. The 33rd is left out, whichever number it has, and the verb fails.
#[test]
fn a_join_that_finds_no_room_fails_and_moves_no_key() {
    let home = Home::new();
    let topology = home.small_tree();
    let rule = |key: u16| format!("p{key}={key:#06x} : ;\n");
    let rules: String = (0x10..0x10 + 32).chain([1]).map(rule).collect();
    home.write("partitions", &format!("Default=0x7fff : ALL=limited, SELF=full ;\n{rules}"));
    home.weft(&["up", text(&topology), "--partitions", "partitions", "--p-key-capacity", "32"]).succeeds();
    let path = home.lab("default").join("partitions.conf");
    let all = file(&home);
    let members = |all: &str| {
        let lines = all.lines().map(|line| match line.starts_with("p16=") || line.starts_with("p1=") {
            true => line.to_owned(),
            false => line.replace(" : ;", &format!(" : {}=full ;", host_guid(&home))),
        });
        lines.map(|line| line + "\n").collect::<String>()
    };
    std::fs::write(&path, members(&all)).unwrap();
    let taken = home.json(&["ask", "sm", "read-partitions"]);
    assert_eq!((&taken["left_out"], &taken["waiting"]), (&json!(0), &json!(0)), "{taken}");
    let before = keys(&home, "host-1", 32);
    assert!(!before.contains(&"0x0000".to_owned()), "{before:?}");
    for name in ["p16", "p1"] {
        let full = home.weft(&["partition", "join", name, "host-1"]);
        full.fails(1, "its port has no room for");
        assert!(full.stderr.contains("hint: `weft partition leave`"), "{}", full.stderr);
        assert_eq!(keys(&home, "host-1", 32), before, "live keys stay");
    }
    // Another host's change says that keys are left out, and is made.
    let other = home.weft(&["partition", "join", "p1", "host-2"]);
    assert!(other.succeeds().stderr.contains("2 keys left out"), "{}", other.stderr);
    home.weft(&["down"]).succeeds();
}

/// How well a partition is isolated is a flag of the file; a policy that no routing keeps is refused before anything is written.
#[test]
fn policies_are_previewed_set_and_refused() {
    let home = Home::new();
    let topology = home.small_tree();
    home.write("partitions", "strict ;\nDefault=0x7fff : ALL=limited, SELF=full ;\n");
    let engine = ["--engine", "pftree-ext,no_fallback", "--partitions", "partitions"];
    home.weft(&[&["up", text(&topology)][..], &engine].concat()).succeeds();
    home.weft(&["partition", "add", "one=0x0010"]).succeeds();
    home.weft(&["partition", "add", "two=0x0020"]).succeeds();
    for (name, host) in [("one", "host-0"), ("one", "host-2"), ("two", "host-1"), ("two", "host-3")] {
        home.weft(&["partition", "join", name, host]).succeeds();
    }
    let before = file(&home);
    let planned = home.json(&["partition", "policy", "one", "phy", "--dry-run", "--json"]);
    assert_eq!((&planned["writes"], &planned["routes"][0]["engine"]), (&json!([]), &"pftree-ext".into()));
    assert_eq!(file(&home), before, "nothing was written");
    let said = home.weft(&["partition", "policy", "one", "phy", "--dry-run"]).succeeds().stdout.clone();
    assert!(said.contains("pftree-ext: ") && said.ends_with("; nothing is written\n"), "{said}");
    home.weft(&["partition", "policy", "one", "phy"]).succeeds();
    assert_eq!(file(&home), before.replace("one=0x0010 :", "one=0x0010, isolation=phy :"));
    let routing = home.json(&["status", "--json"])["sm"]["routing"].to_string();
    assert!(routing.contains("1 with links of their own"), "{routing}");
    // A host in both cannot keep their links apart, whichever comes first.
    home.weft(&["partition", "join", "two", "host-0"])
        .fails(2, "a policy of the partitions file cannot be met");
    assert_eq!(file(&home), before.replace("one=0x0010 :", "one=0x0010, isolation=phy :"));
    home.weft(&["partition", "policy", "one", "def"]).succeeds();
    assert_eq!(file(&home), before);
    home.weft(&["partition", "join", "two", "host-0"]).succeeds();
    let kept = file(&home);
    let refused = home.weft(&["partition", "policy", "one", "phy"]);
    refused.fails(2, "the policy phy of one cannot be met");
    assert!(refused.stderr.contains("hint: `best-effort ;`"), "{}", refused.stderr);
    assert_eq!(file(&home), kept, "nothing was written");
    home.weft(&["partition", "policy", "three", "phy"]).fails(2, "no partition is called `three`");
    home.weft(&["partition", "policy", "one", "solid"]).fails(2, "solid");
    home.weft(&["down"]).succeeds();
}

/// A queue pair whose key goes ends, and `flow ls` says why, at both of its ends.
#[test]
fn flows_of_a_partition_that_is_left_end_with_a_reason() {
    let home = Home::new();
    up(&home, Some("Default=0x7fff : ALL=limited, SELF=full ;\nweb=0x0102 : ;\ndb=0x0050 : ;\n"));
    for (name, host) in [("web", "host-1"), ("web", "host-2"), ("db", "host-2"), ("db", "host-3")] {
        home.weft(&["partition", "join", name, host]).succeeds();
    }
    for (name, from, to) in
        [("out", "host-1", "host-2"), ("in", "host-2", "host-1"), ("db", "host-2", "host-3")]
    {
        home.weft(&["flow", "start", from, to, "--name", name, "--rate", "0.2"]).succeeds();
    }
    let flow = |name: &str| {
        let flows = home.json(&["flow", "ls", "--json"]);
        flows.as_array().unwrap().iter().find(|flow| flow["name"] == name).unwrap().clone()
    };
    let delivered = |name: &str| flow(name)["receiver"]["bytes"].as_u64().unwrap_or(0);
    for name in ["out", "in", "db"] {
        wait_until(name, || delivered(name) > 0);
    }
    home.weft(&["partition", "leave", "web", "host-1"]).succeeds();
    let why = "the port has left partition 0x0102: its P_Key is not in the port's table any more";
    wait_until("the sender says why", || flow("out")["sender"]["error"] == why);
    wait_until("the receiver says why", || flow("in")["receiver"]["error"] == why);
    let before = delivered("db");
    wait_until("the other partition goes on", || delivered("db") > before);
    let listed = home.weft(&["flow", "ls"]).succeeds().stdout.clone();
    assert!(listed.contains("has left partition 0x0102"), "{listed}");
    home.weft(&["down"]).succeeds();
}

/// The same changes on processes and in virtual time write the same blocks: those of the closed form, which counts the ports whose keys
/// differ, twice where their switches look.
#[test]
fn live_and_virtual_write_the_blocks_of_the_closed_form() {
    for (enforcement, enforce, times) in [("both", PartEnforce::Both, 2), ("off", PartEnforce::Off, 1)] {
        let home = Home::new();
        let topology = home.small_tree();
        let fabric = weft_topology::parse("t", &std::fs::read_to_string(&topology).unwrap()).unwrap();
        let plan = |changes: &[&[usize]]| {
            let guid = |host: &usize| fabric.node(fabric.hosts().nth(*host).unwrap().0).ports[1].guid;
            let rule = |(nth, hosts): (usize, &&[usize])| {
                let members: Vec<String> = hosts.iter().map(|host| format!("{}=full", guid(host))).collect();
                format!("p{nth}={:#06x} : {} ;\n", 0x10 + nth, members.join(", "))
            };
            let rules = changes.iter().enumerate().map(rule).collect::<String>();
            format!("Default=0x7fff : ALL=limited, SELF=full ;\n{rules}")
        };
        let before = plan(&[&[0, 1], &[2, 3], &[]]);
        // Hosts 1 and 2 change one key each, host 3 two; host 0 none. One block each.
        let after = plan(&[&[0, 1, 3], &[2, 3], &[1, 2, 3]]);
        let closed_form = 3 * times;

        home.write("partitions", &before);
        let options = ["--partitions", "partitions", "--part-enforce", enforcement];
        home.weft(&[&["up", text(&topology)][..], &options].concat()).succeeds();
        let live = blocks_written(&home);
        std::fs::write(home.lab("default").join("partitions.conf"), &after).unwrap();
        let told = home.json(&["ask", "sm", "read-partitions"]);
        assert_eq!(told["smps"], closed_form, "{told}");
        assert_eq!(blocks_written(&home) - live, closed_form, "agents receive them");
        home.weft(&["down"]).succeeds();

        let read = |text: &str| PartitionsFile::parse("f", text).unwrap();
        let at = fabric.attach_place().unwrap();
        let manager = fabric.port(at).map(|port| port.guid);
        let mut options = SimOptions { sm_port: Some(at), ..SimOptions::default() };
        options.sm.routing.part_enforce = enforce;
        options.sm.routing.engine.partitions = Some(read(&before).resolve(&fabric, manager));
        let mut simulation = Simulation::new(&fabric, options, 1);
        simulation.run_until_quiet(Time::from_secs(100)).unwrap();
        let written = |simulation: &Simulation| -> u64 {
            let devices = fabric.iter().filter_map(|(node, _)| simulation.device(node));
            devices.map(|device| device.statistics().p_key_writes).sum()
        };
        let begin = written(&simulation);
        simulation.set_partitions(&read(&after).resolve(&fabric, manager));
        simulation.run_until(simulation.now() + Time::from_secs(2));
        assert_eq!(written(&simulation) - begin, closed_form, "virtual devices receive them");
    }
}

/// Blocks of P_Key tables that the agents of a laboratory have taken.
fn blocks_written(home: &Home) -> u64 {
    const COUNTER: &str = "weft_agent_p_key_blocks_written_total";
    let agents = home.json(&["ps", "--json"]);
    let is_agent = |process: &&Value| matches!(process["kind"].as_str(), Some("switch" | "hca"));
    let names = agents
        .as_array()
        .unwrap()
        .iter()
        .filter(is_agent)
        .map(|process| process["process"].as_str().unwrap());
    let count = |name: &str| -> u64 {
        let text = home.json(&["ask", name, "metrics"])["text"].as_str().unwrap().to_owned();
        let lines = text.lines().filter(|line| line.starts_with(COUNTER));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64).sum()
    };
    names.map(count).sum()
}

/// A machine's membership goes with its port: its flows, which the default partition would not carry, go on at its new host, and end when
/// it leaves the partition there.
#[test]
fn a_tenants_machine_brings_its_partition_and_flows_along() {
    let home = Home::new();
    let topology = home.small_tree();
    home.write("partitions", "Default=0x7fff : ALL=limited, SELF=full ;\nweb=0x0102 : ;\n");
    home.weft(&["up", text(&topology), "--vfs", "2", "--partitions", "partitions"]).succeeds();
    home.weft(&["vm", "create", "web1", "--host", "host-1"]).succeeds();
    for member in ["vm:web1", "host-3"] {
        home.weft(&["partition", "join", "web", member]).succeeds();
    }
    for (name, from, to) in [("out", "vm:web1", "host-3"), ("in", "host-3", "vm:web1")] {
        home.weft(&["flow", "start", from, to, "--name", name, "--rate", "0.2"]).succeeds();
    }
    let flow = |name: &str| {
        let flows = home.json(&["flow", "ls", "--json"]);
        flows.as_array().unwrap().iter().find(|flow| flow["name"] == name).unwrap().clone()
    };
    let go_on = |what: &str| {
        for name in ["out", "in"] {
            let delivered = || flow(name)["receiver"]["bytes"].as_u64().unwrap_or(0);
            let before = delivered();
            wait_until(&format!("{name} {what}"), || delivered() > before);
        }
    };
    go_on("at the first host");
    home.weft(&["vm", "migrate", "web1", "host-2"]).succeeds();
    go_on("at the second host");
    home.weft(&["partition", "leave", "web", "vm:web1"]).succeeds();
    let why = "the port has left partition 0x0102: its P_Key is not in the port's table any more";
    wait_until("the machine's sender says why", || flow("out")["sender"]["error"] == why);
    wait_until("the machine's receiver says why", || flow("in")["receiver"]["error"] == why);
    home.weft(&["down"]).succeeds();
}
