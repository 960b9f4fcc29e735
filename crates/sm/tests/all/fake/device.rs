//! One device of the scripted fabric: its state and its management agent.

use std::collections::BTreeMap;

use weft_topology::Node;
use weft_wire::*;

pub struct Device {
    pub on: bool,
    pub node: Node,
    pub switch: SwitchInfo,
    pub lft: Vec<PortNum>,
    pub ports: Vec<PortInfo>,
    pub sl_to_vl: BTreeMap<(u8, u8), [u8; 64]>,
    pub arbitration: BTreeMap<u32, [u8; 64]>,
    /// By modifier, as a device has them that has two blocks in each port.
    pub p_keys: BTreeMap<u32, [u8; 64]>,
    /// By port and attribute and its modifier, what the agent of congestion control holds; none where there is no such agent.
    pub congestion: Option<BTreeMap<(u8, AttributeId, u32), [u8; 192]>>,
    /// How often a port got ClientReregister, for its host to subscribe again.
    pub reregistered: u32,
}

type Done = Result<(), u16>;

impl Device {
    /// As it leaves the factory, with its links trained.
    pub fn fresh(node: Node, optimized: bool) -> Self {
        let ports = (0..node.ports.len()).map(|number| fresh_port(&node, number)).collect();
        let switch = SwitchInfo {
            linear_fdb_cap: 49152,
            port_state_change: true,
            optimized_sl_to_vl_mapping: u8::from(optimized),
            ..SwitchInfo::default()
        };
        let lft = vec![PortNum::NONE; 49152];
        let (sl_to_vl, arbitration, p_keys) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let congestion = Some(BTreeMap::new());
        Self {
            on: true,
            node,
            switch,
            lft,
            ports,
            sl_to_vl,
            arbitration,
            p_keys,
            congestion,
            reregistered: 0,
        }
    }

    /// Does what a request that came by this port asks, turns it into the answer, and says its status.
    pub fn execute(&mut self, port: PortNum, mad: &mut Mad) -> u16 {
        if mad.class() == MgmtClass::CongestionControl {
            return self.congestion(port, mad).err().unwrap_or(status::OK);
        }
        let (set, is_switch) = (mad.method() == Method::Set, self.node.is_switch());
        let done = match mad.attribute_id() {
            AttributeId::NodeInfo => {
                mad.set_smp_data(&self.node_info(port).encode());
                Ok(())
            }
            AttributeId::NodeDescription => {
                mad.set_smp_data(&NodeDescription::new(&self.node.description).encode());
                Ok(())
            }
            AttributeId::SwitchInfo if is_switch => self.switch_info(set, mad),
            AttributeId::PortInfo => self.port_info(port, set, mad),
            AttributeId::LinearForwardingTable if is_switch => self.forwarding_table(set, mad),
            AttributeId::SlToVlTable => self.sl_to_vl_table(set, mad),
            AttributeId::VlArbitrationTable => self.vl_arbitration_table(set, mad),
            AttributeId::PKeyTable if set || self.p_keys.contains_key(&mad.attribute_modifier()) => {
                let table = self.p_keys.entry(mad.attribute_modifier()).or_insert([0; 64]);
                if set {
                    *table = *mad.smp_data();
                }
                mad.set_smp_data(table);
                Ok(())
            }
            AttributeId::PKeyTable => {
                let mut p_keys = [PKey(0); 32];
                // Every port has its number in a second partition.
                (p_keys[0], p_keys[1]) = (PKey::DEFAULT_FULL, PKey(0x1000 | mad.attribute_modifier() as u16));
                mad.set_smp_data(&PKeyTable { p_keys }.encode());
                Ok(())
            }
            AttributeId::GuidInfo if !set => {
                let mut guids = [Guid(0); 8];
                let end = if is_switch { 0 } else { usize::from(port.0) };
                guids[0] = self.node.ports[end].guid;
                mad.set_smp_data(&GuidInfo { guids }.encode());
                Ok(())
            }
            _ => Err(status::BAD_METHOD_ATTRIBUTE),
        };
        done.err().unwrap_or(status::OK)
    }

    /// Holds what is set, switches and hosts each their own attributes.
    fn congestion(&mut self, port: PortNum, mad: &mut Mad) -> Done {
        let held = self.congestion.as_mut().ok_or(status::BAD_VERSION)?;
        let attribute = mad.attribute_id();
        let own: &[AttributeId] = match self.node.is_switch() {
            true => &[congestion_attribute::SWITCH_CONGESTION_SETTING],
            false => {
                &[congestion_attribute::CA_CONGESTION_SETTING, congestion_attribute::CONGESTION_CONTROL_TABLE]
            }
        };
        if !own.contains(&attribute) {
            return Err(status::BAD_METHOD_ATTRIBUTE);
        }
        let port = if self.node.is_switch() { 0 } else { port.0 };
        let value = held.entry((port, attribute, mad.attribute_modifier())).or_insert([0; 192]);
        match mad.method() {
            Method::Set => value.copy_from_slice(&mad.0[CONGESTION_DATA]),
            _ => mad.0[CONGESTION_DATA].copy_from_slice(value),
        }
        Ok(())
    }

