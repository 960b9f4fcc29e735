//! OpenSM routes what weft wrote, on ibsim. Its min-hop tables and weft's must agree on every hop count, and weft's
//! verifier must find OpenSM's tables sound.

use std::collections::BTreeMap;

use weft_judges::{Ibsim, output_of};
use weft_routing::{ForwardingTable, Lids, Routes, minhop, verify};
use weft_topology::generate::{self, GenerateOptions, RandomFabric};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum};

/// What OpenSM wrote of one switch: by LID, the port to leave by and how many hops it is from here.
type Table = BTreeMap<Lid, (PortNum, u32)>;

fn opensm(fabric: &Fabric) -> (Lids, BTreeMap<Guid, Table>) {
    let ibsim = Ibsim::start(fabric);
    let host = fabric.hosts().next().expect("the fabric has a host").1.id.clone();
    // Log flag 0x40 makes it write its tables.
    output_of(ibsim.command("opensm", &host).args(["-o", "-R", "minhop", "-D", "0x43", "-f", "opensm.log"]));
    let read =
        |name: &str| std::fs::read_to_string(ibsim.folder().join(name)).expect("OpenSM wrote its files");
    (lids_of(fabric, &read("guid2lid")), tables_of(&read("opensm.fdbs")))
}

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// `0xguid 0xmin 0xmax`, a line a port.
fn lids_of(fabric: &Fabric, text: &str) -> Lids {
    let ports: BTreeMap<Guid, PortRef> = fabric
        .iter()
        .flat_map(|(node, n)| n.end_ports().map(move |(port, p)| (p.guid, PortRef::new(node, port))))
        .collect();
    let mut lids = Lids::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let words: Vec<u64> = line.split_whitespace().map(hexadecimal).collect();
        let port = ports[&Guid(words[0])];
        lids.insert(port, Lid(words[1] as u16), 0).expect("OpenSM's LIDs do not overlap");
    }
    lids
}

/// `dump_ucast_routes: Switch 0x…`, a heading, then `0x0003 : 019  : 02   : yes` a line.
fn tables_of(text: &str) -> BTreeMap<Guid, Table> {
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
    let (lids, theirs) = opensm(fabric);
    let routes = minhop(fabric, &lids);
    let mut compared = 0;
    let mut tables = vec![ForwardingTable::default(); fabric.nodes().len()];
    for (node, switch) in fabric.switches() {
        let table = &theirs[&switch.guid];
        let mut forwarding = ForwardingTable::new(lids.top());
        for (&lid, &(port, count)) in table {
            forwarding.set(lid, port);
            assert_eq!(hops(fabric, &lids, &routes, node, lid), count, "{name}: {} to LID {lid}", switch.id);
            compared += 1;
        }
        tables[node.index()] = forwarding;
    }
    assert_eq!(compared, lids.len() * fabric.switches().count(), "{name}");
    let report = verify(fabric, &lids, &Routes { tables });
    assert!(report.is_minimal(), "{name}: {:?}", report.summary());
}

#[test]
fn x5() {
    let text = include_str!("../../topologies/psmn-x5.topo");
    agrees("X5", &weft_topology::parse("psmn-x5.topo", text).unwrap());
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
