//! Numbers of queue pairs and packets, and how messages are cut into packets.

use serde::{Deserialize, Serialize};
use weft_wire::{BODY_HEAD_SIZE, QpNum, opcode};

use crate::traffic::FlowId;

/// The queue pair of flow 0 at both of its ends; the others follow.
pub(super) const FIRST_QP: u32 = 0x100;
/// Bits of a packet's number.
pub(super) const PSN_MASK: u32 = 0xff_ffff;
/// The highest number of a packet of a flow that moves: a petabyte of the smallest ones and more.
pub(super) const NUMBER_MAX: u64 = 1 << 48;
/// The highest count that is accepted from an image, so that it can be counted on.
pub(super) const COUNT_MAX: u64 = 1 << 62;
/// The largest body of a packet.
const BODY_MAX: u16 = 4096;

/// Says what is wrong with a part of an image, if it is.
pub(super) fn ensure(holds: bool, wrong: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(wrong) }
}

/// The PSN that both ends of a flow begin with, spread so that some flows wrap soon.
pub(super) fn first_psn(flow: FlowId) -> u32 {
    flow.0.wrapping_mul(0x9e37_79b1) >> 8
}

/// A flow's queue pair.
pub(super) fn queue_pair(flow: FlowId) -> QpNum {
    QpNum(FIRST_QP + flow.0)
}

/// How a message is cut into packets. A body has a multiple of 4 bytes and at least 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Geometry {
    pub(super) packets: u32,
    body: u16,
    last: u16,
}

impl Geometry {
    pub(super) fn new(message_bytes: u32, packet_bytes: u16) -> Self {
        let least = BODY_HEAD_SIZE as u16;
        let body = packet_bytes.clamp(least, BODY_MAX) & !3;
        let message = message_bytes.max(least.into()).saturating_add(3) & !3;
        let packets = message.div_ceil(body.into());
        let last = message - (packets - 1) * u32::from(body);
        Self { packets, body, last: (last as u16).max(least) }
    }

    /// Whether messages can be cut like this.
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        let least = BODY_HEAD_SIZE as u16;
        let bodies = [self.body, self.last];
        let fits = bodies.iter().all(|body| (least..=BODY_MAX).contains(body) && body % 4 == 0);
        ensure(fits && self.packets > 0 && self.last <= self.body, "messages cannot be cut into such packets")
    }

    /// Bytes of a message's bodies.
    pub(super) fn message(&self) -> u64 {
        u64::from(self.packets - 1) * u64::from(self.body) + u64::from(self.last)
    }

    /// Bytes of body of the packet at this place of a message.
    #[inline]
    pub(super) fn payload(&self, at: u32) -> u16 {
        if at + 1 == self.packets { self.last } else { self.body }
    }

    /// Its opcode on a reliable connection.
    #[inline]
    pub(super) fn opcode(&self, at: u32) -> u8 {
        match (at, at + 1 == self.packets) {
            (0, true) => opcode::RC_SEND_ONLY,
            (0, false) => opcode::RC_SEND_FIRST,
            (_, false) => opcode::RC_SEND_MIDDLE,
            (_, true) => opcode::RC_SEND_LAST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_into_bodies_that_can_be() {
        for (message, packet, packets, last) in [
            (1, 2048, 1, 16),
            (2048, 2048, 1, 2048),
            (2050, 2048, 2, 16),
            (5000, 2048, 3, 904),
            (64, 3, 4, 16),
        ] {
            let geometry = Geometry::new(message, packet);
            assert_eq!(
                (geometry.packets, geometry.payload(packets - 1)),
                (packets, last),
                "{message} {packet}"
            );
            let sum: u64 = (0..packets).map(|at| u64::from(geometry.payload(at))).sum();
            assert_eq!(sum, geometry.message());
            assert!(sum >= u64::from(message));
        }
    }
}
