//! `fault`, `record` and `replay`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use weft_fault::{
    BadIdentity, Fault, FaultId, Impairment, Lag, Nodes, Presented, Process, Rate, Share, Signalling, Way,
    Width,
};
use weft_lab::faults::lasting::Placed;

use super::events::duration;
use super::identity::AuthorityArgs;

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
    /// Kill a node's agent, or a process by name (`sm`, `sm-2`, `opensm`, `pm`, `vmm`, `hub`)
    Kill {
        /// Description, GUID or id of a node, or `sm`, `sm-2`, `opensm`, `pm`, `vmm` or `hub`
        #[arg(value_name = "NODE")]
        process: Process<String>,
    },
    /// Restart a node's agent, or a process by name (`sm`, `sm-2`, `opensm`, `pm`, `vmm`, `hub`)
    Restart {
        /// Description, GUID or id of a node, or `sm`, `sm-2`, `opensm`, `pm`, `vmm` or `hub`
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
    /// Freeze a node (its links go down and its programs hear nothing), or stop a process by name; its state is kept
    Freeze {
        /// Description, GUID or id of a node, or `sm`, `sm-2`, `pm`, `vmm` or `hub`
        #[arg(value_name = "NODE")]
        process: Process<String>,
        /// Let it go on after this time (`30s`, `5m`, `500ms`) [default: until cleared]
        #[arg(long = "for", value_name = "TIME", value_parser = duration)]
        lasts: Option<Duration>,
    },
    /// Let a frozen node or process go on
    Thaw {
        /// Description, GUID or id of a node, or `sm`, `sm-2`, `pm`, `vmm` or `hub`
        #[arg(value_name = "NODE")]
        process: Process<String>,
    },
    /// Unplug all cables between some nodes and all others, until the fault is cleared
    Partition {
        /// Descriptions, GUIDs or ids of nodes on one side
        #[arg(required = true, value_name = "NODE")]
        nodes: Vec<String>,
        /// Plug the cables back in after this time (`30s`, `5m`, `500ms`) [default: until cleared]
        #[arg(long = "for", value_name = "TIME", value_parser = duration)]
        lasts: Option<Duration>,
    },
    /// Make a node present an invalid certificate; peers drop and refuse its links
    BadIdentity {
        /// Description, GUID or id of a node
        node: String,
        /// What is wrong: `expired`, `future` (not valid yet), `foreign` (another authority's) or `other` (another node's)
        #[arg(long = "as", value_name = "WHAT", default_value = "expired")]
        identity: BadIdentity,
        /// Give it its own identity again after this time (`30s`, `5m`, `500ms`) [default: until cleared]
        #[arg(long = "for", value_name = "TIME", value_parser = duration)]
        lasts: Option<Duration>,
        #[command(flatten)]
        authority: AuthorityArgs,
    },
    /// Give a node's agent its own identity again
    GoodIdentity {
        /// Description, GUID or id of a node
        node: String,
    },
    /// End the partitions between some nodes and all others
    Heal {
        /// Descriptions, GUIDs or ids of nodes on one side
        #[arg(required = true, value_name = "NODE")]
        nodes: Vec<String>,
    },
}

impl FaultArgs {
    /// Where the authority's key is.
    pub(crate) fn authority(&self) -> Option<&Path> {
        match self {
            Self::BadIdentity { authority, .. } => authority.folder.as_deref(),
            _ => None,
        }
    }

    /// The fault, and how long it lasts if not until it is cleared
    pub(crate) fn fault(&self) -> (Fault<String, String>, Option<Duration>) {
        match self {
            Self::Kill { process } => (Fault::Kill(process.clone()), None),
            Self::Restart { process } => (Fault::Restart(process.clone()), None),
            Self::LinkDown { port, lasts } => (Fault::LinkDown(port.clone()), *lasts),
            Self::LinkUp { port } => (Fault::LinkUp(port.clone()), None),
            Self::Freeze { process, lasts } => (Fault::Freeze(process.clone()), *lasts),
            Self::Thaw { process, .. } => (Fault::Thaw(process.clone()), None),
            Self::Partition { nodes, lasts } => (Fault::Partition(Nodes(nodes.clone())), *lasts),
            Self::Heal { nodes } => (Fault::Heal(Nodes(nodes.clone())), None),
            Self::BadIdentity { node, identity, lasts, .. } => {
                (Fault::BadIdentity(Presented { node: node.clone(), identity: *identity }), *lasts)
            }
            Self::GoodIdentity { node } => (Fault::GoodIdentity(node.clone()), None),
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
    /// Take a link down for a while, again and again
    Flap {
        #[command(flatten)]
        at: PortArgs,
        /// Time from one loss to the next (`2s`, `500ms`)
        #[arg(long, value_name = "TIME")]
        every: Lag,
        /// How long the link is down each time, less than `--every`
        #[arg(long, value_name = "TIME", default_value = "100ms")]
        down: Lag,
    },
    /// Leave a link fewer lanes (LinkWidthActive)
    Width {
        #[command(flatten)]
        at: PortArgs,
        /// Widest that the link may be: `1x`, `2x`, `4x` or `8x`
        #[arg(long, value_name = "WIDTH")]
        to: Width,
    },
    /// Leave a link a lower speed (LinkSpeedActive)
    Speed {
        #[command(flatten)]
        at: PortArgs,
        /// Fastest that the link may be: `sdr`, `ddr`, `qdr`, `fdr10`, `fdr`, `edr`, `hdr` or `ndr`
        #[arg(long, value_name = "SPEED")]
        to: Signalling,
    },
    /// Let the host behind a port take packets slowly, so that credits return late
    SlowDrain {
        #[command(flatten)]
        at: PortArgs,
        /// Share of its usual rate at which the host takes packets
        #[arg(long, value_name = "PERCENT")]
        percent: Share,
    },
}

/// Which port, and for how long
#[derive(Debug, Args)]
pub(crate) struct PortArgs {
    /// Port that the fault is at
    #[arg(value_name = "NODE:PORT")]
    port: String,
    /// End the fault after this time (`30s`, `5m`, `500ms`) [default: until cleared]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    lasts: Option<Duration>,
}

impl PortArgs {
    fn placed(&self) -> Placed<'_> {
        Placed { port: &self.port, way: Way::Both, lasts: self.lasts, seed: None }
    }
}

impl CableArgs {
    fn placed(&self) -> Placed<'_> {
        let Self { port, way, lasts, seed } = self;
        Placed { port, way: *way, lasts: *lasts, seed: *seed }
    }
}

