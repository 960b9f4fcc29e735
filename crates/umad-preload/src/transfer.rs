//! Sending and receiving.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::BorrowedFd;

use rustix::net::{RecvFlags, SendFlags};
use umad::user_mad::{DATA_BYTES_MAX, Datagram, Preamble, read_file, receive};
use weft_wire::MAD_SIZE;

use crate::abi::{HEADER_BYTES, Waited, errno, pause, set_errno, wait};
use crate::buffer::header;
use crate::guard::{failed, guard, number, tell};

/// The pause between reports of an agent that has gone, to a program that goes on asking.
const GONE_PAUSE_MS: c_int = 100;

/// Sends a MAD; 0, or -EIO with `errno`.
///
/// # Safety
/// `umad` is a buffer with a header and `length` bytes after it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_send(
    portid: c_int,
    agentid: c_int,
    umad: *mut c_void,
    length: c_int,
    timeout_ms: c_int,
    retries: c_int,
) -> c_int {
    guard(-libc::EIO, || {
        // SAFETY: the caller says so.
        let Some(header) = (unsafe { header(umad) }) else { return failed(libc::EINVAL) };
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= DATA_BYTES_MAX) else {
            return refused(libc::EINVAL);
        };
        header.agent_id = agentid as u32;
        header.timeout_ms = timeout_ms as u32;
        header.retries = retries as u32;
        // SAFETY: the caller says that so much can be read; the header above is not used any more.
        let bytes = unsafe { std::slice::from_raw_parts(umad.cast::<u8>(), HEADER_BYTES + length) };
        let Some((header, data)) = bytes.split_first_chunk() else { return refused(libc::EINVAL) };
        match Datagram::mad(header, data).and_then(|datagram| send(portid, &datagram)) {
            Ok(()) => 0,
            Err(error) => {
                tell("cannot send", &error);
                refused(number(&error))
            }
        }
    })
}

/// libibumad says EIO whatever it was, and `errno` the rest.
fn refused(error: c_int) -> c_int {
    set_errno(error);
    -libc::EIO
}

fn send(portid: c_int, datagram: &Datagram) -> io::Result<()> {
    let socket = borrow(portid)?;
    loop {
        match datagram.send(socket, SendFlags::empty()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => return sent,
        }
    }
}

/// Takes a MAD, and waits for it until the time is over, for ever when it is negative, not at all when it is 0. The
/// number of the agent that it is for, or an error; with -ENOSPC the MAD stays, and `length` says what it needs.
///
/// # Safety
/// `umad` is a buffer with room for a header and `*length` bytes after it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn umad_recv(
    portid: c_int,
    umad: *mut c_void,
    length: *mut c_int,
    timeout_ms: c_int,
) -> c_int {
    set_errno(0);
    if umad.is_null() || length.is_null() {
        return failed(libc::EINVAL);
    }
    loop {
        if timeout_ms != 0 {
            let waited = ready(portid, timeout_ms);
            if waited < 0 {
                if errno() == 0 {
                    set_errno(-waited);
                }
                return waited;
            }
        }
        // SAFETY: the caller says so.
        let taken = guard(-libc::EIO, || unsafe { take(portid, umad, length) });
        if taken == -libc::EAGAIN && timeout_ms < 0 {
            // Another thread was quicker.
            continue;
        }
        if taken == -libc::ENODEV {
            // The agent is gone. Programs that ask for ever would fill their logs.
            if timeout_ms != 0 {
                pause(if timeout_ms < 0 { GONE_PAUSE_MS } else { timeout_ms.min(GONE_PAUSE_MS) });
            }
            return failed(libc::EIO);
        }
        return if taken < 0 { failed(-taken) } else { taken };
    }
}

/// Waits until there is something to take; 0, or an error.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn umad_poll(portid: c_int, timeout_ms: c_int) -> c_int {
    ready(portid, timeout_ms)
}

