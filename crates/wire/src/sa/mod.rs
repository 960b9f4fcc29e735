//! Subnet administration: its MAD (IBA 15.2.1.1) and its records (IBA 15.2.5).
//!
//! A query names a record's components by a mask whose bit i stands for the i-th component of the record in the
//! order of the architecture's tables. Here the rows of a record's `layout!` table are its components, where a row
//! that holds another structure stands for that structure's rows, and some arrays stand for their elements:
//! [`SaRecord::COMPONENTS`].

mod end_ports;
mod events;
mod moves;
mod path;
mod received;
mod service;
mod tables;

pub use end_ports::{GuidInfoRecord, LinkRecord, NodeRecord, PortInfoRecord, SmInfoRecord, SwitchInfoRecord};
pub use events::{InformInfo, InformInfoRecord};
pub use moves::{VmMove, VmMoveKind, VmMoveLate, VmMoveMethod, VmMoveOrder, VmMoveResult, VmMoveWrite};
pub use path::{PathRate, PathRecord, Selector};
pub use received::ReceivedData;
pub use service::ServiceRecord;
pub use tables::{
    LinearForwardingTableRecord, MulticastForwardingTableRecord, PKeyTableRecord, SlToVlTableRecord,
    VlArbitrationRecord,
};

use crate::{AttributeId, RmppHeader, Row, SmKey};

/// A class version of its own: subnet administration has been version 2 from the first release on.
pub const SA_CLASS_VERSION: u8 = 2;

/// How many bytes of records one MAD of subnet administration carries.
pub const SA_DATA_SIZE: usize = 200;

mads! {
    /// A subnet-administration MAD (IBA 15.2.1.1).
    SaMad: 256 {
        /// The RMPP header (IBA 13.6.2).
        192, 96, rmpp: RmppHeader;
        /// The key of who may know more; 0 is shown by everybody else.
        288, 64, sm_key: SmKey;
        /// From one record to the next, in 8-byte units.
        352, 16, attribute_offset: u16;
        /// Reserved.
        368, 16, reserved_368: u16;
        /// Which components of the record a query means.
        384, 64, component_mask: u64;
        /// The records.
        448, 1600, data: [u8; 200];
    }
}

/// The attributes of subnet administration (IBA 15.2.5). Several share their numbers with those of other classes.
pub mod sa_attribute {
    use crate::AttributeId;

    attributes! {
        /// What is known of a node and one of its ports.
        NODE_RECORD = 0x0011, "NodeRecord";
        /// A port's PortInfo.
        PORT_INFO_RECORD = 0x0012, "PortInfoRecord";
        /// Service levels to lanes.
        SL_TO_VL_TABLE_RECORD = 0x0013, "SLtoVLMappingTableRecord";
        /// A switch's SwitchInfo.
        SWITCH_INFO_RECORD = 0x0014, "SwitchInfoRecord";
        /// A block of unicast forwarding.
        LINEAR_FORWARDING_TABLE_RECORD = 0x0015, "LinearForwardingTableRecord";
        /// A block of multicast forwarding.
        MULTICAST_FORWARDING_TABLE_RECORD = 0x0017, "MulticastForwardingTableRecord";
        /// A subnet manager.
        SM_INFO_RECORD = 0x0018, "SMInfoRecord";
        /// Subscriptions.
        INFORM_INFO_RECORD = 0x00f3, "InformInfoRecord";
        /// One direction of a cable.
        LINK_RECORD = 0x0020, "LinkRecord";
        /// A block of a port's GUIDs.
        GUID_INFO_RECORD = 0x0030, "GuidInfoRecord";
        /// A service that somebody offers.
        SERVICE_RECORD = 0x0031, "ServiceRecord";
        /// A block of a port's partition keys.
        P_KEY_TABLE_RECORD = 0x0033, "P_KeyTableRecord";
        /// A way from one port to another.
        PATH_RECORD = 0x0035, "PathRecord";
        /// A block of lane arbitration.
        VL_ARBITRATION_RECORD = 0x0036, "VLArbitrationTableRecord";
        /// Membership in a multicast group.
        MC_MEMBER_RECORD = 0x0038, "MCMemberRecord";
        /// Several ways between groups of ports.
        MULTI_PATH_RECORD = 0x003a, "MultiPathRecord";
        /// weft's own: a move of a virtual machine's LID.
        VM_MOVE = 0xff10, "VmMove";
        /// weft's own: one write of the plan of such a move.
        VM_MOVE_WRITE = 0xff11, "VmMoveWrite";
        /// weft's own: how much hosts receive.
        RECEIVED_DATA = 0xff12, "ReceivedData";
    }
}

