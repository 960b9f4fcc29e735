//! Data packets whose body travels as its length, and the flow control packets of their lanes (IBA 7.9.4, 9.2, 9.5).
//!
//! A body of traffic is no one's to read, so a cable carries the headers, the length that the LRH states, and the first
//! 16 bytes of the body: the packet's number in its flow, and when it was made. Every length, rate and counter is that
//! of the whole packet. [`DataPacket::to_whole`] gives all of its bytes, for capture files.

use serde::{Deserialize, Serialize};

use crate::{Bth, Deth, Lid, LinkNextHeader, Lrh, PKey, Packet, PacketError, QKey, QpNum, ServiceLevel};
use crate::{VirtualLane, opcode};

layout! {
    /// A link packet: what one end of a lane tells the other of its buffer (IBA 7.9.4). Its CRC is the cable's business.
    #[derive(Serialize, Deserialize)]
    pub struct FlowControl: 4 {
        /// 0 normal, 1 while the link begins.
        0, 4, op: u8;
        /// Blocks of 64 bytes sent on the lane since the link began, modulo 4096.
        4, 12, fctbs: u16;
        /// The lane.
        16, 4, vl: VirtualLane;
        /// Blocks that may have been sent at most, modulo 4096.
        20, 12, fccl: u16;
    }

    /// The acknowledgement header of a reliable connection (IBA 9.5.1).
    #[derive(Serialize, Deserialize)]
    pub struct Aeth: 4 {
        /// What is acknowledged, or why not ([`aeth`]).
        0, 8, syndrome: u8;
        /// Messages completed, modulo 2^24.
        8, 24, msn: u32;
    }
}

/// Syndromes of [`Aeth`] (IBA 9.7.5.2.1).
pub mod aeth {
    /// All packets up to this one have come; no end-to-end credit is counted.
    pub const ACK: u8 = 0x1f;
    /// A packet is missing: send again from the acknowledgement's number on.
    pub const NAK_SEQUENCE_ERROR: u8 = 0x60;
    /// The request cannot be.
    pub const NAK_INVALID_REQUEST: u8 = 0x61;
}

/// Bytes of a body that travel: number and time.
pub const BODY_HEAD_SIZE: usize = 16;

/// The most bytes that [`DataPacket::encode`] gives.
pub const DATA_HEAD_SIZE_MAX: usize = 8 + 12 + 8 + 4 + BODY_HEAD_SIZE;

/// A data packet without its body's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPacket {
    /// The number in the flow, from 0; part of the body.
    pub sequence: u64,
    /// When the packet was made, in nanoseconds of its maker's clock; part of the body.
    pub made_at: u64,
    /// The receiver's queue pair.
    pub dest_qp: QpNum,
    /// The packet's number, of 24 bits.
    pub psn: u32,
    /// The sender's queue pair; only datagrams say it.
    pub src_qp: QpNum,
    /// The queue key; only datagrams have one.
    pub q_key: QKey,
    /// The acknowledgement; only acknowledgements have one.
    pub aeth: Aeth,
    /// Where from.
    pub slid: Lid,
    /// Where to.
    pub dlid: Lid,
    /// The partition.
    pub p_key: PKey,
    /// Bytes of the body, a multiple of 4: 0, or at least [`BODY_HEAD_SIZE`].
    pub payload: u16,
    /// What the packet does ([`opcode`]).
    pub opcode: u8,
    /// The lane of this hop.
    pub vl: VirtualLane,
    /// The service level.
    pub service_level: ServiceLevel,
    /// Forward congestion notification.
    pub fecn: bool,
    /// Backward congestion notification.
    pub becn: bool,
    /// Asks for an acknowledgement.
    pub ack_request: bool,
    /// State of path migration: set while the primary path is in use (IBA 17.2.8.1.1).
    pub migration_request: bool,
}

impl DataPacket {
    /// Bytes of the whole packet, from LRH to VCRC.
    #[inline]
    pub fn size(&self) -> usize {
        8 + 12 + self.extension() + usize::from(self.payload) + 4 + 2
    }

    /// 4-byte words from LRH to ICRC: what the data counters count.
    #[inline]
    pub fn words(&self) -> u32 {
        (self.size() - 2) as u32 / 4
    }

    /// Bytes of the header behind the BTH.
    #[inline]
    fn extension(&self) -> usize {
        match self.opcode {
            opcode::UD_SEND_ONLY => 8,
            opcode::RC_ACKNOWLEDGE => 4,
            _ => 0,
        }
    }

    /// Writes headers and the body's head.
    pub fn encode(&self, to: &mut impl Extend<u8>) {
        let lrh = Lrh {
            vl: self.vl,
            service_level: self.service_level,
            link_next_header: LinkNextHeader::IbaLocal,
            dlid: self.dlid,
            packet_length: self.words() as u16,
            slid: self.slid,
            ..Lrh::default()
        };
        let bth = Bth {
            opcode: self.opcode,
            migration_request: self.migration_request,
            p_key: self.p_key,
            fecn: self.fecn,
            becn: self.becn,
            dest_qp: self.dest_qp,
            ack_request: self.ack_request,
            psn: self.psn & 0xff_ffff,
            ..Bth::default()
        };
        to.extend(lrh.encode());
        to.extend(bth.encode());
        match self.opcode {
            opcode::UD_SEND_ONLY => {
                to.extend(Deth { q_key: self.q_key, src_qp: self.src_qp, ..Deth::default() }.encode());
            }
            opcode::RC_ACKNOWLEDGE => to.extend(self.aeth.encode()),
            _ => {}
        }
        if self.payload > 0 {
            to.extend(self.sequence.to_be_bytes());
            to.extend(self.made_at.to_be_bytes());
        }
    }

