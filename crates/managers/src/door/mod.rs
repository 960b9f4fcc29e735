//! A laboratory's processes as they are reached over QUIC, and as if they were on this machine.
//!
//! ```text
//!   weft --at hub:7443            hub                                   sm, pm, vmm, agents
//!   gateway ══ weft-relay ══▶ door ── control/NAME ◀── reach ══ weft-control, weft-mad ══▶ door, agent
//!      │                                                                                    │
//!   control/NAME, sockets/NAME                                                  control/NAME
//! ```
//!
//! All that a verb or a hub needs of a process are two sockets in a folder, and all that the network adds is a way from a socket
//! in one folder to the socket in another. A [`door`](serve) leads from QUIC to a folder's sockets, [`reach`] and the gateway of `weft_lab`
//! from sockets in a folder of their own to QUIC. What is said passes through unread, but for a viewer's requests: the door holds
//! them against the role.

pub mod http;
mod pass;
pub mod reach;
pub mod serve;

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long an end has to say the first word.
const FIRST_WORD: Duration = Duration::from_secs(10);
/// Conversations with one process that a door passes on at the same time for all viewers, and as many for all operators.
const RELAYED_MAX: usize = 32;
/// The longest first line of a relayed conversation.
const OPENING_BYTES_MAX: usize = 512;

/// The first line of a conversation that a hub is to pass on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Opening {
    /// The control protocol with a process.
    Control(String),
    /// That of attached programs, with an agent.
    Mad(String),
    /// The content of one of the bundle's files that are no secrets.
    File(PublicFile),
}

/// What a client may read of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublicFile {
    /// `lab.json`
    Record,
    /// `topology`
    Topology,
    /// `managers/vmm.json`, of the VM manager of this name: the hosts of virtual machines
    VmHosts(String),
}

impl Opening {
    /// The line, with its end.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}
