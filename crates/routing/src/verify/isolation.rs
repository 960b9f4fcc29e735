//! Isolation of partitions, against what their policies ask.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use rayon::prelude::*;
use serde::Serialize;
use weft_topology::PortRef;
use weft_wire::Guid;

use crate::bfs::BATCH;
use crate::collapse::vswitches;
use crate::lanes::ServiceLevels;
use crate::partitions::{DEFAULT_PKEY, Isolation, Partition, Partitions};
use crate::routing::Routing;

use super::block::Block;
use super::flow::{Follower, Journey, Sink};
use super::ground::Ground;
use super::order::{Exits, Order};
use super::pair::Pair;
use super::report::COUNTER_EXAMPLES_MAX;
use super::rows::Rows;
use super::sources::{Part, Sources};
use super::witness::{Goal, Witness};

/// How well policies are kept.
///
/// A link is one direction of a cable between two switches. A pair is traffic of a partition where both belong to it
/// and one of them fully. In the default partition everybody may be managed: its traffic is that between
/// members of no other. A physical function manages its host, and so counts as a member of what its virtual functions are members of.
/// Ports of switches belong to none: what they send and receive is management.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IsolationReport {
    /// How many partitions have a policy that can be broken.
    pub isolated: usize,
    /// How many times a link breaks the policy of a partition.
    pub breaches: u64,
    /// The first few, by partition and link.
    pub examples: Vec<Breach>,
}

/// A link that breaks the policy of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Breach {
    /// The partition: its name, or its P_Key where it has none.
    pub partition: String,
    /// Its policy.
    pub isolation: Isolation,
    /// The link: `S-a[3] -> [4]S-b`.
    pub link: String,
    /// The lane that is shared; `None` where already the link must not be.
    pub lane: Option<u8>,
    /// With whom.
    pub other: String,
    /// A pair of the partition that uses it.
    pub pair: Option<Pair>,
    /// A pair of the other partition that uses it.
    pub other_pair: Option<Pair>,
}

/// A partition, its ports, and the lanes that it uses by channel.
struct Usage<'a> {
    partition: &'a Partition,
    parts: Vec<Part>,
    lanes: Vec<(u32, u16)>,
}

/// Compares what partitions use.
pub(super) fn find(
    ground: &Ground<'_>,
    rows: &Rows,
    routing: &Routing,
    partitions: &Partitions,
) -> IsolationReport {
    let levels = [&routing.levels];
    let usages: Vec<Usage<'_>> = parts_of(ground, partitions)
        .into_iter()
        .zip(&partitions.list)
        .map(|(parts, partition)| {
            let lanes = carried(ground, rows, routing, &levels, &parts);
            Usage { partition, parts, lanes }
        })
        .collect();
    let shared = Shared::of(ground, &usages);
    let mut report = IsolationReport::default();
    for usage in usages.iter().filter(|usage| usage.partition.isolation != Isolation::Def) {
        report.isolated += 1;
        for (channel, lanes) in &usage.lanes {
            let conflict = shared.conflict(usage.partition.isolation, *channel, *lanes);
            let Some(conflict) = conflict else { continue };
            report.breaches += 1;
            if report.examples.len() < COUNTER_EXAMPLES_MAX {
                let tables = [&routing.routes];
                let witness = Witness { ground, rows, levels: &levels, tables: &tables, parts: &[] };
                report.examples.extend(show(&witness, &usages, usage, *channel, conflict));
            }
        }
    }
    report
}

/// Who belongs to each partition, in LID order.
fn parts_of(ground: &Ground<'_>, partitions: &Partitions) -> Vec<Vec<Part>> {
    let mut places: BTreeMap<Guid, Vec<usize>> = BTreeMap::new();
    for (place, end) in ground.ends.iter().enumerate().filter(|(_, end)| end.host) {
        let guid = ground.fabric.port(end.port).map(|port| port.guid);
        places.entry(guid.unwrap_or_default()).or_default().push(place);
    }
    let is_default = |partition: &Partition| partition.pkey & DEFAULT_PKEY == DEFAULT_PKEY;
    let mut elsewhere = vec![false; ground.ends.len()];
    let members: Vec<BTreeMap<usize, bool>> = partitions
        .list
        .iter()
        .map(|partition| {
            let mut members = BTreeMap::new();
            for member in &partition.members {
                for place in places.get(&member.guid).into_iter().flatten() {
                    *members.entry(*place).or_insert(false) |= member.full;
                    elsewhere[*place] |= !is_default(partition);
                }
            }
            members
        })
        .collect();
    count_physical(ground, &places, &mut elsewhere);
    let parts = |(partition, members): (&Partition, BTreeMap<usize, bool>)| {
        let counts = |place: &usize| !is_default(partition) || !elsewhere[*place];
        let members = members.into_iter().filter(|(place, _)| counts(place));
        members.map(|(place, full)| (ground.ends[place], full)).collect()
    };
    partitions.list.iter().zip(members).map(parts).collect()
}

