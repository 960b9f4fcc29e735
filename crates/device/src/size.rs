//! Sizes of packets and of the blocks that buffers are promised in.

use weft_wire::Mtu;

/// Room for headers and checks beside the payload, in bytes (IBA 7.7.8).
const HEADROOM: usize = 126;

/// Bytes of a block.
const BLOCK: usize = 64;

/// The most blocks that can be promised.
pub(crate) const CREDIT_MAX: u16 = 2048;

/// Size of the largest packet that a port takes with this MTU, in bytes.
pub(crate) fn packet_size_max(mtu: Mtu) -> usize {
    (128usize << mtu.code().min(5)) + HEADROOM
}

/// The blocks that a packet of this size in bytes takes, from LRH to VCRC.
#[inline]
pub(crate) fn blocks(size: usize) -> u8 {
    size.div_ceil(BLOCK).min(usize::from(u8::MAX)) as u8
}
