//! M_Keys, judged by OpenSM that sets them and by smpquery that shows them or not.

use std::path::Path;
use std::process::Command;

use weft_judges::{Lab, OpenSm, first_host, output_of};
use weft_topology::Fabric;
use weft_topology::generate::{self, GenerateOptions};

/// A number that no file has by chance.
const KEY: u64 = 0x5ec2_e7c0_ffee_0001;

fn tree() -> Fabric {
    generate::xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap()
}

/// A file that holds the key, as an option names it.
fn key_file(folder: &Path) -> String {
    let file = folder.join("key");
    std::fs::write(&file, format!("{KEY:#x}\n")).unwrap();
    format!("@{}", file.display())
}

/// What smpquery says of the far end of the first host's cable, and of the key there.
fn asked(lab: &Lab, fabric: &Fabric, key: Option<u64>) -> Option<String> {
    let mut command = lab.command("smpquery", first_host(fabric).1, &[]);
    command.args(["-K", "-t", "300", "-D"]);
    command.args(key.map(|key| format!("--m_key={key:#x}")));
    let output = command.args(["portinfo", "0,1", "0"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text).filter(|text| text.contains("Mkey:"))
}

/// The key, its level and its lease, as smpquery prints them.
fn protection(text: &str) -> (u64, u64, u64) {
    let field = |name: &str| {
        let line =
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}\n{text}"));
        let value = line.trim_start_matches('.');
        match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
            None => value.parse().unwrap(),
        }
    };
    (field("Mkey:"), field("ProtectBits:"), field("MkeyLeasePeriod:"))
}

/// What strangers and friends see at a level.
fn shown_as_it_should(lab: &Lab, fabric: &Fabric, level: u64, lease: u64) {
    let friend = asked(lab, fabric, Some(KEY)).expect("the key is right");
    assert_eq!(protection(&friend), (KEY, level, lease));
    for wrong in [None, Some(KEY + 1)] {
        let stranger = asked(lab, fabric, wrong);
        match level {
            0 => assert_eq!(protection(&stranger.unwrap()).0, KEY),
            1 => assert_eq!(protection(&stranger.unwrap()).0, 0),
            _ => assert!(stranger.is_none(), "{stranger:?}"),
        }
    }
}

/// OpenSM sets a key and each level of protection, and believes what it is answered; weft's own programs show the
/// laboratory's key.
#[test]
fn opensm_protects_a_fabric() {
    let fabric = tree();
    for (level, lease) in [(0, 0), (1, 60), (2, 60), (3, 0)] {
        let lab = Lab::start_with(&fabric, |folder| {
            ["--no-sm".to_owned(), "--m-key".to_owned(), key_file(folder)].to_vec()
        });
        let options = format!(
            "m_key {KEY:#x}\nm_key_protection_level {level}\nm_key_lease_period {lease}\nsweep_interval 10\n"
        );
        let command = lab.command("opensm", first_host(&fabric).1, &[]);
        let _opensm = OpenSm::start_with(command, lab.folder(), &options);
        output_of(&mut lab.weft(&["check"]));
        shown_as_it_should(&lab, &fabric, level, lease);
        let hosts: Vec<_> = fabric.hosts().map(|(_, node)| node).collect();
        let (from, to) = (hosts[0], hosts[hosts.len() - 1]);
        let path = output_of(&mut lab.weft(&["trace", &from.id, &to.id]));
        assert!(path.lines().last().is_some_and(|hop| hop.contains(&to.description)), "{path}");
    }
}

/// weft's own manager protects a fabric, starts again with the same key, and the key is nowhere to be read.
#[test]
fn weft_protects_a_fabric() {
    let fabric = tree();
    for level in [0, 1, 2, 3] {
        let lab = Lab::start_with(&fabric, |folder| {
            let key = key_file(folder);
            let level = level.to_string();
            ["--m-key", &key, "--m-key-protection", &level, "--m-key-lease", "60", "--pm"]
                .map(str::to_owned)
                .to_vec()
        });
        output_of(&mut lab.weft(&["check"]));
        shown_as_it_should(&lab, &fabric, level, 60);
        the_performance_manager_sees_all(&lab, &fabric);
        let started = sweeps(&lab);
        output_of(&mut lab.weft(&["fault", "restart", "sm"]));
        wait_until("the new manager is up", || sweeps(&lab) != started && is_up(&lab));
        output_of(&mut lab.weft(&["check"]));
        shown_as_it_should(&lab, &fabric, level, 60);
        nowhere_to_be_read(&lab);
    }
}

/// The performance manager learns the fabric by SMPs that show the key, and `top` shows every port.
fn the_performance_manager_sees_all(lab: &Lab, fabric: &Fabric) {
    let (nodes, ports) = (fabric.nodes().len(), fabric.cables().count() * 2);
    wait_until("the performance manager has swept", || {
        let pm = status(lab)["pm"].clone();
        pm["ready"] == true && pm["sweeps"].as_u64() > Some(0) && pm["nodes"] == nodes && pm["ports"] == ports
    });
    let top = output_of(&mut lab.weft(&["top", "--json", "--once"]));
    for (_, node) in fabric.iter() {
        assert!(top.contains(&node.guid.to_string()) || top.contains(&node.description), "{top}");
    }
}

fn status(lab: &Lab) -> serde_json::Value {
    serde_json::from_str(&output_of(&mut lab.weft(&["status", "--json"]))).expect("--json prints JSON")
}

fn is_up(lab: &Lab) -> bool {
    status(lab)["sm"]["subnet_up"] == true
}

/// Tells one run of the manager from the next.
fn sweeps(lab: &Lab) -> serde_json::Value {
    let processes = output_of(&mut lab.weft(&["ps", "--json"]));
    let processes: serde_json::Value = serde_json::from_str(&processes).expect("--json prints JSON");
    let of_sm = |list: &Vec<serde_json::Value>| {
        list.iter().find(|process| process.to_string().contains("\"sm\"")).cloned()
    };
    processes.as_array().and_then(of_sm).expect("the manager is a process")["pid"].clone()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !done() {
        assert!(std::time::Instant::now() < deadline, "it never happened: {what}");
    }
}

/// Neither in a command line nor in a log, an event or a table; the files that hold it are their owner's alone.
fn nowhere_to_be_read(lab: &Lab) {
    let forms = [format!("{KEY:x}"), KEY.to_string()];
    let holds = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).to_lowercase();
        forms.iter().any(|form| text.contains(form))
    };
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = std::fs::read(process.path().join("cmdline")) else { continue };
        assert!(!holds(&line), "{}", String::from_utf8_lossy(&line));
    }
    let mut folders = vec![lab.folder().join("w/default")];
    let mut held = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            use std::os::unix::fs::PermissionsExt as _;
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && holds(&std::fs::read(entry.path()).unwrap()) {
                assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{entry:?}");
                held.push(entry.file_name().into_string().unwrap());
            }
        }
    }
    held.sort();
    assert_eq!(held, ["keys.json"]);
    for table in [["status", "--json"], ["events", "--json"], ["ps", "--json"]] {
        assert!(!holds(output_of(&mut lab.weft(&table)).as_bytes()), "{table:?}");
    }
    // The shell of whoever asks is no place for it either.
    assert!(!holds(&Command::new("env").output().unwrap().stdout));
}
