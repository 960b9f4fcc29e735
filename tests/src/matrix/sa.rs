//! saquery: every record type that the subnet manager's administration serves, all records and not one too few.

use std::collections::BTreeSet;

use weft_topology::PortRef;
use weft_wire::{Guid, Lid, PortNum};

use super::{Case, case};
use crate::Site;
use crate::opensm::hexadecimal;
use crate::site::{expect_equal, expect_field, field};

const ONE_MAD: &str = "its messages carry one MAD, and the stock shim knows no RMPP";

pub(super) const CASES: &[Case] = &[
    case("saquery -c", "the SA's class port information", class_port_info),
    case("saquery NR", "every node's LID, kind, GUIDs and description", node_records)
        .beyond_protocol(ONE_MAD),
    case("saquery NR LID", "one node's", one_node_record),
    case("saquery PIR", "every port's LID and number", port_info_records).beyond_protocol(ONE_MAD),
    case("saquery SWIR", "every switch's LID", |site| {
        lids(site, "SWIR", "LID", &site.fabric.switches().map(|(node, _)| site.lid(node)).collect())
    })
    .beyond_protocol(ONE_MAD),
    case("saquery LFTR", "every block of every table", table_records).beyond_protocol(ONE_MAD),
    case("saquery LFTR LID/BLOCK", "the block's 64 entries", table_block),
    case("saquery LR", "every cable, from both ends", link_records).beyond_protocol(ONE_MAD),
    case("saquery SMIR", "LID, GUID and state of the master", sm_info_record),
    case("saquery --smkey 1 PKTR", "a record of every host", |site| {
        at_least_of_each_host(site, &["--smkey", "1", "PKTR"])
    })
    .beyond_protocol(ONE_MAD),
    case("saquery SL2VL", "a record of every host", |site| at_least_of_each_host(site, &["SL2VL"]))
        .beyond_protocol(ONE_MAD),
    case("saquery VLAR", "a record of every host", |site| at_least_of_each_host(site, &["VLAR"]))
        .beyond_protocol(ONE_MAD),
    case("saquery GIR", "every host's first GUID", guid_info_records).beyond_protocol(ONE_MAD),
    case("saquery PR --slid A --dlid B", "GIDs, MTU, rate and P_Key of the path", path_by_lid),
    case("saquery --sgid-to-dgid A-B", "the same path, by GID", path_by_gid),
    case("saquery PR --slid A", "a path to every LID", paths_from).beyond_protocol(ONE_MAD),
    case("saquery PR", "a path for every pair", paths).beyond_protocol(ONE_MAD),
    case("saquery -D", "the description of every HCA", descriptions).beyond_protocol(ONE_MAD),
    case("saquery -O LID", "the name behind every LID", name_of_lid).beyond_protocol(ONE_MAD),
    case("saquery -s", "the port with a subnet manager", sm_ports),
    case("saquery -S, -I", "that there is no service and no subscription", nothing_registered),
];

/// Some tables are read from the devices when they are first asked for, which takes its time on a busy machine.
fn saquery(site: &Site<'_>, query: &[&str]) -> Result<String, String> {
    site.read("saquery", &[&["-t", "20000"], query].concat())
}

/// The parts of a report, a record each.
fn records(text: &str) -> impl Iterator<Item = &str> {
    text.split(" dump:\n").skip(1)
}

fn lid_in(record: &str, name: &str) -> Result<Lid, String> {
    let value = field(record, name).ok_or_else(|| format!("there is no {name}"))?;
    value.parse().map(Lid).map_err(|_| format!("{name} is {value}"))
}

fn lids(site: &Site<'_>, query: &str, name: &str, wanted: &BTreeSet<Lid>) -> Result<(), String> {
    let text = saquery(site, &[query])?;
    let found = text.lines().filter_map(|line| field(line, name)).filter_map(|lid| lid.parse().ok().map(Lid));
    expect_equal("LIDs", &found.collect(), wanted)
}

