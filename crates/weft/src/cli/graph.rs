//! The arguments of `graph`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use weft_lab::paints::Colour;

use super::choice::{Word, choice};
use super::events::duration;

/// `graph`
#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    /// Topology file [default: the running laboratory]
    pub(crate) file: Option<PathBuf>,
    /// File to write; its name's end says the format: .svg, .html, .mmd or .dot [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Format [default: as the file's name says, or svg]
    #[arg(long, value_name = "FORMAT", value_parser = choice(FORMATS))]
    pub(crate) format: Option<GraphFormat>,
    /// Meaning of the cables' colours; of a file `load`
    #[arg(long, value_name = "WHAT", default_value = "state", value_parser = choice(COLOURS))]
    pub(crate) colour: Colour,
    /// Draw the load of the tables in this folder, as `weft routes compute --dump` writes it, and what the verifier finds
    #[arg(long, value_name = "FOLDER", requires = "file", conflicts_with = "engine")]
    pub(crate) tables: Option<PathBuf>,
    /// Draw the load of the tables of these engines [default: auto]
    #[arg(long, value_name = "ENGINE,…", requires = "file")]
    pub(crate) engine: Option<String>,
    /// Time between the two looks that `data` and `wait` take
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) over: Duration,
    /// Mark the path between two nodes by the tables in the switches
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], conflicts_with = "file")]
    pub(crate) route: Vec<String>,
    /// Mark a virtual machine's move to a host: where it is, where it goes, and the switches that are written
    #[arg(long = "move", num_args = 2, value_names = ["VM", "HOST"], conflicts_with = "file")]
    pub(crate) machine: Vec<String>,
    /// Show every host, also of a large fabric [default: fabrics of more than 64 nodes have their hosts folded into switches]
    #[arg(long, conflicts_with = "fold")]
    pub(crate) unfold: bool,
    /// Fold hosts into their switches, also of a small fabric
    #[arg(long)]
    pub(crate) fold: bool,
}

/// A kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GraphFormat {
    Svg,
    Html,
    Mermaid,
    Dot,
}

const FORMATS: &[Word<GraphFormat>] = &[
    ("svg", "A picture", GraphFormat::Svg),
    ("html", "A page with the picture and a table", GraphFormat::Html),
    ("mermaid", "A flowchart for documents", GraphFormat::Mermaid),
    ("dot", "A graph for Graphviz", GraphFormat::Dot),
];

const COLOURS: &[Word<Colour>] = &[
    ("state", "Links that are down", Colour::State),
    ("data", "Bytes per second, from PortXmitData", Colour::Data),
    ("wait", "Waiting for credit, from PortXmitWait", Colour::Wait),
    ("load", "Pairs of hosts that cross it, by the tables", Colour::Load),
];

impl GraphArgs {
    /// The format that is named, or that the file's name has.
    pub(crate) fn format(&self) -> Option<GraphFormat> {
        let of_name = || self.output.as_deref().map_or(Some(GraphFormat::Svg), GraphFormat::of);
        self.format.or_else(of_name)
    }
}

impl GraphFormat {
    /// The format that a file's name has.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "svg" => Some(Self::Svg),
            "html" | "htm" => Some(Self::Html),
            "mmd" | "mermaid" | "md" => Some(Self::Mermaid),
            "dot" | "gv" => Some(Self::Dot),
            _ => None,
        }
    }
}
