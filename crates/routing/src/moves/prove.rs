//! The proof of a plan: every mixture of old and new rows that its rounds allow, and all packets under way.

use std::collections::{BTreeMap, BTreeSet};

use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Lid, PortNum};

use super::change::{Change, Model, NEVER, count_hops};
use super::course::Course;
use super::draft::Draft;
use super::error::Counterexample;
use super::kept::Kept;
use super::network::{Network, Seat};
use super::plan::{Plan, Proof, Round};
use super::request::Move;
use super::waits::Wait;
use crate::lanes::ServiceLevels;
use crate::lids::{Lids, PortLids};
use crate::routing::Routing;
use crate::sorted;
use crate::tables::BLOCK_ENTRIES;
use crate::verify::ground::is_channel;

/// By LID: the switches and the rounds in which its rows change, in order, and to which port.
type Writes = BTreeMap<Lid, Vec<(u32, u32, PortNum)>>;

/// What proofs are made on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground<'a> {
    pub(super) kept: &'a Kept,
    pub(super) fabric: &'a Fabric,
    pub(super) lids: &'a Lids,
    pub(super) routing: &'a Routing,
    /// The service levels once all are at their new places.
    pub(super) levels: &'a ServiceLevels,
}

/// What a proof is about.
struct Prover<'a> {
    kept: &'a Kept,
    fabric: &'a Fabric,
    lids: &'a Lids,
    routing: &'a Routing,
    levels: &'a ServiceLevels,
    changes: BTreeMap<Lid, &'a Change>,
    /// Whether queue pairs to and of the LIDs that move are held: then no packets of theirs are under way, and the next ones have their new
    /// levels.
    is_held: bool,
}

/// Waits that the tables in force do not have.
#[derive(Debug, Default)]
struct News {
    lasting: Vec<Wait>,
    passing: Vec<Wait>,
}

/// Each once, in order.
fn sort(waits: &mut Vec<Wait>) {
    waits.sort_unstable();
    waits.dedup();
}

/// What refutes a plan; of a circle its lane and channels too.
#[derive(Debug)]
pub(super) struct Refuted {
    pub(super) why: Counterexample,
    pub(super) circle: Option<(u8, Vec<u32>)>,
}

impl From<Counterexample> for Refuted {
    fn from(why: Counterexample) -> Self {
        Self { why, circle: None }
    }
}

/// Rounds between which packets may be under way.
struct Segment<'a> {
    /// The tables before.
    draft: Draft<'a>,
    writes: Writes,
    rounds: u32,
    /// Whether packets that were under way have arrived or are dropped before the first round.
    after_drain: bool,
    /// Late rounds begin when those packets are gone that could come to their switches: others may be under way still.
    is_late: bool,
}

/// A segment for one of its LIDs, among the others.
struct Place<'a> {
    segment: &'a Segment<'a>,
    /// Whether the LID's last writes are in it.
    is_last: bool,
    /// Whether packets of earlier plans may be under way.
    is_soon: bool,
    later: &'a [Segment<'a>],
}

/// Proves a plan from its writes alone; `changes` say where LIDs are before and after.
pub(super) fn prove(ground: &Ground<'_>, plan: &Plan, changes: &[Change]) -> Result<Proof, Refuted> {
    let Ground { kept, fabric, lids, routing, levels } = *ground;
    let changes = changes.iter().map(|change| (change.lid, change)).collect();
    let prover = Prover { kept, fabric, lids, routing, levels, changes, is_held: plan.held.is_some() };
    let segments = prover.segments(plan);
    // What a LID's packets are dropped for is over with its last writes.
    let last_of = |lid: Lid| segments.iter().rposition(|segment| segment.writes.contains_key(&lid));
    let (mut proof, mut news) =
        (Proof { unproved_lanes: kept.waits.circles, ..Proof::default() }, News::default());
    let mut passing: BTreeSet<Wait> = BTreeSet::new();
    for (at, segment) in segments.iter().enumerate() {
        // What was under way before has arrived, and what stays is waited for still.
        if !segment.is_late {
            news.passing.clear();
        }
        for lid in segment.writes.keys() {
            let place = Place {
                segment,
                is_last: last_of(*lid) == Some(at),
                // By which ways packets of earlier plans go is known in the first rounds alone; then they have had time.
                is_soon: at == 0 && !segment.after_drain,
                later: &segments[at + 1..],
            };
            prover.follow(*lid, &place, &mut proof, &mut news)?;
        }
        prover.add_old_levels(&mut news);
        sort(&mut news.lasting);
        sort(&mut news.passing);
        // Late rounds do not wait for packets of other plans, unless the first round does.
        let drained = segment.after_drain && (!segment.is_late || segments[0].after_drain);
        prover.find_circle(&news, drained)?;
        // Late rounds are planned again when their time has come.
        passing.extend(news.passing.iter().filter(|_| plan.late.is_some()));
    }
    proof.lasting = news.lasting.into_iter().collect();
    proof.passing = news.passing.into_iter().collect();
    proof.passing.extend(passing);
    sorted::by_key(&mut proof.lids, |item| *item);
    proof.lids.dedup();
    proof.new_waits = (proof.lasting.len() + proof.passing.difference(&proof.lasting).count()) as u64;
    let ended = plan.moves.iter().filter(|one| matches!(one, Move::Clear { .. }));
    proof.idle = ended.map(Move::lid).collect();
    proof.busy = proof.lids.iter().copied().filter(|lid| !proof.idle.contains(lid)).collect();
    Ok(proof)
}