    /// Reads what [`DataPacket::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, PacketError> {
        let wrong = PacketError::Size(bytes.len());
        let (lrh, rest) = bytes.split_first_chunk().ok_or(wrong)?;
        let (bth, rest) = rest.split_first_chunk().ok_or(wrong)?;
        let (lrh, bth) = (Lrh::decode(lrh), Bth::decode(bth));
        if lrh.link_version != 0 {
            return Err(PacketError::Version(lrh.link_version));
        }
        let mut packet = Self {
            opcode: bth.opcode,
            dest_qp: bth.dest_qp,
            psn: bth.psn,
            slid: lrh.slid,
            dlid: lrh.dlid,
            p_key: bth.p_key,
            vl: lrh.vl,
            service_level: lrh.service_level,
            fecn: bth.fecn,
            becn: bth.becn,
            ack_request: bth.ack_request,
            migration_request: bth.migration_request,
            ..Self::default()
        };
        let rest = packet.decode_extension(rest).ok_or(wrong)?;
        let headers = packet.size() - 2;
        let stated = usize::from(lrh.packet_length) * 4;
        let length = PacketError::Length { stated, found: headers + rest.len() };
        packet.payload = stated.checked_sub(headers).ok_or(length)? as u16;
        match rest {
            [] if packet.payload == 0 => {}
            _ if usize::from(packet.payload) < BODY_HEAD_SIZE || rest.len() != BODY_HEAD_SIZE => {
                return Err(length);
            }
            _ => {
                let (sequence, made_at) = rest.split_first_chunk().ok_or(length)?;
                packet.sequence = u64::from_be_bytes(*sequence);
                packet.made_at = u64::from_be_bytes(made_at.try_into().map_err(|_| length)?);
            }
        }
        Ok(packet)
    }

    /// Reads the header behind the BTH and gives what is behind it.
    fn decode_extension<'a>(&mut self, rest: &'a [u8]) -> Option<&'a [u8]> {
        match self.opcode {
            opcode::UD_SEND_ONLY => {
                let (deth, rest) = rest.split_first_chunk()?;
                let deth = Deth::decode(deth);
                (self.q_key, self.src_qp) = (deth.q_key, deth.src_qp);
                Some(rest)
            }
            opcode::RC_ACKNOWLEDGE => {
                let (aeth, rest) = rest.split_first_chunk()?;
                self.aeth = Aeth::decode(aeth);
                Some(rest)
            }
            _ => Some(rest),
        }
    }

    /// All bytes of the packet, with zeros for the body's bytes that no one made, and right checks.
    pub fn to_whole(&self) -> Packet {
        let mut bytes = Vec::with_capacity(self.size());
        self.encode(&mut bytes);
        bytes.resize(self.size(), 0);
        Packet::sealed(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<DataPacket> {
        let packet = DataPacket {
            sequence: 0x0102_0304_0506_0708,
            made_at: 99,
            dest_qp: QpNum(0x12_3456),
            psn: 0xab_cdef,
            slid: Lid(3),
            dlid: Lid(4),
            p_key: PKey(0xffff),
            payload: 2048,
            opcode: opcode::RC_SEND_ONLY,
            vl: VirtualLane(2),
            service_level: ServiceLevel(5),
            fecn: true,
            ack_request: true,
            ..DataPacket::default()
        };
        let datagram = DataPacket {
            opcode: opcode::UD_SEND_ONLY,
            q_key: QKey(0x1111_2222),
            src_qp: QpNum(7),
            payload: 16,
            ..packet
        };
        let aeth = Aeth { syndrome: aeth::ACK, msn: 77 };
        let opcode = opcode::RC_ACKNOWLEDGE;
        let (sequence, made_at) = (0, 0);
        let acknowledgement =
            DataPacket { opcode, aeth, payload: 0, becn: true, sequence, made_at, ..packet };
        vec![packet, datagram, acknowledgement]
    }

    #[test]
    fn a_data_packet_header_round_trips() {
        for packet in examples() {
            let mut bytes = Vec::new();
            packet.encode(&mut bytes);
            assert!(bytes.len() <= DATA_HEAD_SIZE_MAX);
            assert_eq!(DataPacket::decode(&bytes), Ok(packet));
            for end in 0..bytes.len() {
                assert!(DataPacket::decode(&bytes[..end]).is_err(), "{end} of {} bytes", bytes.len());
            }
        }
    }

    #[test]
    fn the_whole_packet_is_one() {
        for packet in examples() {
            let whole = packet.to_whole();
            assert_eq!(whole.bytes().len(), packet.size());
            assert_eq!(whole.words(), packet.words());
            let parsed = Packet::parse(whole.into_bytes()).unwrap();
            assert!(parsed.check_icrc().is_ok());
            assert_eq!((parsed.vl(), parsed.dlid()), (packet.vl, packet.dlid));
            assert_eq!(parsed.bth().unwrap().psn, packet.psn);
        }
    }

    #[test]
    fn a_flow_control_packet_has_the_bits_of_the_architecture() {
        let packet = FlowControl { op: 1, fctbs: 0xabc, vl: VirtualLane(0xd), fccl: 0x123 };
        assert_eq!(packet.encode(), [0x1a, 0xbc, 0xd1, 0x23]);
    }
}
