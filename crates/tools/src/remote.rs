//! Programs at a remote node: datagrams at libibumad's socket here go to the agent in frames.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept, shutdown};
use rustix::process::{Pid, Signal, kill_process};
use weft_bundle::folder::LabFolder;
use weft_lab::signals::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, Signals};
use weft_process::{poll_for, readable};
use weft_umad::user_mad::{
    FromClient, REQUEST_BYTES_MAX, Reply, Request, decode_client, flatten, listen, receive, unflatten,
};
use weft_umad::{ClientMessage, Decoder, ServerMessage, encode_into};

/// Connections of programs at the same time; further ones are hung up on. A hub passes on as many of one identity.
const LINES_MAX: usize = 16;
const READ_BYTES: usize = 32 * 1024;
/// Linux's number for what is not done here.
const EOPNOTSUPP: u32 = 95;

/// Runs a program to its end, which is this process's end too: the way to the laboratory is in this process. Signals that would end
/// this process are for the program.
pub(crate) fn run(mut command: Command) -> io::Result<ExitCode> {
    // The program gets these two from the terminal as well.
    let _from_terminal = Signals::watch(&[SIGINT, SIGQUIT]).map_err(io::Error::other)?;
    let ends = [(SIGTERM, Signal::TERM), (SIGHUP, Signal::HUP)];
    let watched = ends.map(|(number, signal)| Signals::watch(&[number]).map(|watched| (watched, signal)));
    let mut program = command.spawn()?;
    let id = Pid::from_child(&program);
    for watched in watched {
        let (mut watched, signal) = watched.map_err(io::Error::other)?;
        let pass_on = move || {
            while readable(&watched, None).is_ok() {
                if watched.arrived() {
                    // It may have ended by now.
                    let _ = kill_process(id, signal);
                }
            }
        };
        thread::Builder::new().spawn(pass_on)?;
    }
    let status = program.wait()?;
    let killed = || std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    let code = status.code().or_else(killed).and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Where programs connect to, as they do to an agent of their own machine. The file goes with this.
#[derive(Debug)]
pub(crate) struct Way(PathBuf);

impl Way {
    pub(crate) fn socket(&self) -> &Path {
        &self.0
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        // One that stays is cleared with its folder.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens in the folder, for this process's own program alone, until the process ends.
pub(crate) fn serve(folder: &LabFolder, agent: &str) -> anyhow::Result<Way> {
    let way = Way(folder.umad_socket(&format!("s{}", std::process::id())));
    let socket = way.socket();
    let listener = listen(socket, SocketFlags::empty())
        .with_context(|| format!("cannot listen at {}", socket.display()))?;
    let (lab, agent) = (folder.clone(), folder.agent_socket(agent));
    thread::Builder::new()
        .name("programs".into())
        .spawn(move || accept_all(&lab, &listener, &agent))
        .context("cannot start a thread")?;
    Ok(way)
}

fn accept_all(lab: &LabFolder, listener: &OwnedFd, agent: &Path) {
    let lines = Arc::new(AtomicUsize::new(0));
    loop {
        match accept(listener) {
            Ok(line) if weft_process::is_welcome(&line) && lines.load(Ordering::Relaxed) < LINES_MAX => {
                lines.fetch_add(1, Ordering::Relaxed);
                let (counted, lab, agent) = (lines.clone(), lab.clone(), agent.to_owned());
                let carry = move || {
                    // Both ends see that it ends, but not why.
                    if let Err(error) = carry(&lab, &line, &agent) {
                        lab.say(&format!("a program's connection to the agent has ended: {error}"));
                    }
                    counted.fetch_sub(1, Ordering::Relaxed);
                };
                if thread::Builder::new().spawn(carry).is_err() {
                    lines.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Ok(_) | Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
            // Out of descriptors: the reason may pass, and trying at once again would spin.
            Err(_) => drop(poll_for(&mut [], Some(Duration::from_millis(100)))),
        }
    }
}

/// Carries one connection both ways until either side ends it.
fn carry(lab: &LabFolder, line: &OwnedFd, agent: &Path) -> io::Result<()> {
    let agent = UnixStream::connect(agent)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = from_agent(lab, &agent, line);
            // The other direction may wait for the program.
            let _ = shutdown(line, rustix::net::Shutdown::Both);
        });
        let carried = to_agent(line, &agent);
        let _ = agent.shutdown(Shutdown::Both);
        carried
    })
}

fn to_agent(line: &OwnedFd, mut agent: &UnixStream) -> io::Result<()> {
    let (mut buffer, mut frame) = ([0; REQUEST_BYTES_MAX], Vec::new());
    loop {
        let incoming = match receive(line, &mut buffer, RecvFlags::empty()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            incoming => incoming?,
        };
        let bytes = buffer.get(..incoming.bytes).filter(|bytes| !bytes.is_empty() && !incoming.truncated);
        let Some(bytes) = bytes else { return Ok(()) };
        // The file that makes a subnet manager of a program is on the agent's machine.
        if incoming.file.is_none()
            && matches!(decode_client(bytes, None), Ok(FromClient::Request(Request::Issm { .. })))
        {
            unflatten(Reply::Failed(EOPNOTSUPP).encode())?.send(line, SendFlags::empty())?;
            continue;
        }
        let flat = flatten(bytes, incoming.file).map_err(io::Error::other)?;
        frame.clear();
        encode_into(&ClientMessage::User(flat), &mut frame).map_err(io::Error::other)?;
        agent.write_all(&frame)?;
    }
}

fn from_agent(lab: &LabFolder, mut agent: &UnixStream, line: &OwnedFd) -> io::Result<()> {
    let (mut buffer, mut decoder) = (vec![0; READ_BYTES], Decoder::new());
    loop {
        let count = match agent.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        decoder.feed(buffer.get(..count).unwrap_or_default());
        while let Some(message) = decoder.next_message().map_err(io::Error::other)? {
            match message {
                ServerMessage::User(flat) => unflatten(flat)?.send(line, SendFlags::empty())?,
                ServerMessage::Refused { reason } => {
                    lab.say(&format!("the agent refuses the program: {reason}"));
                    return Ok(());
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }
}
