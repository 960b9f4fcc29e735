//! Packets as they cross a cable: LRH, BTH, DETH, payload, ICRC, VCRC (IBA 5.2, 7.7, 9.2, 9.6).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::crc::{icrc, vcrc};
use crate::{
    Lid, LinkNextHeader, MAD_SIZE, Mad, MgmtClass, PKey, QKey, QpNum, SaMad, ServiceLevel, SmKey,
    VirtualLane, opcode,
};

layout! {
    /// The local route header (IBA 7.7).
    pub struct Lrh: 8 {
        /// The lane of this hop.
        0, 4, vl: VirtualLane;
        /// The link version: 0.
        4, 4, link_version: u8;
        /// The service level, the same on every hop.
        8, 4, service_level: ServiceLevel;
        /// Two of the seven reserved bits.
        12, 2, reserved_12: u8;
        /// What follows.
        14, 2, link_next_header: LinkNextHeader;
        /// Where to.
        16, 16, dlid: Lid;
        /// Five of the seven reserved bits.
        32, 5, reserved_32: u8;
        /// 4-byte words from the LRH to before the VCRC.
        37, 11, packet_length: u16;
        /// Where from.
        48, 16, slid: Lid;
    }

    /// The base transport header (IBA 9.2).
    pub struct Bth: 12 {
        /// What the packet does.
        0, 8, opcode: u8;
        /// Tells the receiver's program.
        8, 1, solicited_event: bool;
        /// State of path migration.
        9, 1, migration_request: bool;
        /// Padding bytes behind the payload.
        10, 2, pad_count: u8;
        /// Transport version: 0.
        12, 4, transport_version: u8;
        /// The partition.
        16, 16, p_key: PKey;
        /// Forward congestion notification.
        32, 1, fecn: bool;
        /// Backward congestion notification.
        33, 1, becn: bool;
        /// Reserved; like the two bits before it not covered by the ICRC.
        34, 6, reserved_34: u8;
        /// The receiver's queue pair.
        40, 24, dest_qp: QpNum;
        /// Asks for an acknowledgement.
        64, 1, ack_request: bool;
        /// Reserved.
        65, 7, reserved_65: u8;
        /// The packet's number.
        72, 24, psn: u32;
    }

    /// The datagram header (IBA 9.3.1).
    pub struct Deth: 8 {
        /// Checked by the receiver.
        0, 32, q_key: QKey;
        /// Reserved.
        32, 8, reserved_32: u8;
        /// The sender's queue pair.
        40, 24, src_qp: QpNum;
    }
}

/// Bytes of a packet that carries a MAD: 8 + 12 + 8 + 256 + 4 + 2.
pub const MAD_PACKET_SIZE: usize = 290;

/// The longest packet: 11 bits of 4-byte words, and the VCRC.
pub const PACKET_SIZE_MAX: usize = 2047 * 4 + 2;

/// The shortest packet: LRH, BTH, ICRC, VCRC.
pub const PACKET_SIZE_MIN: usize = 8 + 12 + 4 + 2;

const BTH_AT: usize = 8;
const GRH_SIZE: usize = 40;
const DETH_AT: usize = 20;
const MAD_AT: usize = 28;
const ICRC_AT: usize = MAD_AT + MAD_SIZE;

crate::worded! {
    /// Why bytes are not a packet (IBA 7.8, packet checks of the receiving port).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[non_exhaustive]
    pub enum PacketError {
        /// Fewer or more bytes than any packet has.
        Size(n: usize) => ("{n} bytes are no packet"),
        /// The LRH's length is not that of the bytes.
        Length {
            /// What the LRH says, in bytes.
            stated: usize,
            /// What there is.
            found: usize,
        } => ("the LRH states {stated} bytes, there are {found}"),
        /// A link version other than 0.
        Version(v: u8) => ("link version {v} is not known"),
        /// The VCRC is wrong.
        Vcrc => ("wrong VCRC"),
        /// The ICRC is wrong.
        Icrc => ("wrong ICRC"),
    }
}

impl PacketError {
    /// Whether the packet was damaged on its way, as a wrong checksum says; otherwise it was sent malformed. The two
    /// have counters of their own (IBA 16.1.4.1).
    pub const fn is_physical(&self) -> bool {
        matches!(self, Self::Vcrc | Self::Icrc)
    }
}

