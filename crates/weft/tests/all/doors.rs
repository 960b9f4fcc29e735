//! Input through a laboratory's doors and surroundings: strangers, junk, tight limits.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{Home, Running, runs, text};
use rustix::process::Signal;
use serde_json::Value;
use weft_wire::{Guid, PortNum};

use crate::common;

/// No answer takes longer.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

#[test]
fn junk_on_the_hubs_socket_does_not_end_the_laboratory() {
    let home = Home::new();
    let file = home.small_tree();
    let mut up = Running::start(&home, &["up", text(&file), "--no-sm", "--foreground"]);
    up.wait_for_line("links up");
    let processes = home.processes();
    let agent = &processes[0].0;
    let lies = [
        format!(
            "{{\"v\":1,\"id\":2,\"event\":{{\"source\":\"{agent}\",\"event\":\"process-failed\",\"reason\":\"a lie\"}}}}\n"
        ),
        "{\"v\":1,\"id\":1,\"answer\":{\"type\":\"done\"}}\n".to_owned(),
        "junk\n".to_owned(),
        "x".repeat(100_000),
    ];
    for bytes in lies.iter().map(String::as_bytes).chain([&[0, 0xff, b'\n'][..], b""]) {
        let mut stream = UnixStream::connect(home.lab("default").join("control/hub")).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(!answer.contains("\"answer\""), "{answer}");
    }
    assert!(up.is_running(), "`up` has ended");
    assert_eq!(home.processes(), processes);
    assert!(processes.iter().all(|(_, pid)| runs(*pid)), "{processes:?}");
    up.signal(Signal::INT);
    assert_eq!(up.end().code(), Some(0));
}

