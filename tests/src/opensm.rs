//! What OpenSM writes about the subnet that it manages.

use std::collections::BTreeMap;

use weft_routing::{ForwardingTable, Lids, Routes};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Guid, Lid, PortNum};

/// What OpenSM wrote of one switch: by LID, the port to leave by and how many hops it is from here.
pub type Table = BTreeMap<Lid, (PortNum, u32)>;

/// A number as OpenSM and infiniband-diags print them.
///
/// # Panics
/// When it is none.
pub fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// Reads `guid2lid`: `0xguid 0xmin 0xmax`, a line a port. weft writes the same.
///
/// # Panics
/// When a line is something else, or a GUID is none of the fabric's.
pub fn lids_of(fabric: &Fabric, text: &str) -> Lids {
    let ports: BTreeMap<Guid, PortRef> = fabric
        .iter()
        .flat_map(|(node, n)| n.end_ports().map(move |(port, p)| (p.guid, PortRef::new(node, port))))
        .collect();
    let mut lids = Lids::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<u64> = line.split_whitespace().map(hexadecimal).collect();
        let port = ports[&Guid(words[0])];
        lids.insert(port, Lid(words[1] as u16), 0).expect("the LIDs do not overlap");
    }
    lids
}

/// Reads `opensm.fdbs`: `dump_ucast_routes: Switch 0x…`, a heading, then `0x0003 : 019  : 02   : yes` a line.
///
/// # Panics
/// When an entry comes before any heading.
pub fn tables_of(text: &str) -> BTreeMap<Guid, Table> {
    let mut tables = BTreeMap::new();
    let mut current = Guid(0);
    for line in text.lines() {
        if let Some((_, guid)) = line.split_once("Switch ") {
            current = Guid(hexadecimal(guid.trim()));
            tables.insert(current, Table::new());
            continue;
        }
        let columns: Vec<&str> = line.split(':').map(str::trim).collect();
        if let [lid, port, hops, ..] = columns[..]
            && lid.starts_with("0x")
            && let (Ok(port), Ok(hops)) = (port.parse(), hops.parse())
        {
            let table: &mut Table = tables.get_mut(&current).expect("a heading came before");
            table.insert(Lid(hexadecimal(lid) as u16), (PortNum(port), hops));
        }
    }
    tables
}

/// The tables as weft's routing library knows them.
///
/// # Panics
/// When a switch of the fabric has none.
pub fn routes_of(fabric: &Fabric, lids: &Lids, tables: &BTreeMap<Guid, Table>) -> Routes {
    let mut routes = vec![ForwardingTable::default(); fabric.nodes().len()];
    for (node, switch) in fabric.switches() {
        let mut forwarding = ForwardingTable::new(lids.top());
        for (&lid, &(port, _)) in &tables[&switch.guid] {
            forwarding.set(lid, port);
        }
        routes[node.index()] = forwarding;
    }
    Routes { tables: routes }
}