    fn node_info(&self, port: PortNum) -> NodeInfo {
        let end = if self.node.is_switch() { 0 } else { usize::from(port.0) };
        NodeInfo {
            node_type: self.node.kind,
            num_ports: self.node.port_count(),
            node_guid: self.node.guid,
            system_image_guid: self.node.system_image_guid,
            port_guid: self.node.ports[end].guid,
            local_port_num: port,
            partition_cap: 32,
            ..NodeInfo::default()
        }
    }

    fn switch_info(&mut self, set: bool, mad: &mut Mad) -> Done {
        if set {
            let wanted = SwitchInfo::decode(mad.smp_attribute());
            self.switch.port_state_change &= !wanted.port_state_change;
            self.switch.linear_fdb_top = wanted.linear_fdb_top;
            self.switch.life_time_value = wanted.life_time_value;
        }
        mad.set_smp_data(&self.switch.encode());
        Ok(())
    }

    fn port_info(&mut self, port: PortNum, set: bool, mad: &mut Mad) -> Done {
        let named = mad.attribute_modifier() as usize & 0xff;
        let number = if self.node.is_switch() { named } else { usize::from(port.0) };
        let info = self.ports.get_mut(number).ok_or(status::BAD_VALUE)?;
        if set && !set_port(info, &PortInfo::decode(mad.smp_attribute())) {
            return Err(status::BAD_VALUE);
        }
        self.reregistered += u32::from(std::mem::take(&mut info.client_reregister));
        mad.set_smp_data(&info.encode());
        Ok(())
    }

    fn forwarding_table(&mut self, set: bool, mad: &mut Mad) -> Done {
        let first = mad.attribute_modifier() as usize * 64;
        let block = self.lft.get_mut(first..first + 64).ok_or(status::BAD_VALUE)?;
        if set {
            block.copy_from_slice(&LinearForwardingTable::decode(mad.smp_attribute()).ports);
        }
        let ports = std::array::from_fn(|i| block[i]);
        mad.set_smp_data(&LinearForwardingTable { ports }.encode());
        Ok(())
    }

    fn sl_to_vl_table(&mut self, set: bool, mad: &mut Mad) -> Done {
        let modifier = mad.attribute_modifier();
        if modifier & 0x3_0000 != 0 && self.switch.optimized_sl_to_vl_mapping != 1 {
            return Err(status::BAD_VALUE);
        }
        let ports = |all: u32, number: u32| match modifier & all {
            0 => (number & 0xff) as u8..=(number & 0xff) as u8,
            _ => 0..=self.node.port_count(),
        };
        let mut last = [0; 64];
        for input in ports(0x2_0000, modifier >> 8) {
            for output in ports(0x1_0000, modifier) {
                let table = self.sl_to_vl.entry((input, output)).or_insert([0; 64]);
                if set {
                    *table = *mad.smp_data();
                }
                last = *table;
            }
        }
        mad.set_smp_data(&last);
        Ok(())
    }

    fn vl_arbitration_table(&mut self, set: bool, mad: &mut Mad) -> Done {
        let table = self.arbitration.entry(mad.attribute_modifier()).or_insert([0; 64]);
        if set {
            *table = *mad.smp_data();
        }
        mad.set_smp_data(table);
        Ok(())
    }
}

fn fresh_port(node: &Node, number: usize) -> PortInfo {
    let (port_state, port_physical_state) = match (number, node.ports[number].peer) {
        (0, _) => (PortState::Active, PhysState::LinkUp),
        (_, Some(_)) => (PortState::Initialize, PhysState::LinkUp),
        (_, None) => (PortState::Down, PhysState::Polling),
    };
    PortInfo {
        local_port_num: PortNum(number as u8),
        capability_mask: capability::IS_SL_MAPPING_SUPPORTED,
        port_state,
        port_physical_state,
        vl_cap: VlCap::Vl0To7,
        mtu_cap: Mtu::Bytes4096,
        neighbor_mtu: Mtu::Bytes256,
        operational_vls: VlCap::Vl0,
        vl_arbitration_low_cap: 8,
        vl_arbitration_high_cap: 8,
        link_width_active: 2,
        link_speed_active: 4,
        guid_cap: 8,
        ..PortInfo::default()
    }
}

/// A correct port takes over what is set, and moves from Initialize to Armed to Active only.
fn set_port(info: &mut PortInfo, wanted: &PortInfo) -> bool {
    let state = match (info.port_state, wanted.port_state) {
        (now, PortState::NoChange) => now,
        (PortState::Initialize, PortState::Armed) | (PortState::Armed, PortState::Active) => {
            wanted.port_state
        }
        _ => return false,
    };
    let (physical, mask) = (info.port_physical_state, info.capability_mask);
    *info = PortInfo { port_state: state, port_physical_state: physical, capability_mask: mask, ..*wanted };
    true
}
