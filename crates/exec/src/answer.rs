//! A program's tables, as a routing. What makes no sense here is refused in words; what does not work, the verifier finds.

use std::collections::BTreeMap;

use weft_control::report::engine::{EngineTables, Entry, Row};
use weft_routing::{ForwardingTable, Input, LaneMap, Lids, Routes, Routing, SERVICE_LEVELS, ServiceLevels};
use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Guid, Lid, PortNum, ServiceLevel, VirtualLane};

/// How many pairs of classes of LIDs the levels may have: 64 MB of memory.
const PAIRS_MAX: usize = 64 << 20;

pub(crate) fn routing_of(tables: EngineTables, input: &Input<'_>) -> Result<Routing, String> {
    let EngineTables { refusal, tables, levels, lanes } = tables;
    if let Some(reason) = refusal {
        return Err(reason);
    }
    let routes = routes(&tables, input)?;
    drop(tables);
    let levels = Levels::new(&levels, input.lids)?;
    let map = lane_map(&lanes)?;
    let used =
        levels.used.iter().map(|level| map.everywhere[usize::from(*level)].0).filter(|lane| *lane < 15);
    let mut routing = Routing::on_one_lane("exec", routes);
    routing.report.lanes = used.max().map_or(1, |highest| highest + 1);
    (routing.levels, routing.lanes) = (levels.levels, map);
    Ok(routing)
}

fn routes(tables: &BTreeMap<String, Row>, input: &Input<'_>) -> Result<Routes, String> {
    let Input { fabric, lids, .. } = input;
    let mut routes = Routes { tables: vec![ForwardingTable::default(); fabric.nodes().len()] };
    fabric.switches().for_each(|(index, _)| routes.tables[index.index()] = ForwardingTable::new(lids.top()));
    for (name, row) in tables {
        let switch = switch(fabric, name)?;
        for Entry { lid, value } in &row.0 {
            let (lid, port) = (Lid(*lid), PortNum(*value));
            check_entry(fabric, lids, switch, (lid, port).into())?;
            routes.tables[switch.index()].set(lid, port);
        }
    }
    Ok(routes)
}

/// An entry that makes a table.
#[derive(Clone, Copy)]
struct Leads {
    lid: Lid,
    port: PortNum,
}

impl From<(Lid, PortNum)> for Leads {
    fn from((lid, port): (Lid, PortNum)) -> Self {
        Self { lid, port }
    }
}

fn check_entry(fabric: &Fabric, lids: &Lids, switch: NodeIndex, leads: Leads) -> Result<(), String> {
    let Leads { lid, port } = leads;
    let name = || fabric.label(switch);
    if lids.owner(lid).is_none() {
        return Err(format!("the table of {} has LID {}, which no port has", name(), lid.0));
    }
    if port == PortNum::ZERO {
        return Ok(());
    }
    let node = fabric.node(switch);
    match node.port(port) {
        None => Err(format!(
            "the table of {} sends LID {} by port {}; its ports are 0 to {}",
            name(),
            lid.0,
            port.0,
            node.port_count()
        )),
        Some(there) if there.peer.is_none() => {
            Err(format!("the table of {} sends LID {} by port {}, which has no cable", name(), lid.0, port.0))
        }
        Some(_) => Ok(()),
    }
}

fn switch(fabric: &Fabric, name: &str) -> Result<NodeIndex, String> {
    let digits = name.strip_prefix("0x").unwrap_or(name);
    let guid = u64::from_str_radix(digits, 16)
        .map_err(|_| format!("`tables` has {name:?}, which is not a GUID such as 0x0002c90000000001"))?;
    let node = fabric.by_guid(Guid(guid));
    let node = node.ok_or_else(|| format!("`tables` has {name}, and no node of the fabric has this GUID"))?;
    match fabric.node(node).is_switch() {
        true => Ok(node),
        false => Err(format!("`tables` has {name}, which is {} and no switch", fabric.label(node))),
    }
}

/// The service levels of pairs, and which are used.
struct Levels {
    levels: ServiceLevels,
    used: Vec<u8>,
}

impl Levels {
    /// Sources with the same levels are one class.
    fn new(given: &BTreeMap<u16, Row>, lids: &Lids) -> Result<Self, String> {
        if given.is_empty() {
            return Ok(Self { levels: ServiceLevels::zero(), used: vec![0] });
        }
        let mut columns: BTreeMap<u16, u16> = BTreeMap::new();
        let mut classes: BTreeMap<Vec<Entry>, u16> = BTreeMap::new();
        let mut sources: Vec<(u16, u16)> = Vec::new();
        let mut used = vec![0];
        for (source, row) in given {
            check_level(lids, Entry { lid: *source, value: 0 })?;
            for entry in &row.0 {
                check_level(lids, *entry)?;
                let column = u16::try_from(columns.len()).unwrap_or(u16::MAX);
                columns.entry(entry.lid).or_insert(column);
                if !used.contains(&entry.value) {
                    used.push(entry.value);
                }
            }
            let class = u16::try_from(classes.len()).unwrap_or(u16::MAX);
            sources.push((*source, *classes.entry(row.0.clone()).or_insert(class)));
        }
        if classes.len().saturating_mul(columns.len()) > PAIRS_MAX {
            let (sources, destinations) = (classes.len(), columns.len());
            return Err(format!(
                "`levels` has {sources} different rows of up to {destinations} LIDs, which is too much"
            ));
        }
        let mut levels = ServiceLevels::classes(lids.top(), classes.len(), columns.len());
        sources.into_iter().for_each(|(lid, class)| levels.set_source(Lid(lid), class));
        columns.iter().for_each(|(lid, class)| levels.set_destination(Lid(*lid), *class));
        for (row, class) in classes {
            row.iter().for_each(|entry| levels.set(class, columns[&entry.lid], ServiceLevel(entry.value)));
        }
        Ok(Self { levels, used })
    }
}

fn check_level(lids: &Lids, Entry { lid, value }: Entry) -> Result<(), String> {
    if lids.owner(Lid(lid)).is_none() {
        return Err(format!("`levels` has LID {lid}, which no port has"));
    }
    match usize::from(value) < SERVICE_LEVELS {
        true => Ok(()),
        false => Err(format!("`levels` has level {value} to LID {lid}; levels are 0 to 15")),
    }
}

fn lane_map(lanes: &[u8]) -> Result<LaneMap, String> {
    if lanes.len() > SERVICE_LEVELS || lanes.iter().any(|lane| *lane > 15) {
        return Err("`lanes` has at most 16 lanes, each 0 to 15".to_owned());
    }
    let mut map = LaneMap::default();
    let places = map.everywhere.iter_mut();
    places.zip(lanes).for_each(|(place, lane)| *place = VirtualLane(*lane));
    Ok(map)
}
