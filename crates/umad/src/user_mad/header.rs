//! The kernel's `struct ib_user_mad`, in the layout that has a P_Key index.

use weft_wire::{Lid, QKey, QpNum, ServiceLevel};

/// What stands before the data of every MAD that a program sends or receives
/// (`include/uapi/rdma/ib_user_mad.h`, ABI version 5). In the machine's own byte order, but for the address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserMad {
    /// The registration that it is sent by or delivered to.
    pub agent_id: u32,
    /// 0, or the error number of a send that failed: 110 is a timeout.
    pub status: u32,
    /// How long to wait for a response; 0 when none is expected.
    pub timeout_ms: u32,
    /// How often to send again when no response came.
    pub retries: u32,
    /// Of what is received: the bytes of this header and the data.
    pub length: u32,
    /// The peer.
    pub address: UserMadAddress,
}

/// The kernel's `struct ib_mad_addr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserMadAddress {
    /// The peer's queue pair.
    pub qpn: QpNum,
    /// The queue key to send with.
    pub qkey: QKey,
    /// The peer's LID.
    pub lid: Lid,
    /// The service level.
    pub service_level: ServiceLevel,
    /// The low bits of the own LID (with an LMC).
    pub path_bits: u8,
    /// Whether what follows is a global route.
    pub grh_present: bool,
    /// Which of the own GIDs.
    pub gid_index: u8,
    /// The global route's hop limit.
    pub hop_limit: u8,
    /// The global route's traffic class.
    pub traffic_class: u8,
    /// The peer's GID.
    pub gid: [u8; 16],
    /// The global route's flow label.
    pub flow_label: u32,
    /// Which entry of the port's P_Key table.
    pub pkey_index: u16,
}

impl UserMad {
    /// Its length.
    pub const SIZE: usize = 64;

    /// Reads it; every value of every byte is one.
    pub fn decode(bytes: &[u8; Self::SIZE]) -> Self {
        let own = |at: usize| u32::from_ne_bytes(word(bytes, at));
        let network = |at: usize| u32::from_be_bytes(word(bytes, at));
        let mut gid = [0; 16];
        gid.copy_from_slice(&bytes[36..52]);
        Self {
            agent_id: own(0),
            status: own(4),
            timeout_ms: own(8),
            retries: own(12),
            length: own(16),
            address: UserMadAddress {
                qpn: QpNum(network(20)),
                qkey: QKey(network(24)),
                lid: Lid(u16::from_be_bytes([bytes[28], bytes[29]])),
                service_level: ServiceLevel(bytes[30]),
                path_bits: bytes[31],
                grh_present: bytes[32] != 0,
                gid_index: bytes[33],
                hop_limit: bytes[34],
                traffic_class: bytes[35],
                gid,
                flow_label: network(52),
                pkey_index: u16::from_ne_bytes([bytes[56], bytes[57]]),
            },
        }
    }

    /// Writes it; the six bytes at its end are reserved and zero.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let own = [self.agent_id, self.status, self.timeout_ms, self.retries, self.length];
        for (place, value) in bytes.chunks_exact_mut(4).zip(own) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        let address = &self.address;
        bytes[20..24].copy_from_slice(&address.qpn.0.to_be_bytes());
        bytes[24..28].copy_from_slice(&address.qkey.0.to_be_bytes());
        bytes[28..30].copy_from_slice(&address.lid.0.to_be_bytes());
        bytes[30] = address.service_level.0;
        bytes[31] = address.path_bits;
        bytes[32] = u8::from(address.grh_present);
        bytes[33] = address.gid_index;
        bytes[34] = address.hop_limit;
        bytes[35] = address.traffic_class;
        bytes[36..52].copy_from_slice(&address.gid);
        bytes[52..56].copy_from_slice(&address.flow_label.to_be_bytes());
        bytes[56..58].copy_from_slice(&address.pkey_index.to_ne_bytes());
        bytes
    }
}

fn word(bytes: &[u8; UserMad::SIZE], at: usize) -> [u8; 4] {
    [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_where_the_kernel_has_it() {
        let mut bytes = [0_u8; 64];
        bytes[0] = 3;
        bytes[4] = 110;
        bytes[8..10].copy_from_slice(&1000_u16.to_ne_bytes());
        bytes[12] = 2;
        bytes[16] = 88;
        bytes[23] = 1;
        bytes[24..28].copy_from_slice(&[0x80, 1, 0, 0]);
        bytes[28..30].copy_from_slice(&[0x12, 0x34]);
        bytes[30] = 5;
        bytes[31] = 1;
        bytes[32] = 1;
        bytes[33..36].copy_from_slice(&[2, 3, 4]);
        bytes[36] = 0xfe;
        bytes[51] = 7;
        bytes[54..56].copy_from_slice(&[0xab, 0xcd]);
        bytes[56] = 9;
        let header = UserMad::decode(&bytes);
        assert_eq!((header.agent_id, header.status, header.timeout_ms), (3, 110, 1000));
        assert_eq!((header.retries, header.length), (2, 88));
        let address = header.address;
        assert_eq!((address.qpn, address.qkey, address.lid), (QpNum(1), QKey(0x8001_0000), Lid(0x1234)));
        assert_eq!(
            (address.service_level, address.path_bits, address.grh_present),
            (ServiceLevel(5), 1, true)
        );
        assert_eq!((address.gid_index, address.hop_limit, address.traffic_class), (2, 3, 4));
        assert_eq!((address.gid[0], address.gid[15], address.flow_label), (0xfe, 7, 0xabcd));
        assert_eq!(address.pkey_index, 9);
        assert_eq!(header.encode(), bytes);
    }
}
