//! Programs at a node of a living laboratory, and what they read of it as files.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Done, Home, Running, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use weft_umad::{Client, ServerMessage};
use weft_wire::{AttributeId, Guid, Lid, Method, PortCountersExtended, PortNum, ServiceLevel};

use crate::common;

/// A library that does nothing to a program that has it already: the C library itself.
fn harmless_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let path =
        maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("/libc"));
    PathBuf::from(path.expect("the test is linked with a C library"))
}

fn shell(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command(&[&["shell"], arguments].concat());
    command.env("WEFT_UMAD_PRELOAD", harmless_library());
    command
}

fn run(command: &mut Command) -> Done {
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn environment(done: &Done) -> BTreeMap<String, String> {
    let lines = done.succeeds().stdout.lines().filter_map(|line| line.split_once('='));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The GUID and agent of a node.
fn device(home: &Home, description: &str) -> (String, String) {
    let listed = home.json(&["ps", "--json"]);
    let agents = listed.as_array().unwrap().iter().filter(|process| process["devices"].is_array());
    let mut devices = agents.flat_map(|agent| {
        agent["devices"]
            .as_array()
            .unwrap()
            .iter()
            .map(move |device| (agent["process"].clone(), device.clone()))
    });
    let (agent, device) = devices.find(|(_, device)| device["label"] == description).unwrap();
    (device["guid"].as_str().unwrap().to_owned(), agent.as_str().unwrap().to_owned())
}

#[test]
fn a_program_is_told_where_it_is_attached() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree), "--sm-at", "host-2"]).succeeds();
    for (arguments, node) in [
        (&["--", "env"][..], "host-2"),
        (&["--at", "host-3", "--", "env"], "host-3"),
        (&["--at", "switch-1-0", "--", "env"], "switch-1-0"),
    ] {
        let done = run(&mut shell(&home, arguments));
        let environment = environment(&done);
        let (guid, agent) = device(&home, node);
        let socket = home.lab("default").join("sockets").join(format!("{agent}.umad"));
        assert_eq!(environment["WEFT_UMAD_NODE"], guid);
        assert_eq!(environment["WEFT_UMAD_SOCKET"], text(&socket));
        assert_eq!(environment["LD_PRELOAD"], text(&harmless_library()));
        assert!(!environment.contains_key("IBSIM_SOCKNAME"));
    }
    // Without a command it is the user's shell, and what is loaded already stays loaded.
    let mut command = shell(&home, &[]);
    let done = run(command.env("SHELL", "/usr/bin/env").env("LD_PRELOAD", "libdl.so.2"));
    assert!(environment(&done)["LD_PRELOAD"].ends_with(":libdl.so.2"), "{}", done.stdout);
    assert!(done.stderr.contains("a shell at `host-2`"), "{}", done.stderr);
}

#[test]
fn a_program_is_told_the_port_that_was_named() {
    let home = Home::new();
    home.write("x.topo", include_str!("../../../../topologies/two-planes.topo"));
    home.weft(&["up", "x.topo", "--no-sm"]).succeeds();
    // The variables of a shell around this one are not this one's.
    let at = |seat, option: &[&str]| {
        let mut command = shell(&home, &[&["--at", seat], option, &["--", "env"]].concat());
        run(command.env("WEFT_UMAD_PORT", "9"))
    };
    let port = |seat| environment(&at(seat, &[])).get("WEFT_UMAD_PORT").cloned();
    assert_eq!(port("node03 mlx5_0:2").as_deref(), Some("2"));
    assert_eq!(port("node03 mlx5_0"), None, "no port was named");
    assert_eq!(port("plane-2:0"), None, "a switch has one port for programs");
    at("node03 mlx5_0:3", &[]).fails(2, "`node03` has ports 1 to 2, not 3");
    at("node03 mlx5_0:0", &[]).fails(2, "has ports 1 to 2, not 0");
    at("plane-2:1", &[]).fails(2, "programs at the switch `plane-2` sit at its port 0, not 1");
    at("node03 mlx5_0:2", &["--ibsim=x"]).fails(2, "under --ibsim the program chooses the port");
}

