//! A plan of a move, with the result of its proof.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Whether packets that earlier rows have sent must be gone before this one begins: of late rounds those that could come to a switch
    /// which is written in them, else all.
    pub after_drain: bool,
    /// How many switches hold such a packet one after the other at most, each no longer than its LifeTimeValue.
    pub drain: u32,
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// written in them and have no detour.
    pub late: Option<usize>,
    /// Switches whose prompt row for a LID is a detour: it closes no circle with packets under way, and a late round replaces it.
    pub detours: BTreeSet<(NodeIndex, Lid)>,
    /// Queue pairs to and of the LIDs that move send nothing from before the first round until their levels are those of the new place:
    /// else this circle could close.
    pub held: Option<Counterexample>,
    /// Switches with hosts that do not reach a LID from the prompt rounds to the late ones; all where prompt rounds wait for packets.
    pub silent: Vec<NodeIndex>,
    /// After the last prompt round: how many switches hold a packet that an earlier row has sent one after the other at most.
    pub drain: u32,
    /// The same where the plan ends on the way, and rows are mixed.
    pub drain_broken: u32,
    /// How many physical switches are written.
    pub physical: u32,
    /// How many vSwitches are written.
    pub vswitches: u32,
    /// What is sent.
    pub smps: Smps,
    /// What of it is sent in late rounds.
    pub late_smps: Smps,
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

    /// How many switches hold packets to and of a LID that is held one after the other at most; 0 where none is.
    pub fn pause(&self) -> u32 {
        self.held.as_ref().and_then(|_| self.rounds.first()).map_or(0, |round| round.drain)
    }

    /// The writes of the rounds before the late ones.
    pub fn prompt_writes(&self) -> impl Iterator<Item = &Write> {
        self.rounds[..self.prompt()].iter().flat_map(|round| &round.writes)
    }

    /// How many rounds there are before the late ones.
    pub fn prompt(&self) -> usize {
        self.late.unwrap_or(self.rounds.len())
    }

    /// The writes of the late rounds.
    pub fn late_writes(&self) -> impl Iterator<Item = &Write> {
        self.rounds[self.prompt()..].iter().flat_map(|round| &round.writes)
    }

    /// The switches that have no row until the late rounds.
    pub fn late_switches(&self) -> BTreeSet<NodeIndex> {
        let detoured = |switch: NodeIndex| self.detours.iter().any(|(other, _)| *other == switch);
        self.late_writes().map(|write| write.switch).filter(|switch| !detoured(*switch)).collect()
    }

    /// How many switches hold packets one after the other at most that have to be gone before hosts at [silent](Self::silent) switches
    /// are served; 0 where there are none.
    pub fn silence(&self) -> u32 {
        let drained = |round: &Round| if round.after_drain { round.drain } else { 0 };
        let frozen: u32 = self.rounds.iter().take(self.prompt()).skip(1).map(drained).sum();
        let late = self.late.filter(|_| !self.silent.is_empty()).and_then(|late| self.rounds.get(late));
        frozen + late.map_or(0, drained)
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
    /// Channels into which earlier rows have sent packets, by LID.
    pub(super) stale: BTreeSet<(Lid, u32)>,
    /// Lanes on which such packets may be, as bits, by LID.
    pub(super) stale_lanes: BTreeMap<Lid, u16>,
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
