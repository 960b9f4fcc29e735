//! A routing in a folder, in the shapes of OpenSM's files.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_bundle::failure::Failure;
use weft_routing::files::{
    Dump, FileError, GuidToLid, SavedRouting, parse_fdbs, parse_lfts, parse_psl, parse_sl2vl, parse_slvl,
};
use weft_routing::{EngineReport, LaneMap, Lids, Ranks, Routes, Routing, ServiceLevels};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Guid, Lid};

use super::inputs::{from_fabric, routable};
use crate::engine_options::parsed;
use crate::output::say;

const GUID2LID: &str = "guid2lid";
const FDBS: &str = "opensm.fdbs";
const LFTS: &str = "opensm-lfts.dump";
const LID_MATRIX: &str = "opensm-lid-matrix.dump";
const SL2VL: &str = "opensm-sl2vl.dump";
const SUBNET: &str = "opensm-subnet.lst";
/// There are no multicast groups, but ibdmchk insists on the file.
const MCFDBS: &str = "opensm.mcfdbs";
const PSL: &str = "ibdmchk.psl";
const SLVL: &str = "ibdmchk.slvl";
const REPORT: &str = "report.json";

/// More pairs than this are not written for ibdmchk, a line each.
const PSL_PAIRS_MAX: usize = 4_000_000;

/// What OpenSM's files have no place for.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ReportFile {
    /// What the engine did.
    report: EngineReport,
    /// How far each switch of a tree is from the roots, by node GUID.
    ranks: Option<BTreeMap<String, u32>>,
    /// LIDs of virtual functions, by port GUID.
    #[serde(default)]
    virtual_lids: BTreeMap<String, Vec<u16>>,
    /// The service levels, where they are too many for the file of ibdmchk.
    service_levels: Option<ServiceLevels>,
}

/// Writes a routing. What was in the folder of an earlier one is written over.
pub(super) fn write(folder: &Path, fabric: &Fabric, lids: &Lids, routing: &Routing) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let dump = Dump::new(fabric, lids, routing);
    let manager = fabric.attach_place().map(|port| port.node);
    let to = |name: &str, write: &mut dyn FnMut(&mut dyn fmt::Write) -> fmt::Result| {
        let path = folder.join(name);
        file(&path, write).with_context(|| format!("cannot write {}", path.display()))
    };
    to(GUID2LID, &mut |out| write!(out, "{}", GuidToLid::of(fabric, lids)))?;
    to(FDBS, &mut |out| dump.fdbs(out))?;
    to(LFTS, &mut |out| dump.lfts(out))?;
    to(LID_MATRIX, &mut |out| dump.lid_matrix(out))?;
    to(SL2VL, &mut |out| dump.sl2vl(out))?;
    to(SUBNET, &mut |out| dump.subnet(out, manager))?;
    to(MCFDBS, &mut |_| Ok(()))?;
    to(SLVL, &mut |out| dump.slvl(out))?;
    let count: usize = lids.iter().map(|lids| lids.iter().count()).sum();
    let has_psl = count * count <= PSL_PAIRS_MAX;
    match has_psl {
        true => to(PSL, &mut |out| dump.psl(out))?,
        false => drop(std::fs::remove_file(folder.join(PSL))),
    }
    let levels = (!has_psl).then(|| routing.levels.clone());
    let report = serde_json::to_string_pretty(&report_file(fabric, lids, routing, levels))?;
    to(REPORT, &mut |out| writeln!(out, "{report}"))
}

fn report_file(fabric: &Fabric, lids: &Lids, routing: &Routing, levels: Option<ServiceLevels>) -> ReportFile {
    let ranks = routing.ranks.as_ref().map(|ranks| {
        let rank = |(index, node): (_, &weft_topology::Node)| Some((node.guid.to_string(), ranks.of(index)?));
        fabric.iter().filter_map(rank).collect()
    });
    let mut virtual_lids: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    let mut first: BTreeMap<PortRef, Lid> = BTreeMap::new();
    for lids in lids.iter() {
        if *first.entry(lids.port).or_insert(lids.base) != lids.base
            && let Some(port) = fabric.port(lids.port)
        {
            virtual_lids.entry(port.guid.to_string()).or_default().extend(lids.iter().map(|lid| lid.0));
        }
    }
    ReportFile { report: routing.report.clone(), ranks, virtual_lids, service_levels: levels }
}

/// Writes text to a file piece by piece.
fn file(path: &Path, write: &mut dyn FnMut(&mut dyn fmt::Write) -> fmt::Result) -> std::io::Result<()> {
    let mut writer = TextFile { file: BufWriter::new(File::create(path)?), failed: None };
    let done = write(&mut writer);
    match (done, writer.failed.take()) {
        (Ok(()), None) => writer.file.flush(),
        (_, Some(error)) => Err(error),
        (Err(fmt::Error), None) => Err(std::io::Error::other("the text could not be formatted")),
    }
}

/// A file that takes text, and keeps what went wrong.
struct TextFile {
    file: BufWriter<File>,
    failed: Option<std::io::Error>,
}

impl fmt::Write for TextFile {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.file.write_all(text.as_bytes()).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })
    }
}

/// A routing that was read.
pub(super) struct Saved {
    pub(super) lids: Lids,
    pub(super) routing: Routing,
    /// Whether the folder says by which service levels pairs send, which OpenSM writes nowhere.
    pub(super) levels_known: bool,
}