fn class_port_info(site: &Site<'_>) -> Result<(), String> {
    let text = saquery(site, &["-c"])?;
    expect_field(&text, "Base version", "1")?;
    expect_field(&text, "Class version", "2")
}

fn node_records(site: &Site<'_>) -> Result<(), String> {
    let text = saquery(site, &["NR"])?;
    let mut found = Vec::new();
    for record in records(&text) {
        let guid = |name| field(record, name).map(|value| Guid(hexadecimal(value)));
        let row =
            (lid_in(record, "lid")?, guid("node_guid"), guid("port_guid"), field(record, "NodeDescription"));
        found.push(row);
    }
    let known = site.fabric.iter().flat_map(|(index, node)| {
        node.end_ports().map(move |(port, p)| {
            let lid = site.lid_of_port(PortRef::new(index, port));
            (lid, Some(node.guid), Some(p.guid), Some(node.description.as_str()))
        })
    });
    let mut known: Vec<_> = known.collect();
    known.sort_unstable();
    found.sort_unstable();
    expect_equal("records", &found, &known)
}

fn one_node_record(site: &Site<'_>) -> Result<(), String> {
    let index = site.other_host();
    let text = saquery(site, &["NR", &site.lid(index).to_string()])?;
    expect_equal("records", &records(&text).count(), &1)?;
    expect_field(&text, "node_guid", &site.fabric.node(index).guid.to_string())?;
    expect_field(&text, "NodeDescription", &site.fabric.node(index).description)
}

fn port_info_records(site: &Site<'_>) -> Result<(), String> {
    let text = saquery(site, &["PIR"])?;
    let mut found = BTreeSet::new();
    let parts = text.split("PortInfoRecord dump:").skip(1);
    for record in parts {
        let port = field(record, "PortNum").and_then(|port| port.parse().ok()).ok_or("no PortNum")?;
        found.insert((lid_in(record, "EndPortLid")?, PortNum(port)));
    }
    // The ports of an HCA that are cabled; of a switch, which one LID stands for, all of them.
    let known = site.fabric.iter().flat_map(|(index, node)| {
        let ports: Vec<PortNum> = if node.is_switch() {
            (0..=node.port_count()).map(PortNum).collect()
        } else {
            node.cabled_ports().map(|(port, _)| port).collect()
        };
        ports.into_iter().map(move |port| (site.lid_of_port(PortRef::new(index, port)), port))
    });
    expect_equal("ports", &found, &known.collect())
}

fn blocks(site: &Site<'_>) -> usize {
    usize::from(site.lids.top().0) / 64 + 1
}

fn table_records(site: &Site<'_>) -> Result<(), String> {
    let text = saquery(site, &["LFTR"])?;
    let mut found = BTreeSet::new();
    for record in records(&text) {
        let block = field(record, "Block").and_then(|block| block.parse::<usize>().ok()).ok_or("no Block")?;
        found.insert((lid_in(record, "LID")?, block));
    }
    let known =
        site.fabric.switches().flat_map(|(node, _)| (0..blocks(site)).map(move |b| (site.lid(node), b)));
    expect_equal("blocks", &found, &known.collect())
}

fn table_block(site: &Site<'_>) -> Result<(), String> {
    let (switch, _) = site.far_switch();
    let text = saquery(site, &["LFTR", &format!("{}/0", site.lid(switch))])?;
    let entry = |line: &str| {
        let (lid, port) = line.trim().split_once('\t')?;
        Some((Lid(lid.parse().ok()?), PortNum(port.parse().ok()?)))
    };
    let found: Vec<(Lid, PortNum)> = text.lines().filter_map(entry).collect();
    expect_equal("entries", &found.len(), &64)?;
    let known = |lid| site.lids.owner(lid).map_or(PortNum(255), |_| site.routes.port(switch, lid));
    found.iter().try_for_each(|&(lid, port)| expect_equal(&format!("LID {lid}"), &port, &known(lid)))
}

