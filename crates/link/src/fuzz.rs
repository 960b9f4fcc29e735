//! The decoders of what peers send, for the fuzzer: bytes in, no panic out.

use bytes::Bytes;
use weft_wire::VirtualLane;

use crate::codec;
use crate::lanes::{FrameDecoder, Malformed};

/// A control frame: what is decoded is encoded so that it decodes to the same again.
pub fn control(bytes: &[u8]) {
    let Some((header, rest)) = bytes.split_first_chunk::<4>() else { return };
    let body = codec::decode_header(*header).ok().and_then(|length| rest.get(..length));
    if let Some(message) = body.and_then(|body| codec::decode_body(body).ok()) {
        let frame = codec::encode(&message);
        assert_eq!(frame.get(4..).map(codec::decode_body), Some(Ok(message)));
    }
}

/// A data lane's stream: the same packets wherever it is cut.
pub fn lane(bytes: &[u8]) {
    let (head, tail) = bytes.split_at(bytes.len() / 3);
    assert_eq!(packets(&[bytes]), packets(&[head, tail]));
}

fn packets(pieces: &[&[u8]]) -> (Option<VirtualLane>, Vec<Bytes>, Option<Malformed>) {
    let mut decoder = FrameDecoder::default();
    let (mut lane, mut packets) = (None, Vec::new());
    for piece in pieces {
        decoder.push(piece);
        match decoder.lane() {
            Ok(found) => lane = found,
            Err(malformed) => return (lane, packets, Some(malformed)),
        }
        while lane.is_some() {
            match decoder.packet() {
                Ok(Some(packet)) => packets.push(packet),
                Ok(None) => break,
                Err(malformed) => return (lane, packets, Some(malformed)),
            }
        }
    }
    (lane, packets, None)
}
