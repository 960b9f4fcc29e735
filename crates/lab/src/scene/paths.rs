//! Ways of flows, followed from table to table as `weft trace` does, each table read where its switch runs. Rows and lanes are kept
//! until tables change.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use weft_mgmt::{DirectedPath, Request, SmpRoute, Window};
use weft_page::state::Hop;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{
    AddressedMad, AttributeId, Lid, LinearForwardingTable, PortNum, SlToVlTable, VirtualLane, status,
};

use crate::scene::plan::Plan;
use crate::survey::{Session, limits};
use crate::view::Lab;

/// Switches of a way: more are a loop.
const HOPS_MAX: usize = 64;
/// How long a switch has to answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long ways are looked for at once; what is left waits for the next time.
const ROUND_MAX: Duration = Duration::from_secs(2);

/// A flow whose way is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) from: PortRef,
    pub(super) to: PortRef,
    pub(super) lid: Lid,
    pub(super) level: u8,
}

/// What was read of tables.
#[derive(Debug, Default)]
pub(super) struct Paths {
    rows: BTreeMap<(NodeIndex, u16), [PortNum; 64]>,
    lanes: BTreeMap<(NodeIndex, PortNum, PortNum), [VirtualLane; 16]>,
    known: BTreeMap<String, (Wanted, Vec<Hop>)>,
}

impl Paths {
    /// Tables may have changed.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The ways of flows, as far as they lead.
    pub(super) fn of(&mut self, lab: &Lab, plan: &Plan, flows: &[Wanted]) -> BTreeMap<String, Vec<Hop>> {
        let until = Instant::now() + ROUND_MAX;
        let names: std::collections::BTreeSet<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
        self.known.retain(|name, _| names.contains(name.as_str()));
        for flow in flows {
            let is_known =
                self.known.get(&flow.name).is_some_and(|(known, way)| known == flow && !way.is_empty());
            if !is_known && Instant::now() < until {
                let way = self.walk(lab, plan, flow).unwrap_or_default();
                self.known.insert(flow.name.clone(), (flow.clone(), way));
            }
        }
        self.known.iter().map(|(name, (_, way))| (name.clone(), way.clone())).collect()
    }

    /// The cables from one host to another; `None` where a switch does not answer, or tables lead nowhere.
    fn walk(&mut self, lab: &Lab, plan: &Plan, flow: &Wanted) -> Option<Vec<Hop>> {
        let (mut out, mut entry, mut way) = (flow.from, PortNum::ZERO, Vec::new());
        for _ in 0..HOPS_MAX {
            let end = plan.at.get(&out)?;
            let lanes = self.lanes(lab, out, entry);
            let lane = lanes.map(|lanes| lanes[usize::from(flow.level & 0xf)].0).filter(|lane| *lane < 15);
            way.push(Hop(end.cable.to_string(), u8::from(!end.is_a), lane));
            let there = lab.fabric.peer(out)?;
            if there.node == flow.to.node {
                return Some(way);
            }
            if !lab.fabric.node(there.node).is_switch() {
                return None;
            }
            let row = self.row(lab, there.node, flow.lid)?;
            entry = there.port;
            out = PortRef::new(there.node, row);
        }
        None
    }

    fn row(&mut self, lab: &Lab, switch: NodeIndex, lid: Lid) -> Option<PortNum> {
        let (block, place) = (lid.0 / 64, usize::from(lid.0 % 64));
        if let Entry::Vacant(empty) = self.rows.entry((switch, block)) {
            let at = PortRef::new(switch, PortNum::ZERO);
            let answer = get(lab, at, AttributeId::LinearForwardingTable, block.into())?;
            empty.insert(LinearForwardingTable::decode(answer.mad.smp_attribute()).ports);
        }
        let port = self.rows.get(&(switch, block))?[place];
        (port.0 != 0 && port.0 != u8::MAX).then_some(port)
    }

    /// The lanes at a port of departure, for what came in by another one.
    fn lanes(&mut self, lab: &Lab, out: PortRef, entry: PortNum) -> Option<[VirtualLane; 16]> {
        let key = (out.node, entry, out.port);
        if let Entry::Vacant(empty) = self.lanes.entry(key) {
            let is_switch = lab.fabric.node(out.node).is_switch();
            // A switch has a table for each pair of ports, an adapter one for each port (IBA 14.2.5.8).
            let (at, modifier) = match is_switch {
                true => (PortNum::ZERO, u32::from(entry.0) << 8 | u32::from(out.port.0)),
                false => (out.port, 0),
            };
            let answer = get(lab, PortRef::new(out.node, at), AttributeId::SlToVlTable, modifier)?;
            empty.insert(SlToVlTable::decode(answer.mad.smp_attribute()).lanes);
        }
        self.lanes.get(&key).copied()
    }
}

/// An attribute, asked for at the node itself: no SMP crosses a cable.
fn get(lab: &Lab, at: PortRef, attribute: AttributeId, modifier: u32) -> Option<AddressedMad> {
    let guid = lab.fabric.node(at.node).guid;
    if lab.record.denies_qp0(guid) {
        return None;
    }
    let mut session = Session::attach_within(PATIENCE, &lab.folder, &lab.record, guid, at.port).ok()?;
    let request = Request::get(attribute, modifier).by(&SmpRoute::Directed(DirectedPath::default()));
    let mut found = None;
    let until = Some(Instant::now() + PATIENCE);
    let asked = session.exchange(until, limits(Window::AUTO), vec![((), request)], |(), answer, _| {
        found = answer.filter(|answer| answer.mad.status() == status::OK);
    });
    asked.ok().and(found)
}
