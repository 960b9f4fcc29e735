//! The forwarding tables: a tree of its own for every LID, as far as the lanes allow.

use weft_wire::{Lid, PortNum};

use crate::bits::ones;
use crate::input::Input;
use crate::sorted;
use crate::tables::{ForwardingTable, Routes};

use super::layers::{Layers, NO_LANE};
use super::links::{Hops, Links};
use super::plan::Plan;
use super::trees::Trees;

/// One (host, LID) pair in a load; divided by the cables of a link.
const ONE: u64 = 1 << 16;

/// Spreads LIDs over shortest paths. The packets of each pair of switches have a lane already, so a link may follow
/// another where its rank is higher on the lanes of all pairs that come by there.
pub(super) struct Balance<'a> {
    links: &'a Links,
    hops: &'a Hops,
    trees: &'a Trees,
    layers: &'a Layers,
    freedom: Freedom,
    /// By link, how many (host, LID) pairs use each of its cables, times [`ONE`].
    load: Vec<u64>,
    /// By link, what each of its ports carries: (host, LID) pairs, and LIDs.
    port_loads: Vec<Vec<(u64, u32)>>,
    tables: Vec<ForwardingTable>,
    /// By switch, of one destination: the lanes of the pairs that come by, if all take the tree of the lanes.
    needs: Vec<u16>,
    /// By switch and lane, of one destination: the highest rank of the links by which those pairs come in, and one
    /// more, so that 0 is none.
    entry: Vec<u32>,
    /// By switch, of one destination: the links that can follow all entries, on all lanes needed.
    choices: Vec<Vec<u32>>,
    /// By switch, of one LID: the link chosen, the lanes that the path from here keeps to, and its load.
    chosen: Vec<Chosen>,
    /// By switch, of one LID: how many hosts send by it.
    senders: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Chosen {
    link: u32,
    lanes: u16,
    load: u64,
}

/// Which trees LIDs may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freedom {
    /// All that the lanes allow.
    Any,
    /// The tree from which the lanes were made.
    None,
}

impl<'a> Balance<'a> {
    pub(super) fn new(links: &'a Links, hops: &'a Hops, plan: &'a Plan, freedom: Freedom, top: Lid) -> Self {
        let Plan { trees, layers } = plan;
        let width = links.len();
        Self {
            links,
            hops,
            trees,
            layers,
            freedom,
            load: vec![0; links.count()],
            port_loads: (0..links.count() as u32).map(|link| vec![(0, 0); links.ports(link).len()]).collect(),
            tables: vec![ForwardingTable::new(top); width],
            needs: vec![0; width],
            entry: vec![0; width * usize::from(layers.count())],
            choices: vec![Vec::new(); width],
            chosen: vec![Chosen::default(); width],
            senders: vec![0; width],
        }
    }

    /// Routes all LIDs, switch by switch. Also how uneven the load is: the sum of its squares over all cables.
    pub(super) fn route(mut self, input: &Input<'_>) -> (Routes, u128) {
        let Input { fabric, lids, .. } = input;
        let mut on: Vec<Vec<(Lid, PortNum)>> = vec![Vec::new(); self.links.len()];
        for port_lids in lids.iter() {
            if let Some((switch, port)) = self.links.graph.attachment(fabric, port_lids.port) {
                on[switch as usize].extend(port_lids.iter().map(|lid| (lid, port)));
            }
        }
        for (to, lids) in (0..).zip(&mut on) {
            // The switch's own, which only managers use, last.
            sorted::by_key(lids, |(_, port)| *port == PortNum::ZERO);
            self.turn_to(to);
            for (lid, port) in lids {
                self.tables[to as usize].set(*lid, *port);
                self.choose(to);
                self.settle(to, *lid, *port != PortNum::ZERO);
            }
        }
        let routes = Routes { tables: self.links.graph.by_node(self.tables) };
        let squares = (0..).zip(&self.load).map(|(link, load)| {
            let cables = self.links.ports(link).len() as u128;
            cables * u128::from(*load).pow(2)
        });
        (routes, squares.sum())
    }

