//! Notices: what traps and reports carry (IBA 13.4.8.2), with the details of each generic trap (IBA 13.4.9, 14.3.1).

use crate::{
    AttributeId, Gid, Lid, MKey, Method, NodeType, NoticeType, PKey, PortNum, QpNum, ServiceLevel,
    TrapNumber, trap,
};

layout! {
    /// A generic notice (IBA 13.4.8.2). An SMP carries its first 64 bytes; the issuer's GID is for SA reports.
    pub struct Notice: 80 {
        /// Generic, as opposed to a vendor's own.
        0, 1, is_generic: bool;
        /// How serious it is.
        1, 7, notice_type: NoticeType;
        /// What kind of node sends it (generic).
        8, 24, producer_type: u32;
        /// Which trap (generic).
        32, 16, trap_number: TrapNumber;
        /// The sender's LID.
        48, 16, issuer_lid: Lid;
        /// Flips with each new notice.
        64, 1, notice_toggle: bool;
        /// How many have been sent.
        65, 15, notice_count: u16;
        /// What depends on the trap: [`Details`].
        80, 432, data_details: [u8; 54];
        /// The sender's GID.
        512, 128, issuer_gid: Gid;
    }
}

impl Notice {
    /// A generic notice from a node of type `producer` at `issuer`.
    pub fn generic(producer: NodeType, issuer: Lid, details: &Details) -> Self {
        Self {
            is_generic: true,
            notice_type: details.notice_type(),
            producer_type: u32::from(producer.code()),
            trap_number: details.trap_number(),
            issuer_lid: issuer,
            data_details: details.encode(),
            ..Self::default()
        }
    }

    /// From the 64 bytes that an SMP has for it.
    pub fn from_smp_data(data: &[u8; 64]) -> Self {
        let mut bytes = [0; Self::SIZE];
        bytes[..64].copy_from_slice(data);
        Self::decode(&bytes)
    }

    /// The 64 bytes that an SMP has for it.
    pub fn to_smp_data(&self) -> [u8; 64] {
        *self.encode().first_chunk().expect("a notice is longer than 64 bytes")
    }

    /// The details, read as the trap number says.
    pub fn details(&self) -> Details {
        Details::decode(self.trap_number, &self.data_details)
    }
}

