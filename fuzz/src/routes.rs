//! The files of routings, in the shapes of OpenSM, ibdmchk and ORCS.

use std::fmt::{self, Write};
use std::sync::LazyLock;

use weft_routing::files::partitions::PartitionsFile;
use weft_routing::files::{
    Dump, SavedRouting, parse_counters, parse_fdbs, parse_guids, parse_lfts, parse_psl, parse_sl2vl,
    parse_slvl, parse_subnet, parse_vm_weights, parse_weights,
};
use weft_routing::{Lids, Routing};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, ring};

/// Three switches with a host each.
static SUBNET: LazyLock<(Fabric, Lids)> = LazyLock::new(|| {
    let fabric = ring(3, 1, &GenerateOptions::default()).expect("a ring");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    (fabric, lids)
});

/// The first byte says which file the rest is. What is accepted is written so that it reads the same again, where there
/// is a writer.
pub fn routes(bytes: &[u8]) {
    let Some((which, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let (fabric, lids) = &*SUBNET;
    let mut routing = Routing::default();
    match which {
        b'f' => {
            let Ok(fdbs) = parse_fdbs("fuzz", text, fabric) else { return };
            // What has no owner is written as unreachable.
            routing.routes = fdbs.routes;
            let again = parse_fdbs("written", &written(|out| dump(&routing).fdbs(out)), fabric);
            let again = again.expect("what was written can be read").routes;
            for (node, _) in fabric.switches() {
                for lid in lids.iter().map(|lids| lids.base) {
                    assert_eq!(again.port(node, lid), routing.routes.port(node, lid));
                }
            }
        }
        b'l' => {
            let Ok(routes) = parse_lfts("fuzz", text, fabric) else { return };
            routing.routes = routes;
            let again = parse_lfts("written", &written(|out| dump(&routing).lfts(out)), fabric);
            let again = again.expect("what was written can be read");
            for (node, _) in fabric.switches() {
                for lid in lids.iter().map(|lids| lids.base) {
                    assert_eq!(again.port(node, lid), routing.routes.port(node, lid));
                }
            }
        }
        b'm' => drop(SavedRouting::default().with_lid_matrix("fuzz", text)),
        b's' => {
            let Ok(lanes) = parse_sl2vl("fuzz", text, fabric) else { return };
            routing.lanes = lanes;
            let again = parse_slvl("written", &written(|out| dump(&routing).slvl(out)), fabric);
            again.expect("what was written can be read");
        }
        b'v' => {
            let Ok(lanes) = parse_slvl("fuzz", text, fabric) else { return };
            routing.lanes = lanes;
            let again = parse_sl2vl("written", &written(|out| dump(&routing).sl2vl(out)), fabric);
            again.expect("what was written can be read");
        }
        b'p' => {
            let Ok(levels) = parse_psl("fuzz", text, fabric, lids) else { return };
            assert!(levels.is_whole());
            routing.levels = levels;
            let again = parse_psl("written", &written(|out| dump(&routing).psl(out)), fabric, lids);
            assert_eq!(again.expect("what was written can be read"), routing.levels);
        }
        b'n' => drop(parse_subnet("fuzz", text)),
        b'g' => drop((parse_guids("fuzz", text), parse_weights("fuzz", text, 1..=100))),
        b'w' => drop((parse_vm_weights("fuzz", text, 0..=100), parse_counters("fuzz", text))),
        b't' => {
            let Ok(file) = PartitionsFile::parse("fuzz", text) else { return };
            let again = PartitionsFile::parse("written", &file.to_string());
            assert_eq!(again.expect("what was written can be read"), file);
            file.resolve(fabric, None);
        }
        _ => {}
    }
}

fn dump(routing: &Routing) -> Dump<'_> {
    let (fabric, lids) = &*SUBNET;
    Dump::new(fabric, lids, routing)
}

fn written(write: impl FnOnce(&mut dyn Write) -> fmt::Result) -> String {
    let mut text = String::new();
    write(&mut text).expect("a text takes everything");
    text
}
