//! Laboratories over several hosts, without containers: each host's part is a laboratory of its own there, with a hub that starts
//! and restarts its processes; a hub here watches all processes over the network, and verbs ask it.
//!
//! ```text
//!   weft up --hosts a,b ──ssh──▶ a: weft up --part a -      hub, a0000 …, sm
//!          │            ──ssh──▶ b: weft up --part b -      hub, a0004 …
//!       weft hub ◀══ QUIC ══▶ agents and managers of a and b
//! ```

mod errand;
mod identities;
mod ssh;
mod start;

use std::io::ErrorKind;

use anyhow::Context;
use serde::{Deserialize, Serialize};

pub use errand::{ended_on, run_on};
pub use identities::{hand_over, take};
pub use ssh::Ssh;
pub use start::{Asked, with};

use crate::hub_status::pids;
use weft_bundle::failure::Failure;
use weft_bundle::folder;
use weft_bundle::folder::{LabFile, LabFolder};

/// `hosts.json`: where the processes of a laboratory run that was started from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// How hosts are reached.
    pub ssh: Ssh,
    /// The hosts.
    pub hosts: Vec<String>,
}

impl Spread {
    /// Of a laboratory; `None` where all its processes run here.
    pub fn load(lab: &LabFolder) -> anyhow::Result<Option<Self>> {
        let path = lab.place(LabFile::Hosts);
        let text = match weft_bundle::input::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        serde_json::from_slice(&text).map(Some).with_context(|| format!("{} is invalid", path.display()))
    }

    fn store(&self, lab: &LabFolder) -> anyhow::Result<()> {
        folder::replace(&lab.place(LabFile::Hosts), &serde_json::to_vec_pretty(self)?)
    }
}

/// The laboratory as its verbs see it: with the processes that run, where that is on other hosts.
pub fn seen(lab: LabFolder) -> anyhow::Result<LabFolder> {
    if Spread::load(&lab)?.is_none() {
        return Ok(lab);
    }
    let pids = pids(&lab)?.ok_or_else(|| {
        Failure::new(format!("the hub of `{}` does not answer, and only it reaches the hosts", lab.name()))
            .hint(format!("start another with `weft hub --detached --lab {}`", lab.name()))
    })?;
    Ok(lab.elsewhere(pids))
}
