//! The kinds of options' values.

use serde::{Deserialize, Serialize};

/// How SMPs travel once forwarding tables stand. Discovery and tables always go by directed route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SmpRouting {
    /// Along directed routes: every switch on the way handles them in its management agent.
    #[default]
    Directed,
    /// By LID, forwarded like data; what no one answers is asked again along a directed route.
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

weft_wire::named! {
    /// How hosts hear that a routing has changed paths (paper 004, lines 985–1070).
    #[derive(Default)]
    pub enum Signalling {
        /// They do not.
        Off = "off",
        /// After every routing all subscribers to trap 69 are notified, and ask for all of their paths again.
        Wildcard = "wildcard",
        /// Source and destination of each pair whose service level is another are notified of it (algorithm 1).
        Repath = "repath",
        /// All subscribers are notified once, as with a wildcard, but only if some pair has another service level (algorithms 2 and 3).
        /// The default: it costs nothing while paths stay, and the fewest datagrams where many change.
        #[default]
        Hybrid = "hybrid",
    }
}

/// One entry of an arbitration table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlWeight {
    /// The lane.
    pub vl: u8,
    /// How many 64-byte steps it may send in a row; 0 skips it.
    pub weight: u8,
}

weft_wire::defaults! {
    /// What congestion control is set to. Named as OpenSM's options behind `cc_`; the defaults, other than OpenSM's zeros, mark
    /// at the shortest queue and let one notification add an eighth of a packet's time to the distance between packets.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct CongestionOptions {
        /// What every GMP shows; the agents' own keys are left as they are.
        pub key: u64 = 0,
        /// Ports that mark without credit too, the last bit being port 0. `None`: the ports towards hosts, since a host that
        /// takes less than its link carries has no port to mark at.
        pub sw_cong_setting_victim_mask: Option<[u8; 32]> = None,
        /// How easily a switch marks: 0 never, 15 with the shortest queue.
        pub sw_cong_setting_threshold: u8 = 15,
        /// Packets of fewer 64-byte units are not marked.
        pub sw_cong_setting_packet_size: u8 = 8,
        /// The mean number of packets that could be marked between two that are.
        pub sw_cong_setting_marking_rate: u16 = 3,
        /// 0: queue pairs are slowed down; 1: service levels.
        pub ca_cong_setting_port_control: u16 = 0,
        /// The service levels that are set.
        pub ca_cong_setting_control_map: u16 = 0xffff,
        /// How long until the index goes down by one, in 1.024 µs of fabric time.
        pub ca_cong_setting_ccti_timer: u16 = 250,
        /// What a notification adds to the index.
        pub ca_cong_setting_ccti_increase: u8 = 1,
        /// The index at which an event is logged; 0 is none.
        pub ca_cong_setting_trigger_threshold: u8 = 2,
        /// The lowest index.
        pub ca_cong_setting_ccti_min: u8 = 0,
        /// The injection delays from index 0 on: 2 bits of shift, 14 of multiplier. At most 4096.
        pub cct: Vec<u16> = (0..128).map(|eighths| 3 << 14 | eighths).collect(),
    }
}
