//! `fault`, `record` and `replay`

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `record`
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Description, GUID or id of a node
    pub(crate) node: String,
    /// Folder for the recording
    #[arg(long, value_name = "DIR", default_value = "recordings")]
    pub(crate) out: PathBuf,
    /// Restart the agent without recording
    #[arg(long, conflicts_with = "out")]
    pub(crate) off: bool,
}

/// `replay`
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Recording of an agent
    pub(crate) file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fault`
#[derive(Debug, Subcommand)]
pub(crate) enum FaultVerb {
    /// Kill a node's agent, or a manager (`sm`, `pm`)
    Kill {
        /// Description, GUID or id of a node, or `sm` or `pm`
        node: String,
    },
    /// Restart a node's agent, or a manager (`sm`, `pm`)
    ///
    /// Only the agents at both ends remember an unplugged cable: once both have been restarted, the cable is
    /// plugged in again.
    Restart {
        /// Description, GUID or id of a node, or `sm` or `pm`
        node: String,
    },
    /// Unplug the cable of a port
    LinkDown {
        /// Port at one end of the cable
        #[arg(value_name = "NODE:PORT")]
        port: String,
    },
    /// Plug the cable of a port back in
    LinkUp {
        /// Port at one end of the cable
        #[arg(value_name = "NODE:PORT")]
        port: String,
    },
}
