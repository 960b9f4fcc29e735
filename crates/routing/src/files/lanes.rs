//! Lanes of service levels: `opensm-sl2vl.dump`, and the same for ibdmchk.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum, VirtualLane};

use super::dump::{Description, Dump, kind, order};
use super::error::{FileError, FileProblem};
use super::scan::{self, Line, Word};
use crate::lanes::{LaneMap, LaneRow};
use crate::sorted;

/// The names of the columns.
const COLUMNS: &str = "#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15";
/// What stands before and after the rows of an end port.
const RULE: &str = "#--------------------------------------------------------";
/// How headings begin.
const KINDS: [&str; 3] = ["Switch ", "Channel Adapter ", "Router "];

/// The GUID of a heading, and the word that it stands in.
pub(super) fn heading<'a>(line: &mut Line<'a>) -> Result<Option<(Word<'a>, Guid)>, FileError> {
    let Some(kind) = KINDS.iter().find(|kind| line.text().starts_with(**kind)) else { return Ok(None) };
    line.skip_past(kind);
    let word = line.word("a GUID")?;
    let guid = word.without(",").unwrap_or(word).guid()?;
    Ok(Some((word, guid)))
}

/// The rest of a row, from the colon on.
pub(super) fn lane_row(mut line: Line<'_>) -> Result<LaneRow, FileError> {
    line.literal(":")?;
    let mut row = LaneRow::default();
    for lane in &mut row {
        *lane = VirtualLane(line.word("a lane for each level")?.number("a lane", 0, 15)? as u8);
    }
    line.end()?;
    Ok(row)
}

/// By node, input port and output port.
type Rows = BTreeMap<(NodeIndex, PortNum, PortNum), LaneRow>;

/// Reads `opensm-sl2vl.dump`. The map that most ports have is the one everywhere; of ports that the file does not
/// name, too. A file without rows is the map of a fabric where level n takes lane n.
pub fn parse_sl2vl(file: &str, text: &str, fabric: &Fabric) -> Result<LaneMap, FileError> {
    let ports = end_ports(fabric);
    let mut rows = Rows::new();
    let mut current: Option<PortRef> = None;
    for mut line in scan::lines(file, text, false) {
        if line.text().starts_with('#') {
            continue;
        }
        if let Some((word, guid)) = heading(&mut line)? {
            let port = ports.get(&guid).ok_or_else(|| word.error(FileProblem::UnknownGuid(guid)))?;
            current = Some(*port);
            // Then come the LID and the description.
            continue;
        }
        let input = line.word("an input port")?;
        let owner = current.ok_or_else(|| input.error(FileProblem::NoHeading))?;
        let (entry, exit) = (port(fabric, owner.node, input)?, line.word("an output port")?);
        let exit_port = port(fabric, owner.node, exit)?;
        let row = lane_row(line)?;
        // An HCA's port stands there as port 0.
        let exit_port = if fabric.node(owner.node).is_switch() { exit_port } else { owner.port };
        if rows.insert((owner.node, entry, exit_port), row).is_some() {
            return Err(exit.error(FileProblem::Twice(format!("the row of ports {entry} and {exit_port}"))));
        }
    }
    Ok(lane_map(rows))
}

/// Reads the file of lanes that ibdmchk takes: `0xguid in out 0x01 0x23 …`, two levels to a word.
pub fn parse_slvl(file: &str, text: &str, fabric: &Fabric) -> Result<LaneMap, FileError> {
    let mut rows = Rows::new();
    for mut line in scan::lines(file, text, true) {
        let word = line.word("the GUID of a node")?;
        let guid = word.guid()?;
        let node = fabric.by_guid(guid).ok_or_else(|| word.error(FileProblem::UnknownGuid(guid)))?;
        let entry = port(fabric, node, line.word("an input port")?)?;
        let exit = port(fabric, node, line.word("an output port")?)?;
        let row = packed(&mut line)?;
        line.end()?;
        if rows.insert((node, entry, exit), row).is_some() {
            return Err(word.error(FileProblem::Twice(format!("the row of ports {entry} and {exit}"))));
        }
    }
    Ok(lane_map(rows))
}

