//! `fault`, `record` and `replay`

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use weft_control::fault::FaultId;

use super::duration;

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
    Restart {
        /// Description, GUID or id of a node, or `sm` or `pm`
        node: String,
    },
    /// Unplug the cable of a port, until the fault is cleared
    LinkDown {
        /// Port at one end of the cable
        #[arg(value_name = "NODE:PORT")]
        port: String,
        /// Plug it back in after this time (`30s`, `5m`, `500ms`) [default: until cleared]
        #[arg(long = "for", value_name = "TIME", value_parser = duration)]
        lasts: Option<Duration>,
    },
    /// Plug the cable of a port back in
    LinkUp {
        /// Port at one end of the cable
        #[arg(value_name = "NODE:PORT")]
        port: String,
    },
    /// List the faults that last, with their ids
    Ls {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Clear faults
    Clear {
        /// Ids, as `weft fault ls` lists them
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<FaultId>,
        /// Clear every fault
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}
