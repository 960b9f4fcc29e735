//! Choice of the cable down to a destination, and of the one up among parallel cables.

use std::cmp::Reverse;

use weft_wire::{Guid, PortNum};

use super::kept::Kept;
use super::tenants::Tenants;
use super::traffic::{Marks, Users};
use crate::partitions::Isolation;
use crate::tree::reach::{Link, Shape};
use crate::tree::{Group, Tree};

/// All of the isolation's share in the combined objective, in thousandths.
pub(super) const SHARE_ALL: u32 = 1000;

/// What decides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Objective {
    /// Whether the policies of partitions count.
    pub(super) policies: bool,
    /// How much the isolation counts, in thousandths; the rest is the weights' share (Zahid 2016, equation 2).
    pub(super) share: u32,
    /// Whether a cable down is chosen by algorithm 3 as it is printed, which may find none.
    pub(super) literal: bool,
    /// Whether that leaves the others a switch.
    pub(super) leave_one: bool,
}

/// Algorithm 3 as printed has no port for a destination: all switches above are marked with stricter partitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoPort;

/// What has been routed so far.
#[derive(Debug)]
pub(super) struct State {
    /// By link: how many LIDs are routed over it, downwards only those whose main path it is part of.
    pub(super) count: Vec<u64>,
    /// By link: their weights together.
    pub(super) weight: Vec<u64>,
    pub(super) marks: Marks,
    pub(super) users: Users,
    /// By place of ways that are kept: how many LIDs are routed by them, with their weights, that their links up do not count yet.
    pub(super) owed: Vec<(u64, u64)>,
}

impl State {
    /// Counts a LID that is routed over a link.
    pub(super) fn add(&mut self, link: Link, weight: u64) {
        self.count[link as usize] += 1;
        self.weight[link as usize] += weight;
    }

    /// Counts a LID that is routed by ways that are kept, when someone wants to know.
    pub(super) fn owe(&mut self, place: u32, weight: u64) {
        if self.owed.len() <= place as usize {
            self.owed.resize(place as usize + 1, (0, 0));
        }
        let (count, weights) = &mut self.owed[place as usize];
        *count += 1;
        *weights += weight;
    }

    /// Counts all LIDs on the links up; before a choice between those.
    pub(super) fn settle(&mut self, kept: &Kept) {
        for (place, (count, weight)) in (0..).zip(self.owed.drain(..)).filter(|(_, (count, _))| *count > 0) {
            for link in kept.loaded(place) {
                self.count[link as usize] += count;
                self.weight[link as usize] += weight;
            }
        }
    }
}

/// How good a cable is for pFTree-Ext, the smaller the better: how many of the partition's switches are not below
/// it, how far it is from free of others, whether it opens a switch where that can be avoided, its load, and
/// whether and with how many nodes the switch above is marked with the partition.
type ExtRank = (usize, u8, u8, u64, Reverse<Option<u32>>);

/// How good a cable is for pFTree-Wt: its weight, and the mark.
type WtRank = (u64, Reverse<Option<u32>>);

/// A cable up from a switch. The highest GUID wins a tie.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    cable: usize,
    /// The switch that it leads up to, and how near that comes to a root.
    upper: u32,
    top: u32,
    ext: ExtRank,
    wt: WtRank,
    tie: Reverse<(Guid, PortNum)>,
}