/// Physical functions are in another partition than the default one if one of their virtual functions is.
fn count_physical(ground: &Ground<'_>, places: &BTreeMap<Guid, Vec<usize>>, elsewhere: &mut [bool]) {
    let of = |port: PortRef| {
        let guid = ground.fabric.port(port).map(|port| port.guid).unwrap_or_default();
        places.get(&guid).into_iter().flatten().copied()
    };
    for vswitch in vswitches(ground.fabric, &[]) {
        if vswitch.virtual_functions().flat_map(of).any(|place| elsewhere[place]) {
            vswitch.pf().into_iter().flat_map(of).for_each(|place| elsewhere[place] = true);
        }
    }
}

/// The lanes that traffic among `parts` uses, by channel.
fn carried(
    ground: &Ground<'_>,
    rows: &Rows,
    routing: &Routing,
    levels: &[&ServiceLevels],
    parts: &[Part],
) -> Vec<(u32, u16)> {
    let carrier = Carrier(std::iter::repeat_with(AtomicU16::default).take(ground.to.len()).collect());
    let sources = Sources::new(ground, rows, levels, parts);
    parts.par_chunks(BATCH).for_each_init(Worker::default, |worker, parts| {
        let Worker { block, order, follower } = worker;
        let ends: Vec<_> = parts.iter().map(|(end, _)| *end).collect();
        block.read(ground, &routing.routes, &ends);
        follower.begin(ground, rows, &sources, parts);
        for (place, part) in parts.iter().enumerate() {
            let exits = Exits::of(block.exits(place));
            order.sort(ground, exits);
            let journey = Journey { ground, rows, part, order, exits };
            follower.run(place, &journey, &sources, &mut &carrier);
        }
    });
    let lanes = (0..).zip(carrier.0).map(|(channel, lanes)| (channel, lanes.into_inner()));
    lanes.filter(|(_, lanes)| *lanes != 0).collect()
}

#[derive(Debug, Default)]
struct Worker {
    block: Block,
    order: Order,
    follower: Follower,
}

/// By channel: the lanes that are used.
struct Carrier(Vec<AtomicU16>);

impl Sink for &Carrier {
    fn carry(&mut self, channel: u32, lanes: u16) {
        self.0[channel as usize].fetch_or(lanes, Relaxed);
    }

    fn depend(&mut self, _: u32, _: u16, _: u32, _: u16) {}
}

/// What several partitions use.
struct Shared {
    /// By channel: how many use it.
    users: Vec<u32>,
    /// By channel: the lanes that at least two of them use.
    lanes: Vec<u16>,
}

/// What of a channel is shared against the policy: a lane, or all of it.
type Conflict = Option<u8>;

impl Shared {
    fn of(ground: &Ground<'_>, usages: &[Usage<'_>]) -> Self {
        let channels = ground.to.len();
        let mut once = vec![0; channels];
        let mut shared = Self { users: vec![0; channels], lanes: vec![0; channels] };
        for (channel, lanes) in usages.iter().flat_map(|usage| &usage.lanes) {
            let channel = *channel as usize;
            shared.users[channel] += 1;
            shared.lanes[channel] |= once[channel] & lanes;
            once[channel] |= lanes;
        }
        shared
    }

    fn conflict(&self, isolation: Isolation, channel: u32, lanes: u16) -> Option<Conflict> {
        let shared = self.lanes[channel as usize] & lanes;
        match isolation {
            Isolation::Phy if self.users[channel as usize] > 1 => Some(None),
            Isolation::Vlane if shared != 0 => Some(Some(shared.trailing_zeros() as u8)),
            _ => None,
        }
    }
}

/// Names those who share a channel.
fn show(
    witness: &Witness<'_>,
    usages: &[Usage<'_>],
    usage: &Usage<'_>,
    channel: u32,
    conflict: Conflict,
) -> Option<Breach> {
    let lanes_of = |usage: &Usage<'_>| {
        let place = usage.lanes.binary_search_by_key(&channel, |(channel, _)| *channel).ok()?;
        let lanes = usage.lanes[place].1;
        conflict.map_or(Some(lanes), |lane| (lanes & 1 << lane != 0).then_some(1 << lane))
    };
    let pair = |usage: &Usage<'_>| {
        let lane = lanes_of(usage)?.trailing_zeros() as u8;
        Witness { parts: &usage.parts, ..*witness }.find(Goal { held: (channel, lane), wanted: None })
    };
    let others = usages.iter().filter(|other| !std::ptr::eq(*other, usage));
    let other = others.into_iter().find(|other| lanes_of(other).is_some())?;
    Some(Breach {
        partition: label(usage.partition),
        isolation: usage.partition.isolation,
        link: super::deadlock::channel(witness.ground, channel, 0, None).to_string(),
        lane: conflict,
        other: label(other.partition),
        pair: pair(usage),
        other_pair: pair(other),
    })
}

fn label(partition: &Partition) -> String {
    match partition.name.is_empty() {
        true => format!("{:#06x}", partition.pkey),
        false => partition.name.clone(),
    }
}
