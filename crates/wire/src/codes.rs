//! The architecture's codes. Each is open: a value that has no name here survives a round trip.

codes! {
    /// What a node is (NodeInfo, IBA 14.2.5.3).
    NodeType(u8), 8 {
        /// A host channel adapter.
        Hca = 1,
        /// A switch.
        Switch = 2,
        /// A router.
        Router = 3,
    }

    /// A port's logical state (PortInfo, IBA 14.2.5.6; link state machine, IBA 7.2.7).
    PortState(u8), 4 {
        /// In a Set: leave the state as it is.
        NoChange = 0,
        /// No link.
        Down = 1,
        /// The link is trained; only subnet management passes.
        Initialize = 2,
        /// Configured; data may be received.
        Armed = 3,
        /// In service.
        Active = 4,
        /// Active, with the link away for a moment.
        ActiveDefer = 5,
    }

    /// A port's physical state (PortInfo, IBA 14.2.5.6).
    PhysState(u8), 4 {
        /// In a Set: leave the state as it is.
        NoChange = 0,
        /// Neither driving nor listening.
        Sleep = 1,
        /// Looking for a peer.
        Polling = 2,
        /// Switched off by management.
        Disabled = 3,
        /// Agreeing on width and speed.
        Training = 4,
        /// The link works.
        LinkUp = 5,
        /// Re-training after errors.
        ErrorRecovery = 6,
        /// Under test.
        PhyTest = 7,
    }

    /// The largest payload of a packet (PortInfo, IBA 14.2.5.6).
    Mtu(u8), 4 {
        /// 256 bytes.
        Bytes256 = 1,
        /// 512 bytes.
        Bytes512 = 2,
        /// 1024 bytes.
        Bytes1024 = 3,
        /// 2048 bytes.
        Bytes2048 = 4,
        /// 4096 bytes.
        Bytes4096 = 5,
    }
}

impl Mtu {
    /// Bytes of payload that the code stands for; `None` for an unknown code.
    pub const fn bytes(self) -> Option<u16> {
        match self {
            Self::Bytes256 | Self::Bytes512 | Self::Bytes1024 | Self::Bytes2048 | Self::Bytes4096 => {
                Some(128 << self.code())
            }
            _ => None,
        }
    }
}

codes! {
    /// How many data lanes (PortInfo's VLCap and OperationalVLs, IBA 14.2.5.6).
    VlCap(u8), 4 {
        /// In a Set of OperationalVLs: no change.
        NoChange = 0,
        /// VL 0.
        Vl0 = 1,
        /// VL 0 and 1.
        Vl0To1 = 2,
        /// VL 0 to 3.
        Vl0To3 = 3,
        /// VL 0 to 7.
        Vl0To7 = 4,
        /// VL 0 to 14.
        Vl0To14 = 5,
    }
}

impl VlCap {
    /// How many data lanes the code stands for; an unknown code stands for one.
    pub const fn lanes(self) -> u8 {
        match self {
            Self::Vl0To1 => 2,
            Self::Vl0To3 => 4,
            Self::Vl0To7 => 8,
            Self::Vl0To14 => 15,
            _ => 1,
        }
    }
}

codes! {
    /// A MAD's method, response bit included (IBA 13.4.5).
    Method(u8), 8 {
        /// Asks for an attribute.
        Get = 0x01,
        /// Changes an attribute.
        Set = 0x02,
        /// A datagram without answer.
        Send = 0x03,
        /// Something happened.
        Trap = 0x05,
        /// A forwarded event.
        Report = 0x06,
        /// The SM has heard a trap.
        TrapRepress = 0x07,
        /// Asks for a table (SA).
        GetTable = 0x12,
        /// Asks for records of several attributes (SA).
        GetTraceTable = 0x13,
        /// Asks with several keys (SA).
        GetMulti = 0x14,
        /// Removes a record (SA).
        Delete = 0x15,
        /// Answers Get and Set.
        GetResp = 0x81,
        /// Answers Report.
        ReportResp = 0x86,
        /// Answers GetTable.
        GetTableResp = 0x92,
        /// Answers GetMulti.
        GetMultiResp = 0x94,
        /// Answers Delete.
        DeleteResp = 0x95,
    }
}

