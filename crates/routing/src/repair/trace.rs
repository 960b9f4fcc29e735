//! The proof for LIDs of which a few rows have changed: of all packets to them, only those that pass there are followed.

use rayon::prelude::*;
use weft_wire::Lid;

use super::{Row, Unrepaired};
use crate::bfs::BATCH;
use crate::tables::Routes;
use crate::verify::block::leads;
use crate::verify::dependencies::Dependencies;
use crate::verify::flow::Sink;
use crate::verify::ground::{ARRIVES, End, Ground, is_channel};
use crate::verify::rows::Bits;
use crate::verify::sources::{Part, Sent, Sources};

/// With more rows than these, all packets to a LID are followed at once: that is less work than one switch after the other.
const ROWS_MAX: usize = 4;

/// The same for the switches whose packets pass them.
const PASSERS_MAX: usize = 64;

/// A LID, and the switches whose rows for it have changed.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) end: End,
    switches: Vec<u32>,
}

impl Changed {
    /// By LID, in order.
    pub(super) fn of(ground: &Ground<'_>, rows: &[Row]) -> Vec<Self> {
        let number = |row: &Row| Some((row.lid, ground.graph.number(row.before.node)?));
        let mut rows: Vec<(Lid, u32)> = rows.iter().filter_map(number).collect();
        rows.sort_unstable();
        let of = |end: &End| {
            let from = rows.partition_point(|(lid, _)| *lid < end.lid);
            let switches = rows.get(from..)?.iter().take_while(|(lid, _)| *lid == end.lid);
            Some(Self { end: *end, switches: switches.map(|(_, switch)| *switch).collect() })
        };
        ground.ends.iter().filter_map(of).filter(|changed| !changed.switches.is_empty()).collect()
    }
}

/// What packets are followed by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracer<'a> {
    pub(super) ground: &'a Ground<'a>,
    pub(super) routes: &'a Routes,
    pub(super) sources: &'a Sources<'a>,
    /// The lane of every level.
    pub(super) bits: &'a Bits,
    pub(super) dependencies: &'a Dependencies<'a>,
}

impl Tracer<'_> {
    /// Follows what passes the rows that have changed. Gives the LIDs for which that is too much.
    pub(super) fn run(&self, changed: &[Changed]) -> Result<Vec<End>, Unrepaired> {
        let parts: Vec<Vec<End>> =
            changed.par_chunks(BATCH).map(|changed| self.run_few(changed)).collect::<Result<_, _>>()?;
        Ok(parts.concat())
    }

    fn run_few(&self, changed: &[Changed]) -> Result<Vec<End>, Unrepaired> {
        let parts: Vec<Part> = changed.iter().map(|changed| (changed.end, true)).collect();
        let (mut sent, mut left) = (Sent::default(), Vec::new());
        sent.find(self.ground, self.sources, self.bits, &parts);
        for (place, changed) in changed.iter().enumerate() {
            let Some(passers) = self.passers(changed) else {
                left.push(changed.end);
                continue;
            };
            let lanes = sent.lanes(place);
            let senders = passers.iter().map(|switch| (*switch, lanes[*switch as usize]));
            if !senders
                .filter(|(_, lanes)| *lanes != 0)
                .all(|(from, lanes)| self.arrives(&changed.end, from, lanes))
            {
                return Err(Unrepaired::Unsound);
            }
        }
        Ok(left)
    }

    /// The switches whose packets to a LID pass a row that has changed, if they are few.
    fn passers(&self, changed: &Changed) -> Option<Vec<u32>> {
        let mut passers = changed.switches.clone();
        if passers.len() > ROWS_MAX {
            return None;
        }
        let mut at = 0;
        while let Some(switch) = passers.get(at).copied() {
            for channel in self.ground.channels(switch) {
                let next = self.ground.to[channel as usize];
                let exit = self.exit(&changed.end, next);
                if is_channel(exit) && self.ground.to[exit as usize] == switch && !passers.contains(&next) {
                    passers.push(next);
                }
            }
            if passers.len() > PASSERS_MAX {
                return None;
            }
            at += 1;
        }
        Some(passers)
    }

    fn exit(&self, end: &End, switch: u32) -> u32 {
        let node = self.ground.graph.nodes[switch as usize];
        leads(self.ground.exits(switch), switch, end, self.routes.port(node, end.lid))
    }

    /// Whether packets of a switch's end ports arrive, and which channels they hold and want on their way.
    fn arrives(&self, end: &End, from: u32, lanes: u16) -> bool {
        let mut sink = self.dependencies;
        let mut held = self.exit(end, from);
        for _ in 0..self.ground.len() {
            if !is_channel(held) {
                break;
            }
            sink.carry(held, lanes);
            let wanted = self.exit(end, self.ground.to[held as usize]);
            if is_channel(wanted) {
                sink.depend(held, lanes, wanted, lanes);
            }
            held = wanted;
        }
        held == ARRIVES
    }
}
