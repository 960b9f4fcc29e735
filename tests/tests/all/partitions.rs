//! Partitions with limited members, by OpenSM's file and with its enforcement at switches, under OpenSM and under weft's
//! own manager: what must pass passes, and nothing else does.

use std::collections::BTreeSet;
use std::time::Duration;

use weft_judges::{Lab, OpenSm, first_host, opensm, output_of};
use weft_routing::Lids;
use weft_topology::generate::{self, GenerateOptions};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_umad::{Client, ServerMessage};
use weft_wire::{
    AddressedMad, AttributeId, Lid, Mad, MadHeader, Method, MgmtClass, PortNum, ServiceLevel, TransactionId,
};

/// How long an answer is waited for that should come, and one that should not.
const PATIENCE: [Duration; 2] = [Duration::from_secs(10), Duration::from_millis(500)];

fn tree() -> Fabric {
    generate::xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap()
}

/// OpenSM's documented default, and a partition of the second host, in full, and the fourth, limited.
fn file(fabric: &Fabric) -> String {
    let guid = |host: usize| fabric.node(hosts(fabric)[host]).ports[1].guid;
    format!("Default=0x7fff : ALL, SELF=full ;\npair=0x0002 : {}=full, {}=limited ;\n", guid(1), guid(3))
}

fn hosts(fabric: &Fabric) -> Vec<NodeIndex> {
    fabric.hosts().map(|(index, _)| index).collect()
}

/// Whether an adapter answers a GMP that a host sends by an entry of its table, within some time.
fn passes(
    lab: &Lab,
    fabric: &Fabric,
    from: NodeIndex,
    (lid, pkey_index): (Lid, u16),
    patience: Duration,
) -> bool {
    let socket = lab.folder().join(format!("w/default/sockets/a{:04}", from.index()));
    let mut client = Client::connect(&socket).unwrap();
    client.attach(fabric.node(from).guid, PortNum(1), Vec::new(), Duration::from_secs(10)).unwrap();
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::Perf,
        class_version: 1,
        method: Method::Get,
        transaction_id: TransactionId(7),
        attribute_id: AttributeId::ClassPortInfo,
        ..MadHeader::default()
    });
    client.send(&AddressedMad { pkey_index, ..AddressedMad::gmp(lid, ServiceLevel(0), mad) }).unwrap();
    client.flush().unwrap();
    matches!(client.recv(patience).unwrap(), Some(ServerMessage::Receive(_)))
}

/// The first host has the manager, and is a full member of the default partition. The others are limited ones, and two
/// of them share the other partition.
fn holds(what: &str, lab: &Lab, fabric: &Fabric, lids: &Lids) {
    let hosts = hosts(fabric);
    let lid = |host: usize| lids.of(PortRef::new(hosts[host], PortNum(1))).unwrap().base;
    for (from, host) in hosts.iter().enumerate() {
        let found = output_of(lab.command("saquery", fabric.node(*host), &[]).arg("-N"));
        let (found, all) = (found.matches("NodeRecord dump").count(), fabric.nodes().len());
        // OpenSM shows a limited member only those whom it shares a partition with.
        let least = if what.contains("OpenSM") && from > 0 { 1 } else { all };
        assert!((least..=all).contains(&found), "{what}: host {from} sees {found} nodes");
    }
    let (default, pair) = (0, 1);
    for (from, to, entry, passes_it) in [
        (1, 0, default, true),
        (3, 0, default, true),
        (0, 2, default, true),
        (1, 2, default, false),
        (2, 3, default, false),
        (3, 1, default, false),
        (1, 3, pair, true),
        (3, 1, pair, true),
        (1, 2, pair, false),
        (3, 0, pair, false),
    ] {
        let [some, short] = PATIENCE;
        let patience = if passes_it { some } else { short };
        let found = passes(lab, fabric, hosts[from], (lid(to), entry), patience);
        assert_eq!(found, passes_it, "{what}: from host {from} to host {to} by entry {entry}");
    }
    dropped_where_it_should(what, lab, fabric, lids);
}

/// Where switches look at what goes to hosts, they have dropped what the hosts would have; nowhere else have they.
fn dropped_where_it_should(what: &str, lab: &Lab, fabric: &Fabric, lids: &Lids) {
    let (mut inbound, mut outbound) = (0, 0);
    let (manager, _) = first_host(fabric);
    for host in hosts(fabric) {
        let (_, leaf) = fabric.node(host).cabled_ports().next().unwrap();
        let lid = lids.of(PortRef::new(leaf.node, PortNum(0))).unwrap().base;
        let mut command = lab.command("perfquery", fabric.node(manager), &[]);
        let text = output_of(command.args([lid.to_string(), leaf.port.0.to_string()]));
        let count = |name: &str| {
            let line =
                text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{text}"));
            line.trim_start_matches([':', '.']).parse::<u32>().unwrap()
        };
        inbound += count("PortRcvConstraintErrors");
        outbound += count("PortXmitConstraintErrors");
    }
    let looks_outbound = what.contains("both") || what.contains("out");
    assert_eq!((inbound, outbound), (0, if looks_outbound { 5 } else { 0 }), "{what}");
}

