//! weft's stand-in for libibumad, under programs that no one changed and under a client that does what they do not.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weft_judges::{Lab, first_host, free_port, output_of, weft_program, x5};
use weft_topology::generate::{self, GenerateOptions};
use weft_topology::{Fabric, Node};

/// Nothing here takes longer, or it hangs.
const TIME_MAX: Duration = Duration::from_secs(60);

fn tree() -> Fabric {
    generate::xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap()
}

fn host(fabric: &Fabric) -> &Node {
    first_host(fabric).1
}

/// `tests/clients/umad.c`, linked against Debian's library.
fn client(folder: &Path) -> PathBuf {
    let program = folder.join("umad-client");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/umad.c");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&program).arg(source);
    output_of(cc.arg("-l:libibumad.so.3"));
    program
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs one mode of the client at the first host.
fn run(lab: &Lab, fabric: &Fabric, program: &Path, arguments: &[&str]) -> String {
    output_of(lab.command(text(program), host(fabric), &[]).args(arguments))
}

/// A program that goes on until it is asked to stop.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Reads standard output up to a line that contains this.
    fn wait_for_line(&mut self, wanted: &str) {
        let mut output = BufReader::new(self.0.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the output ended without `{wanted}`");
        }
        // Whatever else it says must not block it.
        std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for what no descriptor tells.
#[track_caller]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIME_MAX;
    while !done() {
        assert!(Instant::now() < deadline, "it never happened: {what}");
        std::thread::yield_now();
    }
}

fn opensm(lab: &Lab, fabric: &Fabric, options: &[&str]) -> Command {
    let mut command = lab.command("opensm", host(fabric), &[]);
    command.args(["-R", "minhop", "-f"]).arg(lab.folder().join("opensm.log")).args(options);
    command
}

/// What ibstat says of the first host. OpenSM's own output and log come late: it writes them in blocks.
fn ibstat(lab: &Lab, fabric: &Fabric) -> String {
    output_of(&mut lab.command("ibstat", host(fabric), &[]))
}

fn is_sm(lab: &Lab, fabric: &Fabric) -> bool {
    let told = ibstat(lab, fabric);
    let mask = told.lines().find_map(|line| line.trim().strip_prefix("Capability mask: 0x")).unwrap();
    u32::from_str_radix(mask, 16).unwrap() & 2 != 0
}

/// Starts OpenSM and waits until it has brought the host's port up.
fn managed(lab: &Lab, fabric: &Fabric) -> Running {
    let running = Running::start(&mut opensm(lab, fabric, &[]));
    wait_until("the port is active", || is_sm(lab, fabric) && ibstat(lab, fabric).contains("State: Active"));
    running
}

/// The functions that a library exports.
fn exported(library: &Path) -> BTreeSet<String> {
    let listed = output_of(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let function = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()? == "T").then(|| words.next())?.map(str::to_owned)
    };
    let plain = |name: String| name.split('@').next().unwrap_or_default().to_owned();
    listed.lines().filter_map(function).map(plain).filter(|name| name.starts_with("umad_")).collect()
}

#[test]
fn every_function_of_libibumad_is_there() {
    let folders = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let debians = folders.map(|folder| folder.path().join("libibumad.so.3")).find(|path| path.exists());
    let theirs = exported(&debians.expect("libibumad must be installed: apt-get install libibumad3"));
    let ours = exported(&weft_program().with_file_name("libweft_umad.so"));
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 39);
}

#[test]
fn names_and_buffers_are_those_of_libibumad() {
    let fabric = tree();
    let lab = Lab::start(&fabric, &["--no-sm", "--pack", "all"]);
    let program = client(lab.folder());
    for mode in ["texts", "buffers"] {
        let theirs = output_of(Command::new(&program).arg(mode));
        assert!(run(&lab, &fabric, &program, &[mode]) == theirs, "{mode} differ");
    }
}

/// Each device a process of its own, so the answers cross processes.
#[test]
fn the_agent_behaves_like_the_kernels_umad() {
    let fabric = tree();
    let lab = Lab::start(&fabric, &["--no-sm"]);
    let program = client(lab.folder());
    for mode in ["basics", "timed-out", "forked", "cancelled"] {
        run(&lab, &fabric, &program, &[mode]);
    }
}

