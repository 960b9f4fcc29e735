//! Tapes: what the page showed, in a file.
//!
//! ```text
//!   {"tape":1,"lab":"x5","began_ms":…}                     head
//!   {"at_ms":…,"frame":{"before":0,"marks":[…]}}           frame: where the frame before begins, and what happened since
//!   {"at_ms":…,"key":{…}}                                  the whole state
//!   {"at_ms":…,"patch":{…}}                                merge patches (RFC 7386), until the next frame
//! ```
//!
//! Each frame says where the one before begins, so the chain of frames is the index: a tape of any size is opened by reading its frames
//! from the last one back, and a tape that was cut off has all of its frames but the last. Lines have a bound, as have frames.

mod read;
mod write;

use std::io;

use serde::{Deserialize, Serialize};

use crate::ring::Mark;

pub use read::{Play, Tape};
pub use write::{Recorder, TAPE_BYTES_MAX};

/// The version of the format. It changes when a reader of the version before would misread it.
pub const VERSION: u32 = 1;
/// The longest line.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 20;
/// The longest line of a frame, and of the head.
pub(crate) const FRAME_BYTES_MAX: usize = 256 << 10;
/// Marks in a frame.
pub(crate) const MARKS_MAX: usize = 200;

/// Why a tape cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TapeError {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("this is no tape: its first line is not a tape's head")]
    NoTape,
    /// Another version of weft wrote it.
    #[error("the tape has version {0}, and this program reads version {VERSION}")]
    OtherVersion(u64),
    /// It ends before its first state.
    #[error("the tape holds no state: it was cut off at its beginning")]
    Empty,
    /// A line cannot be one of a tape.
    #[error("the tape is damaged at byte {0}")]
    Damaged(u64),
    /// A line is longer than any line of a tape.
    #[error("the tape has a line of more than {LINE_BYTES_MAX} bytes at byte {0}")]
    TooLong(u64),
    /// It has reached its bound.
    #[error("the tape has reached {0} bytes, its bound")]
    Full(u64),
}

/// The first line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The version of the format.
    pub tape: u64,
    /// The laboratory.
    #[serde(default)]
    pub lab: String,
    /// When it began.
    #[serde(default)]
    pub began_ms: u64,
}

/// The line before a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct FrameLine {
    at_ms: u64,
    frame: Frame,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Frame {
    /// Where the line of the frame before begins; 0 for the first.
    before: u64,
    /// What happened since then.
    #[serde(default)]
    marks: Vec<Mark>,
}
