//! `fault`, `record` and `replay`

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use weft_fault::{Fault, FaultId, Process};

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

/// A fault, one word each
#[derive(Debug, Subcommand)]
pub(crate) enum FaultArgs {
    /// Kill a node's agent, or a process by name (`sm`, `sm-2`, `pm`, `vmm`, `hub`)
    Kill {
        /// Description, GUID or id of a node, or `sm`, `sm-2`, `pm`, `vmm` or `hub`
        #[arg(value_name = "NODE")]
        process: Process<String>,
    },
    /// Restart a node's agent, or a process by name (`sm`, `sm-2`, `pm`, `vmm`, `hub`)
    Restart {
        /// Description, GUID or id of a node, or `sm`, `sm-2`, `pm`, `vmm` or `hub`
        #[arg(value_name = "NODE")]
        process: Process<String>,
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
}

impl FaultArgs {
    /// The fault, and how long it lasts if not until it is cleared
    pub(crate) fn fault(&self) -> (Fault<String, String>, Option<Duration>) {
        match self {
            Self::Kill { process } => (Fault::Kill(process.clone()), None),
            Self::Restart { process } => (Fault::Restart(process.clone()), None),
            Self::LinkDown { port, lasts } => (Fault::LinkDown(port.clone()), *lasts),
            Self::LinkUp { port } => (Fault::LinkUp(port.clone()), None),
        }
    }
}

/// `fault`
#[derive(Debug, Subcommand)]
pub(crate) enum FaultVerb {
    #[command(flatten)]
    CarryOut(FaultArgs),
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

#[cfg(test)]
mod tests {
    use clap::Parser;
    use weft_fault::Word;

    use super::*;
    use crate::cli::{Cli, Verb};

    #[test]
    fn the_verb_takes_every_fault() {
        for word in Word::OF_FAULTS {
            for target in ["sm", "sm-2", "pm", "vmm", "hub", "ibsim", "S-1", "S 1:4"] {
                let cli = Cli::try_parse_from(["weft", "fault", word.name(), target]).unwrap();
                let Verb::Fault(FaultVerb::CarryOut(args)) = cli.verb else { panic!("{word:?}") };
                assert_eq!(Some(args.fault().0), Fault::of(word, target), "{word:?} {target}");
            }
        }
    }
}
