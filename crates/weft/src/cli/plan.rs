//! The arguments of `plan`, and of `up`, which plans first.

use std::path::PathBuf;

use clap::{Args, Command, Id, ValueEnum};
use weft_bundle::place::groups::Pack;
use weft_bundle::place::hosts::Hosts;
use weft_bundle::plan::wanted::{Attach, Notices};

use super::choice::{Word, choice};
use super::hub::UpHubArgs;
use super::ibsim::IbsimArgs;
use super::pm::PmArgs;
use super::vfs::VfArgs;
use super::{DeviceArgs, SmArgs};

/// What may stand beside `up --bundle`: what a bundle does not say.
const BESIDE_BUNDLE: [&str; 8] =
    ["bundle", "record", "foreground", "json", "patience", "keep", "guid2lid", "history"];

/// What may stand beside `up --part`: what a host's part does not say.
const BESIDE_PART: [&str; 11] = [
    "part",
    "file",
    "bound",
    "record",
    "foreground",
    "json",
    "patience",
    "keep",
    "guid2lid",
    "history",
    "restart",
];

/// What may stand beside `compose --bundle`.
const BESIDE_COMPOSED: [&str; 9] =
    ["bundle", "image", "tools", "door", "user", "prometheus", "prometheus_door", "grafana", "grafana_door"];

/// What may stand beside `k8s --bundle`.
const BESIDE_MANIFESTS: [&str; 10] = [
    "bundle",
    "image",
    "tools",
    "door",
    "user",
    "namespace",
    "storage_class",
    "scrape_from",
    "prometheus",
    "grafana",
];

/// Lets options exclude each other that no list of names could: a bundle has been planned already, so all that plans is
/// refused beside it.
pub(super) fn exclude_planning(command: Command) -> Command {
    command
        .mut_subcommand("up", |up| exclude(exclude(up, &BESIDE_BUNDLE), &BESIDE_PART))
        .mut_subcommand("compose", |compose| exclude(compose, &BESIDE_COMPOSED))
        .mut_subcommand("k8s", |k8s| exclude(k8s, &BESIDE_MANIFESTS))
}

/// Lets the first of these arguments exclude all but the others.
fn exclude(command: Command, beside: &[&'static str]) -> Command {
    let ids: Vec<Id> = command.get_arguments().map(|argument| argument.get_id().clone()).collect();
    let others: Vec<Id> = ids.into_iter().filter(|id| !beside.contains(&id.as_str())).collect();
    command.mut_arg(beside[0], |argument| argument.conflicts_with_all(others))
}

/// `up`
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Topology file, as `ibnetdiscover` prints it; with --part a bundle
    #[arg(required_unless_present = "bundle")]
    pub(crate) file: Option<PathBuf>,

    /// Start the laboratory of a bundle that `weft plan` wrote
    #[arg(long, value_name = "DIR")]
    pub(crate) bundle: Option<PathBuf>,

    /// Start only what of a bundle runs on this host; the bundle is a folder, or `-` for a tar archive on standard input
    ///
    /// A part waits for its links to the others, so start all of them together. `weft hub --bundle` watches the whole.
    #[arg(long, value_name = "HOST")]
    pub(crate) part: Option<String>,

    /// With --part: take the part down when standard input ends
    #[arg(long, hide = true, requires = "part")]
    pub(crate) bound: bool,

    /// Record the inputs of every agent, for `weft replay`: one file per agent in this folder
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "recordings")]
    pub(crate) record: Option<PathBuf>,

    /// Tape it from start to end, for `weft ui --tape`: a file, or a folder for a new one
    #[arg(long, value_name = "PATH", conflicts_with_all = ["hosts", "part"])]
    pub(crate) tape: Option<PathBuf>,

    /// Size at which the tape ends, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) tape_megabytes: u64,

    /// Stay in the foreground; take the laboratory down when interrupted
    #[arg(long)]
    pub(crate) foreground: bool,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Abort after this long without progress
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) patience: u64,

    /// Keep the laboratory running if it does not come up [default: take it down]
    #[arg(long)]
    pub(crate) keep: bool,

    /// File in which the subnet manager keeps LIDs [default: in the laboratory's folder, which `down` removes]
    #[arg(long, value_name = "FILE")]
    pub(crate) guid2lid: Option<PathBuf>,

    /// Append what the subnet manager computes tables from to this file: one JSON line for each cabling, repair and move
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,

    /// What it is planned with
    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    /// Other hosts
    #[command(flatten)]
    pub(crate) spread: SpreadArgs,

    /// Options of the hub
    #[command(flatten)]
    pub(crate) hub: UpHubArgs,
}

