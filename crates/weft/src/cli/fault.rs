//! `fault`, `record` and `replay`

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use weft_fault::{Fault, FaultId, Impairment, Lag, Process, Rate, Share, Way};

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

/// `fault add`
#[derive(Debug, Subcommand)]
pub(crate) enum ImpairmentArgs {
    /// Lose packets
    Loss {
        #[command(flatten)]
        cable: CableArgs,
        /// Share of the packets that is lost
        #[arg(long, value_name = "PERCENT")]
        percent: Share,
    },
    /// Delay all packets
    Delay {
        #[command(flatten)]
        cable: CableArgs,
        /// How late packets are (`2ms`, `150us`)
        #[arg(long, value_name = "TIME")]
        by: Lag,
    },
    /// Delay packets by random times, in order
    Jitter {
        #[command(flatten)]
        cable: CableArgs,
        /// How late packets are at most (`2ms`, `150us`)
        #[arg(long, value_name = "TIME")]
        by: Lag,
    },
    /// Let packets overtake others
    Reorder {
        #[command(flatten)]
        cable: CableArgs,
        /// Share of the packets that is overtaken
        #[arg(long, value_name = "PERCENT")]
        percent: Share,
        /// How late these are (`2ms`, `150us`)
        #[arg(long, value_name = "TIME", default_value = "1ms")]
        by: Lag,
    },
    /// Deliver management packets (VL15) twice
    Duplicate {
        #[command(flatten)]
        cable: CableArgs,
        /// Share of the packets that arrives twice
        #[arg(long, value_name = "PERCENT")]
        percent: Share,
    },
    /// Damage packets with wrong bits, which ports count
    BitErrors {
        #[command(flatten)]
        cable: CableArgs,
        /// Wrong bits per bit, 1e-15 to 1e-3
        #[arg(long, value_name = "RATE")]
        rate: Rate,
    },
}

/// Which cable, and for how long
#[derive(Debug, Args)]
pub(crate) struct CableArgs {
    /// Port at one end of the cable
    #[arg(value_name = "NODE:PORT")]
    pub(crate) port: String,
    /// Direction, seen from the port: `both`, `in` or `out`
    #[arg(long, value_name = "WAY", default_value = "both", value_parser = way)]
    pub(crate) way: Way,
    /// End the fault after this time (`30s`, `5m`, `500ms`) [default: until cleared]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) lasts: Option<Duration>,
    /// Seed of the fault's random choices [default: the number in its id]
    #[arg(long)]
    pub(crate) seed: Option<u32>,
}

fn way(text: &str) -> Result<Way, String> {
    let known = Way::ALL.into_iter().find(|way| way.name() == text);
    known.ok_or_else(|| "use both, in or out".to_owned())
}

impl ImpairmentArgs {
    /// What happens to packets, and where.
    pub(crate) fn parts(&self) -> (Impairment, &CableArgs) {
        match self {
            Self::Loss { cable, percent } => (Impairment::Loss(*percent), cable),
            Self::Delay { cable, by } => (Impairment::Delay(*by), cable),
            Self::Jitter { cable, by } => (Impairment::Jitter(*by), cable),
            Self::Reorder { cable, percent, by } => (Impairment::Reorder { share: *percent, by: *by }, cable),
            Self::Duplicate { cable, percent } => (Impairment::Duplicate(*percent), cable),
            Self::BitErrors { cable, rate } => (Impairment::BitErrors(*rate), cable),
        }
    }
}

/// `fault`
#[derive(Debug, Subcommand)]
pub(crate) enum FaultVerb {
    #[command(flatten)]
    CarryOut(FaultArgs),
    /// Impair what crosses a cable, until the fault is cleared
    #[command(subcommand)]
    Add(ImpairmentArgs),
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
    fn the_verb_takes_every_impairment() {
        for word in Word::OF_IMPAIRMENTS {
            let amounts: &[&str] = match word {
                Word::Loss | Word::Duplicate => &["--percent", "2.5"],
                Word::Reorder => &["--percent", "2.5%", "--by", "2ms"],
                Word::BitErrors => &["--rate", "1e-9"],
                _ => &["--by", "2ms"],
            };
            let line = ["weft", "fault", "add", word.name(), "S 1:4", "--way", "in", "--for", "30s"];
            let cli = Cli::try_parse_from(line.iter().chain(amounts)).unwrap();
            let Verb::Fault(FaultVerb::Add(args)) = cli.verb else { panic!("{word:?}") };
            let (how, cable) = args.parts();
            let said = amounts.iter().skip(1).step_by(2).copied().collect::<Vec<_>>().join(" ");
            assert_eq!(Some(how), Impairment::of(word, &said), "{word:?}");
            let lasts = cable.lasts.map(|lasts| lasts.as_secs());
            assert_eq!(
                (cable.port.as_str(), cable.way, lasts, cable.seed),
                ("S 1:4", Way::In, Some(30), None)
            );
            // Without its amounts, and with one that is none.
            assert!(Cli::try_parse_from(line).is_err());
            assert!(Cli::try_parse_from(line.iter().chain(&[amounts[0], "much"])).is_err());
        }
    }

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