/// Chooses by an objective.
#[derive(Debug)]
pub(super) struct Chooser<'a> {
    pub(super) tree: &'a Tree,
    pub(super) shape: &'a Shape,
    pub(super) tenants: &'a Tenants,
    pub(super) objective: Objective,
    /// By switch: its GUID.
    pub(super) guids: Vec<Guid>,
    /// By switch: how many LIDs a cable up carries down when all carry as many.
    fair: Vec<u64>,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(
        tree: &'a Tree,
        shape: &'a Shape,
        tenants: &'a Tenants,
        objective: Objective,
        guids: Vec<Guid>,
    ) -> Self {
        Self { tree, shape, tenants, objective, guids, fair: fair(tree, shape) }
    }

    /// The cable by which a destination is routed down to `at`, which is a switch on its main path, from the next
    /// (Zahid 2016, algorithm 3; section 7 for weights). `None` at a root.
    ///
    /// pFTree and pFTree-Ext take a cable with the fewest destinations, pFTree-Wt one with the least weight; among
    /// those, to a switch that is marked with the partition, by most of its nodes; among those the highest GUID.
    /// pFTree-Ext passes over switches that another partition reserves, where there are others: a partition with
    /// links of its own takes a switch that no one uses, and no more of them than its share, so that the others
    /// find some. It does otherwise where it has to keep to the letter: see [`Self::as_printed`].
    ///
    /// The combined objective gives every cable a rank in both orders and takes the least sum of the ranks by
    /// share.
    pub(super) fn down(&self, state: &State, at: u32, tenant: Option<u32>) -> Result<Option<usize>, NoPort> {
        let own = tenant.map(|tenant| (tenant, self.isolation(tenant)));
        let opens = own.is_none_or(|(own, isolation)| self.may_open(state, at, own, isolation));
        let mut candidates: Vec<Candidate> = Vec::new();
        for (_, group) in self.tree.up(at) {
            for (cable, ports) in self.tree.cables(group) {
                let mark = own.and_then(|(tenant, _)| state.marks.of(group.upper, tenant));
                let ext = self.ext_rank(state, at, group, cable, own, opens);
                candidates.push(Candidate {
                    cable,
                    upper: group.upper,
                    top: self.shape.top[group.upper as usize],
                    ext,
                    wt: (state.weight[2 * cable], Reverse(mark)),
                    tie: Reverse((self.guids[group.upper as usize], ports.upper)),
                });
            }
        }
        // A switch from which no root can be reached serves only what is below it.
        let Some(top) = candidates.iter().map(|candidate| candidate.top).min() else { return Ok(None) };
        candidates.retain(|candidate| candidate.top == top);
        if let Some((_, isolation)) = own.filter(|_| self.objective.literal) {
            if self.objective.leave_one && isolation == Isolation::Phy && !opens {
                keep_own(&mut candidates);
            }
            return self.as_printed(state, candidates, isolation).map(Some);
        }
        let best = match self.objective.share {
            SHARE_ALL => candidates.iter().min_by_key(|candidate| (candidate.ext, candidate.tie)),
            0 => candidates.iter().min_by_key(|candidate| (candidate.wt, candidate.tie)),
            share => {
                let ext_ranks = ranks(candidates.iter().map(|candidate| candidate.ext));
                let wt_ranks = ranks(candidates.iter().map(|candidate| candidate.wt));
                let sum = |candidate: &&Candidate| {
                    let ext = place(&ext_ranks, &candidate.ext) * u64::from(share);
                    let wt = place(&wt_ranks, &candidate.wt) * u64::from(SHARE_ALL - share);
                    (ext + wt, candidate.tie)
                };
                candidates.iter().min_by_key(sum)
            }
        };
        Ok(best.map(|candidate| candidate.cable))
    }

    /// Algorithm 3 as it is printed: among the cables with the least load one to a switch through which most nodes of the
    /// partition are routed down already; if there is none, the first of all cables, those with less load first, to a
    /// switch through which no node of a stricter partition is. It has no end where there is none either. So partitions
    /// with links of their own leave to others what they have no nodes for, be it nothing.
    fn as_printed(
        &self,
        state: &State,
        mut candidates: Vec<Candidate>,
        isolation: Isolation,
    ) -> Result<usize, NoPort> {
        let load = |candidate: &Candidate| state.count[2 * candidate.cable];
        candidates.sort_by_key(|candidate| (load(candidate), candidate.tie));
        let least = candidates.first().map(load);
        let marked = |candidate: &&Candidate| candidate.wt.1.0.is_some_and(|nodes| nodes > 0);
        let own = candidates.iter().take_while(|candidate| Some(load(candidate)) == least).filter(marked);
        let stricter = self.strict(isolation as usize);
        let is_free = |candidate: &&Candidate| !state.marks.routes_down(candidate.upper, stricter.clone());
        let best = own.min_by_key(|candidate| candidate.wt.1).or_else(|| candidates.iter().find(is_free));
        best.map(|candidate| candidate.cable).ok_or(NoPort)
    }

    pub(super) fn isolation(&self, tenant: u32) -> Isolation {
        match self.objective.policies {
            true => self.tenants.list[tenant as usize].isolation,
            false => Isolation::Def,
        }
    }

    fn ext_rank(
        &self,
        state: &State,
        at: u32,
        group: &Group,
        cable: usize,
        own: Option<(u32, Isolation)>,
        opens: bool,
    ) -> ExtRank {
        let upper = group.upper;
        let mark = own.and_then(|(tenant, _)| state.marks.of(upper, tenant));
        let load = state.count[2 * cable];
        if !self.objective.policies {
            return (0, 0, 0, load, Reverse(mark));
        }
        let levels = strict_levels(own);
        let tenant = own.map(|(tenant, _)| tenant);
        let reserved = match state.marks.foreign(upper, levels, own) {
            false => 0,
            true if !state.users.any_but(2 * cable as Link, self.strict(levels), tenant) => 1,
            true => 2,
        };
        let (mut missing, mut opening) = (0, 0);
        if let Some((tenant, isolation)) = own.filter(|(_, isolation)| *isolation != Isolation::Def) {
            if isolation == Isolation::Phy {
                missing = self.missing(upper, tenant);
            }
            let full = load >= self.fair[at as usize];
            opening = match (mark, full, opens) {
                (Some(_), false, _) => 0,
                (None, _, true) => 1,
                (Some(_), true, _) => 2,
                (None, _, false) => 3,
            };
        }
        (missing, reserved, opening, load, Reverse(mark))
    }

    /// The partitions of the `levels` strictest isolations: they have the lowest numbers.
    pub(super) fn strict(&self, levels: usize) -> std::ops::Range<u32> {
        let count = self.tenants.list.partition_point(|tenant| (tenant.isolation as usize) < levels);
        0..if self.objective.policies { count as u32 } else { 0 }
    }

    /// How many switches with members are not below a switch, nor below any that it can go up to.
    fn missing(&self, at: u32, tenant: u32) -> usize {
        if self.shape.covers_all[at as usize] {
            return 0;
        }
        let sites = &self.tenants.list[tenant as usize].sites;
        sites.iter().filter(|site| !self.shape.covers(at, site.switch)).count()
    }

    /// Whether a partition that is to be isolated may take one more of the switches above `at` that no one uses:
    /// one is left for each other partition with links of its own that has none there yet, and one for all the
    /// rest.
    fn may_open(&self, state: &State, at: u32, own: u32, isolation: Isolation) -> bool {
        if isolation == Isolation::Def {
            return true;
        }
        let uppers = || self.tree.up(at).map(|(_, group)| group.upper);
        let unmarked = uppers().filter(|upper| !state.marks.any(*upper)).count();
        let reserving = self.strict(1);
        let wide = |tenant: &u32| self.tenants.list[*tenant as usize].sites.len() > 1;
        let has_none = |tenant: &u32| uppers().all(|upper| state.marks.of(upper, *tenant).is_none());
        let others = reserving.clone().filter(|tenant| *tenant != own).filter(wide);
        let waiting = others.filter(has_none).take(unmarked).count();
        let rest = reserving.end..self.tenants.list.len() as u32;
        let rest_waits = rest.clone().any(|tenant| tenant != own && wide(&tenant))
            && !uppers().any(|upper| rest.clone().any(|tenant| state.marks.of(upper, tenant).is_some()));
        unmarked > waiting + usize::from(rest_waits)
    }

    /// The best of parallel links: one that no other partition reserves, with the least load, that carries the
    /// partition already; then the one with the fewest destinations, then the highest port. Where weights have a
    /// share, the load is the weight of the destinations, upwards too (Zahid 2016, section 7), otherwise their number.
    pub(super) fn parallel(
        &self,
        state: &State,
        links: impl Iterator<Item = Link>,
        own: Option<u32>,
    ) -> Option<Link> {
        let levels = strict_levels(own.map(|tenant| (tenant, self.isolation(tenant))));
        links.min_by_key(|link| {
            let count = state.count[*link as usize];
            let load = if self.objective.share == SHARE_ALL { count } else { state.weight[*link as usize] };
            let taken = state.users.any_but(*link, self.strict(levels), own);
            let carries = own.is_some_and(|own| state.users.has(*link, own));
            let tie = Reverse((self.guids[self.shape.to(*link) as usize], self.tree.port(*link)));
            (taken, load, !carries, count, tie)
        })
    }
}

