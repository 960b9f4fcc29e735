//! The verifier finds what is wrong with a routing, and nothing else.

mod arbitrary;
mod deadlock;
mod facets;
mod isolation;
mod mutation;
mod oracle;
mod scenario;
mod streams;
mod tables;
mod transition;

use std::panic::{RefUnwindSafe, catch_unwind};

use weft_routing::{Lids, Routing, minhop};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, PortNum};

/// Runs a test with many seeds, or with that in WEFT_SEED alone. A failure tells its seed.
fn each_seed(count: u64, test: impl Fn(u64) + RefUnwindSafe) {
    let given = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in given.map_or(0..count, |seed: u64| seed..seed + 1) {
        if let Err(cause) = catch_unwind(|| test(seed)) {
            let message = cause.downcast_ref::<String>().map_or("it panicked", |message| message);
            panic!("WEFT_SEED={seed} replays it: {message}");
        }
    }
}

/// LIDs in GUID order and min-hop tables.
fn routed(fabric: &Fabric) -> (Lids, Routing) {
    let lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
    let routing = Routing::on_one_lane("minhop", minhop(fabric, &lids));
    (lids, routing)
}

/// The port of host n of a generated fabric.
fn host(fabric: &Fabric, number: u32) -> PortRef {
    PortRef::new(fabric.find(&format!("host-{number}")).expect("the host is there"), PortNum(1))
}

/// The LID of host n of a generated fabric.
fn lid_of(fabric: &Fabric, lids: &Lids, number: u32) -> Lid {
    lids.of(host(fabric, number)).expect("it has a LID").base
}
