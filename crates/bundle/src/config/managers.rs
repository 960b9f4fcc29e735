//! The configurations of managers' processes, as files of a bundle: JSON that refuses fields that it does not know.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use weft_link::PeerAddress;
use weft_vm::{HostPart, PortPartitions, Scheme};
use weft_wire::{Guid, PortNum};

/// Configuration that every manager has.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeatPart {
    /// Its laboratory.
    pub lab: String,
    /// The agent that it attaches to.
    pub agent: String,
    /// Where it finds the agent over the network; by the agent's socket in the run folder without it.
    pub quic: Option<QuicPart>,
    /// The node.
    pub node: Guid,
    /// The node's port.
    pub port: PortNum,
    /// Where it serves `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// The SHA-256 of the token that it asks for there where that is not on loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_token: Option<String>,
}

/// An agent as a manager finds it over the network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuicPart {
    /// Where the agent listens.
    pub address: PeerAddress,
    /// A node that the agent's certificate names.
    pub node: Guid,
}

/// Configuration of a subnet manager. Its keys are in a file of their own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmPart {
    /// Configuration that every manager has.
    pub seat: SeatPart,
    /// Options of the machine.
    pub options: weft_sm::Options,
}

/// Configuration of the performance manager. Its key is in a file of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PmPart {
    /// Configuration that every manager has.
    pub seat: SeatPart,
    /// Options of the machine.
    pub options: weft_pm::Options,
}

/// Configuration of the VM manager. Its keys are in a file of their own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmmPart {
    /// Configuration that every manager has.
    pub seat: SeatPart,
    /// The scheme of LIDs.
    pub scheme: Scheme,
    /// Hosts with slots.
    pub hosts: Vec<HostPart>,
    /// The partitions of ports, where the subnet manager has any.
    pub partitions: Option<PortPartitions>,
    /// How often standbys poll the subnet manager, in milliseconds, and how many polls more go unanswered before one takes over; where
    /// there are standbys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls: Option<(u64, u32)>,
    /// The agents, where they are reached over the network; none where they are in the manager's own run folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<RemoteAgent>,
}

/// An agent that is reached over the network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteAgent {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub quic: QuicPart,
}

/// Where programs find the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Listen {
    /// Abstract Unix sockets that begin with this name (`IBSIM_SOCKNAME`).
    Socket(String),
    /// UDP: this control port, and the ten after it for data (`IBSIM_SERVER_NAME` and `IBSIM_SERVER_PORT`).
    Udp(SocketAddr),
}

impl Listen {
    /// Who can manage the fabric by it: the protocol knows no credentials, and neither an abstract socket nor a port has
    /// permissions.
    pub fn open_to(&self) -> &'static str {
        match self {
            Self::Udp(address) if !address.ip().is_loopback() => "whoever can reach it",
            _ => "every user of this machine",
        }
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(name) => f.write_str(name),
            Self::Udp(address) => write!(f, "udp:{address}"),
        }
    }
}

/// Configuration of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IbsimPart {
    /// Where programs find it.
    pub listen: Listen,
    /// How long it waits for an answer before it asks again.
    pub timeout_ms: u64,
    /// How often it asks again before it tells the program that no answer comes.
    pub retries: u32,
    /// Whether it ends with its standard input, which its starter holds.
    pub bound: bool,
}

impl IbsimPart {
    /// The usual timeout of a MAD, in milliseconds.
    pub const TIMEOUT_MS: u64 = 200;
    /// The usual number of retries.
    pub const RETRIES: u32 = 3;

    /// A server with the usual timeouts, which goes on without its starter.
    pub fn new(listen: Listen) -> Self {
        Self { listen, timeout_ms: Self::TIMEOUT_MS, retries: Self::RETRIES, bound: false }
    }
}
