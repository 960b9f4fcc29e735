//! OpenSM routes what weft wrote, on ibsim. Its min-hop tables and weft's must agree on every hop count, and weft's
//! verifier must find OpenSM's tables sound.

use weft_judges::{Ibsim, first_host, opensm, output_of};
use weft_routing::files::Fdbs;
use weft_routing::{Lids, Routes, minhop, verify};
use weft_topology::generate::{self, GenerateOptions, RandomFabric};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::Lid;

fn by_opensm(fabric: &Fabric) -> (Lids, Fdbs) {
    let ibsim = Ibsim::start(fabric);
    let host = &first_host(fabric).1.id;
    // Log flag 0x40 makes it write its tables.
    output_of(ibsim.command("opensm", host).args(["-o", "-R", "minhop", "-D", "0x43", "-f", "opensm.log"]));
    opensm::written(fabric, ibsim.folder())
}

/// How many switches a packet passes after `from`, by `routes`, until it is at the switch nearest to `lid`.
fn hops(fabric: &Fabric, lids: &Lids, routes: &Routes, from: NodeIndex, lid: Lid) -> u32 {
    let owner = lids.owner(lid).expect("the LID was given").node;
    let (mut at, mut count) = (from, 0);
    while at != owner {
        let port = routes.port(at, lid);
        let next = fabric.peer(PortRef::new(at, port)).unwrap_or_else(|| panic!("no cable behind {port}"));
        count += 1;
        assert!(count < 64, "LID {lid} loops");
        at = next.node;
    }
    count
}

fn agrees(name: &str, fabric: &Fabric) {
    let (lids, theirs) = by_opensm(fabric);
    let routes = minhop(fabric, &lids);
    for (node, switch) in fabric.switches() {
        for lid in lids.iter().map(|lids| lids.base) {
            let count =
                theirs.hops(node, lid).unwrap_or_else(|| panic!("{name}: {} to LID {lid}", switch.id));
            let ours = hops(fabric, &lids, &routes, node, lid);
            assert_eq!(ours, u32::from(count), "{name}: {} to LID {lid}", switch.id);
        }
    }
    let report = verify(fabric, &lids, &theirs.routes, &[]);
    assert!(report.is_minimal(), "{name}: {:?}", report.summary());
}

#[test]
fn x5() {
    agrees("X5", &weft_judges::x5());
}

#[test]
fn trees_and_grids() {
    let options = GenerateOptions::default();
    for (name, fabric) in [
        ("XGFT(2; 18,18; 1,18)", generate::xgft(&[18, 18], &[1, 18], &options)),
        ("3x3 torus", generate::torus(&[3, 3], 2, &options)),
        ("dragonfly", generate::dragonfly(4, 2, 2, None, &options)),
    ] {
        agrees(name, &fabric.unwrap_or_else(|error| panic!("{name}: {error}")));
    }
}

#[test]
fn random_fabrics() {
    for seed in 0..8 {
        let parameters =
            RandomFabric { switches: 4 + seed, hosts: 12, extra_cables: 2 * seed, parallel_cables: 2 };
        let fabric = generate::random(&parameters, u64::from(seed), &GenerateOptions::default());
        agrees(&format!("seed {seed}"), &fabric.unwrap_or_else(|error| panic!("seed {seed}: {error}")));
    }
}
