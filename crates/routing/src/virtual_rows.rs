//! Rows of the LIDs of virtual functions. A machine's LID moves with it, so its rows are what moves have left and not only
//! what an engine would choose.
//!
//! ```text
//!   dynamic       routing of the physical LIDs ── copy ──▶ the rows of each host's physical function
//!                                                            │
//!   prepopulated  routing of all LIDs ───────────────────────┴─ keep ──▶ by LID: rows that stand, if they hold
//! ```
//!
//! A row that stands is kept if its LID's rows, with the engine's at switches that hold none, bring every packet home on
//! today's cabling, go down only after up where a tree promises that, and close no circle with all others.

use std::collections::{BTreeMap, BTreeSet};

use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum};

use crate::collapse::VSwitch;
use crate::lanes::ServiceLevels;
use crate::lids::{Lids, PortLids};
use crate::options::EngineOptions;
use crate::partitions::Partitions;
use crate::routing::Routing;
use crate::tables::{ForwardingTable, Routes};
use crate::trace::TraceError;
use crate::verify::ground::{End, Ground};
use crate::verify::pass::Pass;
use crate::verify::{Expectations, verify_routing};

/// A fabric with virtual functions, and who has which LIDs.
#[derive(Clone, Copy, Debug)]
pub struct VirtualRows<'a> {
    /// The whole cabling.
    pub fabric: &'a Fabric,
    /// Its vSwitches, by node, as [`crate::vswitches`] finds them.
    pub vswitches: &'a [VSwitch],
    /// The LIDs of all end ports.
    pub lids: &'a Lids,
    /// Options of the engines.
    pub options: &'a EngineOptions,
}

/// What became of the rows of virtual functions' LIDs that stand and differ from the engine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptRows {
    /// LIDs whose rows stay.
    pub kept: usize,
    /// LIDs whose rows do not hold any more, so that the engine's take their place.
    pub replaced: usize,
}

