//! What a move of a virtual machine costs under weft's subnet manager beside OpenSM: MADs, and time without the machine.
//!
//! ```text
//! cargo build --workspace && cargo run -p weft-judges --example moves_beside_opensm -- [VFS]
//! ```
//!
//! On a tree of 324 hosts, whole and without 30 of its cables between switches, each host with VFS (4) virtual functions
//! that get LIDs at boot: one virtual machine moves to another host of its leaf and then across the tree, under weft's
//! subnet manager and, on the same fabric, under OpenSM. Neither makes a periodic sweep meanwhile, so all that they send is
//! for the move. SMPs are those that agents received, from the request until the manager is at rest again; sent are the packets of the
//! managers' ports. The machine's time is that of a peer on another leaf, which asks it every 2 ms: from the request to
//! the first answer at the new place, and from the last answer at the old place to that one.
//!
//! Ends with 1 unless weft sends at most a twentieth of OpenSM's MADs for every move across the tree, by both counts, and the
//! machine answers sooner, by both times.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::process::ExitCode;
use std::time::Duration;

use weft_judges::moves::{Machines, Manager, Moved};
use weft_topology::generate::{Damage, degraded};
use weft_topology::{Fabric, NodeIndex};

/// How many times the MADs of weft OpenSM must send at least, for a move across the tree.
const TIMES: u64 = 20;

/// Cables that the degraded tree lacks, a little less than a tenth of those between switches.
const CABLES: usize = 30;

/// Longer than either manager is silent while it has something to do.
const REST: Duration = Duration::from_secs(4);

fn main() -> ExitCode {
    let vfs = std::env::args().nth(1).map_or(4, |vfs| vfs.parse().expect("VFS is a number"));
    println!(
        "| fabric | move | manager | SMPs | Sets | LFT blocks | switches | packets sent | answers after | silent for |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let whole = tree();
    let damaged = degraded_tree(&whole);
    let mut wrong = Vec::new();
    for (name, fabric) in [("324 hosts", &whole), ("324 hosts, degraded", &damaged)] {
        let [weft, opensm] =
            [Manager::Weft, Manager::OpenSm].map(|manager| moves(name, fabric, manager, vfs));
        let ([_, weft], [_, opensm]) = (weft, opensm);
        wrong.extend(judge(&weft, &opensm).into_iter().map(|wrong| format!("{name}: {wrong}")));
    }
    wrong.iter().for_each(|wrong| println!("{wrong}"));
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tree() -> Fabric {
    let text = include_str!("../../topologies/fattree-324.topo");
    weft_topology::parse("fattree-324.topo", text).expect("weft reads its own files")
}

/// In one piece, with all hosts.
fn degraded_tree(whole: &Fabric) -> Fabric {
    let damage = Damage { cables: CABLES, switches: 0 };
    let tree = degraded(whole, damage, 1).expect("what remains was sound before");
    let counts = tree.counts();
    assert!(counts.components == 1 && tree.hosts().count() == whole.hosts().count(), "{counts:?}");
    tree
}

/// Within a leaf, then across the tree; a line is printed for each.
fn moves(name: &str, fabric: &Fabric, manager: Manager, vfs: u8) -> [Moved; 2] {
    let hosts: Vec<NodeIndex> = fabric.hosts().map(|(host, _)| host).collect();
    // The managers sit at the first two, and 18 share a leaf.
    let machines = Machines::start(fabric, manager, vfs, &["--pack", "leaf"], hosts[5], REST);
    let lid = machines.lid();
    let peer = hosts[hosts.len() / 2];
    let moves = [("in a leaf", hosts[10]), ("across", hosts[hosts.len() - 3])];
    let moves = moves.map(|(what, to)| {
        let moved = machines.migrate(to, peer);
        println!("{}", line(name, what, manager, &moved));
        moved
    });
    assert_eq!(machines.lid(), lid, "a machine keeps its LID");
    moves
}

fn line(name: &str, what: &str, manager: Manager, moved: &Moved) -> String {
    let Moved { received, sent, answered, silent, .. } = moved;
    let manager = match manager {
        Manager::Weft => "weft",
        Manager::OpenSm => "OpenSM",
    };
    let ms = |time: &Duration| format!("{:.0} ms", time.as_secs_f64() * 1e3);
    format!(
        "| {name} | {what} | {manager} | {} | {} | {} | {} | {sent} | {} | {} |",
        received.smps,
        received.sets,
        received.lft_blocks,
        received.switches,
        ms(answered),
        ms(silent)
    )
}

/// What is not as it must be of a move across the tree.
fn judge(weft: &Moved, opensm: &Moved) -> Vec<String> {
    let mut wrong = Vec::new();
    let counts = [
        ("agents received", weft.received.smps, opensm.received.smps),
        ("managers sent", weft.sent, opensm.sent),
    ];
    for (what, ours, theirs) in counts {
        if ours * TIMES > theirs {
            wrong.push(format!("{what} {ours} MADs, more than a twentieth of OpenSM's {theirs}"));
        }
    }
    let times = [("answers", weft.answered, opensm.answered), ("is away for", weft.silent, opensm.silent)];
    for (what, ours, theirs) in times {
        if ours >= theirs {
            wrong.push(format!("the machine {what} {ours:?}, not sooner than under OpenSM: {theirs:?}"));
        }
    }
    wrong
}
