//! A port: its link's state machine, its settings, its tables.

use weft_machine::Time;
use weft_wire::{
    GidPrefix, Guid, LinkParameters, LinkSpeedExt2, PKey, PhysState, PortInfo, PortNum, PortState,
    VlArbitrationTable, capability, capability2,
};

use crate::counters::Integrity;
use crate::lane_counters::LaneCounters;
use crate::size::packet_size_max;
use crate::{Counters, DeviceOptions};

/// The logical and physical state of a port together (IBA 7.2.7 and 14.2.5.6). A port that is not up is Down in
/// one of three physical states; one that is up is LinkUp in one of three logical states.
///
/// ```text
///    Disabled ──poll──▶ Polling ◀──poll── Sleep          disable, sleep, poll: from every state, by the SM
///        ▲                │  ▲              ▲
///     disable          trained └──lost──┐   │ lost, down: when LinkDownDefaultState is Sleep
///        │                ▼             │   │
///        ├────────── Initialize ────────┤───┤            trained again while up: back to Initialize
///        │               arm            │   │
///        │                ▼             │   │
///        ├──────────── Armed ───────────┤───┤            arm: Initialize or Armed only
///        │          activate, data      │   │            activate: Armed or Active only
///        │                ▼             │   │
///        └──────────── Active ──────────┘───┘
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LinkState {
    /// Down, neither driving nor listening.
    Sleep,
    /// Down, looking for a peer.
    #[default]
    Polling,
    /// Down, switched off by the subnet manager.
    Disabled,
    /// Up, only subnet management passes.
    Initialize,
    /// Up, data may be received.
    Armed,
    /// In service.
    Active,
}

/// What moves a port from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stimulus {
    /// The link works, in both directions.
    Trained,
    /// The link is lost.
    Lost,
    /// A packet came in on a data lane: the neighbour is Active already.
    Data,
    /// Set(PortState = Down).
    Down,
    /// Set(PortState = Armed).
    Arm,
    /// Set(PortState = Active).
    Activate,
    /// Set(PortPhysicalState = Sleep).
    Sleep,
    /// Set(PortPhysicalState = Polling).
    Poll,
    /// Set(PortPhysicalState = Disabled).
    Disable,
}

/// A state that the subnet manager may not ask for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidTransition;

impl LinkState {
    /// The state after `stimulus`; `down` is where the port goes when it loses its link, Polling or Sleep.
    pub(crate) fn after(self, stimulus: Stimulus, down: LinkState) -> Result<LinkState, InvalidTransition> {
        Ok(match (self, stimulus) {
            (Self::Sleep | Self::Disabled, Stimulus::Trained) => self,
            (_, Stimulus::Trained) => Self::Initialize,
            (Self::Initialize | Self::Armed | Self::Active, Stimulus::Lost | Stimulus::Down) => down,
            (_, Stimulus::Lost | Stimulus::Down) => self,
            (Self::Armed, Stimulus::Data) => Self::Active,
            (_, Stimulus::Data) => self,
            (Self::Initialize | Self::Armed, Stimulus::Arm) => Self::Armed,
            (Self::Armed | Self::Active, Stimulus::Activate) => Self::Active,
            (_, Stimulus::Arm | Stimulus::Activate) => return Err(InvalidTransition),
            (_, Stimulus::Sleep) => Self::Sleep,
            (_, Stimulus::Poll) => Self::Polling,
            (_, Stimulus::Disable) => Self::Disabled,
        })
    }

    /// Whether the link works.
    pub(crate) fn is_up(self) -> bool {
        matches!(self, Self::Initialize | Self::Armed | Self::Active)
    }

    pub(crate) fn logical(self) -> PortState {
        match self {
            Self::Sleep | Self::Polling | Self::Disabled => PortState::Down,
            Self::Initialize => PortState::Initialize,
            Self::Armed => PortState::Armed,
            Self::Active => PortState::Active,
        }
    }

    pub(crate) fn physical(self) -> PhysState {
        match self {
            Self::Sleep => PhysState::Sleep,
            Self::Polling => PhysState::Polling,
            Self::Disabled => PhysState::Disabled,
            Self::Initialize | Self::Armed | Self::Active => PhysState::LinkUp,
        }
    }
}