/// `weft` with this limit of open files.
fn limited(home: &Home, limit: u32, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_weft")]).args(arguments);
    command.env("WEFT_HOME", home.base()).env("NO_COLOR", "1").stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn with_few_descriptors_down_works_even_if_up_fails() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    let processes = home.processes();
    let down = limited(&home, 12, &["down"]);
    assert!(down.status.success() && home.is_empty(), "{}", String::from_utf8_lossy(&down.stderr));
    assert!(processes.iter().all(|(_, pid)| !runs(*pid)), "{processes:?}");
    let mut failed = 0;
    for limit in [10, 12, 16, 20, 24, 28] {
        let up = limited(&home, limit, &["up", text(&file), "--no-sm"]);
        let said = String::from_utf8_lossy(&up.stderr);
        failed += u32::from(!up.status.success());
        assert!(!said.contains("ports in a row"), "{limit}: ports are not what is lacking: {said}");
        let names_the_limit = said.contains(&format!("raise the limit of {limit} open files"));
        assert!(up.status.success() || names_the_limit, "{limit}: {said}");
        assert!(up.status.success() || home.is_empty(), "{limit}: {said}");
        let down = limited(&home, limit, &["down", "--all"]);
        assert!(
            down.status.success() && home.is_empty(),
            "{limit}: {}",
            String::from_utf8_lossy(&down.stderr)
        );
    }
    assert!(failed > 0, "every limit sufficed");
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_that_others_can_change_is_refused() {
    let home = Home::new();
    let file = home.small_tree();
    std::fs::create_dir(home.base()).unwrap();
    for mode in [0o777, 0o1777, 0o770] {
        set_mode(&home.base(), mode);
        for verb in [&["up", text(&file), "--no-sm"][..], &["ps"], &["down", "--all"]] {
            home.weft(verb)
                .fails(1, "other users can change the folder")
                .fails(1, "hint: close it with `chmod 700");
        }
    }
    set_mode(&home.base(), 0o700);
    home.weft(&["up", text(&file), "--no-sm"]).succeeds();
    set_mode(&home.lab("default"), 0o777);
    for verb in [&["ps"][..], &["up", text(&file)], &["down"]] {
        home.weft(verb).fails(1, "other users can change the folder");
    }
    set_mode(&home.lab("default"), 0o700);
    home.weft(&["down"]).succeeds();
    assert!(home.is_empty());
}

#[test]
fn a_symbolic_link_is_no_folder_for_laboratories() {
    let home = Home::new();
    let file = home.small_tree();
    let elsewhere = file.with_file_name("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    set_mode(&elsewhere, 0o700);
    symlink(&elsewhere, home.base()).unwrap();
    for verb in [&["up", text(&file), "--no-sm"][..], &["ps"], &["down", "--all"]] {
        home.weft(verb).fails(1, "is a symbolic link").fails(1, "hint: ");
    }
    std::fs::remove_file(home.base()).unwrap();
    std::fs::create_dir(home.base()).unwrap();
    symlink(&elsewhere, home.lab("x")).unwrap();
    for verb in [&["up", text(&file), "--no-sm"][..], &["ps"], &["down"]] {
        home.weft(&[verb, &["--lab", "x"]].concat()).fails(1, "is a symbolic link");
    }
    assert!(std::fs::read_dir(&elsewhere).unwrap().next().is_none(), "something was written behind the link");
}

#[test]
fn a_file_without_end_is_refused() {
    let home = Home::new();
    let file = home.small_tree();
    home.write("endless.topo", "include \"/dev/zero\"\n");
    for arguments in [
        &["topo", "check", "/dev/zero"][..],
        &["topo", "check", "endless.topo"],
        &["run", "/dev/zero"],
        &["up", text(&file), "--guid2lid", "/dev/zero"],
        &["up", text(&file), "--roots", "/dev/zero"],
    ] {
        home.weft(arguments).fails(2, "longer than the 256 MiB");
    }
}

#[test]
fn a_manager_that_hangs_is_told_from_one_that_is_gone() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file)]).succeeds();
    let status = || home.json(&["status", "--json"]);
    let now = status();
    assert_eq!((&now["running"], &now["sm_stale"]), (&true.into(), &false.into()));
    assert_eq!(now["sm"]["last"]["complete"], true, "{now}");
    let (_, sm) = home.processes().into_iter().find(|(name, _)| name == "sm").unwrap();
    common::signal(sm, Signal::STOP);
    let hung = status();
    assert_eq!(
        (&hung["running"], &hung["sm_stale"], &hung["sm"]),
        (&true.into(), &true.into(), &Value::Null)
    );
    let shown = home.weft(&["status"]).succeeds().stdout.clone();
    assert!(shown.contains("the subnet manager is running and does not answer (no answer within"), "{shown}");
    common::signal(sm, Signal::CONT);
    assert_eq!(status()["sm_stale"], false);
    home.weft(&["fault", "kill", "sm"]).succeeds();
    let gone = status();
    assert_eq!((&gone["running"], &gone["sm"]), (&false.into(), &Value::Null));
    // What the manager wrote is in force still.
    home.weft(&["check"]).succeeds();
}

#[test]
fn anybody_who_reaches_the_socket_can_ask_in_json() {
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file), "--pm"]).succeeds();
    for (process, request, expected) in [
        ("sm", "sm-status", "\"subnet_up\":true"),
        ("pm", "pm-status", "\"attached\":true"),
        ("sm", "hello", "\"name\":\"sm\""),
        ("sm", "pm-status", "\"code\":\"not-here\""),
        ("pm", "health", "\"condition\":\"ready\""),
        ("pm", "log-filter\",\"unknown\":\"field", "\"filter\":\"info\""),
        ("sm", "set-log-filter\",\"filter\":\"warn,weft_sm=debug", "\"answer\":{\"type\":\"done\"}"),
        ("sm", "log-filter", "\"filter\":\"warn,weft_sm=debug\""),
        ("sm", "set-log-filter\",\"filter\":\"weft=loud", "\"code\":\"invalid-request\""),
    ] {
        let socket = home.lab("default").join("control").join(process);
        assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        let mut stream = UnixStream::connect(&socket).unwrap();
        writeln!(stream, "{{\"v\":1,\"id\":1,\"request\":{{\"type\":\"{request}\"}}}}").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("{\"v\":1,\"id\":1,") && answer.contains(expected), "{answer}");
    }
    home.weft(&["down"]).succeeds();
    assert!(home.is_empty());
}

