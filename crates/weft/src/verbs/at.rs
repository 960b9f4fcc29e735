//! The laboratory that a verb acts on: one of this machine, or with `--at` one behind its hub's door.

use std::path::PathBuf;

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::site;
use weft_lab::site::door::Gateway;
use weft_lab::site::table::{self, Kind};
use weft_process::raise_file_limit;

use crate::cli::{Cli, Verb};

/// Where the identity is, if the command line does not say.
const IDENTITY: &str = "WEFT_IDENTITY";

/// The way into the laboratory that the command line names by its hub, if it does.
pub(super) fn enter(cli: &Cli) -> anyhow::Result<Option<Gateway>> {
    let Some(hub) = &cli.at else { return Ok(None) };
    if cli.lab.is_some() {
        return Err(Failure::bad_input("--at and --lab name different laboratories").hint("give one of them"));
    }
    table::of(&line(cli), Kind::Door).map_err(|refusal| refusal.failure(""))?;
    let named = || std::env::var_os(IDENTITY).filter(|value| !value.is_empty()).map(PathBuf::from);
    let identity = cli.identity.clone().or_else(named).ok_or_else(|| {
        Failure::bad_input("--at needs an identity of the laboratory")
            .hint(format!("give --identity DIR/identities/operator.pem, or set {IDENTITY}"))
    })?;
    raise_file_limit();
    Gateway::open(&crate::front::base(), hub, &identity).map(Some)
}

/// The laboratory of this machine that is meant, as a verb may use it. `line`: the verb.
pub(super) fn here(name: Option<&str>, line: &str) -> anyhow::Result<LabFolder> {
    site::enter(crate::front::base().select(name)?, line)
}

/// The verb as the table of sites has it.
pub(super) fn line(cli: &Cli) -> String {
    let option = match &cli.verb {
        Verb::Chaos(args) if args.simulated => " --virtual",
        Verb::Shell(args) if args.ibsim.is_some() => " --ibsim",
        _ => "",
    };
    format!("{}{option}", cli.words)
}