fn packed(line: &mut Line<'_>) -> Result<LaneRow, FileError> {
    let mut row = LaneRow::default();
    for pair in row.chunks_exact_mut(2) {
        let word = line.word("eight words for sixteen levels")?;
        let digits = word.text.strip_prefix("0x").filter(|digits| digits.len() == 2);
        let lanes = digits.and_then(|digits| scan::hexadecimal(digits, u64::from(u8::MAX)));
        let lanes =
            lanes.ok_or_else(|| word.error(FileProblem::Expected("0x and two hexadecimal digits")))?;
        pair[0] = VirtualLane((lanes >> 4) as u8);
        pair[1] = VirtualLane((lanes & 15) as u8);
    }
    Ok(row)
}

pub(super) fn port(fabric: &Fabric, node: NodeIndex, word: Word<'_>) -> Result<PortNum, FileError> {
    let port = word.number("a port", 0, u64::from(u8::MAX))?;
    let node = fabric.node(node);
    match port > u64::from(node.port_count()) {
        false => Ok(PortNum(port as u8)),
        true => {
            let (node, count) = (node.id.clone(), node.port_count());
            Err(word.error(FileProblem::PortOutOfRange { port, node, count }))
        }
    }
}

/// The end ports by their GUIDs.
pub(super) fn end_ports(fabric: &Fabric) -> BTreeMap<Guid, PortRef> {
    let mut ports = BTreeMap::new();
    for (index, node) in fabric.iter() {
        for (number, port) in node.end_ports() {
            ports.entry(port.guid).or_insert(PortRef::new(index, number));
        }
    }
    ports
}

/// What most have is everywhere; of equally many, the lowest.
pub(super) fn lane_map(rows: Rows) -> LaneMap {
    let mut counts: BTreeMap<LaneRow, usize> = BTreeMap::new();
    for row in rows.values() {
        *counts.entry(*row).or_default() += 1;
    }
    let most = counts.into_iter().max_by(|(a, m), (b, n)| m.cmp(n).then(b.cmp(a)));
    let Some((everywhere, _)) = most else { return LaneMap::default() };
    LaneMap { everywhere, exceptions: rows.into_iter().filter(|(_, row)| *row != everywhere).collect() }
}

impl Dump<'_> {
    /// Writes `opensm-sl2vl.dump`.
    pub fn sl2vl(&self, out: &mut dyn Write) -> fmt::Result {
        let mut ports: Vec<(Guid, Lid, PortRef)> = self
            .lids
            .iter()
            .filter_map(|lids| Some((self.fabric.port(lids.port)?.guid, lids.base, lids.port)))
            .collect();
        sorted::by_key(&mut ports, |(guid, lid, _)| (order(*guid), *lid));
        // Several LIDs of virtual functions are one port.
        ports.dedup_by_key(|(.., port)| *port);
        for (guid, lid, port) in ports {
            let node = self.fabric.node(port.node);
            let name = Description(&node.description);
            writeln!(out, "{} {guid}, base LID {}, \"{name}\"\n{COLUMNS}\n{RULE}", kind(node.kind), lid.0)?;
            for (entry, exit) in self.lane_ports(port) {
                let shown = if node.is_switch() { exit.0 } else { 0 };
                write!(out, "{:<3} {shown:<3} :", entry.0)?;
                for lane in self.routing.lanes.row(port.node, entry, exit) {
                    write!(out, " {:<2}", lane.0)?;
                }
                out.write_str("\n")?;
            }
            writeln!(out, "{RULE}\n")?;
        }
        Ok(())
    }

    /// Writes the file of lanes that ibdmchk takes with `-d`.
    pub fn slvl(&self, out: &mut dyn Write) -> fmt::Result {
        for (index, node) in self.fabric.iter() {
            for (number, _) in node.end_ports() {
                for (entry, exit) in self.lane_ports(PortRef::new(index, number)) {
                    write!(out, "{} {} {}", node.guid, entry.0, exit.0)?;
                    for pair in self.routing.lanes.row(index, entry, exit).chunks_exact(2) {
                        write!(out, " 0x{:x}{:x}", pair[0].0 & 15, pair[1].0 & 15)?;
                    }
                    out.write_str("\n")?;
                }
            }
        }
        Ok(())
    }

    /// The pairs of input and output ports that have a map: of a switch, all to each port with a cable.
    fn lane_ports(&self, end_port: PortRef) -> Vec<(PortNum, PortNum)> {
        let node = self.fabric.node(end_port.node);
        if !node.is_switch() {
            return vec![(PortNum::ZERO, end_port.port)];
        }
        let exits = node.cabled_ports().map(|(port, _)| port);
        exits.flat_map(|exit| (0..=node.port_count()).map(move |entry| (PortNum(entry), exit))).collect()
    }
}
