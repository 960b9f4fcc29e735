//! Remote programs of libibumad: their datagrams come and go in frames of weft's own protocol.
//!
//! ```text
//!   program ─ SEQPACKET ─ weft shell ═ door, hub ═ frames ═▶ this ─ SEQPACKET ─ serve.rs
//! ```

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;
use weft_umad::user_mad::{Datagram, Incoming, REPLY_BYTES_MAX, flatten, receive, unflatten};
use weft_umad::{ClientMessage, Decoder, ServerMessage};

use super::serve::serve;
use crate::line::{ETOOMANYREFS, Line};
use crate::program::Program;
use crate::shared::Agent;
use crate::socket::watch;

const READ_BYTES: usize = 32 * 1024;
/// The pause before a file is passed on again.
const LATER: Duration = Duration::from_millis(10);

/// Serves a connection whose `first` message was libibumad's, until either side ends it. Says why, if the program is to blame.
pub(crate) async fn converse(
    agent: &Rc<Agent>,
    program: &Rc<Program>,
    decoder: &mut Decoder<ClientMessage>,
    first: Vec<u8>,
) -> Result<(), String> {
    let no_line = |error: io::Error| format!("no line to the port: {error}");
    let (line, end) = pair().map_err(no_line)?;
    let carried = carry(agent, program, decoder, end, VecDeque::from([first]));
    // Either drops its end of the line when it is over, which ends the other.
    tokio::join!(serve(agent.clone(), line), carried).1
}

/// The line, and its other end.
fn pair() -> io::Result<(Line, AsyncFd<OwnedFd>)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok((Line::new(near)?, watch(far, Interest::READABLE | Interest::WRITABLE)?))
}

/// Carries datagrams both ways. No more is read from either side than the other takes.
async fn carry(
    agent: &Rc<Agent>,
    program: &Rc<Program>,
    decoder: &mut Decoder<ClientMessage>,
    end: AsyncFd<OwnedFd>,
    mut waiting: VecDeque<Vec<u8>>,
) -> Result<(), String> {
    let (mut bytes, mut datagram) = (vec![0; READ_BYTES], vec![0; REPLY_BYTES_MAX]);
    take(decoder, &mut waiting)?;
    // A long one holds a descriptor, so one at a time is made.
    let mut front = None;
    while program.over().is_none() {
        if front.is_none()
            && let Some(flat) = waiting.pop_front()
        {
            front = Some(unflatten(flat).map_err(|error| error.to_string())?);
        }
        tokio::select! {
            read = program.read(&mut bytes), if front.is_none() => match read {
                Ok(count) if count > 0 => {
                    decoder.feed(bytes.get(..count).unwrap_or_default());
                    take(decoder, &mut waiting)?;
                }
                _ => return Ok(()),
            },
            sent = send(&end, &mut front), if front.is_some() => match sent {
                Ok(()) => front = None,
                Err(_) => return Ok(()),
            },
            taken = next(&end, &mut datagram), if program.has_room() => match taken {
                Ok(Incoming { bytes, truncated: false, file }) if bytes > 0 => {
                    let whole = datagram.get(..bytes).unwrap_or_default();
                    let flat = flatten(whole, file).map_err(|error| error.to_string())?;
                    agent.with_core(|core| core.say(program, &ServerMessage::User(flat)));
                }
                _ => return Ok(()),
            },
            () = program.unblocked() => program.flush(),
        }
    }
    Ok(())
}

/// Takes what has come whole.
fn take(decoder: &mut Decoder<ClientMessage>, waiting: &mut VecDeque<Vec<u8>>) -> Result<(), String> {
    while let Some(message) = decoder.next_message().map_err(|error| error.to_string())? {
        let ClientMessage::User(flat) = message else {
            return Err("this connection is libibumad's and takes nothing else".to_owned());
        };
        waiting.push_back(flat);
    }
    Ok(())
}

async fn send(end: &AsyncFd<OwnedFd>, datagram: &mut Option<Datagram>) -> io::Result<()> {
    let Some(datagram) = datagram else { return Ok(()) };
    loop {
        match end.async_io(Interest::WRITABLE, |socket| datagram.send(socket, SendFlags::DONTWAIT)).await {
            // Too many files are on their way in the system, of which nothing tells the end.
            Err(error) if error.raw_os_error() == Some(ETOOMANYREFS) => sleep(LATER).await,
            sent => return sent,
        }
    }
}

async fn next(end: &AsyncFd<OwnedFd>, buffer: &mut [u8]) -> io::Result<Incoming> {
    end.async_io(Interest::READABLE, |socket| receive(socket, buffer, RecvFlags::DONTWAIT)).await
}
