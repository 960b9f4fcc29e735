//! NodeInfo, GUIDInfo, P_KeyTable, Notice: who the node and its ports are.

use weft_wire::{Guid, GuidInfo, NodeDescription, NodeInfo, Notice, PKeyTable, PortNum, status};

use super::{Answer, Effect, Request, Work};

/// GUIDs of one block, and keys of one block.
const GUIDS: usize = 8;
const KEYS: usize = 32;

impl Work<'_> {
    pub(super) fn node_info(&self, port: PortNum) -> [u8; 64] {
        let own = self.tables.ports.get(usize::from(self.tables.ports.end(port).0));
        let info = NodeInfo {
            base_version: 1,
            class_version: 1,
            node_type: self.tables.identity.kind,
            num_ports: self.tables.ports.last(),
            system_image_guid: self.tables.identity.system_image_guid,
            node_guid: self.tables.identity.guid,
            port_guid: own.map_or(self.tables.identity.guid, |port| port.guid),
            partition_cap: own.map_or(0, |port| port.p_keys.len() as u16),
            device_id: self.tables.identity.device_id,
            revision: 0,
            local_port_num: port,
            vendor_id: self.tables.identity.vendor_id & 0xff_ffff,
        };
        padded(&info.encode())
    }

    pub(super) fn set_node_description(&mut self, request: Request<'_>) -> [u8; 64] {
        let description = NodeDescription::decode(request.data);
        let answer = description.encode();
        self.follow(Effect::Describe(description));
        answer
    }

    pub(super) fn guid_info(&self, request: Request<'_>) -> Answer {
        let block = (request.modifier & 0xff) as usize * GUIDS;
        let port = &self.tables.ports[usize::from(self.tables.ports.end(request.port).0)];
        let guids = port.guids.get(block..block + GUIDS).ok_or(status::BAD_VALUE)?;
        Ok(GuidInfo { guids: std::array::from_fn(|i| guids[i]) }.encode())
    }

    /// The first GUID of all is the port's own and stays.
    pub(super) fn set_guid_info(&mut self, request: Request<'_>) -> Answer {
        let block = (request.modifier & 0xff) as usize * GUIDS;
        let end = self.tables.ports.end(request.port);
        let port = &mut self.tables.ports[usize::from(end.0)];
        let own = port.guid;
        let guids = port.guids.get_mut(block..block + GUIDS).ok_or(status::BAD_VALUE)?;
        guids.copy_from_slice(&GuidInfo::decode(request.data).guids);
        port.guids[0] = own;
        // The last block may be longer than the port has room for.
        port.guids[usize::from(port.info.guid_cap)..].fill(Guid(0));
        self.guid_info(request)
    }

    /// A block of keys; the modifier's upper half names a switch's port.
    pub(super) fn p_key_table(&self, request: Request<'_>) -> Answer {
        let (port, block) = self.p_key_place(request)?;
        let keys = port.p_keys.get(block..block + KEYS).ok_or(status::BAD_VALUE)?;
        Ok(PKeyTable { p_keys: std::array::from_fn(|i| keys[i]) }.encode())
    }

    pub(super) fn set_p_key_table(&mut self, request: Request<'_>) -> Answer {
        let (port, block) = self.p_key_place(request)?;
        let at = usize::from(port.number.0);
        let keys = self.tables.ports[at].p_keys.get_mut(block..block + KEYS).ok_or(status::BAD_VALUE)?;
        keys.copy_from_slice(&PKeyTable::decode(request.data).p_keys);
        self.tables.statistics.p_key_writes += 1;
        self.follow(Effect::KeysChanged(PortNum(at as u8)));
        self.p_key_table(request)
    }

    fn p_key_place(&self, request: Request<'_>) -> Result<(&crate::port::Port, usize), u16> {
        let block = (request.modifier & 0xffff) as usize * KEYS;
        let port = if self.tables.ports.is_switch() {
            PortNum((request.modifier >> 16 & 0xff) as u8)
        } else {
            request.port
        };
        let port = self.tables.ports.get(usize::from(port.0)).ok_or(status::BAD_VALUE)?;
        Ok((port, block))
    }

    /// The trap that waits longest for the subnet manager; an empty notice when none does.
    pub(super) fn notice(&self, port: PortNum) -> [u8; 64] {
        let oldest = self.tables.traps.oldest(self.tables.ports.end(port)).copied();
        oldest
            .unwrap_or_else(|| Notice { notice_type: weft_wire::NoticeType::Empty, ..Notice::default() })
            .to_smp_data()
    }
}

/// An attribute shorter than 64 bytes, filled up with zeros.
pub(super) fn padded(attribute: &[u8]) -> [u8; 64] {
    let mut data = [0; 64];
    data[..attribute.len()].copy_from_slice(attribute);
    data
}
