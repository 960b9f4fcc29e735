//! Flows of a running laboratory, which its hub owns: from its beginning to its end a flow is known by its name.

use serde::{Deserialize, Serialize};

use crate::agent::PortEnd;
use crate::traffic::{FlowReport, Transport, Work};
use crate::{HexGuid, Utc};

/// An end of a flow: a port of an adapter, and the agent that runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowEnd {
    /// The host, as people call it; `vm:NAME` of a virtual machine, which may move.
    pub name: String,
    /// The agent.
    pub process: String,
    /// The port, as the agent knows it.
    pub at: PortEnd,
    /// The port's GUID.
    pub guid: HexGuid,
    /// Whether a virtual machine is meant whose GUID is another when it moves: flows go to its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_name: bool,
}

impl FlowEnd {
    /// Whether it may move to another agent.
    pub fn is_vm(&self) -> bool {
        self.machine().is_some()
    }

    /// The virtual machine's name, if it is one.
    pub fn machine(&self) -> Option<&str> {
        self.name.strip_prefix("vm:")
    }
}

/// What a flow does, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlowShape {
    /// How it is carried.
    pub transport: Transport,
    /// What it does.
    pub work: Work,
    /// Bytes of a message.
    pub message_bytes: u32,
    /// Bytes of body in a packet at most, a multiple of 4.
    pub packet_bytes: u16,
    /// Bytes of body per second of wall-clock time at most; without it as fast as the processes can.
    pub bytes_per_second: Option<u64>,
    /// Ends after this many bytes of body, at the end of a message.
    pub bytes_max: Option<u64>,
    /// Ends after this many milliseconds.
    pub for_ms: Option<u64>,
}

impl Default for FlowShape {
    fn default() -> Self {
        Self {
            transport: Transport::ReliableConnection,
            work: Work::Stream,
            message_bytes: 65_536,
            packet_bytes: 2048,
            bytes_per_second: None,
            bytes_max: None,
            for_ms: None,
        }
    }
}

/// A flow that is to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowOrder {
    /// Its name: 1 to 64 letters, digits, `-`, `_` and `.`. Without it the hub gives it one.
    #[serde(default)]
    pub name: Option<String>,
    /// The set that it belongs to, such as a pattern's.
    #[serde(default)]
    pub set: Option<String>,
    /// The sending end.
    pub from: FlowEnd,
    /// The receiving end.
    pub to: FlowEnd,
    /// What it does.
    #[serde(default)]
    pub shape: FlowShape,
}

/// A flow that did not begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowRefused {
    /// Its name.
    pub name: String,
    /// Why, for people.
    pub reason: String,
}

/// Which flows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlowChoice {
    /// These.
    pub names: Vec<String>,
    /// Those of these sets.
    pub sets: Vec<String>,
    /// All of them.
    pub all: bool,
}

weft_wire::named! {
    /// How far a flow is.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum FlowState {
        /// Its ends are asked to begin.
        #[default]
        Starting = "starting",
        /// Both ends know it.
        Running = "running",
        /// It has sent what it was to send, or its time is over.
        Done = "done",
        /// It has ended in error, or an end of it is gone.
        Failed = "failed",
    }
}

/// A flow, as the hub knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowLine {
    /// Its name.
    pub name: String,
    /// The number that both hosts know it by.
    pub flow: u32,
    /// The set that it belongs to.
    pub set: Option<String>,
    /// The sending end.
    pub from: FlowEnd,
    /// The receiving end.
    pub to: FlowEnd,
    /// What it does.
    pub shape: FlowShape,
    /// How far it is.
    pub state: FlowState,
    /// Why it ended, or what it waits for.
    pub reason: Option<String>,
    /// When it began, by the hub's clock.
    pub began: Utc,
    /// Bytes of body per second that came to the receiver between the hub's last two looks.
    pub delivered_bytes_per_second: u64,
    /// What the sender says, as the hub heard last.
    pub sender: Option<FlowReport>,
    /// What the receiver says, as the hub heard last.
    pub receiver: Option<FlowReport>,
}
