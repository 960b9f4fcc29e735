//! Service levels of paths, as ibdmchk reads them: a "psl" file.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Lid, ServiceLevel};

use super::dump::Dump;
use super::error::{FileError, FileProblem};
use super::scan;
use crate::lanes::ServiceLevels;
use crate::lids::Lids;
use crate::sorted;

/// The level of each LID that a source sends to.
pub(super) type Row = BTreeMap<Lid, u8>;

/// Reads a "psl" file: `0xguid DLID level` to a line, the GUID of the node that sends, the destination's LID decimal. A
/// fourth word, decimal too, is the source's LID, where the LIDs of one node differ. What is not in the file has level 0.
pub fn parse_psl(file: &str, text: &str, fabric: &Fabric, lids: &Lids) -> Result<ServiceLevels, FileError> {
    let mut by_node: BTreeMap<NodeIndex, Row> = BTreeMap::new();
    let mut by_lid: BTreeMap<Lid, Row> = BTreeMap::new();
    for mut line in scan::lines(file, text, true) {
        let word = line.word("the GUID of a node")?;
        let guid = word.guid()?;
        let node = fabric.by_guid(guid).ok_or_else(|| word.error(FileProblem::UnknownGuid(guid)))?;
        let to = line.word("a LID")?;
        let destination = to.lid_of_either_base()?;
        if lids.owner(destination).is_none() {
            return Err(to.error(FileProblem::UnknownLid(destination)));
        }
        let level = line.word("a service level")?.number("a service level", 0, 15)? as u8;
        let row = match line.next() {
            None => by_node.entry(node).or_default(),
            Some(word) => {
                let source = word.lid_of_either_base()?;
                if lids.owner(source).is_none_or(|owner| owner.node != node) {
                    return Err(word.error(FileProblem::UnknownLid(source)));
                }
                by_lid.entry(source).or_default()
            }
        };
        if row.insert(destination, level).is_some() {
            return Err(to.error(FileProblem::Twice(format!("the level to LID {destination}"))));
        }
        line.end()?;
    }
    Ok(levels(lids, &by_node, &by_lid))
}

/// Puts sources with equal rows into one class, and destinations with equal columns.
pub(super) fn levels(
    lids: &Lids,
    by_node: &BTreeMap<NodeIndex, Row>,
    by_lid: &BTreeMap<Lid, Row>,
) -> ServiceLevels {
    let all: Vec<(Lid, NodeIndex)> =
        lids.iter().flat_map(|lids| lids.iter().map(move |lid| (lid, lids.port.node))).collect();
    let mut rows: BTreeMap<Vec<u8>, u16> = BTreeMap::new();
    let mut of_source = Vec::new();
    for (source, node) in &all {
        let (special, general) = (by_lid.get(source), by_node.get(node));
        let level = |lid: &Lid| special.and_then(|row| row.get(lid)).or_else(|| general?.get(lid)).copied();
        let row: Vec<u8> = all.iter().map(|(lid, _)| level(lid).unwrap_or(0)).collect();
        let next = rows.len() as u16;
        of_source.push(*rows.entry(row).or_insert(next));
    }
    let mut in_order: Vec<(&Vec<u8>, u16)> = rows.iter().map(|(row, class)| (row, *class)).collect();
    sorted::by_key(&mut in_order, |(_, class)| *class);
    let mut columns: BTreeMap<Vec<u8>, u16> = BTreeMap::new();
    let mut of_destination = Vec::new();
    for place in 0..all.len() {
        let column: Vec<u8> = in_order.iter().map(|(row, _)| row[place]).collect();
        let next = columns.len() as u16;
        of_destination.push(*columns.entry(column).or_insert(next));
    }
    let mut levels = ServiceLevels::classes(lids.top(), rows.len(), columns.len());
    for (place, (lid, _)) in all.iter().enumerate() {
        levels.set_source(*lid, of_source[place]);
        levels.set_destination(*lid, of_destination[place]);
    }
    for (column, destination) in columns {
        for (source, level) in (0..).zip(column) {
            levels.set(source, destination, ServiceLevel(level));
        }
    }
    levels
}

impl Dump<'_> {
    /// Writes the file of service levels that ibdmchk takes with `-c`: every pair is a line, so a large fabric is a large
    /// file.
    pub fn psl(&self, out: &mut dyn Write) -> fmt::Result {
        let levels = &self.routing.levels;
        let mut sources: BTreeMap<NodeIndex, Vec<Lid>> = BTreeMap::new();
        for lids in self.lids.iter() {
            sources.entry(lids.port.node).or_default().extend(lids.iter());
        }
        let destinations: Vec<Lid> = sources.values().flatten().copied().collect();
        for (node, sources) in &sources {
            let guid = self.fabric.node(*node).guid;
            let (first, others) = sources.split_first().map_or((Lid(0), &[][..]), |(lid, rest)| (*lid, rest));
            for to in &destinations {
                let level = levels.of(first, *to);
                // ibdmchk takes the first three words of every line, and the last line that it finds.
                for from in others {
                    let other = levels.of(*from, *to);
                    if other != level {
                        writeln!(out, "{guid} {} {} {}", to.0, other.0, from.0)?;
                    }
                }
                writeln!(out, "{guid} {} {}", to.0, level.0)?;
            }
        }
        Ok(())
    }
}