impl LinkState {
    /// What PortInfo says of a port in this state.
    pub(crate) fn show(self, info: &mut PortInfo) {
        info.port_state = self.logical();
        info.port_physical_state = self.physical();
        if !self.is_up() {
            // Where training begins, and what the tools of the field expect of a port that is down.
            info.link_width_active = lowest_bit(info.link_width_supported);
            info.link_speed_active = 1;
            info.link_speed_ext_active = 0;
            info.link_speed_ext2.active = 0;
        }
    }
}

/// A physical port, or a switch's port 0.
#[derive(Debug, Default)]
pub(crate) struct Port {
    pub(crate) number: PortNum,
    pub(crate) guid: Guid,
    pub(crate) state: LinkState,
    /// What PortInfo says, but for what depends on the question. The states in it follow `state`.
    pub(crate) info: PortInfo,
    /// FDR10, which PortInfo has no place for.
    pub(crate) fdr10: Fdr10,
    pub(crate) counters: Counters,
    pub(crate) by_lane: LaneCounters,
    /// What the counters were when PortCounters was last written; its counters are apart from the extended ones.
    pub(crate) counted_before: Counters,
    pub(crate) p_keys: Vec<PKey>,
    pub(crate) guids: Vec<Guid>,
    /// Low first half, low second half, high first half, high second half.
    pub(crate) vl_arbitration: [VlArbitrationTable; 4],
    /// When the M_Key's protection lapses, while its lease runs.
    pub(crate) m_key_lease_end: Option<Time>,
    /// Data lanes in use, from OperationalVLs: looked at for every packet.
    pub(crate) lanes: u8,
    /// The longest packet that the neighbour takes, in bytes.
    pub(crate) packet_size_max: usize,
    /// The longest packet that the port takes, in bytes.
    pub(crate) receive_size_max: usize,
    pub(crate) integrity: Integrity,
}

/// Whether a port can, may and does run at FDR10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fdr10 {
    pub(crate) supported: bool,
    pub(crate) enabled: bool,
    pub(crate) active: bool,
}

impl Port {
    pub(crate) fn new(number: PortNum, guid: Guid, link: LinkParameters, options: &DeviceOptions) -> Self {
        let mut p_keys = vec![PKey(0); usize::from(options.partition_cap.max(32)).next_multiple_of(32)];
        p_keys[0] = PKey::DEFAULT_FULL;
        let mut guids = vec![Guid(0); usize::from(options.guid_cap.max(1)).next_multiple_of(8)];
        guids[0] = guid;
        let fdr10 = link.speed & LinkParameters::FDR10 != 0;
        let mut port = Self {
            number,
            guid,
            info: initial_info(link, options),
            fdr10: Fdr10 { supported: fdr10, enabled: fdr10, active: false },
            p_keys,
            guids,
            lanes: 1,
            ..Self::default()
        };
        port.set_state(LinkState::Polling);
        port.settings_changed();
        port
    }

    /// A switch's port 0, which is never down.
    pub(crate) fn management(guid: Guid, options: &DeviceOptions) -> Self {
        let mut port = Self::new(PortNum::ZERO, guid, LinkParameters::default(), options);
        port.info.link_width_supported = 2;
        port.info.link_width_enabled = 2;
        port.info.link_width_active = 2;
        port.info.link_speed_supported = 1;
        port.info.link_speed_enabled = 1;
        port.info.link_speed_active = 1;
        port.set_state(LinkState::Active);
        port
    }

    /// Enters a state; what follows from it is the device's business.
    pub(crate) fn set_state(&mut self, state: LinkState) {
        self.state = state;
        self.fdr10.active &= state.is_up();
        state.show(&mut self.info);
    }

    /// Takes over what the fast path needs from settings that were changed.
    pub(crate) fn settings_changed(&mut self) {
        self.lanes = self.info.operational_vls.lanes();
        self.packet_size_max = packet_size_max(self.info.neighbor_mtu);
        self.receive_size_max = packet_size_max(self.info.mtu_cap);
    }

