//! Tables, hops, lanes and levels that somebody saved, by GUID: they outlive the fabric's LIDs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, Lid, PortNum};

use super::error::{FileError, FileProblem};
use super::lanes::{self, lane_map};
use super::levels::{self, Row};
use super::scan::{self, hexadecimal};
use super::tables::{LFTS_HEADING, is_for_people, is_void};
use super::{dump::NO_PATH, matrix};
use crate::lanes::{LaneMap, LaneRow, ServiceLevels};
use crate::lids::{LidError, Lids, PortLids};
use crate::sorted;
use crate::tables::{ForwardingTable, Routes};

/// What OpenSM's engine `file` reads, and levels, which it does not: `opensm-lfts.dump`, `opensm-lid-matrix.dump`,
/// `opensm-sl2vl.dump` and ibdmchk's "psl".
///
/// All is kept as it stands in the files. LIDs are those of the fabric that they were written for; whose they were is
/// known by port GUID as far as the tables say it, so that routes follow ports that have other LIDs now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRouting {
    /// By GUID of the switch.
    tables: BTreeMap<Guid, ForwardingTable>,
    /// By LID in the files: the GUID of the port that had it.
    owners: BTreeMap<Lid, Guid>,
    /// By GUID of the switch and LID: hops by port, and at place 0 the least of them.
    hops: BTreeMap<Guid, BTreeMap<Lid, Vec<u8>>>,
    lanes: Vec<SavedLanes>,
    levels: Vec<SavedLevel>,
}

/// A row of `opensm-sl2vl.dump`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedLanes {
    /// The GUID of the end port.
    port: Guid,
    entry: PortNum,
    exit: PortNum,
    row: LaneRow,
}

/// A line of a "psl" file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedLevel {
    /// The GUID of the node that sends.
    node: Guid,
    /// By which of its LIDs, if it has several.
    source: Option<Lid>,
    destination: Lid,
    level: u8,
}

/// What a saved routing comes to on a fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The tables; those of switches that are not in the files are empty.
    pub routes: Routes,
    /// The level of every pair, 0 where the files say nothing.
    pub levels: ServiceLevels,
    /// The lanes; level n takes lane n if the files say nothing.
    pub lanes: LaneMap,
    /// How many LIDs were moved to the ones that their ports have now.
    pub moved: usize,
    /// The switches without a table, in the order of their GUIDs.
    pub without_table: Vec<NodeIndex>,
    /// How many entries of tables lead by more hops than the hops that were saved.
    pub longer: u64,
    /// How many entries are missing or lead to a port without a cable. 0 means that the tables fit the fabric.
    pub unusable: usize,
}

impl SavedRouting {
    /// Reads `opensm-lfts.dump`.
    pub fn parse_lfts(file: &str, text: &str) -> Result<Self, FileError> {
        let mut saved = Self::default();
        let mut current: Option<(Guid, ForwardingTable)> = None;
        for mut line in scan::lines(file, text, false) {
            if line.text().trim_start().starts_with('#') || is_for_people(line) {
                continue;
            }
            if line.text().trim_start().starts_with(LFTS_HEADING) {
                if !line.skip_past(" guid ") {
                    return Err(line.missing("` guid 0x…`"));
                }
                let word = line.word("the GUID of a switch")?;
                let guid = word.guid()?;
                saved.tables.extend(current.take());
                if saved.tables.contains_key(&guid) {
                    return Err(word.error(FileProblem::Twice(word.text.to_owned())));
                }
                current = Some((guid, ForwardingTable::new(Lid(0))));
                continue;
            }
            if is_void(line) {
                continue;
            }
            let word = line.word("a LID")?;
            let Some((_, table)) = &mut current else { return Err(word.error(FileProblem::NoHeading)) };
            if !word.text.starts_with("0x") {
                return Err(word.error(FileProblem::Expected("a heading, or a LID that begins with 0x")));
            }
            let lid = word.lid()?;
            let port = line.word("a port")?.number("a port", 0, u64::from(PortNum::NONE.0))?;
            if table.port(lid) != PortNum::NONE {
                return Err(word.error(FileProblem::Twice(format!("the entry of LID {lid}"))));
            }
            table.set(lid, PortNum(port as u8));
            if line.skip_past("portguid ")
                && let Some(word) = line.next()
            {
                saved.owners.insert(lid, word.without(":").unwrap_or(word).guid()?);
            }
        }
        saved.tables.extend(current);
        match saved.tables.is_empty() {
            true => Err(FileError::of(file, FileProblem::Expected("the table of a switch"))),
            false => Ok(saved),
        }
    }

