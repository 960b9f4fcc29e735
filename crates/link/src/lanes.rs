//! Data lanes: one unidirectional stream per lane and direction, in order and without loss.
//!
//! A lane's stream begins with the lane's number. Frames follow: a kind (1 byte), the body's length (2 bytes,
//! little-endian), the body. Packets are one kind; credits will be another on the same stream.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::{Buf, Bytes, BytesMut};
use quinn::{Connection, RecvStream, WriteError};
use tokio::sync::Notify;
use weft_wire::VirtualLane;

/// The longest packet of a data lane: 4096 bytes of payload, every header and both CRCs, with room.
pub(crate) const PACKET_BYTES_MAX: usize = 4096 + 256;

/// The number of data lanes, 0 to 14.
pub(crate) const LANES: u8 = 15;

const KIND_PACKET: u8 = 0;
const HEADER_BYTES: usize = 3;
/// How much is gathered for one write; more waits for the next.
const WRITE_BYTES: usize = 64 << 10;

/// Packets waiting for a lane's stream.
#[derive(Debug, Default)]
pub(crate) struct LaneQueue {
    packets: RefCell<VecDeque<Bytes>>,
    changed: Notify,
    closed: Cell<bool>,
}

impl LaneQueue {
    /// Appends a packet unless `bound` packets wait already.
    pub(crate) fn push(&self, packet: Bytes, bound: usize) -> bool {
        let mut packets = self.packets.borrow_mut();
        if packets.len() >= bound {
            return false;
        }
        packets.push_back(packet);
        self.changed.notify_one();
        true
    }

    /// Ends the task that writes this lane.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.changed.notify_one();
    }

    /// The frames of the packets that wait, up to one write's worth.
    fn gather(&self, buffer: &mut BytesMut) {
        let mut packets = self.packets.borrow_mut();
        while buffer.len() < WRITE_BYTES {
            let Some(packet) = packets.pop_front() else { break };
            put_packet(buffer, &packet);
        }
    }
}

fn put_packet(buffer: &mut BytesMut, packet: &[u8]) {
    buffer.extend_from_slice(&[KIND_PACKET]);
    buffer.extend_from_slice(&(packet.len() as u16).to_le_bytes());
    buffer.extend_from_slice(packet);
}

/// Writes a lane's packets until the link is gone.
pub(crate) async fn write(connection: Connection, lane: u8, queue: Rc<LaneQueue>) -> Result<(), WriteError> {
    let mut stream = connection.open_uni().await?;
    let mut buffer = BytesMut::from(&[lane][..]);
    loop {
        queue.gather(&mut buffer);
        if !buffer.is_empty() {
            stream.write_chunk(buffer.split().freeze()).await?;
        } else if queue.closed.get() {
            return Ok(());
        } else {
            queue.changed.notified().await;
        }
    }
}

/// What a peer's lane stream must not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Cuts a lane's stream into its lane number and packets.
#[derive(Debug, Default)]
pub(crate) struct FrameDecoder {
    lane: Option<u8>,
    buffer: BytesMut,
}

impl FrameDecoder {
    /// Takes the stream's next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The lane, once its byte is there.
    pub(crate) fn lane(&mut self) -> Result<Option<VirtualLane>, Malformed> {
        if self.lane.is_none() && !self.buffer.is_empty() {
            let lane = self.buffer.get_u8();
            if lane >= LANES {
                return Err(Malformed);
            }
            self.lane = Some(lane);
        }
        Ok(self.lane.map(VirtualLane))
    }

    /// The next whole packet.
    pub(crate) fn packet(&mut self) -> Result<Option<Bytes>, Malformed> {
        let [kind, l0, l1, ..] = *self.buffer else { return Ok(None) };
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        if kind != KIND_PACKET || length > PACKET_BYTES_MAX {
            return Err(Malformed);
        }
        if self.buffer.len() < HEADER_BYTES + length {
            return Ok(None);
        }
        self.buffer.advance(HEADER_BYTES);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}

/// Reads a lane until the link is gone, handing each packet to `deliver`.
///
/// `claim` says whether the lane is free to be read by this stream.
pub(crate) async fn read(
    mut stream: RecvStream,
    claim: impl Fn(VirtualLane) -> bool,
    deliver: impl Fn(VirtualLane, Bytes),
) -> Result<(), Malformed> {
    let mut decoder = FrameDecoder::default();
    let mut claimed = false;
    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await {
        decoder.push(&chunk.bytes);
        let Some(lane) = decoder.lane()? else { continue };
        if !claimed && !claim(lane) {
            return Err(Malformed);
        }
        claimed = true;
        while let Some(packet) = decoder.packet()? {
            deliver(lane, packet);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_survive_any_cutting_of_the_stream() {
        let packets: Vec<Vec<u8>> = vec![vec![], vec![1; 290], vec![2; PACKET_BYTES_MAX], vec![3]];
        let mut stream = BytesMut::from(&[7u8][..]);
        packets.iter().for_each(|packet| put_packet(&mut stream, packet));
        for step in [1, 2, 3, 7, 290, stream.len()] {
            let mut decoder = FrameDecoder::default();
            let mut got = Vec::new();
            for chunk in stream.chunks(step) {
                decoder.push(chunk);
                assert_eq!(decoder.lane(), Ok(Some(VirtualLane(7))));
                while let Some(packet) = decoder.packet().unwrap() {
                    got.push(packet.to_vec());
                }
            }
            assert_eq!(got, packets, "cut every {step} bytes");
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let mut decoder = FrameDecoder::default();
        assert_eq!(decoder.lane(), Ok(None));
        decoder.push(&[15]);
        assert_eq!(decoder.lane(), Err(Malformed));

        for header in [[9, 0, 0], [KIND_PACKET, 255, 255]] {
            let mut decoder = FrameDecoder::default();
            decoder.push(&[3]);
            decoder.push(&header);
            assert_eq!(decoder.lane(), Ok(Some(VirtualLane(3))));
            assert_eq!(decoder.packet(), Err(Malformed));
        }
    }

    #[test]
    fn a_full_queue_takes_no_more() {
        let queue = LaneQueue::default();
        assert!(queue.push(Bytes::from_static(b"a"), 2));
        assert!(queue.push(Bytes::from_static(b"b"), 2));
        assert!(!queue.push(Bytes::from_static(b"c"), 2));
    }
}