impl VirtualRows<'_> {
    /// Adds the LIDs of virtual functions to a routing without them: each has the rows, levels and
    /// lanes of its host's physical function (paper 001, section V-B). vSwitches send foreign LIDs
    /// up: a machine that boots on another host changes nothing there. Tables end at `space`.
    pub fn copy(&self, routing: &mut Routing, space: Lid) {
        let top = self.lids.top().max(space);
        for (table, (node, _)) in self.tables(routing) {
            match self.vswitches.binary_search_by_key(&node, |vswitch| vswitch.node) {
                Ok(place) => *table = self.vswitches[place].table(self.lids, top),
                Err(_) => table.set(top, table.port(top)),
            }
        }
        let models: Vec<(PortLids, Lid)> = self.models().collect();
        routing.levels = self.levels(&routing.levels, &models);
        let physical: Vec<NodeIndex> = self.physical().collect();
        for node in physical {
            let Some(table) = routing.routes.tables.get_mut(node.index()) else { continue };
            for (range, model) in &models {
                let port = table.port(*model);
                range.iter().for_each(|lid| table.set(lid, port));
            }
        }
    }

    fn tables<'b>(
        &'b self,
        routing: &'b mut Routing,
    ) -> impl Iterator<Item = (&'b mut ForwardingTable, (NodeIndex, &'b weft_topology::Node))> {
        let nodes = routing.routes.tables.iter_mut().zip(self.fabric.iter());
        nodes.filter(|(_, (_, node))| node.is_switch())
    }

    /// The LIDs of virtual functions.
    fn ranges(&self) -> impl Iterator<Item = (PortLids, &VSwitch)> {
        let functions = self.vswitches.iter().flat_map(|vswitch| {
            let ports = vswitch.virtual_functions();
            ports.map(move |port| (port, vswitch))
        });
        let functions: BTreeMap<PortRef, &VSwitch> = functions.collect();
        self.lids.iter().filter_map(move |range| Some((range, *functions.get(&range.port)?)))
    }

    /// The LIDs of virtual functions, each with the LID that its rows are copied from: the physical function's, or the
    /// vSwitch's where that is not there.
    fn models(&self) -> impl Iterator<Item = (PortLids, Lid)> {
        let by_port = self.lids.iter().map(|range| (range.port, range.base));
        let by_port: BTreeMap<PortRef, Lid> = by_port.collect();
        self.ranges().filter_map(move |(range, vswitch)| {
            let own = PortRef::new(vswitch.node, PortNum::ZERO);
            let model = vswitch.pf().and_then(|pf| by_port.get(&pf)).or_else(|| by_port.get(&own))?;
            Some((range, *model))
        })
    }

    /// The switches that are no vSwitches.
    fn physical(&self) -> impl Iterator<Item = NodeIndex> {
        let inner: BTreeSet<NodeIndex> = self.vswitches.iter().map(|vswitch| vswitch.node).collect();
        self.fabric.switches().map(|(node, _)| node).filter(move |node| !inner.contains(node))
    }

    /// Service levels in which each LID is in the classes of its model.
    fn levels(&self, before: &ServiceLevels, models: &[(PortLids, Lid)]) -> ServiceLevels {
        let mut levels = before.clone();
        for (range, model) in models {
            range.iter().for_each(|lid| levels.copy(*model, lid));
        }
        levels
    }

    /// Puts the rows that stand in place of a routing's, for each LID of a virtual function whose rows hold; vSwitches keep
    /// the routing's. The routing is proved again if any row is another.
    pub fn keep(&self, routing: &mut Routing, standing: &Routes) -> KeptRows {
        let physical: Vec<NodeIndex> = self.physical().collect();
        let ranges = self.ranges().flat_map(|(range, _)| range.iter());
        let moved: Vec<Column> =
            ranges.filter_map(|lid| Column::of(&physical, lid, &routing.routes, standing)).collect();
        if moved.is_empty() {
            return KeptRows::default();
        }
        let all = moved.len();
        let sound = self.that_hold(routing, moved);
        let promised = verify_routing(self.fabric, self.lids, routing, &self.expected(routing));
        let is_as_good = |routing: &Routing| {
            let verdict = verify_routing(self.fabric, self.lids, routing, &self.expected(routing));
            let is_free = verdict.is_deadlock_free() || !promised.is_deadlock_free();
            is_free && (verdict.is_sound() || !promised.is_sound())
        };
        let kept = admit(routing, &sound, &is_as_good);
        KeptRows { kept, replaced: all - kept }
    }

    /// The same tables with the rows of physical LIDs that stand, at the switches that are no vSwitches.
    pub fn others(&self, routing: &Routing, standing: &Routes) -> Routes {
        let virtuals: BTreeSet<Lid> = self.ranges().flat_map(|(range, _)| range.iter()).collect();
        let mut routes = routing.routes.clone();
        for node in self.physical() {
            let Some(table) = routes.tables.get_mut(node.index()) else { continue };
            let lids = self.lids.iter().flat_map(PortLids::iter).filter(|lid| !virtuals.contains(lid));
            lids.for_each(|lid| table.set(lid, standing.port(node, lid)));
        }
        routes
    }

    /// Follows all packets to virtual functions.
    ///
    /// # Errors
    ///
    /// The way of one that does not arrive. Their rows are those of their hosts, so that no circle is new.
    pub fn prove(&self, routing: &Routing) -> Result<(), TraceError> {
        let virtuals: BTreeSet<Lid> = self.ranges().flat_map(|(range, _)| range.iter()).collect();
        let ground = Ground::new(self.fabric, self.lids, &self.options.management_nodes);
        let ends: Vec<End> = ground.ends.iter().filter(|end| virtuals.contains(&end.lid)).copied().collect();
        let pass = Pass { ground: &ground, routes: &routing.routes, ups: None, flows: None };
        let (report, _) = pass.run_to(&ends);
        let is_fine = report.serves_hosts();
        report.counter_examples.into_iter().next().filter(|_| !is_fine).map_or(Ok(()), Err)
    }

    /// What has to hold of all rows together.
    fn expected(&self, routing: &Routing) -> Expectations<'_> {
        Expectations {
            lanes: self.options.lanes,
            tree: is_tree(routing),
            partitions: self.options.partitions.as_ref().filter(|all| Partitions::isolates(all)),
            management_nodes: &self.options.management_nodes,
            ..Expectations::default()
        }
    }

    /// Those that bring every packet home by themselves.
    fn that_hold(&self, routing: &Routing, mut columns: Vec<Column>) -> Vec<Column> {
        let mut routes = routing.routes.clone();
        columns.iter().for_each(|column| column.enter(&mut routes));
        let ground = Ground::new(self.fabric, self.lids, &self.options.management_nodes);
        let ranks = routing.ranks.as_ref().filter(|_| is_tree(routing));
        let ups = ranks.map(|ranks| ground.ups(ranks));
        let pass = Pass { ground: &ground, routes: &routes, ups: ups.as_deref(), flows: None };
        columns.retain(|column| {
            // Ends are in the order of their LIDs.
            let Ok(place) = ground.ends.binary_search_by_key(&column.lid, |end| end.lid) else {
                return false;
            };
            let (report, turns) = pass.run_to(&ground.ends[place..=place]);
            report.serves_hosts() && turns.hosts == 0
        });
        columns
    }

    /// Gives LIDs that have no port now the rows that stand, at all switches, where no packet for them would go in a circle.
    pub fn rest(&self, routing: &mut Routing, standing: &Routes, lids: &BTreeSet<Lid>) {
        for lid in lids {
            if self.circles(standing, *lid) {
                continue;
            }
            for (node, _) in self.fabric.switches() {
                let port = standing.port(node, *lid);
                if let Some(table) = routing.routes.tables.get_mut(node.index())
                    && table.port(*lid) != port
                {
                    table.set(*lid, port);
                }
            }
        }
    }

    /// Whether packets for a LID would go in a circle from some switch.
    fn circles(&self, routes: &Routes, lid: Lid) -> bool {
        let next = |node: NodeIndex| {
            let peer = self.fabric.peer(PortRef::new(node, routes.port(node, lid)))?;
            self.fabric.node(peer.node).is_switch().then_some(peer.node)
        };
        // By node, the walk that came by first.
        let mut seen = vec![0usize; self.fabric.nodes().len()];
        (1..).zip(self.fabric.switches()).any(|(walk, (start, _))| {
            let mut at = Some(start);
            while let Some(node) = at.filter(|node| seen[node.index()] == 0) {
                seen[node.index()] = walk;
                at = next(node);
            }
            at.is_some_and(|node| seen[node.index()] == walk)
        })
    }
}

