//! `weft study`

mod migrations;

use std::process::ExitCode;

use crate::cli::study::StudyVerb;

pub(super) fn run(verb: &StudyVerb) -> anyhow::Result<ExitCode> {
    match verb {
        StudyVerb::Migrations(args) => migrations::run(args),
    }
}
