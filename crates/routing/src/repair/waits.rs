//! Waits between channels, and an order in which none waits for one before it.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::order::DynamicOrder;
use crate::sorted;
use crate::verify::dependencies::{Dependencies, Edges};
use crate::verify::flow::Sink;
use crate::verify::ground::Ground;

/// How many channels are searched at most between two proofs.
const STEPS_MAX: u64 = 1 << 18;

/// What is known of channels that wait for each other, where no packet changes lanes. What paths that are no more had to
/// wait for stays until all is proved again.
#[derive(Debug)]
pub(super) struct Waits {
    edges: Edges,
    /// By lane: each channel comes before those that its packets want. Empty where that is not so to begin with.
    orders: Vec<DynamicOrder>,
    /// What closes a circle, by channel held, channel wanted, and lane.
    refused: BTreeSet<(u32, u32, usize)>,
}

/// The same on its fabric, being added to.
#[derive(Debug)]
pub(super) struct Admission<'a> {
    dependencies: Dependencies<'a>,
    orders: Vec<DynamicOrder>,
    refused: BTreeSet<(u32, u32, usize)>,
}

impl Waits {
    /// Those that were found, and whether there is no circle.
    pub(super) fn new(dependencies: Dependencies<'_>) -> (Self, bool) {
        let orders = orders(&dependencies);
        let is_free = orders.is_some();
        let (edges, orders) = (dependencies.into_edges(), orders.unwrap_or_default());
        (Self { edges, orders, refused: BTreeSet::new() }, is_free)
    }

    /// Takes them to a fabric; [`Admission::end`] brings them back.
    pub(super) fn on<'a>(&mut self, ground: &'a Ground<'a>) -> Admission<'a> {
        Admission {
            dependencies: Dependencies::on(ground, std::mem::take(&mut self.edges)),
            orders: std::mem::take(&mut self.orders),
            refused: std::mem::take(&mut self.refused),
        }
    }
}

impl<'a> Admission<'a> {
    pub(super) fn end(self) -> Waits {
        Waits { edges: self.dependencies.into_edges(), orders: self.orders, refused: self.refused }
    }

    pub(super) fn dependencies(&self) -> &Dependencies<'a> {
        &self.dependencies
    }

    /// Whether so much has been searched for circles that routing everything again is quicker.
    pub(super) fn is_exhausted(&self) -> bool {
        self.orders.iter().map(DynamicOrder::steps).sum::<u64>() > STEPS_MAX
    }

    /// Whether channels of any lane wait for each other in a circle. Where none do, what is admitted next begins from there.
    pub(super) fn has_circle(&mut self) -> bool {
        let orders = orders(&self.dependencies);
        let has_circle = orders.is_none();
        self.orders = orders.unwrap_or_default();
        has_circle
    }

    /// Whether packets on each of these lanes may hold `held` and want `wanted` already.
    pub(super) fn has(&self, held: u32, wanted: u32, lanes: u16) -> bool {
        (0..16).filter(|lane| lanes & 1 << lane != 0).all(|lane| self.dependencies.has(held, wanted, lane))
    }

    /// Lets packets on some lanes hold `held` and want `wanted`, if that closes no circle. Where there is one already, anything
    /// goes.
    pub(super) fn admit(&mut self, held: u32, wanted: u32, lanes: u16) -> bool {
        let Self { dependencies, orders, refused } = self;
        for (lane, order) in orders.iter_mut().enumerate().filter(|(lane, _)| lanes & 1 << lane != 0) {
            if dependencies.has(held, wanted, lane) {
                continue;
            }
            if refused.contains(&(held, wanted, lane)) {
                return false;
            }
            let ground = dependencies.ground;
            // What leads to the switch that a channel leaves.
            let before = |channel: u32| {
                let (switch, _) = ground.from[channel as usize];
                let back = move |way: usize| {
                    let entry = ground.entry[way];
                    ground.channel(ground.to[way], entry)
                };
                ground.graph.row(switch).filter_map(back)
            };
            let admitted = order.admit(
                held,
                wanted,
                |channel| dependencies.wanted(channel, lane),
                before,
                |first, second| dependencies.has(first, second, lane),
            );
            if !admitted {
                refused.insert((held, wanted, lane));
                return false;
            }
            (&mut &*dependencies).depend(held, 1 << lane, wanted, 1 << lane);
        }
        true
    }
}

/// For every lane an order in which each channel comes before those that its packets want; `None` where there is none.
fn orders(dependencies: &Dependencies<'_>) -> Option<Vec<DynamicOrder>> {
    let lanes = 0..dependencies.used().last().map_or(1, |lane| lane + 1);
    let order = |lane: usize| Some(DynamicOrder::new(sorted::places(&dependencies.in_order(lane)?)));
    let orders: Vec<Option<DynamicOrder>> = lanes.into_par_iter().map(order).collect();
    orders.into_iter().collect()
}
