//! Cost of a virtual machine's move under weft's subnet manager beside OpenSM on the same fabric: the MADs that
//! agents receive, and how long a peer hears nothing; and what infiniband-diags see before and after. The example `moves_beside_opensm`
//! does so on larger trees.

use std::time::Duration;

use weft_judges::moves::{Functions, Lids, Machines, Manager, Moved};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, NodeIndex};

/// Longer than either manager is silent while it has something to do on eight switches.
const REST: Duration = Duration::from_secs(2);

/// Four leaves of four hosts under four spines.
fn tree() -> Fabric {
    xgft(&[4, 4], &[1, 4], &GenerateOptions::default()).unwrap()
}

/// Functions of each host.
const FUNCTIONS: Functions = Functions { each: 2, lids: Lids::Dynamic };

/// A move from the first leaf to the last one, which a host in between watches.
fn moved(fabric: &Fabric, manager: Manager) -> Moved {
    let hosts: Vec<NodeIndex> = fabric.hosts().map(|(host, _)| host).collect();
    let (from, to, peer) = (hosts[2], hosts[15], hosts[8]);
    let machines = Machines::start(fabric, manager, FUNCTIONS, &[], from, REST);
    let see = |host: NodeIndex| {
        let way = machines.see(peer, host);
        // A spine, two leaves, two vSwitches, and the ends.
        assert_eq!(way.len(), 7, "{manager:?}: {way:?}");
    };
    see(from);
    let before = machines.lid();
    let moved = machines.migrate(to, peer);
    assert_eq!(machines.lid(), before, "{manager:?}");
    see(to);
    moved
}

#[test]
fn a_move_costs_fewer_mads_and_less_silence_than_opensm() {
    let fabric = tree();
    let (weft, opensm) = (moved(&fabric, Manager::Weft), moved(&fabric, Manager::OpenSm));
    let both = format!("{weft:#?}\n{opensm:#?}");
    // What weft says that it wrote is what the switches received.
    let counts = &weft.report["counts"];
    let said = |name: &str| counts[name].as_u64().unwrap();
    assert_eq!(weft.received.switches, said("switches"), "{both}");
    assert_eq!(weft.received.lft_blocks, said("physical_smps") + said("vswitch_smps"), "{both}");
    assert!(opensm.report["counts"].is_null(), "{both}");
    assert!(weft.received.smps < opensm.received.smps, "{both}");
    assert!(weft.received.lft_blocks <= opensm.received.lft_blocks, "{both}");
    assert!(weft.sent < opensm.sent, "{both}");
    assert!(weft.silent < opensm.silent, "{both}");
}
