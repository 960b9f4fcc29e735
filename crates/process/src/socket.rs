//! A control socket in a laboratory's folder.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// A bound control socket; its file goes with it.
#[derive(Debug)]
pub struct Socket {
    pub(crate) listener: UnixListener,
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
    rustix::net::listen(&listener, crate::CLIENTS_MAX as i32)?;
    fs::rename(&hidden, path)?;
    Ok(Socket { listener: UnixListener::from_std(listener)?, path: path.to_owned() })
}

impl Socket {
    /// The next client.
    ///
    /// # Errors
    /// What the system says, as without descriptors.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // If it stays, it goes with the laboratory's folder.
        let _ = fs::remove_file(&self.path);
    }
}
