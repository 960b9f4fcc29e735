//! `hub`, and what `up` says about it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use weft_control::hub::RestartPolicy;

use super::choice::{Word, choice};

/// `hub`
#[derive(Debug, Args)]
pub(crate) struct HubArgs {
    /// Leave the terminal: return once the hub serves
    #[arg(long)]
    pub(crate) detached: bool,

    /// Serve /metrics, /healthz, /status, /events and /sd over HTTP, on loopback unless an address is given
    /// [default: as given to `up`]
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = socket_at)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Let clients in over QUIC at this UDP port, on loopback unless an address is given: `weft --at` [default: as given to `up`]
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = socket_at)]
    pub(crate) door: Option<SocketAddr>,

    /// Watch the remote processes of a bundle, as in containers, and reach them over the network
    #[arg(long, value_name = "DIR", requires = "run", conflicts_with = "detached")]
    pub(crate) bundle: Option<PathBuf>,

    /// File with certificate and private key [default: identities/hub.pem in the bundle]
    #[arg(long, value_name = "FILE", requires = "bundle")]
    pub(crate) identity: Option<PathBuf>,

    /// Folder for sockets and locks; made if it does not exist
    #[arg(long, value_name = "DIR", requires = "bundle")]
    pub(crate) run: Option<PathBuf>,
}

/// What `up` says about the hub.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Hub")]
pub(crate) struct UpHubArgs {
    /// Restart policy for processes; those killed by `weft fault kill` stay down
    #[arg(long, value_parser = choice(RESTARTS), default_value = "never")]
    pub(crate) restart: RestartPolicy,

    /// Have the hub serve /metrics, /healthz, /status, /events and /sd over HTTP, on loopback unless an address is given
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = socket_at)]
    pub(crate) hub_metrics: Option<SocketAddr>,

    /// Have the hub let clients in over QUIC at this UDP port, on loopback unless an address is given: `weft --at`
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = socket_at)]
    pub(crate) hub_door: Option<SocketAddr>,

    /// Start a Prometheus with weft's rules and consoles, if one is installed; implies --metrics and --hub-metrics
    #[arg(long, conflicts_with_all = ["hosts", "part"])]
    pub(crate) watch: bool,
}

/// Which processes are started again.
const RESTARTS: &[Word<RestartPolicy>] = &[
    ("never", "Restart none", RestartPolicy::Never),
    ("on-failure", "Restart processes that fail", RestartPolicy::OnFailure),
];

/// A port of the loopback, or an address with its port.
pub(crate) fn socket_at(text: &str) -> Result<SocketAddr, String> {
    let port = |text: &str| text.parse().ok().filter(|port: &u16| *port != 0);
    let on_loopback = port(text).map(|port| SocketAddr::from((IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
    on_loopback
        .or_else(|| text.parse().ok())
        .ok_or_else(|| "a port, or an address and a port such as 0.0.0.0:9100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_loopback() {
        assert_eq!(socket_at("9100").unwrap().to_string(), "127.0.0.1:9100");
        assert_eq!(socket_at("0.0.0.0:9100").unwrap().to_string(), "0.0.0.0:9100");
        assert_eq!(socket_at("[::1]:9100").unwrap().to_string(), "[::1]:9100");
        for wrong in ["", "0", "70000", "localhost:80", "1.2.3.4"] {
            assert!(socket_at(wrong).is_err(), "{wrong}");
        }
    }
}
