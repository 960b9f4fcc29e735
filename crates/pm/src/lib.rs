//! The performance manager: sweeps counters, finds hot spots, asks for slow lanes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use weft_machine::{Machine, Time};
use weft_wire::{AddressedMad, Guid, Lid, PortNum, Registration, ServiceLevel};

/// What an operator can choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// From the start of one sweep to that of the next.
    pub interval: Time,
    /// Requests in flight.
    pub window: u32,
    /// How long to wait for an answer.
    pub timeout: Time,
    /// How often to ask again.
    pub retries: u32,
    /// Nanoseconds of machine time in one of fabric time, for the papers' "per second".
    pub dilation: u32,
    /// Ticks per second of fabric time above which a port is congested. The paper's is 100 000, which is 0.04 % of the
    /// time; 2 500 000 is 1 %.
    pub threshold: u64,
    /// A congested host below this share of its link's rate takes part in a hot spot or suffers from one.
    pub utilisation_limit: f64,
    /// Whether hosts are asked to move; otherwise hot spots are only shown.
    pub repath: bool,
    /// The service level of the slow lane.
    pub slow_sl: ServiceLevel,
    /// Sweeps in a row that a port must be above the threshold to become a hot spot, and below it to be none any more.
    pub hysteresis: (u32, u32),
    /// The service level of this manager's own requests; none is the one that the subnet manager has given the port.
    pub management_sl: Option<ServiceLevel>,
    /// Whether counters by lane are swept too.
    pub lanes: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Time::from_secs(2),
            window: 64,
            timeout: Time::from_millis(500),
            retries: 3,
            dilation: 1,
            threshold: 100_000,
            utilisation_limit: 0.5,
            repath: true,
            slow_sl: ServiceLevel(1),
            hysteresis: (1, 1),
            management_sl: None,
            lanes: false,
        }
    }
}

/// What happens to the manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum Input {
    /// It is attached to a port.
    Attached {
        /// The node.
        node_guid: Guid,
        /// The port's GUID.
        port_guid: Guid,
        /// The port.
        port: PortNum,
    },
    /// It is attached no more.
    Detached,
    /// A MAD for it.
    Receive(AddressedMad),
    /// The own port's link came up or went down.
    PortChanged {
        /// Whether there is a link now.
        up: bool,
    },
}

/// What the manager wants done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)]
pub enum Output {
    /// Send a MAD.
    Send(AddressedMad),
    /// Something worth logging or showing.
    Event(Event),
}

/// What the manager says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Event {
    /// A port has become a hot spot.
    HotSpot {
        /// The host's LID.
        lid: Lid,
    },
    /// It is none any more.
    HotSpotEnded {
        /// The host's LID.
        lid: Lid,
    },
}

/// The performance manager.
#[derive(Debug)]
pub struct PerformanceManager {
    outputs: VecDeque<Output>,
}

/// What the driver registers when it attaches the manager.
pub fn registrations() -> Vec<Registration> {
    Vec::new()
}

impl PerformanceManager {
    /// A manager that is not attached yet.
    pub fn new(_options: Options) -> Self {
        Self { outputs: VecDeque::new() }
    }
}

impl Machine for PerformanceManager {
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
