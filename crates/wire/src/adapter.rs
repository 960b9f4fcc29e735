//! Messages between an adapter and the host that it is in, beside packets: the events of IBA 11.6.3 and what a host asks
//! of a port; and what congestion control does, of which the port's agent keeps the log.

use serde::{Deserialize, Serialize};

use crate::{DataRate, GidPrefix, Guid, Lid, PKey, PathRate, QpNum, ServiceLevel};

/// What an adapter tells its host of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortFacts {
    /// The port's GUID.
    pub guid: Guid,
    /// The upper half of its GIDs.
    pub gid_prefix: GidPrefix,
    /// Whether data may pass: the port is Active.
    pub active: bool,
    /// The port's base LID; 0 while it has none.
    pub lid: Lid,
    /// It has 2 to this power LIDs.
    pub lmc: u8,
    /// Where the subnet manager is; 0 while there is none.
    pub sm_lid: Lid,
    /// The service level to it.
    pub sm_sl: ServiceLevel,
    /// The largest payload that the port's link takes, in bytes.
    pub mtu: u16,
    /// What the port can send at most, of fabric time: the slower one of its link and its host. Instant while there is no
    /// link, or where packets take no time. Injection delays are multiples of a packet's time.
    pub rate: DataRate,
    /// The rate of its link as path records name it, for comparison with theirs; code 0 while there is no link.
    pub link_rate: PathRate,
    /// The keys of its P_Key table, in order, without places that are free (IBA 14.2.5.7).
    pub p_keys: Vec<PKey>,
    /// Set in the one telling that answers the manager's demand to register again (IBA 14.4.11).
    pub reregister: bool,
    /// How the host is to answer congestion notifications; none while congestion control is off.
    pub congestion: Option<CongestionSettings>,
}

/// How a channel adapter answers congestion notifications: CACongestionSetting and CongestionControlTable as one
/// (IBA A10.4.3.7, A10.4.3.9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CongestionSettings {
    /// Whether a queue pair is slowed down, or all of a service level (Port_Control).
    pub by_service_level: bool,
    /// The service levels for which it is on, bit by bit.
    pub control_map: u16,
    /// By service level: how much a notification adds to the index into the table, and the index's bounds and timer.
    pub levels: [CongestionLevel; 16],
    /// The injection delays: 2 bits of shift, 14 of multiplier; the first is of index 0.
    pub table: Vec<u16>,
}

/// One service level of [`CongestionSettings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CongestionLevel {
    /// What a notification adds to the index (CCTI_Increase).
    pub increase: u8,
    /// How long until the index goes down by one, in 1.024 µs of fabric time (CCTI_Timer).
    pub timer: u16,
    /// The index at which an event is logged (Trigger_Threshold); 0 is none.
    pub trigger_threshold: u8,
    /// The lowest index (CCTI_Min).
    pub minimum: u8,
}

/// An index into the table of delays came to its Trigger_Threshold: what the host knows of an event in the port's log
/// (IBA A10.4.3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CongestionEvent {
    /// The own queue pair.
    pub local_qp: QpNum,
    /// The queue pair that notified.
    pub remote_qp: QpNum,
    /// The LID that notified.
    pub remote_lid: Lid,
    /// The service level of what was sent.
    pub service_level: ServiceLevel,
    /// The kind of transport: 0 reliable connection, 3 datagram.
    pub service_type: u8,
}
