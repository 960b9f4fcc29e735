//! Compose files: what `weft compose` prints, and what it gives each process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use common::{Home, text};

use crate::common;

/// Where a process may get its part of the bundle from at most.
const SLICE_BYTES_MAX: u64 = 400_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands of compose/README.md: their arguments, and the file that each prints.
fn examples() -> Vec<(Vec<String>, String)> {
    let readme = std::fs::read_to_string(root().join("compose/README.md")).unwrap();
    let lines = readme.lines().filter_map(|line| line.trim().strip_prefix("weft compose "));
    let examples = lines.filter_map(|line| {
        let (arguments, file) = line.split_once(" > compose/")?;
        Some((arguments.split(' ').map(str::to_owned).collect(), file.to_owned()))
    });
    examples.collect()
}

/// Services, each with the sources and files of its secrets.
fn secrets(compose: &str) -> BTreeMap<String, Vec<String>> {
    let mut services: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut service = String::new();
    for line in compose.lines() {
        if let Some((name, _)) = line.strip_prefix("  ").and_then(|line| line.split_once(":  # ")) {
            service = name.to_owned();
            services.entry(service.clone()).or_default();
        }
        if let Some(secret) = line.trim().strip_prefix("- {source: ") {
            let (_, target) = secret.split_once(", target: /bundle/").unwrap();
            services.get_mut(&service).unwrap().push(target.trim_end_matches('}').to_owned());
        }
    }
    services
}

#[test]
fn the_examples_are_what_weft_prints() {
    let examples = examples();
    assert!(examples.len() >= 2, "compose/README.md has no commands");
    for (arguments, file) in examples {
        let home = Home::new();
        let topologies = home.base().with_file_name("topologies");
        std::os::unix::fs::symlink(root().join("topologies"), topologies).unwrap();
        let arguments: Vec<&str> =
            ["compose"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
        let printed = home.weft(&arguments);
        let kept = std::fs::read_to_string(root().join("compose").join(&file)).unwrap_or_default();
        assert!(
            printed.succeeds().stdout == kept,
            "compose/{file} is out of date: run `weft {} > compose/{file}`",
            arguments.join(" ")
        );
    }
}

#[test]
fn each_process_gets_its_own_part_and_no_more() {
    let home = Home::new();
    let x5 = root().join("topologies/psmn-x5.topo");
    let options = ["--pm", "--standby", "1", "--out", "x5"];
    let compose = home.weft(&[&["compose", text(&x5)], &options[..]].concat()).succeeds().stdout.clone();
    let bundle = home.base().with_file_name("x5");
    let services = secrets(&compose);
    assert_eq!(services.len(), 100 + 2 + 1 + 1, "agents, subnet managers, performance manager, hub");
    for (service, files) in &services {
        let sizes = files.iter().map(|file| bundle.join(file).metadata().unwrap().len());
        let bytes: u64 = sizes.sum();
        assert!(bytes <= SLICE_BYTES_MAX, "{service} gets {bytes} bytes");
        let identities: Vec<&String> = files.iter().filter(|file| file.ends_with(".pem")).collect();
        assert_eq!(identities, [&"ca.pem".to_owned(), &format!("identities/{service}.pem")], "{service}");
        let has_keys = files.iter().any(|file| file == "identities/keys.json");
        assert_eq!(has_keys, ["sm", "sm-2", "pm"].contains(&service.as_str()), "{service}");
    }
    let given: BTreeSet<&String> = services.values().flatten().collect();
    assert!(!given.iter().any(|file| file.ends_with("ca.key")), "no process gets the authority's key");
    // The same of the bundle that is there, wherever the file names it.
    let again = home.weft(&["compose", "--bundle", "x5"]);
    assert_eq!(again.succeeds().stdout, compose);
}

/// 648 hosts and 54 switches, each in a process of its own or a leaf in each. The hub alone has all of the cabling and all addresses.
#[test]
fn the_parts_of_a_large_laboratory_are_small() {
    let home = Home::new();
    let tree = home.base().with_file_name("tree.topo");
    let shape = ["--children", "18,36", "--parents", "1,18"];
    home.weft(&[&["topo", "gen", "xgft"], &shape[..], &["-o", text(&tree)]].concat()).succeeds();
    for (pack, agents) in [("1", 702), ("leaf", 54)] {
        let options = ["--pack", pack, "--pm", "--standby", "1", "--out", pack];
        let done = home.command(&[&["compose", text(&tree)], &options[..]].concat()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let bundle = home.base().with_file_name(pack);
        let services = secrets(&String::from_utf8(done.stdout).unwrap());
        assert_eq!(services.len(), agents + 2 + 1 + 1, "agents, subnet managers, performance manager, hub");
        for (service, files) in services {
            let size = |file: &String| bundle.join(file).metadata().unwrap().len();
            let bytes: u64 = files.iter().map(size).sum();
            assert!(bytes <= SLICE_BYTES_MAX, "--pack {pack}: {service} gets {bytes} bytes");
        }
    }
}

#[test]
fn without_a_manager_none_is_planned() {
    let home = Home::new();
    let tree = home.small_tree();
    let compose = home.weft(&["compose", text(&tree), "--sm", "none", "--pack", "leaf", "--lab", "bare"]);
    let services = secrets(&compose.succeeds().stdout);
    assert!(services.keys().all(|name| name.starts_with('a') || name == "hub"), "{:?}", services.keys());
    assert!(home.base().with_file_name("bare").join("lab.json").exists());
    // One agent shares its folder with the user's own subnet manager, and the head says how that attaches.
    let shared: Vec<&str> = compose.stdout.lines().filter(|line| line.contains("sm-run:/run/weft")).collect();
    assert_eq!(shared, ["#   -v PROJECT_sm-run:/run/weft", "    volumes: [\"sm-run:/run/weft\"]"]);
    for variable in ["LD_PRELOAD", "WEFT_UMAD_NODE", "WEFT_UMAD_SOCKET"] {
        assert!(compose.stdout.contains(&format!("\n#   -e {variable}=")), "{}", compose.stdout);
    }
    let own = home.weft(&["compose", text(&tree), "--pack", "leaf", "--lab", "managed"]);
    assert!(!own.succeeds().stdout.contains("sm-run"), "{}", own.stdout);
}

#[test]
fn wrong_input_is_refused_before_anything_is_written() {
    let home = Home::new();
    let tree = home.small_tree();
    for (option, says) in [
        ("--door=here", "neither a port nor an address"),
        ("--user=me", "is not UID:GID"),
        ("--sm=other", "invalid value"),
    ] {
        home.weft(&["compose", text(&tree), option, "--out", "x"]).fails(2, says);
        assert!(!home.base().with_file_name("x").exists());
    }
    home.weft(&["plan", text(&tree), "--out", "local"]).succeeds();
    home.weft(&["compose", "--bundle", "local"]).fails(2, "was not planned for containers");
}
