//! Rows of the meantime: where a new row would turn packets of the old way round and so close a circle, the switch sends them another way
//! first, or drops them where there is none.
//!
//! ```text
//! plan ─▶ proof ─▶ a circle ─▶ the turn that the plan adds to it ─▶ another row there ─▶ plan …
//!           └─▶ none: done                                  └─▶ none is left: no plan
//! ```
//!
//! A vSwitch has one uplink: where its turn closes a circle no row helps, and it drops packets until none come that it would turn round.

use std::collections::BTreeMap;

use weft_wire::{Lid, PortNum};

use super::change::{Change, Rows};
use super::kept::Kept;
use super::request::LatePolicy;
use super::waits::Wait;
use crate::sorted;
use crate::verify::ground::{ARRIVES, is_channel};

/// A row: of this LID, in this switch's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowAt {
    pub(super) lid: Lid,
    pub(super) switch: u32,
}

/// The port of each row in the meantime; 255 drops.
pub(super) type Meantime = BTreeMap<RowAt, PortNum>;

/// A search for rows of the meantime by which a plan is safe.
#[derive(Debug)]
pub(super) struct Search<'a> {
    kept: &'a Kept,
    policy: LatePolicy,
    /// The LIDs that packets go to, and their rows once all is written.
    rows: Vec<(Change, Rows)>,
    /// What is tried.
    pub(super) meantime: Meantime,
    /// What has not been tried, the next one last.
    left: BTreeMap<RowAt, Vec<PortNum>>,
    last: Option<RowAt>,
}

impl<'a> Search<'a> {
    pub(super) fn new(kept: &'a Kept, rows: Vec<(Change, Rows)>, policy: LatePolicy) -> Self {
        Self { kept, policy, rows, meantime: Meantime::new(), left: BTreeMap::new(), last: None }
    }

    /// Has the switches that would be written last drop packets first.
    pub(super) fn drop_at_the_last(&mut self) {
        for (change, rows) in &self.rows {
            let rounds = rows.rounds(&self.kept.network);
            let last = rows.written().map(|switch| rounds[switch as usize]).max();
            let at_last = rows.written().filter(|switch| Some(rounds[*switch as usize]) == last);
            self.meantime.extend(at_last.map(|switch| (RowAt { lid: change.lid, switch }, PortNum::NONE)));
        }
    }

    /// Goes on to the next row to be tried; false if there is none that could help. Without a circle it is what was tried last that
    /// does not do.
    pub(super) fn advance(&mut self, circle: Option<&(u8, Vec<u32>)>) -> bool {
        let key = match circle {
            Some((lane, channels)) => self.culprit(*lane, channels),
            None => self.last,
        };
        let Some(key) = key else { return false };
        self.last = Some(key);
        if !self.left.contains_key(&key) {
            let all = self.candidates(key);
            self.left.insert(key, all);
        }
        while let Some(port) = self.left.get_mut(&key).and_then(Vec::pop) {
            if port == PortNum::NONE || self.length(key, port).is_some() {
                self.meantime.insert(key, port);
                return true;
            }
        }
        false
    }

    /// The same with another row in the place of one that drops: what was tried there before may be safe with the rows that others have now.
    pub(super) fn others(&self) -> impl Iterator<Item = Meantime> {
        let drops = self.meantime.iter().filter(|(_, port)| **port == PortNum::NONE);
        drops.flat_map(|(key, _)| {
            let mut without = self.meantime.clone();
            without.remove(key);
            let with = |port: PortNum| {
                let mut meantime = self.meantime.clone();
                meantime.insert(*key, port);
                meantime
            };
            let rows = self.candidates(*key).into_iter().rev().filter(|port| *port != PortNum::NONE);
            std::iter::once(without).chain(rows.map(with).collect::<Vec<_>>())
        })
    }

    /// The switch whose new row makes packets wait as no others do in a circle.
    fn culprit(&self, lane: u8, channels: &[u32]) -> Option<RowAt> {
        let network = &self.kept.network;
        let next = channels.iter().cycle().skip(1);
        let pairs = channels.iter().zip(next).map(|(held, wanted)| (*held, *wanted));
        let new: Vec<(u32, u32)> = pairs
            .filter(|(held, wanted)| {
                !self.kept.waits.has(network, Wait { lane, held: *held, wanted: *wanted })
            })
            .collect();
        let mut turns = Vec::new();
        for (change, rows) in &self.rows {
            let is_by = |switch: u32, exit: u32| {
                rows.port(switch).is_some() && self.exit(change, rows, switch) == exit
            };
            for (held, wanted) in &new {
                let (at, before) = (network.to[*held as usize], network.from[*held as usize].0);
                turns.extend(is_by(at, *wanted).then_some((false, network.is_virtual(at), change.lid, at)));
                let earlier =
                    is_by(before, *held).then_some((true, network.is_virtual(before), change.lid, before));
                turns.extend(earlier);
            }
        }
        sorted::by_key(&mut turns, |item| *item);
        turns.first().map(|(_, _, lid, switch)| RowAt { lid: *lid, switch: *switch })
    }

    /// Where a switch sends packets in the meantime.
    fn exit(&self, change: &Change, rows: &Rows, switch: u32) -> u32 {
        match self.meantime.get(&RowAt { lid: change.lid, switch }) {
            Some(port) => self.kept.network.exit(switch, *port, &[change.after]),
            None => rows.exit(switch),
        }
    }

    /// The ports by which a switch may send packets in the meantime: the shortest way last, and to drop them first of all.
    fn candidates(&self, row: RowAt) -> Vec<PortNum> {
        let network = &self.kept.network;
        let mut all = vec![PortNum::NONE];
        if self.policy != LatePolicy::Detour {
            return all;
        }
        let ways = network.graph.ways(row.switch).iter().filter(|way| !network.is_virtual(way.to));
        let mut ports: Vec<(u32, PortNum)> =
            ways.filter_map(|way| Some((self.length(row, way.port)?, way.port))).collect();
        sorted::by_key(&mut ports, |item| *item);
        all.extend(ports.into_iter().rev().map(|(_, port)| port));
        all
    }

    /// How many switches packets pass from a port of a switch to the new place, if they come there.
    fn length(&self, row: RowAt, port: PortNum) -> Option<u32> {
        let RowAt { lid, switch } = row;
        let network = &self.kept.network;
        let (change, rows) = self.rows.iter().find(|(change, _)| change.lid == lid)?;
        let after = change.after?;
        let mut exit = network.exit(switch, port, &[change.after]);
        for length in 1..=network.len() as u32 {
            if !is_channel(exit) {
                return None;
            }
            let at = network.to[exit as usize];
            if at == switch {
                return None;
            }
            exit = self.exit(change, rows, at);
            if exit == ARRIVES && at == after.switch {
                return Some(length);
            }
        }
        None
    }
}
