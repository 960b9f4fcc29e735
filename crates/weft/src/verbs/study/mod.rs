//! `weft study`

mod migration_signalling;
mod migrations;
mod signalling;

use std::process::ExitCode;

use crate::cli::study::StudyVerb;

pub(super) fn run(verb: &StudyVerb) -> anyhow::Result<ExitCode> {
    match verb {
        StudyVerb::Migrations(args) => migrations::run(args),
        StudyVerb::Signalling(args) => signalling::run(args),
        StudyVerb::MigrationSignalling(args) => migration_signalling::run(args),
    }
}