fn link_records(site: &Site<'_>) -> Result<(), String> {
    let text = saquery(site, &["LR"])?;
    let mut found = BTreeSet::new();
    for record in records(&text) {
        let port =
            |name| field(record, name).and_then(|port| port.parse().ok()).map(PortNum).ok_or("no port");
        let from = (lid_in(record, "FromLID")?, port("FromPort")?);
        found.insert((from, (lid_in(record, "ToLID")?, port("ToPort")?)));
    }
    let end = |end: PortRef| (site.lid_of_port(end), end.port);
    let known = site.fabric.cables().flat_map(|cable| {
        let (a, b) = (end(cable.a), end(cable.b));
        [(a, b), (b, a)]
    });
    expect_equal("links", &found, &known.collect())
}

fn sm_info_record(site: &Site<'_>) -> Result<(), String> {
    let text = saquery(site, &["SMIR"])?;
    expect_equal("records", &text.matches("SMInfoRecord dump:").count(), &1)?;
    expect_field(&text, "LID", &site.lid(site.host).to_string())?;
    expect_field(&text, "SMState", "3")
}

fn at_least_of_each_host(site: &Site<'_>, query: &[&str]) -> Result<(), String> {
    let text = saquery(site, query)?;
    let found: Result<BTreeSet<Lid>, String> = records(&text).map(|record| lid_in(record, "LID")).collect();
    let found = found?;
    match site.fabric.hosts().find(|(host, _)| !found.contains(&site.lid(*host))) {
        None => Ok(()),
        Some((_, host)) => Err(format!("{} hosts' LIDs, none of {}", found.len(), host.id)),
    }
}

fn guid_info_records(site: &Site<'_>) -> Result<(), String> {
    let text = saquery(site, &["GIR"])?;
    let mut found = BTreeSet::new();
    for record in records(&text).filter(|record| field(record, "Block") == Some("0")) {
        let guid = field(record, "GUID 0").map(hexadecimal).ok_or("no GUID")?;
        found.insert((lid_in(record, "LID")?, Guid(guid)));
    }
    for (index, host) in site.fabric.hosts() {
        let (_, port) = host.end_ports().next().ok_or("a host without a port")?;
        if !found.contains(&(site.lid(index), port.guid)) {
            return Err(format!("{} records, none of {}", found.len(), host.id));
        }
    }
    Ok(())
}

fn path_ends(site: &Site<'_>) -> (Lid, Lid, String, String) {
    let other = site.other_host();
    let gid = |index| {
        let (_, port) = site.fabric.node(index).end_ports().next().expect("a host has a port");
        let guid = port.guid.0;
        let part = |shift: u32| (guid >> shift) & 0xffff;
        format!("fe80::{:x}:{:x}:{:x}:{:x}", part(48), part(32), part(16), part(0))
    };
    (site.lid(site.host), site.lid(other), gid(site.host), gid(other))
}

fn is_the_path(site: &Site<'_>, text: &str) -> Result<(), String> {
    let (from, to, sgid, dgid) = path_ends(site);
    expect_equal("records", &records(text).count(), &1)?;
    expect_field(text, "slid", &from.to_string())?;
    expect_field(text, "dlid", &to.to_string())?;
    expect_field(text, "sgid", &sgid)?;
    expect_field(text, "dgid", &dgid)?;
    // "Exactly", and one of the codes from 256 to 4096 bytes.
    let mtu = field(text, "mtu").map(hexadecimal).ok_or("no mtu")?;
    expect_equal("MTU selector", &(mtu >> 6), &2)?;
    expect_equal("an MTU code", &(1..=5).contains(&(mtu & 0x3f)), &true)?;
    let key = field(text, "pkey").map(str::to_lowercase);
    expect_equal("P_Key", &key.as_deref(), &Some("0xffff"))?;
    let rates = [("2.5", 2), ("5", 5), ("10", 3), ("20", 6), ("30", 4), ("40", 7)];
    let wanted = slowest(site).and_then(|slowest| rates.iter().find(|(text, _)| *text == slowest));
    let rate = field(text, "rate").map(|rate| hexadecimal(rate) & 0x3f);
    expect_equal("rate code", &rate, &wanted.map(|(_, code)| *code))
}

