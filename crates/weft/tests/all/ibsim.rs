//! Programs under ibsim's stock library at a laboratory, and weft's own subnet manager as such a program: both sides of
//! ibsim's protocol with real processes.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{Home, wait_until};
use weft_ibsim::{Address, Program, ProgramError, Received};
use weft_wire::{AddressedMad, Lid, Mad};

use crate::common;

const PATIENCE: Duration = Duration::from_secs(10);

/// A name for a server that no other test has.
fn name() -> String {
    static NAMES: AtomicU32 = AtomicU32::new(0);
    format!("weft-test-{}-{}", std::process::id(), NAMES.fetch_add(1, Ordering::Relaxed))
}

/// A laboratory of 4 switches and 4 hosts without a subnet manager, and the name of its server.
fn served(home: &Home) -> String {
    let (tree, name) = (home.small_tree(), name());
    home.weft(&["up", "--no-sm", "--pack", "all", "--ibsim-socket", &name, common::text(&tree)]).succeeds();
    name
}

/// A stock program at the server of that name.
fn stock(home: &Home, server: &str, program: &str) -> Command {
    let folders = std::fs::read_dir("/usr/lib").unwrap().filter_map(Result::ok);
    let libraries = folders.map(|folder| folder.path().join("umad2sim/libumad2sim.so"));
    let library: PathBuf =
        libraries.into_iter().find(|library| library.exists()).expect("apt-get install ibsim-utils");
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library).env("IBSIM_SOCKNAME", server).stdin(Stdio::null());
    command.env("OSM_CACHE_DIR", home.base()).env("OSM_TMP_DIR", home.base()).current_dir(home.base());
    command
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// Has weft's manager bring up what is behind a server.
fn bring_up(home: &Home, server: &str) -> String {
    let done = home.weft(&["sm", "--ibsim", server, "--once"]);
    done.succeeds();
    assert!(done.stdout.starts_with("SUBNET UP"), "{}", done.stdout);
    done.stdout
}

#[test]
fn weft_sm_brings_a_laboratory_up_and_stock_tools_read_it() {
    let home = Home::new();
    let server = served(&home);
    let up = bring_up(&home, &server);
    assert!(up.contains("4 switches, 4 hosts, 8 LIDs"), "{up}");
    home.weft(&["check"]).succeeds();
    let walked = output(&mut stock(&home, &server, "ibnetdiscover"));
    let walked = home.write("walked.topo", &walked);
    let tree = home.small_tree();
    home.weft(&["topo", "diff", common::text(&walked), common::text(&tree)]).succeeds();
    let host =
        output(stock(&home, &server, "smpquery").env("SIM_HOST", "host-3").args(["-D", "nodedesc", "0"]));
    assert!(host.contains("host-3"), "{host}");
    let (names, pids): (Vec<_>, Vec<_>) = home.processes().into_iter().unzip();
    assert!(names.contains(&"ibsim".to_owned()), "{names:?}");
    home.weft(&["down"]).succeeds();
    assert!(pids.into_iter().all(|pid| !common::runs(pid)) && home.is_empty());
}

#[test]
fn opensm_manages_a_laboratory_that_weft_has_set_up() {
    let home = Home::new();
    let server = served(&home);
    bring_up(&home, &server);
    let log = home.base().join("opensm.log");
    let mut opensm = stock(&home, &server, "opensm");
    output(opensm.args(["-o", "-R", "minhop", "-f"]).arg(&log));
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("SUBNET UP") && !log.contains("ERR"), "{log}");
    home.weft(&["check"]).succeeds();
}

#[test]
fn a_shell_has_a_server_for_as_long_as_its_program_lives() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", "--no-sm", "--pack", "all", common::text(&tree)]).succeeds();
    let said = home.weft(&["shell", "--ibsim", "--at", "host-2", "--", "smpquery", "-D", "nodedesc", "0"]);
    assert!(said.succeeds().stdout.contains("host-2"), "{}", said.stdout);
    let locks = home.lab("default").join("locks");
    let server = std::fs::read_dir(locks).unwrap().map(|lock| lock.unwrap().path());
    let server = server.into_iter().find(|lock| common::text(lock).contains("ibsim-")).unwrap();
    wait_until("the server ends with its program", || weft_process::lock::holder(&server).unwrap().is_none());
}

#[test]
fn the_udp_form() {
    let home = Home::new();
    let tree = home.small_tree();
    // Eleven ports in a row that are free now; another program may take one of them in between.
    let free =
        |port: &u16| (*port..port + 11).all(|port| std::net::UdpSocket::bind(("127.0.0.1", port)).is_ok());
    let first = 30_000 + (std::process::id() % 1000) as u16 * 11;
    let port = (first..60_000).step_by(11).find(free).unwrap().to_string();
    let address = format!("127.0.0.1:{port}");
    home.weft(&["up", "--no-sm", "--pack", "all", "--ibsim-udp", &address, common::text(&tree)]).succeeds();
    let mut query = stock(&home, "unused", "smpquery");
    query.env("IBSIM_SERVER_NAME", "127.0.0.1").env("IBSIM_SERVER_PORT", &port).env("SIM_HOST", "host-1");
    let said = output(query.args(["-D", "nodedesc", "0"]));
    assert!(said.contains("host-1"), "{said}");
    bring_up(&home, &format!("udp:{address}"));
    home.weft(&["check"]).succeeds();
}

