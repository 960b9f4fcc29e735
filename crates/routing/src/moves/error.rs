//! Why there is no plan, and what goes wrong by one.

use weft_topology::NodeIndex;
use weft_wire::{Lid, PortNum};

use super::request::Method;

/// Why nothing can be kept of the tables in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeptError {
    /// Lanes depend on the ports that a packet takes.
    #[error("the lane of a service level differs from port to port")]
    Lanes,
    /// A vSwitch has one link to a switch.
    #[error("node {} is no vSwitch: it is no switch with exactly one link to a switch", .0.0)]
    VSwitch(NodeIndex),
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// No switch delivers to the end port.
    #[error("{0} has no cable to a switch")]
    Unattached(String),
    /// The LID belongs to another end port than the request says.
    #[error("LID {lid} belongs to {owner}, not to {port}")]
    Owner {
        /// The LID.
        lid: Lid,
        /// The end port that has it.
        owner: String,
        /// The end port named in the request.
        port: String,
    },
    /// The LID whose rows are to be taken over is at another switch.
    #[error("the rows of LID {of} do not lead to {port}")]
    Model {
        /// The LID.
        of: Lid,
        /// Where the machine is to go.
        port: String,
    },
    /// A LID is part of two moves that are planned together.
    #[error("LID {0} is part of two moves")]
    Twice(Lid),
    /// No one at the new place sends on the levels that the machine would get there, so that no proof covers its packets.
    #[error("no one at the new place of LID {0} sends on the service levels that it would get there")]
    Levels(Lid),
    /// The method `full` needs tables computed for the new places.
    #[error("a full reconfiguration needs tables computed from scratch")]
    NoFreshTables,
    /// The method is for fat-trees.
    #[error("{0}")]
    NoTree(String),
    /// The rows that the method leaves do not lead to the new place.
    #[error("{method} leaves no path from {switch} to LID {lid}")]
    NoPath {
        /// The method.
        method: Method,
        /// The id of the switch.
        switch: String,
        /// The LID.
        lid: Lid,
    },
    /// No plan that was tried is safe; this is what is wrong with the last.
    #[error("no plan is safe: {0}")]
    Unsafe(Counterexample),
}

/// What can go wrong while a plan is carried out, or after it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Counterexample {
    /// Packets go round in a loop while a round is under way.
    #[error("in round {round}, packets for LID {lid} go round in a loop: {}", hops(switches))]
    Loop {
        /// The LID.
        lid: Lid,
        /// The round, from 1.
        round: usize,
        /// The ports by which the switches send; the last sends to the first.
        switches: Vec<(String, PortNum)>,
    },
    /// Packets come to a switch that has no row for them while it is waiting to be written, or after.
    #[error("{switch} has no row for packets for LID {lid} that come there while the plan is carried out")]
    Lost {
        /// The LID.
        lid: Lid,
        /// The id of the switch.
        switch: String,
    },
    /// Packets from a switch do not arrive once all is written.
    #[error("packets for LID {lid} do not arrive from {switch} once all is written")]
    Unreached {
        /// The LID.
        lid: Lid,
        /// The id of the switch.
        switch: String,
    },
    /// Channels may wait for each other in a circle, with packets that were sent by earlier rows.
    #[error("channels on lane {lane} may wait for each other in a circle: {}", hops(channels))]
    Circle {
        /// The lane.
        lane: u8,
        /// The switches and ports where the channels begin, in order.
        channels: Vec<(String, PortNum)>,
    },
}

impl Counterexample {
    /// `VL 1: S-a[3] -> S-b[2] -> S-a[3]`, of a circle.
    pub fn circle(&self) -> Option<String> {
        match self {
            Self::Circle { lane, channels } => Some(format!("VL {lane}: {}", hops(channels))),
            _ => None,
        }
    }
}

/// `S-a[3] -> S-b[2] -> S-a[3]`.
fn hops(ports: &[(String, PortNum)]) -> String {
    let names: Vec<String> =
        ports.iter().chain(ports.first()).map(|(switch, port)| format!("{switch}[{port}]")).collect();
    names.join(" -> ")
}
