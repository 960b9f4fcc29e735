//! Orders of switches from which paths that first go up and then down are free of cycles.

use super::links::{Hops, Links};

use crate::sorted;

/// What a path is under each of some orders, two bits an order, those of the first order highest: 2 where the path
/// only goes down, 1 where it first goes up and then down, 0 where it is bent: up again after down. So the greater of
/// two keeps better to the first order, or as well to it and better to the second, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shapes(u32);

/// The lower bit of every order.
const LOWER: u32 = 0x5555_5555;

impl Shapes {
    /// Bent under all orders.
    pub(super) const BENT: Self = Self(0);

    /// The shapes of a path that begins with a link and goes on like this.
    pub(super) fn after(self, up: Up) -> Self {
        let down = self.0 >> 1 & LOWER;
        Self((down | self.0) & up.0 | (down & !up.0) << 1)
    }
}

/// Under which of some orders a link leads up: the lower bits of those in [`Shapes`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Up(u32);

/// Some orders, seen from the links.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    count: u32,
    /// By link.
    up: Vec<Up>,
}

impl Orders {
    /// None.
    pub(super) fn none(links: &Links) -> Self {
        Self { count: 0, up: vec![Up::default(); links.count()] }
    }

    /// These, and one more after them. There may be 15 in all.
    pub(super) fn and(&self, order: &Order) -> Self {
        let lower = 1 << (2 * (15 - self.count));
        let with = |(up, is_up): (&Up, &bool)| Up(up.0 | if *is_up { lower } else { 0 });
        Self { count: self.count + 1, up: self.up.iter().zip(&order.up).map(with).collect() }
    }

    /// Under which a link leads up.
    pub(super) fn up(&self, link: u32) -> Up {
        self.up[link as usize]
    }

    /// The shapes of a path without links.
    pub(super) fn down(&self) -> Shapes {
        Shapes((0..self.count).fold(0, |shapes, order| shapes | 2 << (2 * (15 - order))))
    }
}

/// All switches from the top to the bottom. Every link leads up or down.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// By switch; the top is 0.
    position: Vec<u32>,
    /// By link.
    up: Vec<bool>,
}

impl Order {
    fn new(links: &Links, mut top_down: Vec<u32>, level: &[u32]) -> Self {
        sorted::by_key(&mut top_down, |switch| level[*switch as usize]);
        let position = sorted::places(&top_down);
        let mut up = Vec::with_capacity(links.count());
        for from in 0..links.len() as u32 {
            up.extend(
                links.row(from).map(|link| position[links.to(link) as usize] < position[from as usize]),
            );
        }
        Self { position, up }
    }

    /// The further from the hosts, the higher, as in trees; `None` where all switches have hosts.
    pub(super) fn of_tree(links: &Links, hops: &Hops) -> Option<Self> {
        let from_hosts = |switch: u32| {
            let nearest = hops.outwards(switch).find(|other| links.hosts[*other as usize] > 0);
            nearest.map_or(0, |nearest| u32::from(hops.row(switch)[nearest as usize]))
        };
        let levels: Vec<u32> = (0..links.len() as u32).map(from_hosts).collect();
        let highest = levels.iter().copied().max().filter(|highest| *highest > 0)?;
        let depth: Vec<u32> = levels.iter().map(|level| highest - level).collect();
        Some(Self::new(links, (0..links.len() as u32).collect(), &depth))
    }

    /// The nearer to a root, the higher; each piece of the fabric has one root.
    pub(super) fn from_roots(links: &Links, hops: &Hops, roots: &[u32]) -> Self {
        let mut depth = vec![0; links.len()];
        for root in roots {
            for switch in hops.outwards(*root) {
                depth[switch as usize] = u32::from(hops.row(*root)[switch as usize]);
            }
        }
        Self::new(links, (0..links.len() as u32).collect(), &depth)
    }

    /// All links so that paths which first go up and then down pass them from the first to the last.
    pub(super) fn links(&self, links: &Links) -> Vec<u32> {
        let mut all: Vec<(bool, u32, u32)> = Vec::with_capacity(links.count());
        let bottom = links.len() as u32;
        for from in 0..bottom {
            for link in links.row(from) {
                let (at, to) = (self.position[from as usize], self.position[links.to(link) as usize]);
                // Up from the bottom first, then down from the top.
                all.push(if self.up[link as usize] { (false, bottom - at, link) } else { (true, to, link) });
            }
        }
        all.sort_unstable();
        all.into_iter().map(|(.., link)| link).collect()
    }
}

/// Which roots to try: in each, one of every piece of the fabric. All where there are not more than `most`, else half
/// of them from the middle of the fabric and the others from all over it.
pub(super) fn roots(links: &Links, hops: &Hops, most: usize) -> Vec<Vec<u32>> {
    let mut pieces: Vec<Vec<u32>> = Vec::new();
    let mut seen = vec![false; links.len()];
    for switch in 0..links.len() as u32 {
        if !seen[switch as usize] {
            let mut piece: Vec<u32> = hops.outwards(switch).collect();
            piece.iter().for_each(|switch| seen[*switch as usize] = true);
            sorted::by_key(&mut piece, |from| {
                let sum: u64 = hops.outwards(*from).map(|to| u64::from(hops.row(*from)[to as usize])).sum();
                (sum, *from)
            });
            pieces.push(choose(&piece, most.max(2)));
        }
    }
    let tries = pieces.iter().map(Vec::len).max().unwrap_or(0);
    let of = |number: usize| pieces.iter().filter_map(move |piece| piece.get(number % piece.len())).copied();
    (0..tries).map(|number| of(number).collect()).collect()
}

fn choose(piece: &[u32], most: usize) -> Vec<u32> {
    if piece.len() <= most {
        return piece.to_vec();
    }
    let middle = most / 2;
    let (rest, others) = (&piece[middle..], most - middle);
    let spread = (0..others).map(|number| rest[number * rest.len() / others]);
    piece[..middle].iter().copied().chain(spread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_all_orders_change_at_once() {
        let (bent, up_down, down) = (0, 1, 2);
        let cases = [(bent, bent, bent), (up_down, up_down, bent), (down, up_down, down)];
        for first in cases {
            for second in cases {
                let shapes = |first: u32, second: u32| Shapes(first << 30 | second << 28);
                let onwards = shapes(first.0, second.0);
                assert_eq!(onwards.after(Up(1 << 30 | 1 << 28)), shapes(first.1, second.1));
                assert_eq!(onwards.after(Up(1 << 30)), shapes(first.1, second.2));
                assert_eq!(onwards.after(Up(1 << 28)), shapes(first.2, second.1));
                assert_eq!(onwards.after(Up(0)), shapes(first.2, second.2));
            }
        }
    }
}
