//! The routing of a subnet. It goes with the subnet from sweep to sweep; options stay as the operator gave them.

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_routing::{BLOCK_ENTRIES, EngineOptions, Lids, Outdated, Proven, Routing, ServiceLevels, Takeover};
use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Guid, Lid, PortNum};

/// The routing in force: LIDs, tables, service levels and lanes, and whether the tables are proved.
#[derive(Debug, Default)]
pub(crate) struct Routed {
    pub(crate) lids: Lids,
    /// The service level of every pair; `None` where one lane does.
    pub(crate) levels: Option<Arc<ServiceLevels>>,
    lanes: Mappings,
    /// The options that the engine had.
    pub(crate) given: EngineOptions,
    proof: Proof,
}

/// The mappings of service levels to lanes that the engine has chosen.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// `None` where the operator's mapping will do.
    pub(crate) everywhere: Option<[u8; 16]>,
    /// By node and port, where it differs.
    pub(crate) of_ports: BTreeMap<(Guid, PortNum), [u8; 16]>,
}

/// How far the tables are proved.
#[derive(Debug, Default)]
enum Proof {
    /// No tables are in force, or they do not hold any more.
    #[default]
    Nothing,
    /// To be proved.
    Pending(Box<Routing>),
    /// To be proved again, as blocks have been written since.
    Outdated(Outdated),
    /// Of an engine whose routing cannot be repaired.
    Unrepaired(Box<Routing>),
    Proven(Box<Proven>),
}

impl Routed {
    /// A routing that is to be proved.
    pub(crate) fn new(
        lids: Lids,
        levels: Option<Arc<ServiceLevels>>,
        lanes: Mappings,
        routing: Routing,
        given: EngineOptions,
    ) -> Self {
        Self { lids, levels, lanes, given, proof: Proof::Pending(Box::new(routing)) }
    }

    /// The lane of each service level out of a port; `None` where the operator's mapping is in force.
    pub(crate) fn sl2vl(&self, node: Guid, port: PortNum) -> Option<[u8; 16]> {
        self.lanes.of_ports.get(&(node, port)).copied().or(self.lanes.everywhere)
    }

    /// The tables in force, with what else the engine said.
    pub(crate) fn routing(&self) -> Option<&Routing> {
        match &self.proof {
            Proof::Nothing => None,
            Proof::Pending(routing) | Proof::Unrepaired(routing) => Some(routing),
            Proof::Outdated(outdated) => Some(outdated.routing()),
            Proof::Proven(proven) => Some(proven.routing()),
        }
    }

    /// The tables are not to be repaired; LIDs, levels and lanes stay until there are others.
    pub(crate) fn withdraw(&mut self) {
        self.proof = Proof::Nothing;
    }

    pub(crate) fn is_proven(&self) -> bool {
        matches!(self.proof, Proof::Proven(_))
    }

    /// Proves tables that are yet to be proved. False: there are none.
    pub(crate) fn prove(&mut self, fabric: &Fabric) -> bool {
        let proof = match std::mem::take(&mut self.proof) {
            Proof::Outdated(outdated) => Proof::Pending(Box::new(outdated.into_routing())),
            other => other,
        };
        match proof {
            Proof::Pending(routing) if Proven::may(&routing, &self.given).is_err() => {
                self.proof = Proof::Unrepaired(routing);
                true
            }
            Proof::Pending(routing) => {
                let proven = Proven::new(fabric.clone(), self.lids.clone(), *routing, &self.given);
                self.proof = proven.map_or(Proof::Nothing, |proven| Proof::Proven(Box::new(proven)));
                true
            }
            other => {
                self.proof = other;
                false
            }
        }
    }

    pub(crate) fn proven_mut(&mut self) -> Option<&mut Proven> {
        match &mut self.proof {
            Proof::Proven(proven) => Some(proven),
            Proof::Nothing | Proof::Pending(_) | Proof::Outdated(_) | Proof::Unrepaired(_) => None,
        }
    }

    /// Takes what is proved out, to repair it. Without [`Self::repaired`] nothing is in force any more.
    pub(crate) fn take_proven(&mut self) -> Option<Box<Proven>> {
        match std::mem::take(&mut self.proof) {
            Proof::Proven(proven) => Some(proven),
            other => {
                self.proof = other;
                None
            }
        }
    }

    /// LIDs have moved, and have the classes of their new places. Whether levels are others now.
    pub(crate) fn relevel(&mut self, all: &[Takeover]) -> bool {
        let Some(levels) = &mut self.levels else { return false };
        let mut after = (**levels).clone();
        after.take_over(all);
        if after == **levels {
            return false;
        }
        if let Some(routing) = self.routing_mut() {
            routing.levels.take_over(all);
        }
        self.levels = Some(Arc::new(after));
        true
    }

    /// What is in force is to be proved again as a whole.
    fn routing_mut(&mut self) -> Option<&mut Routing> {
        self.proof = match std::mem::take(&mut self.proof) {
            Proof::Proven(proven) => Proof::Outdated(proven.outdate()),
            other => other,
        };
        match &mut self.proof {
            Proof::Pending(routing) | Proof::Unrepaired(routing) => Some(routing),
            Proof::Outdated(outdated) => Some(outdated.routing_mut()),
            Proof::Nothing | Proof::Proven(_) => None,
        }
    }

    /// A block of a switch's table has been written: what is in force is to be proved again as a whole.
    pub(crate) fn rewrite(&mut self, switch: NodeIndex, block: u16, ports: &[PortNum; BLOCK_ENTRIES]) {
        let Some(routing) = self.routing_mut() else { return };
        let Some(table) = routing.routes.tables.get_mut(switch.index()) else { return };
        let first = block * BLOCK_ENTRIES as u16;
        // The table grows for rows alone: its end is the switch's LinearFDBTop.
        let rows = (first..).map(Lid).zip(ports);
        rows.filter(|(lid, port)| table.port(*lid) != **port)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|(lid, port)| table.set(lid, *port));
    }

    /// Puts it back in force.
    pub(crate) fn repaired(&mut self, proven: Box<Proven>) {
        self.proof = Proof::Proven(proven);
    }
}

#[cfg(test)]
impl Routed {
    /// One that maps service levels alone.
    pub(crate) fn with_lanes(lanes: Mappings) -> Self {
        Self { lanes, ..Self::default() }
    }
}
