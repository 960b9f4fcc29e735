//! The arguments about ibsim's client protocol.

use std::net::SocketAddr;

use clap::Args;
use weft_bundle::config::managers::{IbsimPart, Listen};

/// Where programs under ibsim's library find the laboratory.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Programs under ibsim's library")]
pub(crate) struct IbsimArgs {
    /// Serve programs under libumad2sim.so at this IBSIM_SOCKNAME. Every user of this machine can then manage the fabric:
    /// the protocol knows no credentials, and abstract sockets have no permissions
    #[arg(long, value_name = "NAME", value_parser = socket_name)]
    pub(crate) ibsim_socket: Option<String>,

    /// Serve them over UDP: this control port, and the ten that follow for data. Whoever can reach the address can then
    /// manage the fabric, on the loopback every user of this machine
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:7070", value_parser = udp_address, conflicts_with = "ibsim_socket")]
    pub(crate) ibsim_udp: Option<SocketAddr>,

    /// Timeouts of the server
    #[command(flatten)]
    pub(crate) pace: IbsimPace,
}

impl IbsimArgs {
    /// The server's configuration, if there is to be one.
    pub(crate) fn part(&self) -> Option<IbsimPart> {
        let socket = self.ibsim_socket.clone().map(Listen::Socket);
        let listen = socket.or_else(|| self.ibsim_udp.map(Listen::Udp))?;
        let IbsimPace { ibsim_timeout_ms: timeout_ms, ibsim_retries: retries } = self.pace;
        Some(IbsimPart { timeout_ms, retries, ..IbsimPart::new(listen) })
    }
}

/// Timeouts of the server.
#[derive(Debug, Clone, Args)]
pub(crate) struct IbsimPace {
    /// Timeout of a MAD in milliseconds
    #[arg(long, value_name = "MS", default_value_t = IbsimPart::TIMEOUT_MS, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub(crate) ibsim_timeout_ms: u64,

    /// Retries for an unanswered MAD before the program gets an error
    #[arg(long, value_name = "COUNT", default_value_t = IbsimPart::RETRIES, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) ibsim_retries: u32,
}

/// A name that fits into an abstract socket's, with the longest part that is put behind it.
fn socket_name(text: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic() && c != ':');
    if fits { Ok(text.to_owned()) } else { Err("1 to 64 letters, digits and signs, but no `:`".into()) }
}

/// An address whose port leaves room for ten more.
fn udp_address(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "an IP address and a port, such as 127.0.0.1:7070")?;
    let room = (1..=u16::MAX - 10).contains(&address.port());
    if room { Ok(address) } else { Err("ten more ports must follow the port".into()) }
}
