//! Deadlocks: channels that wait for each other in a circle, and the packets that make them.

use std::fmt;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use weft_wire::PortNum;

use super::cycle::{in_order, shortest_cycle};
use super::dependencies::{AllLanes, Dependencies, OneLane, Together};
use super::ground::Ground;
use super::pair::Pair;
use super::witness::Goal;

/// How much is under way on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LaneUse {
    /// The lane.
    pub lane: u8,
    /// How many channels, which are directions of cables between switches, carry traffic on it.
    pub channels: usize,
    /// How many times packets that hold one of these may want another.
    pub dependencies: usize,
}

/// One direction of a cable between two switches, on one lane, held by packets that want the next of a [`Cycle`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// The id of the switch that it leaves.
    pub from: String,
    /// By this port.
    pub exit: PortNum,
    /// The id of the switch that it leads to.
    pub to: String,
    /// By this port.
    pub entry: PortNum,
    /// The lane.
    pub lane: u8,
    /// The first pair, by destination and then by source, whose packets hold it and want the next.
    pub pair: Option<Pair>,
}

/// Channels each of which may be held by packets that want the next, and the last by some that want the first: when all
/// are full, none moves (Dally and Seitz 1987).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycle {
    /// In the order of waiting.
    pub channels: Vec<Channel>,
}

/// Every lane in use.
pub(super) fn lane_use(dependencies: &Dependencies<'_>) -> Vec<LaneUse> {
    let counts = dependencies.counts();
    let on_lane = |lane: usize| {
        let (channels, dependencies) = counts[lane];
        LaneUse { lane: lane as u8, channels, dependencies }
    };
    dependencies.used().into_iter().map(on_lane).collect()
}

/// The shortest cycle of every lane that has one; one of all together where packets may change lanes. `find` names a pair
/// whose packets hold one channel and want the next.
pub(super) fn cycles(
    dependencies: &Dependencies<'_>,
    find: &(impl Fn(Goal) -> Option<Pair> + Sync),
) -> Vec<Cycle> {
    let waits = |held: (u32, u8), wanted: (u32, u8)| {
        let pair = find(Goal { held, wanted: Some(wanted) });
        channel(dependencies.ground, held.0, held.1, pair)
    };
    let name = |places: Vec<(u32, u8)>| Cycle {
        channels: (0..places.len()).map(|at| waits(places[at], places[(at + 1) % places.len()])).collect(),
    };
    if dependencies.changing() {
        let all = AllLanes(dependencies);
        let place = |node| {
            let (channel, lane) = all.place(node);
            (channel, lane.0)
        };
        let cycle = shortest_cycle(&all).map(|nodes| name(nodes.into_iter().map(place).collect()));
        return cycle.into_iter().collect();
    }
    if in_order(&Together(dependencies)).is_ok() {
        return Vec::new();
    }
    let of_lane = |lane: usize| {
        let nodes = shortest_cycle(&OneLane(dependencies, lane))?;
        Some(name(nodes.into_iter().map(|channel| (channel, lane as u8)).collect()))
    };
    dependencies.used().into_par_iter().filter_map(of_lane).collect()
}

pub(super) fn channel(ground: &Ground<'_>, channel: u32, lane: u8, pair: Option<Pair>) -> Channel {
    let (from, exit) = ground.from[channel as usize];
    let (to, entry) = (ground.to[channel as usize], ground.entry[channel as usize]);
    let id = |switch: u32| ground.fabric.node(ground.graph.nodes[switch as usize]).id.clone();
    Channel { from: id(from), exit, to: id(to), entry, lane, pair }
}

impl Cycle {
    /// How many channels wait for each other.
    pub fn len(&self) -> usize {
        self.channels.len()
    }

    /// Whether there are none, which no cycle that was found is.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// The lane, if it is the same all around.
    pub fn lane(&self) -> Option<u8> {
        let first = self.channels.first()?.lane;
        self.channels.iter().all(|channel| channel.lane == first).then_some(first)
    }
}

// `S-a[3] -> [4]S-b`
weft_wire::displayed!(Channel { from, exit, entry, to } => "{from}[{exit}] -> [{entry}]{to}");

impl fmt::Display for Cycle {
    /// One line, and one more for each channel.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = self.lane();
        match lane {
            Some(lane) => write!(f, "on lane {lane} ")?,
            None => write!(f, "over several lanes ")?,
        }
        write!(f, "{} channels may wait for each other in a circle:", self.len())?;
        for channel in &self.channels {
            write!(f, "\n    {channel}")?;
            if lane.is_none() {
                write!(f, " on lane {}", channel.lane)?;
            }
            if let Some(pair) = channel.pair {
                write!(f, ", held by packets {pair}, which want the next")?;
            }
        }
        Ok(())
    }
}
