//! A host's InfiniBand software behind one adapter port: path cache, subscriptions, queue pairs, flows.
//!
//! ```text
//!   Command ─────▶ flows ──▶ queue pairs ──▶ Inject ──▶ the adapter
//!                    │             ▲  └──────◀ Accept, Injected
//!                    ▼             │ repath, unpath
//!   path cache ◀─▶ SA client ─▶ Send ──────▶ the adapter
//! ```

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use weft_machine::{Machine, Time};
use weft_wire::{
    AddressedMad, DataPacket, Method, MgmtClass, PortFacts, Registration, SA_CLASS_VERSION, ServiceLevel,
};

use crate::traffic::{Command, FlowReport};

/// What a host is like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StackOptions {
    /// Packets of one service level that the adapter holds at most.
    pub adapter_packets: u16,
    /// Unacknowledged packets of a queue pair at most.
    pub window_packets: u32,
    /// How long a queue pair waits for an acknowledgement.
    pub ack_timeout: Time,
    /// How often it sends again before it gives up.
    pub retries: u32,
    /// How long to wait for subnet administration's answer, and how often to ask again.
    pub sa_timeout: Time,
    /// How often to ask again.
    pub sa_retries: u32,
    /// Nanoseconds of machine time in one of fabric time; congestion control's timers are of fabric time.
    pub dilation: u32,
    /// The service level of management datagrams; none is the one that the manager has given the port.
    pub management_sl: Option<ServiceLevel>,
}

impl Default for StackOptions {
    fn default() -> Self {
        Self {
            adapter_packets: 2,
            window_packets: 128,
            ack_timeout: Time::from_secs(4),
            retries: 7,
            sa_timeout: Time::from_secs(1),
            sa_retries: 5,
            dilation: 1,
            management_sl: None,
        }
    }
}

/// What happens to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum Input {
    /// What the adapter says of its port.
    Port(PortFacts),
    /// A MAD for the host.
    Receive(AddressedMad),
    /// A data packet for the host.
    Accept(DataPacket),
    /// Packets have left the adapter.
    Injected {
        /// The service level that they were given with.
        service_level: ServiceLevel,
        /// How many.
        packets: u16,
    },
    /// Something to do.
    Command(Command),
}

/// What a host wants done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum Output {
    /// Send a MAD through the port, as an attached program does.
    Send(AddressedMad),
    /// Give the adapter a data packet.
    Inject(DataPacket),
    /// Something worth counting or logging.
    Event(Event),
}

/// What a host says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Event {
    /// A command could not be carried out.
    Refused {
        /// Why, for a human.
        reason: String,
    },
}

/// The host.
#[derive(Debug, Default)]
pub struct Stack {
    outputs: VecDeque<Output>,
}

impl Stack {
    /// A host that knows nothing yet.
    pub fn new(_options: StackOptions) -> Self {
        Self::default()
    }

    /// What it wants to be given unasked, when the driver attaches it to its port.
    pub fn registrations() -> Vec<Registration> {
        vec![Registration::new(MgmtClass::SubnAdm, SA_CLASS_VERSION, [Method::Report])]
    }

    /// What became of all flows, in order of their numbers; those that it sends come before those that it receives.
    pub fn reports(&self) -> Vec<FlowReport> {
        Vec::new()
    }
}

impl Machine for Stack {
    type Input = Input;
    type Output = Output;

    fn handle_input(&mut self, _now: Time, _input: Input) {}

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
