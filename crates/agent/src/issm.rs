//! The files that make a subnet manager of whoever holds them open.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::task::JoinHandle;
use weft_node::Client;
use weft_wire::{Guid, PortNum};

/// The files that programs have asked for.
#[derive(Debug)]
pub(crate) struct IssmFiles {
    /// What their paths begin with.
    pub(crate) prefix: OsString,
    pub(crate) files: BTreeMap<(Guid, PortNum), IssmFile>,
}

/// The file of a port.
#[derive(Debug)]
pub(crate) struct IssmFile {
    pub(crate) path: PathBuf,
    /// The attachment that stands for whoever holds it open.
    pub(crate) manager: Option<Client>,
    pub(crate) task: JoinHandle<()>,
}

impl Drop for IssmFile {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

impl IssmFiles {
    /// Files beside the socket where programs attach.
    pub(crate) fn new(attach_socket: &Path) -> Self {
        Self { prefix: attach_socket.into(), files: BTreeMap::new() }
    }

    /// The files go with the agent.
    pub(crate) fn clear(&mut self) {
        self.files.clear();
    }
}
