//! The configuration of a laboratory's hubs, and the mark that its start is over.

use std::net::SocketAddr;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_control::hub::RestartPolicy;

use crate::folder::{self, LabFile, LabFolder};
use crate::input;

/// `hub.json`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct HubConfig {
    /// Which processes are started again.
    pub restart: RestartPolicy,
    /// Where it serves HTTP.
    pub http: Option<SocketAddr>,
    /// Where clients come in over QUIC.
    pub door: Option<SocketAddr>,
    /// Nodes that the subnet manager is to bring up while the laboratory starts.
    pub nodes: Option<u32>,
    /// How long `up` waits for a step of the start in which nothing moves.
    pub patience_ms: Option<u64>,
}

impl HubConfig {
    /// Reads it; without one nothing is started again.
    pub fn load(lab: &LabFolder) -> anyhow::Result<Self> {
        let path = lab.place(LabFile::HubConfig);
        let Some(text) = input::read_if_any(&path)? else { return Ok(Self::default()) };
        serde_json::from_slice(&text).with_context(|| format!("{} makes no sense", path.display()))
    }

    /// Writes it.
    pub fn store(&self, lab: &LabFolder) -> anyhow::Result<()> {
        folder::replace(&lab.place(LabFile::HubConfig), &serde_json::to_vec_pretty(self)?)
    }
}

/// Whether a hub has started the laboratory and waits for nothing more.
pub fn has_started(lab: &LabFolder) -> bool {
    lab.place(LabFile::Started).exists()
}

/// Forgets the note of a hub that may have died before it said so: the next one says it again, and starts what runs no second time.
pub fn forget_start(lab: &LabFolder) -> anyhow::Result<()> {
    folder::remove(&lab.place(LabFile::Started))
}

/// Takes note of that.
pub fn note_start(lab: &LabFolder) -> anyhow::Result<()> {
    folder::write(&lab.place(LabFile::Started), b"")
}
