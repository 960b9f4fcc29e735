//! Lanes for the partitions that share links, and the policies that cannot be kept.

use std::collections::BTreeSet;

use weft_topology::{Fabric, PortRef};

use super::tenants::Tenants;
use super::traffic::{Users, members};
use crate::partitions::Isolation;
use crate::tree::Tree;
use crate::tree::reach::{Link, Shape};

/// What partitions get.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// By partition: its lane.
    pub(super) of: Vec<u8>,
    /// How many partitions share a link with another.
    pub(super) sharing: usize,
    /// Pairs of partitions on one link and one lane.
    pub(super) mixed: usize,
    /// The policies that are not kept, one sentence each.
    pub(super) unsatisfied: Vec<String>,
}

/// Gives partitions that share a link different lanes, as few as that takes (Zahid 2016, algorithm 5): the
/// strictest partitions choose first, each the lowest lane that none of its neighbours has. Those with lanes of
/// their own leave lane 0 to neighbours that have no such policy. When lanes run out, a partition shares the lane
/// on which it meets the fewest others, those of strict partitions last of all.
pub(super) fn assign(
    fabric: &Fabric,
    tree: &Tree,
    shape: &Shape,
    tenants: &Tenants,
    users: &Users,
    lanes: u8,
) -> Lanes {
    let links = 0..2 * shape.ends.len() as Link;
    let neighbours = neighbours(tenants.list.len(), links, users);
    let overlaps = tenants.overlaps(&tree.ends, |at| shape.pieces[at as usize]);
    let mut result = Lanes { of: vec![0; tenants.list.len()], ..Lanes::default() };
    let is_free = |tenant: u32| tenants.list[tenant as usize].isolation == Isolation::Def;
    for (tenant, sharers) in (0..).zip(&neighbours) {
        if members(sharers).next().is_none() {
            continue;
        }
        result.sharing += 1;
        let leaves_one = !is_free(tenant) && members(sharers).any(is_free);
        // Those before this one have chosen.
        let chosen = members(sharers).take_while(|other| *other < tenant);
        let mut met = vec![(0u32, 0u32); usize::from(lanes)];
        for other in chosen {
            let met = &mut met[usize::from(result.of[other as usize])];
            if is_free(other) { met.1 += 1 } else { met.0 += 1 }
        }
        let cost = |lane: &u8| (met[usize::from(*lane)], leaves_one && *lane == 0, *lane);
        result.of[tenant as usize] = (0..lanes).min_by_key(cost).unwrap_or(0);
    }
    for (tenant, sharers) in (0..).zip(&neighbours) {
        let mixes = |other: &u32| {
            result.of[*other as usize] == result.of[tenant as usize]
                || overlaps.contains(&(tenant.min(*other), tenant.max(*other)))
        };
        result.mixed += members(sharers).filter(|other| *other > tenant).filter(mixes).count();
        let isolation = tenants.list[tenant as usize].isolation;
        let broken_by = match isolation {
            Isolation::Phy => members(sharers).next(),
            Isolation::Vlane => members(sharers).find(mixes),
            Isolation::Def => None,
        };
        if let Some(other) = broken_by {
            let place = Sharing { fabric, tree, shape, users, tenants };
            result.unsatisfied.push(place.sentence(isolation, tenant, other));
        }
    }
    result
}

/// By partition, a bit for every other that uses one of its links.
fn neighbours(tenants: usize, links: std::ops::Range<Link>, users: &Users) -> Vec<Vec<u64>> {
    let mut neighbours = vec![vec![0u64; tenants.div_ceil(64)]; tenants];
    let mut last: &[u64] = &[];
    let mut seen: BTreeSet<&[u64]> = BTreeSet::new();
    for link in links {
        let row = users.of(link);
        // Many links have the same users.
        if row == last || !seen.insert(row) {
            continue;
        }
        last = row;
        for tenant in members(row) {
            let own = &mut neighbours[tenant as usize];
            own.iter_mut().zip(row).for_each(|(own, row)| *own |= row);
        }
    }
    for (tenant, own) in neighbours.iter_mut().enumerate() {
        own[tenant / 64] &= !(1 << (tenant % 64));
    }
    neighbours
}

/// Where two partitions meet.
struct Sharing<'a> {
    fabric: &'a Fabric,
    tree: &'a Tree,
    shape: &'a Shape,
    users: &'a Users,
    tenants: &'a Tenants,
}

impl Sharing<'_> {
    fn sentence(&self, isolation: Isolation, tenant: u32, other: u32) -> String {
        let shared = |link: &Link| self.users.has(*link, tenant) && self.users.has(*link, other);
        let links = || (0..2 * self.shape.ends.len() as Link).filter(shared);
        let wish = match isolation {
            Isolation::Phy => "links",
            _ => "lanes",
        };
        let name = |tenant: u32| &self.tenants.list[tenant as usize].name;
        let place = |link: &Link| {
            let cable = (link / 2) as usize;
            (self.tree.tuples[self.shape.ends[cable].0 as usize], self.tree.cables[cable].lower, link % 2)
        };
        let first = links().min_by_key(place).map(|link| self.link_name(link)).unwrap_or_default();
        format!(
            "partition {} is to have {wish} of its own but shares those of {} links with {}, {first} first",
            name(tenant),
            links().count(),
            name(other),
        )
    }

    fn link_name(&self, link: Link) -> String {
        let cable = &self.tree.cables[(link / 2) as usize];
        let (lower, upper) = self.shape.ends[(link / 2) as usize];
        let name = |at: u32, port| self.fabric.port_name(PortRef::new(self.tree.node(at), port)).to_string();
        let (lower, upper) = (name(lower, cable.lower), name(upper, cable.upper));
        if link.is_multiple_of(2) { format!("{upper} -> {lower}") } else { format!("{lower} -> {upper}") }
    }
}
