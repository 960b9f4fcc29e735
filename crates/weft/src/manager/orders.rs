//! What the operator has a manager do while it runs: a datagram socket in the laboratory's folder, which its owner alone
//! can reach. One order is one datagram of JSON, and so is its outcome.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use rustix::fd::{AsFd, BorrowedFd};
use serde::{Deserialize, Serialize};
use weft_sm::{Instructed, Instruction};
use weft_wire::Guid;

use crate::failure::Failure;
use crate::lab::process::readable;

/// The longest order or outcome, in bytes.
const BYTES_MAX: usize = 1024;

/// An order to the master among subnet managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The port of the manager to command.
    pub(crate) guid: Guid,
    /// What it is to do.
    pub(crate) instruction: Instruction,
}

/// A bound socket; its file goes with it.
#[derive(Debug)]
pub(crate) struct Orders {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Orders {
    /// Listens there. What is left of an earlier process gives way.
    pub(crate) fn listen(path: &Path) -> anyhow::Result<Self> {
        let _ = std::fs::remove_file(path);
        let listen = || {
            let socket = UnixDatagram::bind(path)?;
            socket.set_nonblocking(true)?;
            Ok::<_, std::io::Error>(socket)
        };
        let socket = listen().with_context(|| format!("cannot listen on {}", path.display()))?;
        Ok(Self { socket, path: path.to_owned() })
    }

    /// The next order, and where its outcome is to be sent. What makes no sense is left out.
    pub(crate) fn next(&self) -> Option<(Order, PathBuf)> {
        let mut bytes = [0; BYTES_MAX];
        while let Ok((length, from)) = self.socket.recv_from(&mut bytes) {
            let order = serde_json::from_slice(bytes.get(..length).unwrap_or_default());
            if let (Ok(order), Some(from)) = (order, from.as_pathname()) {
                return Some((order, from.to_owned()));
            }
        }
        None
    }

    /// Gives an order to the manager that listens at `to`, and waits for its outcome.
    ///
    /// # Errors
    /// When no process listens there, or none answers within `patience`.
    pub(crate) fn give(&self, to: &Path, order: Order, patience: Duration) -> anyhow::Result<Instructed> {
        let silent =
            || Failure::new("the subnet manager does not answer").hint("`weft status` tells how it is");
        let order = serde_json::to_vec(&order)?;
        self.socket.send_to(&order, to).map_err(|_| silent())?;
        let mut bytes = [0; BYTES_MAX];
        if !readable(&self.socket, Some(patience))? {
            return Err(silent().into());
        }
        let length = self.socket.recv(&mut bytes).context("cannot read the outcome")?;
        Ok(serde_json::from_slice(bytes.get(..length).unwrap_or_default())?)
    }
}

/// Tells the outcome to the client that gave the order, if it is still there.
pub(crate) fn tell_outcome(to: &Path, outcome: Instructed) {
    let send = || UnixDatagram::unbound()?.send_to(&serde_json::to_vec(&outcome)?, to);
    if let Err(error) = send() {
        tracing::warn!(%error, "the client of an order has gone; its outcome is dropped");
    }
}

impl AsFd for Orders {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        // If it stays, it goes with the laboratory's folder.
        let _ = std::fs::remove_file(&self.path);
    }
}
