//! X5, a tree of 324 hosts and a degraded one with four virtual functions a host that all have LIDs from the start: weft's subnet manager
//! and unmodified OpenSM bring them up, infiniband-diags see every function and the path to a virtual machine, and the machine moves. `vfs.rs`
//! and `vm_moves.rs` have small trees. Minutes in all: `cargo xtask long` runs them.

use std::time::Duration;

use weft_judges::moves::{Functions, Lids, Machines, Manager, cabled_hosts};
use weft_judges::{degraded_324, tree_324, x5};
use weft_topology::{Fabric, NodeIndex};

const FUNCTIONS: Functions = Functions { each: 4, lids: Lids::Prepopulated };

/// Longer than either manager is silent while it has something to do: late rows come after 5.4 s.
const REST: Duration = Duration::from_secs(7);

/// A machine on the third host with a cable moves to the last one, which is on another leaf; tools look from a host in between.
fn comes_up(fabric: &Fabric) {
    let hosts: Vec<(NodeIndex, NodeIndex)> = cabled_hosts(fabric).collect();
    // The managers sit at the first two.
    let (from, to, peer) = (hosts[2], hosts[hosts.len() - 1], hosts[hosts.len() / 2].0);
    assert_ne!(from.1, to.1, "they are on different leaves");
    for manager in [Manager::Weft, Manager::OpenSm] {
        let machines = Machines::start(fabric, manager, FUNCTIONS, &["--pack", "leaf"], from.0, REST);
        let lid = machines.lid();
        let way = machines.see(peer, from.0);
        assert!(way.len() >= 5, "{manager:?}: at least two vSwitches and a leaf between the ends: {way:?}");
        let moved = machines.migrate(to.0, peer);
        assert_eq!(machines.lid(), lid, "{manager:?}: {moved:?}");
        machines.see(peer, to.0);
    }
}

#[test]
fn x5_with_a_lid_for_every_function() {
    comes_up(&x5());
}

#[test]
fn a_tree_of_324_hosts_with_a_lid_for_every_function() {
    comes_up(&tree_324());
}

#[test]
fn a_degraded_tree_of_324_hosts_with_a_lid_for_every_function() {
    comes_up(&degraded_324());
}
