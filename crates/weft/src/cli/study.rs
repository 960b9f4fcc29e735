//! The arguments of `weft study`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use weft_study::migrations::{Pattern, Start, Tree};

use super::choice::{Word, choice};

/// `study`
#[derive(Debug, Subcommand)]
pub(crate) enum StudyVerb {
    /// Migrate virtual machines in the fat-trees of the vSwitch paper of 2017: switches updated, bandwidth left
    ///
    /// A combination is a topology, the placement at the start, a scenario of migrations, and the share of virtual functions in
    /// use. Nothing is started: tables are computed.
    Migrations(MigrationsArgs),
    /// Compare wildcard, repath-only and hybrid signalling on the meshes of the signalling paper: datagrams, bytes, latency
    ///
    /// LASH routes each mesh before and after its middle cable is cut. Nothing is started.
    Signalling(SignallingArgs),
    /// Compare notices of a machine that has moved, to each function and to each server: datagrams by number of servers and machines
    ///
    /// A closed form, equal to what agents receive in weft's tests. Nothing is started.
    MigrationSignalling(MigrationSignallingArgs),
}

/// `study migration-signalling`
#[derive(Debug, Args)]
pub(crate) struct MigrationSignallingArgs {
    /// Servers; repeatable, or a list: 3,324
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_values_t = [3, 18, 324], value_parser = clap::value_parser!(u64).range(1..=49_151))]
    pub(crate) servers: Vec<u64>,

    /// Machines of each server; repeatable, or a list: 1,16
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_values_t = [1, 4, 16], value_parser = clap::value_parser!(u64).range(1..=252))]
    pub(crate) machines: Vec<u64>,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `study signalling`
#[derive(Debug, Args)]
pub(crate) struct SignallingArgs {
    /// Most switches of a mesh: 6 to 400
    #[arg(long, value_name = "COUNT", default_value_t = 400, value_parser = clap::value_parser!(u32).range(6..=400))]
    pub(crate) most: u32,

    /// Show how many paths each cable of the 6x6 mesh changes
    #[arg(long)]
    pub(crate) spread: bool,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `study migrations`
#[derive(Debug, Args)]
pub(crate) struct MigrationsArgs {
    /// All 126 combinations of the paper's table 4; the options below choose among them
    #[arg(long)]
    pub(crate) table4: bool,

    /// Topology to study; repeatable: 4-ary-2-full, 8-ary-2, 4-ary-3-full, 16-ary-2, 8-ary-3, 8-ary-3-full
    #[arg(long = "topology", value_name = "NAME")]
    pub(crate) topologies: Vec<Tree>,

    /// Scenario to study; repeatable
    #[arg(long = "scenario", value_name = "NAME", value_parser = choice(SCENARIOS))]
    pub(crate) scenarios: Vec<Pattern>,

    /// Placement at the start; repeatable
    #[arg(long = "start", value_name = "NAME", value_parser = choice(STARTS))]
    pub(crate) starts: Vec<Start>,

    /// Share of virtual functions in use, in percent; repeatable
    #[arg(long = "occupancy", value_name = "PERCENT", value_parser = occupancy)]
    pub(crate) occupancies: Vec<u32>,

    /// Random bisections for each bandwidth
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) bisections: u32,

    /// Seed of starts, migrations and bisections
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Seeds whose mean loss figures 8b and 8e are judged by, from `--seed` on
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: u32,

    /// Number of threads [default: number of cores]
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) threads: usize,

    /// Folder for the report: Markdown, SVG, CSV and JSON
    #[arg(long, value_name = "FOLDER")]
    pub(crate) report: Option<PathBuf>,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Scenarios, as the paper calls them.
const SCENARIOS: &[Word<Pattern>] = &[
    ("random", "Random machines to random hosts, two for each host", Pattern::Random),
    ("consolidate", "To the left, onto as few hosts as can have them", Pattern::Consolidate),
    ("grouping", "The same for two groups of machines, apart", Pattern::Grouping),
    ("to-uniform", "Until every host has the same number", Pattern::ToUniform),
];

/// Placements at the start.
const STARTS: &[Word<Start>] = &[
    ("random", "Machines on random virtual functions", Start::Random),
    ("uniform", "The same number on every host", Start::Uniform),
];

/// 25, 50 or 75, with or without a percent sign.
fn occupancy(text: &str) -> Result<u32, String> {
    let number = text.trim_end_matches('%').trim().parse().ok();
    let known = weft_study::migrations::OCCUPANCIES;
    number.filter(|percent| known.contains(percent)).ok_or_else(|| "must be 25, 50 or 75".to_owned())
}
