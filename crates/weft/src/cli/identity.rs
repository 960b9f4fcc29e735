//! The arguments of `identity`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use weft_link::Serial;

/// Verbs for the identities of a laboratory's processes, and of people.
#[derive(Debug, Subcommand)]
pub(crate) enum IdentityVerb {
    /// List identities: their serial numbers, and whether they are valid
    Ls(IdentityLsArgs),
    /// Issue identities again, valid for a year from now, and have their processes use them
    Renew(IdentityRenewArgs),
    /// Revoke identities: no process accepts them from now on
    Revoke(IdentityRevokeArgs),
    /// Take identities of this host's processes from standard input, as `renew` sends them
    #[command(hide = true)]
    Take,
}

/// The bundle that holds the authority.
#[derive(Debug, Args)]
pub(crate) struct AuthorityArgs {
    /// Folder that `weft plan` wrote [default: the one of the running laboratory]
    #[arg(long = "in", id = "folder", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

/// `identity ls`
#[derive(Debug, Args)]
pub(crate) struct IdentityLsArgs {
    /// Bundle with the identities
    #[command(flatten)]
    pub(crate) authority: AuthorityArgs,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `identity renew`
#[derive(Debug, Args)]
pub(crate) struct IdentityRenewArgs {
    /// Processes, or `operator` and `viewer`
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) names: Vec<String>,
    /// All identities
    #[arg(long)]
    pub(crate) all: bool,
    /// Also revoke the previous identities
    #[arg(long)]
    pub(crate) revoke_old: bool,
    /// Bundle with the authority
    #[command(flatten)]
    pub(crate) authority: AuthorityArgs,
}

/// `identity revoke`
#[derive(Debug, Args)]
pub(crate) struct IdentityRevokeArgs {
    /// Processes, or `operator` and `viewer`
    #[arg(required_unless_present = "serial")]
    pub(crate) names: Vec<String>,
    /// An earlier identity, by the serial number that `weft identity ls` showed
    #[arg(long, value_name = "HEX")]
    pub(crate) serial: Vec<Serial>,
    /// Bundle with the authority
    #[command(flatten)]
    pub(crate) authority: AuthorityArgs,
}
