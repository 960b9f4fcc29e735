//! Ways that go down and up again, for switches above a cut: by one hub, and by the rows of switches that no traffic needs.

use super::{Chooser, Shape, Shapes};
use crate::verify::ground::{End, LOST, is_channel};
use crate::verify::order::{Exits, NEVER, Order};

impl Chooser<'_> {
    /// Finds ways in a tree that go up again after they went down, and all turn at one switch, so that hardly any of them
    /// wait for each other.
    pub(super) fn turn_at_hub(&mut self, end: &End) {
        let is_hub = |at: &u32| self.serves_hosts(*at) && *at != end.switch && !self.is_open(*at);
        if self.ups.is_some()
            && let Some(hub) = (0..self.ground.len() as u32).find(is_hub)
        {
            self.room.shapes.fill(Shape::Turns);
            self.room.shapes[hub as usize] = Shape::Falls;
            self.room.taken.clear();
            if !end.host {
                self.take_again(hub);
            }
            self.settle(end, Shapes::Kept);
            if !end.host && self.room.ways_to.as_ref().is_none_or(|ways| ways.1.len() < self.room.taken.len())
            {
                self.room.ways_to = Some((hub, std::mem::take(&mut self.room.taken)));
            }
        }
    }

    /// Takes the ways that were found to a hub for another LID, as far as there are no others for this one: no data follows
    /// them, whose pairs would have to be spread.
    fn take_again(&mut self, hub: u32) {
        let Some((_, ways)) = self.room.ways_to.take_if(|(to, _)| *to == hub) else { return };
        for (switch, channel) in &ways {
            let hops = self.room.hops[self.ground.to[*channel as usize] as usize];
            if self.is_open(*switch) && hops != NEVER && self.may(*channel, Shapes::Kept) {
                self.take(*switch, hops + 1, *channel);
            }
        }
        self.room.ways_to = Some((hub, ways));
    }

    /// Whether paths can turn at a switch with hosts: they are its own, or behind vSwitches, which lead nowhere else.
    fn serves_hosts(&self, switch: u32) -> bool {
        let next = |at: u32| {
            let channels = self.ground.exits(at).iter().filter(|exit| is_channel(**exit));
            channels.map(|channel| self.ground.to[*channel as usize])
        };
        let is_end = |at: u32| next(at).nth(1).is_none();
        let has_hosts = |at: u32| self.ground.has_hosts[at as usize];
        !is_end(switch) && (has_hosts(switch) || next(switch).any(|at| has_hosts(at) && is_end(at)))
    }

    /// Frees the rows of switches that no traffic to a LID passes, for others to come by, and says which those are.
    pub(super) fn free_idle(&mut self, end: &End) -> Vec<u32> {
        let room = &mut self.room;
        let (mut order, mut traffic) = (Order::default(), room.lanes.clone());
        order.sort(self.ground, Exits::of(&room.exits));
        for switch in &order.switches {
            let exit = room.exits[*switch as usize];
            if is_channel(exit) {
                traffic[self.ground.to[exit as usize] as usize] |= traffic[*switch as usize];
            }
        }
        let needed = room.members.iter().fold(0, |all, at| all | room.lanes[*at as usize]);
        let is_idle = |at: &u32| traffic[*at as usize] == 0 && !room.lost[*at as usize] && *at != end.switch;
        let idle: Vec<u32> = (0..self.ground.len() as u32).filter(is_idle).collect();
        for at in &idle {
            let place = *at as usize;
            (room.lost[place], room.exits[place], room.hops[place]) = (true, LOST, NEVER);
            // They are to find ways that those can take who need them.
            room.lanes[place] = needed;
        }
        room.members.extend_from_slice(&idle);
        idle
    }

    /// Gives rows back that no new way uses.
    pub(super) fn spare_idle(&mut self, end: &End, idle: &[u32]) {
        let room = &mut self.room;
        let mut used = vec![false; room.exits.len()];
        for member in room.members.iter().filter(|at| idle.binary_search(at).is_err()) {
            let mut at = *member as usize;
            let in_use = end.host || self.ground.has_hosts[at];
            while in_use && !std::mem::replace(&mut used[at], true) && is_channel(room.exits[at]) {
                at = self.ground.to[room.exits[at] as usize] as usize;
            }
        }
        room.members.retain(|at| idle.binary_search(at).is_err() || used[*at as usize]);
        for at in idle.iter().map(|at| *at as usize).filter(|at| !used[*at]) {
            room.exits[at] = room.old[at];
        }
    }
}