#[test]
fn without_a_manager_programs_are_at_the_first_host() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree), "--no-sm"]).succeeds();
    let first = environment(&run(&mut shell(&home, &["--", "env"])))["WEFT_UMAD_NODE"].clone();
    assert_eq!(first, device(&home, "host-0").0);
    run(&mut shell(&home, &["--at", "nobody", "--", "env"])).fails(2, "nobody");
    run(shell(&home, &["--", "env"]).env("WEFT_UMAD_PRELOAD", "/no/such.so"))
        .fails(2, "WEFT_UMAD_PRELOAD names /no/such.so");
    run(&mut shell(&home, &["--", "no-such-program"])).fails(1, "cannot start no-such-program");
    home.weft(&["fault", "kill", "host-1"]).succeeds();
    run(&mut shell(&home, &["--at", "host-1", "--", "env"])).fails(1, "the agent of `host-1` is not running");
}

#[test]
fn the_programs_end_is_the_shells_end() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree), "--no-sm"]).succeeds();
    assert_eq!(run(&mut shell(&home, &["--", "sh", "-c", "exit 7"])).code, 7);
    // A signal to the shell is one to the program, which does with it what it likes.
    let wait = "echo ready; while :; do read -r line <&3; done";
    for (program, code, signal) in
        [(format!("trap 'exit 3' TERM; {wait}"), Some(3), None), (wait.to_owned(), None, Some(15))]
    {
        let fifo = home.write("x", "").with_file_name(format!("fifo-{}", code.is_some()));
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let program = format!("exec 3<>{}; {program}", text(&fifo));
        let mut running = Running::start_command(&mut shell(&home, &["--", "sh", "-c", &program]));
        running.wait_for_line("ready");
        running.signal(Signal::TERM);
        let status = running.end();
        assert_eq!((status.code(), status.signal()), (code, signal));
    }
}

#[test]
fn programs_of_ibsim_are_told_of_its_server() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree), "--no-sm"]).succeeds();
    let (guid, _) = device(&home, "host-1");
    let environment_of = |name: &str| {
        environment(&run(&mut shell(&home, &["--at", "host-1", &format!("--ibsim={name}"), "--", "env"])))
    };
    let local = environment_of("mine");
    assert_eq!(local["IBSIM_SOCKNAME"], "mine");
    assert_eq!(local["SIM_HOST"], format!("H-{}", guid.trim_start_matches("0x")));
    assert!(local["LD_PRELOAD"].ends_with("/umad2sim/libumad2sim.so"), "{local:?}");
    assert!(!local.contains_key("WEFT_UMAD_NODE"));
    for (name, server, port) in [("udp:10.0.0.1:99", "10.0.0.1", "99"), ("udp:there", "there", "7070")] {
        let remote = environment_of(name);
        assert_eq!((&*remote["IBSIM_SERVER_NAME"], &*remote["IBSIM_SERVER_PORT"]), (server, port));
        assert!(!remote.contains_key("IBSIM_SOCKNAME"));
    }
    for wrong in ["--ibsim=udp:x:y", "--ibsim=udp::7"] {
        assert_eq!(run(&mut shell(&home, &[wrong, "--", "env"])).code, 2, "{wrong}");
    }
    run(&mut shell(&home, &["--ibsim=x", "--sysfs", "--", "env"])).fails(2, "--sysfs");
}

/// The only end of a cable that is at this node.
fn link_of(home: &Home, node: &str) -> Value {
    let links = home.json(&["links", "--json"]);
    let mut ends = links.as_array().unwrap().iter().flat_map(|link| [&link["a"], &link["b"]]);
    ends.find(|end| end["node"] == node).unwrap().clone()
}

