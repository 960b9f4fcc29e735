//! The paper's topologies, and routing them with victims.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use weft_routing::quality::{Participants, Paths, hosts};
use weft_routing::{
    Engine, EngineOptions, Input, Isolation, Lids, Member, Partition, Partitions, PftreeOrder, Routing,
    Strictness,
};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::{Guid, Lid};

/// What decides the numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) seed: u64,
    pub(crate) draws: u32,
    pub(crate) runs: u32,
}

/// A topology of table 3: hosts on a leaf, leaves, roots, and victims on a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Topology {
    pub(crate) on_leaf: u32,
    pub(crate) leaves: u32,
    pub(crate) victims: u32,
}

/// All of them; there are as many roots as leaves, and a quarter of all hosts are victims.
pub(crate) const TOPOLOGIES: [Topology; 9] = [
    Topology { on_leaf: 8, leaves: 4, victims: 2 },
    Topology { on_leaf: 12, leaves: 4, victims: 3 },
    Topology { on_leaf: 16, leaves: 4, victims: 4 },
    Topology { on_leaf: 16, leaves: 8, victims: 4 },
    Topology { on_leaf: 24, leaves: 8, victims: 6 },
    Topology { on_leaf: 32, leaves: 8, victims: 8 },
    Topology { on_leaf: 32, leaves: 16, victims: 8 },
    Topology { on_leaf: 48, leaves: 16, victims: 12 },
    Topology { on_leaf: 64, leaves: 16, victims: 16 },
];

impl Topology {
    pub(crate) fn hosts(&self) -> u32 {
        self.on_leaf * self.leaves
    }

    /// `128 hosts, 2:1`
    pub(crate) fn name(&self) -> String {
        format!("{} hosts, {}:1", self.hosts(), self.on_leaf / self.leaves)
    }

    pub(crate) fn fabric(&self) -> Fabric {
        let (children, parents) = ([self.on_leaf, self.leaves], [1, self.leaves]);
        xgft(&children, &parents, &GenerateOptions::default()).expect("the numbers are in range")
    }
}

/// What routes, and how the victims are isolated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Router {
    pub(crate) engine: &'static str,
    pub(crate) victims: Isolation,
    /// Whether the engine keeps to the printed algorithm, and whether that leaves a root to the others.
    pub(crate) literal: bool,
    pub(crate) leave_one: bool,
    /// In which order the hosts of a leaf are routed.
    pub(crate) order: PftreeOrder,
}

pub(crate) const FTREE: Router = Router {
    engine: "ftree",
    victims: Isolation::Def,
    literal: false,
    leave_one: false,
    order: PftreeOrder::Interleaved,
};
pub(crate) const PFTREE: Router = Router { engine: "pftree", ..FTREE };
pub(crate) const PFTREE_WT: Router = Router { engine: "pftree-wt", ..FTREE };
pub(crate) const BY_PARTITION: Router = Router { order: PftreeOrder::Partition, ..PFTREE };
pub(crate) const AS_THEY_COME: Router = Router { order: PftreeOrder::Fabric, ..PFTREE };
pub(crate) const WT_BY_PARTITION: Router = Router { order: PftreeOrder::Partition, ..PFTREE_WT };
pub(crate) const PFTREE_EXT: Router = Router { engine: "pftree-ext", victims: Isolation::Phy, ..FTREE };
pub(crate) const LITERAL: Router = Router { literal: true, ..PFTREE_EXT };
/// As the paper seems to have run it: the letter, one root left to the others.
pub(crate) const LEAVE_ONE: Router = Router { leave_one: true, ..LITERAL };

/// Stands where the printed algorithm never ends.
pub(crate) const ENDLESS: &str = "never ends";

/// A fabric with victims.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) fabric: Fabric,
    pub(crate) lids: Lids,
    /// The victims, then the others.
    pub(crate) parts: [Vec<Lid>; 2],
    /// On a leaf, those who are victims; drawn.
    pub(crate) by_leaf: Vec<Vec<Lid>>,
}

