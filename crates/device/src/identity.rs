//! A node's identity: GUIDs, description, vendor and device.

use weft_wire::{Guid, NodeDescription, NodeType};

use crate::DeviceConfig;

/// What NodeInfo and NodeDescription show.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) kind: NodeType,
    pub(crate) guid: Guid,
    pub(crate) system_image_guid: Guid,
    pub(crate) vendor_id: u32,
    pub(crate) device_id: u16,
    pub(crate) description: NodeDescription,
}

impl Identity {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        Self {
            kind: config.kind,
            guid: config.guid,
            system_image_guid: config.system_image_guid,
            vendor_id: config.vendor_id,
            device_id: config.device_id,
            description: NodeDescription::new(&config.description),
        }
    }
}
