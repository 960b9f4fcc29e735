//! Two routings that are in force at the same time: some switches have the old tables still and others the new.

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;
use weft_topology::Fabric;
use weft_wire::{Lid, PortNum};

use crate::bfs::BATCH;
use crate::lids::Lids;
use crate::routing::Routing;
use crate::sorted;

use super::block::{Block, UNREACHED};
use super::cycle::shortest_cycle;
use super::deadlock::{Cycle, LaneUse, cycles, lane_use};
use super::dependencies::Dependencies;
use super::digraph::Digraph;
use super::flow::{Follower, Journey};
use super::ground::{End, Ground, LOST};
use super::order::{Exits, Order};
use super::report::COUNTER_EXAMPLES_MAX;
use super::rows::Rows;
use super::sources::{Part, Sources, whole};
use super::witness::Witness;

/// What [`verify_transition`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TransitionVerdict {
    /// How many pairs of a switch and a LID that cables connect.
    pub pairs: u64,
    /// For how many of these the old table's entry leads nowhere.
    pub lost_before: u64,
    /// For how many of these the new table's entry leads nowhere.
    pub lost_after: u64,
    /// For how many pairs packets that a host sends or receives get lost at that switch by some mixture of tables,
    /// whatever their lanes.
    pub lost_in_use: u64,
    /// The first switches and LIDs of those, and whose tables; those in no one's way come last.
    pub lost_examples: Vec<LostEntry>,
    /// For how many LIDs packets may go round in a loop, by some mixture of tables.
    pub loops: u64,
    /// The shortest loop of each of the first of these.
    pub loop_examples: Vec<MixedLoop>,
    /// What is on each lane, by all mixtures together.
    pub lanes: Vec<LaneUse>,
    /// Per lane the shortest cycle of channels that may wait for each other, with packets by old and new tables and
    /// levels under way at the same time.
    pub cycles: Vec<Cycle>,
}

weft_wire::worded! {
    /// Whose tables.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Tables {
        /// Those before.
        Old => ("old"),
        /// Those after.
        New => ("new"),
        /// The entry is the same in both.
        Both => ("both"),
    }
}

/// An entry that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostEntry {
    /// The id of the switch.
    pub switch: String,
    /// The LID.
    pub lid: Lid,
    /// Whose.
    pub tables: Tables,
    /// Whether packets that a host sends or receives come to the switch by some mixture of tables.
    pub in_use: bool,
}

/// One switch of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MixedHop {
    /// Its id.
    pub switch: String,
    /// The port by which it sends on.
    pub exit: PortNum,
    /// Whose table says so.
    pub tables: Tables,
}

/// A loop that packets for a LID go round in, if each of its switches has the tables named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MixedLoop {
    /// The LID.
    pub lid: Lid,
    /// The switches; the last sends to the first.
    pub hops: Vec<MixedHop>,
}

/// Verifies that nothing goes wrong while switches change one by one from the `old` routing to the `new` one, in whatever
/// order: for every mixture of tables, no entry is missing, no packet goes round in a loop, and no channels wait
/// for each other, even when packets that went by other mixtures are still under way. Levels and lanes are mixed
/// likewise. `lanes` is the number of data lanes, 1 to 15.
///
/// `fabric` and `lids` are those of the meantime.
pub fn verify_transition(
    fabric: &Fabric,
    lids: &Lids,
    old: &Routing,
    new: &Routing,
    lanes: u8,
) -> TransitionVerdict {
    let ground = Ground::new(fabric, lids, &[]);
    let rows = Rows::new(&ground, &[&old.lanes, &new.lanes], lanes);
    let levels = [&old.levels, &new.levels];
    let parts = whole(&ground.ends);
    let sources = Sources::new(&ground, &rows, &levels, &parts);
    let dependencies = Dependencies::new(&ground, rows.constant().is_none(), rows.lane_count());
    let pass = Pass { ground: &ground, rows: &rows, sources: &sources, routings: [old, new] };
    let found: Vec<TransitionVerdict> = parts
        .par_chunks(BATCH)
        .map_init(Worker::default, |worker, parts| worker.block(&pass, parts, &dependencies))
        .collect();
    let mut all = TransitionVerdict::default();
    for found in found {
        all.append(found);
    }
    let tables = [&old.routes, &new.routes];
    let witness = Witness { ground: &ground, rows: &rows, levels: &levels, tables: &tables, parts: &parts };
    TransitionVerdict {
        lanes: lane_use(&dependencies),
        cycles: cycles(&dependencies, &|goal| witness.find(goal)),
        ..all
    }
}