#[test]
fn opensm_brings_a_tree_up_and_goes_when_it_is_told() {
    let fabric = tree();
    let lab = Lab::start(&fabric, &["--no-sm"]);
    assert!(!is_sm(&lab, &fabric));
    for signal in [Signal::INT, Signal::TERM] {
        let mut running = managed(&lab, &fabric);
        // The second one finds the port active, and is not the master before it has swept.
        wait_until("sminfo finds the master", || {
            let said = lab.command("sminfo", host(&fabric), &[]).output().unwrap();
            String::from_utf8_lossy(&said.stdout).contains("SMINFO_MASTER")
        });
        running.signal(signal);
        wait_until("OpenSM goes", || running.0.try_wait().unwrap().is_some());
        let status = running.0.wait().unwrap();
        assert!(status.success(), "{signal:?}: {status}");
        wait_until("who is gone manages nothing", || !is_sm(&lab, &fabric));
    }
    output_of(&mut lab.weft(&["check"]));

    let running = managed(&lab, &fabric);
    let program = client(lab.folder());
    let lid = lid_of_sm(&lab, &fabric);
    assert!(run(&lab, &fabric, &program, &["long-answer", &lid]).ends_with("bytes\n"));
    let mut threads = lab.command(text(&program), host(&fabric), &[]);
    output_of(threads.arg("threads").env("OWN_LID", &lid));
    running.signal(Signal::KILL);
    wait_until("the port is no subnet manager's any more", || !is_sm(&lab, &fabric));
}

/// What ibsendtrap would send; Debian does not package it. Both subnet managers repress every trap of it.
#[test]
fn traps_that_a_program_sends_are_repressed() {
    let fabric = tree();
    for options in [&["--pack", "all"][..], &["--pack", "all", "--no-sm"]] {
        let lab = Lab::start(&fabric, options);
        let running = options.contains(&"--no-sm").then(|| managed(&lab, &fabric));
        let program = client(lab.folder());
        let sender = fabric.hosts().last().unwrap().1;
        // `LID start 0x3 end 0x3`
        let own = output_of(lab.command("ibaddr", sender, &[]).arg("-L"));
        let own = own.split_whitespace().nth(2).unwrap();
        let lid = lid_of_sm(&lab, &fabric);
        output_of(lab.command(text(&program), sender, &[]).args(["traps", &lid, own]));
        drop(running);
    }
}

fn lid_of_sm(lab: &Lab, fabric: &Fabric) -> String {
    let info = output_of(&mut lab.command("sminfo", host(fabric), &[]));
    info.split_whitespace().skip_while(|word| *word != "lid").nth(1).unwrap().to_owned()
}

/// It says that it is a subnet manager before its first sweep, and gets the signal during that.
#[test]
fn opensm_goes_in_the_middle_of_a_sweep() {
    let fabric = x5();
    let lab = Lab::start(&fabric, &["--no-sm", "--pack", "all"]);
    for signal in [Signal::INT, Signal::TERM, Signal::INT, Signal::TERM] {
        let mut running = Running::start(&mut opensm(&lab, &fabric, &[]));
        wait_until("OpenSM says that it is one", || is_sm(&lab, &fabric));
        running.signal(signal);
        wait_until("OpenSM goes", || running.0.try_wait().unwrap().is_some());
        let status = running.0.wait().unwrap();
        assert!(status.success(), "{signal:?}: {status}");
        wait_until("the port is no subnet manager's", || !is_sm(&lab, &fabric));
    }
}

#[test]
fn opensm_and_the_tools_read_the_x5_as_it_is_cabled() {
    let fabric = x5();
    let lab = Lab::start(&fabric, &["--no-sm", "--pack", "all"]);
    output_of(&mut opensm(&lab, &fabric, &["-o"]));
    let log = std::fs::read_to_string(lab.folder().join("opensm.log")).unwrap();
    assert!(log.contains("SUBNET UP") && !log.contains(" ERR "), "{log}");
    output_of(&mut lab.weft(&["check"]));
    let read = output_of(&mut lab.command("ibnetdiscover", host(&fabric), &[]));
    let read = weft_topology::parse("ibnetdiscover", &read).unwrap();
    assert_eq!(weft_topology::diff(&fabric, &read), Vec::new());
    let told = ibstat(&lab, &fabric);
    for line in ["CA 'weft_0'", "Number of ports: 1", "State: Active", "Physical state: LinkUp"] {
        assert!(told.contains(line), "{told}");
    }
    assert!(told.contains(&format!("Node GUID: {}", host(&fabric).guid)), "{told}");
}

/// A switch has one port for programs, its port 0.
#[test]
fn tools_attach_at_a_switch() {
    let fabric = tree();
    let lab = Lab::start(&fabric, &["--no-sm"]);
    output_of(&mut opensm(&lab, &fabric, &["-o"]));
    let switch = fabric.switches().next().unwrap().1;
    let told = output_of(&mut lab.command("ibstat", switch, &[]));
    assert!(told.contains("Port 0:") && told.contains(&format!("Node GUID: {}", switch.guid)), "{told}");
    let read = output_of(&mut lab.command("ibnetdiscover", switch, &[]));
    let read = weft_topology::parse("ibnetdiscover", &read).unwrap();
    assert_eq!(weft_topology::diff(&fabric, &read), Vec::new());
}

