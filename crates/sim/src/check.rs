//! Checks of a fabric that has come to rest.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use weft_routing::{EngineReport, ForwardingTable, Lids, Routes, shares_lid, verify};
use weft_topology::{Cable, Fabric, FabricBuilder, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum, PortState};

use crate::Simulation;

weft_wire::worded! {
    /// Something that should not be.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Violation {
        /// A port with a link within the manager's reach is not Active.
        NotActive {
            /// Which port.
            port: String,
            /// What it is.
            state: PortState,
        } => ("{port} has a link and is {state}"),
        /// An end port within the manager's reach has no LID.
        NoLid {
            /// Which port.
            port: String,
        } => ("{port} has no LID"),
        /// Two ports have the same LID.
        SameLid {
            /// One of the two, and the LID and the other one.
            what: String,
        } => ("{what}"),
        /// The tables do not lead a packet to its destination.
        Route {
            /// The way that it takes.
            what: String,
        } => ("{what}"),
        /// The manager knows another cabling than there is.
        Picture {
            /// The difference.
            what: String,
        } => ("{what}"),
        /// A packet was sent and did not arrive, or nothing came back.
        NotReached {
            /// From.
            from: String,
            /// To.
            to: String,
            /// The LID it was sent to.
            lid: Lid,
        } => ("{from} does not reach {to}, LID {lid}"),
        /// Packets on a data lane came or went without being counted.
        Unbalanced {
            /// The lane, where, and all that was counted.
            what: String,
        } => ("{what}"),
        /// A buffer holds more than it can, or somebody may send more than there is room for.
        Buffer {
            /// Which, and what it is like.
            what: String,
        } => ("{what}"),
    }
}

/// What was looked at, and found to be right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Nodes within the manager's reach.
    pub nodes: usize,
    /// Ports with a link there.
    pub ports: usize,
    /// End ports with a LID there.
    pub lids: usize,
    /// Pairs of switch and LID whose way was followed through the tables.
    pub pairs: u64,
}

/// Devices and cables by GUIDs, so that what was learned by MADs can be compared with what there is.
fn names(
    fabric: &Fabric,
    nodes: impl Iterator<Item = NodeIndex>,
    cables: impl Iterator<Item = Cable>,
) -> BTreeSet<String> {
    let end = |port: PortRef| format!("{}[{}]", fabric.node(port.node).guid, port.port);
    let nodes = nodes.map(|node| fabric.node(node).guid.to_string());
    let cables = cables.map(|cable| format!("{} - {}", end(cable.a), end(cable.b)));
    nodes.chain(cables).collect()
}

impl Simulation {
    /// Looks at the devices themselves: every port with a link Active, every end port with a LID of its own, and
    /// every way through the tables that are in the switches free of loops and at its destination.
    ///
    /// What the manager cannot reach, because no cable leads there, is not looked at.
    pub fn check(&self) -> Result<CheckReport, Vec<Violation>> {
        let reached = self.reached();
        let mut violations = Vec::new();
        let ports = self.check_ports(&reached, &mut violations);
        let live = self.live_fabric();
        let lids = self.check_lids(&reached, &mut violations);
        let routes = self.live_routes();
        let report = verify(&live, &lids, &routes, &self.options().sm.routing.engine.management_nodes);
        if if self.spares_switches() { !report.serves_hosts() } else { report.failures > 0 } {
            let examples = report.counter_examples.iter();
            violations.extend(examples.map(|error| Violation::Route { what: error.to_string() }));
        }
        if violations.is_empty() {
            Ok(CheckReport { nodes: reached.len(), ports, lids: lids.len(), pairs: report.pairs })
        } else {
            Err(violations)
        }
    }

