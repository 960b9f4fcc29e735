//! Forwarding tables: `opensm.fdbs` and `opensm-lfts.dump`.

use std::fmt::{self, Write};

use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Lid, PortNum};

use super::dump::{Description, Dump, NO_PATH, kind};
use super::error::{FileError, FileProblem};
use super::lanes::port;
use super::scan::{self, Line, Word};
use crate::tables::{ForwardingTable, Routes};

/// How headings in `opensm.fdbs` begin.
const FDBS_HEADING: &str = "dump_ucast_routes: Switch ";
/// The line under each.
const FDBS_COLUMNS: &str = "LID    : Port : Hops : Optimal";
/// How headings in `opensm-lfts.dump` begin.
pub(super) const LFTS_HEADING: &str = "Unicast lids ";

/// What `opensm.fdbs` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fdbs {
    /// The tables.
    pub routes: Routes,
    /// By node, then by LID: how many hops, cables to hosts included, [`NO_PATH`] where nothing is said.
    hops: Vec<Vec<u8>>,
}

impl Fdbs {
    /// How many hops the file says a LID is from a node, the cable to a host included.
    pub fn hops(&self, node: NodeIndex, lid: Lid) -> Option<u8> {
        self.hops.get(node.index())?.get(usize::from(lid.0)).copied().filter(|hops| *hops != NO_PATH)
    }
}

/// Reads `opensm.fdbs`. A LID that is UNREACHABLE has no entry.
///
/// ```
/// use weft_routing::files::parse_fdbs;
/// use weft_topology::generate::{GenerateOptions, ring};
///
/// let fabric = ring(3, 1, &GenerateOptions::default()).unwrap();
/// let text = "dump_ucast_routes: Switch 0x0200535700000001\n0x0001 : 007 : 01 : yes\n";
/// assert_eq!(
///     parse_fdbs("opensm.fdbs", text, &fabric).unwrap_err().to_string(),
///     "opensm.fdbs:2:10: port 7 is out of range for `S-0200535700000001`, whose ports are 0 to 3: `007`",
/// );
/// ```
pub fn parse_fdbs(file: &str, text: &str, fabric: &Fabric) -> Result<Fdbs, FileError> {
    let mut reader = Reader::new(fabric);
    let mut hops: Vec<Vec<u8>> = vec![Vec::new(); fabric.nodes().len()];
    for mut line in scan::lines(file, text, true) {
        if line.text().starts_with(FDBS_HEADING) {
            line.skip_past(FDBS_HEADING);
            reader.turn_to(line.word("the GUID of a switch")?)?;
            line.end()?;
            continue;
        }
        if line.text().trim() == FDBS_COLUMNS {
            continue;
        }
        let word = line.word("a LID")?;
        let (node, lid) = reader.lid(word)?;
        line.literal(":")?;
        let port = line.word("a port, or UNREACHABLE")?;
        if port.text == "UNREACHABLE" {
            line.end()?;
            continue;
        }
        reader.set(node, lid, port)?;
        line.literal(":")?;
        if line.rest().trim() == "HOPS UNKNOWN" {
            continue;
        }
        let count = line.word("a number of hops")?.number("a number of hops", 0, 254)?;
        let hops = &mut hops[node.index()];
        let place = usize::from(lid.0);
        hops.resize(hops.len().max(place + 1), NO_PATH);
        hops[place] = count as u8;
        // What follows is for people: whether there is a shorter way.
        line.literal(":")?;
    }
    Ok(Fdbs { routes: reader.routes, hops })
}

/// Reads `opensm-lfts.dump`, and what infiniband-diags' `dump_lfts` and `dump_fts` print, with `-a` too.
pub fn parse_lfts(file: &str, text: &str, fabric: &Fabric) -> Result<Routes, FileError> {
    let mut reader = Reader::new(fabric);
    for mut line in scan::lines(file, text, false) {
        let first = line.text().trim_start();
        if first.starts_with('#') || is_for_people(line) {
            continue;
        }
        if first.starts_with(LFTS_HEADING) {
            if !line.skip_past(" guid ") {
                return Err(line.missing("` guid 0x…`"));
            }
            reader.turn_to(line.word("the GUID of a switch")?)?;
            // Then comes the switch's description, which can be anything.
            continue;
        }
        if is_void(line) {
            continue;
        }
        let (node, lid) = reader.lid(line.word("a LID")?)?;
        // Then comes whose LID it is.
        reader.set(node, lid, line.word("a port")?)?;
    }
    Ok(reader.routes)
}

/// `8 lids dumped`, `8 valid lids dumped`, and the names of columns.
pub(super) fn is_for_people(line: Line<'_>) -> bool {
    let text = line.text().trim();
    text.ends_with(" lids dumped") || text.starts_with("Lid ") || text.starts_with("Port ")
}

/// An entry that `dump_fts -a` prints although it leads nowhere (`0x0005 255 : (illegal port)`), or one of LID 0, which is none.
pub(super) fn is_void(line: Line<'_>) -> bool {
    let text = line.text().trim();
    text.ends_with("illegal port)") || text.starts_with("0x0000 ")
}

/// Fills the tables of one switch after the other.
struct Reader<'a> {
    fabric: &'a Fabric,
    routes: Routes,
    current: Option<NodeIndex>,
}

