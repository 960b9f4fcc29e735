//! The arguments that change the cabling of a laboratory that runs.

use std::path::PathBuf;

use clap::Args;

use super::identity::AuthorityArgs;

/// What every change of the cabling has.
#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Bundle with the authority, where an identity must be issued
    #[command(flatten)]
    pub(crate) authority: AuthorityArgs,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// `topo connect`
#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// A free port: NODE:PORT, the node by description, GUID or id
    pub(crate) a: String,
    /// Another free port
    pub(crate) b: String,
    /// Identities and output
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `topo disconnect`
#[derive(Debug, Args)]
pub(crate) struct DisconnectArgs {
    /// One of the cable's ports: NODE:PORT
    pub(crate) port: String,
    /// Identities and output
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `topo move`
#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The end of the cable that stays where it is: NODE:PORT
    pub(crate) stays: String,
    /// The free port that its other end goes to
    pub(crate) to: String,
    /// Identities and output
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `topo add-host`
#[derive(Debug, Args)]
pub(crate) struct AddHostArgs {
    /// The host's description, which no other node has
    pub(crate) name: String,
    /// The free port of a switch that it is cabled to
    #[arg(long, value_name = "NODE:PORT")]
    pub(crate) at: String,
    /// Identities and output
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `topo add-switch`
#[derive(Debug, Args)]
pub(crate) struct AddSwitchArgs {
    /// The switch's description, which no other node has
    pub(crate) name: String,
    /// Number of its ports
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=254))]
    pub(crate) ports: u8,
    /// A cable: a port of the new switch, and a free port of another node
    #[arg(long, value_name = "PORT=NODE:PORT", value_parser = cable)]
    pub(crate) connect: Vec<(u8, String)>,
    /// Identities and output
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `topo remove`
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The node, with an agent of its own
    pub(crate) node: String,
    /// Identities and output
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `topo diff`
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Topology file [default: the cabling that the laboratory's own files hold]
    pub(crate) left: Option<PathBuf>,
    /// Another file [default: the cables that the running agents have]
    pub(crate) right: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

fn cable(text: &str) -> Result<(u8, String), String> {
    let malformed = || format!("`{text}` is not PORT=NODE:PORT, such as 1=leaf1:3");
    let (port, peer) = text.split_once('=').ok_or_else(malformed)?;
    let port = port.parse().map_err(|_| malformed())?;
    Ok((port, peer.to_owned()))
}
