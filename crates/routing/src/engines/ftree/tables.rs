//! The tables: every switch finds its own way to the main paths.

use std::ops::Range;

use rayon::prelude::*;
use weft_wire::{Lid, PortNum};

use super::chains::{Chains, NO_SWITCH};
use super::detours::Detours;
use super::plan::Plan;
use super::turns::{NO_TURN, Turns};
use crate::tables::ForwardingTable;
use crate::tree::{Cable, Group, Tree};

/// Stands for several ports: nothing but port 0 could be meant by it, and no cable is in port 0.
const SEVERAL: PortNum = PortNum::ZERO;

/// Fills the tables of all switches, in the order of their numbers.
pub(super) fn fill(
    tree: &Tree,
    plan: &Plan,
    turns: &Turns,
    chains: &Chains,
    detours: &Detours,
    top: Lid,
) -> Vec<ForwardingTable> {
    let all = All {
        tree,
        plan,
        turns,
        chains,
        detours,
        lids: plan.targets.iter().map(|target| target.lid).collect(),
        weights: plan.targets.iter().map(|target| target.weight).collect(),
        runs: plan.runs(),
        top,
    };
    let switches = (0..tree.graph.len() as u32).into_par_iter();
    switches.map_init(|| Room::new(tree), |room, switch| all.table(switch, room)).collect()
}

/// What all switches look at.
struct All<'a> {
    tree: &'a Tree,
    plan: &'a Plan,
    turns: &'a Turns,
    chains: &'a Chains,
    detours: &'a Detours,
    lids: Vec<Lid>,
    weights: Vec<u32>,
    runs: Vec<(u32, Range<usize>)>,
    top: Lid,
}

/// Room to work in for one switch.
struct Room {
    /// What leads to the switches above.
    up: Ways,
    /// What leads to the switches below.
    down: Ways,
    /// By switch: the last search that saw it.
    seen: Vec<u32>,
    search: u32,
    todo: Vec<u32>,
    /// By port: how much is sent by it so far.
    loads: Vec<u32>,
    /// The ports up that lead to one switch, for those that no main path concerns, and whose turn it is.
    others: Vec<PortNum>,
    turn: usize,
}

/// By switch: what leads there from the switch that is being served.
struct Ways {
    /// The port, [`SEVERAL`] or none.
    ports: Vec<PortNum>,
    /// The place of the group, or [`SEVERAL_GROUPS`].
    groups: Vec<u32>,
}

/// Stands for several groups.
const SEVERAL_GROUPS: u32 = u32::MAX;

impl Ways {
    fn new(count: usize) -> Self {
        Self { ports: vec![PortNum::NONE; count], groups: vec![SEVERAL_GROUPS; count] }
    }

    fn add(&mut self, at: u32, group: u32, port: PortNum) {
        let at = at as usize;
        let first = self.ports[at] == PortNum::NONE;
        self.ports[at] = if first { port } else { SEVERAL };
        self.groups[at] = if first { group } else { SEVERAL_GROUPS };
    }
}

impl Room {
    fn new(tree: &Tree) -> Self {
        let count = tree.graph.len();
        Self {
            up: Ways::new(count),
            down: Ways::new(count),
            seen: vec![0; count],
            search: 0,
            todo: Vec::new(),
            loads: vec![0; 256],
            others: Vec::new(),
            turn: 0,
        }
    }

    /// Finds what leads from a switch to those above and below it.
    fn begin(&mut self, tree: &Tree, switch: u32) {
        self.up.ports.fill(PortNum::NONE);
        self.down.ports.fill(PortNum::NONE);
        self.loads.fill(0);
        self.turn = 0;
        for (place, group) in tree.up(switch) {
            let port = the_port(tree.cables(group).map(|(_, cable)| cable.lower));
            self.search(group.upper, |at, next| next.extend(tree.up(at).map(|(_, group)| group.upper)));
            for at in self.todo.drain(..) {
                self.up.add(at, place as u32, port);
            }
        }
        for (place, group) in tree.down(switch) {
            let port = the_port(tree.cables(group).map(|(_, cable)| cable.upper));
            self.search(group.lower, |at, next| next.extend(tree.down(at).map(|(_, group)| group.lower)));
            for at in self.todo.drain(..) {
                self.down.add(at, place as u32, port);
            }
        }
    }