impl Method {
    /// Whether the response bit is set. TrapRepress has none though it answers a trap.
    pub const fn is_response(self) -> bool {
        self.code() & 0x80 != 0
    }

    /// The method that answers this one when it asks for something; Set is answered by GetResp (IBA 13.4.5). A
    /// Report is answered by whoever subscribed to it, and by no one else.
    pub const fn response(self) -> Option<Self> {
        match self {
            Self::Get | Self::Set => Some(Self::GetResp),
            Self::GetTable | Self::GetTraceTable => Some(Self::GetTableResp),
            Self::GetMulti => Some(Self::GetMultiResp),
            Self::Delete => Some(Self::DeleteResp),
            _ => None,
        }
    }
}

codes! {
    /// A management class (IBA 13.4.4).
    MgmtClass(u8), 8 {
        /// Subnet management, routed by LID.
        SubnLid = 0x01,
        /// Subnet administration.
        SubnAdm = 0x03,
        /// Performance management.
        Perf = 0x04,
        /// Baseboard management.
        BoardMgmt = 0x05,
        /// Device management.
        DevMgmt = 0x06,
        /// Connection management.
        ComMgmt = 0x07,
        /// Device administration.
        DevAdm = 0x10,
        /// Boot information service.
        Bis = 0x12,
        /// Congestion control.
        CongestionControl = 0x21,
        /// The OpenIB ping service.
        OpenIbPing = 0x32,
        /// The OpenIB system-status service.
        OpenIbSysstat = 0x33,
        /// Subnet management along a directed route.
        SubnDirected = 0x81,
    }
}

impl MgmtClass {
    /// Whether it is one of the vendor-specific classes whose MADs name their vendor (IBA 16.5.1).
    pub const fn has_oui(self) -> bool {
        matches!(self.code(), 0x30..=0x4f)
    }
}

codes! {
    /// An attribute's id; which structure it names depends on the class (IBA 13.4.8, 14.2.5, 16.1.3).
    AttributeId(u16), 16 {
        /// Class capabilities (GMP classes).
        ClassPortInfo = 0x0001,
        /// A trap's contents.
        Notice = 0x0002,
        /// Event subscription.
        InformInfo = 0x0003,
        /// A node's text.
        NodeDescription = 0x0010,
        /// A node's identity.
        NodeInfo = 0x0011,
        /// A switch's tables and state; PortCounters in class PerfMgt.
        SwitchInfo = 0x0012,
        /// A port's GUIDs.
        GuidInfo = 0x0014,
        /// A port's state and settings.
        PortInfo = 0x0015,
        /// A port's partitions.
        PKeyTable = 0x0016,
        /// Service levels to lanes.
        SlToVlTable = 0x0017,
        /// Lane arbitration.
        VlArbitrationTable = 0x0018,
        /// Unicast forwarding.
        LinearForwardingTable = 0x0019,
        /// Unicast forwarding by random access.
        RandomForwardingTable = 0x001a,
        /// Multicast forwarding.
        MulticastForwardingTable = 0x001b,
        /// PortCountersExtended (class PerfMgt).
        PortCountersExtended = 0x001d,
        /// A subnet manager's state.
        SmInfo = 0x0020,
        /// A port's error correction.
        PortInfoExtended = 0x0033,
        /// A port's FDR10 speed, in devices with Mellanox chips.
        MlnxExtPortInfo = 0xff90,
    }
}

/// Attributes of performance management (IBA 16.1.3, 16.1.4). Some share their number with one of subnet management;
/// the class tells them apart.
impl AttributeId {
    /// No attribute: what the OpenIB ping service is asked for.
    pub const NONE: Self = Self(0);
    /// What is to be sampled.
    pub const PORT_SAMPLES_CONTROL: Self = Self(0x10);
    /// What was sampled.
    pub const PORT_SAMPLES_RESULT: Self = Self(0x11);
    /// A port's counters.
    pub const PORT_COUNTERS: Self = Self(0x12);
    /// What was wrong with packets that came in.
    pub const PORT_RCV_ERROR_DETAILS: Self = Self(0x15);
    /// Why packets were dropped on departure.
    pub const PORT_XMIT_DISCARD_DETAILS: Self = Self(0x16);
    /// Packets received with one opcode.
    pub const PORT_OP_RCV_COUNTERS: Self = Self(0x17);
    /// Flow control packets of the link.
    pub const PORT_FLOW_CTL_COUNTERS: Self = Self(0x18);
    /// Packets received with one opcode, by lane.
    pub const PORT_VL_OP_PACKETS: Self = Self(0x19);
    /// Data received with one opcode, by lane.
    pub const PORT_VL_OP_DATA: Self = Self(0x1a);
    /// Wrong flow control updates, by lane.
    pub const PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS: Self = Self(0x1b);
    /// Time that data waited, by lane.
    pub const PORT_VL_XMIT_WAIT_COUNTERS: Self = Self(0x1c);
    /// What was sampled, with 64-bit counters.
    pub const PORT_SAMPLES_RESULT_EXTENDED: Self = Self(0x1e);
}

