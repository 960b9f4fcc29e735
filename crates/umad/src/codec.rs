//! Frames: a u32 length in little-endian order, then the message in bincode. The only module that knows bincode.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

const HEADER_BYTES: usize = 4;

/// bincode's own limit, so that no length inside a frame makes it allocate more than the frame could hold.
const CONFIG: bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Varint,
    bincode::config::Limit<{ 16 * 1024 * 1024 }>,
> = bincode::config::standard().with_limit::<{ 16 * 1024 * 1024 }>();

/// Something that travels as one frame.
pub trait Message: Serialize + DeserializeOwned {
    /// The longest frame accepted or made, without its length field.
    const FRAME_BYTES_MAX: usize;
}

/// Why a frame was not made or not understood. After a decoding error the connection is of no more use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The length is more than the message's kind may have.
    #[error("a frame of {bytes} bytes is longer than the {max} allowed")]
    TooLong {
        /// The length announced or needed.
        bytes: usize,
        /// [`Message::FRAME_BYTES_MAX`].
        max: usize,
    },
    /// The bytes of the frame are no such message.
    #[error("a frame does not decode")]
    Malformed(#[source] bincode::error::DecodeError),
    /// The message ended before its frame did.
    #[error("a frame has {bytes} bytes after its message")]
    TrailingBytes {
        /// How many.
        bytes: usize,
    },
    /// The message cannot be written.
    #[error("a message does not encode")]
    Unencodable(#[source] bincode::error::EncodeError),
}

/// Appends one frame to `out`; on an error `out` is as before.
pub fn encode_into<M: Message>(message: &M, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let written = bincode::serde::encode_into_std_write(message, out, CONFIG);
    let bytes = out.len() - start - HEADER_BYTES;
    let failure = match written {
        Err(error) => Some(FrameError::Unencodable(error)),
        Ok(_) if bytes > M::FRAME_BYTES_MAX => Some(FrameError::TooLong { bytes, max: M::FRAME_BYTES_MAX }),
        Ok(_) => None,
    };
    if let Some(error) = failure {
        out.truncate(start);
        return Err(error);
    }
    let length = u32::try_from(bytes).expect("FRAME_BYTES_MAX is far below 4 GiB");
    out[start..start + HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Turns a stream of bytes, cut anywhere, into messages.
///
/// Holds at most one incomplete frame and what was fed with it, so its memory is bounded by
/// [`Message::FRAME_BYTES_MAX`] plus the largest piece fed, as long as it is drained after each piece.
#[derive(Debug)]
pub struct Decoder<M> {
    buffer: Vec<u8>,
    taken: usize,
    message: PhantomData<M>,
}

impl<M> Default for Decoder<M> {
    fn default() -> Self {
        Self { buffer: Vec::new(), taken: 0, message: PhantomData }
    }
}

impl<M: Message> Decoder<M> {
    /// An empty decoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes as they came from the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.taken > 0 && (self.taken == self.buffer.len() || self.taken >= 64 * 1024) {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The oldest complete message, `None` when more bytes are needed.
    pub fn next_message(&mut self) -> Result<Option<M>, FrameError> {
        let rest = &self.buffer[self.taken..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*header) as usize;
        if length > M::FRAME_BYTES_MAX {
            return Err(FrameError::TooLong { bytes: length, max: M::FRAME_BYTES_MAX });
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let (message, used) =
            bincode::serde::decode_from_slice(frame, CONFIG).map_err(FrameError::Malformed)?;
        if used != length {
            return Err(FrameError::TrailingBytes { bytes: length - used });
        }
        self.taken += HEADER_BYTES + length;
        Ok(Some(message))
    }
}
