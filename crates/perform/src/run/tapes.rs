//! The files that runs are taped to.

use std::path::{Path, PathBuf};

use weft_bundle::failure::Failure;
use weft_experiment::ExperimentFile;
use weft_lab::scene::TapeTo;

use super::job::Job;
use super::keep;

/// The tapes of a series.
#[derive(Debug)]
pub(super) enum Tapes {
    /// None is wanted.
    None,
    /// That of its only run.
    One(TapeTo),
    /// One for each run, in this folder.
    Each(PathBuf),
}

impl Tapes {
    /// Of this number of runs.
    pub(super) fn of(to: Option<&Path>, runs: usize) -> anyhow::Result<Self> {
        let Some(to) = to else { return Ok(Self::None) };
        let is_folder = to.is_dir() || to.as_os_str().to_string_lossy().ends_with('/');
        if runs == 1 && !is_folder {
            let tape = TapeTo::file_or_folder(to, "")?;
            // Before a run is made for it.
            tape.begin("", 0)?;
            return Ok(Self::One(tape));
        }
        if to.exists() && !to.is_dir() {
            let failure = format!("{} is a file, and {runs} runs have a tape each", to.display());
            return Err(Failure::bad_input(failure)
                .hint("name a folder, or choose one run with --only, --seed or --virtual"));
        }
        std::fs::create_dir_all(to)
            .map_err(|error| Failure::bad_input(format!("cannot make {}: {error}", to.display())))?;
        Ok(Self::Each(to.to_owned()))
    }

    /// The tape of a run.
    pub(super) fn to(&self, file: &ExperimentFile, job: &Job) -> anyhow::Result<Option<TapeTo>> {
        match self {
            Self::None => Ok(None),
            Self::One(tape) => Ok(Some(tape.clone())),
            Self::Each(folder) => {
                let name = format!("{}-{}", keep::stem(file), keep::name(job));
                let path = folder.join(name).with_extension("tape");
                TapeTo::file_or_folder(&path, "").map(Some)
            }
        }
    }
}
