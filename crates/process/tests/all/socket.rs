//! Clients at a socket are the owner and root.

use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::thread::{Uid, set_thread_uid};
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::Builder;
use weft_process::bind;

const STRANGER: u32 = 65_534;

/// Bytes that a client of a user gets: 1, or 0 when it is hung up on. A thread has its own user.
fn told(socket: PathBuf, uid: Option<u32>) -> std::thread::JoinHandle<usize> {
    std::thread::spawn(move || {
        if let Some(uid) = uid {
            set_thread_uid(Uid::from_raw(uid)).unwrap();
        }
        UnixStream::connect(socket).unwrap().read(&mut [0; 1]).unwrap_or(0)
    })
}

#[test]
fn a_stranger_who_reaches_the_socket_is_hung_up_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sm");
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = bind(&path).unwrap();
        // As in a folder that containers share: nothing but the socket itself keeps others out.
        let open = |path: &Path| std::fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        open(folder.path());
        open(&path);
        // Only root can be somebody else.
        let stranger =
            rustix::process::geteuid().is_root().then(|| told(path.clone(), Some(STRANGER)));
        // It comes first, and is not served.
        if let Some(stranger) = stranger {
            tokio::select! {
                accepted = socket.accept() => panic!("{accepted:?}"),
                told = tokio::task::spawn_blocking(|| stranger.join().unwrap()) => assert_eq!(told.unwrap(), 0),
            }
        }
        let owner = told(path.clone(), None);
        socket.accept().await.unwrap().write_all(b"x").await.unwrap();
        assert_eq!(tokio::task::spawn_blocking(|| owner.join().unwrap()).await.unwrap(), 1);
    });
}
