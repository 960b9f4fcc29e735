//! The arguments of the processes that `up` starts, which containers start too.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use weft_bundle::folder::bundle::Bundle;
use weft_managers::sm::SmFiles;
use weft_managers::start::Start;
use weft_vm::Record;

use super::SmArgs;
use super::hub::socket_at;

/// Options of every process of a laboratory.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProcessArgs {
    /// Bundle that `weft plan` wrote
    #[arg(long, value_name = "DIR")]
    pub(crate) bundle: PathBuf,
    /// Name of the process in the bundle
    #[arg(long = "as", value_name = "NAME", value_parser = process_name)]
    pub(crate) name: String,
    /// File with certificate and private key [default: identities/NAME.pem in the bundle]
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// Folder for sockets, locks and events; made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) run: PathBuf,
    /// Answer the control protocol over QUIC at this UDP port, too; agents do so at the port of their links
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = socket_at)]
    pub(crate) door: Option<SocketAddr>,
    /// Leave the terminal's session first
    #[arg(long)]
    pub(crate) detached: bool,
}

impl ProcessArgs {
    /// How the process is started.
    pub(crate) fn start(&self) -> Start {
        let Self { bundle, name, identity, run, door, detached: _ } = self.clone();
        Start { bundle: Bundle::at(&bundle), name, identity, run, door, waits: false }
    }
}

/// The name of a file.
fn process_name(text: &str) -> Result<String, String> {
    match weft_bundle::names::is_plain(text) {
        true => Ok(text.to_owned()),
        false => Err("a process has a name such as a0007, sm or pm".into()),
    }
}

/// `health`
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// Name of the process
    #[arg(long = "as", value_name = "NAME", value_parser = process_name)]
    pub(crate) name: String,
    /// Folder that it runs in
    #[arg(long, value_name = "DIR")]
    pub(crate) run: PathBuf,
    /// Of the hub: whether all processes run, and the subnet is up if there is a subnet manager
    #[arg(long)]
    pub(crate) lab_up: bool,
}

/// Processes that serve metrics.
#[derive(Debug, Args)]
pub(crate) struct MeteredProcessArgs {
    /// Options of every process
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Serve metrics for Prometheus on this TCP port of the loopback, instead of the one in the bundle
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) metrics_port: Option<u16>,
}

/// `agent`
#[derive(Debug, Args)]
pub(crate) struct AgentProcessArgs {
    /// Options of processes that serve metrics
    #[command(flatten)]
    pub(crate) metered: MeteredProcessArgs,
    /// File to record the agent's inputs in, for `weft replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

/// `vmm`
#[derive(Debug, Args)]
pub(crate) struct VmmProcessArgs {
    /// Options of processes that serve metrics
    #[command(flatten)]
    pub(crate) metered: MeteredProcessArgs,
    /// Die as by SIGKILL when a record of this kind is on disk, before anything follows from it: a fault for tests
    #[arg(long, value_name = "RECORD", value_parser = Record::NAMES)]
    pub(crate) die_after: Option<String>,
}

/// `sm`
#[derive(Debug, Args)]
pub(crate) struct SmProcessArgs {
    /// Bundle that `weft plan` wrote
    #[arg(long, hide = true, required_unless_present = "ibsim", conflicts_with = "ibsim", requires = "run")]
    pub(crate) bundle: Option<PathBuf>,
    /// Name of the process in the bundle
    #[arg(long = "as", hide = true, value_parser = process_name, default_value = weft_bundle::names::SM)]
    pub(crate) name: String,
    /// File with certificate and private key
    #[arg(long, hide = true, requires = "bundle")]
    pub(crate) identity: Option<PathBuf>,
    /// Folder for sockets, locks and events
    #[arg(long, hide = true, requires = "bundle")]
    pub(crate) run: Option<PathBuf>,
    /// Answer the control protocol over QUIC at this UDP port, too
    #[arg(long, hide = true, requires = "bundle", value_parser = socket_at)]
    pub(crate) door: Option<SocketAddr>,
    /// Leave the terminal's session first
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// ibsim to manage: its IBSIM_SOCKNAME, or udp:ADDRESS:PORT
    #[arg(long, value_name = "NAME")]
    pub(crate) ibsim: Option<String>,
    /// Node to attach to, as in SIM_HOST [default: the file's first node]
    #[arg(long, value_name = "NODE", requires = "ibsim")]
    pub(crate) at: Option<String>,
    /// Exit when the subnet is up
    #[arg(long, requires = "ibsim")]
    pub(crate) once: bool,
    /// File that keeps LIDs [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) guid2lid: Option<PathBuf>,
    /// Append what tables are computed from to this file: one JSON line for each cabling, repair and move
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
    /// Serve metrics for Prometheus on this TCP port of the loopback
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) metrics_port: Option<u16>,
    /// Options of the subnet manager
    #[command(flatten)]
    pub(crate) sm: SmArgs,
}

impl SmProcessArgs {
    /// The files and the port that it has beside its bundle.
    pub(crate) fn files(&self) -> SmFiles {
        let Self { guid2lid, history, metrics_port, .. } = self;
        SmFiles { guid2lid: guid2lid.clone(), history: history.clone(), metrics_port: *metrics_port }
    }

    /// Options that it shares with other processes of a laboratory.
    pub(crate) fn process(&self) -> Option<ProcessArgs> {
        Some(ProcessArgs {
            bundle: self.bundle.clone()?,
            name: self.name.clone(),
            identity: self.identity.clone(),
            run: self.run.clone()?,
            door: self.door,
            detached: self.detached,
        })
    }
}