struct Pass<'a> {
    ground: &'a Ground<'a>,
    rows: &'a Rows,
    sources: &'a Sources<'a>,
    routings: [&'a Routing; 2],
}

#[derive(Debug, Default)]
struct Worker {
    blocks: [Block; 2],
    order: Order,
    follower: Follower,
    reached: Reached,
}

impl Worker {
    fn block(
        &mut self,
        pass: &Pass<'_>,
        parts: &[Part],
        dependencies: &Dependencies<'_>,
    ) -> TransitionVerdict {
        let Pass { ground, rows, sources, routings } = pass;
        let mut verdict = TransitionVerdict::default();
        let ends: Vec<End> = parts.iter().map(|(end, _)| *end).collect();
        for (block, routing) in self.blocks.iter_mut().zip(routings) {
            block.read(ground, &routing.routes, &ends);
        }
        self.blocks[0].measure(ground, &ends);
        self.follower.begin(ground, rows, sources, parts);
        for (place, part) in parts.iter().enumerate() {
            let tables = [self.blocks[0].exits(place), self.blocks[1].exits(place)];
            let exits = Exits { first: tables[0], second: Some(tables[1]) };
            self.order.sort(ground, exits);
            let journey = Journey { ground, rows, part, order: &self.order, exits };
            self.follower.run(place, &journey, sources, &mut &*dependencies);
            verdict.count_lost(&journey, sources, self.blocks[0].least(place), &mut self.reached);
            if self.order.has_loop() {
                verdict.loops += 1;
                if verdict.loop_examples.len() < COUNTER_EXAMPLES_MAX {
                    verdict.loop_examples.extend(find_loop(&journey));
                }
            }
        }
        verdict
    }
}

/// The switches that packets for one LID come to by some mixture of tables: a way there passes no switch twice, so that
/// some mixture has all of it, whatever the table of the last switch.
#[derive(Debug, Default)]
struct Reached {
    /// By switch.
    switches: Vec<bool>,
    /// Those whose exits have not been looked at.
    ahead: Vec<u32>,
}

impl Reached {
    fn find(&mut self, journey: &Journey<'_>, sources: &Sources<'_>) {
        let Journey { ground, part, exits, .. } = journey;
        let target = sources.target(part);
        let sends = |switch: &u32| sources.on(*switch).iter().any(|group| Sources::talk(group, &target));
        self.ahead.clear();
        self.ahead.extend((0..ground.len() as u32).filter(sends));
        self.switches.clear();
        self.switches.resize(ground.len(), false);
        while let Some(switch) = self.ahead.pop() {
            if !std::mem::replace(&mut self.switches[switch as usize], true) {
                self.ahead.extend(exits.channels(switch).map(|(_, channel)| ground.to[channel as usize]));
            }
        }
    }
}

/// Where packets for one LID may go by some mixture of tables. A node is a switch.
struct Mixture<'a>(&'a Journey<'a>);

impl Digraph for Mixture<'_> {
    fn len(&self) -> usize {
        self.0.ground.len()
    }

    fn for_each(&self, node: u32, mut tell: impl FnMut(u32)) {
        self.0.exits.channels(node).for_each(|(_, channel)| tell(self.0.ground.to[channel as usize]));
    }
}

fn find_loop(journey: &Journey<'_>) -> Option<MixedLoop> {
    let ground = journey.ground;
    let switches = shortest_cycle(&Mixture(journey))?;
    let hop = |at: usize| {
        let (switch, next) = (switches[at], switches[(at + 1) % switches.len()]);
        let (table, channel) =
            journey.exits.channels(switch).find(|(_, channel)| ground.to[*channel as usize] == next)?;
        let second = journey.exits.second.map(|second| second[switch as usize]);
        let same = journey.exits.first[switch as usize] == channel && second == Some(channel);
        let tables = if same { Tables::Both } else { [Tables::Old, Tables::New][table] };
        let id = ground.fabric.node(ground.graph.nodes[switch as usize]).id.clone();
        Some(MixedHop { switch: id, exit: ground.from[channel as usize].1, tables })
    };
    Some(MixedLoop { lid: journey.part.0.lid, hops: (0..switches.len()).filter_map(hop).collect() })
}

