//! The command line. The doc comments below are the help.

pub(crate) mod ask;
pub(crate) mod bench;
pub(crate) mod capture;
pub(crate) mod chaos;
mod choice;
pub(crate) mod compose;
pub(crate) mod congestion;
pub(crate) mod engine;
pub(crate) mod events;
pub(crate) mod fault;
pub(crate) mod flow;
pub(crate) mod graph;
mod groups;
mod help;
pub(crate) mod hub;
pub(crate) mod ibsim;
pub(crate) mod identity;
pub(crate) mod keys;
pub(crate) mod lanes;
pub(crate) mod managers;
pub(crate) mod partition;
pub(crate) mod plan;
pub(crate) mod pm;
pub(crate) mod process;
pub(crate) mod recable;
pub(crate) mod relay;
pub(crate) mod routes;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod study;
pub(crate) mod topo;
pub(crate) mod ui;
pub(crate) mod vfs;
pub(crate) mod vm;
pub(crate) mod vm_lids;

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;
use weft_link::PeerAddress;
use weft_mgmt::Window;
use weft_sm::SmpRouting;
use weft_wire::GidPrefix;

use choice::{Word, choice};

/// A distributed emulator of InfiniBand fabrics
///
/// Every switch and every host channel adapter runs as a process of its own, the cables between them are QUIC
/// connections, and a subnet manager brings the fabric up. No root needed.
#[derive(Debug, Parser)]
#[command(
    name = "weft",
    version,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// Lab to act on; optional if only one is running
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) lab: Option<String>,

    /// Act on a remote laboratory, through its hub's endpoint
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "lab")]
    pub(crate) at: Option<PeerAddress>,

    /// With --at: file with certificate and private key, such as identities/operator.pem of a bundle [default: $WEFT_IDENTITY]
    #[arg(long, value_name = "FILE", requires = "at")]
    pub(crate) identity: Option<PathBuf>,

    /// What to do
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// The verb's words, as in `topo add-host`
    #[arg(skip)]
    pub(crate) words: String,
}

impl Cli {
    /// The parsed command line; ends the program where it is invalid.
    pub(crate) fn told() -> Self {
        let matches = command().get_matches();
        let (mut words, mut below) = (Vec::new(), &matches);
        while let Some((word, further)) = below.subcommand() {
            words.push(word);
            below = further;
        }
        let cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        Self { words: words.join(" "), ..cli }
    }
}

/// The command line with what its types cannot say, and with the help that is asked for.
pub(crate) fn command() -> clap::Command {
    groups::under_headings(help::shorten(parsed()))
}

/// The command line with all options, for shells that complete it.
pub(crate) fn completed() -> clap::Command {
    help::with_help_all(parsed(), true)
}