#[test]
fn up_and_help_warn_that_the_ibsim_protocol_is_open() {
    let home = Home::new();
    let file = home.small_tree();
    let name = format!("weft-doors-{}", std::process::id());
    let up = home.weft(&["up", text(&file), "--no-sm", "--ibsim-socket", &name]);
    up.succeeds().fails(0, "warning: every user of this machine can manage this fabric");
    let help = home.weft(&["up", "--help-all"]).succeeds().stdout.replace('\n', " ");
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let udp = help.split_once("--ibsim-udp").unwrap().1;
    assert!(udp.contains("can then manage the fabric"), "{udp}");
}

/// What a process of a user gets from a socket that it may open: whether anything answers it. `SO_PEERCRED` names the user of the thread
/// that connects, so that a thread is enough.
fn is_answered(uid: u32, ask: impl FnOnce() -> bool + Send + 'static) -> bool {
    let asks = move || {
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(uid)).unwrap();
        ask()
    };
    std::thread::spawn(asks).join().unwrap()
}

fn answers_requests(path: &Path) -> bool {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // It may have been hung up on by now.
    let _ = stream.write_all(b"{\"v\":1,\"id\":7,\"request\":{\"type\":\"health\"}}\n");
    let mut first = [0; 1];
    matches!(stream.read(&mut first), Ok(1))
}

fn takes_programs(path: &Path, guid: Guid) -> bool {
    let Ok(mut client) = weft_umad::Client::connect(path) else { return false };
    client.attach(guid, PortNum(1), vec![], PATIENCE).is_ok()
}

/// The `.umad` socket, whose messages are packets: whether a question is answered.
fn takes_libibumad(path: &Path, node: Guid) -> bool {
    use rustix::net::sockopt::{Timeout, set_socket_timeout};
    use weft_umad::user_mad::{Request, connect, question};
    let socket = connect(path).unwrap();
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).unwrap();
    question(socket, &Request::Ca { node }).is_ok()
}

/// The sockets of a laboratory in a folder that others can enter, as a volume of containers may be: the kernel tells who connects, and
/// whoever is neither the owner nor root is hung up on.
#[test]
fn a_stranger_on_a_mounted_socket_is_refused() {
    if !rustix::process::geteuid().is_root() {
        // Only root can be somebody else.
        return;
    }
    let home = Home::new();
    let file = home.small_tree();
    home.weft(&["up", text(&file)]).succeeds();
    let lab = home.lab("default");
    let host = home.json(&["ps", "--json"]);
    let host = host.as_array().unwrap().iter().find(|process| process["kind"] == "hca").unwrap();
    let (agent, guid) = (host["process"].as_str().unwrap(), host["devices"][0]["guid"].as_str().unwrap());
    let guid = Guid(u64::from_str_radix(guid.trim_start_matches("0x"), 16).unwrap());
    let named = |folder: &str, name: &str| lab.join(folder).join(name);
    let [mads, umad] = [agent.to_owned(), format!("{agent}.umad")].map(|name| named("sockets", &name));
    let control = [agent, "sm", "hub"].map(|name| named("control", name));
    let folders = [home.base().parent().unwrap().to_owned(), home.base(), lab.clone()];
    for folder in folders.iter().chain(&[lab.join("sockets"), lab.join("control")]) {
        set_mode(folder, 0o755);
    }
    for socket in control.iter().chain([&mads, &umad]) {
        set_mode(socket, 0o777);
    }
    for (uid, is_welcome) in [(0, true), (65_534, false), (1, false)] {
        for path in control.clone() {
            let name = path.clone();
            assert_eq!(is_answered(uid, move || answers_requests(&path)), is_welcome, "{uid} at {name:?}");
        }
        let (mads, umad) = (mads.clone(), umad.clone());
        assert_eq!(is_answered(uid, move || takes_programs(&mads, guid)), is_welcome, "{uid} attaches");
        assert_eq!(is_answered(uid, move || takes_libibumad(&umad, guid)), is_welcome, "{uid} is libibumad");
    }
    folders.iter().for_each(|folder| set_mode(folder, 0o700));
    home.weft(&["check"]).succeeds();
}
