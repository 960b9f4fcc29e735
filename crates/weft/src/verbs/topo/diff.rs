//! `weft topo diff`: cablings of files and of a laboratory that runs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::topology_file;
use weft_control::agent::{DeviceStatus, NodeKind, PortEnd, PortStatus};
use weft_control::{Answer, HexGuid, Page, Request};
use weft_lab::agents::{ask_agents, further, read_ports};
use weft_lab::recabling::Turn;
use weft_lab::view::Lab;
use weft_topology::{
    Difference, Fabric, FabricBuilder, LinkMasks, LinkRate, Node, NodeType, PortId, PortRef,
};
use weft_wire::{Guid, LinkParameters, PortNum, count_of};

use crate::cli::recable::DiffArgs;
use crate::output::{print, print_json, say};

/// What tells two cablings apart.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Told {
    Known(Difference),
    Half(HalfCable),
}

/// A cable that only one of its ends has.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "difference", rename = "half_cable")]
struct HalfCable {
    /// The end that has it.
    a: PortId,
    /// The end that has it not.
    b: PortId,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(difference) => difference.fmt(f),
            Self::Half(HalfCable { a, b }) => write!(f, "! cable {a} {b} only at {a}"),
        }
    }
}

pub(super) fn run(lab: impl Fn() -> anyhow::Result<LabFolder>, args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let told = match (&args.left, &args.right) {
        (Some(left), Some(right)) => {
            let (first, second) = (topology_file::load(left)?, topology_file::load(right)?);
            known(weft_topology::diff(&first, &second))
        }
        (file, None) => with_running(&lab()?, file.as_deref())?,
        // The first argument is the first file.
        (None, Some(_)) => return Err(Failure::bad_input("name the first file").into()),
    };
    if args.json {
        print_json(&told)?;
    } else {
        print(&told.iter().map(|difference| format!("{difference}\n")).collect::<String>())?;
        if told.is_empty() {
            say("the cablings are the same");
        }
    }
    Ok(if told.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn known(differences: Vec<Difference>) -> Vec<Told> {
    differences.into_iter().map(Told::Known).collect()
}

/// What tells a file, or else what was written down of a laboratory, from what its agents have.
fn with_running(folder: &LabFolder, file: Option<&Path>) -> anyhow::Result<Vec<Told>> {
    // What was interrupted is finished first.
    let _turn = Turn::take(folder)?;
    let lab = Lab::load(folder)?;
    let expected = match (file, lab.record.vfs) {
        (None, _) => lab.fabric.clone(),
        (Some(file), None) => topology_file::load(file)?,
        (Some(file), Some(_)) => virtualised_alike(&topology_file::load(file)?, &lab.fabric)?,
    };
    let (running, mut halves) = running(&lab, &expected)?;
    let mut told = known(weft_topology::diff(&expected, &running));
    told.append(&mut halves);
    Ok(told)
}

/// A cabling in which HCAs have as many virtual functions as in another one.
fn virtualised_alike(physical: &Fabric, other: &Fabric) -> anyhow::Result<Fabric> {
    let adapters = other.virtualised_adapters().into_iter();
    let count = |vfs: usize| u16::try_from(vfs).unwrap_or(u16::MAX);
    let counts: BTreeMap<Guid, u16> =
        adapters.map(|adapter| (other.node(adapter.pf).guid, count(adapter.vfs.len()))).collect();
    Ok(physical.virtualised_by(|hca| counts.get(&physical.node(hca).guid).copied())?.fabric)
}

/// The cabling as its agents have it, and what only one end of a cable has.
fn running(lab: &Lab, expected: &Fabric) -> anyhow::Result<(Fabric, Vec<Told>)> {
    let agents = || lab.record.agents.iter().map(|agent| agent.name.as_str());
    let mut devices: Vec<DeviceStatus> = Vec::new();
    ask_agents(&lab.folder, agents(), &Request::Devices(Page::default()), |_, answer| {
        let Answer::Devices { devices: told, more } = answer else { return None };
        let next = further(told.last().map(|device| PortEnd::of_node(device.node)), more);
        devices.extend(told);
        next.map(Request::Devices)
    })?;
    let ports = read_ports(&lab.folder, agents())?;
    if !ports.silent.is_empty() {
        let count = count_of(ports.silent.len(), "agent");
        say(&format!("{count} not running: their nodes and cables count as missing"));
    }
    let ports: Vec<PortStatus> = ports.told.into_values().collect();
    build(expected, &devices, &ports)
}

/// The fabric that agents tell of.
fn build(
    expected: &Fabric,
    devices: &[DeviceStatus],
    ports: &[PortStatus],
) -> anyhow::Result<(Fabric, Vec<Told>)> {
    // Slots of virtual machines are named by the GUIDs that they began with.
    let of_slots: BTreeMap<HexGuid, HexGuid> =
        ports.iter().filter_map(|port| Some((port.end.node, port.slot?.slot))).collect();
    let named = |guid: HexGuid| of_slots.get(&guid).copied().unwrap_or(guid).0;
    let mut builder = FabricBuilder::new();
    let mut masks: BTreeMap<(Guid, PortNum), LinkMasks> = BTreeMap::new();
    for port in ports {
        masks.insert((named(port.end.node), port.end.port), enabled(expected, named(port.end.node), port));
    }
    for device in devices {
        let guid = named(device.node);
        let mut node = Node::new(kind(device.kind), guid, device.ports, LinkRate::default());
        node.description.clone_from(&device.description);
        for (port, number) in node.ports.iter_mut().zip(0..) {
            if let Some(masks) = masks.get(&(guid, PortNum(number))) {
                port.enabled = *masks;
            }
        }
        builder.add_node(node)?;
    }
    let end = |builder: &FabricBuilder, end: PortEnd| {
        builder.fabric().by_guid(end.node.0).map(|node| PortRef::new(node, end.port))
    };
    let peers: BTreeMap<PortEnd, PortEnd> = ports
        .iter()
        .filter_map(|port| Some((renamed(port.end, named), renamed(port.peer?, named))))
        .collect();
    let mut halves = Vec::new();
    for (a, b) in &peers {
        // What an agent that does not run has is not known.
        let Some((here, there)) = end(&builder, *a).zip(end(&builder, *b)) else { continue };
        if peers.get(b) != Some(a) {
            halves.push(Told::Half(HalfCable { a: id(*a), b: id(*b) }));
        } else if a < b {
            builder.connect(here, there)?;
        }
    }
    Ok((builder.build(), halves))
}

fn renamed(end: PortEnd, named: impl Fn(HexGuid) -> Guid) -> PortEnd {
    PortEnd { node: HexGuid(named(end.node)), port: end.port }
}

fn id(end: PortEnd) -> PortId {
    PortId { guid: end.node.0, port: end.port }
}

fn kind(kind: NodeKind) -> NodeType {
    match kind {
        NodeKind::Switch => NodeType::Switch,
        NodeKind::Router => NodeType::Router,
        NodeKind::Hca | NodeKind::Other => NodeType::Hca,
    }
}

/// What a port allows its link to be: what its link is, or, while it has none, what is expected of it.
fn enabled(expected: &Fabric, guid: Guid, port: &PortStatus) -> LinkMasks {
    let at = expected.by_guid(guid).map(|node| PortRef::new(node, port.end.port));
    let expected = at.and_then(|at| expected.port(at)).map(|port| port.link).unwrap_or_default().enabled();
    let &PortStatus { width_active: width, speed_active: speed, speed_ext_active: speed_ext, .. } = port;
    let active = LinkMasks::from(LinkParameters { width, speed, speed_ext }).best();
    // PortInfo shows FDR10 as QDR, and the second extended speeds as the best of the first.
    let shown = LinkMasks { fdr10: false, speed_ext: expected.speed_ext & 0xf, ..expected }.best();
    match active {
        Some(active) if port.link_up && Some(active) != shown => active.enabled(),
        _ => expected,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use weft_control::agent::SlotUse;

    use super::*;

    const SWITCH: u64 = 0x10;

    /// A switch with hosts 0x20 and 0x30 at ports 1 and 2, whose links are up at this rate.
    fn agents(rate: LinkRate) -> (Fabric, Vec<DeviceStatus>, Vec<PortStatus>) {
        let mut builder = FabricBuilder::new();
        let mut devices = Vec::new();
        for (guid, ports, kind) in
            [(SWITCH, 2, NodeKind::Switch), (0x20, 1, NodeKind::Hca), (0x30, 1, NodeKind::Hca)]
        {
            let node = Node::new(super::kind(kind), Guid(guid), ports, rate);
            builder.add_node(node).unwrap();
            devices.push(DeviceStatus { node: HexGuid(Guid(guid)), ports, kind, ..DeviceStatus::default() });
        }
        let mut ports = Vec::new();
        for (port, host) in [(1, 0x20), (2, 0x30)] {
            let ends = [end(SWITCH, port), end(host, 1)];
            let [a, b] =
                ends.map(|end| PortRef::new(builder.fabric().by_guid(end.node.0).unwrap(), end.port));
            builder.connect(a, b).unwrap();
            for (end, peer) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                ports.push(up(end, peer, rate.enabled()));
            }
        }
        (builder.build(), devices, ports)
    }

    fn end(guid: u64, port: u8) -> PortEnd {
        PortEnd { node: HexGuid(Guid(guid)), port: PortNum(port) }
    }

    /// A port as an agent tells of it: the best of its masks, as PortInfo shows that.
    fn up(end: PortEnd, peer: PortEnd, masks: LinkMasks) -> PortStatus {
        let best = |mask: u8| if mask == 0 { 0 } else { 1 << mask.ilog2() };
        PortStatus {
            end,
            peer: Some(peer),
            link_up: true,
            width_active: masks.best().unwrap().width.mask(),
            speed_active: best(masks.speed & 7),
            speed_ext_active: best(masks.speed_ext & 0xf),
            ..PortStatus::default()
        }
    }

    fn told(expected: &Fabric, devices: &[DeviceStatus], ports: &[PortStatus]) -> Vec<String> {
        let (running, halves) = build(expected, devices, ports).unwrap();
        let known = known(weft_topology::diff(expected, &running));
        known.iter().chain(&halves).map(ToString::to_string).collect()
    }

    #[test]
    fn agents_that_have_what_is_expected_differ_in_nothing() {
        for rate in ["1xSDR", "4xQDR", "4xFDR10", "12xFDR", "4xEDR", "4xNDR", "2xXDR"] {
            let (expected, devices, ports) = agents(rate.parse().unwrap());
            assert_eq!(told(&expected, &devices, &ports), [""; 0], "{rate}");
        }
    }

    #[test]
    fn diff_reports_agents_that_differ_from_the_plan() {
        let (expected, devices, ports) = agents("4xQDR".parse().unwrap());
        let mut slow = ports.clone();
        slow[0..2].iter_mut().for_each(|port| (port.width_active, port.speed_active) = (1, 1));
        let rate = "! cable 0x0000000000000010[1] 0x0000000000000020[1] rate 4xQDR -> 1xSDR";
        assert_eq!(told(&expected, &devices, &slow), [rate]);
        // A link that is down has no rate of its own.
        slow.iter_mut().for_each(|port| port.link_up = false);
        assert_eq!(told(&expected, &devices, &slow), [""; 0]);
        let mut half = ports.clone();
        half[1].peer = None;
        let missing = "- cable 0x0000000000000010[1] 0x0000000000000020[1]";
        let half_cable = "! cable 0x0000000000000010[1] 0x0000000000000020[1] only at 0x0000000000000010[1]";
        assert_eq!(told(&expected, &devices, &half), [missing, half_cable]);
        let dead = told(&expected, &devices[..2], &ports[..3]);
        assert!(dead[0].starts_with("- node 0x0000000000000030"), "{dead:?}");
        assert!(dead[1].starts_with("- cable 0x0000000000000010[2]"), "{dead:?}");
        assert_eq!(dead.len(), 2, "{dead:?}");
    }

    #[test]
    fn slots_are_where_they_began_whatever_sits_in_them() {
        let (expected, mut devices, mut ports) = agents("4xQDR".parse().unwrap());
        // The two have changed places: each GUID is at the other's cable.
        let other = |guid: HexGuid| match guid.0.0 {
            0x20 => HexGuid(Guid(0x30)),
            0x30 => HexGuid(Guid(0x20)),
            _ => guid,
        };
        for port in &mut ports {
            let slot = (port.end.node.0.0 != SWITCH)
                .then_some(SlotUse { slot: port.end.node, ..SlotUse::default() });
            port.slot = slot;
            port.end.node = other(port.end.node);
            port.peer.iter_mut().for_each(|peer| peer.node = other(peer.node));
        }
        devices.iter_mut().for_each(|device| device.node = other(device.node));
        assert_eq!(told(&expected, &devices, &ports), [""; 0]);
    }
}
