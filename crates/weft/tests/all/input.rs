//! Invalid input: one clear error, the right exit code, nothing started.

use std::net::UdpSocket;

use common::{Home, text};

use crate::common;

const GOOD: &str = r#"vendid=0x2c9
devid=0x1
sysimgguid=0x10
switchguid=0x10(10)
Switch 2 "S-10" # "leaf" base port 0 lid 1 lmc 0
[1] "H-20"[1] # "host a" lid 2 4xQDR
[2] "H-30"[1] # "host b" lid 3 4xQDR

caguid=0x20
Ca 1 "H-20" # "host a"
[1](21) "S-10"[1] # lid 2 lmc 0 "leaf" lid 1 4xQDR

caguid=0x30
Ca 1 "H-30" # "host b"
[1](31) "S-10"[2] # lid 3 lmc 0 "leaf" lid 1 4xQDR
"#;

#[track_caller]
fn refused(topology: &str, place: &str, says: &str) {
    let home = Home::new();
    home.write("x.topo", topology);
    let done = home.weft(&["up", "x.topo"]);
    done.fails(2, &format!("error: x.topo:{place}: ")).fails(2, says);
    assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);
    assert_eq!(done.stdout, "");
    assert!(home.is_empty(), "something was started");
}

#[test]
fn an_unknown_keyword() {
    refused(&GOOD.replace("Ca 1 \"H-30\"", "Cat 1 \"H-30\""), "14:1", "`Cat`");
}

#[test]
fn a_duplicate_guid() {
    refused(&GOOD.replace("caguid=0x30", "caguid=0x20"), "14:6", "0x0000000000000020");
}

#[test]
fn a_port_out_of_range() {
    refused(&GOOD.replace("[2] \"H-30\"", "[3] \"H-30\""), "7:1", "port 3 is out of range for `S-10`");
}

#[test]
fn two_ends_that_disagree() {
    refused(&GOOD.replace("[1](31) \"S-10\"[2]", "[1](31) \"S-10\"[1]"), "7:5", "disagree");
}

#[test]
fn a_port_cabled_to_itself() {
    refused(&GOOD.replace("[2] \"H-30\"[1]", "[2] \"S-10\"[2]"), "7:5", "cabled to itself");
}

#[test]
fn a_truncated_file() {
    let end = GOOD.rfind("\"S-10\"[2]").unwrap() + 4;
    refused(&GOOD[..end], "15:9", "\"S-1");
}

#[test]
fn an_empty_file() {
    refused("", "1:1", "no node");
}

#[test]
fn bytes_that_are_no_text() {
    let home = Home::new();
    std::fs::write(home.write("x.topo", ""), [b'#', 0xff, 0xfe]).unwrap();
    home.weft(&["topo", "check", "x.topo"]).fails(2, "error: x.topo:1:2: ");
}

#[test]
fn a_missing_file() {
    let home = Home::new();
    home.weft(&["up", "nowhere.topo"]).fails(2, "cannot read nowhere.topo: No such file").fails(2, "hint:");
    assert!(home.is_empty());
}

#[test]
fn a_bad_option() {
    let home = Home::new();
    for arguments in [
        &["up"][..],
        &["up", "x", "--pack", "0"],
        &["nonsense"],
        &["up", "x", "--retries", "-1"],
        &["check", "--sample", "0"],
    ] {
        home.weft(arguments).fails(2, "error:");
    }
}

#[test]
fn a_bad_file_of_lids() {
    let home = Home::new();
    home.write("x.topo", GOOD);
    home.write("lids", "0x20 0x1 0x1\n0x30 five 0x5\n");
    let up = home.weft(&["up", "x.topo", "--guid2lid", "lids"]);
    up.fails(2, "error: lids:2:6: a LID is 0x1 to 0xbfff: `five`").fails(2, "hint: remove the file");
    home.weft(&["up", "x.topo", "--guid2lid", "."]).fails(2, "error: cannot read .: ");
    assert!(home.is_empty(), "something was started");
}

#[test]
fn a_bad_name() {
    let home = Home::new();
    home.write("x.topo", GOOD);
    home.weft(&["up", "x.topo", "--lab", "../x"]).fails(2, "`../x` cannot name a laboratory");
    home.weft(&["up", "x.topo", "--sm-at", "nobody"]).fails(2, "`nobody`");
    assert!(home.is_empty());
}

#[test]
fn a_folder_whose_path_is_too_long_for_sockets() {
    let home = Home::new();
    let file = home.write("x.topo", GOOD);
    let long = home.base().join("x".repeat(120));
    let output = home.command(&["up", text(&file)]).env("WEFT_HOME", long).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("too long a path for Unix sockets"), "{stderr}");
    assert!(stderr.contains("hint: set WEFT_HOME"), "{stderr}");
}

#[test]
fn a_busy_port() {
    let home = Home::new();
    home.write("x.topo", GOOD);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port().to_string();
    home.weft(&["up", "x.topo", "--udp-port", &port])
        .fails(1, &format!("UDP port {port} is in use by another program"));
    assert!(home.is_empty(), "something is left");
}

#[test]
fn no_laboratory() {
    let home = Home::new();
    for verb in [&["ps"][..], &["links"], &["status"], &["check"], &["events"], &["trace", "a", "b"]] {
        home.weft(verb).fails(1, "no laboratory is running").fails(1, "hint: start one with `weft up FILE`");
    }
    home.weft(&["down"]).succeeds();
    home.weft(&["down", "--all"]).succeeds();
    home.weft(&["down", "--lab", "x"]).succeeds();
}

#[test]
fn a_folder_that_is_no_laboratory_is_left_alone() {
    let home = Home::new();
    home.write("x.topo", GOOD);
    let letter = home.lab("Documents").join("letter");
    std::fs::create_dir_all(home.lab("Documents")).unwrap();
    std::fs::write(&letter, "dear").unwrap();
    home.weft(&["down", "--all"]).succeeds();
    home.weft(&["down"]).succeeds();
    for verb in [&["down"][..], &["up", "x.topo"], &["ps"]] {
        home.weft(&[verb, &["--lab", "Documents"]].concat())
            .fails(1, "Documents is not a laboratory of weft")
            .fails(1, "hint: choose another name with --lab");
    }
    home.weft(&["ps"]).fails(1, "no laboratory is running");
    assert_eq!(std::fs::read_to_string(&letter).unwrap(), "dear");
}
