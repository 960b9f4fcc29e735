//! The rows of one LID: which switches get a new one, and when.

use weft_wire::{Lid, PortNum};

use super::draft::Draft;
use super::kept::Kept;
use super::network::{Network, Seat};
use super::request::Method;
use crate::verify::ground::{ARRIVES, LOST, is_channel};

/// No hops lead there.
pub(super) const NEVER: u32 = u32::MAX;

/// A LID that changes its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) lid: Lid,
    pub(super) before: Option<Seat>,
    pub(super) after: Option<Seat>,
    pub(super) model: Model,
    /// Whether anybody sends there.
    pub(super) is_live: bool,
}

/// Whose rows lead to the new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// No one's: there is none, or rows stay as they are.
    Nothing,
    /// Those of a LID.
    All(Lid),
    /// The same, where the LID that changes its place has no row, or a detour.
    Missing(Lid),
    /// Its own, by the fresh tables.
    Fresh,
}

/// The rows of one LID.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The switches that the method has marked, in order.
    pub(super) marked: Vec<u32>,
    /// The switches that are written, in order: the new port.
    pub(super) writes: Vec<(u32, PortNum)>,
    /// By switch: where its row leads once all is written.
    last: Vec<u32>,
    /// By switch: where its row led.
    first: Vec<u32>,
}

impl Change {
    /// The port for a switch by the rows that are taken over; `None` where it has none.
    fn port(&self, draft: &Draft<'_>, switch: u32) -> Option<PortNum> {
        let Some(after) = self.after else { return Some(PortNum::NONE) };
        let port = match self.model {
            _ if after.switch == switch => after.exit,
            Model::Nothing => PortNum::NONE,
            Model::All(model) | Model::Missing(model) => draft.port(switch, model),
            Model::Fresh => draft.fresh(switch, self.lid),
        };
        Some(port).filter(|port| *port != PortNum::NONE)
    }

    /// Chooses by a method. Says from which switch no path is left, if the rows that are taken over have one there.
    pub(super) fn rows(&self, kept: &Kept, draft: &Draft<'_>, method: Method) -> Result<Rows, u32> {
        let (network, skylines) = (&kept.network, kept.skylines.as_ref().ok());
        let count = network.len() as u32;
        let (seats, goal) = ([self.before, self.after], [self.after]);
        let now: Vec<PortNum> = (0..count).map(|switch| draft.port(switch, self.lid)).collect();
        let exit = |switch: u32, port: PortNum| network.exit(switch, port, &seats);
        let mut rows = Rows {
            first: (0..count).zip(&now).map(|(switch, port)| exit(switch, *port)).collect(),
            ..Rows::default()
        };
        let hops = if self.after.is_some() {
            let model =
                |switch| self.port(draft, switch).map_or(LOST, |port| network.exit(switch, port, &goal));
            count_hops(network, &(0..count).map(model).collect::<Vec<u32>>())
        } else {
            vec![NEVER; count as usize]
        };
        rows.marked = match (method, self.before, self.after, skylines) {
            _ if matches!(self.model, Model::Missing(_)) => {
                let is_detour = |switch: u32| kept.detours.contains(&(draft.node(switch), self.lid));
                let is_left = |switch: &u32| rows.first[*switch as usize] == LOST || is_detour(*switch);
                (0..count).filter(is_left).collect()
            }
            (Method::FtreeMinrc, Some(before), Some(after), Some(skylines)) => {
                let ends = [before, after].map(|seat| network.physical(seat.switch));
                let marked = skylines.between(ends[0], ends[1]).ok_or(after.switch)?;
                let below = [after.switch, before.switch].into_iter().filter(|end| network.is_virtual(*end));
                let mut marked: Vec<u32> = below.chain(marked).collect();
                marked.sort_unstable();
                marked.dedup();
                marked
            }
            (Method::Skyline, Some(_), Some(_), _) => {
                let nearer = |switch: u32, exit: u32| {
                    is_channel(exit) && hops[network.to[exit as usize] as usize] < hops[switch as usize]
                };
                let differs = |switch: &u32| !nearer(*switch, rows.first[*switch as usize]);
                (0..count).filter(differs).collect()
            }
            _ => (0..count).collect(),
        };
        let new = |switch: &u32| Some((*switch, self.port(draft, *switch)?));
        let differing = rows.marked.iter().filter_map(new);
        rows.writes = differing.filter(|(switch, port)| now[*switch as usize] != *port).collect();
        rows.last.clone_from(&rows.first);
        for (switch, port) in &rows.writes {
            rows.last[*switch as usize] = exit(*switch, *port);
        }
        if method != Method::FtreeMinrc {
            rows.marked = rows.writes.iter().map(|(switch, _)| *switch).collect();
        }
        self.check(network, &rows, &hops)?;
        Ok(rows)
    }

