//! The two checksums of a packet (IBA 7.8.1 and 7.8.2), on the `crc32fast` and `crc` libraries.

use crc::{Algorithm, Crc, Table};

/// VCRC: polynomial 0x100B, all ones first, least significant bit first, inverted.
const VCRC: Algorithm<u16> = Algorithm {
    width: 16,
    poly: 0x100b,
    init: 0xffff,
    refin: true,
    refout: true,
    xorout: 0xffff,
    check: 0,
    residue: 0,
};

static VCRC_TABLE: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&VCRC);

/// The variant CRC over everything from the LRH to the ICRC, in the order of transmission.
pub fn vcrc(bytes: &[u8]) -> [u8; 2] {
    VCRC_TABLE.checksum(bytes).to_le_bytes()
}

/// The invariant CRC over everything from the LRH to the payload, in the order of transmission.
///
/// It is Ethernet's polynomial over the packet with every field that may change on the way replaced by ones: the
/// LRH's lane and the BTH's byte of congestion bits; where a GRH follows, the whole LRH and the GRH's traffic
/// class, flow label and hop limit as well. `bytes` ends before the ICRC.
pub fn icrc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = crc32fast::Hasher::new();
    let Some((head, rest)) = bytes.split_first_chunk::<60>() else {
        let mut short = bytes.to_vec();
        mask(&mut short);
        crc.update(&short);
        return crc.finalize().to_le_bytes();
    };
    let mut head = *head;
    mask(&mut head);
    crc.update(&head);
    crc.update(rest);
    crc.finalize().to_le_bytes()
}

/// Replaces the variant fields within the first 60 bytes (LRH, GRH, BTH) by ones.
fn mask(head: &mut [u8]) {
    let next_header = head.get(1).map_or(0, |byte| byte & 3);
    let mut ones = |at: usize, bits: u8| {
        if let Some(byte) = head.get_mut(at) {
            *byte |= bits;
        }
    };
    ones(0, 0xf0);
    match next_header {
        2 => ones(8 + 4, 0xff),
        3 => {
            (0..8).for_each(|at| ones(at, 0xff));
            ones(8, 0x0f);
            (9..12).for_each(|at| ones(at, 0xff));
            ones(8 + 7, 0xff);
            ones(48 + 4, 0xff);
        }
        _ => {}
    }
}
