//! The arguments of `ui` and `tape`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::events::duration;

/// `ui`
#[derive(Debug, Args)]
pub(crate) struct UiArgs {
    /// TCP port of the loopback to serve at [default: a free one]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Print the address only; without this a browser is opened where there is a display
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Show a tape that `tape` has recorded, not a laboratory
    #[arg(long, value_name = "FILE")]
    pub(crate) tape: Option<PathBuf>,
    /// Serve the page's files from a folder, not from the program
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) assets: Option<PathBuf>,
}

/// `tape`
#[derive(Debug, Args)]
pub(crate) struct TapeArgs {
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Recording time, such as 5m [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) lasts: Option<Duration>,
    /// Size at which the tape ends, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) megabytes: u64,
}