#[test]
fn opensm_keeps_limited_members_apart_and_served() {
    let fabric = tree();
    for enforcement in ["both", "in", "out", "off"] {
        let lab = Lab::start(&fabric, &["--no-sm"]);
        let path = lab.folder().join("partitions.conf");
        std::fs::write(&path, file(&fabric)).unwrap();
        let mut command = lab.command("opensm", first_host(&fabric).1, &[]);
        command.args(["-Z", enforcement, "-P"]).arg(&path);
        let _opensm = OpenSm::start(command, lab.folder());
        let (lids, _) = opensm::written(&fabric, lab.folder());
        holds(&format!("OpenSM -Z {enforcement}"), &lab, &fabric, &lids);
    }
}

#[test]
fn weft_keeps_limited_members_apart_and_served() {
    let fabric = tree();
    for enforcement in ["both", "in", "out", "off"] {
        let lab = Lab::start_with(&fabric, |folder| {
            let path = folder.join("partitions.conf");
            std::fs::write(&path, file(&fabric)).unwrap();
            let path = path.to_str().unwrap().to_owned();
            ["--part-enforce", enforcement, "--partitions", &path].map(str::to_owned).to_vec()
        });
        let lids = opensm::lids_of(&fabric, &lab.guid2lid());
        holds(&format!("weft --part-enforce {enforcement}"), &lab, &fabric, &lids);
    }
}

/// Hosts that each may see, by hand from the file. The first, the manager's, sees switches too.
const SEEN: [&[usize]; 4] = [&[0, 1, 2, 3], &[0, 1, 3], &[0, 2], &[0, 1, 3]];

/// The values of a field in what `saquery` prints, as GUIDs: of a GID the lower half.
fn guids(printed: &str, field: &str) -> Vec<u64> {
    let values = printed.lines().filter_map(|line| line.trim_start().strip_prefix(field)?.strip_prefix(".."));
    let values = values.map(|value| value.trim_start_matches('.').trim());
    let guid = |value: &str| match value.parse::<std::net::Ipv6Addr>() {
        Ok(gid) => u128::from(gid) as u64,
        Err(_) => {
            u64::from_str_radix(value.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{value}"))
        }
    };
    values.map(guid).collect()
}

/// What each host sees: the ports of nodes, and the ends of paths.
type Told = Vec<(BTreeSet<u64>, BTreeSet<(u64, u64)>)>;

fn told(lab: &Lab, fabric: &Fabric) -> Told {
    let of_host = |host: &NodeIndex| {
        let node = fabric.node(*host);
        let nodes = guids(&lab.says(node, "saquery NR"), "port_guid");
        let paths = lab.says(node, "saquery PR");
        let (from, to) = (guids(&paths, "sgid"), guids(&paths, "dgid"));
        assert_eq!(from.len(), to.len(), "{paths}");
        let hosts: BTreeSet<u64> = fabric.hosts().map(|(_, node)| node.ports[1].guid.0).collect();
        // OpenSM has no path from a limited member to itself.
        let between = |(from, to): &(u64, u64)| from != to && hosts.contains(from) && hosts.contains(to);
        let ends = from.into_iter().zip(to).filter(between);
        (nodes.into_iter().collect(), ends.collect())
    };
    hosts(fabric).iter().map(of_host).collect()
}

/// What each host may see by the file.
fn allowed(fabric: &Fabric) -> Told {
    let ends: Vec<u64> = fabric.hosts().map(|(_, node)| node.ports[1].guid.0).collect();
    let of_host = |host: usize| {
        let switches = fabric.switches().map(|(_, node)| node.guid.0).filter(|_| host == 0);
        let nodes = SEEN[host].iter().map(|other| ends[*other]).chain(switches).collect();
        let pairs = SEEN[host].iter().flat_map(|from| SEEN[host].iter().map(move |to| (*from, *to)));
        let paths = pairs
            .filter(|(from, to)| from != to && SEEN[*from].contains(to))
            .map(|(from, to)| (ends[from], ends[to]));
        (nodes, paths.collect())
    };
    (0..ends.len()).map(of_host).collect()
}

/// With `--sa-partitions` weft's subnet administration tells each host what OpenSM's does, and to who shows the key everything.
#[test]
fn each_host_is_told_of_its_partitions_alone_as_by_opensm() {
    let fabric = tree();
    let lab = Lab::start_with(&fabric, |folder| {
        let (path, key) = (folder.join("partitions.conf"), folder.join("sa.key"));
        std::fs::write(&path, file(&fabric)).unwrap();
        std::fs::write(&key, "0x77\n").unwrap();
        let [path, key] = [path, key].map(|path| path.to_str().unwrap().to_owned());
        ["--sa-partitions", "--partitions", &path, "--sa-key", &format!("@{key}")].map(str::to_owned).to_vec()
    });
    let by_weft = told(&lab, &fabric);
    assert_eq!(by_weft, allowed(&fabric));
    let second = fabric.node(hosts(&fabric)[1]);
    let trusted = guids(&lab.says(second, "saquery --smkey 0x77 NR"), "port_guid");
    assert_eq!(trusted.len(), fabric.nodes().len(), "with the key");
    output_of(&mut lab.weft(&["check"]));
    drop(lab);

    let lab = Lab::start(&fabric, &["--no-sm"]);
    let path = lab.folder().join("partitions.conf");
    std::fs::write(&path, file(&fabric)).unwrap();
    let mut command = lab.command("opensm", first_host(&fabric).1, &[]);
    command.arg("-P").arg(&path);
    let _opensm = OpenSm::start(command, lab.folder());
    opensm::written(&fabric, lab.folder());
    assert_eq!(told(&lab, &fabric), by_weft, "OpenSM");
}
