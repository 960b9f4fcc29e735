//! The file that makes a subnet manager of whoever holds it open.
//!
//! A program opens it for reading, as it opens the kernel's `/dev/infiniband/issmN`, and keeps it open as long as it
//! manages. Here it is a FIFO whose other end is the agent's: that end is in error as long as no one reads. When the
//! last reader goes, however it ends, the system says so; that a first one has come, inotify says.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weft_umad::user_mad::{Reply, Request};
use weft_wire::{Guid, PortNum};

use crate::issm::IssmFile;
use crate::shared::Agent;
use crate::socket::watch;

/// Numbers of Linux.
const EINVAL: u32 = 22;
const ENODEV: u32 = 19;
const EIO: u32 = 5;

/// Tells where the file of a port is; makes it when it is asked for first.
pub(super) fn answer(agent: &Rc<Agent>, request: &Request) -> Reply {
    let Request::Issm { node, port } = *request else { return Reply::Failed(EINVAL) };
    let known = agent.with_core(|core| {
        core.user_place(node, port).ok_or(ENODEV)?;
        Ok(core.issm.files.get(&(node, port)).map(|file| file.path.clone()))
    });
    let path = match known {
        Err(error) => return Reply::Failed(error),
        Ok(Some(path)) => path,
        Ok(None) => match make(agent, node, port) {
            Ok(path) => path,
            Err(error) => {
                tracing::warn!(%node, %port, %error, "no issm file can be made");
                return Reply::Failed(error.raw_os_error().and_then(|e| e.try_into().ok()).unwrap_or(EIO));
            }
        },
    };
    Reply::Issm(path.into_os_string().into_vec())
}

fn make(agent: &Rc<Agent>, node: Guid, port: PortNum) -> io::Result<PathBuf> {
    let mut path = agent.with_core(|core| core.issm.prefix.clone());
    path.push(format!(".issm-{:016x}-{port}", node.0));
    let path = PathBuf::from(path);
    // What is there is left from a process that was killed.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let flags = OFlags::CLOEXEC | OFlags::NONBLOCK;
    // Only with a reader can it be opened for writing.
    let reader = open(&path, flags | OFlags::RDWR, Mode::empty())?;
    let writer = open(&path, flags | OFlags::WRONLY, Mode::empty())?;
    drop(reader);
    let opened = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&opened, &path, WatchFlags::OPEN)?;
    let writer = watch(writer, Interest::ERROR)?;
    let opened = watch(opened, Interest::READABLE)?;
    let task = tokio::task::spawn_local(attend(Rc::downgrade(agent), node, port, writer, opened));
    let file = IssmFile { path: path.clone(), manager: None, task };
    agent.with_core(|core| core.issm.files.insert((node, port), file));
    Ok(path)
}

/// Keeps the port's IsSM bit as the file says.
async fn attend(
    agent: Weak<Agent>,
    node: Guid,
    port: PortNum,
    writer: AsyncFd<OwnedFd>,
    opened: AsyncFd<OwnedFd>,
) {
    loop {
        let waited = tokio::select! {
            left = writer.ready(Interest::ERROR) => left.map(|mut ready| ready.clear_ready()),
            came = opened.readable() => came.map(|mut ready| {
                let mut events = [0; 4096];
                while rustix::io::read(opened.get_ref(), &mut events).is_ok_and(|bytes| bytes > 0) {}
                ready.clear_ready();
            }),
        };
        let (Ok(()), Some(agent)) = (waited, agent.upgrade()) else { return };
        let held = is_held(writer.get_ref());
        agent.with_core(|core| core.issm_changed(node, port, held));
    }
}

/// Whether somebody has the file open for reading.
fn is_held(writer: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(writer, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&at_once)).is_ok() && !watched[0].revents().contains(PollFlags::ERR)
}
