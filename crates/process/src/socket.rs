//! A control socket in a laboratory's folder.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::limits::CLIENTS_MAX;

/// A bound control socket; its file goes with it.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

/// Listens there, for the owner alone. The file appears when the socket takes connections: it listens under a name that
/// begins with a dot first. What an earlier process left gives way: whoever binds holds the process's lock, so no other
/// process listens.
///
/// Needs a tokio runtime.
///
/// # Errors
/// What the system says.
pub fn bind(path: &Path) -> io::Result<Socket> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let hidden = path.with_file_name(format!(".{name}"));
    match fs::remove_file(&hidden) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(&hidden)?;
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    // As many as may be clients can come at once.
    rustix::net::listen(&listener, CLIENTS_MAX as i32)?;
    fs::rename(&hidden, path)?;
    Ok(Socket { listener: UnixListener::from_std(listener)?, path: path.to_owned() })
}

/// The next client of a socket; conversations that have ended are forgotten meanwhile.
pub async fn next_client<T>(accept: impl AsyncFn() -> io::Result<T>, conversations: &mut JoinSet<()>) -> T {
    loop {
        tokio::select! {
            accepted = accept() => match accepted {
                Ok(client) => return client,
                // Out of descriptors: the reason may pass, and trying at once again would spin.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = conversations.join_next() => {}
        }
    }
}

impl Socket {
    /// The next client: a process of the owner's, or of root's. The folder's mode and the file's keep others out where they are;
    /// where a folder is shared between containers, or opened by mistake, the kernel tells who connects, and whoever else it is
    /// is hung up on.
    ///
    /// # Errors
    /// What the system says, as without descriptors.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if is_welcome(&stream) {
                return Ok(stream);
            }
        }
    }
}

/// Whether the process at the other end of a Unix socket is the owner's or root's. One that is not is written into the log.
pub fn is_welcome(stream: impl AsFd) -> bool {
    // A client that has left by now has no name any more. Not rustix's, which takes no process without a number, as one of another
    // container is here.
    let Ok(peer) = getsockopt(&stream, PeerCredentials) else { return false };
    let (client, own) = (peer.uid(), rustix::process::geteuid().as_raw());
    let is_welcome = may_enter(client, own);
    if !is_welcome {
        tracing::warn!(uid = client, "closed a connection from another user");
    }
    is_welcome
}

/// Whether a process of this user may be a client of one of that user.
fn may_enter(client: u32, own: u32) -> bool {
    client == own || client == 0
}

impl Drop for Socket {
    fn drop(&mut self) {
        // If it stays, it goes with the laboratory's folder.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_and_root_are_welcome() {
        assert!(may_enter(1000, 1000) && may_enter(0, 1000) && may_enter(0, 0));
        assert!(!may_enter(1001, 1000) && !may_enter(1000, 0));
    }
}
