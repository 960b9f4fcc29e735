//! Partitions as routing sees them: who talks to whom over which switches.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::{Guid, Lid, ServiceLevel};

use crate::input::Input;
use crate::lanes::ServiceLevels;
use crate::partitions::{DEFAULT_PKEY, Isolation, Partition};
use crate::sorted;
use crate::tree::{End, Tree};

/// A partition that somebody is in.
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    /// What people call it.
    pub(super) name: String,
    pub(super) isolation: Isolation,
    /// The switches that its members are on, in the order of their numbers.
    pub(super) sites: Vec<Site>,
}

/// A switch with members of a partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) switch: u32,
    /// Whether a full member is among them.
    pub(super) full: bool,
}

/// A partition, by its place in [`Tenants::list`], and whether the membership is full.
pub(super) type Membership = (u32, bool);

/// A switch with a port that is in two partitions, and whether it is a full member of each.
type Common = (u32, bool, bool);

/// All partitions and the memberships of all end ports.
///
/// The default partition is for management: it counts only for ports that are in no other. Ports of switches and of
/// nodes that serve management alone are in none.
#[derive(Debug, Default)]
pub(super) struct Tenants {
    /// The strictest first, then in the order of the file.
    pub(super) list: Vec<Tenant>,
    /// The different sets of memberships.
    pub(super) classes: Vec<Vec<Membership>>,
    /// By end port: its class.
    class_of: Vec<u32>,
}

impl Tenants {
    pub(super) fn new(input: &Input<'_>, tree: &Tree) -> Self {
        let mut partitions: Vec<&Partition> =
            input.options.partitions.iter().flat_map(|partitions| &partitions.list).collect();
        sorted::by_key(&mut partitions, |partition| partition.isolation);
        let memberships = memberships(input, tree, &partitions);
        let list = match input.options.partitions {
            // Everybody talks to everybody.
            None => vec![Tenant { name: "all".to_owned(), isolation: Isolation::Def, sites: Vec::new() }],
            Some(_) => partitions.iter().map(|partition| Tenant::new(partition)).collect(),
        };
        let mut tenants = Self { list, ..Self::default() };
        for (end, memberships) in tree.ends.iter().zip(&memberships) {
            for (tenant, full) in memberships {
                tenants.list[*tenant as usize].add(end.at, *full);
            }
        }
        tenants.classes = memberships.clone();
        tenants.classes.sort_unstable();
        tenants.classes.dedup();
        let class_of =
            |class: &Vec<Membership>| tenants.classes.partition_point(|other| other < class) as u32;
        tenants.class_of = memberships.iter().map(class_of).collect();
        tenants
    }

    /// The memberships of an end port.
    pub(super) fn of(&self, end: usize) -> &[Membership] {
        &self.classes[self.class_of[end] as usize]
    }

    /// The partition by which an end port is routed: the strictest whose members are on more than one switch. Those
    /// on a single switch need no cable between switches.
    pub(super) fn key(&self, end: usize) -> Option<u32> {
        let wide = |membership: &&Membership| self.list[membership.0 as usize].sites.len() > 1;
        self.of(end).iter().find(wide).map(|(tenant, _)| *tenant)
    }

    /// The strictest partition in which members of two classes talk to each other.
    fn shared(&self, a: &[Membership], b: &[Membership]) -> Option<u32> {
        let mut others = b.iter().peekable();
        for (tenant, full) in a {
            while others.next_if(|(other, _)| other < tenant).is_some() {}
            if others.peek().is_some_and(|(other, also)| other == tenant && (*full || *also)) {
                return Some(*tenant);
            }
        }
        None
    }

    /// Pairs of partitions in which the same ports talk to each other over cables between switches, so that a
    /// pair's one service level cannot tell them apart. `piece` tells which switches are connected.
    pub(super) fn overlaps(&self, ends: &[End], piece: impl Fn(u32) -> u32) -> BTreeSet<(u32, u32)> {
        let mut common: BTreeMap<(u32, u32), BTreeSet<Common>> = BTreeMap::new();
        for (end, class) in ends.iter().zip(&self.class_of) {
            let class = &self.classes[*class as usize];
            for (place, (a, full_in_a)) in class.iter().enumerate() {
                for (b, full_in_b) in &class[place + 1..] {
                    common.entry((*a, *b)).or_default().insert((end.at, *full_in_a, *full_in_b));
                }
            }
        }
        let talk =
            |x: &Common, y: &Common| x.0 != y.0 && (x.1 || y.1) && (x.2 || y.2) && piece(x.0) == piece(y.0);
        common.retain(|_, ports| ports.iter().any(|x| ports.iter().any(|y| talk(x, y))));
        common.into_keys().collect()
    }

    /// The level of every pair of end ports: the lane of the strictest partition that they share.
    pub(super) fn levels(&self, ends: &[End], top: Lid, lanes: &[u8]) -> ServiceLevels {
        if lanes.iter().all(|lane| *lane == 0) {
            return ServiceLevels::zero();
        }
        let mut levels = ServiceLevels::classes(top, self.classes.len(), self.classes.len());
        for (from, a) in (0..).zip(&self.classes) {
            for (to, b) in (0..).zip(&self.classes) {
                if let Some(tenant) = self.shared(a, b) {
                    levels.set(from, to, ServiceLevel(lanes[tenant as usize]));
                }
            }
        }
        for (end, class) in ends.iter().zip(&self.class_of) {
            end.lids.iter().for_each(|lid| levels.set_class(*lid, *class as u16));
        }
        levels
    }
}

impl Tenant {
    fn new(partition: &Partition) -> Self {
        let name = match partition.name.as_str() {
            "" => format!("{:#06x}", partition.pkey),
            name => format!("`{name}` ({:#06x})", partition.pkey),
        };
        Self { name, isolation: partition.isolation, sites: Vec::new() }
    }

    /// Adds a member; those of one switch come one after the other.
    fn add(&mut self, switch: u32, full: bool) {
        match self.sites.last_mut().filter(|site| site.switch == switch) {
            Some(site) => site.full |= full,
            None => self.sites.push(Site { switch, full }),
        }
    }
}

/// By end port: its memberships by tenant, in order.
fn memberships(input: &Input<'_>, tree: &Tree, partitions: &[&Partition]) -> Vec<Vec<Membership>> {
    let mut of_guid: BTreeMap<Guid, BTreeMap<u32, bool>> = BTreeMap::new();
    for (tenant, partition) in (0..).zip(partitions) {
        for member in &partition.members {
            of_guid.entry(member.guid).or_default().insert(tenant, member.full);
        }
    }
    let is_default = |tenant: u32| partitions[tenant as usize].pkey == DEFAULT_PKEY;
    let of_end = |end: &End| -> Vec<Membership> {
        if !end.kind.is_host() {
            return Vec::new();
        }
        if input.options.partitions.is_none() {
            return vec![(0, true)];
        }
        let all: Vec<Membership> =
            of_guid.get(&end.guid).into_iter().flatten().map(|(tenant, full)| (*tenant, *full)).collect();
        let named: Vec<Membership> = all.iter().copied().filter(|(tenant, _)| !is_default(*tenant)).collect();
        if named.is_empty() { all } else { named }
    };
    tree.ends.iter().map(of_end).collect()
}
