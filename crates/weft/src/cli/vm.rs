//! The arguments of `vm`.

use clap::{Args, Subcommand, ValueEnum};
use weft_wire::Guid;

use super::TableArgs;

/// Verbs for virtual machines.
#[derive(Debug, Subcommand)]
pub(crate) enum VmVerb {
    /// Start a virtual machine, or a fleet of them
    Create(VmCreateArgs),
    /// List virtual machines, with UFM's field names in JSON
    Ls(TableArgs),
    /// Show which switches and blocks a move would write, in which order; nothing is sent to switches
    Plan(VmPlanArgs),
    /// Move a virtual machine to another host; it keeps its GUID and its LID
    Migrate(VmMigrateArgs),
    /// End a virtual machine, or take a lost one off the list
    Destroy(VmName),
    /// Give up a virtual machine that is lost, or whose host cannot be reached
    Forget(VmForgetArgs),
}

/// A virtual machine.
#[derive(Debug, Args)]
pub(crate) struct VmName {
    /// Virtual machine, as `weft vm ls` lists it
    pub(crate) name: String,
}

/// `vm create`
#[derive(Debug, Args)]
pub(crate) struct VmCreateArgs {
    /// Name: 1 to 64 letters, digits, `-`, `_` and `.`; machines of a fleet are NAME-1, NAME-2, …
    pub(crate) name: String,
    /// Host to start on: an HCA's description, GUID or id [default: the host with most free functions]
    #[arg(long, value_name = "NODE")]
    pub(crate) host: Option<String>,
    /// Number of machines of a fleet, spread evenly over hosts [default: one machine]
    #[arg(long, value_name = "COUNT")]
    pub(crate) count: Option<u32>,
    /// Virtual function of the host, from 1 [default: the first free one]
    #[arg(long, value_name = "VF", requires = "host")]
    pub(crate) vf: Option<u8>,
    /// Port GUID, with --lids dynamic [default: the manager chooses one]
    #[arg(long, value_name = "GUID")]
    pub(crate) guid: Option<Guid>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the subnet manager chooses the switches that it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum VmMethod {
    /// The fewest switches of a fat tree; falls back to the others
    #[default]
    Ftreeminrc,
    /// Every switch whose row differs
    Itrc,
    /// Every switch whose row does not lead nearer to the new place
    Skyline,
    /// Every block of every switch
    Full,
}

/// What waits for what while switches are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum VmUpdate {
    /// A switch after the next written switch on its new path
    #[default]
    Ordered,
    /// The same, but switches around the old place drop packets until those of the old way are gone
    OrderedLate,
    /// Packets are dropped first
    DropFirst,
    /// All at once
    Unordered,
}

/// Where to, and how the address follows.
#[derive(Debug, Args)]
pub(crate) struct VmWayArgs {
    /// Virtual machine, as `weft vm ls` lists it
    pub(crate) name: String,
    /// Host to move to: an HCA's description, GUID or id
    pub(crate) host: String,
    /// Choice of the switches to write
    #[arg(long, value_name = "METHOD", value_enum, default_value_t)]
    pub(crate) method: VmMethod,
    /// Order of the writes
    #[arg(long, value_name = "ORDER", value_enum, default_value_t)]
    pub(crate) update: VmUpdate,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `vm plan`
#[derive(Debug, Args)]
pub(crate) struct VmPlanArgs {
    /// Where to, and how
    #[command(flatten)]
    pub(crate) way: VmWayArgs,
}

/// `vm migrate`
#[derive(Debug, Args)]
pub(crate) struct VmMigrateArgs {
    /// Where to, and how
    #[command(flatten)]
    pub(crate) way: VmWayArgs,
    /// Shut it down and boot it there, rather than take its state along
    #[arg(long, conflicts_with_all = ["early_detach", "late_detach", "pre_copy", "stop_copy", "resume"])]
    pub(crate) cold: bool,
    /// Take its function away before its memory is copied
    #[arg(long)]
    pub(crate) early_detach: bool,
    /// Take its function away after its memory is copied [default]
    #[arg(long, conflicts_with = "early_detach")]
    pub(crate) late_detach: bool,
    /// Milliseconds that an emulated hypervisor copies memory while the machine runs
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub(crate) pre_copy: u64,
    /// Milliseconds that it copies the rest while the machine is stopped
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=30_000))]
    pub(crate) stop_copy: u64,
    /// Milliseconds that the machine takes to resume
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=30_000))]
    pub(crate) resume: u64,
}

/// `vm forget`
#[derive(Debug, Args)]
pub(crate) struct VmForgetArgs {
    /// Virtual machine, as `weft vm ls` lists it
    pub(crate) name: String,
    /// Also when it may still run: its host ends it when it returns
    #[arg(long)]
    pub(crate) force: bool,
}
