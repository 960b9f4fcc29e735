//! PortInfoExtended and MlnxExtPortInfo: what PortInfo has no room for.

use weft_wire::{MlnxExtPortInfo, PortInfoExtended, status};

use super::{Answer, Effect, Request, Work};

/// The two vendors whose nodes have Mellanox's chips whatever their device ids.
const MELLANOX: u32 = 0x0002c9;
const BULL: u32 = 0x00119f;

impl Work<'_> {
    /// No port here has forward error correction, so there is nothing but the attribute (IBA 14.2.5.19).
    pub(super) fn port_info_extended(&self, request: Request<'_>) -> Answer {
        self.port_info_place(request)?;
        Ok(PortInfoExtended::default().encode())
    }

    pub(super) fn mlnx_ext_port_info(&self, request: Request<'_>) -> Answer {
        if !has_mellanox_chip(self.tables.identity.vendor_id, self.tables.identity.device_id) {
            return Err(status::BAD_METHOD_ATTRIBUTE);
        }
        let port = self.port_info_place(request)?;
        let fdr10 = self.tables.ports[usize::from(port.0)].fdr10;
        let speed = |has: bool| if has { MlnxExtPortInfo::FDR10 } else { 0 };
        let info = MlnxExtPortInfo {
            link_speed_supported: speed(fdr10.supported),
            link_speed_enabled: speed(fdr10.enabled),
            link_speed_active: speed(fdr10.active),
            ..MlnxExtPortInfo::default()
        };
        Ok(info.encode())
    }

    /// The speed enabled is for the next training, as in PortInfo.
    pub(super) fn set_mlnx_ext_port_info(&mut self, request: Request<'_>) -> Answer {
        self.mlnx_ext_port_info(request)?;
        let number = self.port_info_place(request)?;
        let wanted = MlnxExtPortInfo::decode(request.data);
        let fdr10 = &mut self.tables.ports[usize::from(number.0)].fdr10;
        let supported = if fdr10.supported { MlnxExtPortInfo::FDR10 } else { 0 };
        if wanted.state_change_enable & MlnxExtPortInfo::FDR10 != 0 {
            if wanted.link_speed_enabled & !supported != 0 {
                return Err(status::BAD_VALUE);
            }
            let enabled = wanted.link_speed_enabled != 0;
            if fdr10.enabled != enabled {
                fdr10.enabled = enabled;
                self.follow(Effect::HelloChanged(number));
            }
        }
        self.mlnx_ext_port_info(request)
    }
}

/// Whether real nodes with these ids know MlnxExtPortInfo: the tools of the field ask those for it, and take a
/// refusal for a failure.
fn has_mellanox_chip(vendor_id: u32, device_id: u16) -> bool {
    matches!(vendor_id & 0xff_ffff, MELLANOX | BULL)
        || matches!(device_id, 0x1003..=0x101b | 0xa2d2)
        || matches!(device_id, 0xc738..=0xc73b | 0xc839 | 0xcb20 | 0xcf08 | 0xcf09 | 0xd2f0)
}