/// Which cable, and for how long
#[derive(Debug, Args)]
pub(crate) struct CableArgs {
    /// Port at one end of the cable
    #[arg(value_name = "NODE:PORT")]
    port: String,
    /// Direction, seen from the port: `both`, `in` or `out`
    #[arg(long, value_name = "WAY", default_value = "both", value_parser = way)]
    way: Way,
    /// End the fault after this time (`30s`, `5m`, `500ms`) [default: until cleared]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    lasts: Option<Duration>,
    /// Seed of the fault's random choices [default: the number in its id]
    #[arg(long)]
    seed: Option<u32>,
}

fn way(text: &str) -> Result<Way, String> {
    Way::named(text).ok_or_else(|| "use both, in or out".to_owned())
}

impl ImpairmentArgs {
    /// What happens, and where.
    pub(crate) fn parts(&self) -> (Impairment, Placed<'_>) {
        match self {
            Self::Loss { cable, percent } => (Impairment::Loss(*percent), cable.placed()),
            Self::Delay { cable, by } => (Impairment::Delay(*by), cable.placed()),
            Self::Jitter { cable, by } => (Impairment::Jitter(*by), cable.placed()),
            Self::Reorder { cable, percent, by } => {
                (Impairment::Reorder { share: *percent, by: *by }, cable.placed())
            }
            Self::Duplicate { cable, percent } => (Impairment::Duplicate(*percent), cable.placed()),
            Self::BitErrors { cable, rate } => (Impairment::BitErrors(*rate), cable.placed()),
            Self::Flap { at, every, down } => (Impairment::Flap { every: *every, down: *down }, at.placed()),
            Self::Width { at, to } => (Impairment::Width(*to), at.placed()),
            Self::Speed { at, to } => (Impairment::Speed(*to), at.placed()),
            Self::SlowDrain { at, percent } => (Impairment::SlowDrain(*percent), at.placed()),
        }
    }
}

/// `fault`
#[derive(Debug, Subcommand)]
pub(crate) enum FaultVerb {
    #[command(flatten)]
    CarryOut(FaultArgs),
    /// Impair what crosses a cable, or a port, until the fault is cleared
    #[command(subcommand)]
    Add(ImpairmentArgs),
    /// List the faults that last, with their ids
    Ls {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// List what faults cost: when they were detected, rerouted and restored, and how many pairs of hosts were lost meanwhile
    Times {
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
                Word::Loss | Word::Duplicate | Word::SlowDrain => &["--percent", "2.5"],
                Word::Flap => &["--every", "2s", "--down", "200ms"],
                Word::Width => &["--to", "1x"],
                Word::Speed => &["--to", "sdr"],
                Word::Reorder => &["--percent", "2.5%", "--by", "2ms"],
                Word::BitErrors => &["--rate", "1e-9"],
                _ => &["--by", "2ms"],
            };
            let all = ["weft", "fault", "add", word.name(), "S 1:4", "--for", "30s", "--way", "in"];
            let of_port = matches!(word, Word::Flap | Word::Width | Word::Speed | Word::SlowDrain);
            let line = if of_port { &all[..7] } else { &all[..] };
            let cli = Cli::try_parse_from(line.iter().chain(amounts)).unwrap();
            let Verb::Fault(FaultVerb::Add(args)) = cli.verb else { panic!("{word:?}") };
            let (how, cable) = args.parts();
            assert_eq!(how.is_of_port(), of_port, "{word:?}");
            let said = amounts.iter().skip(1).step_by(2).copied().collect::<Vec<_>>().join(" ");
            assert_eq!(Some(how), Impairment::of(word, &said), "{word:?}");
            let lasts = cable.lasts.map(|lasts| lasts.as_secs());
            assert_eq!(
                (cable.port, cable.way, lasts, cable.seed),
                ("S 1:4", if of_port { Way::Both } else { Way::In }, Some(30), None)
            );
            // Without its amounts, and with one that is none.
            assert!(Cli::try_parse_from(line).is_err());
            assert!(Cli::try_parse_from(line.iter().chain(&[amounts[0], "much"])).is_err());
        }
    }

    #[test]
    fn the_verb_takes_every_fault() {
        for word in Word::OF_FAULTS {
            for target in ["sm", "sm-2", "pm", "vmm", "hub", "ibsim", "opensm", "S-1", "S 1:4"] {
                let cli = Cli::try_parse_from(["weft", "fault", word.name(), target]).unwrap();
                let Verb::Fault(FaultVerb::CarryOut(args)) = cli.verb else { panic!("{word:?}") };
                let expired = format!("expired {target}");
                let said = if word == Word::BadIdentity { &expired } else { target };
                assert_eq!(Some(args.fault().0), Fault::of(word, said), "{word:?} {target}");
            }
        }
    }
}
