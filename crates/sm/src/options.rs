//! Options of the subnet manager.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_mgmt::{Limits, Window};
use weft_routing::{Chain, EngineOptions};
use weft_wire::{
    GidPrefix, Guid, Lid, MKey, Mtu, ServiceLevel, SmKey, VirtualLane, VlArbitrationEntry, VlCap,
};

/// How SMPs travel once forwarding tables stand. Discovery and tables always go by directed route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SmpRouting {
    /// Along directed routes: every switch on the way handles them in its management agent.
    #[default]
    Directed,
    /// By LID, forwarded like data; what nobody answers is asked again along a directed route.
    Lid,
}

/// When a virtual function gets its LID (paper 001, section V). vSwitches are recognised as decision 17 says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LidScheme {
    /// As every other port: engines balance its paths as those of a port of its own.
    #[default]
    Prepopulated,
    /// When a machine boots, out of the LIDs that no physical port has: its paths are those of its host's physical function.
    Dynamic,
}

/// Which LID port 0 of a vSwitch has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwitchLids {
    /// One of its own, as any switch.
    #[default]
    Own,
    /// The physical function's (paper 001, section V-A). Packets for it reach the physical function; the vSwitch is managed
    /// by directed routes alone.
    Shared,
}

/// On which side switches drop packets with a P_Key that the host has not, as OpenSM's `part_enforce`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartEnforce {
    /// Coming from the host and going to it.
    #[default]
    Both,
    /// Coming from the host.
    In,
    /// Going to the host.
    Out,
    /// Nowhere.
    Off,
}

/// One entry of an arbitration table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlWeight {
    /// The lane.
    pub vl: u8,
    /// How many 64-byte steps it may send in a row; 0 skips it.
    pub weight: u8,
}

/// What congestion control is set to. Named as OpenSM's options behind `cc_`; the defaults, other than OpenSM's zeros, mark
/// at the shortest queue and let one notification add an eighth of a packet's time to the distance between packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CongestionOptions {
    /// What every GMP shows; the agents' own keys are left as they are.
    pub key: u64,
    /// Ports that mark without credit too, the last bit being port 0. `None`: the ports towards hosts, since a host that
    /// takes less than its link carries has no port to mark at.
    pub sw_cong_setting_victim_mask: Option<[u8; 32]>,
    /// How easily a switch marks: 0 never, 15 with the shortest queue.
    pub sw_cong_setting_threshold: u8,
    /// Packets of fewer 64-byte units are not marked.
    pub sw_cong_setting_packet_size: u8,
    /// The mean number of packets that could be marked between two that are.
    pub sw_cong_setting_marking_rate: u16,
    /// 0: queue pairs are slowed down; 1: service levels.
    pub ca_cong_setting_port_control: u16,
    /// The service levels that are set.
    pub ca_cong_setting_control_map: u16,
    /// How long until the index goes down by one, in 1.024 µs of fabric time.
    pub ca_cong_setting_ccti_timer: u16,
    /// What a notification adds to the index.
    pub ca_cong_setting_ccti_increase: u8,
    /// The index at which an event is logged; 0 is none.
    pub ca_cong_setting_trigger_threshold: u8,
    /// The lowest index.
    pub ca_cong_setting_ccti_min: u8,
    /// The injection delays from index 0 on: 2 bits of shift, 14 of multiplier. At most 4096.
    pub cct: Vec<u16>,
}

impl Default for CongestionOptions {
    fn default() -> Self {
        Self {
            key: 0,
            sw_cong_setting_victim_mask: None,
            sw_cong_setting_threshold: 15,
            sw_cong_setting_packet_size: 8,
            sw_cong_setting_marking_rate: 3,
            ca_cong_setting_port_control: 0,
            ca_cong_setting_control_map: 0xffff,
            ca_cong_setting_ccti_timer: 250,
            ca_cong_setting_ccti_increase: 1,
            ca_cong_setting_trigger_threshold: 2,
            ca_cong_setting_ccti_min: 0,
            cct: (0..128).map(|eighths| 3 << 14 | eighths).collect(),
        }
    }
}

