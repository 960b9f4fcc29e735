//! Data lanes: one unidirectional stream per lane and direction, in order and without loss.
//!
//! A lane's stream begins with the lane's number. Frames follow: a kind (1 byte), the body's length (2 bytes,
//! little-endian), the body. What the lane's buffer has room for travels in order with its packets.
//!
//! ```text
//!   lane │ 0, length, a whole packet from LRH to VCRC │ 1, length, a packet's headers │ 2, 4, FCTBS and FCCL │ …
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::{Buf, Bytes, BytesMut};
use quinn::{Connection, RecvStream, WriteError};
use tokio::sync::Notify;
use weft_wire::{DATA_HEAD_SIZE_MAX, DataPacket, FlowControl, VirtualLane};

/// The longest packet of a data lane: 4096 bytes of payload, every header and both CRCs, with room.
pub(crate) const PACKET_BYTES_MAX: usize = 4096 + 256;

/// The number of data lanes, 0 to 14.
pub(crate) const LANES: u8 = 15;

const KIND_PACKET: u8 = 0;
const KIND_DATA: u8 = 1;
const KIND_CREDIT: u8 = 2;
const HEADER_BYTES: usize = 3;

/// What travels on a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A packet with all its bytes.
    Packet(Bytes),
    /// A packet whose body is a length.
    Data(DataPacket),
    /// What the sender's end of the lane has room for.
    Credit(FlowControl),
}

impl Frame {
    /// Whether it counts as a packet.
    pub(crate) fn is_packet(&self) -> bool {
        !matches!(self, Self::Credit(_))
    }

    fn encode_into(&self, buffer: &mut BytesMut) {
        let start = buffer.len();
        buffer.extend_from_slice(&[0; HEADER_BYTES]);
        let kind = match self {
            Self::Packet(packet) => {
                buffer.extend_from_slice(packet);
                KIND_PACKET
            }
            Self::Data(packet) => {
                packet.encode(buffer);
                KIND_DATA
            }
            Self::Credit(flow_control) => {
                buffer.extend_from_slice(&flow_control.encode());
                KIND_CREDIT
            }
        };
        let length = (buffer.len() - start - HEADER_BYTES) as u16;
        if let Some(header) = buffer.get_mut(start..start + HEADER_BYTES) {
            let [l0, l1] = length.to_le_bytes();
            header.copy_from_slice(&[kind, l0, l1]);
        }
    }

    /// Reads a frame of `lane`. What a whole packet's bytes mean is looked at by whoever takes it.
    fn decode(lane: VirtualLane, kind: u8, body: Bytes) -> Result<Self, Malformed> {
        let frame = match kind {
            KIND_PACKET => return Ok(Self::Packet(body)),
            KIND_DATA => Self::Data(DataPacket::decode(&body).map_err(|_| Malformed)?),
            KIND_CREDIT => {
                let body = body.as_ref().try_into().map_err(|_| Malformed)?;
                let flow_control = FlowControl::decode(body);
                if flow_control.op > 1 {
                    return Err(Malformed);
                }
                Self::Credit(flow_control)
            }
            _ => return Err(Malformed),
        };
        let says = match &frame {
            Self::Packet(_) => lane,
            Self::Data(packet) => packet.vl,
            Self::Credit(flow_control) => flow_control.vl,
        };
        if says == lane { Ok(frame) } else { Err(Malformed) }
    }
}

/// The longest body of a frame of this kind.
fn body_bytes_max(kind: u8) -> Result<usize, Malformed> {
    match kind {
        KIND_PACKET => Ok(PACKET_BYTES_MAX),
        KIND_DATA => Ok(DATA_HEAD_SIZE_MAX),
        KIND_CREDIT => Ok(FlowControl::SIZE),
        _ => Err(Malformed),
    }
}

/// Frames waiting for a lane's stream: those of one turn of the agent's loop go out with one write.
#[derive(Debug)]
pub(crate) struct LaneQueue {
    gathered: RefCell<Gathered>,
    changed: Notify,
    closed: Cell<bool>,
}

#[derive(Debug)]
struct Gathered {
    bytes: BytesMut,
    frames: usize,
}

impl LaneQueue {
    /// The queue of a stream that has not begun.
    pub(crate) fn new(lane: u8) -> Self {
        let gathered = Gathered { bytes: BytesMut::from(&[lane][..]), frames: 0 };
        Self { gathered: RefCell::new(gathered), changed: Notify::new(), closed: Cell::new(false) }
    }

    /// Appends a frame unless `bound` frames wait already.
    pub(crate) fn push(&self, frame: &Frame, bound: usize) -> bool {
        let mut gathered = self.gathered.borrow_mut();
        if gathered.frames >= bound {
            return false;
        }
        frame.encode_into(&mut gathered.bytes);
        gathered.frames += 1;
        if gathered.frames == 1 {
            self.changed.notify_one();
        }
        true
    }

    /// Ends the task that writes this lane.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.changed.notify_one();
    }

    /// All that waits.
    fn take(&self) -> Bytes {
        let mut gathered = self.gathered.borrow_mut();
        gathered.frames = 0;
        gathered.bytes.split().freeze()
    }
}

