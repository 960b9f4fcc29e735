//! The decoders of what peers send, for the fuzzer: bytes in, no panic out.

use weft_wire::VirtualLane;

use crate::codec;
use crate::lanes::{Frame, FrameDecoder, Malformed, stream_of};

/// A control frame: what is decoded is encoded so that it decodes to the same again.
pub fn control(bytes: &[u8]) {
    let Some((header, rest)) = bytes.split_first_chunk::<4>() else { return };
    let body = codec::decode_header(*header).ok().and_then(|length| rest.get(..length));
    if let Some(message) = body.and_then(|body| codec::decode_body(body).ok()) {
        let frame = codec::encode(&message);
        assert_eq!(frame.get(4..).map(codec::decode_body), Some(Ok(message)));
    }
}

/// A data lane's stream: the same frames wherever it is cut, and they are written so that they read the same again.
pub fn lane(bytes: &[u8]) {
    let (head, tail) = bytes.split_at(bytes.len() / 3);
    let read = frames(&[bytes]);
    assert_eq!(read, frames(&[head, tail]));
    if let (Some(lane), read, _) = read {
        assert_eq!(frames(&[&stream_of(lane, &read)]), (Some(lane), read, None));
    }
}

fn frames(pieces: &[&[u8]]) -> (Option<VirtualLane>, Vec<Frame>, Option<Malformed>) {
    let mut decoder = FrameDecoder::default();
    let (mut lane, mut frames) = (None, Vec::new());
    for piece in pieces {
        decoder.push(piece);
        match decoder.lane() {
            Ok(found) => lane = found,
            Err(malformed) => return (lane, frames, Some(malformed)),
        }
        loop {
            match decoder.frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(malformed) => return (lane, frames, Some(malformed)),
            }
        }
    }
    (lane, frames, None)
}
