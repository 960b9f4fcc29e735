//! A conversation with an agent for a program that waits on descriptors: a thread carries it between QUIC and a socket.
//!
//! ```text
//!   program ── socket pair ── thread ═ QUIC ═ agent
//! ```
//!
//! Bytes wait in the pair's buffers and in QUIC's windows, and in one buffer of the thread for each direction: an end
//! that does not read holds the other one up.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, BufReader, copy_buf};
use tokio::net::UnixStream as Half;
use tokio::time::timeout;
use weft_wire::Guid;

use crate::credentials::Credentials;
use crate::peer::PeerAddress;
use crate::visit::{Visit, VisitError, find, visit};
use crate::visitor::Protocol;

/// What the thread holds in each direction.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long either end has to take the other's last words.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// An agent as a client knows it.
#[derive(Clone, Debug)]
pub struct Destination {
    /// Where it listens. The name is resolved for each tunnel.
    pub address: PeerAddress,
    /// A node that its certificate names.
    pub node: Guid,
}

/// The thread that carries a conversation. Dropped, it ends the conversation and waits until the agent can know.
#[derive(Debug)]
pub struct Tunnel {
    near: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    reason: Arc<OnceLock<String>>,
}

impl Tunnel {
    /// Opens a conversation, and gives the stream that stands for it. The stream ends when the agent ends the
    /// conversation or is gone.
    ///
    /// # Errors
    /// Says what kept the two apart, after `patience` at the latest.
    pub fn open(
        to: &Destination,
        credentials: &Credentials,
        protocol: Protocol,
        patience: Duration,
    ) -> Result<(UnixStream, Self), VisitError> {
        let (near, far) = UnixStream::pair()?;
        far.set_nonblocking(true)?;
        let own = near.try_clone()?;
        let (sender, connected) = mpsc::channel();
        let reason = Arc::new(OnceLock::new());
        let (to, credentials, said) = (to.clone(), credentials.clone(), reason.clone());
        let thread = std::thread::Builder::new().name("tunnel".into()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(sender.send(Err(error.into()))),
            };
            runtime.block_on(async {
                let reached = timeout(patience, reach(&to, &credentials, protocol)).await;
                let silent = || VisitError::Silent { address: to.address.clone(), patience };
                let ends = reached
                    .unwrap_or_else(|_| Err(silent()))
                    .and_then(|visit| Ok((visit, Half::from_std(far)?)));
                match ends {
                    Err(error) => drop(sender.send(Err(error))),
                    Ok((visit, far)) => {
                        // Whoever opened the tunnel waits.
                        let _ = sender.send(Ok(()));
                        carry(visit, far, &said).await;
                    }
                }
            });
            // A resolver that waits for a server does not keep the thread.
            runtime.shutdown_background();
        })?;
        let tunnel = Self { near: Some(own), thread: Some(thread), reason };
        let gone = |_| VisitError::System(io::Error::other("the thread of the conversation has ended"));
        connected.recv().map_err(gone)??;
        Ok((near, tunnel))
    }

    /// Why the conversation has ended, in the agent's words or QUIC's; `None` while it goes on, and when the agent ended
    /// it without a reason.
    pub fn end_reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Leaves the thread to itself: it ends the conversation when the stream is closed.
    pub fn detach(mut self) {
        (self.near, self.thread) = (None, None);
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        // The thread sees the end of the pair. One that has ended already has closed it.
        let _ = self.near.take().map(|near| near.shutdown(Shutdown::Both));
        if let Some(thread) = self.thread.take() {
            // It ends by a panic at worst, which was reported.
            let _ = thread.join();
        }
    }
}

async fn reach(to: &Destination, credentials: &Credentials, protocol: Protocol) -> Result<Visit, VisitError> {
    visit(find(&to.address).await?, to.node, credentials, protocol).await
}

/// Carries bytes until either end has no more.
async fn carry(mut visit: Visit, mut far: Half, reason: &OnceLock<String>) {
    let (receive, send) = (&mut visit.receive, &mut visit.send);
    let (read, mut write) = far.split();
    let mut from_program = BufReader::with_capacity(BUFFER_BYTES, read);
    let mut from_agent = BufReader::with_capacity(BUFFER_BYTES, receive);
    let program_left = {
        let mut agent_speaks = pin!(copy_buf(&mut from_agent, &mut write));
        tokio::select! {
            _ = &mut agent_speaks => false,
            said = copy_buf(&mut from_program, send) => {
                if said.is_err() {
                    // An agent that takes no more has said why, or its connection has broken.
                    let _ = timeout(LAST_WORDS, agent_speaks).await;
                }
                said.is_ok()
            }
        }
    };
    if program_left {
        // Either fails only when the connection has broken.
        let _ = visit.send.shutdown().await;
        let _ = timeout(LAST_WORDS, visit.send.stopped()).await;
    } else {
        // The reason may come a packet after the end of the stream.
        let _ = timeout(LAST_WORDS, visit.closed()).await;
    }
    if let Some(error) = visit.end_reason() {
        let _ = reason.set(error.to_string());
    }
    drop(far);
    visit.end().await;
}
