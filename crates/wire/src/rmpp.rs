//! The header by which messages longer than one MAD are carried (IBA 13.6.2).

use crate::{MAD_SIZE, Mad, MgmtClass};

/// Where the RMPP header stands in a MAD of a class that has one.
pub const RMPP_AT: usize = 24;
/// Where it ends. PayloadLength counts from here, class headers included, for every segment again.
pub const RMPP_END: usize = RMPP_AT + RmppHeader::SIZE;
/// What of a MAD PayloadLength can count.
pub const RMPP_PAYLOAD: usize = MAD_SIZE - RMPP_END;
/// The only version there is.
pub const RMPP_VERSION: u8 = 1;

codes! {
    /// What an RMPP packet is (IBA 13.6.2.1).
    RmppType(u8), 8 {
        /// A segment of the message.
        Data = 1,
        /// Segments have arrived, more may be sent.
        Ack = 2,
        /// The receiver or sender ends the transfer for want of resources or time.
        Stop = 3,
        /// The transfer ends because of an error.
        Abort = 4,
    }
}

layout! {
    /// The RMPP header (IBA 13.6.2.1).
    pub struct RmppHeader: 12 {
        /// 1, or 0 where RMPP is not in use.
        0, 8, version: u8;
        /// Which of the four packets it is.
        8, 8, kind: RmppType;
        /// How long the sender of this packet takes to answer, 4.096 µs × 2^n; 31: not said.
        16, 5, resp_time: u8;
        /// The last segment (Data).
        21, 1, last: bool;
        /// The first segment (Data).
        22, 1, first: bool;
        /// Whether the MAD is part of an RMPP transfer.
        23, 1, active: bool;
        /// Why the transfer ends (Stop, Abort).
        24, 8, status: u8;
        /// Data: the segment's number, from 1. Ack: the last that arrived in order.
        32, 32, segment: u32;
        /// Data: PayloadLength, of the whole message in the first segment, of its own in the last. Ack: the last
        /// segment that may be sent (NewWindowLast).
        64, 32, length: u32;
    }
}

/// The status of a Stop or Abort (IBA 13.6.2.1).
pub mod rmpp_status {
    /// Nothing is wrong.
    pub const NORMAL: u8 = 0;
    /// Stop: not enough memory or slots.
    pub const RESOURCES: u8 = 1;
    /// Stop: it has taken too long altogether.
    pub const TOTAL_TIME: u8 = 118;
    /// The last segment's PayloadLength and the first's do not agree.
    pub const BAD_LENGTH: u8 = 119;
    /// Segment number and first or last flag do not agree.
    pub const BAD_SEGMENT: u8 = 120;
    /// No such packet type, or not now.
    pub const BAD_TYPE: u8 = 121;
    /// NewWindowLast is below the segment acknowledged.
    pub const WINDOW_TOO_SMALL: u8 = 122;
    /// A segment is acknowledged that was not sent.
    pub const SEGMENT_TOO_BIG: u8 = 123;
    /// The status is none that such a packet may have.
    pub const BAD_STATUS: u8 = 124;
    /// The version is not 1.
    pub const BAD_VERSION: u8 = 125;
    /// It was sent again too often.
    pub const RETRIES: u8 = 126;
    /// Something else.
    pub const UNSPECIFIED: u8 = 127;
}

impl MgmtClass {
    /// Whether MADs of the class have an RMPP header: subnet administration, the device classes, and the vendor
    /// classes that name their vendor (IBA 13.6.1).
    pub const fn has_rmpp(self) -> bool {
        matches!(self, Self::SubnAdm | Self::DevMgmt | Self::DevAdm | Self::Bis) || self.has_oui()
    }

    /// Where the data of a MAD begins, after the headers that each segment repeats.
    pub const fn data_offset(self) -> usize {
        match self {
            Self::SubnAdm => 56,
            Self::DevMgmt | Self::DevAdm | Self::Bis => 64,
            _ if self.has_oui() => 40,
            _ => 24,
        }
    }
}

impl Mad {
    /// The RMPP header; of a class without one, what stands in its place.
    pub fn rmpp(&self) -> RmppHeader {
        RmppHeader::decode(self.0[RMPP_AT..RMPP_END].first_chunk().expect("the range has 12 bytes"))
    }

    /// Writes the RMPP header and leaves the rest as it is.
    pub fn set_rmpp(&mut self, header: &RmppHeader) {
        self.0[RMPP_AT..RMPP_END].copy_from_slice(&header.encode());
    }

    /// Whether it is part of an RMPP transfer.
    pub fn is_rmpp_active(&self) -> bool {
        self.class().has_rmpp() && self.rmpp().active
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden() {
        let header = RmppHeader {
            version: 1,
            kind: RmppType::Data,
            resp_time: 31,
            last: true,
            first: true,
            active: true,
            status: 0,
            segment: 1,
            length: 84,
        };
        let bytes = [1, 1, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 84];
        assert_eq!(header.encode(), bytes);
        assert_eq!(RmppHeader::decode(&bytes), header);
        let first = RmppHeader { last: false, resp_time: 0, ..header };
        assert_eq!(first.encode()[2], 3, "active is bit 0, first bit 1, last bit 2");
    }

    #[test]
    fn only_some_classes_have_one() {
        let mut mad = Mad::default();
        mad.set_rmpp(&RmppHeader { active: true, ..RmppHeader::default() });
        for (class, offset) in [(0x03, 56), (0x06, 64), (0x30, 40), (0x4f, 40), (0x10, 64), (0x12, 64)] {
            mad.0[1] = class;
            assert!(mad.is_rmpp_active(), "{class:#x}");
            assert_eq!(mad.class().data_offset(), offset, "{class:#x}");
        }
        for class in [0x00, 0x01, 0x04, 0x05, 0x07, 0x09, 0x21, 0x2f, 0x50, 0x81] {
            mad.0[1] = class;
            assert!(!mad.is_rmpp_active(), "{class:#x}");
        }
    }
}
