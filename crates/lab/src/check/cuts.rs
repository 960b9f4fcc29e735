//! The effects of a cut: which ways would be others, and what the subnet manager would write. They are computed from what is in the switches;
//! nothing is cut.
//!
//! ```text
//!   survey, tables ──▶ the routing crate's repair ──▶ rows ──▶ blocks, flows
//!                                └─ none is possible ──▶ the engine, for the cabling without the cable ──▶ rows
//! ```

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_control::HexGuid;
use weft_routing::{Ends, Engine, EngineOptions, Input, Lids, PortLids, Proven, Routes, Routing, trace};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::count_of;

use crate::check::{Clock, Options, tables, view};
use crate::flows;
use crate::survey::read_tables;
use crate::view::Lab;

/// Seconds that it may take to read the fabric.
const LIMIT: u32 = 60;
/// Names that are shown; the rest is counted.
const NAMES_MAX: usize = 20;

/// What a cut would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// The cable.
    pub cable: String,
    /// Nodes that could not be reached any more from the subnet manager.
    pub cut_off: Vec<String>,
    /// Their LIDs.
    pub lids_cut_off: u64,
    /// Flows whose ways would be others.
    pub flows: Vec<String>,
    /// Rows of forwarding tables that would be others.
    pub rows: u64,
    /// Switches that have such rows.
    pub switches: u64,
    /// Blocks of 64 rows that the subnet manager would write: an SMP each.
    pub blocks: u64,
    /// Why there is no repair of the rows alone: the engine would compute all of them again.
    pub anew: Option<String>,
}

/// What a cut of the cable in this port would do now.
///
/// # Errors
/// When no fabric can be read, or there is no link at the port.
pub fn if_cut(lab: &Lab, port: PortRef) -> anyhow::Result<Cut> {
    let mut clock = Clock::begin(lab, &Options { limit: Some(LIMIT), ..Options::default() });
    let (mut session, mut live) = view::take(lab, None, &mut clock)?;
    let until = clock.until;
    read_tables(lab, &mut session, &mut live, until, |answered| {
        clock.watch("the forwarding tables", answered)
    })?;
    drop(session);
    let lids = live.lids.as_ref().map_err(|error| Failure::new(error.to_string()))?;
    let here = |at: PortRef| Some(PortRef::new(live.fabric.by_guid(lab.fabric.node(at.node).guid)?, at.port));
    let label = lab.fabric.port_label(port);
    let peer = lab.fabric.peer(port);
    let ends = here(port).zip(peer.and_then(here)).filter(|(a, b)| live.fabric.peer(*a) == Some(*b));
    let (Some(ends), Some(peer)) = (ends, peer) else {
        return Err(Failure::bad_input(format!("there is no link at {label}, so nothing would change"))
            .hint("`weft links` lists the links"));
    };
    let (routing, options) = tables::routing(lab, &live, lids)?;
    let place = |end: weft_control::agent::PortEnd| {
        let HexGuid(guid) = end.node;
        Some(PortRef::new(live.fabric.by_guid(guid)?, end.port))
    };
    // Without a hub there are no flows.
    let all = flows::list(&lab.folder).unwrap_or_default();
    let flows = all.iter().filter_map(|flow| {
        Some(FlowWay { name: flow.name.clone(), from: place(flow.from.at)?, to: place(flow.to.at)? })
    });
    let flows: Vec<FlowWay> = flows.collect();
    let seat = lab.record.sm.as_ref().and_then(|sm| live.fabric.by_guid(sm.node));
    let seat = seat.or(live.own.map(|own| own.node)).unwrap_or(ends.0.node);
    let known = Known { fabric: &live.fabric, lids, routing, options: &options, flows: &flows, seat };
    Ok(Cut { cable: format!("{label} - {}", lab.fabric.port_label(peer)), ..judge(known, ends) })
}

/// A flow of which the way is looked at.
#[derive(Debug)]
struct FlowWay {
    name: String,
    from: PortRef,
    to: PortRef,
}

/// A fabric that is in service.
struct Known<'a> {
    fabric: &'a Fabric,
    lids: &'a Lids,
    routing: Routing,
    options: &'a EngineOptions,
    flows: &'a [FlowWay],
    /// The node of the subnet manager.
    seat: NodeIndex,
}