/// What the node's PMA says of its port 1, asked by its LID from inside.
fn asked_of_the_pma(home: &Home, node: &str, lid: u16) -> PortCountersExtended {
    let (guid, agent) = device(home, node);
    let patience = Duration::from_secs(20);
    let mut client = Client::connect(&home.lab("default").join("sockets").join(agent)).unwrap();
    client.attach(guid.parse::<Guid>().unwrap(), PortNum(1), vec![], patience).unwrap();
    let which = PortCountersExtended { port_select: PortNum(1), ..PortCountersExtended::default() }.encode();
    let (get, attribute) = (Method::Get, AttributeId::PortCountersExtended);
    client.send(&weft_mgmt::perf(Lid(lid), ServiceLevel(0), get, attribute, &which)).unwrap();
    client.flush().unwrap();
    let Some(ServerMessage::Receive(answer)) = client.recv(patience).unwrap() else { panic!("no answer") };
    PortCountersExtended::decode(answer.mad.0[64..].first_chunk().unwrap())
}

#[test]
fn the_files_say_what_the_device_says() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    // Quiet, so that the counters stand still.
    home.weft(&["fault", "kill", "sm"]).succeeds();
    let sys = home.base().join("sys");
    home.weft(&["sysfs", "--node", "host-1", text(&sys)]).succeeds();
    let device_folder = sys.join("class/infiniband/weft_0");
    let read = |folder: &Path, name: &str| {
        let line =
            std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        line.strip_suffix('\n').unwrap().to_owned()
    };
    let of_device = |name: &str| read(&device_folder, name);
    let of_port = |name: &str| read(&device_folder.join("ports/1"), name);
    let link = link_of(&home, "host-1");
    let lid = u16::try_from(link["lid"].as_u64().unwrap()).unwrap();
    let (guid, _) = device(&home, "host-1");
    let groups = |guid: &str| {
        let digits = guid.trim_start_matches("0x");
        [0, 4, 8, 12].map(|at| digits[at..at + 4].to_owned()).join(":")
    };
    assert_eq!(of_device("node_guid"), groups(&guid));
    assert_eq!(of_device("node_desc"), "host-1");
    assert_eq!(of_device("node_type"), "1: CA");
    assert_eq!(of_device("fw_ver"), env!("CARGO_PKG_VERSION"));
    assert_eq!(of_port("lid"), format!("{lid:#x}"));
    assert_eq!(of_port("sm_lid"), format!("{:#x}", link_of(&home, "host-0")["lid"].as_u64().unwrap()));
    assert_eq!((of_port("state"), of_port("phys_state")), ("4: ACTIVE".into(), "5: LinkUp".into()));
    assert_eq!(of_port("rate"), "40 Gb/sec (4X QDR)");
    assert_eq!(of_port("link_layer"), "InfiniBand");
    let port_guid = u64::from_str_radix(guid.trim_start_matches("0x"), 16).unwrap() + 1;
    assert_eq!(of_port("gids/0"), format!("fe80:0000:0000:0000:{}", groups(&format!("{port_guid:016x}"))));
    assert_eq!(of_port("pkeys/0"), "0xffff");
    // What libibumad reads of the device files.
    assert_eq!(read(&sys.join("class/infiniband_mad"), "abi_version"), "5");
    assert_eq!(read(&sys.join("class/infiniband_mad/umad0"), "ibdev"), "weft_0");
    assert_eq!(read(&sys.join("class/infiniband_mad/issm0"), "port"), "1");
    // Counters as the PMA tells them to whoever asks.
    let counters = asked_of_the_pma(&home, "host-1", lid);
    let counted = |name: &str| of_port(&format!("counters/{name}")).parse::<u64>().unwrap();
    assert!(counters.port_xmit_pkts > 0 && counters.port_rcv_pkts > 0);
    for (name, value) in [
        ("port_xmit_data", counters.port_xmit_data),
        ("port_rcv_data", counters.port_rcv_data),
        ("port_xmit_packets", counters.port_xmit_pkts),
        ("port_rcv_packets", counters.port_rcv_pkts),
        ("unicast_xmit_packets", counters.port_unicast_xmit_pkts),
        ("unicast_rcv_packets", counters.port_unicast_rcv_pkts),
        ("multicast_xmit_packets", counters.port_multicast_xmit_pkts),
        ("multicast_rcv_packets", counters.port_multicast_rcv_pkts),
    ] {
        assert_eq!(counted(name), value, "{name}");
    }
    assert!(!device_folder.join("ports/1/hw_counters").exists(), "nobody counts those");
    // A port that goes down shows it with the next writing.
    home.weft(&["fault", "link-down", "host-1:1"]).succeeds();
    home.weft(&["sysfs", "--node", "host-1", text(&sys)]).succeeds();
    assert_eq!(of_port("state"), "1: DOWN");
    assert_eq!(counted("link_downed"), 1);
    // A switch has port 0 alone.
    home.weft(&["sysfs", "--node", "switch-2-0", text(&home.base().join("switch"))]).succeeds();
    let ports = std::fs::read_dir(home.base().join("switch/class/infiniband/weft_0/ports")).unwrap();
    assert_eq!(ports.map(|port| port.unwrap().file_name()).collect::<Vec<_>>(), ["0"]);
    home.weft(&["sysfs", "/proc/nowhere"]).fails(2, "cannot write /proc/nowhere");
}