    /// The LIDs that the tables name, of the ports that a fabric has; none where they name no owners.
    pub fn lids(&self, fabric: &Fabric) -> Result<Lids, LidError> {
        let mut by_guid: BTreeMap<Guid, Vec<Lid>> = BTreeMap::new();
        for (lid, guid) in &self.owners {
            by_guid.entry(*guid).or_default().push(*lid);
        }
        let mut lids = Lids::new();
        for (index, node) in fabric.iter() {
            for (number, port) in node.end_ports() {
                let own = by_guid.remove(&port.guid).unwrap_or_default();
                let (Some(first), count) = (own.first(), own.len()) else { continue };
                let last = own[count - 1].0;
                let is_range = count.is_power_of_two() && count <= 128 && last - first.0 == count as u16 - 1;
                let at = PortRef::new(index, number);
                match is_range && usize::from(first.0).is_multiple_of(count) {
                    true => lids.insert(at, *first, count.ilog2() as u8)?,
                    false => own.iter().try_for_each(|lid| lids.insert(at, *lid, 0))?,
                }
            }
        }
        Ok(lids)
    }

    /// Adds the hops of `opensm-lid-matrix.dump`.
    pub fn with_lid_matrix(mut self, file: &str, text: &str) -> Result<Self, FileError> {
        let mut current: Option<Guid> = None;
        for mut line in scan::lines(file, text, true) {
            if line.text().starts_with(matrix::HEADING) {
                line.skip_past(matrix::HEADING);
                let word = line.word("the GUID of a switch")?;
                let guid = word.guid()?;
                line.end()?;
                if self.hops.insert(guid, BTreeMap::new()).is_some() {
                    return Err(word.error(FileProblem::Twice(word.text.to_owned())));
                }
                current = Some(guid);
                continue;
            }
            let word = line.word("a LID")?;
            let lid = word.without(":").unwrap_or(word).lid()?;
            let guid = current.ok_or_else(|| word.error(FileProblem::NoHeading))?;
            let mut row = Vec::new();
            while let Some(hops) = line.next() {
                let number = hexadecimal(hops.text, u64::from(NO_PATH));
                row.push(
                    number.ok_or_else(|| hops.error(FileProblem::Expected("hops, from 00 to ff")))? as u8
                );
            }
            self.hops.entry(guid).or_default().insert(lid, row);
        }
        Ok(self)
    }

    /// Adds the lanes of `opensm-sl2vl.dump`.
    pub fn with_sl2vl(mut self, file: &str, text: &str) -> Result<Self, FileError> {
        let mut current: Option<Guid> = None;
        for mut line in scan::lines(file, text, false) {
            if line.text().starts_with('#') {
                continue;
            }
            if let Some((_, guid)) = lanes::heading(&mut line)? {
                current = Some(guid);
                continue;
            }
            let word = line.word("an input port")?;
            let port = current.ok_or_else(|| word.error(FileProblem::NoHeading))?;
            let entry = PortNum(word.number("a port", 0, 254)? as u8);
            let exit = PortNum(line.word("an output port")?.number("a port", 0, 254)? as u8);
            self.lanes.push(SavedLanes { port, entry, exit, row: lanes::lane_row(line)? });
        }
        Ok(self)
    }

    /// Adds the levels of a "psl" file: `0xguid DLID level` to a line, and the source's LID where those of a node differ.
    pub fn with_psl(mut self, file: &str, text: &str) -> Result<Self, FileError> {
        for mut line in scan::lines(file, text, true) {
            let node = line.word("the GUID of a node")?.guid()?;
            let destination = line.word("a LID")?.lid_of_either_base()?;
            let level = line.word("a service level")?.number("a service level", 0, 15)? as u8;
            let source = line.next().map(scan::Word::lid_of_either_base).transpose()?;
            line.end()?;
            self.levels.push(SavedLevel { node, source, destination, level });
        }
        Ok(self)
    }

