//! Accepting connections and reading them.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use rustix::net::{SocketFlags, accept_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weft_process::{Crowd, Crowded, Seat, next_client};
use weft_umad::user_mad::{self, FromClient, REQUEST_BYTES_MAX, Request, decode_client};

use super::issm;
use crate::core::Core;
use crate::counter::Counter;
use crate::line::Line;
use crate::shared::Agent;
use crate::socket::watch;

/// Connections at the same time, and those of one process.
const LINES_MAX: usize = 2560;
const LINES_OF_ONE_MAX: usize = 2048;
/// Datagrams of one connection before the others have their turn.
const TURN_DATAGRAMS: usize = 64;
/// Long messages weigh more: a turn ends after this much of them.
const TURN_BYTES: usize = 1 << 20;

/// Listens where libibumad's stand-in connects to.
pub(crate) fn listen(path: &Path) -> io::Result<AsyncFd<OwnedFd>> {
    watch(user_mad::listen(path, SocketFlags::NONBLOCK)?, Interest::READABLE)
}

/// Accepts connections for ever.
pub(crate) async fn accept(agent: Rc<Agent>, listener: AsyncFd<OwnedFd>) {
    let mut lines = tokio::task::JoinSet::new();
    let crowd = Crowd::new(LINES_MAX, LINES_OF_ONE_MAX);
    loop {
        match next_client(async || seated(&crowd, accept_one(&listener).await?), &mut lines).await {
            Ok((seat, line)) => {
                let agent = agent.clone();
                lines.spawn_local(async move {
                    serve(agent, line).await;
                    drop(seat);
                });
            }
            Err(why) => agent.with_core(|core| core.recorder.turn_away(why)),
        }
    }
}

/// A connection with its place, if there is one.
fn seated(crowd: &Crowd, accepted: OwnedFd) -> io::Result<Result<(Seat, Line), Crowded>> {
    match crowd.enter(&accepted) {
        Ok(seat) => Line::new(accepted).map(|line| Ok((seat, line))),
        Err(why) => Ok(Err(why)),
    }
}

async fn accept_one(listener: &AsyncFd<OwnedFd>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    loop {
        let mut ready = listener.readable().await?;
        match ready.try_io(|listener| Ok(accept_with(listener, flags)?)) {
            Ok(Ok(accepted)) if !weft_process::is_welcome(&accepted) => {}
            Ok(accepted) => return accepted,
            Err(_would_block) => {}
        }
    }
}

/// What is to be done with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Wait,
    /// There may be more to read.
    GoOn,
    End,
}

/// Serves one connection until either side ends it.
pub(super) async fn serve(agent: Rc<Agent>, line: Line) {
    let line = Rc::new(line);
    let mut buffer = [0; REQUEST_BYTES_MAX];
    loop {
        tokio::select! {
            ready = line.readable() => {
                let mut issm = None;
                let next = match ready {
                    Ok(()) => agent.with_core(|core| take(core, &line, &mut buffer, &mut issm)),
                    Err(_) => Next::End,
                };
                if let Some(request) = issm {
                    let reply = issm::answer(&agent, &request);
                    agent.with_core(|core| core.user_answer(&line, &reply));
                }
                match next {
                    Next::Wait => {}
                    // A program that never stops writing must not keep the links waiting.
                    Next::GoOn => tokio::task::yield_now().await,
                    Next::End => break,
                }
            }
            () = line.unblocked() => line.flush(),
        }
    }
    agent.with_core(|core| core.user_gone(&line));
}

/// Takes what the program sent, as much as a turn allows. A question for the issm file is left to be answered
/// outside, since a task belongs to each of those.
fn take(
    core: &mut Core,
    line: &Rc<Line>,
    buffer: &mut [u8; REQUEST_BYTES_MAX],
    issm: &mut Option<Request>,
) -> Next {
    let mut data_bytes = 0;
    for _ in 0..TURN_DATAGRAMS {
        if data_bytes > TURN_BYTES {
            return Next::GoOn;
        }
        let incoming = match line.receive(buffer) {
            Ok(Some(incoming)) if incoming.bytes > 0 => incoming,
            Ok(None) => return Next::Wait,
            _ => return Next::End,
        };
        let bytes = buffer.get(..incoming.bytes).filter(|_| !incoming.truncated).unwrap_or_default();
        // No one sends before the port is open, so no file is read for it.
        let file = incoming.file.filter(|_| line.open().is_some());
        match decode_client(bytes, file) {
            Ok(FromClient::Mad { header, data }) if line.open().is_some() => {
                data_bytes += data.len();
                core.user_sends(line, &header, data);
            }
            Ok(FromClient::Request(request @ Request::Issm { .. })) => {
                *issm = Some(request);
                return Next::GoOn;
            }
            Ok(FromClient::Request(request)) => {
                if let Some(reply) = core.user_request(line, &request) {
                    core.user_answer(line, &reply);
                }
            }
            Ok(FromClient::Mad { .. }) | Err(_) => {
                core.recorder.count(Counter::UmadMessagesMalformed);
                return Next::End;
            }
        }
    }
    Next::GoOn
}
