//! Links: when they train, when they go, and when the two ends come to know of it.

use weft_fault::Sign;
use weft_machine::Time;
use weft_node::{Input, Request};
use weft_topology::PortRef;
use weft_wire::{Lid, LinkParameters, PortNum};

use super::Simulation;
use crate::nodes::Asked;

/// A loss that an end notices within this time is brief, as when a process is restarted at once.
const BRIEF: Time = Time::from_millis(50);

impl Simulation {
    /// The operator pulls a cable, or puts it into its ports again.
    pub(super) fn set_whole(&mut self, port: PortRef, whole: bool) {
        if let Some((cable, _)) = self.cabling.find(port) {
            self.cabling.cables[cable].pulled = !whole;
            self.cable_changed(cable);
        }
    }

    /// A cable is pulled or parted, or is so no more.
    pub(super) fn cable_changed(&mut self, cable: usize) {
        let changed = &mut self.cabling.cables[cable];
        changed.whole = !changed.pulled && changed.parted == 0;
        if !changed.inside {
            return self.update_link(cable);
        }
        let (end, plugged) = (changed.ends[0], changed.whole);
        let request = Request::Plug { at: self.nodes.at(end), plugged };
        self.request(end.node, Asked::Wiring, request);
    }

    /// A device switches the link of one of its ports.
    pub(super) fn set_link(&mut self, port: PortRef, enabled: bool, parameters: LinkParameters) {
        if let Some((cable, side)) = self.cabling.find(port) {
            let cabled = &mut self.cabling.cables[cable];
            (cabled.enabled[side], cabled.parameters[side]) = (enabled, parameters);
            self.update_link(cable);
        }
    }

    /// Begins to train a link that may come up, or takes down one that may not. Nodes have those within them.
    pub(super) fn update_link(&mut self, cable: usize) {
        if !self.cabling.cables[cable].inside {
            self.cabling.update_link(cable, self.are_on(cable), &mut self.world);
        }
    }

    /// Which of the devices at a cable's ends are on.
    pub(super) fn are_on(&self, cable: usize) -> [bool; 2] {
        self.cabling.cables[cable].ends.map(|end| self.device(end.node).is_some())
    }

    /// The peer of this port has broken the link's rules: the link goes, and comes again.
    pub(super) fn begin_anew(&mut self, port: PortRef) {
        if self.cabling.find(port).is_none_or(|(cable, _)| self.cabling.cables[cable].inside) {
            return;
        }
        self.set_whole(port, false);
        self.set_whole(port, true);
    }

    /// The hello has passed in both directions.
    pub(super) fn trained(&mut self, index: usize, incarnation: u64) {
        if !self.cabling.trained(index, incarnation) {
            return;
        }
        let cable = &self.cabling.cables[index];
        let (ends, parameters) = (cable.ends, cable.parameters);
        self.world.clock.disturb();
        for side in 0..2 {
            self.world.trace_port("up", ends[side], format_args!("-"));
            let at = self.nodes.at(ends[side]);
            self.tell_link(index, side, Input::LinkUp { at, peer: parameters[1 - side] });
        }
    }

    /// Tells an end of its link, and sees whether it makes of a loss what it should (IBA 16.1.3.5, 14.2.5.1): count
    /// it, and as a switch that has a manager send a trap.
    pub(super) fn tell_link(&mut self, index: usize, side: usize, input: Input) {
        let PortRef { node, port } = self.cabling.cables[index].ends[side];
        let seen = |simulation: &Self| {
            let device = simulation.device(node)?;
            let downs = device.port_snapshot(port)?.counters.link_downed_counter;
            Some((downs, device.statistics().traps_sent))
        };
        let tells = self.world.fabric.node(node).is_switch()
            && self.port(PortRef::new(node, PortNum::ZERO)).is_some_and(|zero| zero.master_sm_lid != Lid(0));
        let before = seen(self);
        self.feed(node, input);
        let Some(lost_at) = self.cabling.cables[index].lost[side].take() else { return };
        let noticed = before.zip(seen(self)).is_some_and(|((downs, traps), (downs_now, traps_now))| {
            downs_now == downs.saturating_add(1) && (!tells || traps_now > traps)
        });
        let statistics = &mut self.world.observers.statistics;
        statistics.link_losses += 1;
        statistics.link_losses_brief += u64::from(self.world.clock.now() - lost_at < BRIEF);
        statistics.link_losses_unnoticed += u64::from(!noticed);
    }

    /// What was seen that says anything of faults, as far as it is kept: ends that noticed that their links were gone, and what the
    /// subnet manager has routed.
    pub fn fault_signs<Key>(&self) -> Vec<(Time, Sign<Key>)> {
        let noticed = self.world.observers.noticed.iter().map(|at| (*at, Sign::Noticed));
        let routed = self.summaries().iter();
        let routed =
            routed.map(|(at, found)| (*at, Sign::Routed { hosts: found.hosts, cables: found.cables }));
        noticed.chain(routed).collect()
    }

    /// The ends of links that have yet to notice a loss.
    pub fn link_losses_pending(&self) -> usize {
        self.cabling.cables.iter().flat_map(|cable| cable.lost).flatten().count()
    }

    /// An end has been without a sign of life for too long. It knows already if a new link came up since.
    pub(super) fn noticed(&mut self, index: usize, side: usize, life: u32) {
        let Some(port) = self.cabling.noticing(index, side, life) else { return };
        if self.device(port.node).is_some() {
            self.world.clock.disturb();
            self.world.observers.noticed.push(self.world.clock.now());
            self.world.trace_port("down", port, format_args!("-"));
            let at = self.nodes.at(port);
            self.tell_link(index, side, Input::LinkDown { at });
        }
    }
}
