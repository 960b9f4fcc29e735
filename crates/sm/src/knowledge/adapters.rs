//! The virtualised adapters of a subnet: which switches are vSwitches, and which ports are virtual functions'.

use std::collections::BTreeSet;

use weft_routing::{VSwitch, vswitches};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Lid, PortNum};

use super::key::PortAt;
use crate::{Options, SwitchLids};

/// The virtualised adapters of a subnet, and the LIDs of their functions.
#[derive(Debug, Default)]
pub(crate) struct Adapters {
    /// The vSwitches.
    pub(crate) vswitches: Vec<VSwitch>,
    /// The ports of virtual functions that are there.
    functions: BTreeSet<PortRef>,
    /// The vSwitches whose port 0 has the LID of the physical function, each with that port.
    shared: Vec<(PortAt, PortAt)>,
    /// The LIDs that have rows and no port now.
    pub(crate) resting: BTreeSet<Lid>,
    /// How far the LIDs reach that machines get theirs from; 0 where they get none when they boot.
    pub(crate) space: Lid,
}

impl Adapters {
    /// Recognises them.
    pub(crate) fn find(fabric: &Fabric, options: &Options) -> Self {
        let vswitches = vswitches(fabric, &options.routing.engine.management_nodes);
        let functions = vswitches.iter().flat_map(VSwitch::virtual_functions).collect();
        let shares = |vswitch: &VSwitch| {
            let pf = vswitch.pf()?;
            let zero = PortAt { node: vswitch.node.0, port: PortNum::ZERO };
            Some((zero, PortAt { node: pf.node.0, port: pf.port }))
        };
        let are_shared = options.vm_lids.switch_lids == SwitchLids::Shared;
        let shared = vswitches.iter().filter(|_| are_shared).filter_map(shares).collect();
        Self { vswitches, functions, shared, ..Self::default() }
    }

    /// Those of the same subnet with other cables within its adapters. Which LIDs there are stays.
    pub(crate) fn find_again(&self, fabric: &Fabric, options: &Options) -> Self {
        Self { resting: self.resting.clone(), space: self.space, ..Self::find(fabric, options) }
    }

    /// Whether a port is a virtual function's.
    pub(crate) fn is_function(&self, at: PortAt) -> bool {
        self.functions.contains(&PortRef::new(NodeIndex(at.node), at.port))
    }

    /// The port whose LID this port 0 has too, if it is a vSwitch's that has none of its own.
    pub(crate) fn shared_with(&self, zero: PortAt) -> Option<PortAt> {
        let place = self.shared.binary_search_by_key(&zero, |(zero, _)| *zero).ok()?;
        Some(self.shared[place].1)
    }

    /// The vSwitch that has the LID of this port too.
    pub(crate) fn sharing(&self, port: PortRef) -> Option<PortAt> {
        let is_its = |pf: &PortAt| (NodeIndex(pf.node), pf.port) == (port.node, port.port);
        self.shared.iter().find(|(_, pf)| is_its(pf)).map(|(zero, _)| *zero)
    }
}
