//! The journal of a change while it is made, so that the next verb can finish or drop it.

use std::path::PathBuf;

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_bundle::failure::Failure;
use weft_bundle::folder::{LabFile, LabFolder, bundle, gone, replace_on};
use weft_process::{Files, SystemFiles};

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stage {
    /// Agents get their orders. One of them may refuse.
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

/// The journal's file.
pub(crate) struct Journal<'a> {
    files: &'a dyn Files,
    path: PathBuf,
}

impl Journal<'static> {
    /// That of a laboratory.
    pub(crate) fn of(lab: &LabFolder) -> Self {
        Self { files: &SystemFiles, path: lab.place(LabFile::RecablingJournal) }
    }
}

impl Journal<'_> {
    /// The change that was begun and not finished, if there is one.
    pub(crate) fn read<C: DeserializeOwned>(&self) -> anyhow::Result<Option<Unfinished<C>>> {
        if !self.path.exists() {
            return Ok(None);
        }
        bundle::load(&self.path).map(Some).map_err(|error| {
            let shown = self.path.display();
            let hint = format!("remove {shown}, then run `weft topo diff`: it tells what agents have");
            Failure::new(format!("an interrupted change cannot be finished: {error:#}")).hint(hint)
        })
    }

    /// Notes how far a change is.
    pub(crate) fn write<C: Serialize>(&self, change: &C, stage: Stage) -> anyhow::Result<()> {
        let entry = serde_json::to_string(&Entry { stage, change })?;
        replace_on(self.files, &self.path, entry.as_bytes())
    }

    /// Nothing is under way any more.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        gone(self.files.remove(&self.path)).with_context(|| format!("cannot remove {}", self.path.display()))
    }
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use weft_process::FailingFiles;

    use super::*;

    const STAGES: [Stage; 3] = [Stage::Telling, Stage::Undoing, Stage::Writing];

    /// Writes the stages of a change and removes the journal; whether all was done.
    fn carry_out(journal: &Journal<'_>) -> bool {
        STAGES.iter().all(|stage| journal.write(stage, *stage).is_ok()) && journal.remove().is_ok()
    }

    /// Each stage is a write, a rename and a wait for the folder; then comes the removal.
    const OPERATIONS: u32 = 3 * 3 + 1;

    /// The stage that is in the journal when this operation has failed: a new one counts once it has its name.
    fn stage_after(fails_at: u32) -> Option<Stage> {
        let renamed = (fails_at + 1) / 3;
        STAGES[..renamed as usize].last().copied()
    }

    #[test]
    fn a_torn_journal_has_the_stage_before_or_the_new_one() {
        for (fails_at, dies) in (0..OPERATIONS).flat_map(|at| [(at, false), (at, true)]) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("recabling.json");
            let failing = FailingFiles::new(fails_at, dies);
            assert!(!carry_out(&Journal { files: &failing, path: path.clone() }), "operation {fails_at}");
            let after = Journal { files: &SystemFiles, path };
            let found = after.read::<Stage>().unwrap();
            assert_eq!(
                found.as_ref().map(|found| found.stage),
                stage_after(fails_at),
                "operation {fails_at}"
            );
            assert!(
                found.is_none_or(|found| found.change == found.stage),
                "a stage and a change of two writes"
            );
            // The next verb goes on with what is there, and leaves nothing.
            assert!(carry_out(&after));
            assert!(after.read::<Stage>().unwrap().is_none());
        }
    }
}