/// The rate of the slowest cable between the two hosts, in Gb/s.
fn slowest(site: &Site<'_>) -> Option<&'static str> {
    let (_, to, ..) = path_ends(site);
    let (port, _) = site.fabric.node(site.host).end_ports().next()?;
    let from = PortRef::new(site.host, port);
    let path = weft_routing::trace(site.fabric, &site.lids, &site.routes, from, to).ok()?;
    let exits = path.hops.windows(2).map(|hops| PortRef::new(hops[0].node, hops[0].exit));
    let rates = exits.filter_map(|end| site.fabric.port(end));
    let order = [("4xSDR", "10"), ("4xDDR", "20"), ("4xQDR", "40")];
    let place = |rate: String| order.iter().position(|(text, _)| *text == rate);
    rates.filter_map(|port| place(port.link.to_string())).min().map(|place| order[place].1)
}

fn path_by_lid(site: &Site<'_>) -> Result<(), String> {
    let (from, to, ..) = path_ends(site);
    let (from, to) = (from.to_string(), to.to_string());
    is_the_path(site, &saquery(site, &["PR", "--slid", &from, "--dlid", &to])?)
}

fn path_by_gid(site: &Site<'_>) -> Result<(), String> {
    let (_, _, from, to) = path_ends(site);
    is_the_path(site, &saquery(site, &["--sgid-to-dgid", &format!("{from}-{to}")])?)
}

fn paths_from(site: &Site<'_>) -> Result<(), String> {
    let from = site.lid(site.host);
    let text = saquery(site, &["PR", "--slid", &from.to_string()])?;
    let found: Result<BTreeSet<Lid>, String> = records(&text).map(|record| lid_in(record, "dlid")).collect();
    expect_equal("destinations", &found?, &site.lids.iter().map(|lids| lids.base).collect())
}

fn paths(site: &Site<'_>) -> Result<(), String> {
    let text = saquery(site, &["PR"])?;
    let mut found = BTreeSet::new();
    for record in records(&text) {
        found.insert((lid_in(record, "slid")?, lid_in(record, "dlid")?));
    }
    expect_equal("pairs", &found.len(), &(site.lids.len() * site.lids.len()))
}

fn descriptions(site: &Site<'_>) -> Result<(), String> {
    let text = saquery(site, &["-D"])?;
    for (_, host) in site.fabric.hosts() {
        if !text.contains(&host.description) {
            return Err(format!("no {:?}", host.description));
        }
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    if lines >= site.fabric.hosts().count() { Ok(()) } else { Err(format!("{lines} lines")) }
}

fn name_of_lid(site: &Site<'_>) -> Result<(), String> {
    for (index, node) in site.fabric.iter() {
        let text = saquery(site, &["-O", &site.lid(index).to_string()])?;
        expect_equal("name", &text.trim(), &node.description.as_str())?;
    }
    Ok(())
}

fn sm_ports(site: &Site<'_>) -> Result<(), String> {
    let text = saquery(site, &["-s"])?;
    let found: Vec<&str> = text.lines().filter_map(|line| field(line, "EndPortLid")).collect();
    expect_equal("LIDs", &found, &vec![site.lid(site.host).to_string().as_str()])
}

fn nothing_registered(site: &Site<'_>) -> Result<(), String> {
    for option in ["-S", "-I"] {
        expect_equal(option, &saquery(site, &[option])?.trim(), &"")?;
    }
    Ok(())
}