/// Whose entry leads nowhere.
fn lost(exits: &Exits<'_>, switch: u32) -> Option<Tables> {
    let second = exits.second.unwrap_or(exits.first);
    match [exits.first, second].map(|exits| exits[switch as usize] == LOST) {
        [false, false] => None,
        [true, false] => Some(Tables::Old),
        [false, true] => Some(Tables::New),
        [true, true] => Some(Tables::Both),
    }
}

impl TransitionVerdict {
    /// Whether every packet arrives by every mixture of tables, from every switch.
    pub fn is_sound(&self) -> bool {
        self.lost_before == 0 && self.lost_after == 0 && self.loops == 0
    }

    /// Whether every packet arrives by every mixture of tables that a host sends or receives.
    pub fn serves_hosts(&self) -> bool {
        self.lost_in_use == 0 && self.loops == 0
    }

    /// Whether no channels may wait for each other meanwhile.
    pub fn is_deadlock_free(&self) -> bool {
        self.cycles.is_empty()
    }

    fn count_lost(
        &mut self,
        journey: &Journey<'_>,
        sources: &Sources<'_>,
        least: &[u16],
        reached: &mut Reached,
    ) {
        let Journey { ground, part, exits, .. } = journey;
        let connected = (0..).zip(least).filter(|(_, least)| **least != UNREACHED).map(|(switch, _)| switch);
        let mut known = false;
        for switch in connected {
            self.pairs += 1;
            let Some(tables) = lost(exits, switch) else { continue };
            self.lost_before += u64::from(tables != Tables::New);
            self.lost_after += u64::from(tables != Tables::Old);
            if !std::mem::replace(&mut known, true) {
                reached.find(journey, sources);
            }
            let in_use = reached.switches[switch as usize];
            self.lost_in_use += u64::from(in_use);
            let alike = self.lost_examples.iter().filter(|known| known.in_use == in_use).count();
            if alike < COUNTER_EXAMPLES_MAX {
                let id = ground.fabric.node(ground.graph.nodes[switch as usize]).id.clone();
                self.lost_examples.push(LostEntry { switch: id, lid: part.0.lid, tables, in_use });
            }
        }
    }

    /// Adds what was found for later LIDs.
    fn append(&mut self, later: Self) {
        self.pairs += later.pairs;
        self.lost_before += later.lost_before;
        self.lost_after += later.lost_after;
        self.lost_in_use += later.lost_in_use;
        self.loops += later.loops;
        self.lost_examples.extend(later.lost_examples);
        sorted::by_key(&mut self.lost_examples, |lost| !lost.in_use);
        self.lost_examples.truncate(COUNTER_EXAMPLES_MAX);
        self.loop_examples.extend(later.loop_examples);
        self.loop_examples.truncate(COUNTER_EXAMPLES_MAX);
    }
}

impl fmt::Display for LostEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no way to LID {} by its tables: {}", self.switch, self.lid, self.tables)?;
        f.write_str(if self.in_use { ", and packets of hosts may come there" } else { "" })
    }
}

impl fmt::Display for MixedLoop {
    /// `to LID 7: S-a[3] (old) -> S-b[2] (both) -> S-a`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "to LID {}: ", self.lid)?;
        for hop in &self.hops {
            write!(f, "{}[{}] ({}) -> ", hop.switch, hop.exit, hop.tables)?;
        }
        f.write_str(self.hops.first().map_or("", |hop| &hop.switch))
    }
}

impl fmt::Display for TransitionVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} pairs, {} without a way before and {} after, packets of hosts get lost at {}, {} LIDs with a loop \
             in between",
            self.pairs, self.lost_before, self.lost_after, self.lost_in_use, self.loops
        )?;
        super::verdict::write_lanes(f, &self.lanes)?;
        if self.is_deadlock_free() {
            f.write_str("; free of deadlock")?;
        }
        for lost in &self.lost_examples {
            write!(f, "\n  {lost}")?;
        }
        for mixed in &self.loop_examples {
            write!(f, "\n  loop {mixed}")?;
        }
        for cycle in &self.cycles {
            write!(f, "\n  {cycle}")?;
        }
        Ok(())
    }
}
