//! A hub's way to remote processes: as long as one answers, its sockets are in the hub's folder.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quinn::ConnectionError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{sleep, timeout};
use weft_bundle::folder::LabFolder;
use weft_bundle::identity::papers::Papers;
use weft_control::{Request, RequestLine};
use weft_link::{Call, Credentials, Line, Peer, PeerAddress, Protocol, VisitorStream, find};
use weft_process::{Crowd, DoorCounts, Socket, bind};

use crate::door::{FIRST_WORD, RELAYED_MAX};

/// Processes that are dialled at the same time.
const DIALS_MAX: usize = 16;
/// Conversations with one process; further ones are hung up on. What a door passes on for viewers and for operators leaves some for
/// the hub itself, and one process of this machine, the hub included, leaves some for others.
const CONVERSATIONS_MAX: usize = 2 * RELAYED_MAX + 32;
const CONVERSATIONS_OF_ONE_MAX: usize = 2 * RELAYED_MAX + 16;
/// How long a process has to take a connection.
const DIAL_PATIENCE: Duration = Duration::from_secs(5);
/// How long a process that is not heard any more has to answer once again before its sockets go.
const AGAIN_PATIENCE: Duration = Duration::from_secs(1);
/// The pause after a failure, doubled each time.
const PAUSES: std::ops::Range<Duration> = Duration::from_millis(100)..Duration::from_secs(2);

/// A remote process.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Its name.
    pub name: String,
    /// Where it listens; resolved at each dial.
    pub address: PeerAddress,
    /// What its certificate names.
    pub peer: Peer,
}

impl Remote {
    /// Whether it is an agent.
    pub fn is_agent(&self) -> bool {
        matches!(self.peer, Peer::Node(_))
    }
}

/// Remote processes, and the way to them.
#[derive(Debug)]
pub struct Far {
    /// The folder for their sockets.
    pub folder: LabFolder,
    /// What this process proves itself with.
    pub credentials: Credentials,
    /// The processes, and where they are.
    pub remotes: Vec<Remote>,
    /// Counts conversations that were hung up on.
    pub counts: DoorCounts,
    /// What all calls to them come from.
    pub line: Line,
}

impl Far {
    /// The way to these processes, with the identity of one that has these papers.
    pub fn of(folder: &LabFolder, papers: &Papers, remotes: Vec<Remote>) -> Self {
        let line = Line::for_calls(remotes.len());
        let (folder, credentials) = (folder.clone(), papers.credentials().clone());
        Self { folder, credentials, remotes, counts: DoorCounts::default(), line }
    }
}

/// Keeps the sockets of all these processes in the folder. Needs a local runtime.
pub(crate) fn begin(mut far: Far) {
    let turns = Arc::new(Semaphore::new(DIALS_MAX));
    let remotes = std::mem::take(&mut far.remotes);
    let far = Rc::new(far);
    for remote in remotes {
        let (far, turns) = (far.clone(), turns.clone());
        spawn_local(async move {
            let mut pause = PAUSES.start;
            loop {
                match dial(&remote, &far, &turns).await {
                    Some(answering) => {
                        pause = PAUSES.start;
                        stand_in(&remote, &far, answering, &turns).await;
                    }
                    None => pause = (pause * 2).min(PAUSES.end),
                }
                sleep(pause).await;
            }
        });
    }
}

/// A process that has answered.
struct Answering {
    call: Call,
    /// The conversation in which it has: it stays open, as a client without one is sent away.
    _greeting: VisitorStream,
    address: SocketAddr,
}

