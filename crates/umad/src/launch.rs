//! What agents and the subnet manager tell the launcher while a laboratory comes up: one JSON object per line
//! on the launcher's Unix socket.
//!
//! The socket lives as long as the launcher. A process that finds it absent or closed goes on without it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The longest line either side accepts.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// What a process tells the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToLauncher {
    /// The agent's sockets are bound: peers may dial it, programs may attach.
    Ready {
        /// The agent's name.
        agent: String,
        /// Its process.
        pid: u32,
    },
    /// The agent's links changed.
    Links {
        /// The agent's name.
        agent: String,
        /// Links of its devices that stand.
        up: u32,
        /// Cabled ports of its devices.
        total: u32,
        /// Cables that it has to dial and that do not stand yet.
        to_dial: u32,
    },
    /// The subnet manager got further.
    Progress(Progress),
    /// The subnet manager has brought up everything it can reach.
    SubnetUp(SubnetUp),
    /// No engine that the subnet manager may use routes what it has found.
    NotRouted {
        /// Why, in the engines' own sentences.
        reason: String,
        /// How many nodes it has found.
        nodes: u32,
    },
    /// The process cannot go on.
    Failed {
        /// The agent's name, or `sm`.
        agent: String,
        /// Why, for a human.
        reason: String,
    },
}

/// What the launcher tells an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum FromLauncher {
    /// All agents listen, and it is this one's turn: dial.
    Go,
}

/// How far the subnet manager is. Totals are what is known so far and may still grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Nodes discovered.
    pub nodes: u32,
    /// End ports that hold their LID, and end ports known.
    pub lids: (u32, u32),
    /// Requests done of those that write tables, and requests known.
    pub tables: (u32, u32),
    /// Ports that are Active, and ports with a cable.
    pub ports_active: (u32, u32),
}

/// What the subnet manager reports at SUBNET UP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetUp {
    /// When each phase of the sweep ended, in order, in microseconds since the first SMP.
    pub phases: Vec<PhaseEnd>,
    /// Switches in the subnet.
    pub switches: u32,
    /// HCAs in the subnet.
    pub hcas: u32,
    /// Ports that are Active.
    pub ports_active: u32,
    /// SMPs sent, retries included.
    pub smps: u64,
    /// Which engine routed, why those before it did not, and what its routing does not keep: a line each.
    #[serde(default)]
    pub routing: Vec<String>,
}

/// The end of one phase of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseEnd {
    /// Discover, assign, route, program or activate.
    pub phase: String,
    /// Microseconds since the first SMP.
    pub end_us: u64,
}

/// One message as a line.
pub fn line<M: Serialize>(message: &M) -> String {
    let mut line = serde_json::to_string(message).expect("launch messages hold nothing JSON cannot say");
    line.push('\n');
    line
}

/// Why a line was not understood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// No end of line within [`LINE_BYTES_MAX`].
    #[error("a line is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// Not the JSON of such a message.
    #[error("a line does not decode")]
    Malformed(#[source] serde_json::Error),
}

/// Turns a stream of bytes, cut anywhere, into messages.
#[derive(Debug, Default)]
pub struct LineDecoder {
    buffer: Vec<u8>,
}

impl LineDecoder {
    /// An empty decoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes as they came from the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The oldest complete message, `None` when more bytes are needed.
    pub fn next_message<M: DeserializeOwned>(&mut self) -> Result<Option<M>, LineError> {
        let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') else {
            return if self.buffer.len() > LINE_BYTES_MAX { Err(LineError::TooLong) } else { Ok(None) };
        };
        let line: Vec<u8> = self.buffer.drain(..=end).collect();
        if line.len() > LINE_BYTES_MAX {
            return Err(LineError::TooLong);
        }
        serde_json::from_slice(&line).map(Some).map_err(LineError::Malformed)
    }
}