/// Nothing with a destructor may live here: a thread may be cancelled while it waits.
fn ready(portid: c_int, timeout_ms: c_int) -> c_int {
    match wait(portid, timeout_ms) {
        Waited::Ready => 0,
        Waited::TimedOut => -libc::ETIMEDOUT,
        Waited::Failed => -libc::EIO,
    }
}

/// Takes what is there, without waiting: the agent's number, -ENOSPC, -EAGAIN, -ENODEV when the agent has gone.
///
/// # Safety
/// `umad` is a buffer with room for a header and `*length` bytes after it.
unsafe fn take(portid: c_int, umad: *mut c_void, length: *mut c_int) -> c_int {
    // SAFETY: the caller says so.
    let Some(length) = (unsafe { length.as_mut() }) else { return -libc::EINVAL };
    let (Ok(socket), Ok(room)) = (borrow(portid), usize::try_from(*length)) else { return -libc::EINVAL };
    let mut preamble = [0; Preamble::SIZE];
    let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
    let needed = match receive(socket, &mut preamble, flags) {
        Ok(peeked) if peeked.bytes == 0 => return -libc::ENODEV,
        Ok(_) => match Preamble::decode(&preamble) {
            Ok(preamble) if preamble.is_mad() => preamble.length as usize,
            _ => return -libc::ENODEV,
        },
        Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => return -libc::ENODEV,
        Err(error) => return -number(&error),
    };
    let enough = needed <= room;
    if !enough {
        *length = c_int::try_from(needed).unwrap_or(c_int::MAX);
        if room < MAD_SIZE.min(needed) {
            return -libc::EINVAL;
        }
    }
    // SAFETY: the caller says that so much can be written, and no one else has it.
    let buffer = unsafe { std::slice::from_raw_parts_mut(umad.cast::<u8>(), HEADER_BYTES + room) };
    let flags = if enough { RecvFlags::DONTWAIT } else { flags };
    match fill(socket, buffer, flags) {
        Ok(Filled::Whole { agent, data }) if enough => {
            *length = c_int::try_from(data).unwrap_or(c_int::MAX);
            agent
        }
        // Only the first 256 bytes were copied, and nothing was taken.
        Ok(_) if !enough => -libc::ENOSPC,
        // A longer one than was looked at: two threads read one port. It is lost like a MAD on the way.
        Ok(_) => -libc::EIO,
        Err(error) => -number(&error),
    }
}

enum Filled {
    Whole { agent: c_int, data: usize },
    Part,
}

/// Receives, or looks at, one message and copies what there is room for.
fn fill(socket: BorrowedFd<'_>, buffer: &mut [u8], flags: RecvFlags) -> io::Result<Filled> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let mut bytes = [0; Datagram::MAD_BYTES_MAX];
    let received = receive(socket, &mut bytes, flags)?;
    let bytes = bytes.get(..received.bytes).ok_or_else(invalid)?;
    let preamble = Preamble::decode(bytes).map_err(|_| invalid())?;
    let (first, rest) = buffer.split_at_mut(bytes.len().saturating_sub(Preamble::SIZE).min(buffer.len()));
    first
        .copy_from_slice(bytes.get(Preamble::SIZE..).and_then(|b| b.get(..first.len())).ok_or_else(invalid)?);
    let agent = first.first_chunk().map(|id| i32::from_ne_bytes(*id)).ok_or_else(invalid)?;
    let data = preamble.length as usize;
    if data > MAD_SIZE {
        let room = HEADER_BYTES + data <= first.len() + rest.len();
        let Some(file) = received.file.filter(|_| room && !flags.contains(RecvFlags::PEEK)) else {
            return Ok(Filled::Part);
        };
        let whole = buffer.get_mut(HEADER_BYTES..HEADER_BYTES + data).ok_or_else(invalid)?;
        read_file(file, whole).map_err(io::Error::other)?;
    }
    Ok(Filled::Whole { agent, data })
}

fn borrow<'a>(portid: c_int) -> io::Result<BorrowedFd<'a>> {
    if portid < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: not -1, and used for no longer than a call; one that is closed is an error of the system's.
    Ok(unsafe { BorrowedFd::borrow_raw(portid) })
}
