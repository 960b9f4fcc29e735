//! Facts about adapters and ports for a program.

use weft_device::DeviceConfig;
use weft_node::PortId;
use weft_umad::user_mad::{CaAttributes, PortAttributes};
use weft_wire::{Guid, NodeType, PathRate, PortInfo, PortNum};

use crate::core::Core;

/// What is told of a device, which does not change.
pub(crate) fn ca_attributes(config: &DeviceConfig) -> CaAttributes {
    let is_switch = config.kind == NodeType::Switch;
    let last = u8::try_from(config.ports.len()).unwrap_or(u8::MAX);
    CaAttributes {
        node_guid: config.guid,
        system_image_guid: config.system_image_guid,
        node_type: config.kind,
        vendor_id: config.vendor_id,
        device_id: config.device_id,
        revision: 0,
        first_port: PortNum(u8::from(!is_switch)),
        last_port: PortNum(if is_switch { 0 } else { last }),
        description: config.description.clone(),
    }
}

impl Core {
    /// The device, if the node is here and has such a port for programs.
    pub(super) fn user_place(&self, node: Guid, port: PortNum) -> Option<PortId> {
        let device = self.names.find(node)?;
        let ca = &self.names.of(device)?.ca;
        (ca.first_port..=ca.last_port).contains(&port).then_some(PortId::new(device, port))
    }

    pub(super) fn port_attributes(&self, node: Guid, port: PortNum) -> Option<PortAttributes> {
        let machine = self.node.device(self.user_place(node, port)?.device)?;
        let info = machine.own_port_info(port)?;
        Some(PortAttributes {
            port,
            state: info.port_state,
            phys_state: info.port_physical_state,
            lid: info.lid,
            lmc: info.lmc,
            sm_lid: info.master_sm_lid,
            sm_sl: info.master_sm_sl,
            rate_100mbps: rate_100mbps(info),
            capability_mask: info.capability_mask,
            gid_prefix: info.gid_prefix,
            port_guid: machine.port_snapshot(port)?.guid,
            p_keys: machine.own_p_keys(port).to_vec(),
        })
    }
}

/// The rate of the link, as Linux and path records name it: FDR is 14 Gb/s, not 14.0625.
fn rate_100mbps(info: &PortInfo) -> u32 {
    PathRate::of_link(info).megabits().unwrap_or(0) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_that_linux_tells() {
        let rate = |width, speed, ext| {
            rate_100mbps(&PortInfo {
                link_width_active: width,
                link_speed_active: speed,
                link_speed_ext_active: ext,
                ..PortInfo::default()
            })
        };
        assert_eq!(rate(2, 4, 0), 400, "4x QDR");
        assert_eq!(rate(2, 4, 1), 560, "4x FDR");
        assert_eq!(rate(2, 0, 2), 1000, "4x EDR");
        assert_eq!(rate(2, 0, 4), 2000, "4x HDR");
        assert_eq!(rate(1, 1, 0), 25, "1x SDR");
        assert_eq!(rate(8, 2, 0), 600, "12x DDR");
    }
}
