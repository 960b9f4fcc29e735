//! Records of nodes, of their ports and of the cables between them.

use super::Parts::{Rows, Split};
use super::record;
use crate::{GuidInfo, Lid, NodeDescription, NodeInfo, PortInfo, PortNum, SmInfo, SwitchInfo};

layout! {
    /// A node, by one of its ports (IBA 15.2.5.2).
    pub struct NodeRecord: 108 {
        /// The port's base LID; a switch's.
        0, 16, lid: Lid;
        /// Reserved.
        16, 16, reserved_16: u16;
        /// The NodeInfo.
        32, 320, node_info: NodeInfo;
        /// The NodeDescription.
        352, 512, node_description: NodeDescription;
    }

    /// A port (IBA 15.2.5.3).
    pub struct PortInfoRecord: 68 {
        /// The base LID of the port, or of its switch.
        0, 16, lid: Lid;
        /// The port.
        16, 8, port_num: PortNum;
        /// In a query: whether the extended speeds are wanted too. They always come.
        24, 8, options: u8;
        /// The PortInfo.
        32, 512, port_info: PortInfo;
    }

    /// A switch (IBA 15.2.5.5).
    pub struct SwitchInfoRecord: 24 {
        /// The switch.
        0, 16, lid: Lid;
        /// Reserved.
        16, 16, reserved_16: u16;
        /// The SwitchInfo.
        32, 160, switch_info: SwitchInfo;
    }

    /// A block of eight GUIDs of a port (IBA 15.2.5.18).
    pub struct GuidInfoRecord: 72 {
        /// The port's base LID; a switch's.
        0, 16, lid: Lid;
        /// Which eight.
        16, 8, block_num: u8;
        /// Reserved.
        24, 8, reserved_24: u8;
        /// Reserved.
        32, 32, reserved_32: u32;
        /// The GUIDs.
        64, 512, guid_info: GuidInfo;
    }

    /// One direction of a cable (IBA 15.2.5.13).
    pub struct LinkRecord: 6 {
        /// The base LID of the port, or of the switch, that it begins at.
        0, 16, from_lid: Lid;
        /// The port that it begins at.
        16, 8, from_port: PortNum;
        /// The port that it ends at.
        24, 8, to_port: PortNum;
        /// The base LID of the port, or of the switch, that it ends at.
        32, 16, to_lid: Lid;
    }

    /// A subnet manager (IBA 15.2.5.10).
    pub struct SmInfoRecord: 25 {
        /// The base LID of the port that it is behind.
        0, 16, lid: Lid;
        /// Reserved.
        16, 16, reserved_16: u16;
        /// The SMInfo.
        32, 168, sm_info: SmInfo;
    }
}

record!(NodeRecord: NODE_RECORD, 15, node_info: Rows(NodeInfo::TABLE));
record!(PortInfoRecord: PORT_INFO_RECORD, 58, port_info: Rows(PortInfo::TABLE));
record!(SwitchInfoRecord: SWITCH_INFO_RECORD, 21, switch_info: Rows(SwitchInfo::TABLE));
record!(GuidInfoRecord: GUID_INFO_RECORD, 12, guid_info: Split(8));
record!(LinkRecord: LINK_RECORD, 4);
record!(SmInfoRecord: SM_INFO_RECORD, 7, sm_info: Rows(SmInfo::TABLE));
