//! Unmodified OpenSM, with each of its routing engines, brings a weft fabric up as it brings ibsim's up: with the same
//! engine in the end, no complaint that it does not also make there, and tables that `weft check` finds sound.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use weft_judges::{Ibsim, Lab, OpenSm, first_host, output_of};
use weft_topology::Fabric;
use weft_topology::generate::{self, GenerateOptions};

const ENGINES: &[&str] = &["minhop", "updn", "ftree", "lash", "dfsssp", "dor"];

/// What one run of OpenSM came to.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    /// Whether it said SUBNET UP.
    is_up: bool,
    /// The engine whose tables it wrote, as it says itself.
    tables: Option<String>,
    /// The codes of its complaints.
    errors: BTreeSet<String>,
}

fn run(mut opensm: Command, folder: &Path, engine: &str) -> (Run, String) {
    let log = folder.join(format!("{engine}.log"));
    let output = opensm.args(["-o", "-R", engine, "-f"]).arg(&log).output().unwrap();
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    assert!(output.status.success(), "opensm -R {engine}: {}\n{text}", output.status);
    let tables = text.lines().find_map(|line| {
        let (before, _) = line.split_once(" tables configured on all switches")?;
        before.rsplit(' ').next().map(str::to_owned)
    });
    let code = |line: &str| {
        line.split_once(": ERR ").and_then(|(_, rest)| rest.split(':').next()).map(str::to_owned)
    };
    let is_up = text.contains("SUBNET UP");
    (Run { is_up, tables, errors: text.lines().filter_map(code).collect() }, text)
}

fn as_on_ibsim(name: &str, fabric: &Fabric) {
    let ibsim = Ibsim::start(fabric);
    let lab = Lab::start(fabric, &["--no-sm", "--pack", "all"]);
    let (_, host) = first_host(fabric);
    for engine in ENGINES {
        let (theirs, _) = run(ibsim.command("opensm", &host.id), ibsim.folder(), engine);
        let (ours, log) = run(lab.command("opensm", host, &[]), lab.folder(), engine);
        println!("{name}, {engine}: {ours:?}");
        assert!(ours.is_up, "{name}, {engine}: no SUBNET UP\n{log}");
        assert_eq!(ours.tables, theirs.tables, "{name}, {engine}\n{log}");
        let more: Vec<_> = ours.errors.difference(&theirs.errors).collect();
        assert!(
            more.is_empty(),
            "{name}, {engine}: complaints that it does not make on ibsim: {more:?}\n{log}"
        );
        output_of(&mut lab.weft(&["check"]));
    }
}

#[test]
fn x5() {
    as_on_ibsim("X5", &weft_judges::x5());
}

#[test]
fn fat_tree_of_324_hosts() {
    as_on_ibsim("324 hosts", &generate::xgft(&[18, 18], &[1, 18], &GenerateOptions::default()).unwrap());
}

#[test]
fn mesh_3x2() {
    as_on_ibsim("3x2 mesh", &generate::mesh(&[3, 2], 2, &GenerateOptions::default()).unwrap());
}

/// OpenSM hears of a dead switch by the trap that the neighbours send, and routes around it.
#[test]
fn a_killed_switch_is_routed_around() {
    let fabric = generate::xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let lab = Lab::start(&fabric, &["--no-sm"]);
    let (_, host) = first_host(&fabric);
    let mut opensm = OpenSm::start(lab.command("opensm", host, &[]), lab.folder());
    output_of(&mut lab.weft(&["check"]));
    // A switch with no host: the rest stays connected without it.
    let top = fabric
        .switches()
        .find(|(_, switch)| switch.cabled_ports().all(|(_, peer)| fabric.node(peer.node).is_switch()));
    let top = top.unwrap().1.guid.to_string();
    output_of(&mut lab.weft(&["fault", "kill", &top]));
    swept_until_right(&lab, &mut opensm);
    output_of(&mut lab.weft(&["fault", "restart", &top]));
    swept_until_right(&lab, &mut opensm);
}

/// Each neighbour's trap leads to a sweep, and one that ends may have begun before the change.
fn swept_until_right(lab: &Lab, opensm: &mut OpenSm) {
    let right = |lab: &Lab| lab.weft(&["check"]).output().is_ok_and(|checked| checked.status.success());
    let sweeps = (0..4).any(|_| {
        opensm.wait_for("SUBNET UP");
        right(lab)
    });
    if !sweeps {
        output_of(&mut lab.weft(&["check"])); // Says what is wrong.
    }
}
