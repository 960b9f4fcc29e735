//! Links: when they train, when they go, and when the two ends notice.

use weft_topology::{NodeIndex, PortRef};

use super::{Cabling, Link, initial_parameters};
use crate::clock::Rare;
use crate::world::World;

impl Cabling {
    /// A device that has lost its power has forgotten its configuration.
    pub(crate) fn reset_end(&mut self, cable: usize, node: NodeIndex, world: &World) {
        let cable = &mut self.cables[cable];
        for side in (0..2).filter(|side| cable.ends[*side].node == node) {
            cable.lost[side] = None;
            cable.enabled[side] = true;
            cable.parameters[side] = initial_parameters(&world.fabric, cable.ends[side]);
        }
    }

    /// Begins to train a link that may come up, or takes down one that may not. Its two devices are on or not.
    pub(crate) fn update_link(&mut self, index: usize, are_on: [bool; 2], world: &mut World) {
        let cable = &mut self.cables[index];
        let on = |side: usize| are_on[side] && cable.enabled[side];
        let possible = cable.whole && on(0) && on(1);
        if possible == (cable.link != Link::Down) {
            return;
        }
        // An end that switched its own link off knows.
        let loses = [0, 1].map(|side| cable.link == Link::Up && on(side));
        cable.incarnation += 1;
        cable.link = if possible { Link::Training } else { Link::Down };
        let (incarnation, life) = (cable.incarnation, cable.life);
        self.cut_off(index, world);
        let now = world.clock.now();
        if possible {
            let training = world.options.training + world.clock.below(world.options.training_jitter);
            world.clock.push_rare(now + training, Rare::Trained { cable: index, incarnation });
            return;
        }
        for (side, loses) in loses.into_iter().enumerate() {
            if loses {
                self.cables[index].lost[side] = Some(now);
            }
            let at = now + world.clock.below(world.options.link_timeout);
            world.clock.push_rare(at, Rare::Noticed { cable: index, side, life });
        }
    }

    /// The link of a cable goes and takes with it what is under way.
    fn cut_off(&mut self, index: usize, world: &mut World) {
        for way in &mut self.ways[2 * index..2 * index + 2] {
            way.up = false;
            while let Some(flying) = self.flights.take_first(&mut way.flying) {
                way.stale += 1;
                if let Some(lane) = flying.packet_lane() {
                    world.observers.statistics.cut_off += 1;
                    self.missed.cut_off[usize::from(lane.0 & 0xf)] += 1;
                }
            }
        }
    }

    /// The hello has passed in both directions. Whether the link is up by that.
    pub(crate) fn trained(&mut self, index: usize, incarnation: u64) -> bool {
        let cable = &mut self.cables[index];
        if cable.incarnation != incarnation {
            return false;
        }
        cable.link = Link::Up;
        self.ways[2 * index..2 * index + 2].iter_mut().for_each(|way| way.up = true);
        true
    }

    /// The end of a cable that has been without a sign of life for too long. It knows already if a new link came up since.
    pub(crate) fn noticing(&self, index: usize, side: usize, life: u32) -> Option<PortRef> {
        let cable = &self.cables[index];
        (cable.link != Link::Up && cable.life == life).then(|| cable.ends[side])
    }

    /// A cable is in its ports no more, and what was under way on it is gone. Its ends, which are on or not, do not know yet.
    pub(crate) fn take_out(&mut self, index: usize, are_on: [bool; 2], world: &mut World) -> [PortRef; 2] {
        let cable = &mut self.cables[index];
        let (ends, was_up) = (cable.ends, cable.link == Link::Up);
        (cable.link, cable.whole) = (Link::Down, false);
        cable.incarnation += 1;
        for side in (0..2).filter(|&side| was_up && are_on[side]) {
            cable.lost[side] = Some(world.clock.now());
        }
        self.cut_off(index, world);
        self.leave_ports(index);
        world.fabric.disconnect(ends[0]);
        ends
    }
}
