//! The journal of a change while it is made, so that the next verb can finish or drop it.

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_bundle::failure::Failure;
use weft_bundle::folder::{LabFile, LabFolder, bundle, gone, replace};

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stage {
    /// Agents are told. One of them may refuse.
    Telling,
    /// One has refused: what the others have done is undone.
    Undoing,
    /// All have done it: it is written down.
    Writing,
}

/// A change that was begun and not finished.
#[derive(Debug, Deserialize)]
pub(crate) struct Unfinished<C> {
    pub(crate) stage: Stage,
    pub(crate) change: C,
}

/// The journal's content.
#[derive(Serialize)]
struct Entry<'a, C> {
    stage: Stage,
    change: &'a C,
}

/// What was begun and not finished, if anything was.
pub(crate) fn read<C: DeserializeOwned>(lab: &LabFolder) -> anyhow::Result<Option<Unfinished<C>>> {
    let path = lab.place(LabFile::RecablingJournal);
    if !path.exists() {
        return Ok(None);
    }
    bundle::load(&path).map(Some).map_err(|error| {
        let hint = format!("remove {}, then run `weft topo diff`: it tells what agents have", path.display());
        Failure::new(format!("an interrupted change cannot be finished: {error:#}")).hint(hint).into()
    })
}

/// Notes how far a change is.
pub(crate) fn write<C: Serialize>(lab: &LabFolder, change: &C, stage: Stage) -> anyhow::Result<()> {
    let entry = serde_json::to_string(&Entry { stage, change })?;
    replace(&lab.place(LabFile::RecablingJournal), entry.as_bytes())
}

/// Nothing is under way any more.
pub(crate) fn remove(lab: &LabFolder) -> anyhow::Result<()> {
    let path = lab.place(LabFile::RecablingJournal);
    gone(std::fs::remove_file(&path)).with_context(|| format!("cannot remove {}", path.display()))
}

/// A step of a change is done. A test has the process killed here; a released program has no such thing.
pub(crate) fn reached(step: &str) {
    #[cfg(debug_assertions)]
    if std::env::var_os("WEFT_KILL_AT").is_some_and(|wanted| wanted == step) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    #[cfg(not(debug_assertions))]
    let _ = step;
}