    /// Leaves `start` and all that `next` leads to in `todo`.
    fn search(&mut self, start: u32, next: impl Fn(u32, &mut Vec<u32>)) {
        self.search += 1;
        self.todo.clear();
        self.todo.push(start);
        self.seen[start as usize] = self.search;
        let mut done = 0;
        while let Some(at) = self.todo.get(done).copied() {
            done += 1;
            let known = self.todo.len();
            next(at, &mut self.todo);
            let mut keep = known;
            for place in known..self.todo.len() {
                let found = self.todo[place];
                if self.seen[found as usize] != self.search {
                    self.seen[found as usize] = self.search;
                    self.todo[keep] = found;
                    keep += 1;
                }
            }
            self.todo.truncate(keep);
        }
    }
}

/// The only port, or [`SEVERAL`].
fn the_port(mut ports: impl Iterator<Item = PortNum>) -> PortNum {
    let first = ports.next().unwrap_or(PortNum::NONE);
    if ports.next().is_some() { SEVERAL } else { first }
}

impl All<'_> {
    fn table(&self, switch: u32, room: &mut Room) -> ForwardingTable {
        let mut table = ForwardingTable::new(self.top);
        let entries = table.entries_mut();
        room.begin(self.tree, switch);
        let own = self.tree.rank(switch) as u8 + 1;
        let row = self.turns.row(switch);
        let mut resets = self.plan.resets.iter().copied().peekable();
        for (at, range) in &self.runs {
            while resets.next_if(|reset| *reset <= range.start).is_some() {
                room.loads.fill(0);
            }
            let turn = row[*at as usize];
            let range = range.clone();
            if *at == switch {
                for place in range {
                    let exit = self.plan.targets[place].exit;
                    entries[usize::from(self.lids[place].0)] = exit;
                }
            } else if turn == own {
                self.send_down(switch, *at, range, entries, room);
            } else if turn != NO_TURN {
                self.send_up(switch, turn, range, entries, room);
            } else {
                let port = self.detours.port(switch, *at);
                self.lids[range].iter().for_each(|lid| entries[usize::from(lid.0)] = port);
            }
        }
        table
    }

    /// Targets on a switch below this one.
    fn send_down(&self, switch: u32, at: u32, range: Range<usize>, entries: &mut [PortNum], room: &mut Room) {
        let rank = self.tree.rank(switch) as usize;
        let (only, group) = (room.down.ports[at as usize], room.down.groups[at as usize]);
        if only != SEVERAL {
            self.lids[range.clone()].iter().for_each(|lid| entries[usize::from(lid.0)] = only);
            room.loads[usize::from(only.0)] += self.weights[range].iter().sum::<u32>();
            return;
        }
        for place in range {
            let port = if self.chains.at_rank(rank)[place] == switch {
                self.chains.exit(rank, place)
            } else if group != SEVERAL_GROUPS {
                self.least_of(group as usize, |cable| cable.upper, &room.loads)
            } else {
                self.choose_down(switch, place, room)
            };
            entries[usize::from(self.lids[place].0)] = port;
            room.loads[usize::from(port.0)] += self.weights[place];
        }
    }

    /// Targets to which a path turns at a rank above this switch.
    fn send_up(&self, switch: u32, turn: u8, range: Range<usize>, entries: &mut [PortNum], room: &mut Room) {
        room.others.clear();
        let row = self.turns.row(switch);
        let last = self.tree.rank(self.plan.targets[range.start].at) as usize;
        let hosts = self.tree.has_hosts(switch);
        let main = &self.chains.at_rank(usize::from(turn) - 1)[range.clone()];
        let (lids, weights) = (&self.lids[range.clone()], &self.weights[range.clone()]);
        for (place, ((main, lid), weight)) in range.zip(main.iter().zip(lids).zip(weights)) {
            let port = match room.up.ports.get(*main as usize).copied().unwrap_or(PortNum::NONE) {
                PortNum::NONE => {
                    let meets = |aim: u32| row.get(aim as usize) == Some(&turn);
                    let mut between = (usize::from(turn)..last).map(|rank| self.chains.at_rank(rank)[place]);
                    if !hosts && !between.any(meets) {
                        entries[usize::from(lid.0)] = self.next_up(switch, turn, place, room);
                        continue;
                    }
                    self.choose_up(switch, turn, place, room)
                }
                SEVERAL => match room.up.groups[*main as usize] {
                    SEVERAL_GROUPS => self.choose_up(switch, turn, place, room),
                    group => self.least_of(group as usize, |cable| cable.lower, &room.loads),
                },
                port => port,
            };
            entries[usize::from(lid.0)] = port;
            room.loads[usize::from(port.0)] += weight;
        }
    }

    /// The best port up towards the first switch of the main path, from its turn downwards, that has a common switch
    /// with this one at the rank of the turn.
    fn choose_up(&self, switch: u32, turn: u8, place: usize, room: &Room) -> PortNum {
        let row = self.turns.row(switch);
        let Some(aim) = self.aim(usize::from(turn) - 1, place, |aim| row[aim as usize] == turn) else {
            return PortNum::NONE;
        };
        let groups = self.tree.up(switch).filter(|(_, group)| self.turns.get(group.upper, aim) == turn);
        self.least(groups, |cable| cable.lower, &room.loads)
    }

    /// The next port up, each in its turn, towards a target whose main path a switch without hosts has no part in.
    /// Where the tree is whole, such entries carry nothing but what the switch itself sends, so they do not count.
    #[inline]
    fn next_up(&self, switch: u32, turn: u8, place: usize, room: &mut Room) -> PortNum {
        if room.others.is_empty() {
            let at = self.plan.targets[place].at;
            let groups = self.tree.up(switch).filter(|(_, group)| self.turns.get(group.upper, at) == turn);
            for (_, group) in groups {
                room.others.extend(self.tree.cables(group).map(|(_, cable)| cable.lower));
            }
        }
        room.turn = if room.turn + 1 < room.others.len() { room.turn + 1 } else { 0 };
        room.others.get(room.turn).copied().unwrap_or(PortNum::NONE)
    }

    /// The best port down towards the first switch of the main path that is below this one.
    fn choose_down(&self, switch: u32, place: usize, room: &Room) -> PortNum {
        let rank = self.tree.rank(switch) as u8;
        let row = self.turns.row(switch);
        let Some(aim) = self.aim(usize::from(rank) + 1, place, |aim| row[aim as usize] == rank + 1) else {
            return PortNum::NONE;
        };
        let groups = self.tree.down(switch).filter(|(_, group)| self.turns.get(group.lower, aim) == rank + 2);
        self.least(groups, |cable| cable.upper, &room.loads)
    }

    /// The first switch of a main path, from a rank downwards, that will do.
    fn aim(&self, from: usize, place: usize, will_do: impl Fn(u32) -> bool) -> Option<u32> {
        let last = self.tree.rank(self.plan.targets[place].at) as usize;
        let aims = (from..=last).map(|rank| self.chains.at_rank(rank)[place]);
        aims.filter(|aim| *aim != NO_SWITCH).find(|aim| will_do(*aim))
    }

    /// The port by which the least is sent, among those the one of the group by which the least is sent, among those
    /// the first.
    fn least<'g>(
        &self,
        groups: impl Iterator<Item = (usize, &'g Group)>,
        port: impl Fn(&Cable) -> PortNum,
        loads: &[u32],
    ) -> PortNum {
        let mut best = ((u32::MAX, u32::MAX), PortNum::NONE);
        for (_, group) in groups {
            let ports = self.tree.cables(group).map(|(_, cable)| port(cable));
            let whole = ports.clone().map(|port| loads[usize::from(port.0)]).sum();
            for port in ports {
                let load = (loads[usize::from(port.0)], whole);
                if load < best.0 {
                    best = (load, port);
                }
            }
        }
        best.1
    }

    /// The port of a group by which the least is sent, among those the first.
    fn least_of(&self, group: usize, port: impl Fn(&Cable) -> PortNum, loads: &[u32]) -> PortNum {
        let ports = self.tree.cables(&self.tree.groups[group]).map(|(_, cable)| port(cable));
        ports.min_by_key(|port| loads[usize::from(port.0)]).unwrap_or(PortNum::NONE)
    }
}
