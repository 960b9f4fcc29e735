//! One message, one datagram: how it is put together, sent, received and recognised.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use weft_wire::MAD_SIZE;

use super::control::Request;
use super::header::UserMad;
use super::preamble::{Kind, Malformed, Preamble, has_length, split};
use super::{DATA_BYTES_MAX, REQUEST_BYTES_MAX};

/// A file of these can neither change nor shrink while it is read.
const SEALED: SealFlags = SealFlags::WRITE.union(SealFlags::SHRINK);

/// Where a MAD's data begins.
const HEADED: usize = Preamble::SIZE + UserMad::SIZE;

/// Something to be sent as one datagram.
#[derive(Debug)]
pub struct Datagram {
    bytes: Vec<u8>,
    /// All the data of a MAD that is longer than one packet's.
    file: Option<OwnedFd>,
}

impl From<Vec<u8>> for Datagram {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, file: None }
    }
}

impl Datagram {
    /// The longest one with a MAD.
    pub const MAD_BYTES_MAX: usize = HEADED + MAD_SIZE;

    /// A MAD. Fails when it is longer than [`DATA_BYTES_MAX`], or when the system gives no file for a long one.
    pub fn mad(header: &[u8; UserMad::SIZE], data: &[u8]) -> io::Result<Self> {
        let length = u32::try_from(data.len()).ok().filter(|length| *length as usize <= DATA_BYTES_MAX);
        let length = length.ok_or(io::ErrorKind::InvalidInput)?;
        let inline = data.get(..MAD_SIZE).unwrap_or(data);
        let bytes = [&Preamble { kind: Kind::Mad, length }.encode(), header.as_slice(), inline].concat();
        let file = if data.len() > MAD_SIZE { Some(sealed(data)?) } else { None };
        Ok(Self { bytes, file })
    }

    /// What it costs to keep.
    pub fn size(&self) -> usize {
        let beside = Preamble::decode(&self.bytes).map_or(0, |preamble| preamble.length as usize);
        self.bytes.len() + if self.file.is_some() { beside } else { 0 }
    }

    /// Whether a descriptor is held by it.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Sends it as a whole or not at all.
    pub fn send(&self, socket: impl AsFd, flags: SendFlags) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [self.file.as_ref().map(OwnedFd::as_fd)];
        if let [Some(file)] = &files {
            // There is room for one.
            let _ = control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(file)));
        }
        let bytes = [IoSlice::new(&self.bytes)];
        sendmsg(socket, &bytes, &mut control, flags | SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// A datagram as one run of bytes, for ways that carry no files: a long MAD is whole behind its header. `Malformed` when the file that
/// came with it cannot be used.
pub fn flatten(bytes: &[u8], file: Option<OwnedFd>) -> Result<Vec<u8>, Malformed> {
    let preamble = Preamble::decode(bytes)?;
    let length = preamble.length as usize;
    if !preamble.is_mad() || length <= MAD_SIZE {
        return Ok(bytes.to_vec());
    }
    if length > DATA_BYTES_MAX {
        return Err(Malformed::TooLong(preamble.length));
    }
    let mut flat = bytes.get(..HEADED).ok_or(Malformed::Short)?.to_vec();
    flat.resize(HEADED + length, 0);
    read_file(file.ok_or(Malformed::File)?, &mut flat[HEADED..])?;
    Ok(flat)
}

/// The datagram that [`flatten`] made a run of bytes of. The system may give no file for a long MAD.
pub fn unflatten(flat: Vec<u8>) -> io::Result<Datagram> {
    let invalid = |malformed| io::Error::new(io::ErrorKind::InvalidData, malformed);
    let preamble = Preamble::decode(&flat).map_err(invalid)?;
    if !preamble.is_mad() || preamble.length as usize <= MAD_SIZE {
        // It is held against its length where it is read.
        return Ok(flat.into());
    }
    let (_, rest) = flat.split_at(Preamble::SIZE);
    let (header, data) = rest.split_first_chunk().ok_or(Malformed::Short).map_err(invalid)?;
    has_length(data, preamble.length as usize).map_err(invalid)?;
    Datagram::mad(header, data)
}

/// A file in memory that can no longer be changed.
fn sealed(data: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("weft-mad", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(data)?;
    fcntl_add_seals(&file, SEALED | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file.into())
}

/// A datagram as it came.
#[derive(Debug)]
pub struct Incoming {
    /// How many bytes of the buffer it has; 0 is the end of the connection.
    pub bytes: usize,
    /// Whether the buffer was too short for it.
    pub truncated: bool,
    /// The file that came with it.
    pub file: Option<OwnedFd>,
}

/// Takes one datagram from a socket.
pub fn receive(socket: impl AsFd, buffer: &mut [u8], flags: RecvFlags) -> io::Result<Incoming> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffers = [IoSliceMut::new(buffer)];
    let received = recvmsg(socket, &mut buffers, &mut control, flags | RecvFlags::CMSG_CLOEXEC)?;
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.last().or(file);
        }
    }
    Ok(Incoming { bytes: received.bytes, truncated: received.flags.contains(ReturnFlags::TRUNC), file })
}

/// Reads the whole of a long MAD from its file. `Malformed` when the file is not what it should be: from a file that
/// may change or block nothing is read.
pub fn read_file(file: OwnedFd, data: &mut [u8]) -> Result<(), Malformed> {
    let seals = fcntl_get_seals(&file).map_err(|_| Malformed::File)?;
    if !seals.contains(SEALED) {
        return Err(Malformed::File);
    }
    File::from(file).read_exact_at(data, 0).map_err(|_| Malformed::File)
}

/// What a program may send to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromClient {
    /// A question or command.
    Request(Request),
    /// A MAD to be sent.
    Mad {
        /// From which registration, to whom.
        header: UserMad,
        /// The MAD, or the reassembled RMPP transfer.
        data: Vec<u8>,
    },
}

/// Reads what a program sent. `file` is what came with the datagram.
pub fn decode_client(bytes: &[u8], file: Option<OwnedFd>) -> Result<FromClient, Malformed> {
    if bytes.len() > REQUEST_BYTES_MAX {
        return Err(Malformed::Trailing);
    }
    let preamble = Preamble::decode(bytes)?;
    if !preamble.is_mad() {
        let (kind, body) = split(bytes)?;
        return Request::of_kind(kind, body).map(FromClient::Request);
    }
    let body = &bytes[Preamble::SIZE..];
    let (header, inline) = body.split_first_chunk().ok_or(Malformed::Short)?;
    let length = preamble.length as usize;
    if length > DATA_BYTES_MAX {
        return Err(Malformed::TooLong(preamble.length));
    }
    has_length(inline, length.min(MAD_SIZE))?;
    let data = if length <= MAD_SIZE {
        inline.to_vec()
    } else {
        let mut data = vec![0; length];
        read_file(file.ok_or(Malformed::File)?, &mut data)?;
        data
    };
    Ok(FromClient::Mad { header: UserMad::decode(header), data })
}
