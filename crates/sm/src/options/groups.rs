//! The options in groups, and their form in files: one table of all, by the names that they have had from the beginning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_mgmt::Window;
use weft_routing::{Chain, EngineOptions};
use weft_wire::{GidPrefix, Guid, Lid, MKey, Mtu, ServiceLevel, SmKey, VlCap};

use super::kinds::{CongestionOptions, LidScheme, PartEnforce, Signalling, SmpRouting, SwitchLids, VlWeight};

/// Declares groups of options with their defaults, [`Options`] that has them, and [`Flat`], the form in files.
macro_rules! options {
    ($($(#[doc = $about:literal])* $group:ident: $Group:ident {
        $($(#[doc = $doc:literal])* $(#[serde($($serde:tt)*)])? $name:ident: $type:ty = $default:expr,)*
    })*) => {
        $(
            $(#[doc = $about])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $Group {
                $($(#[doc = $doc])* pub $name: $type,)*
            }

            impl Default for $Group {
                fn default() -> Self {
                    Self { $($name: $default,)* }
                }
            }

            impl From<$Group> for Options {
                fn from($group: $Group) -> Self {
                    Self { $group, ..Self::default() }
                }
            }
        )*

        /// The subnet manager's options. Where OpenSM has the same option its default is taken, unless the field says
        /// otherwise.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "Flat", into = "Flat")]
        pub struct Options {
            $($(#[doc = $about])* pub $group: $Group,)*
        }

        #[derive(Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields, rename = "Options")]
        struct Flat {
            $($($(#[serde($($serde)*)])? $name: $type,)*)*
        }

        impl Default for Flat {
            fn default() -> Self {
                Options::default().into()
            }
        }

        impl From<Flat> for Options {
            fn from(flat: Flat) -> Self {
                Self { $($group: $Group { $($name: flat.$name,)* },)* }
            }
        }

        impl From<Options> for Flat {
            fn from(options: Options) -> Self {
                Self { $($($name: options.$group.$name,)*)* }
            }
        }
    };
}

options! {
    /// SMPs: how many at once, how long they wait for an answer, and how they travel.
    smps: SmpOptions {
        /// How many SMPs may be in flight.
        max_wire_smps: Window = Window::AUTO,
        /// How long to wait for an answer.
        timeout_ms: u64 = 200,
        /// How many more attempts follow the first.
        retries: u32 = 3,
        /// How SMPs travel once tables stand.
        smp_routing: SmpRouting = SmpRouting::Directed,
    }

    /// Sweeps: when they begin, and when they are repeated.
    sweeps: SweepOptions {
        /// From one light sweep to the next; 0 is never.
        sweep_interval_ms: u64 = 10_000,
        /// How much a light sweep reads back at most of what the manager has written, in SMPs; 0 is nothing.
        audit_smps: u32 = 512,
        /// Whether all traps that come before a heavy sweep has answered them are answered by it, as are those whose
        /// change the sweep has seen from the other end of the cable. Off: every trap is one sweep.
        one_sweep_per_cable: bool = true,
        /// How long to wait for more traps before a heavy sweep begins.
        trap_delay_ms: u64 = 20,
        /// How soon to look again at what did not answer or refused; doubles each time up to the sweep interval.
        retry_delay_ms: u64 = 250,
        /// How many sweeps may follow each other at once because the fabric changed meanwhile.
        resweeps_max: u32 = 8,
    }

    /// Routing: engines and their options, and LIDs of hosts.
    routing: RoutingOptions {
        /// The routing engines, in the order in which they are tried.
        #[serde(rename = "engines")]
        chain: Chain = Chain::default(),
        /// Options of the engines. They get no more lanes than every link has.
        #[serde(rename = "routing")]
        engine: EngineOptions = EngineOptions::default(),
        /// Whether weights of hosts are learned from what a performance manager says that they receive.
        learn_weights: bool = false,
        /// Whether hosts are routed in the order of what they receive, the most first.
        learn_order: bool = false,
        /// HCA ports get 2 to this power LIDs.
        lmc: u8 = 0,
        /// Where switches look at the P_Keys of packets of their hosts, where `routing.partitions` says who has which.
        part_enforce: PartEnforce = PartEnforce::default(),
        /// How long a place of a P_Key table that a key has left is given to no other, in milliseconds; the default is longer
        /// than queue pairs try again: 8 times 4 s.
        p_key_quarantine_ms: u64 = 40_000,
    }

    /// Data lanes of ports: their number, mapping and arbitration, and the lifetimes of packets in them.
    lanes: LaneOptions {
        /// The most data lanes that a link may use.
        max_op_vls: VlCap = VlCap::Vl0To14,
        /// The largest MTU that a link may use.
        mtu_max: Mtu = Mtu::Bytes4096,
        /// Whether SLtoVL mappings and arbitration tables are written; otherwise each port keeps
        /// what it has. OpenSM writes them only when asked to.
        qos: bool = true,
        /// Whether management has a lane of its own: service level 15 then takes the highest data
        /// lane that every link has, alone, served first within a limit; routing has the lanes and
        /// levels below, in equal shares. Ports get that level as MasterSMSL, so requests, answers
        /// and Reports use it. Takes `qos`, and a second lane on every link; else management shares
        /// the data's. Stands before `vl_arb_high`, `vl_arb_low` and `vl_high_limit`.
        management_lane: bool = false,
        /// The lane of each service level; lane 15 drops. Brought down to the lanes that a link has. A routing that needs
        /// several lanes brings a mapping of its own.
        sl2vl: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7],
        /// The high-priority arbitration table, by default lane 0 with weight 4 and all others with 0, as OpenSM's
        /// `qos_vlarb_high`. Empty: left as the port has it.
        vl_arb_high: Vec<VlWeight> = (0..15).map(|vl| VlWeight { vl, weight: if vl == 0 { 4 } else { 0 } }).collect(),
        /// The low-priority arbitration table, by default lane 0 with weight 0 and all others with 4, as OpenSM's
        /// `qos_vlarb_low`. Empty: left as the port has it.
        vl_arb_low: Vec<VlWeight> = (0..15).map(|vl| VlWeight { vl, weight: if vl == 0 { 0 } else { 4 } }).collect(),
        /// How many 4096-byte steps of the high table pass before a low one.
        vl_high_limit: u8 = 0,
        /// SwitchInfo's LifeTimeValue: 4.096 µs times 2 to this power.
        packet_life_time: u8 = 0x12,
        /// How long a packet may head its queue at a switch port towards a switch.
        hoq_life: u8 = 0x12,
        /// The same towards a host.
        leaf_hoq_life: u8 = 0x10,
        /// How many packets are dropped in a row until a lane counts as stalled.
        vl_stall_count: u8 = 7,
        /// Threshold of local physical errors.
        local_phy_errors: u8 = 8,
        /// Threshold of overruns.
        overrun_errors: u8 = 8,
    }

    /// Subnet administration: its answers to hosts about the subnet and about paths.
    sa: SaOptions {
        /// The upper half of every GID.
        subnet_prefix: GidPrefix = GidPrefix::DEFAULT,
        /// The service level to the subnet manager, where routing does not choose one.
        sm_sl: ServiceLevel = ServiceLevel(0),
        /// PortInfo's SubnetTimeOut: 4.096 µs times 2 to this power.
        subnet_timeout: u8 = 0x12,
        /// How subscribers to trap 69 hear of paths that another routing has changed.
        signalling: Signalling = Signalling::Hybrid,
        /// Whether subscribers to trap 69 hear that the GUID of a virtual function has come back with another LID (paper 004,
        /// algorithm 1, lines 2603–2620).
        signal_moves: bool = false,
        /// Whether only those who show the SM_Key may have subscribers notified of other paths;
        /// otherwise every port of the subnet may.
        repath_needs_key: bool = false,
        /// Whether subnet administration tells requesters that do not show the SA key only of ports that they share a partition
        /// with (IBA 15.4.1). OpenSM always does.
        sa_partitions: bool = false,
    }

    /// Election among several managers (IBA 14.4.1).
    election: ElectionOptions {
        /// 0 to 15; the highest wins the election, then the lowest port GUID. OpenSM's `sm_priority`.
        priority: u8 = 0,
        /// From one poll of the master to the next in STANDBY, in milliseconds. OpenSM's `sminfo_polling_timeout`.
        polling_ms: u64 = 10_000,
        /// How many polls in a row may go unanswered; one more, and the master is taken for dead. OpenSM's
        /// `polling_retry_number`.
        polling_retries: u32 = 4,
    }

    /// Keys of management.
    keys: KeyOptions {
        /// What managers that trust each other share (IBA 14.4.5).
        sm_key: SmKey = SmKey(1),
        /// The key by which subnet administration trusts a request (IBA 15.4.1); a request with another one is refused.
        sa_key: SmKey = SmKey(1),
        /// The key that ports ask of their manager (IBA 14.2.4); 0 protects nothing.
        m_key: MKey = MKey(0),
        /// PortInfo's M_KeyProtectBits, 0 to 3: a port refuses Sets without the key from 0 on, hides the key from 1 on, and
        /// refuses every request from 2 on.
        m_key_protection: u8 = 0,
        /// PortInfo's M_KeyLeasePeriod: seconds that protection outlives a wrong key without a right one; 0 never ends it.
        m_key_lease_s: u16 = 0,
    }

    /// LIDs of virtual functions, and their moves.
    vm_lids: VmLidOptions {
        /// When virtual functions get LIDs.
        #[serde(rename = "lids")]
        scheme: LidScheme = LidScheme::default(),
        /// Which LIDs vSwitches have.
        switch_lids: SwitchLids = SwitchLids::default(),
        /// The most LIDs of virtual functions with [`LidScheme::Dynamic`], those in quarantine included.
        vm_lids_max: u16 = Lid::UNICAST_MAX.0,
        /// How long the LID of a virtual function that is gone is given to no other with [`LidScheme::Dynamic`], in
        /// milliseconds; the default is longer than queue pairs of its peers try again: 8 times 4 s.
        lid_quarantine_ms: u64 = 40_000,
        /// Whether the LIDs of [`LidScheme::Dynamic`] stay with functions: a port GUID that comes to another function gets that
        /// one's LID (paper 004, static assignment, lines 2568–2589). Moves of LIDs are then no request that the manager knows.
        vm_lids_stay: bool = false,
        /// The weights of virtual machines by the GUID of the function's port or node, for engines that read `vm_weights`, as
        /// [`EngineOptions::vm_weights`] has them by LID.
        vm_weights: BTreeMap<Guid, u32> = BTreeMap::new(),
        /// Whether moves are carried out that no proof covers, where `full` or `unordered` is asked for: on the way packets may go round in
        /// loops or get lost. For comparison.
        unproved_moves: bool = false,
        /// How good the tables of machines' LIDs have to be beside fresh ones, in thousandths, to be left as they are after a move: see
        /// [`Balance`](weft_routing::moves::Balance). 0: they stay in any case.
        rebalance_below: u32 = 0,
    }

    /// Congestion control (IBA annex A10).
    congestion: CongestionControl {
        /// Whether congestion control is set up, as OpenSM's `congestion_control`. Off leaves settings as they are.
        #[serde(rename = "congestion_control")]
        is_on: bool = false,
        /// What it is set to.
        #[serde(rename = "cc")]
        settings: CongestionOptions = CongestionOptions::default(),
    }
}