codes! {
    /// A subnet manager's state (SMInfo, IBA 14.4.1).
    SmState(u8), 4 {
        /// Disabled by another manager.
        NotActive = 0,
        /// Looking for other managers.
        Discovering = 1,
        /// Waiting for the master to fail.
        Standby = 2,
        /// In charge.
        Master = 3,
    }

    /// What a notice is about (IBA 13.4.8.2).
    NoticeType(u8), 7 {
        /// Cannot go on.
        Fatal = 0,
        /// Needs attention.
        Urgent = 1,
        /// A security matter.
        Security = 2,
        /// About subnet management.
        SubnetManagement = 3,
        /// For information.
        Informational = 4,
        /// In an InformInfo: every type; in a Notice: none.
        Empty = 0x7f,
    }

    /// What follows the LRH (IBA 7.7.5).
    LinkNextHeader(u8), 2 {
        /// A raw packet without IBA transport.
        Raw = 0,
        /// A raw packet with an IPv6 header.
        RawIpv6 = 1,
        /// IBA transport, within the subnet.
        IbaLocal = 2,
        /// IBA transport behind a GRH.
        IbaGlobal = 3,
    }
}

/// The status of a MAD's answer (IBA 13.4.7): the low bits common to all classes.
pub mod status {
    /// Fine.
    pub const OK: u16 = 0x0000;
    /// Busy; nothing was done.
    pub const BUSY: u16 = 0x0001;
    /// Redirected: another port answers this.
    pub const REDIRECT: u16 = 0x0002;
    /// No such class or version.
    pub const BAD_VERSION: u16 = 0x0004;
    /// No such method.
    pub const BAD_METHOD: u16 = 0x0008;
    /// No such method for this attribute, or no such attribute.
    pub const BAD_METHOD_ATTRIBUTE: u16 = 0x000c;
    /// A value in the attribute or its modifier is not valid.
    pub const BAD_VALUE: u16 = 0x001c;
    /// The direction bit of a directed-route SMP's status field: set on the way back.
    pub const DIRECTION: u16 = 0x8000;
}

/// Opcodes of the BTH (IBA 9.2.1).
pub mod opcode {
    /// Reliable connection, the first packet of a message.
    pub const RC_SEND_FIRST: u8 = 0x00;
    /// Reliable connection, a packet within a message.
    pub const RC_SEND_MIDDLE: u8 = 0x01;
    /// Reliable connection, the last packet of a message.
    pub const RC_SEND_LAST: u8 = 0x02;
    /// Reliable connection, a message of one packet.
    pub const RC_SEND_ONLY: u8 = 0x04;
    /// Reliable connection, an acknowledgement, or the demand to send again.
    pub const RC_ACKNOWLEDGE: u8 = 0x11;
    /// Unreliable datagram, one packet, no immediate data.
    pub const UD_SEND_ONLY: u8 = 0x64;
    /// Congestion notification, which answers a packet with FECN that nothing else answers (IBA A10.3.1).
    pub const CONGESTION_NOTIFICATION: u8 = 0x80;
}