#[test]
fn slots_of_programs_that_were_killed_are_free_again() {
    let home = Home::new();
    let server = served(&home);
    for round in 0..30 {
        let mut command = home.command(&["sm", "--ibsim", &server, "--at", "host-0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let socket = Address::named(&server, &format!("in{}", child.id()));
        wait_until("it is attached", || socket.is_taken());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!socket.is_taken(), "round {round}");
    }
    let programs: Vec<Program> =
        (0..10).map(|_| Program::connect(&server, "host-1", PATIENCE).unwrap()).collect();
    let eleventh = Program::connect(&server, "host-1", PATIENCE);
    assert!(matches!(eleventh, Err(ProgramError::Refused(_))), "{eleventh:?}");
    drop(programs);
    assert_eq!(Program::connect(&server, "", PATIENCE).unwrap().node_info().num_ports, 4);
    let unknown = Program::connect(&server, "nobody", PATIENCE);
    assert!(matches!(unknown, Err(ProgramError::Refused(_))), "{unknown:?}");
}

#[test]
fn the_server_answers_as_every_process_does() {
    let home = Home::new();
    let server = served(&home);
    let ask = |request: &str| home.json(&["ask", "ibsim", request]);
    let hello = ask("hello");
    assert_eq!(
        (&hello["kind"], &hello["name"], &hello["lab"]),
        (&"ibsim".into(), &"ibsim".into(), &"default".into())
    );
    assert_eq!(ask("health")["condition"], "ready");
    let program = Program::connect(&server, "host-1", PATIENCE).unwrap();
    let metrics = ask("metrics")["text"].as_str().unwrap().to_owned();
    assert!(metrics.contains("\nweft_ibsim_programs 1\n"), "{metrics}");
    assert!(metrics.contains("\nweft_ibsim_events_total{event=\"connected\"} 1\n"), "{metrics}");
    home.weft(&["ask", "ibsim", "sm-status"]).fails(1, "not-here");
    let mut events = home.events();
    let attached = events.wait_for("the program", |event| event["event"] == "program-attached");
    assert_eq!((&attached["source"], &attached["area"]), (&"ibsim".into(), &"lab".into()), "{attached}");
    assert_eq!((&attached["slot"], &attached["pid"]), (&0.into(), &std::process::id().into()), "{attached}");
    drop(program);
    // A program that is killed does not say that it goes.
    let mut command = home.command(&["sm", "--ibsim", &server, "--at", "host-0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let own = child.id();
    let attached = events
        .wait_for("the second program", |event| event["event"] == "program-attached" && event["pid"] == own);
    child.kill().unwrap();
    child.wait().unwrap();
    events
        .wait_for("its death", |event| event["event"] == "program-died" && event["slot"] == attached["slot"]);
    // The hub has met it as any other, and `ps` lists it so.
    let listed = home.json(&["ask", "hub", "lab-status"]);
    let line = listed["processes"].as_array().unwrap().iter().find(|line| line["name"] == "ibsim").unwrap();
    assert_eq!((&line["state"], &line["kind"]), (&"ready".into(), &"ibsim".into()), "{line}");
    let (_, pid) = home.processes().into_iter().find(|(name, _)| name == "ibsim").unwrap();
    assert_eq!(line["pid"], pid);
    common::signal(pid, rustix::process::Signal::TERM);
    wait_until("it stops in order", || {
        let listed = home.json(&["ps", "--json"]);
        let process =
            listed.as_array().unwrap().iter().find(|process| process["process"] == "ibsim").unwrap();
        process["state"] == "dead" && process["last_end"]["how"] == "in-order"
    });
}

#[test]
fn a_request_that_nobody_answers_comes_back() {
    let home = Home::new();
    let server = served(&home);
    bring_up(&home, &server);
    let mut program = Program::connect(&server, "host-0", PATIENCE).unwrap();
    let mut mad = Mad::default();
    // SubnGet(NodeInfo) to a LID that no port has.
    mad.0[..4].copy_from_slice(&[1, 1, 1, 1]);
    (mad.0[15], mad.0[17]) = (9, 0x11);
    let request = AddressedMad::smp(Lid(0x4000), mad);
    program.send(&request).unwrap();
    assert_eq!(program.recv(PATIENCE).unwrap(), Some(Received::Unanswered(request)));
}

/// A process that ends with its test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn weft_sm_brings_up_a_fabric_emulated_by_ibsim() {
    let home = Home::new();
    let tree = home.small_tree();
    let server = name();
    let mut ibsim = Command::new("ibsim");
    ibsim.args(["-s", "-n"]).arg(&tree).env("IBSIM_SOCKNAME", &server);
    let ibsim = ibsim.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _ends = Ends(ibsim);
    let control = Address::named(&server, "ctl");
    wait_until("ibsim serves", || control.is_taken());
    std::fs::create_dir_all(home.base()).unwrap();
    let up = bring_up(&home, &server);
    assert!(up.contains("4 switches, 4 hosts, 8 LIDs, 16 ports active"), "{up}");
    // LIDs go in the order of GUIDs; every host finds its way to every other by the tables that ibsim holds.
    let hosts = output(&mut stock(&home, &server, "ibhosts"));
    assert_eq!(hosts.lines().filter(|line| line.contains("host-")).count(), 4, "{hosts}");
    let lids: Vec<String> = (0..4)
        .map(|host| {
            let mut query = stock(&home, &server, "smpquery");
            query.env("SIM_HOST", format!("H-0200484300000{host}00")).args(["-D", "portinfo", "0", "1"]);
            let said = output(&mut query);
            assert!(said.contains("Active"), "{said}");
            let lid = said.lines().find_map(|line| line.strip_prefix("Lid:")).unwrap();
            lid.trim_start_matches('.').to_owned()
        })
        .collect();
    for (from, to) in
        lids.iter().flat_map(|from| lids.iter().map(move |to| (from, to))).filter(|(a, b)| a != b)
    {
        let path = output(stock(&home, &server, "ibtracert").args([from, to]));
        assert!(path.contains("To ca") || path.contains("To {"), "{path}");
    }
}