    /// Whether packets arrive at the new place from wherever the rows lead that are taken over.
    fn check(&self, network: &Network, rows: &Rows, model: &[u32]) -> Result<(), u32> {
        let Some(after) = self.after else { return Ok(()) };
        let mut last = rows.last.clone();
        if let Some(before) = self.before.filter(|before| before.switch != after.switch) {
            let at = before.switch as usize;
            if last[at] == ARRIVES {
                last[at] = LOST;
            }
        }
        let hops = count_hops(network, &last);
        let lost =
            (0..).zip(hops.iter().zip(model)).find(|(_, (last, model))| **last == NEVER && **model != NEVER);
        lost.map_or(Ok(()), |(switch, _)| Err(switch))
    }
}

/// The rows of one LID in three parts.
#[derive(Debug)]
pub(super) struct Parts {
    /// What is written at once: rows of the meantime among them.
    pub(super) prompt: Rows,
    /// The rows that are missing until they are written late.
    pub(super) missing: Rows,
    /// The rows that replace detours.
    pub(super) detoured: Rows,
}

impl Rows {
    /// Puts rows of the meantime in the place of some: port 255, or a detour.
    pub(super) fn split(
        self,
        network: &Network,
        change: &Change,
        draft: &Draft<'_>,
        meantime: impl Fn(u32) -> Option<PortNum>,
    ) -> Parts {
        let seats = [change.before, change.after];
        let only = |writes: Vec<(u32, PortNum)>, last: &[u32]| Rows {
            writes,
            last: last.to_vec(),
            first: self.first.clone(),
            marked: Vec::new(),
        };
        let (mut now, mut missing, mut detoured) = (Vec::new(), Vec::new(), Vec::new());
        let mut prompt = self.last.clone();
        for (switch, port) in self.writes {
            let Some(other) = meantime(switch).filter(|other| *other != port) else {
                now.push((switch, port));
                continue;
            };
            prompt[switch as usize] = network.exit(switch, other, &seats);
            if draft.port(switch, change.lid) != other {
                now.push((switch, other));
            }
            let later = if other == PortNum::NONE { &mut missing } else { &mut detoured };
            later.push((switch, port));
        }
        let (missing, detoured) = (only(missing, &self.last), only(detoured, &self.last));
        Parts { prompt: Rows { marked: self.marked.clone(), ..only(now, &prompt) }, missing, detoured }
    }

    /// Where the row of a switch leads once all is written, and whether it is written.
    pub(super) fn exit(&self, switch: u32) -> u32 {
        self.last[switch as usize]
    }

    /// The switches that are written.
    pub(super) fn written(&self) -> impl Iterator<Item = u32> {
        self.writes.iter().map(|(switch, _)| *switch)
    }

    /// The port that is written to a switch.
    pub(super) fn port(&self, switch: u32) -> Option<PortNum> {
        let at = self.writes.binary_search_by_key(&switch, |(switch, _)| *switch).ok()?;
        Some(self.writes[at].1)
    }

