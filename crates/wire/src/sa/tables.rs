//! Records of forwarding, partition, lane and arbitration tables.

use super::Parts::Split;
use super::record;
use crate::{
    Lid, LinearForwardingTable, MulticastForwardingTable, PKeyTable, PortNum, SlToVlTable, VlArbitrationTable,
};

layout! {
    /// A block of 64 unicast forwarding entries (IBA 15.2.5.6).
    pub struct LinearForwardingTableRecord: 72 {
        /// The switch.
        0, 16, lid: Lid;
        /// Which 64.
        16, 16, block_num: u16;
        /// Reserved.
        32, 32, reserved_32: u32;
        /// The entries.
        64, 512, table: LinearForwardingTable;
    }

    /// A block of 32 multicast forwarding entries for 16 ports (IBA 15.2.5.8).
    pub struct MulticastForwardingTableRecord: 72 {
        /// The switch.
        0, 16, lid: Lid;
        /// Which 16 ports.
        16, 4, position: u8;
        /// Reserved.
        20, 3, reserved_20: u8;
        /// Which 32 entries.
        23, 9, block_num: u16;
        /// Reserved.
        32, 32, reserved_32: u32;
        /// The entries.
        64, 512, table: MulticastForwardingTable;
    }

    /// A block of 32 partition keys of a port (IBA 15.2.5.11).
    pub struct PKeyTableRecord: 72 {
        /// The base LID of the port, or of its switch.
        0, 16, lid: Lid;
        /// Which 32.
        16, 16, block_num: u16;
        /// The port.
        32, 8, port_num: PortNum;
        /// Reserved.
        40, 24, reserved_40: u32;
        /// The keys.
        64, 512, table: PKeyTable;
    }

    /// The lane of each service level, from one port of a switch to another (IBA 15.2.5.4).
    pub struct SlToVlTableRecord: 16 {
        /// The base LID of the port, or of its switch.
        0, 16, lid: Lid;
        /// The port of arrival; 0 on other nodes than switches.
        16, 8, input_port: PortNum;
        /// The port of departure.
        24, 8, output_port: PortNum;
        /// Reserved.
        32, 32, reserved_32: u32;
        /// The lanes.
        64, 64, table: SlToVlTable;
    }

    /// A block of 32 arbitration entries of a port (IBA 15.2.5.12).
    pub struct VlArbitrationRecord: 72 {
        /// The base LID of the port, or of its switch.
        0, 16, lid: Lid;
        /// The port of departure.
        16, 8, output_port: PortNum;
        /// 1 and 2 are the low table, 3 and 4 the high one.
        24, 8, block_num: u8;
        /// Reserved.
        32, 32, reserved_32: u32;
        /// The entries.
        64, 512, table: VlArbitrationTable;
    }
}

record!(LinearForwardingTableRecord: LINEAR_FORWARDING_TABLE_RECORD, 4);
record!(MulticastForwardingTableRecord: MULTICAST_FORWARDING_TABLE_RECORD, 6);
record!(PKeyTableRecord: P_KEY_TABLE_RECORD, 5);
record!(SlToVlTableRecord: SL_TO_VL_TABLE_RECORD, 20, table: Split(16));
record!(VlArbitrationRecord: VL_ARBITRATION_RECORD, 5);
