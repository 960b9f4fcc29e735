//! `weft shell` and `weft sysfs`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// `shell`
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// The node whose ports the programs have; by default the subnet manager's, else the first HCA of the file
    #[arg(long, value_name = "NODE")]
    pub(crate) at: Option<String>,

    /// Attach by ibsim's own protocol with the stock libumad2sim.so, to the server of this name
    ///
    /// The name is an IBSIM_SOCKNAME, or udp:ADDRESS:PORT. Without one it is the laboratory's server (`up
    /// --ibsim-socket`), or else one that is started for the program and ends with it.
    #[arg(long, value_name = "NAME", require_equals = true, num_args = 0..=1, default_missing_value = "")]
    pub(crate) ibsim: Option<String>,

    /// Lay what the kernel would tell of the node's HCA under /sys/class, in a user and mount namespace of its own; as
    /// things are when it starts
    #[arg(long, conflicts_with = "ibsim")]
    pub(crate) sysfs: bool,

    /// The program and its arguments; $SHELL without
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `sysfs`
#[derive(Debug, Args)]
pub(crate) struct SysfsArgs {
    /// The node; by default the subnet manager's, else the first HCA of the file
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// Write the files anew every so often, until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) every: Option<u64>,

    /// The folder that stands for /sys: class/infiniband and class/infiniband_mad are written in it
    pub(crate) dir: PathBuf,
}
