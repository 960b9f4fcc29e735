//! Time to find new rows after a cable was cut, and to prove them.

use divan::Bencher;
use weft_routing::{Engine, EngineOptions, Input, Lids, Proven};
use weft_topology::generate::{GenerateOptions, rlft};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::PortNum;

fn main() {
    divan::main();
}

/// Cables of a tree of 1620 switches: of the first leaf, of a leaf in the midst of others, and from the middle to a root.
const CABLES: [(&str, u8); 3] = [("switch-1-0", 19), ("switch-1-40", 30), ("switch-2-5", 25)];

fn proven(fabric: &Fabric) -> Proven {
    let lids = Lids::in_guid_order(fabric, 0).expect("there are enough LIDs");
    let options = EngineOptions::default();
    let engine = Engine::by_name("ftree").expect("it is in the table");
    let routing = engine.route(&Input { fabric, lids: &lids, options: &options }).expect("it is a tree");
    Proven::new(fabric.clone(), lids, routing, &options).expect("it can be repaired")
}

fn cable(fabric: &Fabric, (name, port): (&str, u8)) -> (PortRef, PortRef) {
    let node: NodeIndex = fabric.iter().find(|(_, node)| node.description == name).expect("it is there").0;
    let port = PortRef::new(node, PortNum(port));
    (port, fabric.peer(port).expect("it has a cable"))
}

/// A cut in a routing that has just been proved.
#[divan::bench(args = CABLES, sample_count = 20, sample_size = 1)]
fn cut(bencher: Bencher<'_, '_>, at: (&str, u8)) {
    let fabric = rlft(36, 3, &GenerateOptions::default()).expect("the parameters are sound");
    let cable = cable(&fabric, at);
    bencher.with_inputs(|| proven(&fabric)).bench_local_values(|mut proven| {
        let rows = proven.cut(&[cable]).expect("there are other ways");
        assert!(!rows.is_empty());
        proven
    });
}