impl std::error::Error for PacketError {}

/// The addresses of a packet that carries a MAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadRoute {
    /// The lane of the first hop.
    pub vl: VirtualLane,
    /// The service level.
    pub service_level: ServiceLevel,
    /// Where to.
    pub dlid: Lid,
    /// Where from.
    pub slid: Lid,
    /// The partition.
    pub p_key: PKey,
    /// The receiver's queue pair.
    pub dest_qp: QpNum,
    /// The sender's queue pair.
    pub src_qp: QpNum,
    /// The queue key.
    pub q_key: QKey,
}

impl MadRoute {
    /// Queue pair 0 to queue pair 0 on the management lane.
    pub const fn smp(dlid: Lid, slid: Lid) -> Self {
        Self {
            vl: VirtualLane::MANAGEMENT,
            service_level: ServiceLevel(0),
            dlid,
            slid,
            p_key: PKey::DEFAULT_FULL,
            dest_qp: QpNum::SMI,
            src_qp: QpNum::SMI,
            q_key: QKey(0),
        }
    }
}

/// The bytes of one packet whose lengths, link version and VCRC have been checked.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet(Vec<u8>);

impl Packet {
    /// Checks what a receiving port checks of every packet (IBA 7.8): size, LRH length, link version, VCRC.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, PacketError> {
        if !(PACKET_SIZE_MIN..=PACKET_SIZE_MAX).contains(&bytes.len()) {
            return Err(PacketError::Size(bytes.len()));
        }
        let packet = Self(bytes);
        let lrh = packet.lrh();
        let (stated, found) = (usize::from(lrh.packet_length) * 4 + 2, packet.0.len());
        if stated != found {
            return Err(PacketError::Length { stated, found });
        }
        if lrh.link_version != 0 {
            return Err(PacketError::Version(lrh.link_version));
        }
        let (body, crc) = packet.0.split_at(found - 2);
        if vcrc(body) != [crc[0], crc[1]] {
            return Err(PacketError::Vcrc);
        }
        Ok(packet)
    }

    /// A packet that carries a MAD.
    pub fn from_mad(route: &MadRoute, mad: &Mad) -> Self {
        let mut bytes = vec![0; MAD_PACKET_SIZE];
        let lrh = Lrh {
            vl: route.vl,
            service_level: route.service_level,
            link_next_header: LinkNextHeader::IbaLocal,
            dlid: route.dlid,
            packet_length: (MAD_PACKET_SIZE - 2) as u16 / 4,
            slid: route.slid,
            ..Lrh::default()
        };
        let (p_key, dest_qp) = (route.p_key, route.dest_qp);
        let bth = Bth { opcode: opcode::UD_SEND_ONLY, p_key, dest_qp, ..Bth::default() };
        let deth = Deth { q_key: route.q_key, src_qp: route.src_qp, ..Deth::default() };
        bytes[..BTH_AT].copy_from_slice(&lrh.encode());
        bytes[BTH_AT..DETH_AT].copy_from_slice(&bth.encode());
        bytes[DETH_AT..MAD_AT].copy_from_slice(&deth.encode());
        bytes[MAD_AT..ICRC_AT].copy_from_slice(&mad.0);
        let mut packet = Self(bytes);
        packet.seal();
        packet
    }

    /// Bytes of the right length, with their last six to be made right.
    pub(crate) fn sealed(bytes: Vec<u8>) -> Self {
        debug_assert!((PACKET_SIZE_MIN..=PACKET_SIZE_MAX).contains(&bytes.len()), "{} bytes", bytes.len());
        let mut packet = Self(bytes);
        packet.seal();
        packet
    }

    /// Recomputes ICRC and VCRC after a change.
    fn seal(&mut self) {
        let end = self.0.len();
        let check = icrc(&self.0[..end - 6]);
        self.0[end - 6..end - 2].copy_from_slice(&check);
        let check = vcrc(&self.0[..end - 2]);
        self.0[end - 2..].copy_from_slice(&check);
    }

    /// The packet's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The packet's bytes, given away.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// 4-byte words from LRH to ICRC: what the data counters count.
    pub fn words(&self) -> u32 {
        (self.0.len() - 2) as u32 / 4
    }

    /// The local route header.
    pub fn lrh(&self) -> Lrh {
        Lrh::decode(self.lrh_bytes())
    }

    fn lrh_bytes(&self) -> &[u8; 8] {
        self.0.first_chunk().expect("a packet is longer than its LRH")
    }

    /// The lane of this hop.
    pub fn vl(&self) -> VirtualLane {
        Lrh::vl.get(self.lrh_bytes())
    }

    /// The service level.
    pub fn service_level(&self) -> ServiceLevel {
        Lrh::service_level.get(self.lrh_bytes())
    }

    /// The destination.
    pub fn dlid(&self) -> Lid {
        Lrh::dlid.get(self.lrh_bytes())
    }

    /// The source.
    pub fn slid(&self) -> Lid {
        Lrh::slid.get(self.lrh_bytes())
    }

    /// Moves the packet to another lane for its next hop, with a new VCRC; the ICRC does not cover the lane.
    pub fn set_vl(&mut self, vl: VirtualLane) {
        if vl == self.vl() {
            return;
        }
        let lrh = self.0.first_chunk_mut().expect("a packet is longer than its LRH");
        Lrh::vl.set(lrh, vl);
        let end = self.0.len();
        let check = vcrc(&self.0[..end - 2]);
        self.0[end - 2..].copy_from_slice(&check);
    }

    /// The opcode of the base transport header; a raw packet has none.
    pub fn op_code(&self) -> Option<u8> {
        let at = match Lrh::link_next_header.get(self.lrh_bytes()) {
            LinkNextHeader::IbaLocal => BTH_AT,
            LinkNextHeader::IbaGlobal => BTH_AT + GRH_SIZE,
            _ => return None,
        };
        self.0.get(at).copied()
    }

    /// The base transport header, when IBA transport follows the LRH directly.
    pub fn bth(&self) -> Option<Bth> {
        let local = self.lrh().link_next_header == LinkNextHeader::IbaLocal;
        self.0.get(BTH_AT..DETH_AT).filter(|_| local)?.first_chunk().map(Bth::decode)
    }

    /// The datagram header, when this is an unreliable datagram.
    pub fn deth(&self) -> Option<Deth> {
        let bth = self.bth()?;
        let datagram = bth.opcode == opcode::UD_SEND_ONLY && self.0.len() >= MAD_AT + 6;
        self.0.get(DETH_AT..MAD_AT).filter(|_| datagram)?.first_chunk().map(Deth::decode)
    }

    /// The MAD, when this is a datagram with exactly one MAD as its payload.
    pub fn mad(&self) -> Option<Mad> {
        self.deth().filter(|_| self.0.len() == MAD_PACKET_SIZE)?;
        Mad::try_from(&self.0[MAD_AT..ICRC_AT]).ok()
    }

    /// The bytes of a packet as others may see them, if they show a key of subnet administration: as if it had been sent without. Those
    /// of a damaged packet stay damaged.
    pub fn without_sa_key(bytes: &[u8]) -> Option<Vec<u8>> {
        let mad = bytes.get(MAD_AT..ICRC_AT).filter(|_| bytes.len() == MAD_PACKET_SIZE)?;
        let mut mad: [u8; MAD_SIZE] = mad.try_into().ok()?;
        let shows =
            SaMad::mgmt_class.get(&mad) == MgmtClass::SubnAdm && SaMad::sm_key.get(&mad) != SmKey::default();
        shows.then(|| {
            SaMad::sm_key.set(&mut mad, SmKey::default());
            let is_whole = Self::parse(bytes.to_vec()).is_ok();
            let mut bytes = bytes.to_vec();
            bytes[MAD_AT..ICRC_AT].copy_from_slice(&mad);
            if is_whole { Self::sealed(bytes).into_bytes() } else { bytes }
        })
    }

    /// Whether the ICRC is right; the receiver at the end of the path checks it (IBA 7.8.1).
    pub fn check_icrc(&self) -> Result<(), PacketError> {
        let end = self.0.len();
        let right = icrc(&self.0[..end - 6]) == self.0[end - 6..end - 2];
        if right { Ok(()) } else { Err(PacketError::Icrc) }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lrh = self.lrh();
        write!(f, "Packet[{} -> {} vl {} {} bytes", lrh.slid, lrh.dlid, lrh.vl, self.0.len())?;
        if let Some(mad) = self.mad() {
            write!(f, " {mad:?}")?;
        }
        f.write_str("]")
    }
}
