//! The path of every switch to every other: for each destination a tree of shortest paths.

use rayon::prelude::*;

use super::links::{Hops, Links};
use super::order::{Orders, Shapes};

/// No link: the destination itself, or one that is not connected.
const NONE: u8 = u8::MAX;

/// How well paths keep to orders; the less, the better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fit {
    /// How many (switch, destination) pairs that count have a path that keeps to no order.
    pub(super) misses: usize,
    /// How many links can come next on such paths, negative.
    choices: isize,
}

impl Fit {
    fn plus(self, other: Self) -> Self {
        Self { misses: self.misses + other.misses, choices: self.choices + other.choices }
    }

    /// How well the trees of these orders keep to them.
    pub(super) fn of(links: &Links, hops: &Hops, orders: &Orders) -> Self {
        let of = |to| tree(links, hops, orders, to, &mut vec![NONE; links.len()]);
        (0..links.len() as u32).into_par_iter().map(of).reduce(Self::default, Self::plus)
    }
}

/// By destination and switch, the place of the link to take in the row of the switch.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    width: usize,
    next: Vec<u8>,
}

impl Trees {
    /// Trees that keep to orders: each switch takes the link after which its path goes up and then down by the
    /// first order, if there is one; among those, by the second, and so on; else the first.
    pub(super) fn by_orders(links: &Links, hops: &Hops, orders: &Orders) -> Self {
        let width = links.len();
        let mut next = vec![NONE; width * width];
        next.par_chunks_mut(width.max(1)).enumerate().for_each(|(to, next)| {
            tree(links, hops, orders, to as u32, next);
        });
        Self { width, next }
    }

    /// Trees as breadth-first searches from one switch after the other give them, neighbours in the order of ports:
    /// what an earlier search found stays.
    pub(super) fn by_search(links: &Links, hops: &Hops) -> Self {
        let width = links.len();
        let mut trees = Self { width, next: vec![NONE; width * width] };
        let mut found_by = vec![u32::MAX; width];
        for from in 0..width as u32 {
            found_by.fill(u32::MAX);
            let row = hops.row(from);
            // `outwards` is such a search, so the first neighbour that is nearer has found a switch.
            for at in hops.outwards(from) {
                for link in links.row(at) {
                    let to = links.to(link) as usize;
                    if row[to] > row[at as usize] && found_by[to] == u32::MAX {
                        found_by[to] = link;
                    }
                }
            }
            for to in hops.outwards(from) {
                let mut at = to;
                while at != from {
                    let link = found_by[at as usize];
                    at = links.to(links.reverse(link));
                    let next = &mut trees.next[to as usize * width + at as usize];
                    if *next == NONE {
                        *next = (link - links.row(at).start) as u8;
                    }
                }
            }
        }
        trees
    }

    /// The link that `at` takes to `to`; `None` at the destination and where nothing leads there.
    pub(super) fn next(&self, links: &Links, at: u32, to: u32) -> Option<u32> {
        match self.next[to as usize * self.width + at as usize] {
            NONE => None,
            place => Some(links.row(at).start + u32::from(place)),
        }
    }

    /// The links from `from` to `to`.
    pub(super) fn path<'a>(&'a self, links: &'a Links, from: u32, to: u32) -> impl Iterator<Item = u32> + 'a {
        let mut at = from;
        std::iter::from_fn(move || {
            let link = self.next(links, at, to)?;
            at = links.to(link);
            Some(link)
        })
    }
}

/// Makes the tree to one destination.
fn tree(links: &Links, hops: &Hops, orders: &Orders, to: u32, next: &mut [u8]) -> Fit {
    let row = hops.row(to);
    let mut shapes = vec![Shapes::BENT; links.len()];
    shapes[to as usize] = orders.down();
    let mut fit = Fit::default();
    for at in hops.outwards(to).skip(1) {
        let (mut best, mut place_of) = (Shapes::BENT, NONE);
        let counts = links.counts(at, to);
        for (place, link) in (0..NONE).zip(links.row(at)) {
            let neighbour = links.to(link) as usize;
            if row[neighbour] >= row[at as usize] {
                continue;
            }
            let found = shapes[neighbour].after(orders.up(link));
            fit.choices -= isize::from(found != Shapes::BENT && counts);
            if place_of == NONE || found > best {
                (best, place_of) = (found, place);
            }
        }
        fit.misses += usize::from(best == Shapes::BENT && counts);
        shapes[at as usize] = best;
        next[at as usize] = place_of;
    }
    fit
}
