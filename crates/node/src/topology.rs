//! From a cabling to devices: the one place that says what a node of a topology is as a device, for agents and for the
//! simulator.

use weft_device::{DeviceConfig, DeviceOptions, PortConfig};
use weft_topology::{Fabric, NodeIndex, UPLINK};
use weft_wire::PortNum;

/// A node of the cabling as a device.
///
/// # Panics
/// When the index is not one of this fabric's.
pub fn device_config(fabric: &Fabric, index: NodeIndex, options: &DeviceOptions) -> DeviceConfig {
    let node = fabric.node(index);
    let ports =
        node.external_ports().map(|(_, port)| PortConfig { guid: port.guid, link: port.enabled.into() });
    let mut options = options.clone();
    options.data.uplink = if fabric.is_vswitch(index) { UPLINK } else { PortNum::ZERO };
    DeviceConfig {
        kind: node.kind,
        guid: node.guid,
        system_image_guid: node.system_image_guid,
        description: node.description.clone(),
        vendor_id: node.vendor_id,
        device_id: node.device_id,
        enhanced_port0: node.enhanced_port0,
        ports: ports.collect(),
        options,
    }
}
