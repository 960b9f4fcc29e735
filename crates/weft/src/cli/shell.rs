//! `weft shell` and `weft sysfs`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// `shell`
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// Node whose ports the programs use, or NODE:PORT: programs that name no port use that one [default: the subnet manager's node, else
    /// the file's first HCA]
    #[arg(long, value_name = "NODE[:PORT]")]
    pub(crate) at: Option<String>,

    /// Attach by ibsim's protocol with the stock libumad2sim.so, to the server of this name
    ///
    /// The name is an IBSIM_SOCKNAME, or udp:ADDRESS:PORT. Without a name weft uses the laboratory's server (`up
    /// --ibsim-socket`), or starts one for the program.
    #[arg(long, value_name = "NAME", require_equals = true, num_args = 0..=1, default_missing_value = "")]
    pub(crate) ibsim: Option<String>,

    /// Mount the node's HCA, as it is at the start, under /sys/class in a user and mount namespace of its own
    #[arg(long, conflicts_with = "ibsim")]
    pub(crate) sysfs: bool,

    /// Program and arguments [default: $SHELL]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `sysfs`
#[derive(Debug, Args)]
pub(crate) struct SysfsArgs {
    /// Node to write, or vm:NAME [default: the subnet manager's, else the file's first HCA]
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// Rewrite the files at this interval until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) every: Option<u64>,

    /// Folder in place of /sys: receives class/infiniband and class/infiniband_mad
    pub(crate) dir: PathBuf,
}