    /// Where the port goes when it loses its link.
    pub(crate) fn down_state(&self) -> LinkState {
        match self.info.link_down_default_state {
            PhysState::Sleep => LinkState::Sleep,
            _ => LinkState::Polling,
        }
    }

    /// What the port says in its hello.
    pub(crate) fn parameters(&self) -> LinkParameters {
        LinkParameters {
            width: self.info.link_width_enabled,
            speed: self.info.link_speed_enabled | if self.fdr10.enabled { LinkParameters::FDR10 } else { 0 },
            speed_ext: self.info.link_speed_ext_enabled | xdr(self.info.link_speed_ext2.enabled),
        }
    }

    /// The width and speed in use; nothing as long as there is no link.
    pub(crate) fn active(&self) -> LinkParameters {
        if !self.state.is_up() {
            return LinkParameters { width: 0, speed: 0, speed_ext: 0 };
        }
        let info = &self.info;
        LinkParameters {
            width: info.link_width_active,
            speed: info.link_speed_active | if self.fdr10.active { LinkParameters::FDR10 } else { 0 },
            speed_ext: info.link_speed_ext_active | xdr(info.link_speed_ext2.active),
        }
    }

    /// All that the port can do.
    pub(crate) fn supported(&self) -> LinkParameters {
        let info = &self.info;
        LinkParameters {
            width: info.link_width_supported,
            speed: info.link_speed_supported | if self.fdr10.supported { LinkParameters::FDR10 } else { 0 },
            speed_ext: info.link_speed_ext_supported | xdr(info.link_speed_ext2.supported),
        }
    }

    /// Takes the best width and speed that both ends enable. `false` when there is none.
    pub(crate) fn train(&mut self, peer: LinkParameters) -> bool {
        let own = self.parameters();
        // By lanes: 12x, 8x, 4x, 2x, 1x. The code of 2x is the highest, having come last.
        let width = [8, 4, 2, 16, 1].into_iter().find(|bit| own.width & peer.width & bit != 0);
        let speed = highest_bit(own.speed & peer.speed & 0x7);
        let common = own.speed_ext & peer.speed_ext;
        let (speed_ext, xdr) = (highest_bit(common & 0xf), common & LinkParameters::XDR != 0);
        let Some(width) = width.filter(|_| speed != 0 || common != 0) else { return false };
        self.info.link_width_active = width;
        self.info.link_speed_active = speed;
        // A manager that does not know the second extended speeds reads the best of the first.
        self.info.link_speed_ext_active = speed_ext;
        self.info.link_speed_ext2.active = if xdr { LinkSpeedExt2::XDR } else { 0 };
        self.fdr10.active = speed_ext == 0 && !xdr && own.speed & peer.speed & LinkParameters::FDR10 != 0;
        true
    }

    /// Whether `lid` is this port's, the lower LMC bits left out of account.
    #[inline]
    pub(crate) fn has_lid(&self, lid: weft_wire::Lid) -> bool {
        covers(self.info.lid, self.info.lmc, lid)
    }

    /// The port's own key of the partition that `p_key` is one of: what it sends carries that one, whichever of the
    /// partition's two keys it was asked to send with (IBA 10.9.2).
    pub(crate) fn own_p_key(&self, p_key: PKey) -> Option<PKey> {
        let wanted = p_key.0 & 0x7fff;
        let own = self.p_keys.iter().filter(|entry| entry.0 & 0x7fff == wanted && wanted != 0);
        own.copied().max_by_key(|entry| entry.0)
    }

    /// Whether the node behind a switch's port could have sent a packet with `p_key`. The port's table is the node's own, and
    /// a node sends its own keys: so the membership bit counts too, and a limited member passes for no full one.
    pub(crate) fn p_key_is_sent_here(&self, p_key: PKey) -> bool {
        p_key.partition() != 0 && self.p_keys.contains(&p_key)
    }

    /// Which entry of the P_Key table lets a packet with `p_key` in, by the lower 15 bits (IBA 10.9.3).
    pub(crate) fn p_key_index(&self, p_key: PKey) -> Option<u16> {
        let wanted = p_key.partition();
        let is_one_full = |entry: &PKey| entry.is_full() || p_key.is_full();
        let matches = |entry: &PKey| entry.partition() == wanted && wanted != 0 && is_one_full(entry);
        self.p_keys.iter().position(matches).map(|index| index as u16)
    }
}

