//! Paths of flows: cable by cable the lane, what the cable carries, and the flows that share it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use weft_control::flow::{FlowLine, FlowState};
use weft_mgmt::{Request, SmpRoute, Window};
use weft_sm::Surveyed;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{AttributeId, Guid, Lid, PortNum, ServiceLevel, SlToVlTable, VirtualLane, status};

use super::units::Units;
use crate::paints::loads;
use crate::pieces::LabPieces;
use crate::survey::{Session, limits};
use crate::trace::{Hop, Way, look, walk};
use crate::view::Lab;

/// A tick of PortXmitWait, in seconds of fabric time.
const TICK_SECONDS: f64 = 4e-9;

/// A cable of a flow's path.
#[derive(Clone, Debug, Serialize)]
pub struct FlowHop {
    /// The cable.
    #[serde(flatten)]
    pub hop: Hop,
    /// The lane that the flow's service level has on it; none where it has no service level yet, or no lane.
    pub lane: Option<VirtualLane>,
    /// What the cable carries in this direction: MB/s, or Gb/s of fabric time.
    pub rate: f64,
    /// The share of the time in which the port has packets and no credit; none where packets take no time.
    pub wait: Option<f64>,
    /// The other flows on it that run, in this direction.
    pub shared_with: Vec<String>,
}

/// A flow's path.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowPath {
    /// The flow.
    pub flow: String,
    /// The destination's LID; none without a path.
    pub lid: Option<Lid>,
    /// Cable by cable.
    pub hops: Vec<FlowHop>,
    /// Why there is no path.
    pub problem: Option<String>,
}

/// An exit of a node, and the port by which packets came in.
type Passage = (Guid, PortNum, PortNum);

/// What the tables of one piece of the fabric say.
struct Read {
    ways: BTreeMap<String, Result<Way, String>>,
    lanes: BTreeMap<Passage, SlToVlTable>,
}

/// The paths of those of `flows` that `wanted` takes, from a look at all of them. The look takes `apart`.
///
/// # Errors
/// When the laboratory cannot be looked at.
pub fn paths(
    lab: &Lab,
    flows: &[FlowLine],
    wanted: impl Fn(&FlowLine) -> bool,
    apart: Duration,
) -> anyhow::Result<Vec<FlowPath>> {
    let mut read = Read { ways: BTreeMap::new(), lanes: BTreeMap::new() };
    let alive: Vec<&FlowLine> =
        flows.iter().filter(|flow| flow.state == FlowState::Running || wanted(flow)).collect();
    let pieces = LabPieces::of(lab);
    if pieces.pieces.len() < 2 {
        read.piece(lab, &alive, &wanted);
    } else {
        for piece in 0..pieces.pieces.len() {
            let part = lab.piece(&pieces.pieces, piece as u32);
            let is_here = |flow: &&&FlowLine| {
                let ends = [&flow.from, &flow.to];
                ends.iter().all(|end| node_of(&part, end.guid.0).is_some())
            };
            let here: Vec<&FlowLine> = alive.iter().filter(is_here).copied().collect();
            read.piece(&part, &here, &wanted);
        }
    }
    let users = users(&read.ways);
    let loads = loads(lab, apart)?;
    let units = Units { dilation: lab.record.dilation };
    let hop = |flow: &FlowLine, entry: PortNum, hop: &Hop| {
        let port = lab.fabric.by_guid(hop.guid).map(|node| PortRef::new(node, hop.out_port));
        let load = port.and_then(|port| loads.get(&port).copied()).unwrap_or_default();
        let level = flow.sender.as_ref().and_then(|sender| sender.service_level);
        let table = read.lanes.get(&(hop.guid, entry, hop.out_port));
        let others = users.get(&(hop.guid, hop.out_port)).into_iter().flatten();
        FlowHop {
            hop: hop.clone(),
            lane: table.zip(level).and_then(|(table, level)| lane(table, level)),
            rate: units.carried(load.megabytes),
            wait: units.dilation.map(|dilation| load.waits * TICK_SECONDS * f64::from(dilation)),
            shared_with: others.filter(|name| **name != flow.name).cloned().collect(),
        }
    };
    let path = |flow: &&FlowLine| {
        let missing = || Err("the sender and the receiver are in no common piece of the fabric".to_owned());
        let (lid, hops, problem) = match read.ways.get(&flow.name).cloned().unwrap_or_else(missing) {
            Ok(way) => (Some(way.lid), entries(&way), None),
            Err(problem) => (None, Vec::new(), Some(problem)),
        };
        let hops = hops.iter().map(|(entry, at)| hop(flow, *entry, at)).collect();
        FlowPath { flow: flow.name.clone(), lid, hops, problem }
    };
    Ok(alive.iter().filter(|flow| wanted(flow)).map(path).collect())
}

/// The cables of a way, each with the port by which packets came into the node that sends; 0 at the beginning.
fn entries(way: &Way) -> Vec<(PortNum, Hop)> {
    let before = std::iter::once(PortNum::ZERO).chain(way.hops.iter().map(|hop| hop.in_port));
    before.zip(way.hops.iter().cloned()).collect()
}

/// The lane of a service level; lane 15 means that it has none.
fn lane(table: &SlToVlTable, level: ServiceLevel) -> Option<VirtualLane> {
    let lane = table.lanes.get(usize::from(level.0)).copied();
    lane.filter(|lane| *lane != VirtualLane::MANAGEMENT)
}

