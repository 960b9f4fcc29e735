//! All that is to be said of a routing.

use std::fmt;

use serde::Serialize;

use super::deadlock::{Cycle, LaneUse};
use super::drops::Drops;
use super::isolation::{Breach, IsolationReport};
use super::legality::Turns;
use super::report::Report;
use super::symmetry::Asymmetry;

/// What [`verify_routing`](crate::verify_routing) found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Who arrives, and by how many cables.
    pub reach: Report,
    /// Whose packets are dropped because their level has no lane on the way.
    pub drops: Drops,
    /// What is on each lane.
    pub lanes: Vec<LaneUse>,
    /// By lane, the shortest cycle of channels that may wait for each other, where there is one. Where packets may
    /// change lanes there is at most one cycle, over all lanes.
    pub cycles: Vec<Cycle>,
    /// Whether packets may deadlock or not depending on their service levels, which are unknown. Then there are no
    /// `cycles`, and figures are those of level 0.
    pub levels_unknown: bool,
    /// Pairs with another service level one way than the other.
    pub asymmetry: Asymmetry,
    /// Paths that go up after they went down, where a tree was expected.
    pub turns: Option<Turns>,
    /// How well policies are kept, where there are some.
    pub isolation: Option<IsolationReport>,
}

impl Verdict {
    /// Whether every packet arrives that a host sends or receives, none is dropped, and all that was expected holds.
    pub fn is_sound(&self) -> bool {
        self.reach.serves_hosts()
            && self.drops.pairs == 0
            && self.turns.as_ref().is_none_or(Turns::is_legal)
            && self.isolation.as_ref().is_none_or(|isolation| isolation.breaches == 0)
    }

    /// Whether it is proved that no channels may wait for each other in a circle.
    pub fn is_deadlock_free(&self) -> bool {
        self.cycles.is_empty() && !self.levels_unknown
    }

    /// Whether every pair uses one service level in both directions.
    pub fn is_symmetric(&self) -> bool {
        self.asymmetry.pairs == 0
    }
}

/// `; lane 0: 12 channels, 20 dependencies`
pub(super) fn write_lanes(f: &mut fmt::Formatter<'_>, lanes: &[LaneUse]) -> fmt::Result {
    for LaneUse { lane, channels, dependencies } in lanes {
        write!(f, "; lane {lane}: {channels} channels, {dependencies} dependencies")?;
    }
    Ok(())
}

impl fmt::Display for Verdict {
    /// Figures on the first lines, then counter-examples.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { pairs, failures, between_switches, detours, disconnected, .. } = self.reach;
        let hops = self.reach.summary().hops_max;
        write!(
            f,
            "{pairs} pairs of switch and LID: {failures} failures, {detours} detours, at most {hops} hops"
        )?;
        if between_switches > 0 {
            write!(f, ", {between_switches} failures are between switches alone")?;
        }
        if disconnected > 0 {
            write!(f, ", {disconnected} more without cables between")?;
        }
        for LaneUse { lane, channels, dependencies } in &self.lanes {
            let cyclic = self.cycles.iter().any(|cycle| cycle.channels.iter().any(|at| at.lane == *lane));
            let free = match (self.levels_unknown, cyclic) {
                (true, _) => "if every packet uses level 0",
                (false, true) => "DEADLOCK POSSIBLE",
                (false, false) => "free of deadlock",
            };
            write!(f, "\nlane {lane}: {channels} channels, {dependencies} dependencies, {free}")?;
        }
        if self.levels_unknown {
            write!(
                f,
                "\nDEADLOCK NOT JUDGED: the service levels of pairs are unknown, and packets of different levels take different lanes"
            )?;
        }
        if let Some(turns) = &self.turns {
            match turns.ranked {
                true => write!(
                    f,
                    "\ntree: {} pairs of hosts and {} of management go up after down",
                    turns.hosts, turns.management
                )?,
                false => write!(f, "\ntree: the routing has no ranks, so nothing is known of up and down")?,
            }
        }
        if let Some(IsolationReport { isolated, breaches, .. }) = self.isolation {
            write!(f, "\nisolation: {isolated} partitions with a policy, broken {breaches} times")?;
        }
        match self.levels_unknown {
            true => write!(f, "\nservice levels: unknown")?,
            false => write!(f, "\nservice levels: {} pairs differ by direction", self.asymmetry.pairs)?,
        }
        write!(f, ", {} pairs are dropped for their lane", self.drops.pairs)?;
        self.write_examples(f)
    }
}

impl Verdict {
    fn write_examples(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.reach.counter_examples {
            write!(f, "\n  {error}")?;
        }
        for cycle in &self.cycles {
            write!(f, "\n  {cycle}")?;
        }
        if let Some(pair) = self.drops.example {
            write!(f, "\n  packets {pair} are dropped on the way")?;
        }
        if let Some(turn) = self.turns.as_ref().and_then(|turns| turns.example.as_ref()) {
            write!(f, "\n  to LID {} it goes up again at {}: {}", turn.to, turn.at, turn.path)?;
        }
        for breach in self.isolation.iter().flat_map(|isolation| &isolation.examples) {
            write!(f, "\n  {breach}")?;
        }
        if let Some(example) = &self.asymmetry.example {
            write!(f, "\n  {}: level {} there, {} back", example.pair, example.forth, example.back)?;
        }
        Ok(())
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shares {}", self.partition, self.link)?;
        if let Some(lane) = self.lane {
            write!(f, " lane {lane}")?;
        }
        write!(f, " with {}", self.other)?;
        if let Some((pair, other)) = self.pair.zip(self.other_pair) {
            write!(f, ": packets {pair} and {other}")?;
        }
        Ok(())
    }
}