/// The subnet manager's options. Where OpenSM has the same option its default is taken, unless the field says
/// otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// How many SMPs may be in flight.
    pub max_wire_smps: Window,
    /// How long to wait for an answer.
    pub timeout_ms: u64,
    /// How many more attempts follow the first.
    pub retries: u32,
    /// How SMPs travel once tables stand.
    pub smp_routing: SmpRouting,
    /// From one light sweep to the next; 0 is never.
    pub sweep_interval_ms: u64,
    /// How much a light sweep reads back at most of what the manager has written, in SMPs; 0 is nothing.
    pub audit_smps: u32,
    /// Whether all traps that come before a heavy sweep has answered them are answered by it, as are those whose
    /// change the sweep has seen from the other end of the cable. Off: every trap is one sweep.
    pub one_sweep_per_cable: bool,
    /// How long to wait for more traps before a heavy sweep begins.
    pub trap_delay_ms: u64,
    /// How soon to look again at what did not answer or refused; doubles each time up to the sweep interval.
    pub retry_delay_ms: u64,
    /// How many sweeps may follow each other at once because the fabric changed meanwhile.
    pub resweeps_max: u32,
    /// The most data lanes that a link may use.
    pub max_op_vls: VlCap,
    /// The largest MTU that a link may use.
    pub mtu_max: Mtu,
    /// Whether SLtoVL mappings and arbitration tables are written; otherwise each port keeps what it has. OpenSM writes
    /// them only when told to.
    pub qos: bool,
    /// Whether management has a lane of its own: service level 15 then takes the highest data lane that every link has,
    /// alone, and that lane is served first within a limit; routing has the lanes and levels below, which share what is
    /// left in equal parts. Ports are told that level as MasterSMSL, so that whoever asks the manager uses it, and
    /// answers and Reports come back on it. Takes `qos`, and a second lane on every link; where one is missing
    /// management shares the data's. Stands before `vl_arb_high`, `vl_arb_low` and `vl_high_limit`.
    pub management_lane: bool,
    /// The routing engines, in the order in which they are tried.
    pub engines: Chain,
    /// Where switches look at the P_Keys of packets of their hosts, where `routing.partitions` says who has which.
    pub part_enforce: PartEnforce,
    /// What the engines are told. They get no more lanes than every link has.
    pub routing: EngineOptions,
    /// The lane of each service level; lane 15 drops. Brought down to the lanes that a link has. A routing that needs
    /// several lanes brings a mapping of its own.
    pub sl2vl: [u8; 16],
    /// The high-priority arbitration table, by default lane 0 with weight 4 and all others with 0, as OpenSM's
    /// `qos_vlarb_high`. Empty: left as the port has it.
    pub vl_arb_high: Vec<VlWeight>,
    /// The low-priority arbitration table, by default lane 0 with weight 0 and all others with 4, as OpenSM's
    /// `qos_vlarb_low`. Empty: left as the port has it.
    pub vl_arb_low: Vec<VlWeight>,
    /// How many 4096-byte steps of the high table pass before a low one.
    pub vl_high_limit: u8,
    /// HCA ports get 2 to this power LIDs.
    pub lmc: u8,
    /// When virtual functions get LIDs.
    pub lids: LidScheme,
    /// Which LIDs vSwitches have.
    pub switch_lids: SwitchLids,
    /// The most LIDs of virtual functions with [`LidScheme::Dynamic`], those in quarantine included.
    pub vm_lids_max: u16,
    /// How long the LID of a virtual function that is gone is given to no other with [`LidScheme::Dynamic`], in
    /// milliseconds; the default is longer than queue pairs of its peers try again: 8 times 4 s.
    pub lid_quarantine_ms: u64,
    /// The weights of virtual machines by the GUID of the function's port or node, for engines that read `vm_weights`, as
    /// [`EngineOptions::vm_weights`] has them by LID.
    pub vm_weights: BTreeMap<Guid, u32>,
    /// Whether moves are carried out that no proof covers, where `full` or `unordered` is asked for: on the way packets may go round in
    /// loops or get lost. For comparison.
    pub unproved_moves: bool,
    /// How good the tables of machines' LIDs have to be beside fresh ones, in thousandths, to be left as they are after a move: see
    /// [`Balance`](weft_routing::moves::Balance). 0: they stay in any case.
    pub rebalance_below: u32,
    /// 0 to 15; the highest wins the election, then the lowest port GUID. OpenSM's `sm_priority`.
    pub priority: u8,
    /// From one poll of the master to the next in STANDBY, in milliseconds. OpenSM's `sminfo_polling_timeout`.
    pub polling_ms: u64,
    /// How many polls in a row may go unanswered; one more, and the master is taken for dead. OpenSM's
    /// `polling_retry_number`.
    pub polling_retries: u32,
    /// What managers that trust each other share (IBA 14.4.5).
    pub sm_key: SmKey,
    /// The key by which subnet administration trusts a request (IBA 15.4.1); a request with another one is refused.
    pub sa_key: SmKey,
    /// The key that ports ask of their manager (IBA 14.2.4); 0 protects nothing.
    pub m_key: MKey,
    /// PortInfo's M_KeyProtectBits, 0 to 3: a port refuses Sets without the key from 0 on, hides the key from 1 on, and
    /// refuses every request from 2 on.
    pub m_key_protection: u8,
    /// PortInfo's M_KeyLeasePeriod: seconds that protection outlives a wrong key without a right one; 0 never ends it.
    pub m_key_lease_s: u16,
    /// The upper half of every GID.
    pub subnet_prefix: GidPrefix,
    /// The service level to the subnet manager, where routing does not choose one.
    pub sm_sl: ServiceLevel,
    /// Whether subscribers to trap 69 are told when another routing has changed service levels or LIDs of hosts: path by
    /// path where few have, else that all are to be asked for again.
    pub repath_on_reroute: bool,
    /// Whether only those who show the SM_Key may have subscribers told of other paths; otherwise every port of the
    /// subnet may.
    pub repath_needs_key: bool,
    /// Whether subnet administration tells requesters that do not show the SA key only of ports that they share a partition
    /// with (IBA 15.4.1). OpenSM always does.
    pub sa_partitions: bool,
    /// Whether congestion control is set up, as OpenSM's `congestion_control`. Off leaves settings as they are.
    pub congestion_control: bool,
    /// What it is set to.
    pub cc: CongestionOptions,
    /// PortInfo's SubnetTimeOut: 4.096 µs times 2 to this power.
    pub subnet_timeout: u8,
    /// SwitchInfo's LifeTimeValue: 4.096 µs times 2 to this power.
    pub packet_life_time: u8,
    /// How long a packet may head its queue at a switch port towards a switch.
    pub hoq_life: u8,
    /// The same towards a host.
    pub leaf_hoq_life: u8,
    /// How many packets are dropped in a row until a lane counts as stalled.
    pub vl_stall_count: u8,
    /// Threshold of local physical errors.
    pub local_phy_errors: u8,
    /// Threshold of overruns.
    pub overrun_errors: u8,
}