/// The flows on each cable, by the port that sends.
fn users(ways: &BTreeMap<String, Result<Way, String>>) -> BTreeMap<(Guid, PortNum), BTreeSet<String>> {
    let mut users: BTreeMap<(Guid, PortNum), BTreeSet<String>> = BTreeMap::new();
    for (flow, way) in ways {
        for hop in way.iter().flat_map(|way| &way.hops) {
            users.entry((hop.guid, hop.out_port)).or_default().insert(flow.clone());
        }
    }
    users
}

fn node_of(lab: &Lab, port: Guid) -> Option<NodeIndex> {
    let owns = |node: &weft_topology::Node| node.end_ports().any(|(_, end)| end.guid == port);
    lab.fabric.iter().find(|(_, node)| owns(node)).map(|(index, _)| index)
}

impl Read {
    /// Reads tables once, from the first flow's sender whose agent answers, and follows all flows of a piece in them.
    fn piece(&mut self, lab: &Lab, flows: &[&FlowLine], wanted: impl Fn(&FlowLine) -> bool) {
        let ends: BTreeMap<Guid, NodeIndex> = lab
            .fabric
            .iter()
            .flat_map(|(index, node)| node.end_ports().map(move |(_, end)| (end.guid, index)))
            .collect();
        let mut problem = None;
        for first in flows {
            let Some(&from) = ends.get(&first.from.guid.0) else { continue };
            match look(lab, from) {
                Ok((mut session, live)) => {
                    self.follow(lab, flows, &live, &ends);
                    let chosen = flows.iter().filter(|flow| wanted(flow));
                    let ways = chosen.filter_map(|flow| self.ways.get(&flow.name)?.as_ref().ok());
                    let passages = ways.flat_map(|way| {
                        entries(way).into_iter().map(|(entry, hop)| (hop.guid, entry, hop.out_port))
                    });
                    let passages: BTreeSet<Passage> = passages.collect();
                    // Without an answer there is a path without lanes.
                    if let Ok(lanes) = lanes(&mut session, &live, passages) {
                        self.lanes.extend(lanes);
                    }
                    return;
                }
                // The next sender may answer.
                Err(error) => problem = problem.or_else(|| Some(error.to_string())),
            }
        }
        let problem = problem.unwrap_or_else(|| "no sender has a cable".to_owned());
        self.ways.extend(flows.iter().map(|flow| (flow.name.clone(), Err(problem.clone()))));
    }

    fn follow(&mut self, lab: &Lab, flows: &[&FlowLine], live: &Surveyed, ends: &BTreeMap<Guid, NodeIndex>) {
        for flow in flows {
            let ends = ends.get(&flow.from.guid.0).zip(ends.get(&flow.to.guid.0));
            let way = ends.ok_or_else(|| "an end of it has no cable".to_owned()).and_then(|(&from, &to)| {
                walk(live, lab, PortRef::new(from, flow.from.at.port), to).map_err(|error| error.to_string())
            });
            self.ways.insert(flow.name.clone(), way);
        }
    }
}

/// Reads the lanes of service levels at these exits (SLtoVLMappingTable, IBA 14.2.5.8).
fn lanes(
    session: &mut Session,
    live: &Surveyed,
    passages: BTreeSet<Passage>,
) -> anyhow::Result<BTreeMap<Passage, SlToVlTable>> {
    let request = |passage: Passage| {
        let (guid, entry, exit) = passage;
        let node = live.fabric.by_guid(guid)?;
        let route = SmpRoute::Directed(*live.path(node)?);
        let is_switch = live.fabric.node(node).is_switch();
        let modifier = if is_switch { u32::from(entry.0) << 8 | u32::from(exit.0) } else { 0 };
        Some((passage, Request::get(AttributeId::SlToVlTable, modifier).by(&route)))
    };
    let requests = passages.into_iter().filter_map(request).collect();
    let mut lanes = BTreeMap::new();
    session.exchange(None, limits(Window::AUTO), requests, |passage, answer, _| {
        let good = answer.filter(|answer| answer.mad.status() == status::OK);
        lanes.extend(good.map(|answer| (passage, SlToVlTable::decode(answer.mad.smp_attribute()))));
    })?;
    Ok(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(nodes: &[(u64, u8, u8)]) -> Way {
        let hop = |&(guid, out, into): &(u64, u8, u8)| Hop {
            node: String::new(),
            guid: Guid(guid),
            out_port: PortNum(out),
            peer: String::new(),
            peer_guid: Guid(guid + 1),
            in_port: PortNum(into),
        };
        Way { lid: Lid(1), hops: nodes.iter().map(hop).collect() }
    }

    #[test]
    fn flows_share_the_cables_that_they_use_in_one_direction() {
        let ways = BTreeMap::from([
            ("a".to_owned(), Ok(way(&[(1, 1, 7), (5, 3, 1)]))),
            ("b".to_owned(), Ok(way(&[(2, 1, 8), (5, 3, 1)]))),
            ("c".to_owned(), Err("no path".to_owned())),
        ]);
        let users = users(&ways);
        assert_eq!(users[&(Guid(5), PortNum(3))], BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        assert_eq!(users[&(Guid(1), PortNum(1))].len(), 1);
        let passed = entries(ways["a"].as_ref().unwrap());
        assert_eq!(passed.iter().map(|(entry, _)| entry.0).collect::<Vec<_>>(), [0, 7]);
    }

    #[test]
    fn a_level_without_a_lane_has_none() {
        let mut table = SlToVlTable::default();
        (table.lanes[1], table.lanes[2]) = (VirtualLane(3), VirtualLane::MANAGEMENT);
        let of = |level| lane(&table, ServiceLevel(level));
        assert_eq!((of(1), of(2), of(99)), (Some(VirtualLane(3)), None, None));
    }
}