/// Where `up` starts a laboratory that is not to run on this machine.
#[derive(Debug, Args)]
#[command(next_help_heading = "Other hosts")]
pub(crate) struct SpreadArgs {
    /// Share the agents among these hosts, and start each host's part there by ssh: `a,b,c`
    ///
    /// Each host needs weft of this version, and `ssh HOST` must log in without a question.
    #[arg(long, value_name = "HOSTS")]
    pub(crate) hosts: Option<Hosts>,

    /// With --hosts: configuration file of ssh, in place of yours
    #[arg(long, value_name = "FILE", requires = "hosts")]
    pub(crate) ssh_config: Option<PathBuf>,

    /// With --hosts: weft on the hosts
    #[arg(long, value_name = "PROGRAM", default_value = "weft", requires = "hosts")]
    pub(crate) remote_weft: String,
}

/// `plan`
#[derive(Debug, Args)]
pub(crate) struct PlanCommand {
    /// Topology file, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,

    /// Folder of the bundle; it must be empty or not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// Hosts that the agents run on [default: this machine]
    ///
    /// `a,b,c` shares them among these hosts. A name with `{}` gives each agent a host of its own, such as `{}.weft` for
    /// a0007.weft. A subnet such as 10.1.0.0/16 gives each agent an address of its own, from the first one up.
    #[arg(long, value_name = "HOSTS")]
    pub(crate) hosts: Option<Hosts>,

    /// What the laboratory is planned with
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
}

/// Notices that hosts subscribe to.
const NOTICES: &[Word<Notices>] = &[
    ("all", "Every port: ports that come and go, and paths that change", Notices::All),
    ("repath", "Every port: paths that change alone", Notices::Repath),
    (
        "server",
        "Physical functions: paths that change, which they hand on to the functions behind their vSwitch",
        Notices::Server,
    ),
    ("none", "No one", Notices::None),
];

/// What a laboratory is planned with.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Devices per agent process: a number, `leaf` for a switch and the hosts at it, or `all`
    #[arg(long, value_name = "N|leaf|all", default_value = "1")]
    pub(crate) pack: Pack,

    /// Program that manages the subnet
    #[arg(long = "sm", id = "manager", value_name = "PROGRAM", value_enum, default_value_t)]
    pub(crate) manager: Sm,

    /// Start no subnet manager, as with --sm none
    #[arg(long, conflicts_with = "manager")]
    pub(crate) no_sm: bool,

    /// Notices of the subnet manager that hosts subscribe to [default: all]
    #[arg(long, value_name = "WHICH", value_parser = choice(NOTICES))]
    pub(crate) notices: Option<Notices>,

    /// Standby subnet managers, at hosts of their own; one takes over when the first dies
    #[arg(long, value_name = "COUNT", default_value_t = 0, conflicts_with = "no_sm", value_parser = clap::value_parser!(u8).range(0..=8))]
    pub(crate) standby: u8,

    /// Rates of links, as an experiment's [rates] or its file has them: `dilation=1000,lanes=2`
    #[arg(long, value_name = "KEY=VALUE,…|FILE", conflicts_with_all = ["qos", "management_lane", "equal_lanes", "max_op_vls"])]
    pub(crate) rates: Option<String>,

    /// Milliseconds of silence after which a link is down [default: 2000, more with more than 160 cables, 5000 with --rates]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(100..=600_000))]
    pub(crate) link_timeout_ms: Option<u64>,

    /// First UDP port, one per agent [default: the first free block; with --hosts 20000]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1024..))]
    pub(crate) udp_port: Option<u16>,

    /// How managers attach to their agents: by a socket in the run folder that both share, or over the network
    #[arg(long, value_name = "WAY", default_value = "unix", value_parser = choice(ATTACH))]
    pub(crate) attach_managers: Attach,

    /// Serve metrics for Prometheus on loopback, from this TCP port on, or on free ports
    ///
    /// The subnet manager takes the first port, the performance manager the second, the agents those after them, the VM manager
    /// the last.
    /// `weft metrics` prints the scrape configuration.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub(crate) metrics: Option<u16>,

    /// Virtualised adapters
    #[command(flatten)]
    pub(crate) vfs: VfArgs,

    /// Options of the devices
    #[command(flatten)]
    pub(crate) devices: DeviceArgs,

    /// Options of the subnet manager
    #[command(flatten)]
    pub(crate) sm: SmArgs,

    /// Options of the performance manager
    #[command(flatten)]
    pub(crate) pm: PmArgs,

    /// Access by ibsim's client library
    #[command(flatten)]
    pub(crate) ibsim: IbsimArgs,
}