impl Scene {
    /// Draws `victims` on every leaf.
    pub(crate) fn new(topology: &Topology, victims: u32, seed: u64) -> Self {
        let fabric = topology.fabric();
        let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
        let mut random = Pcg64::seed_from_u64(seed);
        let (mut parts, mut by_leaf) = ([Vec::new(), Vec::new()], Vec::new());
        // The hosts of a leaf have neighbouring LIDs.
        for leaf in hosts(&fabric, &lids).chunks(topology.on_leaf as usize) {
            let mut leaf = leaf.to_vec();
            leaf.shuffle(&mut random);
            let others = leaf.split_off(victims as usize);
            parts[0].extend(&leaf);
            parts[1].extend(others);
            by_leaf.push(leaf);
        }
        Self { fabric, lids, parts, by_leaf }
    }

    fn guid(&self, lid: Lid) -> Guid {
        let port = self.lids.owner(lid).and_then(|owner| self.fabric.port(owner));
        port.map(|port| port.guid).unwrap_or_default()
    }

    /// Routes with the victims isolated as `router` says; the receivers weigh 100, the others 1.
    /// `None` where the printed algorithm never ends.
    pub(crate) fn route(&self, router: &Router, receivers: &[Lid]) -> Option<Routing> {
        let member = |lid: &Lid| Member { guid: self.guid(*lid), full: true };
        let partition = |pkey: u16, isolation, part: &[Lid]| Partition {
            name: format!("partition-{pkey}"),
            pkey,
            members: part.iter().map(member).collect(),
            isolation,
        };
        let list =
            vec![partition(1, router.victims, &self.parts[0]), partition(2, Isolation::Def, &self.parts[1])];
        let options = EngineOptions {
            partitions: Some(Partitions { list, strictness: Strictness::Strict }),
            weights: receivers.iter().map(|lid| (self.guid(*lid), 100)).collect(),
            literal: router.literal,
            leave_one: router.leave_one,
            pftree_order: router.order,
            ..EngineOptions::default()
        };
        let engine = Engine::by_name(router.engine).expect("the engine is there");
        let input = Input { fabric: &self.fabric, lids: &self.lids, options: &options };
        match engine.route(&input) {
            Ok(routing) => Some(routing),
            Err(refusal) if router.literal && refusal.reason.contains("never ends") => None,
            Err(refusal) => panic!("a whole tree is served: {refusal}"),
        }
    }

    pub(crate) fn paths<'a>(&'a self, routing: &'a Routing) -> Paths<'a> {
        Paths::new(&self.fabric, &self.lids, &routing.routes)
    }

    /// Victims against the others.
    pub(crate) fn participants(&self) -> Participants {
        Participants { first: self.parts[0].clone(), second: self.parts[1].clone() }
    }
}

/// The least, the mean and the greatest of values that come with means.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range {
    least: Option<f64>,
    sum: f64,
    count: u64,
    greatest: f64,
}

impl Range {
    pub(crate) fn add(&mut self, least: f64, mean: f64, greatest: f64, count: u64) {
        self.least = Some(self.least.map_or(least, |own| own.min(least)));
        self.sum += mean * count as f64;
        self.count += count;
        self.greatest = self.greatest.max(greatest);
    }

    pub(crate) fn one(&mut self, value: f64) {
        self.add(value, value, value, 1);
    }

    pub(crate) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// The least, the mean and the greatest; none where the algorithm never ends.
    pub(crate) fn values(&self) -> Option<[f64; 3]> {
        (self.count > 0).then(|| [self.least.unwrap_or(0.0), self.mean(), self.greatest])
    }

    /// The mean with this number of digits, or that the algorithm never ends.
    pub(crate) fn show(&self, digits: usize) -> String {
        if self.count == 0 { ENDLESS.to_owned() } else { format!("{:.digits$}", self.mean()) }
    }

    /// `1 / 2.4 / 5`
    pub(crate) fn three(&self) -> String {
        if self.count == 0 {
            return ENDLESS.to_owned();
        }
        format!("{:.0} / {:.1} / {:.0}", self.least.unwrap_or(0.0), self.mean(), self.greatest)
    }
}