async fn dial(remote: &Remote, far: &Far, turns: &Semaphore) -> Option<Answering> {
    let _turn = turns.acquire().await.ok()?;
    let dialled = async {
        let address = find(&remote.address).await?;
        Call::watch_on(&far.line, address, &remote.peer, &far.credentials).await.map(|call| (call, address))
    };
    let (call, address) = timeout(DIAL_PATIENCE, dialled).await.ok()?.ok()?;
    let mut greeting = call.stream().await.ok()?;
    greeting.write_all(RequestLine { id: 1, request: Request::Hello }.to_line().as_bytes()).await.ok()?;
    let mut first = [0; 1];
    timeout(FIRST_WORD, greeting.read_exact(&mut first)).await.ok()?.ok()?;
    Some(Answering { call, _greeting: greeting, address })
}

/// The process again when the connection to it has ended and it has not said that it leaves: one that was killed and is back may have
/// clients in the new life before the old life's connection is reset, and these stay.
async fn again(remote: &Remote, far: &Far, turns: &Semaphore, ended: ConnectionError) -> Option<Answering> {
    match ended {
        ConnectionError::Reset | ConnectionError::TimedOut => {
            timeout(AGAIN_PATIENCE, dial(remote, far, turns)).await.ok()?
        }
        _ => None,
    }
}

/// Serves the process's sockets until it is gone.
async fn stand_in(remote: &Remote, far: &Rc<Far>, mut answering: Answering, turns: &Semaphore) {
    let Far { folder, counts, .. } = far.as_ref();
    let path = folder.agent_socket(&remote.name);
    let sockets = bind(&folder.control(&remote.name))
        .and_then(|control| Ok((control, remote.is_agent().then(|| bind(&path)).transpose()?)));
    let (control, mads) = match sockets {
        Ok(sockets) => sockets,
        Err(error) => {
            tracing::warn!(process = remote.name, %error, "cannot bind its sockets here");
            return answering.call.end().await;
        }
    };
    let mut conversations = JoinSet::new();
    let crowd = Crowd::new(CONVERSATIONS_MAX, CONVERSATIONS_OF_ONE_MAX);
    loop {
        let (accepted, protocol) = tokio::select! {
            ended = answering.call.closed() => match again(remote, far, turns, ended).await {
                Some(next) => {
                    answering = next;
                    continue;
                }
                None => return,
            },
            accepted = control.accept() => (accepted, Protocol::Control),
            accepted = accept(mads.as_ref()) => (accepted, Protocol::Mad),
            Some(_) = conversations.join_next() => continue,
        };
        match accepted {
            Ok(stream) => match crowd.enter(&stream) {
                Ok(seat) => {
                    let (far, peer, address) = (far.clone(), remote.peer.clone(), answering.address);
                    conversations.spawn_local(async move {
                        converse(stream, far, address, &peer, protocol).await;
                        drop(seat);
                    });
                }
                Err(_) => count_refused(remote, counts),
            },
            // Out of descriptors: the reason may pass, and trying at once again would spin.
            Err(_) => sleep(PAUSES.start).await,
        }
    }
}

fn count_refused(remote: &Remote, counts: &DoorCounts) {
    counts.conversations_refused.inc();
    let count = counts.conversations_refused.get();
    if count.is_power_of_two() {
        tracing::warn!(process = remote.name, count, "a client too many is hung up on");
    }
}

async fn accept(socket: Option<&Socket>) -> io::Result<UnixStream> {
    match socket {
        Some(socket) => socket.accept().await,
        None => std::future::pending().await,
    }
}

async fn converse(mut near: UnixStream, far: Rc<Far>, address: SocketAddr, peer: &Peer, protocol: Protocol) {
    let Far { line, credentials, .. } = far.as_ref();
    let placed = match protocol {
        Protocol::Control => timeout(DIAL_PATIENCE, Call::watch_on(line, address, peer, credentials)).await,
        _ => timeout(DIAL_PATIENCE, Call::place_on(line, address, peer, credentials, protocol)).await,
    };
    let Ok(Ok(call)) = placed else { return };
    if let Ok(mut stream) = call.stream().await {
        // Both ends see that it ends.
        let _ = copy_bidirectional(&mut near, &mut stream).await;
    }
    call.end().await;
}