impl Default for Options {
    fn default() -> Self {
        let sl2vl = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7];
        Self {
            max_wire_smps: Window::AUTO,
            timeout_ms: 200,
            retries: 3,
            smp_routing: SmpRouting::Directed,
            sweep_interval_ms: 10_000,
            audit_smps: 512,
            one_sweep_per_cable: true,
            trap_delay_ms: 20,
            retry_delay_ms: 250,
            resweeps_max: 8,
            max_op_vls: VlCap::Vl0To14,
            mtu_max: Mtu::Bytes4096,
            qos: true,
            management_lane: false,
            engines: Chain::default(),
            part_enforce: PartEnforce::default(),
            routing: EngineOptions::default(),
            sl2vl,
            vl_arb_high: (0..15).map(|vl| VlWeight { vl, weight: if vl == 0 { 4 } else { 0 } }).collect(),
            vl_arb_low: (0..15).map(|vl| VlWeight { vl, weight: if vl == 0 { 0 } else { 4 } }).collect(),
            vl_high_limit: 0,
            lmc: 0,
            lids: LidScheme::default(),
            switch_lids: SwitchLids::default(),
            vm_lids_max: Lid::UNICAST_MAX.0,
            lid_quarantine_ms: 40_000,
            vm_weights: BTreeMap::new(),
            unproved_moves: false,
            rebalance_below: 0,
            priority: 0,
            polling_ms: 10_000,
            polling_retries: 4,
            sm_key: SmKey(1),
            sa_key: SmKey(1),
            m_key: MKey(0),
            m_key_protection: 0,
            m_key_lease_s: 0,
            subnet_prefix: GidPrefix::DEFAULT,
            sm_sl: ServiceLevel(0),
            repath_on_reroute: false,
            repath_needs_key: false,
            sa_partitions: false,
            congestion_control: false,
            cc: CongestionOptions::default(),
            subnet_timeout: 0x12,
            packet_life_time: 0x12,
            hoq_life: 0x12,
            leaf_hoq_life: 0x10,
            vl_stall_count: 7,
            local_phy_errors: 8,
            overrun_errors: 8,
        }
    }
}