/// The part of a fabric that a routing is for: of several pieces those with tables in the folder. A subnet manager writes down
/// one.
pub(super) fn covered(folder: &Path, fabric: Fabric) -> anyhow::Result<Fabric> {
    let pieces = fabric.pieces();
    let all = routable(&fabric, &pieces);
    if all.len() < 2 {
        return Ok(fabric);
    }
    let routes = read_tables(folder, &fabric)?;
    let has_table = |node| routes.table(node).is_some_and(|table| table.routes().next().is_some());
    let is_covered =
        |piece: &u32| fabric.switches().any(|(index, _)| pieces.has(*piece, index) && has_table(index));
    let (covered, bare): (Vec<u32>, Vec<u32>) = all.into_iter().partition(is_covered);
    for piece in &bare {
        let name = fabric.piece_label(&pieces, *piece);
        say(&format!("{}: no tables for the piece of `{name}`", folder.display()));
    }
    Ok(match covered[..] {
        [one] => fabric.piece(&pieces, one),
        _ => fabric,
    })
}

/// Reads a routing that weft or OpenSM wrote.
pub(super) fn read(folder: &Path, fabric: &Fabric) -> anyhow::Result<Saved> {
    let report: Option<ReportFile> = match weft_bundle::input::read_to_string(&folder.join(REPORT)) {
        Ok(text) => Some(serde_json::from_str(&text).map_err(|error| {
            Failure::bad_input(format!("{}: {error}", folder.join(REPORT).display()))
                .hint("weft writes this file; without it, nothing is known of ranks")
        })?),
        Err(_) => None,
    };
    let weft_wrote = report.is_some();
    let report = report.unwrap_or_default();
    let lids = read_lids(folder, fabric, &report)?;
    let routes = read_tables(folder, fabric)?;
    let lanes = read_lanes(folder, fabric)?;
    let has_lanes = lanes.is_some();
    let psl = optional(folder, PSL, |file, text| parse_psl(file, text, fabric, &lids))?;
    let ranks = report.ranks.map(|by_guid| {
        let rank = |node: &weft_topology::Node| by_guid.get(&node.guid.to_string()).copied();
        Ranks(fabric.nodes().iter().map(rank).collect())
    });
    // Without a file of lanes there is no quality of service: OpenSM sends all on level 0.
    let levels_known = weft_wrote || psl.is_some() || !has_lanes;
    let levels = psl.or(report.service_levels).unwrap_or_default();
    if !levels.is_whole() {
        let path = folder.join(REPORT);
        let message = format!("{}: its service levels contradict each other", path.display());
        return Err(Failure::bad_input(message).into());
    }
    let routing = Routing { routes, levels, lanes: lanes.unwrap_or_default(), ranks, report: report.report };
    Ok(Saved { lids, routing, levels_known })
}

fn read_lids(folder: &Path, fabric: &Fabric, report: &ReportFile) -> anyhow::Result<Lids> {
    let bad = |error: String| Failure::bad_input(format!("{}: {error}", folder.display()));
    let mut lids = match optional(folder, GUID2LID, GuidToLid::parse)? {
        Some(known) => known.lids(fabric).map_err(|error| bad(format!("{GUID2LID}: {error}")))?,
        None => named_lids(folder, fabric)?,
    };
    for (index, node) in fabric.iter() {
        for (number, port) in node.end_ports() {
            for lid in report.virtual_lids.get(&Guid::to_string(&port.guid)).into_iter().flatten() {
                let inserted = lids.insert(PortRef::new(index, number), Lid(*lid), 0);
                inserted.map_err(|error| bad(format!("{REPORT}: {error}")))?;
            }
        }
    }
    Ok(lids)
}

/// The LIDs that the tables name their owners by, where they do; those of the cabling's file may be of another day.
fn named_lids(folder: &Path, fabric: &Fabric) -> anyhow::Result<Lids> {
    let of_file = from_fabric(fabric)?;
    let Some(saved) = optional(folder, LFTS, SavedRouting::parse_lfts)? else { return Ok(of_file) };
    let bad = |error| Failure::bad_input(format!("{}: {error}", folder.join(LFTS).display()));
    let named = saved.lids(fabric).map_err(bad)?;
    if named.is_empty() || named == of_file {
        return Ok(of_file);
    }
    say(&format!("the LIDs are those that {LFTS} names; the topology file has others"));
    Ok(named)
}

fn read_tables(folder: &Path, fabric: &Fabric) -> anyhow::Result<Routes> {
    let lfts = optional(folder, LFTS, |file, text| parse_lfts(file, text, fabric))?;
    let tables = match lfts {
        Some(routes) => Some(routes),
        None => optional(folder, FDBS, |file, text| parse_fdbs(file, text, fabric))?.map(|fdbs| fdbs.routes),
    };
    let missing = || {
        Failure::bad_input(format!("{} holds neither {LFTS} nor {FDBS}", folder.display()))
            .hint("`weft routes compute --dump` writes them, and OpenSM with -D 0x43")
    };
    tables.ok_or_else(missing)
}

fn read_lanes(folder: &Path, fabric: &Fabric) -> anyhow::Result<Option<LaneMap>> {
    Ok(match optional(folder, SL2VL, |file, text| parse_sl2vl(file, text, fabric))? {
        Some(lanes) => Some(lanes),
        None => optional(folder, SLVL, |file, text| parse_slvl(file, text, fabric))?,
    })
}

/// A file that need not be there.
fn optional<T>(
    folder: &Path,
    name: &str,
    parse: impl FnOnce(&str, &str) -> Result<T, FileError>,
) -> anyhow::Result<Option<T>> {
    let path = folder.join(name);
    if path.exists() { parsed(&path, parse).map(Some) } else { Ok(None) }
}