/// Whoever dies leaves nothing behind.
#[test]
fn after_a_hundred_clients_were_killed_the_next_one_works() {
    let fabric = tree();
    let lab = Lab::start(&fabric, &["--no-sm"]);
    let program = client(lab.folder());
    for round in 0..2 {
        let mut clients: Vec<Running> = (0..50)
            .map(|number| {
                let mut command = lab.command(text(&program), host(&fabric), &[]);
                command.arg("outstanding");
                if number == 0 {
                    command.env("TRAPS", "1");
                }
                Running::start(&mut command)
            })
            .collect();
        clients.iter_mut().for_each(|client| client.wait_for_line("ready"));
        clients.iter().for_each(|client| client.signal(Signal::KILL));
        drop(clients);
        // Even what only one may register for is free again.
        wait_until(&format!("round {round}: the traps are free again"), || {
            let mut command = lab.command(text(&program), host(&fabric), &[]);
            command.arg("basics").stderr(Stdio::null()).status().unwrap().success()
        });
        let status = output_of(&mut lab.weft(&["ps", "--json"]));
        assert!(!status.contains("\"pid\":0"), "{status}");
    }
}

/// Remote tools, by the hub's door: they get the answers of local ones, long ones included.
#[test]
fn tools_run_elsewhere_by_the_hubs_door() {
    let fabric = x5();
    let port = free_port().to_string();
    let lab = Lab::start(&fabric, &["--pack", "all", "--hub-door", &port]);
    let far = |role: &str, options: &[&str], program: &[&str]| {
        let identity = lab.folder().join(format!("w/default/identities/{role}.pem"));
        let mut command = Command::new(weft_program());
        command.args(["--at", &format!("127.0.0.1:{port}"), "--identity", text(&identity), "shell"]);
        command.args(["--at", &host(&fabric).guid.to_string()]).args(options).arg("--").args(program);
        command.env("WEFT_HOME", lab.folder().join("elsewhere")).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    };
    let read = output_of(&mut far("operator", &[], &["ibnetdiscover"]));
    let read = weft_topology::parse("ibnetdiscover", &read).unwrap();
    assert_eq!(weft_topology::diff(&fabric, &read), Vec::new());
    let lid = lid_of_sm(&lab, &fabric);
    // It counts the manager's doings, so it never says the same twice.
    assert!(output_of(&mut far("operator", &[], &["sminfo"])).contains("SMINFO_MASTER"));
    // All PathRecords of the port are some kilobytes by RMPP, all nodes of the subnet more than a datagram takes.
    for line in [&["ibstat"][..], &["saquery", "-N"], &["saquery", "-p"], &["smpquery", "nodedesc", &lid]] {
        let mut near = lab.command(line[0], host(&fabric), &[]);
        assert_eq!(output_of(&mut far("operator", &[], line)), output_of(near.args(&line[1..])), "{line:?}");
    }
    let program = client(lab.folder());
    for mode in ["timed-out", "forked", "cancelled"] {
        output_of(&mut far("operator", &[], &[text(&program), mode]));
    }
    assert!(
        output_of(&mut far("operator", &[], &[text(&program), "long-answer", &lid])).ends_with("bytes\n")
    );
    let ended = |command: &mut Command| command.output().unwrap().status.code();
    assert_eq!(ended(&mut far("operator", &[], &["sh", "-c", "exit 7"])), Some(7));
    assert_eq!(ended(&mut far("operator", &[], &["sh", "-c", "kill -9 $$"])), Some(128 + 9));
    let refused = far("operator", &["--ibsim"], &["true"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("leave out --ibsim"), "{refused:?}");
    // A viewer looks and sends nothing.
    let refused = far("viewer", &[], &["ibnetdiscover"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("it takes an operator's identity"),
        "{refused:?}"
    );
    let left: Vec<_> = std::fs::read_dir(lab.folder().join("elsewhere")).unwrap().flatten().collect();
    assert!(left.iter().all(|left| left.file_name().to_string_lossy().starts_with('.')), "{left:?}");
}

/// A virtual machine moves away with its port open in a program: to the program its adapter has been pulled out.
#[test]
fn a_machine_that_leaves_ends_the_open_ports_of_its_programs() {
    let fabric = tree();
    let lab = Lab::start(&fabric, &["--vfs", "1", "--lids", "dynamic"]);
    let program = client(lab.folder());
    output_of(&mut lab.weft(&["vm", "create", "web1", "--host", "host-0"]));
    let inside = || lab.weft(&["shell", "--at", "vm:web1", "--", text(&program)]);
    output_of(inside().arg("basics"));
    let mut running = Running::start(inside().arg("leaves"));
    running.wait_for_line("ready");
    output_of(&mut lab.weft(&["vm", "migrate", "web1", "host-3"]));
    assert!(running.0.wait().unwrap().success(), "umad_recv says EIO, and another umad_open_port ENODEV");
    // Programs that begin now find it at its new place.
    output_of(inside().arg("basics"));
}
