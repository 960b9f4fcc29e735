//! PortInfo: everything that a port is and is set to (IBA 14.2.5.6).
//!
//! A switch's port 0 has the fields of an end port (LID, keys, the way to the manager), its physical ports those
//! of a link, and an HCA's port both. What a port does not have reads as zero and is ignored in a Set.

use weft_wire::{Lid, MKey, Mtu, PhysState, PortInfo, PortNum, PortState, VlCap, status};

use super::{Answer, Effect, Request, Work};
use crate::Event;
use crate::port::{LinkState, Port, Stimulus};

impl Work<'_> {
    pub(super) fn port_info(&self, request: Request<'_>) -> Answer {
        let port = self.port_info_place(request)?;
        let mut info = self.port_info_in(request, port, self.tables.ports[usize::from(port.0)].state);
        // Only a Get hides the key (IBA 14.2.4.1). A Set was let in by the key of before, and its answer says what is in
        // force now, whatever key the request bore.
        if info.m_key_protect_bits != 0 && info.m_key != request.m_key {
            info.m_key = MKey(0);
        }
        Ok(info.encode())
    }

    /// PortInfo of a port as if it were in this state.
    fn port_info_in(&self, request: Request<'_>, port: PortNum, state: LinkState) -> PortInfo {
        let mut info = self.tables.ports[usize::from(port.0)].info;
        state.show(&mut info);
        info.local_port_num = request.port;
        info.client_reregister = false;
        if port != PortNum::ZERO && self.tables.ports.is_switch() {
            clear_end_port(&mut info);
        }
        info
    }

    pub(super) fn set_port_info(&mut self, request: Request<'_>) -> Answer {
        let number = self.port_info_place(request)?;
        let wanted = PortInfo::decode(request.data);
        let port = &self.tables.ports[usize::from(number.0)];
        let (is_end, is_physical) = (self.tables.ports.end(number) == number, number != PortNum::ZERO);
        let mut info = port.info;
        if is_end {
            let lmc_max = if is_physical || self.has_enhanced_port0() { 7 } else { 0 };
            set_end_port(&mut info, &wanted, lmc_max)?;
        }
        let mut asked = None;
        if is_physical {
            set_link(&mut info, &wanted)?;
            asked = asked_state(port, &wanted)?;
        }
        self.apply_port_info(number, info);
        if is_end && wanted.client_reregister {
            self.follow(Effect::Reregister(number));
        }
        let Some(stimulus) = asked else {
            let state = self.tables.ports[usize::from(number.0)].state;
            return Ok(self.port_info_in(request, number, state).encode());
        };
        // The answer may have to leave by the very link that goes down, so it goes first.
        self.sma.asked_of_link = Some((number, stimulus));
        let port = &self.tables.ports[usize::from(number.0)];
        let state = port.state.after(stimulus, port.down_state()).map_err(|_| status::BAD_VALUE)?;
        Ok(self.port_info_in(request, number, state).encode())
    }

    /// The port that the modifier's low byte names. The top bit, by which a manager says that it knows the
    /// extended speeds, changes nothing here.
    pub(super) fn port_info_place(&self, request: Request<'_>) -> Result<PortNum, u16> {
        let number = PortNum((request.modifier & 0xff) as u8);
        if self.tables.ports.is_switch() {
            return if self.tables.ports.has(number) { Ok(number) } else { Err(status::BAD_VALUE) };
        }
        let own = number == PortNum::ZERO || number == request.port;
        if own { Ok(request.port) } else { Err(status::BAD_VALUE) }
    }

    fn has_enhanced_port0(&self) -> bool {
        self.tables.switch.as_ref().is_some_and(|switch| switch.info.enhanced_port0)
    }

    /// Takes over settings that have been checked.
    fn apply_port_info(&mut self, number: PortNum, info: PortInfo) {
        let port = &mut self.tables.ports[usize::from(number.0)];
        let (from, to) = (port.info.lid, info.lid);
        let parameters = port.parameters();
        port.info = info;
        port.settings_changed();
        let renegotiate = port.parameters() != parameters;
        if from != to {
            self.tables.statistics.lid_changes += 1;
            self.follow(Effect::Event(Event::LidChanged { port: number, from, to }));
        }
        if renegotiate {
            self.follow(Effect::HelloChanged(number));
        }
        self.follow(Effect::SettingsChanged(number));
    }
}

/// A switch's physical ports have no address and no key of their own.
fn clear_end_port(info: &mut PortInfo) {
    *info = PortInfo {
        m_key: MKey(0),
        gid_prefix: Default::default(),
        lid: Lid(0),
        master_sm_lid: Lid(0),
        capability_mask: 0,
        capability_mask2: 0,
        m_key_lease_period: 0,
        m_key_protect_bits: 0,
        lmc: 0,
        m_key_violations: 0,
        guid_cap: 0,
        ..*info
    };
}

fn check(valid: bool) -> Result<(), u16> {
    if valid { Ok(()) } else { Err(status::BAD_VALUE) }
}