/// The service level that is kept for management where it has a lane of its own.
pub(crate) const MANAGEMENT_LEVEL: ServiceLevel = ServiceLevel(15);

/// What a lane may send in a row where lanes have equal weights: 2048 bytes, so that packets take turns.
const EQUAL_WEIGHT: u8 = 32;

/// What management may send in a row before a waiting data lane has its turn, in 64-byte and in 4096-byte steps: about
/// fourteen MADs.
const MANAGEMENT_WEIGHT: u8 = 64;
pub(crate) const MANAGEMENT_LIMIT: u8 = 1;

/// The two arbitration tables of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arbitration {
    pub(crate) high: Vec<VlWeight>,
    pub(crate) low: Vec<VlWeight>,
}

/// LifeTimeValue by OpenSM's default, for switches that are to have none.
const LIFE_TIME_ASSUMED: u8 = 0x12;

impl Options {
    /// The same with lanes that are all alike: each sends as much as every other that has something to send, and none goes
    /// first. The papers' experiments use that ("equal priority for all VLs").
    pub fn with_equal_lanes(self) -> Self {
        let all = |weight| (0..15).map(|vl| VlWeight { vl, weight }).collect();
        Self { vl_arb_high: all(0), vl_arb_low: all(EQUAL_WEIGHT), vl_high_limit: 0, ..self }
    }

    /// How long data packets are under way at most that so many switches hold one after the other, each no longer than
    /// LifeTimeValue (IBA 18.2.5.4). Where that is unlimited, OpenSM's default is assumed.
    pub(crate) fn packets_gone(&self, switches: u32) -> Time {
        let value = if self.packet_life_time < 20 { self.packet_life_time } else { LIFE_TIME_ASSUMED };
        Time::from_nanos(u64::from(switches) * (4_096 << value))
    }

    /// The arbitration tables where this lane is management's.
    pub(crate) fn arbitration_tables(&self, management: Option<u8>) -> Arbitration {
        let Some(management) = management else {
            return Arbitration { high: self.vl_arb_high.clone(), low: self.vl_arb_low.clone() };
        };
        Arbitration {
            high: vec![VlWeight { vl: management, weight: MANAGEMENT_WEIGHT }],
            low: (0..management).map(|vl| VlWeight { vl, weight: EQUAL_WEIGHT }).collect(),
        }
    }

    /// From one poll of the master to the next.
    pub(crate) fn polling(&self) -> Time {
        Time::from_millis(self.polling_ms.max(1))
    }

    /// Whether virtual functions get their LIDs when machines boot.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.lids == LidScheme::Dynamic
    }

    /// How long LIDs of virtual functions that are gone rest; `None` where they rest until their port is back.
    pub(crate) fn quarantine(&self) -> Option<Time> {
        self.is_dynamic().then(|| Time::from_millis(self.lid_quarantine_ms))
    }

    /// How the transactions are paced.
    pub fn limits(&self) -> Limits {
        let timeout = Time::from_millis(self.timeout_ms.max(1));
        Limits { window: self.max_wire_smps, timeout, retries: self.retries, ..Limits::default() }
    }

    /// An arbitration table for a link with this many lanes and room for `room` entries.
    pub(crate) fn arbitration(table: &[VlWeight], data_lanes: u8, room: u8) -> Vec<VlArbitrationEntry> {
        let fits = table.iter().filter(|entry| entry.vl < data_lanes);
        let entry =
            |e: &VlWeight| VlArbitrationEntry { reserved: 0, vl: VirtualLane(e.vl), weight: e.weight };
        fits.map(entry).take(usize::from(room.min(64))).collect()
    }
}
