//! The options of `weft ask`.

use std::path::PathBuf;

use clap::Args;

/// `ask`
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// Process (`sm`, `pm`, `a0007`), or description, GUID or id of a node
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) process: String,
    /// Request, as docs/control.md lists them (`hello`, `agent-status`, `ports`, `events`)
    pub(crate) request: String,
    /// Its fields, as a JSON object
    #[arg(value_name = "JSON")]
    pub(crate) fields: Option<String>,
    /// Reach the agent over QUIC, with this identity of the laboratory (`identities/viewer.pem`)
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
}