fn judge(known: Known<'_>, cable: Ends) -> Cut {
    let (a, b) = cable;
    let Known { fabric, lids, routing, options, flows, seat } = known;
    let mut without = fabric.clone();
    without.disconnect(a);
    let pieces = without.pieces();
    let is_reached = |node: NodeIndex| node == seat || pieces.shared(seat, node).is_some();
    let mut cut = Cut::default();
    let lost = fabric.iter().map(|(index, _)| index).filter(|index| !is_reached(*index));
    cut.cut_off = lost.map(|index| fabric.label(index)).collect();
    let is_lost = |port: &PortLids| !is_reached(port.port.node);
    cut.lids_cut_off = lids.iter().filter(|port| is_lost(port)).map(|port| port.iter().count() as u64).sum();
    let before = routing.routes.clone();
    let engine = routing.report.engine.clone();
    let mut after = None;
    let is_between_switches = fabric.node(a.node).is_switch() && fabric.node(b.node).is_switch();
    if is_between_switches && cut.cut_off.is_empty() {
        let repaired = Proven::new(fabric.clone(), lids.clone(), routing, options)
            .and_then(|mut proven| proven.cut(&[(a, b)]).map(|_| proven.into_routing()));
        match repaired {
            Ok(routing) => after = Some(routing.routes),
            Err(why) => cut.anew = Some(why.to_string()),
        }
    } else if is_between_switches {
        cut.anew = Some("a part of the fabric would be gone".to_owned());
    }
    if cut.anew.is_some() {
        let input = Input { fabric: &without, lids, options };
        let routed = Engine::by_name(&engine).and_then(|engine| engine.route(&input).ok());
        after = routed.map(|routing| routing.routes);
    }
    let after = after.unwrap_or_else(|| before.clone());
    count(&mut cut, &without, lids, is_reached, [&before, &after]);
    let moved = flows.iter().filter(|flow| {
        let Some(to) = lids.of(flow.to) else { return false };
        let way = |fabric, routes| trace(fabric, lids, routes, flow.from, to.base).ok();
        way(fabric, &before) != way(&without, &after)
    });
    cut.flows = moved.map(|flow| flow.name.clone()).collect();
    cut
}

/// Counts the rows that differ, of switches that are still reached.
fn count(
    cut: &mut Cut,
    fabric: &Fabric,
    lids: &Lids,
    is_reached: impl Fn(NodeIndex) -> bool,
    [before, after]: [&Routes; 2],
) {
    let (mut switches, mut blocks) = (BTreeSet::new(), BTreeSet::new());
    for (switch, _) in fabric.switches().filter(|(switch, _)| is_reached(*switch)) {
        let all = lids.iter().filter(|port| is_reached(port.port.node)).flat_map(PortLids::iter);
        for lid in all.filter(|lid| before.port(switch, *lid) != after.port(switch, *lid)) {
            cut.rows += 1;
            switches.insert(switch);
            blocks.insert((switch, lid.block()));
        }
    }
    (cut.switches, cut.blocks) = (switches.len() as u64, blocks.len() as u64);
}