/// Bits of PortInfo's CapabilityMask (IBA 14.2.5.6).
pub mod capability {
    /// A subnet manager runs behind this port.
    pub const IS_SM: u32 = 1 << 1;
    /// The port sends notices.
    pub const IS_NOTICE_SUPPORTED: u32 = 1 << 2;
    /// The port sends traps.
    pub const IS_TRAP_SUPPORTED: u32 = 1 << 3;
    /// The port maps service levels to lanes.
    pub const IS_SL_MAPPING_SUPPORTED: u32 = 1 << 6;
    /// The node has a system image GUID.
    pub const IS_SYSTEM_IMAGE_GUID_SUPPORTED: u32 = 1 << 11;
    /// The port can carry extended link speeds.
    pub const IS_EXTENDED_SPEEDS_SUPPORTED: u32 = 1 << 14;
    /// CapabilityMask2 means something.
    pub const IS_CAPABILITY_MASK2_SUPPORTED: u32 = 1 << 15;
    /// The node answers a vendor's classes.
    pub const IS_VENDOR_CLASS_SUPPORTED: u32 = 1 << 20;
    /// The port says when its capability mask changes.
    pub const IS_CAPABILITY_MASK_NOTICE_SUPPORTED: u32 = 1 << 22;
    /// The port asks its clients to register again when ClientReregister is set.
    pub const IS_CLIENT_REREGISTRATION_SUPPORTED: u32 = 1 << 25;
    /// The port says which other things changed (trap 144).
    pub const IS_OTHER_LOCAL_CHANGES_NOTICE_SUPPORTED: u32 = 1 << 26;
}

/// Bits of PortInfo's CapabilityMask2 (IBA 14.2.5.6).
pub mod capability2 {
    /// NodeDescription can be set.
    pub const IS_SET_NODE_DESCRIPTION_SUPPORTED: u16 = 1 << 0;
    /// There is PortInfoExtended.
    pub const IS_PORT_INFO_EXTENDED_SUPPORTED: u16 = 1 << 1;
    /// The port can be 2x wide.
    pub const IS_LINK_WIDTH_2X_SUPPORTED: u16 = 1 << 4;
    /// The port can run at HDR speed.
    pub const IS_LINK_SPEED_HDR_SUPPORTED: u16 = 1 << 5;
    /// The port can run at NDR speed.
    pub const IS_LINK_SPEED_NDR_SUPPORTED: u16 = 1 << 10;
    /// PortInfo has the second extended speeds.
    pub const IS_EXTENDED_SPEEDS2_SUPPORTED: u16 = 1 << 11;
    /// The port can run at XDR speed.
    pub const IS_LINK_SPEED_XDR_SUPPORTED: u16 = 1 << 12;
}

/// Trap numbers of generic notices (IBA 13.4.9, 14.3.1), and the two that the papers name.
pub mod trap {
    use crate::TrapNumber;

    /// A port came into service.
    pub const GID_IN_SERVICE: TrapNumber = TrapNumber(64);
    /// A port went out of service.
    pub const GID_OUT_OF_SERVICE: TrapNumber = TrapNumber(65);
    /// A multicast group was created.
    pub const MULTICAST_GROUP_CREATED: TrapNumber = TrapNumber(66);
    /// A multicast group was deleted.
    pub const MULTICAST_GROUP_DELETED: TrapNumber = TrapNumber(67);
    /// Paths are no longer valid.
    pub const UNPATH: TrapNumber = TrapNumber(68);
    /// Paths have changed.
    pub const REPATH: TrapNumber = TrapNumber(69);
    /// The state of a port of a switch changed.
    pub const LINK_STATE_CHANGE: TrapNumber = TrapNumber(128);
    /// Local link integrity threshold reached.
    pub const LOCAL_LINK_INTEGRITY: TrapNumber = TrapNumber(129);
    /// Excessive buffer overruns.
    pub const EXCESSIVE_BUFFER_OVERRUN: TrapNumber = TrapNumber(130);
    /// A flow-control watchdog expired.
    pub const FLOW_CONTROL_WATCHDOG: TrapNumber = TrapNumber(131);
    /// Capability mask or other local changes.
    pub const LOCAL_CHANGES: TrapNumber = TrapNumber(144);
    /// The system image GUID changed.
    pub const SYSTEM_IMAGE_GUID_CHANGED: TrapNumber = TrapNumber(145);
    /// A wrong management key.
    pub const BAD_M_KEY: TrapNumber = TrapNumber(256);
    /// A wrong partition key.
    pub const BAD_P_KEY: TrapNumber = TrapNumber(257);
    /// A wrong queue key.
    pub const BAD_Q_KEY: TrapNumber = TrapNumber(258);
    /// A wrong partition key, seen by a switch.
    pub const BAD_P_KEY_AT_SWITCH: TrapNumber = TrapNumber(259);
}
