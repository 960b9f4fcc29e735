//! What a plan says, and what its proof found.

use std::collections::BTreeSet;

use weft_topology::NodeIndex;
use weft_wire::{Lid, PortNum};

use super::error::{Counterexample, PlanError};
use super::request::{Method, Move, UpdateOrder};
use super::waits::Wait;
use crate::tables::BLOCK_ENTRIES;

/// One SMP: a block of a switch's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The switch.
    pub switch: NodeIndex,
    /// The block (IBA 14.2.5.10).
    pub block: u16,
    /// All of it.
    pub ports: [PortNum; BLOCK_ENTRIES],
    /// Whether packets between the old place and the new one pass the switch: such blocks come first in their round.
    pub is_active: bool,
}

/// What may be outstanding at the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// In the order in which they are sent.
    pub writes: Vec<Write>,
    /// Whether packets of all earlier rounds must have arrived or be dropped before this one begins.
    pub after_drain: bool,
}

/// What a plan costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Smps {
    /// Blocks of physical switches.
    pub physical: u32,
    /// Blocks of vSwitches.
    pub vswitches: u32,
    /// What hypervisors receive besides: LIDs taken away and set, and virtual GUIDs.
    pub hypervisors: u32,
}

/// Why another method or order than the one that was asked for made the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The method that did not do.
    pub method: Method,
    /// The order that it was tried with.
    pub order: UpdateOrder,
    /// What was wrong with it.
    pub reason: PlanError,
}

/// Which blocks are written, in which rounds: a round begins when all of the one before is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The moves that it is for.
    pub moves: Vec<Move>,
    /// What made it.
    pub method: Method,
    /// Methods that were tried before, the first one first.
    pub fallbacks: Vec<Fallback>,
    /// What waits for what.
    pub order: UpdateOrder,
    /// The switches that the method has marked, each once; those among them whose rows are right already are not written.
    pub marked: Vec<NodeIndex>,
    /// What is written, in order.
    pub rounds: Vec<Round>,
    /// The first of the late rounds, if there are any: before them the LIDs are reached from everywhere but the switches that are
    /// written in them.
    pub late: Option<usize>,
    /// How many physical switches are written.
    pub physical: u32,
    /// How many vSwitches are written.
    pub vswitches: u32,
    /// What is sent.
    pub smps: Smps,
}

impl Plan {
    /// All writes in order.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.rounds.iter().flat_map(|round| &round.writes)
    }

    /// Whether packets must have arrived or be dropped before one of its rounds.
    pub fn drains(&self) -> bool {
        self.rounds.iter().any(|round| round.after_drain)
    }

    /// The writes of the rounds before the late ones.
    pub fn prompt_writes(&self) -> impl Iterator<Item = &Write> {
        self.rounds[..self.prompt()].iter().flat_map(|round| &round.writes)
    }

    /// How many rounds there are before the late ones.
    pub fn prompt(&self) -> usize {
        self.late.unwrap_or(self.rounds.len())
    }

    /// The switches that get their rows late.
    pub fn late_switches(&self) -> BTreeSet<NodeIndex> {
        let late = self.rounds[self.prompt()..].iter();
        late.flat_map(|round| &round.writes).map(|write| write.switch).collect()
    }
}

/// A plan was proved: by every mixture of old and new rows that its rounds allow, packets arrive that did before, and none go
/// round in loops; and no channels wait for each other in a circle, whatever packets are under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The LIDs whose rows change, that machines have.
    pub lids: Vec<Lid>,
    /// Mixtures that were followed: one for every round of every LID.
    pub mixtures: u64,
    /// Pairs of channels that packets have not waited by before.
    pub new_waits: u64,
    /// The lanes whose channels wait for each other in a circle by the tables in force: nothing is proved there.
    pub unproved_lanes: u16,
    pub(super) lasting: BTreeSet<Wait>,
    pub(super) passing: BTreeSet<Wait>,
    pub(super) busy: Vec<Lid>,
    pub(super) idle: Vec<Lid>,
}

impl Proof {
    /// That of a plan that was not proved at all.
    pub fn none() -> Self {
        Self { unproved_lanes: u16::MAX, ..Self::default() }
    }
}

/// What came of proving a plan.
pub type Proved = Result<Proof, Counterexample>;