/// Whether `lid` is that of a port which has `own`, the lower `lmc` bits left out of account.
#[inline]
pub(crate) fn covers(own: weft_wire::Lid, lmc: u8, lid: weft_wire::Lid) -> bool {
    own.0 != 0 && lid.0 >> lmc == own.0 >> lmc
}

/// XDR among the second extended speeds, as links have it.
fn xdr(bits: u8) -> u8 {
    if bits & LinkSpeedExt2::XDR != 0 { LinkParameters::XDR } else { 0 }
}

fn lowest_bit(bits: u8) -> u8 {
    bits & bits.wrapping_neg()
}

fn highest_bit(bits: u8) -> u8 {
    bits.checked_ilog2().map_or(0, |log| 1 << log)
}

fn initial_info(link: LinkParameters, options: &DeviceOptions) -> PortInfo {
    let ext2 = if link.speed_ext & LinkParameters::XDR != 0 { LinkSpeedExt2::XDR } else { 0 };
    PortInfo {
        gid_prefix: GidPrefix::DEFAULT,
        link_width_enabled: link.width,
        link_width_supported: link.width,
        link_speed_supported: link.speed & 0x7,
        link_speed_enabled: link.speed & 0x7,
        link_speed_ext_supported: link.speed_ext & 0xf,
        link_speed_ext_enabled: link.speed_ext & 0xf,
        link_speed_ext2: LinkSpeedExt2 { active: 0, supported: ext2, enabled: ext2 },
        link_down_default_state: PhysState::Polling,
        // As adapters are delivered: a manager that finds other values than it wants takes the link down for them.
        neighbor_mtu: options.mtu_cap,
        mtu_cap: options.mtu_cap,
        vl_cap: options.vl_cap,
        operational_vls: options.vl_cap,
        vl_arbitration_high_cap: options.vl_arbitration_high_cap.min(64),
        vl_arbitration_low_cap: options.vl_arbitration_low_cap.min(64),
        guid_cap: options.guid_cap.max(1),
        resp_time_value: 16,
        // Without end, until a manager says otherwise.
        hoq_life: 20,
        ..PortInfo::default()
    }
}

/// What the ports of this device can do, as far as the link does not decide it.
pub(crate) fn capability_mask(link: LinkParameters) -> u32 {
    let extended = if link.speed_ext == 0 { 0 } else { capability::IS_EXTENDED_SPEEDS_SUPPORTED };
    extended
        | capability::IS_NOTICE_SUPPORTED
        | capability::IS_TRAP_SUPPORTED
        | capability::IS_SL_MAPPING_SUPPORTED
        | capability::IS_SYSTEM_IMAGE_GUID_SUPPORTED
        | capability::IS_CAPABILITY_MASK2_SUPPORTED
        | capability::IS_CAPABILITY_MASK_NOTICE_SUPPORTED
        | capability::IS_CLIENT_REREGISTRATION_SUPPORTED
        | capability::IS_OTHER_LOCAL_CHANGES_NOTICE_SUPPORTED
}

/// More of what the ports of this device can do.
pub(crate) fn capability_mask2(link: LinkParameters) -> u16 {
    let if_any = |bits: u8, capability: u16| if bits == 0 { 0 } else { capability };
    capability2::IS_SET_NODE_DESCRIPTION_SUPPORTED
        | capability2::IS_PORT_INFO_EXTENDED_SUPPORTED
        | if_any(link.width & 16, capability2::IS_LINK_WIDTH_2X_SUPPORTED)
        | if_any(link.speed_ext & 4, capability2::IS_LINK_SPEED_HDR_SUPPORTED)
        | if_any(link.speed_ext & 8, capability2::IS_LINK_SPEED_NDR_SUPPORTED)
        | if_any(
            link.speed_ext & LinkParameters::XDR,
            capability2::IS_EXTENDED_SPEEDS2_SUPPORTED | capability2::IS_LINK_SPEED_XDR_SUPPORTED,
        )
}

#[cfg(test)]
mod tests;
