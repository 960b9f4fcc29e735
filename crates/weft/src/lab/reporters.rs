//! The launcher's socket: the laboratory's processes report here, and no one else.
//!
//! The kernel names the process at the other end of a Unix socket. A connection of a process that the launcher did not
//! start is closed unread; a process that sends nonsense loses its connection, and the laboratory runs on.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use anyhow::Context;
use weft_umad::launch::{self, FromLauncher, LineDecoder, ToLauncher};

use super::names::SM;

/// One reporting process.
#[derive(Debug)]
struct Connection {
    process: String,
    stream: UnixStream,
    decoder: LineDecoder,
}

/// The socket and the processes that report on it.
#[derive(Debug)]
pub(super) struct Reporters {
    listener: UnixListener,
    connections: BTreeMap<u64, Connection>,
    next_token: u64,
    refused: u64,
}

/// A connection that came.
pub(super) enum Caller {
    /// Of a process of the laboratory: to be watched under this token.
    Process(u64),
    /// Closed again: of this process, which the launcher did not start.
    Stranger(u32),
}

impl Reporters {
    /// Listens. Tokens of connections start at `first_token`.
    pub(super) fn listen(path: &Path, first_token: u64) -> anyhow::Result<Self> {
        let listener =
            UnixListener::bind(path).with_context(|| format!("cannot listen on {}", path.display()))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: BTreeMap::new(), next_token: first_token, refused: 0 })
    }

    /// What to watch for connections.
    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// What to watch for reports.
    pub(super) fn stream(&self, token: u64) -> Option<BorrowedFd<'_>> {
        self.connections.get(&token).map(|connection| connection.stream.as_fd())
    }

    /// Connections and reports refused since the start.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Hangs up on everybody.
    pub(super) fn hang_up(&mut self) {
        self.connections.clear();
    }

    /// Takes one connection; `None` when none waits. `name` tells the name of a process of the laboratory.
    pub(super) fn accept(
        &mut self,
        name: impl FnOnce(u32) -> Option<String>,
    ) -> std::io::Result<Option<Caller>> {
        let stream = loop {
            match self.listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(None),
                    // It hung up before it was taken.
                    ErrorKind::ConnectionAborted | ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        };
        let pid = peer(&stream)?;
        let Some(process) = name(pid) else {
            self.refused += 1;
            return Ok(Some(Caller::Stranger(pid)));
        };
        stream.set_nonblocking(true)?;
        let token = self.next_token;
        self.next_token += 1;
        self.connections.insert(token, Connection { process, stream, decoder: LineDecoder::new() });
        Ok(Some(Caller::Process(token)))
    }

    /// What a connection brought. One that ends, sends nonsense or speaks for another process is closed.
    pub(super) fn read(&mut self, token: u64) -> Vec<ToLauncher> {
        let mut messages = Vec::new();
        let Some(connection) = self.connections.get_mut(&token) else { return messages };
        let mut bytes = [0; 4096];
        let mut open = match connection.stream.read(&mut bytes) {
            Ok(count) => {
                connection.decoder.feed(bytes.get(..count).unwrap_or_default());
                count > 0
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        loop {
            match connection.decoder.next_message() {
                Ok(Some(message)) if speaker(&message) == connection.process => messages.push(message),
                Ok(None) => break,
                Ok(Some(_)) | Err(_) => {
                    self.refused += 1;
                    open = false;
                    break;
                }
            }
        }
        if !open {
            self.connections.remove(&token);
        }
        messages
    }

    /// Tells a process to go on. One that does not listen loses its connection; if it has ended, the launcher hears of
    /// that as its parent.
    pub(super) fn go(&mut self, token: u64) {
        let line = launch::line(&FromLauncher::Go);
        let told = self.connections.get_mut(&token).map(|to| to.stream.write_all(line.as_bytes()));
        if matches!(told, Some(Err(_))) {
            self.connections.remove(&token);
        }
    }
}

/// The process that a message is of, by its own word.
fn speaker(message: &ToLauncher) -> &str {
    match message {
        ToLauncher::Ready { agent, .. }
        | ToLauncher::Links { agent, .. }
        | ToLauncher::Failed { agent, .. } => agent,
        ToLauncher::Progress(_) | ToLauncher::SubnetUp(_) | ToLauncher::NotRouted { .. } => SM,
    }
}

/// The process at the other end of a connection, by the kernel's word.
pub(super) fn peer(stream: &UnixStream) -> std::io::Result<u32> {
    let credentials = rustix::net::sockopt::socket_peercred(stream)?;
    Ok(credentials.pid.as_raw_nonzero().get().cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket, a connection to it, and what became of that connection.
    fn called(name: Option<&str>) -> (tempfile::TempDir, Reporters, UnixStream, Caller) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("launch.sock");
        let mut reporters = Reporters::listen(&path, 3).unwrap();
        let stream = UnixStream::connect(&path).unwrap();
        let own = std::process::id();
        let caller = reporters.accept(|pid| name.filter(|_| pid == own).map(str::to_owned));
        (folder, reporters, stream, caller.unwrap().unwrap())
    }

    fn links(agent: &str) -> String {
        launch::line(&ToLauncher::Links { agent: agent.into(), up: 1, total: 2, to_dial: 0 })
    }

    #[test]
    fn a_process_reports_under_its_own_name() {
        let (_folder, mut reporters, mut stream, caller) = called(Some("a0001"));
        assert!(matches!(caller, Caller::Process(3)));
        stream.write_all(links("a0001").as_bytes()).unwrap();
        assert!(matches!(reporters.read(3).as_slice(), [ToLauncher::Links { up: 1, total: 2, .. }]));
        reporters.go(3);
        let mut told = [0; 64];
        assert!(stream.read(&mut told).unwrap() > 0);
        stream.write_all(links("a0002").as_bytes()).unwrap();
        assert!(reporters.read(3).is_empty());
        assert!((reporters.refused(), reporters.stream(3).is_none()) == (1, true));
    }

    #[test]
    fn a_stranger_is_hung_up_on() {
        let (_folder, mut reporters, mut stream, caller) = called(None);
        assert!(matches!(caller, Caller::Stranger(pid) if pid == std::process::id()));
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(reporters.refused(), 1);
        assert!(reporters.accept(|_| None).unwrap().is_none());
    }

    #[test]
    fn nonsense_ends_the_connection_and_nothing_else() {
        let long = vec![b'x'; launch::LINE_BYTES_MAX + 4096];
        for nonsense in [&b"\xff\xfe{}\n"[..], b"{\"type\":\"go\"}\n", b"\n", &long] {
            let (_folder, mut reporters, mut stream, _) = called(Some("a0001"));
            for piece in nonsense.chunks(4096) {
                // The last piece may come when the connection has ended already.
                let _ = stream.write_all(piece);
                assert!(reporters.read(3).is_empty());
            }
            assert!(reporters.stream(3).is_none());
            assert_eq!(reporters.refused(), 1);
        }
    }
}