impl PlanArgs {
    /// The program that manages the subnet.
    pub(crate) fn sm_program(&self) -> Sm {
        if self.no_sm { Sm::None } else { self.manager }
    }
}

/// A subnet manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sm {
    /// weft's own
    #[default]
    Weft,
    /// Unmodified OpenSM, as installed
    Opensm,
    /// None: one of yours can attach
    None,
}

/// Ways from a manager to its agent.
const ATTACH: &[Word<Attach>] = &[
    ("unix", "By the agent's socket", Attach::Unix),
    ("quic", "At the UDP port of the agent's links", Attach::Quic),
];

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use crate::cli::command;

    fn parse(arguments: &str) -> Result<(), ErrorKind> {
        command().try_get_matches_from(arguments.split(' ')).map(drop).map_err(|error| error.kind())
    }

    #[test]
    fn a_bundle_and_what_plans_exclude_each_other() {
        for option in [
            "x.topo",
            "--pack=2",
            "--no-sm",
            "--lmc=1",
            "--m-key=7",
            "--pm",
            "--vfs=2",
            "--metrics",
            "--engine=updn",
            "--attach-managers=quic",
        ] {
            assert_eq!(
                parse(&format!("weft up --bundle x {option}")),
                Err(ErrorKind::ArgumentConflict),
                "{option}"
            );
        }
        assert_eq!(
            parse("weft up --bundle x --json --keep --record --guid2lid y --history h --lab z --patience 3"),
            Ok(())
        );
        assert_eq!(parse("weft up"), Err(ErrorKind::MissingRequiredArgument));
        assert_eq!(parse("weft up --part a --foreground --restart on-failure x"), Ok(()));
        assert_eq!(parse("weft up --part a --bound --json -- -"), Ok(()));
        assert_eq!(parse("weft up x.topo --hosts a,b --ssh-config y --restart on-failure"), Ok(()));
        for wrong in
            ["--part a --pm x", "--part a --hosts a x", "--part a --bundle x", "--bundle x --hosts a"]
        {
            assert_eq!(parse(&format!("weft up {wrong}")), Err(ErrorKind::ArgumentConflict), "{wrong}");
        }
        assert_eq!(parse("weft up x.topo --hosts=-oProxyCommand=y"), Err(ErrorKind::ValueValidation));
        assert_eq!(parse("weft plan x"), Err(ErrorKind::MissingRequiredArgument));
        assert_eq!(parse("weft plan x --out y --pack leaf --hosts a,b --pm"), Ok(()));
        assert_eq!(parse("weft identity renew a0000 --in y"), Ok(()));
        assert_eq!(parse("weft identity renew --all --revoke-old"), Ok(()));
        assert_eq!(parse("weft identity renew"), Err(ErrorKind::MissingRequiredArgument));
        assert_eq!(parse("weft identity renew x --all"), Err(ErrorKind::ArgumentConflict));
        assert_eq!(parse("weft identity revoke --serial 00ff"), Ok(()));
        assert_eq!(parse("weft identity revoke --serial 0"), Err(ErrorKind::ValueValidation));
        assert_eq!(parse("weft compose --bundle x --image y --door 9"), Ok(()));
        assert_eq!(parse("weft k8s --bundle x --prometheus y --grafana z"), Ok(()));
        for verb in ["compose", "k8s"] {
            let alone = parse(&format!("weft {verb} x --metrics --grafana y"));
            assert_eq!(alone, Err(ErrorKind::MissingRequiredArgument), "{verb}: Grafana asks Prometheus");
        }
        assert_eq!(parse("weft compose x --out y --pack leaf --standby 1"), Ok(()));
        for option in ["x.topo", "--pack=2", "--sm=none", "--out=y"] {
            let composed = parse(&format!("weft compose --bundle x {option}"));
            assert_eq!(composed, Err(ErrorKind::ArgumentConflict), "{option}");
        }
    }
}