/// Addresses, keys, the way to the subnet manager.
fn set_end_port(info: &mut PortInfo, wanted: &PortInfo, lmc_max: u8) -> Result<(), u16> {
    check(wanted.lid.is_unicast() || wanted.lid == info.lid)?;
    check(wanted.master_sm_lid.is_unicast() || wanted.master_sm_lid == info.master_sm_lid)?;
    check(wanted.lmc <= lmc_max && wanted.lid.0 & ((1 << wanted.lmc) - 1) == 0)?;
    info.lid = wanted.lid;
    info.lmc = wanted.lmc;
    info.master_sm_lid = wanted.master_sm_lid;
    info.master_sm_sl = wanted.master_sm_sl;
    info.m_key = wanted.m_key;
    info.m_key_lease_period = wanted.m_key_lease_period;
    info.m_key_protect_bits = wanted.m_key_protect_bits;
    info.gid_prefix = wanted.gid_prefix;
    info.subnet_timeout = wanted.subnet_timeout;
    info.multicast_p_key_trap_suppression = wanted.multicast_p_key_trap_suppression;
    info.init_type_reply = wanted.init_type_reply;
    // Violations are counted here and can only be cleared there.
    for (counter, value) in [
        (&mut info.m_key_violations, wanted.m_key_violations),
        (&mut info.p_key_violations, wanted.p_key_violations),
        (&mut info.q_key_violations, wanted.q_key_violations),
    ] {
        if value == 0 {
            *counter = 0;
        }
    }
    Ok(())
}

/// What belongs to the cable: width, speed, lanes, MTU, enforcement, thresholds.
fn set_link(info: &mut PortInfo, wanted: &PortInfo) -> Result<(), u16> {
    info.link_width_enabled =
        enabled(wanted.link_width_enabled, info.link_width_enabled, info.link_width_supported, 0xff)?;
    info.link_speed_enabled =
        enabled(wanted.link_speed_enabled, info.link_speed_enabled, info.link_speed_supported, 0xf)?;
    // 30 switches the extended speeds off; 31 enables all that there are.
    info.link_speed_ext_enabled = match wanted.link_speed_ext_enabled {
        30 => 0,
        value => enabled(value, info.link_speed_ext_enabled, info.link_speed_ext_supported, 31)?,
    };
    // The same two codes in three bits.
    let own = info.link_speed_ext2;
    info.link_speed_ext2.enabled = match wanted.link_speed_ext2.enabled {
        6 => 0,
        value => enabled(value, own.enabled, own.supported, 7)?,
    };
    match wanted.link_down_default_state {
        PhysState::NoChange => {}
        state @ (PhysState::Sleep | PhysState::Polling) => info.link_down_default_state = state,
        _ => return Err(status::BAD_VALUE),
    }
    check((Mtu::Bytes256.code()..=info.mtu_cap.code()).contains(&wanted.neighbor_mtu.code()))?;
    info.neighbor_mtu = wanted.neighbor_mtu;
    if wanted.operational_vls != VlCap::NoChange {
        check(wanted.operational_vls.code() <= info.vl_cap.code())?;
        info.operational_vls = wanted.operational_vls;
    }
    info.vl_high_limit = wanted.vl_high_limit;
    info.vl_stall_count = wanted.vl_stall_count;
    info.hoq_life = wanted.hoq_life;
    info.partition_enforcement_inbound = wanted.partition_enforcement_inbound;
    info.partition_enforcement_outbound = wanted.partition_enforcement_outbound;
    info.filter_raw_inbound = wanted.filter_raw_inbound;
    info.filter_raw_outbound = wanted.filter_raw_outbound;
    info.local_phy_errors = wanted.local_phy_errors;
    info.overrun_errors = wanted.overrun_errors;
    Ok(())
}

/// A mask of widths or speeds: 0 changes nothing, `all` stands for what is supported, and nothing else may be
/// enabled than that.
fn enabled(wanted: u8, now: u8, supported: u8, all: u8) -> Result<u8, u16> {
    if wanted == 0 {
        return Ok(now);
    }
    if wanted == all {
        return Ok(supported);
    }
    check(wanted & !supported == 0)?;
    Ok(wanted)
}

/// What a Set asks of the link's logical or physical state, checked against the port's state before anything
/// changes.
fn asked_state(port: &Port, wanted: &PortInfo) -> Result<Option<Stimulus>, u16> {
    let physical = match wanted.port_physical_state {
        PhysState::NoChange => None,
        PhysState::Sleep => Some(Stimulus::Sleep),
        PhysState::Polling => Some(Stimulus::Poll),
        PhysState::Disabled => Some(Stimulus::Disable),
        _ => return Err(status::BAD_VALUE),
    };
    let logical = match wanted.port_state {
        PortState::NoChange => None,
        // Going down by way of a physical state is one step, not two.
        PortState::Down if physical.is_some() => None,
        PortState::Down => Some(Stimulus::Down),
        // A physical state takes the link down, so nothing but Down goes with it (IBA 14.2.5.6).
        PortState::Armed | PortState::Active if physical.is_some() => return Err(status::BAD_VALUE),
        PortState::Armed => Some(Stimulus::Arm),
        PortState::Active => Some(Stimulus::Activate),
        _ => return Err(status::BAD_VALUE),
    };
    if let Some(stimulus) = logical {
        port.state.after(stimulus, port.down_state()).map_err(|_| status::BAD_VALUE)?;
    }
    Ok(logical.or(physical))
}