    /// Finds out what all paths to a switch may be. The tree of the lanes is always among them: whatever is chosen
    /// further on follows all links by which that tree comes in.
    fn turn_to(&mut self, to: u32) {
        let lanes = usize::from(self.layers.count());
        self.needs.fill(0);
        self.entry.fill(0);
        for at in self.hops.outwards(to).skip(1).rev() {
            let lane = self.layers.of(at, to);
            if lane != NO_LANE {
                self.needs[at as usize] |= 1 << lane;
            }
            let needs = self.needs[at as usize];
            let Some(link) = self.trees.next(self.links, at, to) else { continue };
            let next = self.links.to(link) as usize;
            self.needs[next] |= needs;
            for lane in ones(needs) {
                let rank = self.layers.ranks[lane][link as usize] + 1;
                let entry = &mut self.entry[next * lanes + lane];
                *entry = rank.max(*entry);
            }
        }
        let row = self.hops.row(to);
        for at in self.hops.outwards(to).skip(1) {
            let needs = self.needs[at as usize];
            let entry = &self.entry[at as usize * lanes..];
            let follows =
                |link: u32| ones(needs).all(|lane| entry[lane] < self.layers.ranks[lane][link as usize] + 1);
            let closer = |link: u32| row[self.links.to(link) as usize] < row[at as usize];
            let kept = &mut self.choices[at as usize];
            kept.clear();
            match self.freedom {
                Freedom::Any => {
                    kept.extend(self.links.row(at).filter(|link| closer(*link) && follows(*link)));
                }
                Freedom::None => kept.extend(self.trees.next(self.links, at, to)),
            }
        }
    }

    /// Chooses a tree for one LID: at each switch the link with the least load from there on.
    fn choose(&mut self, to: u32) {
        let all = ((1u32 << self.layers.count()) - 1) as u16;
        self.chosen[to as usize] = Chosen { link: u32::MAX, lanes: all, load: 0 };
        for at in self.hops.outwards(to).skip(1) {
            let needs = self.needs[at as usize];
            let mut best: Option<Chosen> = None;
            for link in self.choices[at as usize].iter().copied() {
                let next = self.chosen[self.links.to(link) as usize];
                let load = next.load + self.load[link as usize];
                if best.is_some_and(|best| best.load <= load) {
                    continue;
                }
                let lanes = ones(next.lanes).filter(|lane| {
                    let ranks = &self.layers.ranks[*lane];
                    next.link == u32::MAX || ranks[link as usize] < ranks[next.link as usize]
                });
                let lanes = lanes.fold(0, |lanes, lane| lanes | 1 << lane);
                if needs & !lanes == 0 {
                    best = Some(Chosen { link, lanes, load });
                }
            }
            self.chosen[at as usize] = best.expect("the link of the tree of the lanes fits");
        }
    }

    /// Writes the tree chosen for a LID into the tables, and adds the load of a host's LID to its links.
    fn settle(&mut self, to: u32, lid: Lid, of_host: bool) {
        self.senders.fill(0);
        for at in self.hops.outwards(to).skip(1).rev() {
            let link = self.chosen[at as usize].link;
            let ports = self.links.ports(link);
            if of_host {
                self.senders[at as usize] += u64::from(self.links.hosts[at as usize]);
            }
            let senders = self.senders[at as usize];
            let loads = &mut self.port_loads[link as usize];
            // Only what hosts send by here counts: other LIDs may come in any rhythm.
            let load = |(pairs, lids): (u64, u32)| (if senders > 0 { pairs } else { 0 }, lids);
            let place = (0..loads.len()).min_by_key(|place| load(loads[*place])).unwrap_or(0);
            loads[place].0 += senders;
            loads[place].1 += 1;
            self.tables[at as usize].set(lid, ports[place]);
            if of_host {
                self.load[link as usize] += senders * ONE / ports.len() as u64;
                self.senders[self.links.to(link) as usize] += senders;
            }
        }
    }
}