    /// By switch, of those that are written: how many others must have acknowledged one after the other before it, those that its
    /// packets pass once all is written; 0 for those that are not written.
    pub(super) fn rounds(&self, network: &Network) -> Vec<usize> {
        const UNWRITTEN: usize = usize::MAX;
        const UNKNOWN: usize = usize::MAX - 1;
        let mut rounds = vec![UNWRITTEN; network.len()];
        self.writes.iter().for_each(|(switch, _)| rounds[*switch as usize] = UNKNOWN);
        let mut way = Vec::new();
        for (start, _) in &self.writes {
            let mut at = *start;
            way.clear();
            // A way that is longer than there are switches goes round in a loop, which the proof finds.
            while rounds[at as usize] >= UNKNOWN && way.len() <= network.len() {
                way.push(at);
                let exit = self.last[at as usize];
                if !is_channel(exit) {
                    break;
                }
                at = network.to[exit as usize];
            }
            let mut round =
                Some(rounds[at as usize]).filter(|round| *round < UNKNOWN).map_or(0, |round| round + 1);
            while let Some(switch) = way.pop() {
                let own = &mut rounds[switch as usize];
                if *own == UNWRITTEN {
                    continue;
                }
                if *own == UNKNOWN {
                    *own = round;
                }
                round += 1;
            }
        }
        rounds.iter_mut().filter(|round| **round == UNWRITTEN).for_each(|round| *round = 0);
        rounds
    }

    /// The switches that packets pass from the old place to the new one by the new rows, and back by the old ones (vSwitch paper of
    /// 2017, 6.2).
    pub(super) fn active(&self, network: &Network, change: &Change) -> Vec<u32> {
        let (Some(before), Some(after)) = (change.before, change.after) else { return Vec::new() };
        let mut active = Vec::new();
        for (start, exits) in [(before.switch, &self.last), (after.switch, &self.first)] {
            let mut at = start;
            for _ in 0..network.len() {
                active.push(at);
                let exit = exits[at as usize];
                if !is_channel(exit) {
                    break;
                }
                at = network.to[exit as usize];
            }
        }
        active.sort_unstable();
        active.dedup();
        active
    }
}

/// By switch: how many channels packets take until they arrive, or [`NEVER`].
pub(super) fn count_hops(network: &Network, exits: &[u32]) -> Vec<u32> {
    const UNKNOWN: u32 = u32::MAX - 1;
    const PASSED: u32 = u32::MAX - 2;
    let mut hops = vec![UNKNOWN; exits.len()];
    let mut way = Vec::new();
    for start in 0..exits.len() as u32 {
        let mut at = start;
        let mut known = loop {
            match hops[at as usize] {
                UNKNOWN => {}
                PASSED => break NEVER,
                known => break known,
            }
            hops[at as usize] = PASSED;
            way.push(at);
            match exits[at as usize] {
                ARRIVES => {
                    way.pop();
                    hops[at as usize] = 0;
                    break 0;
                }
                LOST => break NEVER,
                channel => at = network.to[channel as usize],
            }
        };
        while let Some(switch) = way.pop() {
            known = if known == NEVER { NEVER } else { known + 1 };
            hops[switch as usize] = known;
        }
    }
    hops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_are_counted_and_loops_never_arrive() {
        // 0 -> 1 -> 2 arrives; 3 and 4 send to each other; 5 is lost.
        let fabric =
            weft_topology::generate::ring(6, 1, &weft_topology::generate::GenerateOptions::default());
        let network = Network::new(&fabric.expect("a ring"), &[]).expect("no vSwitches");
        let channel = |from: u32, to: u32| {
            let found = (0..network.to.len()).find(|at| network.from[*at].0 == from && network.to[*at] == to);
            found.expect("neighbours") as u32
        };
        let exits = [channel(0, 1), channel(1, 2), ARRIVES, channel(3, 4), channel(4, 3), LOST];
        assert_eq!(count_hops(&network, &exits), [2, 1, 0, NEVER, NEVER, NEVER]);
    }
}
