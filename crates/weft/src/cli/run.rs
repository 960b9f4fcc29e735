//! The command line of `run`.

use std::path::PathBuf;

use clap::Args;
use weft_device::{Crossbar, LaneShare, Profile};

use super::choice::{Word, choice};

/// `run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Experiment files, or folders of them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Run every experiment in the folders
    #[arg(long)]
    pub(crate) all: bool,

    /// Folder for the reports: Markdown, SVG, CSV and JSON, one folder per experiment
    #[arg(long, value_name = "FOLDER")]
    pub(crate) report: Option<PathBuf>,

    /// Tape each run for `weft ui --tape`: a file where there is one run, or a folder
    #[arg(long, value_name = "PATH")]
    pub(crate) tape: Option<PathBuf>,

    /// Continue an interrupted series: make only the runs that have no recording in the report folder
    #[arg(long, requires = "report")]
    pub(crate) resume: bool,

    /// Run in virtual time instead of on processes
    #[arg(long = "virtual", conflicts_with = "both")]
    pub(crate) simulated: bool,

    /// Run on processes, then in virtual time, and compare; virtual only where a file cannot run live
    #[arg(long)]
    pub(crate) both: bool,

    /// Run live on a busy machine, too; such a run is likely to be invalid
    #[arg(long, conflicts_with = "simulated")]
    pub(crate) allow_busy: bool,

    /// Choice of a variant axis to run; repeatable
    #[arg(long, value_name = "AXIS=CHOICE", value_parser = axis_choice)]
    pub(crate) only: Vec<(String, String)>,

    /// Seed to run; repeatable [default: all of the file]
    #[arg(long = "seed", value_name = "SEED")]
    pub(crate) seeds: Vec<u64>,

    /// Crossbar of all switches, instead of what the files say: is4, fifo or unlimited
    #[arg(long, value_name = "PROFILE")]
    pub(crate) crossbar: Option<Crossbar>,

    /// Unused share of a lane on the links of all switches, instead of what the files say
    #[arg(long, value_name = "NAME", value_parser = choice(LANE_SHARES))]
    pub(crate) lane_share: Option<LaneShare>,

    /// Run also with other buffers, packet sizes and rate scale, three seeds each, and say for which the verdicts hold
    #[arg(long, requires = "simulated")]
    pub(crate) conditions: bool,

    /// Generation of hardware whose constants hold where the files give no number: connectx-ddr, qdr-2012 or ndr-2024
    #[arg(long, value_name = "NAME", value_parser = profile)]
    pub(crate) profile: Option<&'static Profile>,

    /// Concurrent runs in virtual time [default: number of cores]
    #[arg(long, value_name = "COUNT", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) jobs: Option<usize>,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const LANE_SHARES: &[Word<LaneShare>] = &[
    (LaneShare::Lent.name(), "Lent to other lanes", LaneShare::Lent),
    (LaneShare::Waiting.name(), "Kept while packets of the lane wait", LaneShare::Waiting),
    (LaneShare::Fixed.name(), "Always kept", LaneShare::Fixed),
];

fn profile(name: &str) -> Result<&'static Profile, String> {
    let known = Profile::ALL.map(|profile| profile.name).join(", ");
    Profile::find(name).ok_or_else(|| format!("unknown profile: {known}"))
}

/// `AXIS=CHOICE`
fn axis_choice(text: &str) -> Result<(String, String), String> {
    let (axis, label) = text.split_once('=').ok_or("not of the form AXIS=CHOICE, such as pm=on")?;
    Ok((axis.trim().to_owned(), label.trim().to_owned()))
}