    /// Whether the manager that is in charge knows exactly the devices and cables with links within its reach. What it knows is
    /// not looked at while it sweeps, or when none runs.
    pub fn check_picture(&self) -> Result<(), Vec<Violation>> {
        let Some(known) = self.sm().and_then(weft_sm::SubnetManager::fabric) else { return Ok(()) };
        let reached = self.reached();
        let within = |cable: &Cable| [cable.a, cable.b].iter().all(|end| reached.contains(&end.node));
        let live = self.live_fabric();
        let there = names(&live, reached.iter().copied(), live.cables().filter(within));
        let known = names(known, known.iter().map(|(node, _)| node), known.cables());
        let missing = there.difference(&known).map(|what| format!("the manager does not know of {what}"));
        let extra =
            known.difference(&there).map(|what| format!("the manager knows of {what}, which is not there"));
        let violations: Vec<_> = missing.chain(extra).map(|what| Violation::Picture { what }).collect();
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    /// Whether the routing may have no way between some switches. No data needs one.
    pub(crate) fn spares_switches(&self) -> bool {
        self.routing().is_some_and(EngineReport::spares_switches)
    }

    /// The nodes that links lead to from the manager's port. HCAs pass nothing on.
    pub(crate) fn reached(&self) -> BTreeSet<NodeIndex> {
        let start = self.sm_port();
        let mut reached = BTreeSet::from([start.node]);
        let is_switch = |node: NodeIndex| self.fabric().node(node).is_switch();
        let ports = |node| {
            let ports = self.fabric().node(node).cabled_ports();
            ports.map(move |(port, _)| PortRef::new(node, port))
        };
        let mut todo = vec![start];
        if is_switch(start.node) {
            todo = ports(start.node).collect();
        }
        while let Some(port) = todo.pop() {
            if let Some(peer) = self.fabric().peer(port).filter(|_| self.is_link_up(port))
                && reached.insert(peer.node)
                && is_switch(peer.node)
            {
                todo.extend(ports(peer.node));
            }
        }
        reached
    }

    /// The end ports within reach that can have LIDs: port 0 of switches, HCA ports whose link leads there.
    pub(crate) fn end_ports(&self, reached: &BTreeSet<NodeIndex>) -> Vec<PortRef> {
        let mut ports = Vec::new();
        for &index in reached {
            let node = self.fabric().node(index);
            if node.is_switch() {
                ports.push(PortRef::new(index, PortNum::ZERO));
                continue;
            }
            for (number, _) in node.cabled_ports() {
                let port = PortRef::new(index, number);
                let is_up = port == self.sm_port() || self.is_link_up(port);
                if is_up && self.leads_to_manager(port, reached) {
                    ports.push(port);
                }
            }
        }
        ports
    }

    fn check_ports(&self, reached: &BTreeSet<NodeIndex>, violations: &mut Vec<Violation>) -> usize {
        let mut count = 0;
        for cable in self.fabric().cables() {
            let known = [cable.a, cable.b].into_iter().all(|end| {
                // An HCA is reached through some of its ports and not through others.
                let is_switch = self.fabric().node(end.node).is_switch();
                reached.contains(&end.node) && (is_switch || self.leads_to_manager(end, reached))
            });
            if !known || !self.is_link_up(cable.a) {
                continue;
            }
            for end in [cable.a, cable.b] {
                let state = self.port(end).map_or(PortState::Down, |port| port.state);
                count += 1;
                if state != PortState::Active {
                    let port = self.fabric().port_name(end).to_string();
                    violations.push(Violation::NotActive { port, state });
                }
            }
        }
        count
    }

    /// Whether the way to an HCA leads through this port: to a switch, or the manager sits here or at the other end.
    fn leads_to_manager(&self, port: PortRef, reached: &BTreeSet<NodeIndex>) -> bool {
        port == self.sm_port()
            || self.fabric().peer(port).is_some_and(|peer| {
                peer == self.sm_port()
                    || reached.contains(&peer.node) && self.fabric().node(peer.node).is_switch()
            })
    }

    /// The LIDs that the devices have.
    pub(crate) fn check_lids(&self, reached: &BTreeSet<NodeIndex>, violations: &mut Vec<Violation>) -> Lids {
        let mut by_lid = BTreeMap::new();
        let lid = |port: PortRef| self.port(port).map_or(Lid(0), |found| found.lid);
        let has_own = |port: &PortRef| !shares_lid(self.fabric(), port.node, lid);
        for port in self.end_ports(reached).into_iter().filter(has_own) {
            let Some(found) = self.port(port) else { continue };
            let name = self.fabric().port_name(port);
            if found.lid == Lid(0) {
                violations.push(Violation::NoLid { port: name.to_string() });
            } else if let Some((other, _)) = by_lid.insert(found.lid, (port, found.lmc)) {
                let other = self.fabric().port_name(other);
                violations.push(Violation::SameLid {
                    what: format!("{name} and {other} both have LID {}", found.lid),
                });
            }
        }
        let mut lids = Lids::new();
        for (lid, (port, lmc)) in by_lid {
            if let Err(error) = lids.insert(port, lid, lmc) {
                violations.push(Violation::SameLid { what: error.to_string() });
            }
        }
        lids
    }

    /// The cabling as far as it has links.
    pub fn live_fabric(&self) -> Fabric {
        let mut builder = FabricBuilder::new();
        for node in self.fabric().nodes() {
            builder.add_node(node.clone()).expect("the nodes were in a fabric before");
        }
        for cable in self.fabric().cables().filter(|cable| self.is_link_up(cable.a)) {
            builder.connect(cable.a, cable.b).expect("the cable was in a fabric before");
        }
        builder.build()
    }

    /// The tables that are in the switches, up to what they look up.
    pub fn live_routes(&self) -> Routes {
        let table = |index: NodeIndex| {
            let mut table = ForwardingTable::default();
            if let Some(device) = self.device(index) {
                let top = usize::from(device.linear_fdb_top().0);
                for (lid, &port) in (0..).map(Lid).zip(device.forwarding_table()).take(top + 1) {
                    table.set(lid, port);
                }
            }
            table
        };
        Routes { tables: self.fabric().iter().map(|(index, _)| table(index)).collect() }
    }
}
