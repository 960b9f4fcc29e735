//! Cost of a virtual machine's move under weft's subnet manager beside OpenSM: MADs, and time without the machine.
//!
//! ```text
//! cargo build --workspace && cargo run -p weft-judges --example moves_beside_opensm -- [VFS [FABRIC]]
//! ```
//!
//! On a tree of 324 hosts, whole and without 30 of its cables between switches, and on the X5 cluster, each host with VFS (4)
//! virtual functions that get LIDs at boot: one virtual machine moves to another host of its leaf and then to another leaf, under
//! weft's subnet manager and, on the same fabric, under OpenSM. Neither makes a periodic sweep meanwhile, so all that
//! they send is for the move. SMPs are those that agents received, from the request until the manager is at rest again; sent
//! are the packets of the managers' ports. The machine's time is that of a peer on another leaf, which asks it every 2 ms:
//! from the request to the first answer at the new place, and from the last answer at the old place to that one. Before the first move
//! and after each of them infiniband-diags at that peer must see all nodes and cables, the machine's records, and the path to it that
//! forwarding tables have.
//!
//! Ends with 1 unless, for a move to another leaf, weft sends at most a twentieth of OpenSM's MADs on the trees and fewer on
//! X5, by both counts, and the machine answers sooner, by both times. The degraded tree's late rows are among what weft sends.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is what it is for")]

use std::process::ExitCode;
use std::time::Duration;

use weft_judges::moves::{Functions, Lids, Machines, Manager, Moved, cabled_hosts};
use weft_judges::{degraded_324, tree_324, x5};
use weft_topology::{Fabric, NodeIndex};

/// How many times the MADs of weft OpenSM sends at least for a move across a tree of 324 hosts.
const TIMES: u64 = 20;

/// Longer than either manager is silent while it has something to do: late rows come after 5.4 s.
const REST: Duration = Duration::from_secs(7);

/// A fabric, and what must hold on it.
struct Case {
    name: &'static str,
    fabric: Fabric,
    /// How many times the MADs of weft OpenSM sends at least.
    times: u64,
}

fn main() -> ExitCode {
    let vfs = std::env::args().nth(1).map_or(4, |vfs| vfs.parse().expect("VFS is a number"));
    // Only fabrics with these words in their names, if there are any.
    let words = std::env::args().nth(2).unwrap_or_default();
    let cases = [
        Case { name: "324 hosts", fabric: tree_324(), times: TIMES },
        Case { name: "324 hosts, degraded", fabric: degraded_324(), times: TIMES },
        Case { name: "X5", fabric: x5(), times: 1 },
    ];
    println!(
        "| fabric | move | manager | SMPs | Sets | LFT blocks | switches | packets sent | answers after | silent for |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.name.contains(&words)) {
        let [_, weft] = moves(case, Manager::Weft, vfs);
        let [_, opensm] = moves(case, Manager::OpenSm, vfs);
        wrong.extend(judge(case, &weft, &opensm).into_iter().map(|wrong| format!("{}: {wrong}", case.name)));
    }
    wrong.iter().for_each(|wrong| println!("{wrong}"));
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Within a leaf, then to another one; a line is printed for each.
fn moves(case: &Case, manager: Manager, vfs: u8) -> [Moved; 2] {
    let Places { start, beside, far, peer } = places(&case.fabric);
    let functions = Functions { each: vfs, lids: Lids::Dynamic };
    let machines = Machines::start(&case.fabric, manager, functions, &["--pack", "leaf"], start, REST);
    let lid = machines.lid();
    let see = |host: NodeIndex| machines.see(peer, host);
    let way = see(start);
    eprintln!("{}, {manager:?}: all is seen, and the machine by {}", case.name, way.join(" > "));
    let moves = [("in a leaf", beside), ("to another leaf", far)].map(|(what, to)| {
        let moved = machines.migrate(to, peer);
        println!("{}", line(case.name, what, manager, &moved));
        let way = see(to);
        eprintln!("{}, {manager:?}, {what}: all is seen, and the machine by {}", case.name, way.join(" > "));
        moved
    });
    assert_eq!(machines.lid(), lid, "a machine keeps its LID");
    moves
}

/// Where the machine is at first, another host of that leaf, the last host of all, and one on a third leaf.
struct Places {
    start: NodeIndex,
    beside: NodeIndex,
    far: NodeIndex,
    peer: NodeIndex,
}

fn places(fabric: &Fabric) -> Places {
    let hosts: Vec<(NodeIndex, NodeIndex)> = cabled_hosts(fabric).collect();
    // The managers sit at the first two.
    let others = &hosts[2..];
    let beside = |(host, leaf): (NodeIndex, NodeIndex)| {
        let found = others.iter().find(|(other, theirs)| *other != host && *theirs == leaf);
        found.map(|(other, _)| *other)
    };
    let (start, beside) =
        others.iter().find_map(|host| Some((*host, beside(*host)?))).expect("a leaf with two more hosts");
    let far = *others.last().expect("there are other hosts");
    let is_third = |(_, leaf): &&(NodeIndex, NodeIndex)| *leaf != start.1 && *leaf != far.1;
    let peer = others.iter().find(is_third).expect("there is a third leaf");
    assert_ne!(start.1, far.1, "the last host is on another leaf");
    Places { start: start.0, beside, far: far.0, peer: peer.0 }
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

/// Faults of a move to another leaf.
fn judge(case: &Case, weft: &Moved, opensm: &Moved) -> Vec<String> {
    let mut wrong = Vec::new();
    let counts = [
        ("agents received", weft.received.smps, opensm.received.smps),
        ("managers sent", weft.sent, opensm.sent),
    ];
    for (what, ours, theirs) in counts {
        if ours * case.times > theirs || ours >= theirs {
            wrong.push(format!("{what} {ours} MADs under weft, {theirs} under OpenSM"));
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
