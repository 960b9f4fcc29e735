//! Settings of ports: a pure function of what both ends of a cable can do, of LIDs and of options.

use weft_wire::{
    Lid, LinkSpeedExt2, Mtu, PhysState, PortInfo, PortNum, PortState, VirtualLane, VlArbitrationTable, VlCap,
    capability,
};

use crate::Options;
use crate::knowledge::{FoundNode, FoundPort, PortAt, Subnet, VlBlock};
use crate::options::{MANAGEMENT_LEVEL, MANAGEMENT_LIMIT};
use crate::sweep::partitions;

/// The wildcards of SLtoVLMappingTable's modifier on switches that have them: every input and output port.
pub(crate) const ALL_INPUTS: u32 = 0x2_0000;
pub(crate) const ALL_OUTPUTS: u32 = 0x1_0000;

/// How a link's lanes are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// How many lanes both ends agree on.
    pub(crate) operational: VlCap,
    /// Whether the node maps service levels to lanes at all.
    pub(crate) maps: bool,
    /// The lane of each service level, before it is brought down to the lanes that there are.
    sl2vl: [u8; 16],
    /// The lane that is management's alone.
    management: Option<u8>,
}

impl Lanes {
    /// Of the link in this port.
    pub(crate) fn of(subnet: &Subnet, at: PortAt, options: &Options) -> Self {
        let cap = |at: PortAt| Some(subnet.port(at)?.info?.vl_cap.code().max(1));
        let here = cap(at).unwrap_or(1);
        let there = subnet.port(at).and_then(|port| port.peer).and_then(cap).unwrap_or(1);
        let code = here.min(there).min(options.lanes.max_op_vls.code().max(1));
        let operational = VlCap::from_code(code.min(VlCap::Vl0To14.code()));
        let is_switch = subnet.node(at.node).is_some_and(FoundNode::is_switch);
        let manages = if is_switch { PortAt { port: PortNum::ZERO, ..at } } else { at };
        let capabilities = subnet.port(manages).and_then(|port| port.info).map_or(0, |i| i.capability_mask);
        let guid = subnet.guid(at.node);
        Self {
            operational,
            maps: options.lanes.qos && capabilities & capability::IS_SL_MAPPING_SUPPORTED != 0,
            management: subnet.management.filter(|lane| *lane < operational.lanes()),
            sl2vl: subnet.routed.sl2vl(guid, at.port).unwrap_or(options.lanes.sl2vl),
        }
    }

    /// The lane of each service level: lanes that the link lacks fold onto those it has, and those from management's lane
    /// up onto those below.
    pub(crate) fn sl_to_vl(self) -> [VirtualLane; 16] {
        let lanes = self.management.unwrap_or(self.operational.lanes()).max(1);
        let mut row = self.sl2vl.map(|vl| if vl >= 15 { VirtualLane(15) } else { VirtualLane(vl % lanes) });
        if let Some(lane) = self.management {
            row[usize::from(MANAGEMENT_LEVEL.0)] = VirtualLane(lane);
        }
        row
    }

    /// The blocks of the arbitration tables to hold. A single lane needs no arbitration.
    pub(crate) fn arbitration(self, port: &FoundPort, options: &Options) -> Vec<(VlBlock, [u8; 64])> {
        let lanes = self.operational.lanes();
        let Some(info) = port.info.filter(|_| options.lanes.qos && lanes > 1) else { return Vec::new() };
        let mut blocks = Vec::new();
        let mut given = options.arbitration_tables(self.management);
        if self.management.is_some() && info.vl_arbitration_high_cap == 0 {
            // A lane that is in no table is never served.
            given.low.extend_from_slice(&given.high);
        }
        let tables = [
            (&given.low, info.vl_arbitration_low_cap, [VlBlock::LowFirst, VlBlock::LowSecond]),
            (&given.high, info.vl_arbitration_high_cap, [VlBlock::HighFirst, VlBlock::HighSecond]),
        ];
        for (table, room, numbers) in tables {
            if table.is_empty() {
                continue;
            }
            let entries = Options::arbitration(table, lanes, room);
            let used = usize::from(room.min(64)).div_ceil(32);
            for (number, half) in numbers.into_iter().zip(0..used) {
                let mut block = VlArbitrationTable::default();
                let part = entries.iter().skip(half * 32);
                block.entries.iter_mut().zip(part).for_each(|(place, entry)| *place = *entry);
                blocks.push((number, block.encode()));
            }
        }
        blocks
    }
}

/// The modifier that names an output port's mapping from one input port. On an HCA there is nothing to name: it is
/// that of the port that is asked.
pub(crate) fn sl_to_vl_modifier(subnet: &Subnet, output: PortAt, input: u8) -> u32 {
    let is_switch = subnet.node(output.node).is_some_and(FoundNode::is_switch);
    if is_switch { u32::from(input) << 8 | u32::from(output.port.0) } else { 0 }
}

pub(crate) fn vl_arbitration_modifier(at: PortAt, block: VlBlock) -> u32 {
    (block as u32) << 16 | u32::from(at.port.0)
}

