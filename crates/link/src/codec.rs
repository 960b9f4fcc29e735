//! Control frames on a link's first stream. The only module that knows bincode, so that another encoding of the
//! same messages can take its place.
//!
//! A frame is the protocol's version (2 bytes), the body's length (2 bytes), both little-endian, and the body.
//! The version stands outside the body so that it can be read whatever the body has become.

use quinn::{ConnectionError, ReadExactError, RecvStream, SendStream, WriteError};
use serde::{Deserialize, Serialize};
use weft_wire::LinkParameters;

use crate::end::CableEnd;
use crate::process::ProcessId;
use crate::reason::RefusalReason;

/// The version of the link protocol spoken here.
pub(crate) const VERSION: u16 = 3;

/// No control frame's body is longer.
pub(crate) const BODY_BYTES_MAX: usize = 512;

/// A message on the control stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Control {
    /// Who speaks, first in either direction.
    Hello(Hello),
    /// The dialler has accepted the acceptor's hello: the link is up.
    Ready,
}

/// Who speaks and for which cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) lab: String,
    pub(crate) from: CableEnd,
    pub(crate) to: CableEnd,
    /// A number that no other process of this agent has.
    pub(crate) incarnation: u64,
    /// What the port enables; both ends take the best that both have.
    pub(crate) parameters: LinkParameters,
    /// The process, where its kernel tells.
    pub(crate) process: Option<ProcessId>,
}

/// Why no control frame came.
#[derive(Debug)]
pub(crate) enum ControlError {
    Refused(RefusalReason),
    Connection(ConnectionError),
}

impl From<ConnectionError> for ControlError {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

impl From<WriteError> for ControlError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ConnectionLost(error) => Self::Connection(error),
            _ => Self::Refused(RefusalReason::Malformed),
        }
    }
}

impl From<ReadExactError> for ControlError {
    fn from(error: ReadExactError) -> Self {
        match error {
            ReadExactError::ReadError(quinn::ReadError::ConnectionLost(error)) => Self::Connection(error),
            _ => Self::Refused(RefusalReason::Malformed),
        }
    }
}

fn settings() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<BODY_BYTES_MAX>()
}

/// The whole frame of a message.
pub(crate) fn encode(message: &Control) -> Vec<u8> {
    let body = bincode::serde::encode_to_vec(message, settings()).unwrap_or_default();
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend_from_slice(&VERSION.to_le_bytes());
    frame.extend_from_slice(&(body.len() as u16).to_le_bytes());
    frame.extend_from_slice(&body);
    frame
}

/// The body's length by a frame's first four bytes.
pub(crate) fn decode_header(header: [u8; 4]) -> Result<usize, RefusalReason> {
    let [v0, v1, l0, l1] = header;
    let version = u16::from_le_bytes([v0, v1]);
    let length = usize::from(u16::from_le_bytes([l0, l1]));
    if version != VERSION {
        return Err(RefusalReason::Version(version));
    }
    if length > BODY_BYTES_MAX {
        return Err(RefusalReason::Oversized(length));
    }
    Ok(length)
}

/// The message in a frame's body.
pub(crate) fn decode_body(body: &[u8]) -> Result<Control, RefusalReason> {
    match bincode::serde::decode_from_slice(body, settings()) {
        Ok((message, used)) if used == body.len() => Ok(message),
        _ => Err(RefusalReason::Malformed),
    }
}

/// Writes one message.
pub(crate) async fn write(stream: &mut SendStream, message: &Control) -> Result<(), ControlError> {
    Ok(stream.write_all(&encode(message)).await?)
}

/// Reads one message.
pub(crate) async fn read(stream: &mut RecvStream) -> Result<Control, ControlError> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await?;
    let mut body = vec![0; decode_header(header).map_err(ControlError::Refused)?];
    stream.read_exact(&mut body).await?;
    decode_body(&body).map_err(ControlError::Refused)
}

#[cfg(test)]
mod tests {
    use weft_wire::{Guid, PortNum};

    use super::*;

    fn hello() -> Control {
        let end = |guid, port| CableEnd { guid: Guid(guid), port: PortNum(port) };
        Control::Hello(Hello {
            lab: "x".into(),
            from: end(1, 2),
            to: end(3, 4),
            incarnation: 5,
            parameters: LinkParameters::default(),
            process: None,
        })
    }

    #[test]
    fn a_hello_survives() {
        let frame = encode(&hello());
        let length = decode_header([frame[0], frame[1], frame[2], frame[3]]).unwrap();
        assert_eq!(length, frame.len() - 4);
        assert_eq!(decode_body(&frame[4..]), Ok(hello()));
    }

    #[test]
    fn the_bytes_of_a_hello_stay_what_they_are() {
        let frame = encode(&hello());
        // Version, length; then: hello, "x", end 1:2, end 3:4, incarnation 5, three empty masks, no process.
        assert_eq!(frame, [3, 0, 12, 0, 0, 1, b'x', 1, 2, 3, 4, 5, 0, 0, 0, 0]);
        let recorded = include_bytes!("../../../fuzz/corpus/link/hello");
        assert!(matches!(decode_body(&recorded[4..]), Ok(Control::Hello(_))));
    }

    #[test]
    fn truncated_or_flipped_frames_never_panic_the_decoder() {
        let frame = encode(&hello());
        let body = &frame[4..];
        for end in 0..body.len() {
            assert_eq!(decode_body(&body[..end]), Err(RefusalReason::Malformed), "cut at {end}");
        }
        for at in 0..body.len() {
            for bit in 0..8 {
                let mut flipped = body.to_vec();
                flipped[at] ^= 1 << bit;
                let _ = decode_body(&flipped);
            }
        }
        let mut longer = body.to_vec();
        longer.push(0);
        assert_eq!(decode_body(&longer), Err(RefusalReason::Malformed));
    }

    #[test]
    fn headers_are_bounded() {
        assert_eq!(decode_header([1, 0, 0, 0]), Err(RefusalReason::Version(1)));
        assert_eq!(decode_header([3, 0, 255, 255]), Err(RefusalReason::Oversized(65535)));
    }
}