/// Whether a routing promises that no path of hosts goes up after it went down.
fn is_tree(routing: &Routing) -> bool {
    routing.ranks.is_some() && routing.report.turns().is_none()
}

/// Enters as many of these as are as good as the routing before, all at once if that can be; says how many.
fn admit(routing: &mut Routing, columns: &[Column], is_as_good: &impl Fn(&Routing) -> bool) -> usize {
    if columns.is_empty() {
        return 0;
    }
    columns.iter().for_each(|column| column.enter(&mut routing.routes));
    if is_as_good(routing) {
        return columns.len();
    }
    columns.iter().for_each(|column| column.leave(&mut routing.routes));
    match columns.split_at(columns.len() / 2) {
        ([], _) => 0,
        (first, second) => admit(routing, first, is_as_good) + admit(routing, second, is_as_good),
    }
}

/// The rows of one LID that stand, where they are others than a routing's.
#[derive(Debug)]
struct Column {
    lid: Lid,
    /// By switch: the routing's port, and the one that stands.
    rows: Vec<(NodeIndex, PortNum, PortNum)>,
}

impl Column {
    /// `None` where none is another. A switch that holds no row has the routing's.
    fn of(switches: &[NodeIndex], lid: Lid, routes: &Routes, standing: &Routes) -> Option<Self> {
        let row = |node: &NodeIndex| (*node, routes.port(*node, lid), standing.port(*node, lid));
        let differs = |(_, new, old): &(NodeIndex, PortNum, PortNum)| *old != PortNum::NONE && new != old;
        let rows: Vec<_> = switches.iter().map(row).filter(differs).collect();
        (!rows.is_empty()).then_some(Self { lid, rows })
    }

    fn enter(&self, routes: &mut Routes) {
        self.rows.iter().for_each(|(node, _, old)| self.set(routes, *node, *old));
    }

    fn leave(&self, routes: &mut Routes) {
        self.rows.iter().for_each(|(node, new, _)| self.set(routes, *node, *new));
    }

    fn set(&self, routes: &mut Routes, node: NodeIndex, port: PortNum) {
        if let Some(table) = routes.tables.get_mut(node.index()) {
            table.set(self.lid, port);
        }
    }
}
