//! Programs that walk the fabric: ibnetdiscover and its kin.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use weft_topology::PortRef;
use weft_wire::{Guid, NodeType, PortNum};

use super::{Case, case};
use crate::Site;
use crate::opensm::hexadecimal;
use crate::site::expect_equal;

pub(super) const CASES: &[Case] = &[
    case("ibnetdiscover", "the cabling, by `weft topo diff`", whole_cabling),
    case("ibnetdiscover -p", "both ends of every cable", ports_report),
    case("ibnetdiscover -l", "every node: GUID, kind, description", list_of_nodes),
    case("ibnetdiscover --cache, --load-cache", "the cabling, out of the cache", through_a_cache),
    case("iblinkinfo", "both ends, width, speed and state of every cable", link_info),
    case("ibhosts", "every HCA's GUID", |site| nodes_of_kind(site, "ibhosts", &[NodeType::Hca])),
    case("ibswitches", "every switch's GUID", |site| nodes_of_kind(site, "ibswitches", &[NodeType::Switch])),
    case("ibnodes", "every node's GUID", |site| {
        nodes_of_kind(site, "ibnodes", &[NodeType::Hca, NodeType::Switch])
    }),
    case("ibrouters", "that there is none", |site| nodes_of_kind(site, "ibrouters", &[NodeType::Router])),
    case("ibidsverify -R", "that no LID and no GUID is there twice", ids_verify),
    case("ibfindnodesusing", "the hosts behind a switch's port, by the routes", nodes_using),
    case("ibstat", "GUIDs, LID, subnet manager's LID, state, rate", stat),
    case("ibstat -p", "the port's GUID", stat_ports),
];

fn cabling(site: &Site<'_>, text: &str) -> Result<(), String> {
    let walked = weft_topology::parse("ibnetdiscover", text).map_err(|error| error.to_string())?;
    let differences = weft_topology::diff(site.fabric, &walked);
    match differences.first() {
        None => expect_equal("cables", &walked.cables().count(), &site.fabric.cables().count()),
        Some(first) => Err(format!("{} differences, the first: {first}", differences.len())),
    }
}

fn whole_cabling(site: &Site<'_>) -> Result<(), String> {
    cabling(site, &site.read("ibnetdiscover", &[])?)
}

fn through_a_cache(site: &Site<'_>) -> Result<(), String> {
    let file = site.file("discovered.cache");
    let file = file.to_str().ok_or("a folder's name that is no text")?;
    site.read("ibnetdiscover", &[&format!("--cache={file}")])?;
    cabling(site, &site.read("ibnetdiscover", &[&format!("--load-cache={file}")])?)
}

/// Both ends of every cable: GUID as ibnetdiscover prints it (of a switch the node's, of an HCA the port's), port.
fn ends(site: &Site<'_>) -> BTreeSet<((Guid, PortNum), (Guid, PortNum))> {
    let name = |end: PortRef| {
        let node = site.fabric.node(end.node);
        let guid = if node.is_switch() { node.guid } else { node.ports[usize::from(end.port.0)].guid };
        (guid, end.port)
    };
    site.fabric
        .cables()
        .flat_map(|cable| [(name(cable.a), name(cable.b)), (name(cable.b), name(cable.a))])
        .collect()
}

/// `SW    11 21 0x… 4x QDR - SW     6  5 0x… ( '…' - '…' )`.
fn ports_report(site: &Site<'_>) -> Result<(), String> {
    let text = site.read("ibnetdiscover", &["-p"])?;
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| line.contains(" ( '")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, port, guid, _, _, "-", _, _, peer_port, peer_guid, ..] = words[..] else {
            return Err(format!("a line of another shape: {line}"));
        };
        let number = |text: &str| text.parse().map(PortNum).map_err(|_| format!("a port {text} in: {line}"));
        found.insert((
            (Guid(hexadecimal(guid)), number(port)?),
            (Guid(hexadecimal(peer_guid)), number(peer_port)?),
        ));
    }
    expect_equal("ends of cables", &found, &ends(site))
}

fn nodes_listed(text: &str) -> Result<BTreeMap<Guid, String>, String> {
    let lines = text.lines().filter(|line| line.contains(": 0x"));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let guid = words.iter().find(|word| word.starts_with("0x")).ok_or("a line without a GUID")?;
            let description = line.split('"').nth(1).ok_or_else(|| format!("no description in: {line}"))?;
            Ok((Guid(hexadecimal(guid)), description.to_owned()))
        })
        .collect()
}

fn nodes_known(site: &Site<'_>, kinds: &[NodeType]) -> BTreeMap<Guid, String> {
    let nodes = site.fabric.nodes().iter().filter(|node| kinds.contains(&node.kind));
    nodes.map(|node| (node.guid, node.description.clone())).collect()
}

fn list_of_nodes(site: &Site<'_>) -> Result<(), String> {
    let found = nodes_listed(&site.read("ibnetdiscover", &["-l"])?)?;
    expect_equal("nodes", &found, &nodes_known(site, &[NodeType::Hca, NodeType::Switch]))
}

fn nodes_of_kind(site: &Site<'_>, program: &str, kinds: &[NodeType]) -> Result<(), String> {
    expect_equal("nodes", &nodes_listed(&site.read(program, &[])?)?, &nodes_known(site, kinds))
}

