//! Capture files as Wireshark reads them: pcap with link type ERF, records of ERF type InfiniBand.
//!
//! Of the formats that Wireshark has for InfiniBand, this is the one that it dissects from the LRH on: an Extensible
//! Record Format header in front of each packet (Endace, "ERF types reference"), and pcap's record around both.
//!
//! ```text
//!   file header 24 │ record header 16 │ ERF header 16 │ [extension header 8] │ LRH … VCRC │ record header …
//! ```

use crate::{Guid, PortNum};

/// pcap's link type for ERF.
pub const LINK_TYPE: u32 = 197;

/// ERF's record type for an InfiniBand packet.
pub const TYPE_INFINIBAND: u8 = 21;

/// ERF's extension header that names host and source.
pub const EXTENSION_HOST_ID: u8 = 17;

/// The magic number of a pcap file with nanoseconds, in the order of bytes it was written in.
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;

/// What a reader must be prepared for: the longest packet of any kind with its headers.
const SNAP_LENGTH: u32 = 65_535;

const MORE_HEADERS: u8 = 0x80;
const FLAG_SENT: u8 = 0x01;
const FLAG_VARYING_LENGTH: u8 = 0x04;
const FLAG_RX_ERROR: u8 = 0x10;

const ERF_HEADER_BYTES: usize = 16;
const EXTENSION_BYTES: usize = 8;

/// What a file begins with.
pub fn file_header() -> [u8; 24] {
    let mut header = [0; 24];
    header[0..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
    header[4..6].copy_from_slice(&2u16.to_le_bytes());
    header[6..8].copy_from_slice(&4u16.to_le_bytes());
    // Time zone and accuracy stay zero, as everybody leaves them.
    header[16..20].copy_from_slice(&SNAP_LENGTH.to_le_bytes());
    header[20..24].copy_from_slice(&LINK_TYPE.to_le_bytes());
    header
}

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970-01-01, UTC.
    pub time_ns: u64,
    /// The port sent the packet; otherwise it received it. Stands in the record as capture interface 1 or 0.
    pub sent: bool,
    /// The port found the packet damaged.
    pub damaged: bool,
    /// Packets lost since the record before; what is more than 65535 stands there as 65535.
    pub lost: u32,
    /// The port, where a file holds those of several: an extension header with the lower 48 bits of the node's GUID
    /// as host and the port as source.
    pub port: Option<(Guid, PortNum)>,
    /// The packet from LRH to VCRC.
    pub packet: &'a [u8],
}

impl Record<'_> {
    /// How many bytes [`Record::encode_into`] appends.
    pub fn encoded_bytes(&self) -> usize {
        16 + self.record_bytes()
    }

    /// ERF's own length: its headers and the packet.
    fn record_bytes(&self) -> usize {
        ERF_HEADER_BYTES + if self.port.is_some() { EXTENSION_BYTES } else { 0 } + self.packet.len()
    }

    /// Appends the record with pcap's header to a file.
    ///
    /// # Panics
    /// When the packet is longer than [`crate::PACKET_SIZE_MAX`] several times over: lengths have 16 bits.
    pub fn encode_into(&self, file: &mut Vec<u8>) {
        let bytes = self.record_bytes();
        let length = u16::try_from(bytes).expect("a packet is shorter than 64 KiB");
        let (seconds, nanoseconds) = (self.time_ns / 1_000_000_000, self.time_ns % 1_000_000_000);
        for word in [seconds as u32, nanoseconds as u32, u32::from(length), u32::from(length)] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        // 32 bits of seconds and 32 bits of their fraction, the one number in this header that is little-endian.
        // Rounded up, so that whoever rounds down comes back to the same nanosecond.
        let fraction = (nanoseconds << 32).div_ceil(1_000_000_000);
        file.extend_from_slice(&(seconds << 32 | fraction).to_le_bytes());
        let more = if self.port.is_some() { MORE_HEADERS } else { 0 };
        let sent = if self.sent { FLAG_SENT } else { 0 };
        let damaged = if self.damaged { FLAG_RX_ERROR } else { 0 };
        file.extend_from_slice(&[TYPE_INFINIBAND | more, FLAG_VARYING_LENGTH | sent | damaged]);
        file.extend_from_slice(&length.to_be_bytes());
        file.extend_from_slice(&u16::try_from(self.lost).unwrap_or(u16::MAX).to_be_bytes());
        file.extend_from_slice(&(self.packet.len() as u16).to_be_bytes());
        if let Some((node, port)) = self.port {
            let host = node.0.to_be_bytes();
            file.extend_from_slice(&[EXTENSION_HOST_ID, port.0]);
            file.extend_from_slice(&host[2..]);
        }
        file.extend_from_slice(self.packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_where_the_format_says() {
        let packet = [0xab; 290];
        let record = Record {
            time_ns: 3_500_000_001,
            sent: true,
            damaged: false,
            lost: 70_000,
            port: None,
            packet: &packet,
        };
        let mut file = Vec::new();
        record.encode_into(&mut file);
        assert_eq!(file.len(), record.encoded_bytes());
        assert_eq!(file[0..8], [3, 0, 0, 0, 0x01, 0x65, 0xcd, 0x1d]);
        assert_eq!(file[8..16], [0x32, 1, 0, 0, 0x32, 1, 0, 0]);
        assert_eq!(file[16..24], [5, 0, 0, 0x80, 3, 0, 0, 0]);
        assert_eq!(file[24..32], [21, 5, 0x01, 0x32, 0xff, 0xff, 0x01, 0x22]);
        assert_eq!(file[32..], packet);
    }

    #[test]
    fn a_port_is_named_by_an_extension_header() {
        let port = Some((Guid(0x0008_f105_0020_0b50), PortNum(7)));
        let record = Record { time_ns: 0, sent: false, damaged: true, lost: 0, port, packet: &[1, 2] };
        let mut file = Vec::new();
        record.encode_into(&mut file);
        assert_eq!(file.len(), record.encoded_bytes());
        assert_eq!(file[24..32], [21 | 0x80, 0x14, 0, 26, 0, 0, 0, 2]);
        assert_eq!(file[32..40], [17, 7, 0xf1, 0x05, 0x00, 0x20, 0x0b, 0x50]);
        assert_eq!(file[40..], [1, 2]);
    }
}