/// Names in a line, as many as are shown.
fn names(all: &[String]) -> String {
    let shown = all.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = all.len().saturating_sub(NAMES_MAX);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "if {} were cut:", self.cable)?;
        match self.cut_off.len() {
            0 => writeln!(f, "  no node would be cut off")?,
            count => writeln!(
                f,
                "  {} with {} would be cut off: {}",
                count_of(count, "node"),
                count_of(self.lids_cut_off as usize, "LID"),
                names(&self.cut_off)
            )?,
        }
        match self.flows.len() {
            0 => writeln!(f, "  no flow would take another way")?,
            count => {
                writeln!(f, "  {} would take another way: {}", count_of(count, "flow"), names(&self.flows))?;
            }
        }
        let (rows, switches) =
            (count_of(self.rows as usize, "row"), count_of(self.switches as usize, "switch"));
        let blocks = count_of(self.blocks as usize, "block");
        writeln!(f, "  {rows} in {switches} would be others: {blocks} to write, an SMP each")?;
        match &self.anew {
            Some(why) => writeln!(f, "  all would be routed again: {why}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_topology::generate::{GenerateOptions, ring, xgft};

    use super::*;

    fn routed<'a>(
        fabric: &'a Fabric,
        lids: &'a Lids,
        options: &'a EngineOptions,
        flows: &'a [FlowWay],
    ) -> Known<'a> {
        let input = Input { fabric, lids, options };
        let routing = Engine::by_name("updn").unwrap().route(&input).unwrap();
        let seat = fabric.iter().find(|(_, node)| !node.is_switch()).unwrap().0;
        Known { fabric, lids, routing, options, flows, seat }
    }

    /// The flow from each host to each other.
    fn all_pairs(fabric: &Fabric) -> Vec<FlowWay> {
        let hosts = fabric.iter().filter(|(_, node)| !node.is_switch());
        let hosts: Vec<PortRef> =
            hosts.map(|(index, node)| PortRef::new(index, node.attach_port().unwrap())).collect();
        let name =
            |from: &PortRef, to: &PortRef| format!("{}-{}", fabric.label(from.node), fabric.label(to.node));
        let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (from, to)));
        let pairs = pairs.filter(|(from, to)| from != to);
        pairs.map(|(from, to)| FlowWay { name: name(from, to), from: *from, to: *to }).collect()
    }

    #[test]
    fn a_cable_of_a_host_cuts_it_off_and_moves_nothing() {
        let fabric = ring(4, 1, &GenerateOptions::default()).unwrap();
        let (lids, options) = (Lids::in_guid_order(&fabric, 0).unwrap(), EngineOptions::default());
        let flows = all_pairs(&fabric);
        let hosts: Vec<_> = fabric.iter().filter(|(_, node)| !node.is_switch()).collect();
        let (last, node) = hosts[3];
        let port = PortRef::new(last, node.attach_port().unwrap());
        let cut = judge(routed(&fabric, &lids, &options, &flows), (port, fabric.peer(port).unwrap()));
        assert_eq!((cut.cut_off.as_slice(), cut.lids_cut_off), (&[fabric.label(last)][..], 1));
        assert_eq!((cut.rows, cut.blocks, cut.anew.as_deref()), (0, 0, None));
        // Three hosts send to it, and it to three.
        assert_eq!(cut.flows.len(), 6);
    }

    /// Each switch of a line knows of one way alone: where it is cut, the part behind is gone.
    #[test]
    fn a_cable_between_parts_cuts_one_off() {
        let fabric = xgft(&[2, 2], &[1, 1], &GenerateOptions::default()).unwrap();
        let (lids, options) = (Lids::in_guid_order(&fabric, 0).unwrap(), EngineOptions::default());
        let cable = fabric
            .cables()
            .find(|cable| [cable.a, cable.b].iter().all(|end| fabric.node(end.node).is_switch()));
        let cable = cable.unwrap();
        let cut = judge(routed(&fabric, &lids, &options, &[]), (cable.a, cable.b));
        // A leaf with its two hosts, or, seen from there, the root, the other leaf and its hosts.
        assert!([3, 4].contains(&cut.cut_off.len()) && cut.anew.is_some(), "{cut:?}");
        assert_eq!(cut.lids_cut_off, cut.cut_off.len() as u64);
    }

    /// Of a tree with two roots each cable carries ways of some pairs; exactly those take another way, and no other.
    #[test]
    fn the_ways_over_a_cable_are_those_that_change() {
        let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
        let (lids, options) = (Lids::in_guid_order(&fabric, 0).unwrap(), EngineOptions::default());
        let flows = all_pairs(&fabric);
        for cable in fabric.cables() {
            if [cable.a, cable.b].iter().any(|end| !fabric.node(end.node).is_switch()) {
                continue;
            }
            let known = routed(&fabric, &lids, &options, &flows);
            let over = flows.iter().filter(|flow| {
                let lid = lids.of(flow.to).unwrap().base;
                let way = trace(&fabric, &lids, &known.routing.routes, flow.from, lid).unwrap();
                let mut out = way.hops.iter().map(|hop| PortRef::new(hop.node, hop.exit));
                out.any(|port| port == cable.a || port == cable.b)
            });
            let over: Vec<String> = over.map(|flow| flow.name.clone()).collect();
            let cut = judge(known, (cable.a, cable.b));
            assert_eq!((cut.flows.as_slice(), cut.cut_off.len()), (over.as_slice(), 0));
            assert!(cut.anew.is_none() && cut.blocks == cut.switches, "one block has all LIDs: {cut:?}");
            let text = Cut { cable: "a - b".into(), ..cut }.to_string();
            assert!(text.starts_with("if a - b were cut:\n  no node would be cut off\n"), "{text}");
        }
    }
}
