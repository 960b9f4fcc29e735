//! Partitions of a running laboratory: changed by the verb and by SIGHUP, and the same under another manager.

use serde_json::{Value, json};

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