/// The command line with what its types cannot say.
fn parsed() -> clap::Command {
    plan::exclude_planning(Cli::command())
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start a laboratory and bring its fabric to SUBNET UP
    Up(Box<plan::UpArgs>),
    /// Write a laboratory's bundle: configuration and identities of its processes, and the cabling
    Plan(Box<plan::PlanCommand>),
    /// Write a laboratory's bundle, and print a compose file that runs it in containers
    Compose(Box<compose::ComposeArgs>),
    /// List, renew and revoke the identities of processes and people
    #[command(subcommand)]
    Identity(identity::IdentityVerb),
    /// Write a laboratory's bundle, and print Kubernetes manifests that run it
    K8s(Box<compose::KubernetesArgs>),
    /// Stop a laboratory and leave nothing behind
    Down(DownArgs),
    /// List the processes of a laboratory
    Ps(TableArgs),
    /// Show the managers' state
    Status(TableArgs),
    /// Show where traffic waits, port by port, from the performance manager's counters
    Top(pm::TopArgs),
    /// Print the scrape file for Prometheus, or the addresses that serve metrics
    Metrics(pm::MetricsArgs),
    /// List the cables, their state and their counters
    Links(LinksArgs),
    /// Show the path between two nodes by the tables in the switches
    Trace(TraceArgs),
    /// Draw the fabric: SVG, HTML, Mermaid or DOT, coloured by state, data or credit wait
    Graph(graph::GraphArgs),
    /// Serve the live page of a laboratory or a tape on loopback, and open a browser
    Ui(ui::UiArgs),
    /// Record what the live page shows, for `ui --tape`
    Tape(ui::TapeArgs),
    /// Verify that every host reaches every other
    Check(CheckArgs),
    /// Start a hub for a lab (event collection, restarts); `up` already starts one
    Hub(hub::HubArgs),
    /// Show the laboratory's events
    Events(events::EventsArgs),
    /// Ask a process in the control protocol, and print its answer as JSON
    Ask(ask::AskArgs),
    /// Carry the control protocol between standard input and output and the hub, for clients in other languages
    Relay(relay::RelayArgs),
    /// Capture the packets that cross cables
    Capture(capture::CaptureArgs),
    /// Run programs that use libibumad at a node, or a shell for them
    ///
    /// The programs see the node's ports as ports of an HCA of this machine.
    Shell(shell::ShellArgs),
    /// Write a node's HCA as the kernel shows it under /sys
    Sysfs(shell::SysfsArgs),
    /// Restart a node's agent and record its inputs, for `replay`
    Record(fault::RecordArgs),
    /// Feed a recording to a node, and stop at the first output that differs
    Replay(fault::ReplayArgs),
    /// Run experiments from files, on processes or in virtual time, and write reports
    Run(run::RunArgs),
    /// Break and repair nodes and cables
    #[command(subcommand)]
    Fault(fault::FaultVerb),
    /// Break a fabric by schedules drawn from a seed, judge what is left, and shrink a schedule that finds a bug
    Chaos(Box<chaos::ChaosArgs>),
    /// Create, list, move and end virtual machines in virtual functions
    #[command(subcommand)]
    Vm(vm::VmVerb),
    /// List partitions, and change who is in them while the fabric runs
    #[command(subcommand)]
    Partition(partition::PartitionVerb),
    /// Start, list and stop flows between hosts and virtual machines
    #[command(subcommand)]
    Flow(flow::FlowVerb),
    /// Start patterns of flows: all-to-all, incast, ring, permutation, bisection
    #[command(subcommand)]
    Traffic(flow::TrafficVerb),
    /// Generate, check, compare and show topology files, and recable a running laboratory
    #[command(subcommand)]
    Topo(topo::TopoVerb),
    /// Compute, verify and compare routings
    #[command(subcommand)]
    Routes(routes::RoutesVerb),
    /// Reproduce a paper's offline study
    #[command(subcommand)]
    Study(study::StudyVerb),
    /// Measure SMP round trips or start-up
    #[command(subcommand)]
    Bench(bench::BenchVerb),
    /// Bring a fabric up in virtual time
    Sim(Box<SimArgs>),
    /// Print shell completions
    Completions {
        /// Shell to complete for
        shell: Shell,
    },
    /// Command other subnet managers, or run one alone on a fabric that ibsim emulates
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Sm(Box<managers::SmCommand>),
    /// Run the performance manager (used by `up`)
    #[command(hide = true)]
    Pm(process::MeteredProcessArgs),
    /// Run the VM manager (used by `up`)
    #[command(hide = true)]
    Vmm(process::VmmProcessArgs),
    /// Serve programs under ibsim's library (used by `up`)
    #[command(hide = true)]
    Ibsim(process::ProcessArgs),
    /// Run unmodified OpenSM (used by `up`)
    #[command(hide = true)]
    Opensm(process::ProcessArgs),
    /// Exit with 0 if a process that runs here is well: a container's health check
    #[command(hide = true)]
    Health(process::HealthArgs),
    /// The other end of a bare QUIC ping-pong (used by `bench smp`)
    #[command(hide = true)]
    BenchEcho,
}

/// Options of verbs that print a table.
#[derive(Debug, Clone, Args)]
pub(crate) struct TableArgs {
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `links`
#[derive(Debug, Clone, Args)]
pub(crate) struct LinksArgs {
    /// Say what a cut of the cable at this port would do, such as leaf-1:7: ways, LIDs and blocks to write; nothing is cut
    #[arg(long, value_name = "PORT")]
    pub(crate) if_cut: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Routing of SMPs once the forwarding tables are written.
const SMP_ROUTINGS: &[Word<SmpRouting>] = &[
    ("directed", "Port by port, through the agent of every switch on the way", SmpRouting::Directed),
    ("lid", "By LID, through the forwarding tables", SmpRouting::Lid),
];

/// Options of the devices.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Devices")]
pub(crate) struct DeviceArgs {
    /// Milliseconds between repeats of a trap that no manager has repressed; shorter intervals look like a looping trap
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    pub(crate) trap_interval_ms: u64,

    /// Maximum number of times a trap is sent; 0 disables traps
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) trap_limit: u16,

    /// Microseconds that a device takes to process one SMP; 0 answers at once
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=60_000_000))]
    pub(crate) smp_processing_us: u64,

    /// SMPs that may wait in a device; further ones are dropped and counted in VL15Dropped
    #[arg(long, value_name = "COUNT", default_value_t = 128)]
    pub(crate) vl15_buffer: u16,

    /// P_Keys that a port's table holds
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = p_key_capacity)]
    pub(crate) p_key_capacity: u16,
}

/// A table has whole blocks of 32 keys.
fn p_key_capacity(text: &str) -> Result<u16, String> {
    let capacity =
        text.parse().ok().filter(|count: &u16| (32..=1024).contains(count) && count.is_multiple_of(32));
    capacity.ok_or_else(|| "a multiple of 32 from 32 to 1024".to_owned())
}

/// Options of the subnet manager.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Subnet manager")]
pub(crate) struct SmArgs {
    /// Node whose first cabled port the subnet manager uses, or NODE:PORT; repeat it for a manager in each piece of the
    /// fabric [default: the file's first HCA]
    #[arg(long, value_name = "NODE")]
    pub(crate) sm_at: Vec<String>,

