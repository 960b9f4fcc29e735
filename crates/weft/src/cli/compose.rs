//! The options of `weft compose`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::PlanArgs;

/// `compose`
#[derive(Debug, Args)]
pub(crate) struct ComposeArgs {
    /// Topology file, as `ibnetdiscover` prints it
    #[arg(required_unless_present = "bundle")]
    pub(crate) file: Option<PathBuf>,

    /// Print the compose file of a bundle that `weft compose` wrote before, and plan nothing
    #[arg(long, value_name = "DIR")]
    pub(crate) bundle: Option<PathBuf>,

    /// Folder of the bundle, which the compose file names; it must be empty or not exist [default: the laboratory's name]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Image of all services
    #[arg(long, value_name = "IMAGE", default_value = "weft")]
    pub(crate) image: String,

    /// UDP port at which the hub lets clients in, on all addresses of the host, or ADDR:PORT; `docker stack deploy` takes a
    /// port alone
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "7443")]
    pub(crate) door: String,

    /// User and group that processes run as, who must own the bundle [default: yours]
    #[arg(long, value_name = "UID:GID")]
    pub(crate) user: Option<String>,

    /// Who manages the subnet: weft, or none, so that one of yours can attach
    #[arg(long, value_enum, default_value_t)]
    pub(crate) sm: Sm,

    /// What the laboratory is planned with
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
}

/// A subnet manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sm {
    /// weft's own
    #[default]
    Weft,
    /// None
    None,
}
