//! The arguments about topology files.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::recable::{
    AddHostArgs, AddSwitchArgs, ConnectArgs, DiffArgs, DisconnectArgs, MoveArgs, RemoveArgs,
};

/// `topo`
#[derive(Debug, Subcommand)]
pub(crate) enum TopoVerb {
    /// Generate a topology file
    Gen(Box<GenArgs>),
    /// Check a file and summarise it
    Check {
        /// Topology file
        file: PathBuf,
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Compare two cablings, ignoring names and LIDs; exits 1 when they differ
    ///
    /// With two files, one with the other. With one file, the file with the cables of the running laboratory. Without a file,
    /// what the laboratory's own files say with the cables of its agents.
    Diff(DiffArgs),
    /// Put a cable between two free ports of the running laboratory
    Connect(ConnectArgs),
    /// Take a cable of the running laboratory out
    Disconnect(DisconnectArgs),
    /// Move the far end of the cable in a port to another port
    Move(MoveArgs),
    /// Add a host to the running laboratory
    AddHost(AddHostArgs),
    /// Add a switch to the running laboratory
    AddSwitch(AddSwitchArgs),
    /// Remove a node and its cables from the running laboratory
    Remove(RemoveArgs),
    /// Print the nodes and cables of a file
    Show {
        /// Topology file
        file: PathBuf,
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
}

/// Kinds of fabric to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GenKind {
    /// Extended generalised fat-tree: `--children` and `--parents`, hosts' level first
    Xgft,
    /// The same with `--parallel` cables between neighbours
    Pgft,
    /// The largest tree of switches with `--radix` ports and `--levels` levels
    Rlft,
    /// k-ary n-tree: `--arity` and `--levels`
    Kary,
    /// Mesh of `--dims`
    Mesh,
    /// Torus of `--dims`
    Torus,
    /// Ring of `--switches`
    Ring,
    /// Hypercube of `--dimension`
    Hypercube,
    /// Dragonfly of groups of `--routers` switches with `--global` cables each; `--groups` of them or as many as fit
    Dragonfly,
    /// Chassis of director switches: `--lines` per chassis under `--spines` each with `--inside` cables, joined by
    /// `--trunks` or by `--edges` switches with `--uplinks`
    Director,
    /// Irregular: `--switches`, `--hosts`, further `--cables` and `--parallel` ones, from `--seed`
    Random,
}

/// How HCAs are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Describe {
    /// By the host: `host-3`
    Plain,
    /// As Linux does, by host and adapter: `host-3 mlx5_0`; programs that map hosts need that. `host-3` still names it here
    Linux,
}

/// `topo gen`
#[derive(Debug, Args)]
pub(crate) struct GenArgs {
    /// Kind of fabric
    pub(crate) kind: GenKind,
    /// Children per node, per level from the hosts up (xgft, pgft), such as 18,36
    #[arg(long, value_delimiter = ',', value_name = "M1,M2,…")]
    pub(crate) children: Vec<u32>,
    /// Parents per node, per level from the hosts up (xgft, pgft), such as 1,18
    #[arg(long, value_delimiter = ',', value_name = "W1,W2,…")]
    pub(crate) parents: Vec<u32>,
    /// Parallel cables, per level from the hosts up (pgft), or in all (random)
    #[arg(long, value_delimiter = ',', value_name = "P1,P2,…")]
    pub(crate) parallel: Vec<u32>,
    /// k of a k-ary n-tree
    #[arg(long)]
    pub(crate) arity: Option<u32>,
    /// Levels of switches (rlft), n of a k-ary n-tree
    #[arg(long)]
    pub(crate) levels: Option<u32>,
    /// Switches per dimension (mesh, torus), such as 4,4,4
    #[arg(long, value_delimiter = ',', value_name = "D1,D2,…")]
    pub(crate) dims: Vec<u32>,
    /// Dimension of a hypercube
    #[arg(long)]
    pub(crate) dimension: Option<u32>,
    /// Switches (ring, random)
    #[arg(long)]
    pub(crate) switches: Option<u32>,
    /// Cables between switches besides those of a tree (random)
    #[arg(long)]
    pub(crate) cables: Option<u32>,
    /// Groups (dragonfly)
    #[arg(long)]
    pub(crate) groups: Option<u32>,
    /// Switches per group (dragonfly)
    #[arg(long)]
    pub(crate) routers: Option<u32>,
    /// Global cables per switch (dragonfly)
    #[arg(long)]
    pub(crate) global: Option<u32>,
    /// Line chips of each chassis (director), such as 9,9,6
    #[arg(long, value_delimiter = ',', value_name = "L1,L2,…")]
    pub(crate) lines: Vec<u32>,
    /// Spine chips per chassis (director)
    #[arg(long)]
    pub(crate) spines: Option<u32>,
    /// Cables between a line chip and a spine chip (director) [default: 1]
    #[arg(long)]
    pub(crate) inside: Option<u32>,
    /// Cables between every two chassis (director) [default: 0]
    #[arg(long)]
    pub(crate) trunks: Option<u32>,
    /// Edge switches outside of the chassis (director) [default: 0]
    #[arg(long)]
    pub(crate) edges: Option<u32>,
    /// Hosts per edge switch (director) [default: 0]
    #[arg(long)]
    pub(crate) edge_hosts: Option<u32>,
    /// Line chips that each edge switch is cabled to (director) [default: 0]
    #[arg(long)]
    pub(crate) uplinks: Option<u32>,
    /// Add a SHArP aggregation node at every switch; each needs a free port (--radix)
    #[arg(long)]
    pub(crate) aggregation_nodes: bool,
    /// Ports per switch [default: as many as the fabric needs]
    #[arg(long)]
    pub(crate) radix: Option<u8>,
    /// Hosts per switch, or per line chip of a director, 1 by default; for trees, hosts in all, spread evenly over the leaves, as many as fit by
    /// default; for random fabrics, hosts in all
    #[arg(long)]
    pub(crate) hosts: Option<u32>,
    /// Leave out this many cables between switches, drawn from --seed, as a damaged fabric lacks them
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) drop_cables: usize,
    /// Descriptions of HCAs
    #[arg(long, value_enum, default_value_t = Describe::Linux)]
    pub(crate) describe: Describe,
    /// Seed of random fabrics and of the cables of --drop-cables
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// File to write [default: standard output]
    #[arg(long, short)]
    pub(crate) output: Option<PathBuf>,
}