/// The status of an answer of subnet administration: the class's own bits (IBA 15.2.2).
pub mod sa_status {
    /// There is no room for that.
    pub const NO_RESOURCES: u16 = 0x0100;
    /// The request makes no sense.
    pub const REQ_INVALID: u16 = 0x0200;
    /// Nothing matches a Get or a Delete.
    pub const NO_RECORDS: u16 = 0x0300;
    /// More than one record matches a Get.
    pub const TOO_MANY_RECORDS: u16 = 0x0400;
    /// A GID that no one here has.
    pub const REQ_INVALID_GID: u16 = 0x0500;
    /// The mask lacks a component that the request needs.
    pub const INSUFFICIENT_COMPONENTS: u16 = 0x0600;
    /// The requester may not do that.
    pub const REQ_DENIED: u16 = 0x0700;
}

/// Bits of the class's CapabilityMask (IBA 15.2.5.1).
pub mod sa_capability {
    /// Every optional record, but multicast, trace and multipath records, is served.
    pub const IS_SUBNET_OPTIONAL_RECORDS_SUPPORTED: u16 = 1 << 8;
    /// Multicast groups are served.
    pub const IS_UD_MULTICAST_SUPPORTED: u16 = 1 << 9;
    /// Multipath and trace records are served.
    pub const IS_MULTIPATH_SUPPORTED: u16 = 1 << 10;
    /// With bit 31 of the modifier, PortInfoRecords are asked for by the capabilities that they have at least.
    pub const IS_PORT_INFO_CAP_MASK_MATCH_SUPPORTED: u16 = 1 << 13;
}

/// A record of subnet administration.
pub trait SaRecord: Copy {
    /// Its attribute id.
    const ATTRIBUTE: AttributeId;
    /// How many bytes it has.
    const LENGTH: usize;
    /// What bit i of a component mask stands for.
    const COMPONENTS: &'static [Row];
    /// Reads the front of `bytes`; what is missing counts as zero.
    fn from_bytes(bytes: &[u8]) -> Self;
    /// Appends the record.
    fn append_to(&self, bytes: &mut Vec<u8>);
    /// From the beginning of one record in a table to the next, in the 8-byte units of AttributeOffset.
    const OFFSET: u16 = Self::LENGTH.div_ceil(8) as u16;
}

/// What one row of a record stands for in a component mask, when it is not one component.
enum Parts {
    /// As many components of equal width.
    Split(usize),
    /// The rows of the structure that it holds.
    Rows(&'static [Row]),
}

/// The components of a record with these rows.
///
/// # Panics
/// When there are not `N` of them; at compile time, where this is used.
const fn components<const N: usize>(rows: &[Row], inner: &[(&str, Parts)]) -> [Row; N] {
    let mut list = [Row { first: 0, width: 0, name: "" }; N];
    let (mut at, mut row) = (0, 0);
    while row < rows.len() {
        let Row { first, width, name } = rows[row];
        let mut found = 0;
        while found < inner.len() && !same(inner[found].0, name) {
            found += 1;
        }
        let count = match inner {
            _ if found == inner.len() => 1,
            _ => match inner[found].1 {
                Parts::Split(count) => count,
                Parts::Rows(rows) => rows.len(),
            },
        };
        let mut part = 0;
        while part < count {
            list[at] = match inner {
                _ if found == inner.len() => rows[row],
                _ => match inner[found].1 {
                    Parts::Split(count) => {
                        Row { first: first + part * (width / count), width: width / count, name }
                    }
                    Parts::Rows(rows) => Row { first: first + rows[part].first, ..rows[part] },
                },
            };
            at += 1;
            part += 1;
        }
        row += 1;
    }
    assert!(at == N, "another number of components");
    list
}

/// Whether two names are the same, at compile time.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Makes a structure a record with `$count` components; names rows that are not one component each.
macro_rules! record {
    ($name:ident: $attribute:ident, $count:literal $(, $row:ident: $parts:expr)*) => {
        impl crate::SaRecord for $name {
            const ATTRIBUTE: crate::AttributeId = crate::sa_attribute::$attribute;
            const LENGTH: usize = Self::SIZE;
            const COMPONENTS: &'static [crate::Row] =
                &super::components::<$count>(Self::TABLE, &[$((stringify!($row), $parts)),*]);
            fn from_bytes(bytes: &[u8]) -> Self {
                let mut whole = [0; Self::SIZE];
                let length = bytes.len().min(Self::SIZE);
                whole[..length].copy_from_slice(&bytes[..length]);
                Self::decode(&whole)
            }
            fn append_to(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.encode());
            }
        }
    };
}
use record;