impl<'a> Prover<'a> {
    /// The rounds of a plan from one drain to the next.
    fn segments(&self, plan: &Plan) -> Vec<Segment<'a>> {
        let mut draft = Draft::new(&self.kept.network, &self.routing.routes);
        let (mut segments, mut from) = (Vec::new(), 0);
        while from < plan.rounds.len() {
            let next = plan.rounds[from + 1..].iter().position(|round| round.after_drain);
            let next = next.map_or(plan.rounds.len(), |at| from + 1 + at);
            let before = draft.clone();
            let writes = self.writes(&plan.rounds[from..next], &mut draft);
            let (rounds, after_drain) = ((next - from) as u32, plan.rounds[from].after_drain);
            let is_late = from >= plan.prompt();
            segments.push(Segment { draft: before, writes, rounds, after_drain, is_late });
            from = next;
        }
        segments
    }

    /// What rounds change, row by row, and the tables after them.
    fn writes(&self, rounds: &[Round], draft: &mut Draft<'_>) -> Writes {
        let mut writes = Writes::new();
        for (number, round) in (0..).zip(rounds) {
            for write in &round.writes {
                let Some(switch) = self.kept.network.graph.number(write.switch) else { continue };
                let before = draft.block(switch, write.block);
                let first = usize::from(write.block) * BLOCK_ENTRIES;
                for place in (0..BLOCK_ENTRIES).filter(|place| before[*place] != write.ports[*place]) {
                    let rows = writes.entry(Lid((first + place) as u16)).or_default();
                    rows.push((switch, number, write.ports[place]));
                }
                draft.write(switch, write.block, write.ports);
            }
        }
        // Stable: rounds are in order.
        writes.values_mut().for_each(|rows| sorted::by_key(rows, |(switch, ..)| *switch));
        writes
    }

    /// Where a LID is before, after, and whose rows lead there.
    fn places(&self, lid: Lid) -> Change {
        let owner = || {
            let owner = self.lids.owner(lid)?;
            self.kept.network.seat(self.fabric, owner)
        };
        self.changes.get(&lid).map_or_else(
            || {
                let seat = owner();
                let is_live = seat.is_some() && !self.kept.idle.contains(&lid);
                Change { lid, before: seat, after: seat, model: Model::Nothing, is_live }
            },
            |change| **change,
        )
    }

    fn follow(
        &self,
        lid: Lid,
        place: &Place<'_>,
        proof: &mut Proof,
        news: &mut News,
    ) -> Result<(), Counterexample> {
        let Place { segment, is_last, is_soon, later } = *place;
        let (draft, rounds) = (&segment.draft, segment.rounds);
        let Some(writes) = segment.writes.get(&lid) else { return Ok(()) };
        let network = &self.kept.network;
        let change = self.places(lid);
        let seats = [change.before, change.after];
        let switches = 0..network.len() as u32;
        let mut ports: Vec<PortNum> = switches.clone().map(|switch| draft.port(switch, lid)).collect();
        let exit = |(switch, port): (u32, &PortNum)| network.exit(switch, *port, &seats);
        let standing: Vec<u32> = (0..).zip(&ports).map(exit).collect();
        // Where late rounds begin, packets arrive at the new place already.
        let mut before = arrivals(network, &ports, change.before);
        let moved = arrivals(network, &ports, change.after);
        before.iter_mut().zip(moved).for_each(|(before, moved)| *before |= moved);
        // The last round's counts.
        writes.iter().for_each(|(switch, _, port)| ports[*switch as usize] = *port);
        let after = arrivals(network, &ports, change.after);
        let to_exit = |(switch, round, port): &(u32, u32, PortNum)| (*switch, *round, exit((*switch, port)));
        let exits: Vec<(u32, u32, u32)> = writes.iter().map(to_exit).collect();
        let mut course = Course::new(network, &standing, &exits, rounds);
        course.expect_more(|switch| {
            let mut rows = later.iter().filter_map(|later| later.writes.get(&lid));
            rows.any(|rows| rows.binary_search_by_key(&switch, |(switch, ..)| *switch).is_ok())
        });
        // The last rows of a move come when packets to its switches are gone.
        if is_soon && !matches!(change.model, Model::Missing(_)) {
            let stale = self.kept.stale.range((lid, 0)..=(lid, u32::MAX));
            course.expect_stale(stale.map(|(_, channel)| *channel).collect());
        }
        if is_last {
            self.check_after(&change, draft, &before, &after)?;
        }
        if !change.is_live || self.is_held {
            // No packets are under way, but whoever gets the LID later goes by the rows that stay.
            proof.lids.extend(change.is_live.then_some(lid));
            if is_last {
                self.add_waits(lid, &course, &after, |wait, lasts| {
                    news.lasting.extend(Some(wait).filter(|_| lasts));
                });
            }
            return Ok(());
        }
        let replaced = writes.iter().map(|(switch, ..)| standing[*switch as usize]);
        proof.stale.extend(replaced.filter(|exit| is_channel(*exit)).map(|channel| (lid, channel)));
        *proof.stale_lanes.entry(lid).or_default() |= self.lanes_to(lid);
        proof.lids.push(lid);
        proof.mixtures += u64::from(rounds);
        if let Some((round, channels)) = course.find_loop() {
            return Err(Counterexample::Loop {
                lid,
                round: round as usize + 1,
                switches: self.ports(&channels),
            });
        }
        if change.before.is_some() && change.after.is_some() {
            let always = switches.filter(|at| before[*at as usize] && after[*at as usize]);
            if let Some(switch) = course.find_lost(&course.earliest(always)) {
                return Err(Counterexample::Lost { lid, switch: self.id(switch) });
            }
        }
        let arrives: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before | after).collect();
        self.add_waits(lid, &course, &arrives, |wait, lasts| {
            let set = if lasts { &mut news.lasting } else { &mut news.passing };
            set.push(wait);
        });
        Ok(())
    }

    /// Whether packets arrive once all is written: from where they did before, and from where they do by the rows that are taken
    /// over.
    fn check_after(
        &self,
        change: &Change,
        draft: &Draft<'_>,
        before: &[bool],
        after: &[bool],
    ) -> Result<(), Counterexample> {
        let network = &self.kept.network;
        let Some(seat) = change.after else { return Ok(()) };
        let model = match change.model {
            Model::Nothing => None,
            Model::All(model) | Model::Missing(model) => Some(model),
            Model::Fresh => Some(change.lid),
        };
        let model = model.map(|model| {
            let port = |switch| if switch == seat.switch { seat.exit } else { draft.port(switch, model) };
            arrivals(network, &(0..network.len() as u32).map(port).collect::<Vec<PortNum>>(), change.after)
        });
        let due = |at: usize| before[at] || model.as_ref().is_some_and(|model| model[at]);
        let lost = (0..network.len()).find(|at| due(*at) && !after[*at]);
        lost.map_or(Ok(()), |at| {
            Err(Counterexample::Unreached { lid: change.lid, switch: self.id(at as u32) })
        })
    }

    /// Tells what packets to a LID wait for that no packets have waited for before, and whether that lasts. They come from the senders
    /// at switches from where they arrive, on the level of the new place; and on that of the old one as long as they have not heard of it,
    /// unless they are held.
    fn add_waits(&self, lid: Lid, course: &Course<'_>, arrives: &[bool], mut tell: impl FnMut(Wait, bool)) {
        let Kept { network, waits, senders, stale_lanes, .. } = self.kept;
        let [old, new] = self.targets(lid);
        let sent = |target: Option<u16>| -> Vec<(u32, u16)> {
            let bits = |class: &Option<u16>| self.lane(*class, target);
            let all = senders.iter().map(|(switch, class)| (*switch, bits(class)));
            all.filter(|(switch, _)| arrives[*switch as usize]).collect()
        };
        let mut streams = vec![(sent(new), true)];
        if old != new && !self.is_held {
            streams.push((sent(old), false));
        }
        if !self.is_held {
            let moved = self.changes.values().filter_map(|change| self.strays(change, lid));
            streams.push((moved.collect(), false));
        }
        let stale = stale_lanes.get(&lid).copied().unwrap_or(0);
        for (at, (sent, may_last)) in streams.iter().enumerate() {
            let used = sent.iter().fold(0, |used, (_, bits)| used | bits);
            let used = if at == 0 { used | stale } else { used };
            for lane in (0..16).filter(|lane| used & 1 << lane != 0) {
                let on_lane = sent.iter().filter(|(_, bits)| bits & 1 << lane != 0);
                let on_lane = on_lane.map(|(switch, _)| *switch).chain(course.stale_ends());
                let earliest =
                    if self.is_held { course.earliest_after(on_lane) } else { course.earliest(on_lane) };
                course.waits(&earliest, lane, |wait, lasts| {
                    if !waits.has(network, wait) {
                        tell(wait, lasts && *may_last);
                    }
                });
            }
        }
    }

    /// The lane of a pair's packets, as a bit; 0 where they are dropped.
    fn lane(&self, source: Option<u16>, target: Option<u16>) -> u16 {
        self.kept.lanes[usize::from(self.levels.level(source, target))]
    }

    /// The classes of a LID as a destination, before the moves and after them.
    fn targets(&self, lid: Lid) -> [Option<u16>; 2] {
        [self.routing.levels.destination_class(lid), self.levels.destination_class(lid)]
    }

    /// The lanes of packets to a LID, before the moves and after them.
    fn lanes_to(&self, lid: Lid) -> u16 {
        let lanes = |target| self.kept.senders.iter().map(move |(_, class)| self.lane(*class, target));
        self.targets(lid).into_iter().flat_map(lanes).fold(0, |all, bits| all | bits)
    }

    /// The switch of a LID's new place, and the lanes on which packets to another LID may leave it as if the LID were at its old place still:
    /// those that it sends itself before it has heard of its levels, and its answers, which go on the level that packets came on.
    fn strays(&self, change: &Change, to: Lid) -> Option<(u32, u16)> {
        let seat = change.after.filter(|_| change.is_live && change.before.is_some())?;
        let [old, new] = self.targets(change.lid);
        let sources = |levels: &ServiceLevels| levels.source_class(change.lid);
        let (own, next) = (sources(&self.routing.levels), sources(self.levels));
        if (old, own) == (new, next) {
            return None;
        }
        let mut bits = self.targets(to).into_iter().fold(0, |bits, target| bits | self.lane(own, target));
        for levels in [&self.routing.levels, self.levels] {
            bits |= self.lane(levels.source_class(to), old);
        }
        Some((seat.switch, bits))
    }

    /// What packets from new places wait for that leave on levels of the old ones, to all LIDs that stay where they are.
    fn add_old_levels(&self, news: &mut News) {
        let (network, waits) = (&self.kept.network, &self.kept.waits);
        let lids = self.lids.iter().flat_map(PortLids::iter).filter(|lid| !self.kept.idle.contains(lid));
        for lid in lids.filter(|lid| !self.is_held && !self.changes.contains_key(lid)) {
            for (start, bits) in self.changes.values().filter_map(|change| self.strays(change, lid)) {
                let (mut at, mut held) = (start, None);
                for _ in 0..network.len() {
                    let row = self.routing.routes.port(network.graph.nodes[at as usize], lid);
                    let exit = network.exit(at, row, &[]);
                    if !is_channel(exit) {
                        break;
                    }
                    let lanes = (0..16).filter(|lane| bits & 1 << lane != 0);
                    let all = held
                        .into_iter()
                        .flat_map(|held| lanes.clone().map(move |lane| Wait { lane, held, wanted: exit }));
                    news.passing.extend(all.filter(|wait| !waits.has(network, *wait)));
                    (at, held) = (network.to[exit as usize], Some(exit));
                }
            }
        }
    }

    fn find_circle(&self, news: &News, drained: bool) -> Result<(), Refuted> {
        let mut all = [&news.lasting[..], &news.passing].concat();
        sort(&mut all);
        match self.kept.waits.circle(&self.kept.network, &all, drained) {
            None => Ok(()),
            Some((lane, channels)) => {
                let why = Counterexample::Circle { lane, channels: self.ports(&channels) };
                Err(Refuted { why, circle: Some((lane, channels)) })
            }
        }
    }

    fn id(&self, switch: u32) -> String {
        let node: NodeIndex = self.kept.network.graph.nodes[switch as usize];
        self.fabric.node(node).id.clone()
    }

    /// The ports where channels begin.
    fn ports(&self, channels: &[u32]) -> Vec<(String, PortNum)> {
        let port = |channel: &u32| {
            let port = self.kept.network.port_of(*channel);
            (self.fabric.node(port.node).id.clone(), port.port)
        };
        channels.iter().map(port).collect()
    }
}

/// By switch: whether packets arrive at a place.
pub(super) fn arrivals(network: &Network, ports: &[PortNum], seat: Option<Seat>) -> Vec<bool> {
    let exits = (0..).zip(ports).map(|(switch, port)| network.exit(switch, *port, &[seat]));
    count_hops(network, &exits.collect::<Vec<u32>>()).into_iter().map(|hops| hops != NEVER).collect()
}