/// Leaves switches alone through which no node of the partition is routed down, where there are others.
fn keep_own(candidates: &mut Vec<Candidate>) {
    let own = |candidate: &Candidate| candidate.wt.1.0.is_some_and(|nodes| nodes > 0);
    if candidates.iter().any(own) {
        candidates.retain(own);
    }
}

/// How many of the isolations keep others off: links of their own admit no one, and no one comes to those of
/// stricter partitions.
fn strict_levels(own: Option<(u32, Isolation)>) -> usize {
    match own {
        Some((_, Isolation::Phy)) => 3,
        Some((_, Isolation::Vlane)) => 1,
        Some((_, Isolation::Def)) | None => 2,
    }
}

/// The different values in order.
fn ranks<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn place<T: Ord>(ranks: &[T], value: &T) -> u64 {
    ranks.partition_point(|other| other < value) as u64
}

/// How many LIDs each switch's cables up carry down when every switch spreads evenly what is below it, rounded up.
fn fair(tree: &Tree, shape: &Shape) -> Vec<u64> {
    /// LIDs are counted in parts of this size.
    const ONE: u64 = 1 << 20;
    let mut below: Vec<u64> = vec![0; tree.graph.len()];
    for end in tree.ends.iter().filter(|end| end.kind.is_host()) {
        below[end.at as usize] += end.lids.len() as u64 * ONE;
    }
    let mut fair = vec![1; tree.graph.len()];
    for at in shape.from_roots.iter().rev() {
        let cables = shape.cables_up[*at as usize] as u64;
        let Some(each) = below[*at as usize].checked_div(cables) else { continue };
        // Fewer than a part of each cable is lost to rounding.
        fair[*at as usize] = each.saturating_sub(ONE / 1024).div_ceil(ONE).max(1);
        for (_, group) in tree.up(*at) {
            below[group.upper as usize] += each * tree.cables(group).count() as u64;
        }
    }
    fair
}
