//! The arguments of `graph`.

use std::path::PathBuf;
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
    /// Meaning of the cables' colours, of a running laboratory
    #[arg(long, value_name = "WHAT", default_value = "state", value_parser = choice(COLOURS), conflicts_with = "file")]
    pub(crate) colour: Colour,
    /// Time between the two looks that `data` and `wait` take
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) over: Duration,
    /// Mark the path between two nodes by the tables in the switches
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], conflicts_with = "file")]
    pub(crate) route: Vec<String>,
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
];

impl GraphArgs {
    /// The format that is named, or that the file's name has.
    pub(crate) fn format(&self) -> Option<GraphFormat> {
        let of_name = || {
            let end = self.output.as_deref().map(|path| path.extension().and_then(|end| end.to_str()));
            match end {
                None | Some(Some("svg")) => Some(GraphFormat::Svg),
                Some(Some("html" | "htm")) => Some(GraphFormat::Html),
                Some(Some("mmd" | "mermaid" | "md")) => Some(GraphFormat::Mermaid),
                Some(Some("dot" | "gv")) => Some(GraphFormat::Dot),
                Some(_) => None,
            }
        };
        self.format.or_else(of_name)
    }
}