/// Writes a lane's frames until the link is gone.
pub(crate) async fn write(connection: Connection, queue: Rc<LaneQueue>) -> Result<(), WriteError> {
    let mut stream = connection.open_uni().await?;
    loop {
        let bytes = queue.take();
        if !bytes.is_empty() {
            stream.write_chunk(bytes).await?;
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

/// Cuts a lane's stream into its lane number and frames. Holds one incomplete frame and what was pushed with it.
#[derive(Debug, Default)]
pub(crate) struct FrameDecoder {
    lane: Option<VirtualLane>,
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
            self.lane = Some(VirtualLane(lane));
        }
        Ok(self.lane)
    }

    /// The next whole frame; none before the lane is known.
    pub(crate) fn frame(&mut self) -> Result<Option<Frame>, Malformed> {
        let (Some(lane), [kind, l0, l1, ..]) = (self.lane, &*self.buffer) else { return Ok(None) };
        let (kind, length) = (*kind, usize::from(u16::from_le_bytes([*l0, *l1])));
        if length > body_bytes_max(kind)? {
            return Err(Malformed);
        }
        if self.buffer.len() < HEADER_BYTES + length {
            return Ok(None);
        }
        self.buffer.advance(HEADER_BYTES);
        Frame::decode(lane, kind, self.buffer.split_to(length).freeze()).map(Some)
    }
}

/// Reads a lane until the link is gone, handing each frame to `deliver`.
///
/// `claim` says whether the lane is free to be read by this stream.
pub(crate) async fn read(
    mut stream: RecvStream,
    claim: impl Fn(VirtualLane) -> bool,
    deliver: impl Fn(VirtualLane, Frame),
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
        while let Some(frame) = decoder.frame()? {
            deliver(lane, frame);
        }
    }
    Ok(())
}

/// The frames of a stream as a peer of that lane would send them.
pub(crate) fn stream_of(lane: VirtualLane, frames: &[Frame]) -> Bytes {
    let queue = LaneQueue::new(lane.0);
    frames.iter().for_each(|frame| {
        queue.push(frame, usize::MAX);
    });
    queue.take()
}

#[cfg(test)]
mod tests {
    use weft_wire::{Lid, opcode};

    use super::*;

    const LANE: VirtualLane = VirtualLane(7);

    fn data() -> DataPacket {
        DataPacket {
            opcode: opcode::RC_SEND_ONLY,
            payload: 2048,
            dlid: Lid(9),
            sequence: 77,
            vl: LANE,
            ..DataPacket::default()
        }
    }

    fn credit() -> FlowControl {
        FlowControl { op: 0, fctbs: 4095, vl: LANE, fccl: 1 }
    }

    fn decoded(stream: &[u8], step: usize) -> (Vec<Frame>, Result<(), Malformed>) {
        let mut decoder = FrameDecoder::default();
        let mut got = Vec::new();
        for chunk in stream.chunks(step) {
            decoder.push(chunk);
            if decoder.lane().is_err() {
                return (got, Err(Malformed));
            }
            loop {
                match decoder.frame() {
                    Ok(Some(frame)) => got.push(frame),
                    Ok(None) => break,
                    Err(malformed) => return (got, Err(malformed)),
                }
            }
        }
        (got, Ok(()))
    }

    #[test]
    fn frames_decode_in_order_however_the_stream_is_cut() {
        let packet = |bytes: &[u8]| Frame::Packet(Bytes::copy_from_slice(bytes));
        let frames = vec![
            packet(&[]),
            Frame::Data(data()),
            packet(&[1; 290]),
            Frame::Credit(credit()),
            packet(&[2; PACKET_BYTES_MAX]),
            Frame::Credit(FlowControl { op: 1, ..credit() }),
            Frame::Data(DataPacket { opcode: opcode::RC_ACKNOWLEDGE, payload: 0, sequence: 0, ..data() }),
        ];
        let stream = stream_of(LANE, &frames);
        for step in [1, 2, 3, 7, 290, stream.len()] {
            assert_eq!(decoded(&stream, step), (frames.clone(), Ok(())), "cut every {step} bytes");
        }
    }

    #[test]
    fn a_data_packet_travels_without_its_body() {
        let stream = stream_of(LANE, &[Frame::Data(data())]);
        assert_eq!(stream.len(), 1 + HEADER_BYTES + 8 + 12 + 16);
        assert_eq!(stream_of(LANE, &[Frame::Credit(credit())]).len(), 1 + HEADER_BYTES + 4);
    }

    #[test]
    fn invalid_frames_are_refused() {
        assert_eq!(decoded(&[15], 1), (vec![], Err(Malformed)), "no data lane");
        for header in [[9, 0, 0], [KIND_PACKET, 255, 255], [KIND_DATA, 49, 0], [KIND_CREDIT, 5, 0]] {
            let [kind, l0, l1] = header;
            assert_eq!(decoded(&[3, kind, l0, l1], 4), (vec![], Err(Malformed)), "{header:?}");
        }
        let short = [3, KIND_CREDIT, 3, 0, 0, 0, 0];
        assert_eq!(decoded(&short, 7).1, Err(Malformed), "a credit of three bytes");
    }

    #[test]
    fn frames_of_another_lane_are_refused() {
        let frames = [Frame::Data(data()), Frame::Credit(credit())];
        for frame in frames {
            let mut stream = stream_of(LANE, &[frame]).to_vec();
            assert_eq!(decoded(&stream, 9).1, Ok(()));
            stream[0] = 6;
            assert_eq!(decoded(&stream, 9).1, Err(Malformed));
        }
        let strange = Frame::Credit(FlowControl { op: 2, ..credit() });
        assert_eq!(decoded(&stream_of(LANE, &[strange]), 9).1, Err(Malformed));
    }

    #[test]
    fn a_full_queue_takes_no_more_until_it_is_taken() {
        let queue = LaneQueue::new(7);
        let frame = Frame::Credit(credit());
        assert!(queue.push(&frame, 2));
        assert!(queue.push(&frame, 2));
        assert!(!queue.push(&frame, 2));
        assert_eq!(queue.take(), stream_of(LANE, &[frame.clone(), frame.clone()]));
        assert!(queue.push(&frame, 2));
    }
}
