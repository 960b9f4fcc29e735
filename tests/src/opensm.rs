//! OpenSM's files about the subnet that it manages.

use std::path::Path;

use weft_routing::Lids;
use weft_routing::files::{Fdbs, GuidToLid, parse_fdbs};
use weft_topology::Fabric;

/// A number as OpenSM and infiniband-diags print them.
///
/// # Panics
/// When it is none.
pub fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// The LIDs of a `guid2lid` file. weft writes the same.
///
/// # Panics
/// When it is none, or makes no sense.
pub fn lids_of(fabric: &Fabric, text: &str) -> Lids {
    let known = GuidToLid::parse("guid2lid", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    known.lids(fabric).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The LIDs and tables that OpenSM wrote into a folder.
///
/// # Panics
/// When it did not, or wrote something else.
pub fn written(fabric: &Fabric, folder: &Path) -> (Lids, Fdbs) {
    let read = |name: &str| {
        std::fs::read_to_string(folder.join(name))
            .unwrap_or_else(|error| panic!("OpenSM wrote no {name}: {error}"))
    };
    let fdbs = parse_fdbs("opensm.fdbs", &read("opensm.fdbs"), fabric);
    (lids_of(fabric, &read("guid2lid")), fdbs.unwrap_or_else(|error| panic!("{error}")))
}
