//! The command line of `run`.

use std::path::PathBuf;

use clap::Args;

/// `run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Files of experiments, or folders of them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Run every experiment of the folders
    #[arg(long)]
    pub(crate) all: bool,

    /// Write the reports here: Markdown, SVG, CSV and JSON, in a folder for each experiment
    #[arg(long, value_name = "FOLDER")]
    pub(crate) report: Option<PathBuf>,

    /// Run in virtual time what would be run on processes
    #[arg(long = "virtual", conflicts_with = "both")]
    pub(crate) simulated: bool,

    /// Run on processes, then in virtual time, and compare; what cannot run live is run in virtual time alone
    #[arg(long)]
    pub(crate) both: bool,

    /// Run this choice of an axis of variants only; may be given several times
    #[arg(long, value_name = "AXIS=CHOICE", value_parser = choice)]
    pub(crate) only: Vec<(String, String)>,

    /// Run this seed of the file only; may be given several times
    #[arg(long = "seed", value_name = "SEED")]
    pub(crate) seeds: Vec<u64>,

    /// How many runs in virtual time go on at once; as many as there are cores by default
    #[arg(long, value_name = "COUNT", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) jobs: Option<usize>,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `AXIS=CHOICE`
fn choice(text: &str) -> Result<(String, String), String> {
    let (axis, label) = text.split_once('=').ok_or("not of the form AXIS=CHOICE, such as pm=on")?;
    Ok((axis.trim().to_owned(), label.trim().to_owned()))
}
