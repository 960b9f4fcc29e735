//! The cabling: `opensm-subnet.lst`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use weft_topology::{Fabric, FabricBuilder, LinkRate, LinkSpeed, LinkWidth, Node, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, NodeType, PortNum};

use super::dump::{Description, Dump, order};
use super::error::{FileError, FileProblem};
use super::scan::{self, Line};

use crate::sorted;

/// What the devices of weft answer in NodeInfo.
const REVISION: u32 = 0;
/// The speeds, as OpenSM 3.3.23 spells them; what it does not know is `??`.
const SPEEDS: [(&str, LinkSpeed); 7] = [
    ("2.5", LinkSpeed::Sdr),
    ("5", LinkSpeed::Ddr),
    ("10", LinkSpeed::Qdr),
    ("FDR10", LinkSpeed::Fdr10),
    ("14", LinkSpeed::Fdr),
    ("25", LinkSpeed::Edr),
    ("50", LinkSpeed::Hdr),
];
/// Those that later ones name too.
const LATER_SPEEDS: [(&str, LinkSpeed); 2] = [("100", LinkSpeed::Ndr), ("200", LinkSpeed::Xdr)];
/// What an adapter's port has before a manager gives it a LID.
const NO_LID: u64 = 0xffff;

/// One end of a cable, as a line has it.
struct End {
    kind: NodeType,
    port_count: u8,
    system_image_guid: Guid,
    node_guid: Guid,
    port_guid: Guid,
    vendor_id: u32,
    device_id: u16,
    description: String,
    lid: Lid,
    port: PortNum,
}