#[test]
fn files_are_kept_up_to_date_until_interrupted() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let sys = home.base().join("sys");
    let arguments = ["sysfs", "--every", "1", "--node", "host-1", text(&sys)];
    let mut running = Running::start(&home, &arguments);
    let state = sys.join("class/infiniband/weft_0/ports/1/state");
    let is = |wanted: &str| std::fs::read_to_string(&state).is_ok_and(|state| state == wanted);
    wait_until("the port is active in the files", || is("4: ACTIVE\n"));
    home.weft(&["fault", "link-down", "host-1:1"]).succeeds();
    wait_until("the port is down in the files", || is("1: DOWN\n"));
    assert!(running.is_running());
    running.signal(Signal::INT);
    assert!(running.end().success());
}

#[test]
fn ibstatus_reads_the_files_where_it_expects_them() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    let done = run(&mut shell(
        &home,
        &["--at", "host-1", "--sysfs", "--", "sh", "-c", "ibstatus && ls /sys/class/net && echo $LD_PRELOAD"],
    ));
    let left = |home: &Home| {
        std::fs::read_dir(home.lab("default"))
            .unwrap()
            .any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with("sysfs-"))
    };
    assert!(!left(&home), "the files are left behind");
    if !may_unshare() {
        // No test that no one sees: then it is said, and nothing else happens.
        done.fails(1, "this machine allows no mount namespace");
        return;
    }
    let lid = link_of(&home, "host-1")["lid"].as_u64().unwrap();
    let said = &done.succeeds().stdout;
    for line in [
        "Infiniband device 'weft_0' port 1 status:",
        &format!("base lid:\t {lid:#x}"),
        "state:\t\t 4: ACTIVE",
        "phys state:\t 5: LinkUp",
        "rate:\t\t 40 Gb/sec (4X QDR)",
        "link_layer:\t InfiniBand",
        "\nlo\n",
        text(&harmless_library()),
    ] {
        assert!(said.contains(line), "`{line}` is not in: {said}");
    }
    assert!(!Path::new("/sys/class/infiniband/weft_0").exists(), "the machine's own files were changed");
}

fn may_unshare() -> bool {
    let ways = [&["--map-current-user", "--keep-caps", "--mount", "true"][..], &["--mount", "true"]];
    ways.into_iter()
        .any(|way| Command::new("unshare").args(way).stderr(Stdio::null()).status().unwrap().success())
}
