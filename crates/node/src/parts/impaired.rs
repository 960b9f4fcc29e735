//! Ports whose cables are impaired.

use std::collections::BTreeMap;

use weft_fault::Impairment;
use weft_wire::VirtualLane;

use crate::held::Arriving;
use crate::impair::{ImpairmentCounts, Impairments};
use crate::{DeviceId, PortId};

/// Ports at which something is impaired, or is late still.
#[derive(Debug, Default)]
pub(crate) struct ImpairedPorts {
    pub(crate) ports: BTreeMap<PortId, ImpairedPort>,
    pub(crate) counts: ImpairmentCounts,
}

/// One of them.
#[derive(Debug, Default)]
pub(crate) struct ImpairedPort {
    pub(crate) impairments: Impairments,
    /// What is held back for it, and how much of that is of lane 15.
    pub(crate) held: [u32; 2],
}

impl ImpairedPorts {
    /// Something that was held back arrives.
    pub(crate) fn arrives(&mut self, at: PortId, arriving: &Arriving) {
        if let Some(port) = self.ports.get_mut(&at) {
            let is_management = arriving.lane() == Some(VirtualLane::MANAGEMENT);
            port.held[0] = port.held[0].saturating_sub(1);
            port.held[1] = port.held[1].saturating_sub(is_management.into());
        }
    }

    /// What was on its way to a port is gone.
    pub(crate) fn begin_anew(&mut self, at: PortId) {
        if let Some(port) = self.ports.get_mut(&at) {
            port.held = [0; 2];
            port.impairments.begin_anew();
        }
    }

    /// The impairments of what arrives at a port.
    pub(crate) fn of(&self, at: PortId) -> impl Iterator<Item = (Impairment, u32)> {
        self.ports.get(&at).into_iter().flat_map(|port| port.impairments.list())
    }

    /// A device is gone, with its ports.
    pub(crate) fn forget(&mut self, device: DeviceId) {
        self.ports.retain(|at, _| at.device != device);
    }
}
