//! What comes in through a laboratory's doors and its surroundings: strangers, junk, tight limits.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod common;

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{Home, Running, runs, text};
use rustix::process::Signal;
use serde_json::Value;

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
fn with_few_descriptors_a_laboratory_may_not_come_up_but_always_goes_down() {
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
fn that_ibsims_protocol_is_open_to_everybody_is_said_where_it_is_offered() {
    let home = Home::new();
    let file = home.small_tree();
    let name = format!("weft-doors-{}", std::process::id());
    let up = home.weft(&["up", text(&file), "--no-sm", "--ibsim-socket", &name]);
    up.succeeds().fails(0, "warning: every user of this machine can manage this fabric");
    let help = home.weft(&["up", "--help"]).succeeds().stdout.replace('\n', " ");
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let udp = help.split_once("--ibsim-udp").unwrap().1;
    assert!(udp.contains("can then manage the fabric"), "{udp}");
}