/// `  11    1[  ] ==( 4X  10.0 Gbps Active/  LinkUp)==>  8    6[  ] "…" ( )`, after a heading with the switch's GUID;
/// an HCA's line has its port's GUID in front.
fn link_info(site: &Site<'_>) -> Result<(), String> {
    let text = site.read("iblinkinfo", &[])?;
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| line.contains("==>") && !line.contains("Down/")) {
        let (left, rest) = line.split_once("==(").ok_or("no state")?;
        let (state, right) = rest.split_once(")==>").ok_or("no peer")?;
        let before_bracket = |part: &str| {
            let words: Vec<String> = part.split('[').next()?.split_whitespace().map(str::to_owned).collect();
            let [.., lid, port] = &words[..] else { return None };
            Some((lid.parse::<u16>().ok()?, port.parse::<u8>().ok()?))
        };
        let ends = before_bracket(left).zip(before_bracket(right));
        let state = state.split_whitespace().collect::<Vec<_>>().join(" ");
        found.insert((ends.ok_or_else(|| format!("a line of another shape: {line}"))?, state));
    }
    let known = site.fabric.cables().flat_map(|cable| {
        let end = |end: PortRef| (site.lid_of_port(end).0, end.port.0);
        let state = format!("{} Active/ LinkUp", diags_rate(&cable.rate.to_string()));
        [((end(cable.a), end(cable.b)), state.clone()), ((end(cable.b), end(cable.a)), state)]
    });
    expect_equal("ends of cables", &found, &known.collect())
}

/// `4xQDR` as iblinkinfo writes it.
fn diags_rate(rate: &str) -> String {
    let (width, speed) = rate.split_once('x').unwrap_or((rate, ""));
    let gigabits = match speed {
        "SDR" => "2.5",
        "DDR" => "5.0",
        "QDR" => "10.0",
        "FDR" => "14.0625",
        "EDR" => "25.78125",
        "HDR" => "53.125",
        other => other,
    };
    format!("{width}X {gigabits} Gbps")
}

/// The programs in Perl keep the fabric in one file of the machine's, whichever fabric it is: only one may write and read it at a time.
static TOPOLOGY_FILE: Mutex<()> = Mutex::new(());

fn read_in_turn(site: &Site<'_>, program: &str, arguments: &[&str]) -> Result<String, String> {
    let _turn = TOPOLOGY_FILE.lock().unwrap_or_else(PoisonError::into_inner);
    site.read(program, arguments)
}

fn ids_verify(site: &Site<'_>) -> Result<(), String> {
    let text = read_in_turn(site, "ibidsverify", &["-R"])?;
    expect_equal("complaints", &text.trim(), &"")
}

fn nodes_using(site: &Site<'_>) -> Result<(), String> {
    let (switch, port) = site.far_switch();
    let guid = format!("{}", site.fabric.node(switch).guid);
    let text = read_in_turn(site, "ibfindnodesusing", &["-R", &guid, &port.0.to_string()])?;
    let described: BTreeSet<&str> = site.fabric.hosts().map(|(_, host)| host.description.as_str()).collect();
    let routed = site.fabric.hosts().filter(|(host, _)| site.routes.port(switch, site.lid(*host)) == port);
    let mut wanted = routed.map(|(_, host)| host.description.as_str()).collect::<Vec<_>>();
    wanted.sort_unstable();
    // The hosts stand between the two lines with an arrow, parted by blanks.
    let said: String = text.lines().filter(|line| !line.contains("==")).collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for description in described {
        found.extend(std::iter::repeat_n(description, said.matches(description).count()));
    }
    expect_equal("hosts", &found, &wanted)
}

fn stat(site: &Site<'_>) -> Result<(), String> {
    let text = site.read("ibstat", &[])?;
    let host = site.fabric.node(site.host);
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).ok_or_else(|| format!("there is no {name}"))
    };
    let lid = site.lid(site.host).0.to_string();
    let (port, _) = host.cabled_ports().next().ok_or("a host without a cable")?;
    expect_equal("Node GUID", &value("Node GUID")?, &host.guid.to_string().as_str())?;
    expect_equal(
        "Port GUID",
        &value("Port GUID")?,
        &host.ports[usize::from(port.0)].guid.to_string().as_str(),
    )?;
    expect_equal("State", &value("State")?, &"Active")?;
    expect_equal("Physical state", &value("Physical state")?, &"LinkUp")?;
    expect_equal("Base lid", &value("Base lid")?, &lid.as_str())?;
    expect_equal("SM lid", &value("SM lid")?, &lid.as_str())?;
    let lanes: u32 = 4;
    let per_lane = match host.ports[usize::from(port.0)].link.to_string() {
        rate if rate.ends_with("QDR") => 10,
        rate if rate.ends_with("DDR") => 5,
        rate => return Err(format!("a rate that this test does not know: {rate}")),
    };
    expect_equal("Rate", &value("Rate")?, &(lanes * per_lane).to_string().as_str())
}

fn stat_ports(site: &Site<'_>) -> Result<(), String> {
    let text = site.read("ibstat", &["-p"])?;
    let guids: Vec<Guid> =
        text.lines().filter(|l| l.starts_with("0x")).map(|l| Guid(hexadecimal(l))).collect();
    let host = site.fabric.node(site.host);
    expect_equal("GUIDs", &guids, &host.end_ports().map(|(_, port)| port.guid).collect())
}
