//! Recabling of a laboratory that runs: the draft, the orders to agents, and what is written down.
//!
//! ```text
//!   Draft ─▶ Change ─▶ journal ─▶ orders ─▶ agents/NAME.json, topology, lab.json ─▶ hub ─▶ done
//! ```
//!
//! The agents get their orders first, because one of them may refuse: then what was done is undone,
//! and nothing was written down. A change that is killed half-way leaves its journal, and the next
//! verb that recables finishes or drops it before it does anything else.

mod change;
mod cords;
mod draft;
mod journal;
mod learn;
mod orders;
mod remind;
mod revoke;

use anyhow::Context;
use change::Finished;
pub use change::{Change, Issue};
pub use draft::{Draft, NewNode};
use journal::{Journal, Unfinished};
pub use learn::Learner;
pub use orders::await_links;
use weft_bundle::failure::Failure;
use weft_bundle::folder::touch;
use weft_bundle::folder::{LabFile, LabFolder};
use weft_bundle::record::LabRecord;
use weft_control::agent::{PlacedCable, PortEnd};
use weft_process::lock::{LockError, ProcessLock};
use weft_topology::PortRef;

use crate::site;

/// The right to recable a laboratory, which one process has at a time. There is no lock for remote processes: clients in other places
/// know nothing of each other, and the hub writes down the orders that they have given.
pub struct Turn {
    folder: LabFolder,
    lock: Option<ProcessLock>,
}

/// Writes down the orders that a client of a laboratory's hub has given agents, as far as that is
/// new. The folder of a hub of remote processes has the cabling and nothing that agents read.
pub fn note(lab: &LabFolder, taken_out: &[[PortEnd; 2]], put_in: &[PlacedCable]) -> anyhow::Result<()> {
    let turn = Turn::now(lab)?;
    let fabric = weft_bundle::topology_file::load(&lab.bundle().topology())?;
    let place = |end: PortEnd| {
        let node = fabric.by_guid(end.node.0).with_context(|| format!("no node {}", end.node))?;
        anyhow::Ok(PortRef::new(node, end.port))
    };
    let mut draft = Draft::new(&turn, LabRecord::load(lab)?, fabric.clone());
    for [a, b] in taken_out {
        let (a, b) = (place(*a)?, place(*b)?);
        if draft.fabric().peer(a) == Some(b) {
            draft.take_out(a)?;
        }
    }
    for PlacedCable { ends: [a, b], delay_ns } in put_in {
        let (a, b) = (place(*a)?, place(*b)?);
        if draft.fabric().peer(a) != Some(b) {
            draft.put_in(a, b, *delay_ns)?;
        }
    }
    draft.finish(String::new()).note(&turn)
}

impl Turn {
    /// Waits for it, and finishes what another process has begun and not finished; says so.
    pub fn take(folder: &LabFolder) -> anyhow::Result<Self> {
        if !site::of(folder)?.has_agents_files() {
            return Ok(Self { folder: folder.clone(), lock: None });
        }
        let path = folder.place(LabFile::RecablingLock);
        touch(&path)?;
        let turn = Self { folder: folder.clone(), lock: Some(ProcessLock::wait(&path)?) };
        if let Some(Unfinished { stage, change }) = Journal::of(folder).read::<Change>()? {
            let what = change.what();
            folder.say(&match change.finish(folder, stage)? {
                Finished::Done => format!("finished an interrupted `{what}`"),
                Finished::Dropped(why) => format!("dropped an interrupted `{what}`: {why}"),
            });
        }
        Ok(turn)
    }

    /// Takes it if it is free and nothing is unfinished: a hub does not wait for a process that may wait for the hub.
    fn now(folder: &LabFolder) -> anyhow::Result<Self> {
        let path = folder.place(LabFile::RecablingLock);
        touch(&path)?;
        let lock = ProcessLock::take(&path).map_err(|error| match error {
            LockError::Held { .. } => Failure::new("the laboratory is being recabled where it runs").into(),
            error => anyhow::Error::from(error),
        })?;
        let turn = Self { folder: folder.clone(), lock: Some(lock) };
        match Journal::of(folder).read::<Change>()? {
            None => Ok(turn),
            Some(Unfinished { change, .. }) => {
                Err(Failure::new(format!("`{}` was interrupted where the laboratory runs", change.what()))
                    .hint("finish it there with `weft topo diff`"))
            }
        }
    }

    /// The laboratory.
    pub fn folder(&self) -> &LabFolder {
        &self.folder
    }

    /// Whether the hub writes down what is changed, as agents' files are not here.
    pub fn is_written_by_hub(&self) -> bool {
        self.lock.is_none()
    }
}