/// The settings that every port should have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) subnet: &'a Subnet,
    pub(crate) options: &'a Options,
    /// Where this manager is.
    pub(crate) sm_lid: Lid,
}

impl Wanted<'_> {
    /// The PortInfo to write; states that are not to change are 0, which means that. `None`: the port has not
    /// answered, or it has all that already.
    pub(crate) fn port_info(&self, at: PortAt) -> Option<PortInfo> {
        let port = self.subnet.port(at)?;
        let now = port.info?;
        let mut wanted = now;
        let is_switch = self.subnet.node(at.node)?.is_switch();
        let is_end = (at.port == PortNum::ZERO) == is_switch;
        if is_end {
            self.set_end(port, &mut wanted);
        }
        if port.peer.is_some() {
            self.set_link(at, is_switch, &mut wanted);
        }
        let demanded = is_end && port.reregister;
        let differs = wanted != now || demanded;
        wanted.port_state = match now.port_state {
            // Port 0 of a switch has no link to bring up, unless it says that it has.
            PortState::Initialize if port.peer.is_some() || is_end && is_switch => PortState::Armed,
            _ => PortState::NoChange,
        };
        (differs || wanted.port_state == PortState::Armed)
            .then(|| PortInfo { client_reregister: demanded, ..leave_the_rest(wanted) })
    }

    /// The PortInfo that makes a port Active which is Armed now.
    pub(crate) fn active(&self, at: PortAt) -> Option<PortInfo> {
        let now = self.subnet.port(at)?.info.filter(|now| now.port_state == PortState::Armed)?;
        Some(leave_the_rest(PortInfo { port_state: PortState::Active, ..now }))
    }

    fn set_end(&self, port: &FoundPort, info: &mut PortInfo) {
        let options = self.options;
        info.gid_prefix = options.sa.subnet_prefix;
        set_m_key(info, options);
        if let Some(lid) = port.lid {
            (info.lid, info.lmc) = (lid.min, lid.lmc());
        }
        info.master_sm_lid = self.sm_lid;
        info.master_sm_sl = match (self.subnet.routed.levels.as_ref(), port.lid) {
            _ if self.subnet.management.is_some() => MANAGEMENT_LEVEL,
            (Some(levels), Some(lid)) => levels.of(lid.min, self.sm_lid),
            _ => options.sa.sm_sl,
        };
        info.subnet_timeout = options.sa.subnet_timeout & 0x1f;
    }

    fn set_link(&self, at: PortAt, is_switch: bool, info: &mut PortInfo) {
        let options = self.options;
        let Some(peer) = self.subnet.port(at).and_then(|port| port.peer) else { return };
        let lanes = Lanes::of(self.subnet, at, options);
        info.operational_vls = lanes.operational;
        info.neighbor_mtu = self.mtu(at, peer);
        let has_own = self.subnet.management.is_some();
        info.vl_high_limit = if has_own { MANAGEMENT_LIMIT } else { options.lanes.vl_high_limit };
        info.local_phy_errors = options.lanes.local_phy_errors & 0xf;
        info.overrun_errors = options.lanes.overrun_errors & 0xf;
        if is_switch {
            let leaf = self.subnet.node(peer.node).is_some_and(|node| !node.is_switch());
            info.hoq_life = if leaf { options.lanes.leaf_hoq_life } else { options.lanes.hoq_life } & 0x1f;
            if self.subnet.keys.is_some() {
                let enforced = partitions::enforced(self.subnet, at, options);
                (info.partition_enforcement_inbound, info.partition_enforcement_outbound) = enforced;
            }
            info.vl_stall_count = options.lanes.vl_stall_count & 0x7;
        }
    }

    fn mtu(&self, here: PortAt, there: PortAt) -> Mtu {
        let cap =
            |at: PortAt| self.subnet.port(at).and_then(|port| port.info).map_or(1, |i| i.mtu_cap.code());
        let code = cap(here).min(cap(there)).min(self.options.lanes.mtu_max.code());
        Mtu::from_code(code.clamp(1, Mtu::Bytes4096.code()))
    }
}

/// The PortInfo that gives an end port the M_Key, and changes nothing else.
pub(crate) fn claimed(now: PortInfo, options: &Options) -> PortInfo {
    let mut info = leave_the_rest(now);
    set_m_key(&mut info, options);
    PortInfo { port_state: PortState::NoChange, ..info }
}

fn set_m_key(info: &mut PortInfo, options: &Options) {
    info.m_key = options.keys.m_key;
    info.m_key_protect_bits = options.keys.m_key_protection & 0x3;
    info.m_key_lease_period = options.keys.m_key_lease_s;
}

/// Zeros mean "no change" in the fields that steer a link (IBA 14.2.5.6).
fn leave_the_rest(info: PortInfo) -> PortInfo {
    PortInfo {
        port_physical_state: PhysState::NoChange,
        link_down_default_state: PhysState::NoChange,
        link_width_enabled: 0,
        link_speed_enabled: 0,
        link_speed_ext_enabled: 0,
        link_speed_ext2: LinkSpeedExt2::default(),
        client_reregister: false,
        ..info
    }
}

#[cfg(test)]
mod tests;
