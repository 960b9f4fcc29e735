//! The LIDs to route, in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use weft_wire::{Guid, Lid, PortNum};

use crate::input::Input;
use crate::sorted;
use crate::tree::{End, EndKind, Tree};

/// One LID that is to be routed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LidTarget {
    /// The LID.
    pub(crate) lid: Lid,
    /// The switch that delivers it.
    pub(crate) at: u32,
    /// The port by which it does.
    pub(crate) exit: PortNum,
    /// How much traffic it receives.
    pub(crate) weight: u32,
    /// The target before this one that belongs to the same end port and whose path this one is to avoid.
    pub(crate) earlier: Option<u32>,
}

/// Targets in the order in which they are routed, and where counting begins again.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) targets: Vec<LidTarget>,
    /// The places in `targets` before which all counters go back to 0.
    pub(crate) resets: Vec<usize>,
}

impl Plan {
    /// Hosts in the order of their leaves' tuples and by port; those that the operator names come first, then compute
    /// nodes, I/O nodes and others; switches are last. The first LIDs of all hosts come before the second ones, so
    /// that each set of LIDs is spread like a fabric of its own. Also returned: what is odd about the operator's order.
    pub(crate) fn in_order(input: &Input<'_>, tree: &Tree) -> (Self, Vec<String>) {
        let (named, notes) = Named::new(input, tree);
        let mut hosts: Vec<&End> = tree.ends.iter().filter(|end| end.kind.is_host()).collect();
        sorted::by_key(&mut hosts, |end| {
            (named.place(input, end), end.kind, tree.tuples[end.at as usize], end.exit)
        });
        let mut plan = Self::default();
        plan.add(&hosts, |end| &end.lids);
        plan.add_switches(tree);
        (plan, notes)
    }

    /// Appends LIDs of end ports: the first ones of all of them, then the second ones, and so on. Each LID of an end
    /// port avoids the paths of those before it.
    pub(crate) fn add<'e>(&mut self, ends: &[&'e End], lids: impl Fn(&'e End) -> &'e [Lid]) {
        let mut earlier: Vec<Option<u32>> = vec![None; ends.len()];
        let most = ends.iter().map(|end| lids(end).len()).max().unwrap_or(0);
        for pass in 0..most {
            for (end, earlier) in ends.iter().zip(&mut earlier) {
                if let Some(lid) = lids(end).get(pass) {
                    let place = self.targets.len() as u32;
                    self.add_one(end, *lid, 1, *earlier);
                    *earlier = Some(place);
                }
            }
        }
    }

    /// Appends one LID of an end port.
    pub(crate) fn add_one(&mut self, end: &End, lid: Lid, weight: u32, earlier: Option<u32>) {
        self.targets.push(LidTarget { lid, at: end.at, exit: end.exit, weight, earlier });
    }

    /// Appends the LIDs of the switches and of the nodes that serve management alone, in the order of the switches'
    /// tuples.
    pub(crate) fn add_switches(&mut self, tree: &Tree) {
        let mut switches: Vec<&End> = tree.ends.iter().filter(|end| !end.kind.is_host()).collect();
        sorted::by_key(&mut switches, |end| (tree.tuples[end.at as usize], end.exit));
        self.add(&switches, |end| &end.lids);
    }

    /// Lets counting begin again for what is added from now on.
    pub(crate) fn reset(&mut self) {
        self.resets.push(self.targets.len());
    }

    /// The runs of neighbouring targets that one switch delivers, as ranges of places. No run goes on where counting
    /// begins again.
    pub(crate) fn runs(&self) -> Vec<(u32, Range<usize>)> {
        let mut runs: Vec<(u32, Range<usize>)> = Vec::new();
        for (place, target) in self.targets.iter().enumerate() {
            match runs.last_mut() {
                Some((at, range)) if *at == target.at && !self.resets.contains(&place) => {
                    range.end = place + 1;
                }
                _ => runs.push((target.at, place..place + 1)),
            }
        }
        runs
    }
}

/// The ports that the operator wants to be routed first.
pub(crate) struct Named(BTreeMap<Guid, usize>);

impl Named {
    /// Also returned: what is odd about the order.
    pub(crate) fn new(input: &Input<'_>, tree: &Tree) -> (Self, Vec<String>) {
        let order = &input.options.order;
        if order.is_empty() {
            return (Self(BTreeMap::new()), Vec::new());
        }
        let mut places = BTreeMap::new();
        for (place, guid) in order.iter().enumerate() {
            places.entry(*guid).or_insert(place);
        }
        let known: BTreeSet<Guid> = tree
            .ends
            .iter()
            .filter(|end| end.kind != EndKind::Switch)
            .flat_map(|end| [end.guid, input.fabric.node(end.port.node).guid])
            .collect();
        let unknown = places.keys().filter(|guid| !known.contains(guid));
        let notes = unknown.map(|guid| format!("the order names {guid}, which is no host of this fabric"));
        let notes = notes.collect();
        (Self(places), notes)
    }

    /// Its place in the operator's order, which may name the port or the node.
    pub(crate) fn place(&self, input: &Input<'_>, end: &End) -> usize {
        if self.0.is_empty() {
            return usize::MAX;
        }
        let node = input.fabric.node(end.port.node).guid;
        let of = |guid| self.0.get(&guid).copied().unwrap_or(usize::MAX);
        of(end.guid).min(of(node))
    }
}
