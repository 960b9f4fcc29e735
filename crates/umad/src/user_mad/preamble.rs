//! The head of every datagram, and the errors of those that begin otherwise.

use std::cmp::Ordering;

/// `Wm` and the protocol's version.
const MAGIC: [u8; 3] = [b'W', b'm', 1];

macro_rules! kinds {
    ($($kind:ident = $number:literal)*) => {
        /// What a datagram is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Kind {
            $($kind = $number,)*
        }

        const KINDS: &[Kind] = &[$(Kind::$kind),*];
    };
}

kinds! {
    Open = 1
    Ca = 2
    Port = 3
    Issm = 4
    Register = 5
    Unregister = 6
    Mad = 7
    Done = 8
    Failed = 9
    CaIs = 10
    PortIs = 11
    IssmIs = 12
    Registered = 13
}

/// Why a datagram is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// It ends before its fields do.
    #[error("a message is too short")]
    Short,
    /// It goes on after its fields.
    #[error("a message is too long")]
    Trailing,
    /// It was made by something else, or by another version of weft.
    #[error("a message is not of this version of the protocol")]
    Version,
    /// There is no such kind of message, or not in this direction.
    #[error("a message is of kind {0}, which does not belong here")]
    Kind(u8),
    /// A MAD longer than [`DATA_BYTES_MAX`](super::DATA_BYTES_MAX).
    #[error("a MAD of {0} bytes is too long")]
    TooLong(u32),
    /// A long MAD came without its file, or the file is not sealed or too short.
    #[error("a MAD's file cannot be used")]
    File,
}

/// How every datagram begins: three bytes of magic, its kind, and a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    pub(super) kind: Kind,
    /// Of a MAD the length of its data, of everything else the bytes that follow.
    pub length: u32,
}

impl Preamble {
    /// Its length.
    pub const SIZE: usize = 8;

    pub(super) fn encode(self) -> [u8; Self::SIZE] {
        let [a, b, c, d] = self.length.to_le_bytes();
        [MAGIC[0], MAGIC[1], MAGIC[2], self.kind as u8, a, b, c, d]
    }

    /// Reads it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let [magic @ .., kind, a, b, c, d] =
            *bytes.first_chunk::<{ Self::SIZE }>().ok_or(Malformed::Short)?;
        if magic != MAGIC {
            return Err(Malformed::Version);
        }
        let kind = *KINDS.iter().find(|known| **known as u8 == kind).ok_or(Malformed::Kind(kind))?;
        Ok(Self { kind, length: u32::from_le_bytes([a, b, c, d]) })
    }

    /// Whether a MAD follows.
    pub fn is_mad(self) -> bool {
        self.kind == Kind::Mad
    }
}

/// A control message's kind and fields.
pub(super) fn split(bytes: &[u8]) -> Result<(Kind, &[u8]), Malformed> {
    let preamble = Preamble::decode(bytes)?;
    let body = &bytes[Preamble::SIZE..];
    has_length(body, preamble.length as usize)?;
    Ok((preamble.kind, body))
}

/// An error unless there are that many bytes.
pub(super) fn has_length(bytes: &[u8], length: usize) -> Result<(), Malformed> {
    match bytes.len().cmp(&length) {
        Ordering::Less => Err(Malformed::Short),
        Ordering::Greater => Err(Malformed::Trailing),
        Ordering::Equal => Ok(()),
    }
}

/// A control message from its kind and fields.
pub(super) fn join(kind: Kind, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("no control message comes near 4 GiB");
    [&Preamble { kind, length }.encode(), body].concat()
}
