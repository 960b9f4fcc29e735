//! InfiniBand's vocabulary and fixed-size formats.
//!
//! Every identifier is a newtype, every code an open enum whose unknown values survive, and every structure one
//! `layout!` table of first bit, width, name and type, from which the struct, `decode`, `encode`, the handles
//! that patch one field in place and the printable table all follow. A table with a gap, an overlap or a type
//! too narrow for its row does not compile. Sections cited as "IBA" are those of the InfiniBand Architecture
//! Specification, volume 1, release 1.3 and later.

//! ```
//! use weft_wire::{AttributeId, Lid, Mad, MadRoute, Method, MgmtClass, NodeInfo, Packet, Smp};
//!
//! let mut mad = Mad::default();
//! Smp::mgmt_class.set(&mut mad.0, MgmtClass::SubnLid);
//! Smp::method.set(&mut mad.0, Method::Get);
//! Smp::attribute_id.set(&mut mad.0, AttributeId::NodeInfo);
//! let packet = Packet::from_mad(&MadRoute::smp(Lid(7), Lid(1)), &mad);
//! let received = Packet::parse(packet.into_bytes()).unwrap();
//! assert_eq!(received.dlid(), Lid(7));
//! assert_eq!(received.mad().unwrap().attribute_id(), AttributeId::NodeInfo);
//! let info = NodeInfo::decode(received.mad().unwrap().smp_attribute());
//! assert_eq!(info, NodeInfo::default());
//! ```

#[macro_use]
mod layout;
mod adapter;
mod codes;
mod congestion;
mod crc;
mod data;
mod defaults;
pub mod erf;
mod hex;
mod ids;
mod mad;
mod mad_name;
mod named;
mod notice;
mod packet;
mod perf;
mod perf_details;
mod perf_samples;
mod rate;
mod rmpp;
mod sa;
mod smp;
mod text;
mod value;
mod vendor;
mod worded;

pub use adapter::{CongestionEvent, CongestionLevel, CongestionSettings, PortFacts};
pub use codes::{
    AttributeId, LinkNextHeader, Method, MgmtClass, Mtu, NodeType, NoticeType, PhysState, PortState, SmState,
    VlCap, capability, capability2, opcode, status, trap,
};
pub use congestion::{
    CONGESTION_CLASS_VERSION, CONGESTION_DATA, CONGESTION_LOG_DATA, CaCongestionEntry, CaCongestionLog,
    CaCongestionLogEntry, CaCongestionSetting, CongestionControlTable, CongestionInfo, CongestionKeyInfo,
    CongestionMad, CongestionTimeStamp, ENTRIES_OF_A_BLOCK, PORTS_OF_A_BLOCK, SwitchCongestionLog,
    SwitchCongestionLogEntry, SwitchCongestionSetting, SwitchPortCongestion, SwitchPortCongestionSetting,
    congestion_attribute, switch_control,
};
pub use crc::{icrc, vcrc};
pub use data::{Aeth, BODY_HEAD_SIZE, DATA_HEAD_SIZE_MAX, DataPacket, FlowControl, aeth};
pub use ids::{
    Gid, GidPrefix, Guid, Lid, MKey, Oui, PKey, PortNum, QKey, QpNum, ServiceLevel, SmKey, TransactionId,
    TrapNumber, VirtualLane,
};
pub use layout::{Field, Row};
pub use mad::{
    AddressedMad, DirectedSmp, HOPS_MAX, INITIAL_PATH, LinkParameters, MAD_SIZE, Mad, MadHeader, MethodMask,
    NotAMad, PERF_DATA, PerfMad, RETURN_PATH, Registration, SMP_DATA, Smp,
};
pub use mad_name::MadName;
pub use notice::{
    Details, GidDetails, KeyDetails, LocalChangesDetails, MKeyDetails, Notice, PortDetails, RepathDetails,
    RepathKind, SwitchDetails, SwitchKeyDetails, SystemImageGuidDetails,
};
pub use packet::{
    Bth, Deth, Lrh, MAD_PACKET_SIZE, MadRoute, PACKET_SIZE_MAX, PACKET_SIZE_MIN, Packet, PacketError,
};
pub use perf::{ClassPortInfo, PortCounters, PortCountersExtended, perf_capability};
pub use perf_details::{
    PortFlowCtlCounters, PortOpRcvCounters, PortRcvErrorDetails, PortVlOpData, PortVlOpPackets,
    PortVlXmitFlowCtlUpdateErrors, PortVlXmitWaitCounters, PortXmitDiscardDetails,
};
pub use perf_samples::{
    PortSamplesControl, PortSamplesResult, PortSamplesResultExtended, SampleSelect, SampleStatus,
    sample_option,
};
pub use rate::{DataRate, LinkSpeed};
pub use rmpp::{RMPP_AT, RMPP_END, RMPP_PAYLOAD, RMPP_VERSION, RmppHeader, RmppType, rmpp_status};
pub use sa::{
    GuidInfoRecord, InformInfo, InformInfoRecord, LinearForwardingTableRecord, LinkRecord,
    MulticastForwardingTableRecord, NodeRecord, PKeyTableRecord, PathRate, PathRecord, PortInfoRecord,
    ReceivedData, SA_CLASS_VERSION, SA_DATA_SIZE, SaMad, SaRecord, Selector, ServiceRecord,
    SlToVlTableRecord, SmInfoRecord, SwitchInfoRecord, VlArbitrationRecord, VmMove, VmMoveKind, VmMoveLate,
    VmMoveMethod, VmMoveOrder, VmMoveResult, VmMoveWrite, sa_attribute, sa_capability, sa_status,
};
pub use smp::{
    GuidInfo, LinearForwardingTable, LinkSpeedExt2, MlnxExtPortInfo, MulticastForwardingTable,
    NodeDescription, NodeInfo, PKeyTable, PortInfo, PortInfoExtended, SlToVlTable, SmInfo, SwitchInfo,
    VlArbitrationEntry, VlArbitrationTable,
};
pub use text::{Printable, count_of, is_or_are, is_unprintable, printable_json, printable_lines};
pub use value::{Bits, Value, fits};
pub use vendor::{OPENIB_OUI, VendorMad, sysstat};
