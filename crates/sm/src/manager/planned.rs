//! Changes that other partitions would make: blocks of P_Keys, and rows of forwarding tables where the engine reads partitions.

use std::sync::Arc;

use weft_routing::{BLOCK_ENTRIES, Engine, Partitions, PortLids};
use weft_topology::NodeIndex;
use weft_vocabulary::routing::PlannedRoutes;
use weft_wire::{Guid, Lid, PortNum};

use super::SubnetManager;
use super::repair::in_order;
use crate::Options;
use crate::knowledge::{FoundNode, Keys, Subnet};
use crate::sweep::{Standing, key_changes, key_ports, route};

/// A block of a P_Key table that a change would write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedKeys {
    /// The node.
    pub node: Guid,
    /// Its port.
    pub port: PortNum,
    /// The block of 32 keys.
    pub block: u16,
}

impl SubnetManager {
    /// The blocks that other partitions would have this manager write first; `None` while it is busy or not in charge.
    pub fn plan_partitions(&mut self, partitions: &Partitions) -> Option<Vec<PlannedKeys>> {
        let own = self.own_port.at.filter(|_| self.may_plan())?;
        let mut subnet = self.known.take_subnet()?;
        let before = subnet.keys.replace(Arc::new(Keys::new(partitions, own.guid)));
        let mut planned = Vec::new();
        for at in key_ports(&subnet, |_| true) {
            let Some(node) = subnet.node(at.node).map(FoundNode::guid) else { continue };
            let held = self.known.memory.get(&node).and_then(|held| held.port(at.port));
            let Some(held) = held else { continue };
            let changes = key_changes(self.now, &subnet, at, held, self.tenants.layouts(), &self.options);
            let blocks = changes.first.into_iter().chain(changes.last);
            planned.extend(blocks.map(|(block, _)| PlannedKeys { node, port: at.port, block }));
        }
        subnet.keys = before;
        self.known.keep_subnet(subnet);
        Some(planned)
    }

    /// The forwarding tables that other partitions would change; `None` where no engine of the chain reads partitions, or while the
    /// manager is busy or not in charge. It computes the routing of the subnet as it is known, and takes as long as that.
    pub fn plan_routes(&mut self, partitions: &Partitions) -> Option<PlannedRoutes> {
        if !reads_partitions(&self.options) || !self.may_plan() {
            return None;
        }
        let mut options = self.options.clone();
        options.routing.engine.partitions = Some(partitions.clone());
        let subnet = self.known.take_subnet()?;
        let planned = self.routes_with(&subnet, &options);
        self.known.keep_subnet(subnet);
        Some(planned)
    }

    fn may_plan(&self) -> bool {
        self.task.is_idle() && self.election.state.is_in_charge()
    }

    fn routes_with(&mut self, subnet: &Subnet, options: &Options) -> PlannedRoutes {
        let mut computed = match route(subnet, options, Some(&mut self.known.paths)) {
            Ok(computed) => computed,
            Err(why) => return PlannedRoutes { refused: Some(why), ..PlannedRoutes::default() },
        };
        let held = in_order(subnet, self.known.memory.clone());
        let standing = Standing::new(subnet, &held, &computed);
        let stands = standing.routes.clone();
        computed.keep(subnet, standing);
        let mut planned = PlannedRoutes::default();
        let lids: Vec<Lid> = computed.lids.iter().flat_map(PortLids::iter).collect();
        for (node, _) in subnet.switches() {
            let node = NodeIndex(node);
            let differs = |lid: &&Lid| stands.port(node, **lid) != computed.routing.routes.port(node, **lid);
            let mut blocks: Vec<u16> =
                lids.iter().filter(differs).map(|lid| lid.0 / BLOCK_ENTRIES as u16).collect();
            planned.rows += blocks.len() as u32;
            blocks.dedup();
            planned.blocks += blocks.len() as u32;
            planned.switches += u32::from(!blocks.is_empty());
        }
        let report = computed.routing.report;
        let first = options.routing.chain.engines().next().map(|engine: &Engine| engine.name);
        planned.refused = report.fallbacks.first().filter(|_| Some(&*report.engine) != first).cloned();
        (planned.engine, planned.unsatisfied) = (report.engine, report.unsatisfied);
        planned
    }
}

/// Whether partitions go into the routing.
pub(super) fn reads_partitions(options: &Options) -> bool {
    options.routing.chain.engines().any(|engine| engine.options.contains(&"partitions"))
}