/// Reads `opensm-subnet.lst`, and `ibdiagnet2.lst` with its head: the nodes that have cables, their cables and their LIDs. LMCs are not in
/// it. Of a speed that OpenSM has no name for (`??`) nothing is known, so that the port has the default; such a width can only be 2x,
/// which older versions do not name.
pub fn parse_subnet(file: &str, text: &str) -> Result<Fabric, FileError> {
    let mut builder = FabricBuilder::new();
    let mut nodes: BTreeMap<Guid, Node> = BTreeMap::new();
    let mut order: Vec<Guid> = Vec::new();
    let mut cables: Vec<(Line<'_>, [(Guid, PortNum); 2])> = Vec::new();
    let mut begun = false;
    for line in scan::lines(file, text, false) {
        begun |= line.rest().trim_start().starts_with('{');
        // Before the first line comes ibdiagnet's head, and comments may stand anywhere.
        if !begun || line.rest().trim_start().starts_with('#') {
            continue;
        }
        let mut rest = line;
        let ends = [end(&mut rest)?, end(&mut rest)?];
        let (rate, is_up) = link(&mut rest)?;
        rest.end()?;
        for end in &ends {
            let node = nodes.entry(end.node_guid).or_insert_with(|| {
                order.push(end.node_guid);
                node(end, rate)
            });
            note_port(node, end, rate);
        }
        if is_up {
            cables.push((line, ends.map(|end| (end.node_guid, end.port))));
        }
    }
    let mut places: BTreeMap<Guid, NodeIndex> = BTreeMap::new();
    for guid in order {
        let Some(node) = nodes.remove(&guid) else { continue };
        let first = || cables.iter().find(|(_, ends)| ends.iter().any(|(node, _)| *node == guid));
        let index = builder.add_node(node).map_err(|error| match first() {
            Some((line, _)) => line.error(error.into()),
            None => FileError::of(file, error),
        })?;
        places.insert(guid, index);
    }
    for (line, [a, b]) in cables {
        let [a, b] = [a, b].map(|(guid, port)| PortRef::new(places[&guid], port));
        // Each cable stands there twice, once from each end.
        if builder.fabric().peer(a) != Some(b) {
            builder.connect(a, b).map_err(|error| line.error(error.into()))?;
        }
    }
    Ok(builder.build())
}

/// `{ CA Ports:01 SystemGUID:… NodeGUID:… PortGUID:… VenID:… DevID:… Rev:… {description} LID:0001 PN:01 }`
fn end(line: &mut Line<'_>) -> Result<End, FileError> {
    line.literal("{")?;
    let kind = line.word("CA, SW or Rt")?;
    let kind = match kind.text.trim_end_matches("-SM") {
        "CA" => NodeType::Hca,
        "SW" => NodeType::Switch,
        "Rt" => NodeType::Router,
        _ => return Err(kind.error(FileProblem::Expected("CA, SW or Rt"))),
    };
    let port_count = field(line, "Ports:", 2)? as u8;
    let system_image_guid = Guid(field(line, "SystemGUID:", 16)?);
    let node_guid = Guid(field(line, "NodeGUID:", 16)?);
    let port_guid = Guid(field(line, "PortGUID:", 16)?);
    let vendor_id = field(line, "VenID:", 8)? as u32;
    let device = field(line, "DevID:", 8)?;
    // See how it is written.
    let device_id = if device > u64::from(u16::MAX) { (device >> 16) as u16 } else { device as u16 };
    field(line, "Rev:", 8)?;
    line.literal("{")?;
    let closing = |rest: &str| {
        let words: Vec<&str> = rest.split(' ').take(3).collect();
        matches!(words[..], [lid, port, "}"] if lid.len() == 4 && port.len() == 5 && port.starts_with("PN:"))
    };
    let here = *line;
    let description =
        line.until("} LID:", closing).ok_or_else(|| here.missing("`{description} LID:0000 PN:00 }`"))?;
    let lid = line.word("a LID")?;
    let number = scan::hexadecimal(lid.text, u64::from(u16::MAX));
    let number = number.ok_or_else(|| lid.error(FileProblem::Expected("a LID")))?;
    let lid = Lid(if number == NO_LID { 0 } else { number as u16 });
    let port = PortNum(field(line, "PN:", 2)? as u8);
    line.literal("}")?;
    let description = description.to_owned();
    Ok(End {
        kind,
        port_count,
        system_image_guid,
        node_guid,
        port_guid,
        vendor_id,
        device_id,
        description,
        lid,
        port,
    })
}

/// A key and hexadecimal digits, no more than these.
fn field(line: &mut Line<'_>, key: &'static str, digits_max: usize) -> Result<u64, FileError> {
    line.literal(key)?;
    let word = line.word("hexadecimal digits")?;
    let number = Some(word.text).filter(|digits| digits.len() <= digits_max);
    let number = number.and_then(|digits| scan::hexadecimal(digits, u64::MAX));
    number.ok_or_else(|| word.error(FileProblem::Expected("hexadecimal digits")))
}

/// `PHY=4x LOG=ACT SPD=10`: the rate, and whether the link is up.
fn link(line: &mut Line<'_>) -> Result<(LinkRate, bool), FileError> {
    line.literal("PHY=")?;
    let word = line.word("a width")?;
    let width = LinkWidth::ALL.into_iter().find(|width| width.to_string() == word.text);
    let width = width.or_else(|| (word.text == UNNAMED).then_some(LinkWidth::X2));
    let width = width.ok_or_else(|| word.error(FileProblem::Expected("1x, 2x, 4x, 8x, 12x or ??")))?;
    line.literal("LOG=")?;
    let word = line.word("a state")?;
    let is_up = match word.text {
        "ACT" | "ARM" | "INI" => true,
        "DWN" => false,
        _ => return Err(word.error(FileProblem::Expected("ACT, ARM, INI or DWN"))),
    };
    line.literal("SPD=")?;
    let word = line.word("a speed")?;
    let mut names = SPEEDS.iter().chain(&LATER_SPEEDS);
    let speed = names.find(|(name, _)| *name == word.text).map(|(_, speed)| *speed);
    let speed = speed.or_else(|| (word.text == UNNAMED).then(|| LinkRate::default().speed));
    let known = "2.5, 5, 10, FDR10, 14, 25, 50, 100, 200 or ??";
    let speed = speed.ok_or_else(|| word.error(FileProblem::Expected(known)))?;
    Ok((LinkRate { width, speed }, is_up))
}

fn node(end: &End, rate: LinkRate) -> Node {
    let mut node = Node::new(end.kind, end.node_guid, end.port_count, rate);
    node.description.clone_from(&end.description);
    node.system_image_guid = end.system_image_guid;
    node.vendor_id = end.vendor_id;
    node.device_id = end.device_id;
    node
}

/// What the line says about the port.
fn note_port(node: &mut Node, end: &End, rate: LinkRate) {
    if node.is_switch() {
        node.ports.iter_mut().for_each(|port| port.guid = end.port_guid);
        node.ports[0].lid = end.lid;
    }
    let is_switch = node.is_switch();
    if let Some(port) = node.ports.get_mut(usize::from(end.port.0)) {
        (port.link, port.enabled) = (rate, rate.enabled());
        if !is_switch {
            (port.guid, port.lid) = (end.port_guid, end.lid);
        }
    }
}

/// What OpenSM prints for what it has no name for.
const UNNAMED: &str = "??";

impl Dump<'_> {
    /// Writes `opensm-subnet.lst`, with `sm` as the node of the subnet manager.
    pub fn subnet(&self, out: &mut dyn Write, sm: Option<NodeIndex>) -> fmt::Result {
        let mut nodes: Vec<(NodeIndex, &Node)> = self.fabric.iter().collect();
        sorted::by_key(&mut nodes, |(_, node)| order(node.guid));
        let mut lid_of: BTreeMap<PortRef, Lid> = BTreeMap::new();
        for lids in self.lids.iter() {
            lid_of.entry(lids.port).or_insert(lids.base);
        }
        // At the second end OpenSM prints the vendor wider, and the device four digits too far to the left.
        let end = |out: &mut dyn Write, at: PortRef, (vendor, device_shift): (usize, u32)| {
            let node = self.fabric.node(at.node);
            let kind = match node.kind {
                NodeType::Switch => "SW",
                NodeType::Router => "Rt",
                _ => "CA",
            };
            let manager = if sm == Some(at.node) { "-SM" } else { "" };
            let end_port = if node.is_switch() { PortNum::ZERO } else { at.port };
            let lid = lid_of.get(&PortRef::new(at.node, end_port)).map_or(0, |lid| lid.0);
            let guid = node.port(end_port).map_or(node.guid, |port| port.guid);
            write!(
                out,
                "{{ {kind}{manager} Ports:{:02X} SystemGUID:{:016x} NodeGUID:{:016x} PortGUID:{:016x} \
                 VenID:{:0vendor$X} DevID:{:04X} Rev:{REVISION:08X} {{{}}} LID:{lid:04X} PN:{:02X} }} ",
                node.port_count(),
                node.system_image_guid.0,
                node.guid.0,
                guid.0,
                node.vendor_id,
                u32::from(node.device_id) << device_shift,
                Description(&node.description),
                at.port.0,
            )
        };
        for (index, node) in nodes {
            for (number, peer) in node.cabled_ports() {
                let rate = node.port(number).map(|port| port.link).unwrap_or_default();
                end(out, PortRef::new(index, number), (6, 0))?;
                end(out, peer, (8, 16))?;
                let speed =
                    SPEEDS.iter().find(|(_, speed)| *speed == rate.speed).map_or(UNNAMED, |(name, _)| *name);
                writeln!(out, "PHY={} LOG=ACT SPD={speed}", rate.width)?;
            }
        }
        Ok(())
    }
}