    /// The routing on a fabric with these LIDs. Switches, ports and LIDs that are no longer there are left out.
    pub fn restore(&self, fabric: &Fabric, lids: &Lids) -> Restored {
        let now = self.lids_now(fabric, lids);
        let moved = now.iter().filter(|(before, now)| before != now).count();
        let mut restored = Restored { moved, ..Restored::default() };
        restored.routes.tables = vec![ForwardingTable::default(); fabric.nodes().len()];
        for (index, node) in fabric.switches() {
            let Some(saved) = self.tables.get(&node.guid) else {
                restored.without_table.push(index);
                continue;
            };
            let mut table = ForwardingTable::new(lids.top());
            for (lid, port) in saved.routes().filter(|(_, port)| port.0 <= node.port_count()) {
                if let Some(present) = now.get(&lid) {
                    table.set(*present, port);
                    restored.longer += u64::from(self.is_longer(node.guid, lid, port));
                }
            }
            restored.routes.tables[index.index()] = table;
        }
        restored.unusable = unusable(fabric, lids, &restored.routes);
        sorted::by_key(&mut restored.without_table, |index| fabric.node(*index).guid);
        if !self.lanes.is_empty() {
            restored.lanes = self.lane_map(fabric);
        }
        if !self.levels.is_empty() {
            restored.levels = self.levels(fabric, lids, &now);
        }
        restored
    }

    /// By LID in the files, the one that its port has now.
    fn lids_now(&self, fabric: &Fabric, lids: &Lids) -> BTreeMap<Lid, Lid> {
        let mut first: BTreeMap<Guid, Lid> = BTreeMap::new();
        for (lid, guid) in &self.owners {
            first.entry(*guid).or_insert(*lid);
        }
        let mut present = BTreeMap::new();
        for entry in lids.iter() {
            if let Some(port) = fabric.port(entry.port) {
                present.entry(port.guid).or_insert(entry);
            }
        }
        let all = self.tables.values().flat_map(ForwardingTable::routes).map(|(lid, _)| lid);
        let mut now = BTreeMap::new();
        for lid in all {
            let owner = lids.owner(lid).and_then(|port| fabric.port(port)).map(|port| port.guid);
            let Some(guid) = self.owners.get(&lid).filter(|guid| owner != Some(**guid)) else {
                now.insert(lid, lid);
                continue;
            };
            // Each LID of a port that has several keeps its place among them.
            let offset = first.get(guid).map_or(0, |first| lid.0 - first.0);
            if let Some(entry) = present.get(guid)
                && offset >> entry.lmc == 0
            {
                now.insert(lid, Lid(entry.base.0 + offset));
            }
        }
        now
    }

    fn is_longer(&self, switch: Guid, lid: Lid, port: PortNum) -> bool {
        let row = self.hops.get(&switch).and_then(|rows| rows.get(&lid));
        let by = |place: usize| row.and_then(|row| row.get(place)).copied();
        port != PortNum::ZERO && by(usize::from(port.0)).zip(by(0)).is_some_and(|(here, least)| here > least)
    }

    fn lane_map(&self, fabric: &Fabric) -> LaneMap {
        let ports = lanes::end_ports(fabric);
        let row = |saved: &SavedLanes| {
            let port = ports.get(&saved.port)?;
            // An HCA's port stands there as port 0.
            let exit = if fabric.node(port.node).is_switch() { saved.exit } else { port.port };
            Some(((port.node, saved.entry, exit), saved.row))
        };
        lane_map(self.lanes.iter().filter_map(row).collect())
    }

    fn levels(&self, fabric: &Fabric, lids: &Lids, now: &BTreeMap<Lid, Lid>) -> ServiceLevels {
        let mut by_node: BTreeMap<NodeIndex, Row> = BTreeMap::new();
        let mut by_lid: BTreeMap<Lid, Row> = BTreeMap::new();
        for saved in &self.levels {
            let Some(destination) = now.get(&saved.destination) else { continue };
            let row = match saved.source {
                Some(source) => now.get(&source).map(|source| by_lid.entry(*source).or_default()),
                None => fabric.by_guid(saved.node).map(|node| by_node.entry(node).or_default()),
            };
            row.map(|row| row.insert(*destination, saved.level));
        }
        levels::levels(lids, &by_node, &by_lid)
    }
}

/// How many entries are missing or lead to a port without a cable.
fn unusable(fabric: &Fabric, lids: &Lids, routes: &Routes) -> usize {
    let leads = |switch: NodeIndex, port: PortNum| {
        port == PortNum::ZERO || fabric.peer(PortRef::new(switch, port)).is_some()
    };
    let of_switch = |switch: NodeIndex| {
        let table = &routes.tables[switch.index()];
        let all = lids.iter().flat_map(PortLids::iter);
        all.filter(|lid| !leads(switch, table.port(*lid))).count()
    };
    fabric.switches().map(|(switch, _)| of_switch(switch)).sum()
}
