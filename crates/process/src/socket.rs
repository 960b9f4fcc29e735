//! A control socket in a laboratory's folder.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// A bound control socket; its file goes with it.
#[derive(Debug)]
pub struct Socket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
}

/// Listens there, for the owner alone. A file that an earlier process left gives way: whoever binds holds the process's
/// lock, so no other process listens.
///
/// # Errors
/// What the system says.
pub fn bind(path: &Path) -> io::Result<Socket> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    // As many as may be clients can come at once.
    rustix::net::listen(&listener, crate::CLIENTS_MAX as i32)?;
    Ok(Socket { listener, path: path.to_owned() })
}

impl Drop for Socket {
    fn drop(&mut self) {
        // If it stays, it goes with the laboratory's folder.
        let _ = fs::remove_file(&self.path);
    }
}
