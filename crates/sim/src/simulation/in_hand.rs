//! One device in hand: it is given something, and what it and its hosts then want is done.

use weft_device::{Device, Input, Output};
use weft_machine::{Machine, Time};
use weft_topology::{NodeIndex, PortRef};

use super::{ASLEEP, Simulation};
use crate::ToHost;
use crate::happening::{Happening, Rare};

/// Who gives an adapter the next packet at the same moment whenever it refuses one would never come to an end: after
/// so many exchanges it hears the rest a while later. Hosts do not; a [`Load`](crate::Load) can.
const ROUNDS_MAX: u32 = 4096;
const HOST_PAUSE: Time = Time::from_millis(1);

impl Simulation {
    /// Feeds a device and does what it wants.
    pub(crate) fn feed(&mut self, node: NodeIndex, input: Input) {
        self.take_in_hand(node, |device, now| device.handle_input(now, input));
    }

    pub(super) fn wake_device(&mut self, node: NodeIndex) {
        let Some(wake) = self.wakes.get_mut(node.index()) else { return };
        // Of several wake-ups that were asked for only the earliest is meant.
        if *wake != self.now {
            return;
        }
        *wake = ASLEEP;
        self.take_in_hand(node, Device::handle_timeout);
    }

    /// Does what a device and its hosts want.
    pub(super) fn settle(&mut self, node: NodeIndex) {
        self.take_in_hand(node, |_, _| ());
    }

    /// Lends a device, if it is on, the memory for its outputs, does something with it, and then what is wanted of that.
    #[inline]
    fn take_in_hand(&mut self, node: NodeIndex, act: impl FnOnce(&mut Device, Time)) {
        let Some(slot) = self.slots.get_mut(node.index()) else { return };
        let Some(device) = &mut slot.device else { return self.settle_in_hand(node) };
        device.exchange_outputs(&mut self.outputs);
        act(device, self.now);
        // A packet that joins a queue, which most do, is all that happens.
        if device.wants_nothing() && self.injections.is_empty() && self.for_hosts.is_empty() {
            device.exchange_outputs(&mut self.outputs);
            return self.set_wake(node);
        }
        self.settle_in_hand(node);
    }

    /// Does what the device in hand wants, feeds its hosts and does what they want, until nobody wants anything any more.
    fn settle_in_hand(&mut self, node: NodeIndex) {
        let mut rounds = 0;
        loop {
            rounds += 1;
            self.drain(node);
            if let Some(injection) = self.injections.pop_front() {
                if let Some(device) = &mut self.slots[node.index()].device {
                    device.handle_input(self.now, injection);
                }
            } else if let Some((port, what)) = self.for_hosts.pop_front() {
                if rounds < ROUNDS_MAX {
                    self.give_host(port, what);
                } else {
                    self.statistics.host_pauses += 1;
                    self.push_rare(self.now + HOST_PAUSE, Rare::ToHost(port, what));
                }
            } else {
                break;
            }
        }
        let Some(device) = &mut self.slots[node.index()].device else { return };
        device.exchange_outputs(&mut self.outputs);
        self.set_wake(node);
    }

    /// The device is woken when it wants to be.
    #[inline]
    fn set_wake(&mut self, node: NodeIndex) {
        let Some(device) = &self.slots[node.index()].device else { return };
        let wake = &mut self.wakes[node.index()];
        if let Some(due) = device.poll_timeout().map(|due| due.max(self.now)).filter(|due| due < wake) {
            *wake = due;
            self.queue.push(due, Happening::WakeDevice(node));
        }
    }

    fn drain(&mut self, node: NodeIndex) {
        while let Some(output) = self.next_output(node) {
            match output {
                Output::TransmitData { port, packet } => self.transmit_data(PortRef::new(node, port), packet),
                Output::Credit { port, flow_control } => {
                    self.transmit_credit(PortRef::new(node, port), flow_control);
                }
                Output::Injected { port, service_level, packets } => {
                    self.for_hosts
                        .push_back((PortRef::new(node, port), ToHost::Injected(service_level, packets)));
                }
                Output::Refused { port, dest_qp } => {
                    self.for_hosts.push_back((PortRef::new(node, port), ToHost::Refused(dest_qp)));
                }
                Output::Accept { port, packet } => {
                    self.for_hosts.push_back((PortRef::new(node, port), ToHost::Accept(packet)));
                }
                Output::HostPort { port, facts } => {
                    self.for_hosts.push_back((PortRef::new(node, port), ToHost::Facts(facts)));
                }
                Output::Transmit { port, packet } => self.transmit(PortRef::new(node, port), packet),
                Output::Deliver { client, mad } => self.deliver(node, client, mad),
                // The simulator's programs register for nothing after attaching.
                Output::Registered { .. } => {}
                Output::PortChanged { client, up } => self.port_changed(node, client, up),
                Output::SetLink { port, enabled, parameters } => {
                    self.set_link(PortRef::new(node, port), enabled, parameters);
                }
                Output::Event(event) => self.device_event(node, event),
            }
        }
    }

    #[inline]
    fn next_output(&mut self, node: NodeIndex) -> Option<Output> {
        self.slots.get_mut(node.index())?.device.as_mut()?.poll_output()
    }
}