macro_rules! details {
    ($( $(#[$meta:meta])* $variant:ident($body:ident), [$($number:path),+]; )*) => {
        /// The details of a notice, one variant for each layout of the 54 bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Details {
            $( $(#[$meta])* $variant(TrapNumber, $body), )*
            /// A trap whose details have no layout here, kept as they came.
            Other(TrapNumber, [u8; 54]),
        }

        impl Details {
            /// Reads the 54 bytes as `trap_number` says.
            pub fn decode(trap_number: TrapNumber, bytes: &[u8; 54]) -> Self {
                $( if [$($number),+].contains(&trap_number) {
                    return Self::$variant(trap_number, $body::decode(bytes));
                } )*
                Self::Other(trap_number, *bytes)
            }

            /// Writes the 54 bytes.
            pub fn encode(&self) -> [u8; 54] {
                match self {
                    $( Self::$variant(_, body) => body.encode(), )*
                    Self::Other(_, bytes) => *bytes,
                }
            }

            /// Which trap it is.
            pub fn trap_number(&self) -> TrapNumber {
                match self {
                    $( Self::$variant(number, _) => *number, )*
                    Self::Other(number, _) => *number,
                }
            }
        }
    };
}

details! {
    /// 64 to 67: a port or a multicast group came or went.
    Gid(GidDetails), [
        trap::GID_IN_SERVICE, trap::GID_OUT_OF_SERVICE,
        trap::MULTICAST_GROUP_CREATED, trap::MULTICAST_GROUP_DELETED
    ];
    /// 68 and 69: paths are to be asked for again, or used differently.
    Repath(RepathDetails), [trap::UNPATH, trap::REPATH];
    /// 128: the state of one of a switch's ports changed.
    Switch(SwitchDetails), [trap::LINK_STATE_CHANGE];
    /// 129 to 131: a port counts errors.
    Port(PortDetails), [
        trap::LOCAL_LINK_INTEGRITY, trap::EXCESSIVE_BUFFER_OVERRUN, trap::FLOW_CONTROL_WATCHDOG
    ];
    /// 144: capability mask or other local changes.
    LocalChanges(LocalChangesDetails), [trap::LOCAL_CHANGES];
    /// 145: a new system image GUID.
    SystemImageGuid(SystemImageGuidDetails), [trap::SYSTEM_IMAGE_GUID_CHANGED];
    /// 256: a wrong management key.
    MKey(MKeyDetails), [trap::BAD_M_KEY];
    /// 257 and 258: a wrong partition or queue key.
    Key(KeyDetails), [trap::BAD_P_KEY, trap::BAD_Q_KEY];
    /// 259: a wrong partition key, seen by a switch.
    SwitchKey(SwitchKeyDetails), [trap::BAD_P_KEY_AT_SWITCH];
}

impl Details {
    /// The type that the architecture gives this trap.
    fn notice_type(&self) -> NoticeType {
        match self {
            Self::Gid(..) | Self::Repath(..) | Self::Other(..) => NoticeType::SubnetManagement,
            Self::Switch(..) | Self::Port(..) => NoticeType::Urgent,
            Self::LocalChanges(..) | Self::SystemImageGuid(..) => NoticeType::Informational,
            Self::MKey(..) | Self::Key(..) | Self::SwitchKey(..) => NoticeType::Security,
        }
    }

    /// Trap 128: a port of the switch at `lid` changed its state.
    pub fn link_state_change(lid: Lid) -> Self {
        Self::Switch(trap::LINK_STATE_CHANGE, SwitchDetails { lid, ..SwitchDetails::default() })
    }

    /// Trap 144: the capability mask of the port at `lid` is now `capability_mask`.
    pub fn capability_change(lid: Lid, capability_mask: u32) -> Self {
        let details = LocalChangesDetails { lid, capability_mask, ..LocalChangesDetails::default() };
        Self::LocalChanges(trap::LOCAL_CHANGES, details)
    }
}

layout! {
    /// Details of traps 64 to 67.
    pub struct GidDetails: 54 {
        /// Reserved.
        0, 48, reserved_0: [u8; 6];
        /// Who came or went.
        48, 128, gid: Gid;
        /// Reserved.
        176, 256, reserved_176: [u8; 32];
    }

    /// Details of traps 68 (unpath) and 69 (repath). The architecture names the two and leaves their details open; this
    /// is weft's layout, one for all their uses: [`RepathKind`] says which of the fields mean something.
    pub struct RepathDetails: 54 {
        /// What the notice is for.
        0, 8, kind: RepathKind;
        /// The service level to use from now on; with unpath, the one that is to be left.
        8, 4, service_level: ServiceLevel;
        /// Reserved.
        12, 4, reserved_12: u8;
        /// The destination that the notice is about; the destination of the path, the hot spot, or the new LID.
        16, 16, dlid: Lid;
        /// The source of the path, or the old LID.
        32, 16, slid: Lid;
        /// To a manager: the port to notify, 0 for all that have subscribed. In a Report: 0.
        48, 16, target: Lid;
        /// The GUID that has a new LID, or whose ways are others.
        64, 64, guid: crate::Guid;
        /// For how many seconds at most queue pairs are held.
        128, 16, hold_s: u16;
        /// Reserved.
        144, 288, reserved_144: [u8; 36];
    }
}

/// What a repath or unpath notice is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepathKind(pub u8);

impl RepathKind {
    /// Ask for every path again; with unpath: no destination is a hot spot any more.
    pub const WILDCARD: Self = Self(0);
    /// One path, from `slid` to `dlid`, has the service level that is given.
    pub const PATH: Self = Self(1);
    /// `dlid` is a hot spot: what goes there takes the service level that is given; with unpath, the path record's again.
    pub const HOT_SPOT: Self = Self(2);
    /// `guid` has moved from LID `slid` to `dlid`.
    pub const NEW_LID: Self = Self(3);
    /// Ways from and to `guid`, which has the LID `dlid`, carry another rate or MTU: ask for them again.
    pub const RATE: Self = Self(4);
    /// Ways from and to `guid`, which has the LID `dlid`, are about to have other service levels: queue pairs to it are held until
    /// [`LEVELS`](Self::LEVELS) has come and its path record is known again, or for `hold_s` seconds.
    pub const HOLD: Self = Self(5);
    /// They have: ask for them again. Queue pairs that are held go on with the answer.
    pub const LEVELS: Self = Self(6);
}

impl crate::Bits for RepathKind {
    const BITS: usize = 8;
    fn from_bits(bits: u64) -> Self {
        Self(bits as u8)
    }
    fn to_bits(self) -> u64 {
        u64::from(self.0)
    }
}

layout! {
    /// Details of trap 128.
    pub struct SwitchDetails: 54 {
        /// The switch.
        0, 16, lid: Lid;
        /// Reserved.
        16, 416, reserved_16: [u8; 52];
    }

    /// Details of traps 129 to 131.
    pub struct PortDetails: 54 {
        /// Reserved.
        0, 16, reserved_0: u16;
        /// The node.
        16, 16, lid: Lid;
        /// The port.
        32, 8, port_num: PortNum;
        /// Reserved.
        40, 392, reserved_40: [u8; 49];
    }

    /// Details of trap 144.
    pub struct LocalChangesDetails: 54 {
        /// Reserved.
        0, 16, reserved_0: u16;
        /// The port that changed.
        16, 16, lid: Lid;
        /// Reserved.
        32, 15, reserved_32: u16;
        /// More than the capability mask changed; the flags say what.
        47, 1, other_local_changes: bool;
        /// The capability mask.
        48, 32, capability_mask: u32;
        /// Reserved.
        80, 13, reserved_80: u16;
        /// LinkSpeedEnabled changed.
        93, 1, link_speed_enabled_change: bool;
        /// LinkWidthEnabled changed.
        94, 1, link_width_enabled_change: bool;
        /// The NodeDescription changed.
        95, 1, node_description_change: bool;
        /// Second capability mask.
        96, 16, capability_mask2: u16;
        /// Reserved.
        112, 320, reserved_112: [u8; 40];
    }

    /// Details of trap 145.
    pub struct SystemImageGuidDetails: 54 {
        /// Reserved.
        0, 16, reserved_0: u16;
        /// The port that changed.
        16, 16, lid: Lid;
        /// Reserved.
        32, 16, reserved_32: u16;
        /// The new GUID.
        48, 64, system_image_guid: crate::Guid;
        /// Reserved.
        112, 320, reserved_112: [u8; 40];
    }

    /// Details of trap 256.
    pub struct MKeyDetails: 54 {
        /// Reserved.
        0, 16, reserved_0: u16;
        /// Who asked.
        16, 16, lid: Lid;
        /// The DrSLID of what was asked along a directed route.
        32, 16, dr_slid: Lid;
        /// With which method.
        48, 8, method: Method;
        /// Reserved.
        56, 8, reserved_56: u8;
        /// For which attribute.
        64, 16, attribute_id: AttributeId;
        /// For which part.
        80, 32, attribute_modifier: u32;
        /// With which key.
        112, 64, m_key: MKey;
        /// Reserved.
        176, 8, reserved_176: u8;
        /// The request came along a directed route.
        184, 1, dr_notice: bool;
        /// The return path did not fit.
        185, 1, dr_path_truncated: bool;
        /// How many hops the route had.
        186, 6, dr_hop_count: u8;
        /// The route back.
        192, 240, dr_return_path: [PortNum; 30];
    }

    /// Details of traps 257 and 258.
    pub struct KeyDetails: 54 {
        /// Reserved.
        0, 16, reserved_0: u16;
        /// The sender.
        16, 16, lid1: Lid;
        /// The receiver.
        32, 16, lid2: Lid;
        /// The key.
        48, 32, key: u32;
        /// The packet's service level.
        80, 4, service_level: ServiceLevel;
        /// Reserved.
        84, 4, reserved_84: u8;
        /// The sender's queue pair.
        88, 24, qp1: QpNum;
        /// Reserved.
        112, 8, reserved_112: u8;
        /// The receiver's queue pair.
        120, 24, qp2: QpNum;
        /// The sender's GID.
        144, 128, gid1: Gid;
        /// The receiver's GID.
        272, 128, gid2: Gid;
        /// Reserved.
        400, 32, reserved_400: u32;
    }

    /// Details of trap 259.
    pub struct SwitchKeyDetails: 54 {
        /// Which of the fields below are known.
        0, 16, data_valid: u16;
        /// The sender.
        16, 16, lid1: Lid;
        /// The receiver.
        32, 16, lid2: Lid;
        /// The key.
        48, 16, p_key: PKey;
        /// The packet's service level.
        64, 4, service_level: ServiceLevel;
        /// Reserved.
        68, 4, reserved_68: u8;
        /// The sender's queue pair.
        72, 24, qp1: QpNum;
        /// Reserved.
        96, 8, reserved_96: u8;
        /// The receiver's queue pair.
        104, 24, qp2: QpNum;
        /// The sender's GID.
        128, 128, gid1: Gid;
        /// The receiver's GID.
        256, 128, gid2: Gid;
        /// The switch.
        384, 16, switch_lid: Lid;
        /// Its port.
        400, 8, port_num: PortNum;
        /// Reserved.
        408, 24, reserved_408: u32;
    }
}