impl<'a> Reader<'a> {
    fn new(fabric: &'a Fabric) -> Self {
        let tables = vec![ForwardingTable::default(); fabric.nodes().len()];
        Self { fabric, routes: Routes { tables }, current: None }
    }

    fn turn_to(&mut self, word: Word<'_>) -> Result<(), FileError> {
        let node = switch(self.fabric, word)?;
        if !self.routes.tables[node.index()].is_empty() {
            return Err(word.error(FileProblem::Twice(word.text.to_owned())));
        }
        // From now on it has a table, although an empty one.
        self.routes.tables[node.index()] = ForwardingTable::new(Lid(0));
        self.current = Some(node);
        Ok(())
    }

    fn lid(&self, word: Word<'_>) -> Result<(NodeIndex, Lid), FileError> {
        let lid = match word.text.starts_with("0x") {
            true => word.lid()?,
            false => return Err(word.error(FileProblem::Expected("a heading, or a LID that begins with 0x"))),
        };
        Ok((self.current.ok_or_else(|| word.error(FileProblem::NoHeading))?, lid))
    }

    fn set(&mut self, node: NodeIndex, lid: Lid, word: Word<'_>) -> Result<(), FileError> {
        let port = port(self.fabric, node, word)?;
        let table = &mut self.routes.tables[node.index()];
        if table.port(lid) != PortNum::NONE {
            return Err(word.error(FileProblem::Twice(format!("the entry of LID {lid}"))));
        }
        table.set(lid, port);
        Ok(())
    }
}

/// The switch of this GUID.
pub(super) fn switch(fabric: &Fabric, word: Word<'_>) -> Result<NodeIndex, FileError> {
    let guid = word.guid()?;
    let found = fabric.by_guid(guid).filter(|node| fabric.node(*node).is_switch());
    found.ok_or_else(|| word.error(FileProblem::UnknownSwitch(guid)))
}

impl Dump<'_> {
    /// Writes `opensm.fdbs`. Hops are the least that are possible by that port, as in OpenSM with min-hop.
    pub fn fdbs(&self, out: &mut dyn Write) -> fmt::Result {
        for switch in self.switches() {
            writeln!(out, "{FDBS_HEADING}{}\n{FDBS_COLUMNS}", self.node(switch).guid)?;
            let mut by_port = (u32::MAX, Vec::new());
            for lid in (1..=self.top().0).map(Lid) {
                write!(out, "0x{:04X} : ", lid.0)?;
                let port = self.routing.routes.port(self.index(switch), lid);
                let to = self.lids.owner(lid).and_then(|owner| self.graph.attachment(self.fabric, owner));
                let Some((to, exit)) = to.filter(|_| port != PortNum::NONE) else {
                    out.write_str("UNREACHABLE\n")?;
                    continue;
                };
                if by_port.0 != to {
                    by_port = (to, self.hops_by_port(switch, to));
                }
                let (by_port, own) = (&by_port.1, switch == to);
                let by_this = by_port.get(usize::from(port.0)).copied().unwrap_or(NO_PATH);
                let hops = if own { 0 } else { by_this };
                let (least, cable) = (by_port[0], u8::from(exit != PortNum::ZERO));
                match hops {
                    NO_PATH => writeln!(out, "{:03}  : HOPS UNKNOWN", port.0)?,
                    _ if hops == least => writeln!(out, "{:03}  : {:02}   : yes", port.0, hops + cable)?,
                    _ => {
                        let other = by_port[1..].iter().position(|hops| *hops == least).unwrap_or(0) + 1;
                        let (hops, least) = (hops.saturating_add(cable), least.saturating_add(cable));
                        let no = format_args!("No {least} hop path possible via port {other}!");
                        writeln!(out, "{:03}  : {hops:02}   : {no}", port.0)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes `opensm-lfts.dump`.
    pub fn lfts(&self, out: &mut dyn Write) -> fmt::Result {
        let top = self.top().0;
        let base = self.base_lids();
        for switch in self.switches() {
            let (index, node) = (self.index(switch), self.node(switch));
            let (own, name) = (base[switch as usize].0, Description(&node.description));
            writeln!(out, "{LFTS_HEADING}[0-{top}] of switch Lid {own} guid {} ('{name}'):", node.guid)?;
            for lid in (0..=top).map(Lid) {
                let port = self.routing.routes.port(index, lid);
                if port.0 > node.port_count() {
                    continue;
                }
                write!(out, "0x{:04x} {:03} # ", lid.0, port.0)?;
                let Some(owner) = self.lids.owner(lid) else {
                    out.write_str("unknown node and type\n")?;
                    continue;
                };
                let whose = self.fabric.node(owner.node);
                let guid = self.fabric.port(owner).map_or(whose.guid, |port| port.guid);
                let name = Description(&whose.description);
                writeln!(out, "{} portguid {guid}: '{name}'", kind(whose.kind))?;
            }
            writeln!(out, "{top} lids dumped")?;
        }
        Ok(())
    }

    /// The LID of every switch, 0 where it has none.
    fn base_lids(&self) -> Vec<Lid> {
        let mut base = vec![Lid(0); self.graph.len()];
        for lids in self.lids.iter().filter(|lids| lids.port.port == PortNum::ZERO) {
            if let Some(number) = self.graph.number(lids.port.node) {
                base[number as usize] = lids.base;
            }
        }
        base
    }
}
