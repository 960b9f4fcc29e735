//! Subscriptions to events.

use super::Parts::Rows;
use super::record;
use crate::{Gid, Lid, NoticeType, QpNum, TrapNumber};

layout! {
    /// What traps somebody wants to hear of (IBA 13.4.8.3).
    pub struct InformInfo: 36 {
        /// About this port; zero is about those in the range of LIDs.
        0, 128, gid: Gid;
        /// From this LID; 0xFFFF is from all.
        128, 16, lid_range_begin: Lid;
        /// To this LID.
        144, 16, lid_range_end: Lid;
        /// Reserved.
        160, 16, reserved_160: u16;
        /// 1: generic traps. 0: a vendor's own.
        176, 8, is_generic: u8;
        /// 1: from now on. 0: no more.
        184, 8, subscribe: u8;
        /// Of this type; 0xFFFF is of all.
        192, 16, notice_type: u16;
        /// This trap, or this device's; 0xFFFF is all.
        208, 16, trap_number: TrapNumber;
        /// The subscriber's queue pair.
        224, 24, qpn: QpNum;
        /// Reserved.
        248, 3, reserved_248: u8;
        /// How long the subscriber takes to answer: 4.096 µs times 2 to this power.
        251, 5, resp_time_value: u8;
        /// Reserved.
        256, 8, reserved_256: u8;
        /// From this kind of node, or from this vendor's; 0xFFFFFF is from all.
        264, 24, producer_type: u32;
    }
}

impl InformInfo {
    /// Every LID, type or trap number.
    pub const ALL: u16 = 0xffff;
    /// Every kind of node.
    pub const ALL_PRODUCERS: u32 = 0xff_ffff;

    /// Whether it is about notices of this type.
    pub fn wants_type(&self, notice_type: NoticeType) -> bool {
        self.notice_type == Self::ALL || self.notice_type == u16::from(notice_type.code())
    }
}

layout! {
    /// A subscription (IBA 15.2.5.9).
    pub struct InformInfoRecord: 60 {
        /// The subscriber.
        0, 128, subscriber_gid: Gid;
        /// The subscriber's how manieth.
        128, 16, enumeration: u16;
        /// Reserved.
        144, 48, reserved_144: u64;
        /// What of.
        192, 288, inform_info: InformInfo;
    }
}
record!(InformInfoRecord: INFORM_INFO_RECORD, 16, inform_info: Rows(InformInfo::TABLE));