    /// Prefix of the subnet; managers of further pieces take the next ones
    #[arg(long, value_name = "PREFIX", default_value = "0xfe80000000000000", value_parser = keys::subnet_prefix)]
    pub(crate) subnet_prefix: GidPrefix,

    /// Maximum outstanding SMPs, 1 to 65536; auto: grow while answers come faster
    #[arg(long, value_name = "COUNT|auto", default_value_t = Window::AUTO)]
    pub(crate) max_wire_smps: Window,

    /// Timeout of an SMP in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub(crate) timeout_ms: u64,

    /// Retries for an unanswered SMP
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) retries: u32,

    /// Routing of SMPs once the forwarding tables are written
    #[arg(long, default_value = "directed", value_parser = choice(SMP_ROUTINGS))]
    pub(crate) smp_routing: SmpRouting,

    /// Milliseconds between light sweeps; 0 disables them
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    pub(crate) sweep_interval_ms: u64,

    /// Write SL-to-VL and VL arbitration tables [default: true; on ibsim false, as in OpenSM]
    #[arg(long, value_name = "BOOL")]
    pub(crate) qos: Option<bool>,

    /// Sweep once, not twice, when both ends of a cable report a change
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) one_sweep_per_cable: bool,

    /// LMC of host ports: each has 2^LMC LIDs
    #[arg(long, value_name = "LMC", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) lmc: u8,

    /// Routing engines to try, in order. Then come those of `auto`, unless the list has `no_fallback`: minhop if it is
    /// proved deadlock-free, updn, dfsssp, lash, and last minhop unproved; on a damaged tree ftree, where it is not behind.
    /// `weft routes engines` lists all
    #[arg(long, value_name = "ENGINE,…", default_value = "auto")]
    pub(crate) engine: String,

    /// Election among several managers
    #[command(flatten)]
    pub(crate) election: managers::ElectionArgs,

    /// Lanes, lifetimes, partitions and paths
    #[command(flatten)]
    pub(crate) lanes: lanes::LaneArgs,

    /// Management keys
    #[command(flatten)]
    pub(crate) keys: keys::KeyArgs,

    /// LIDs of virtual functions
    #[command(flatten)]
    pub(crate) vm_lids: vm_lids::VmLidArgs,

    /// Congestion control
    #[command(flatten)]
    pub(crate) congestion: congestion::CongestionArgs,

    /// Options of the engines
    #[command(flatten)]
    pub(crate) routing: engine::EngineArgs,
}

/// `down`
#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// Stop all laboratories of this user
    #[arg(long, conflicts_with = "lab")]
    pub(crate) all: bool,

    /// Forget a laboratory of other hosts even if some cannot be reached: what runs there is left
    #[arg(long)]
    pub(crate) forget: bool,
}

/// `trace`
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Start of the path: an HCA's description, GUID or id
    pub(crate) from: String,
    /// End of the path: a node's description, GUID or id
    pub(crate) to: String,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `check`
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Send a packet along every path, even on large fabrics
    #[arg(long)]
    pub(crate) all: bool,
    /// Number of paths to try on large fabrics
    #[arg(long, value_name = "COUNT", default_value_t = 4096, conflicts_with = "all", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sample: u32,
    /// Seed that chooses those paths
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Abort after this many seconds and report what is known by then [default: 60 more than --wait, with --all 600 more]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Maximum wait in seconds for a sweep of the subnet manager that is due, 0 for none
    #[arg(long, value_name = "SECONDS", default_value_t = weft_lab::check::WAIT)]
    pub(crate) wait: u32,
    /// Node to look from, or NODE:PORT: only its piece of the fabric is judged [default: where most is seen]
    #[arg(long, value_name = "NODE")]
    pub(crate) from: Option<String>,
    /// Write a picture of what was found: links that are down, nodes of problems, a packet that is lost; the file's end says the format
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

impl CheckArgs {
    /// What the check is to be.
    pub(crate) fn options(&self) -> weft_lab::check::Options {
        let Self { all, sample, seed, limit, wait, ref from, picture: _, json: _ } = *self;
        weft_lab::check::Options { all, sample, seed, limit, wait, from: from.clone() }
    }
}

/// `sim`
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// Topology file, as `ibnetdiscover` prints it
    pub(crate) file: PathBuf,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Delay of a cable in microseconds
    #[arg(long, value_name = "US", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) link_delay_us: u64,
    /// Maximum further delay in microseconds, drawn for each SMP
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) link_jitter_us: u64,
    /// Microseconds that a device takes to process one SMP
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) smp_processing_us: u64,
    /// P_Keys that a port's table holds
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = p_key_capacity)]
    pub(crate) p_key_capacity: u16,
    /// Abort after this many seconds of virtual time
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) limit: u64,
    /// Tape the start for `weft ui --tape`, in microseconds of virtual time
    #[arg(long, value_name = "FILE")]
    pub(crate) tape: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Options of the subnet manager
    #[command(flatten)]
    pub(crate) sm: SmArgs,
}

/// The command line of the thin programs for containers.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct ProcessCli<A: Args> {
    /// Options of the process
    #[command(flatten)]
    pub(crate) args: A,
}
