//! The one order in which all that an input causes is done.

use weft_device as device;
use weft_machine::{Machine, Time};
use weft_wire::PortNum;

use crate::cables::Crossing;
use crate::devices::{Jack, Plugged};
use crate::held::Arriving;
use crate::timers::Owner;
use crate::{DeviceId, Frame, Node, Output, PortId, Taker, ToHost};

/// A host that gives its adapter the next packet at the same moment whenever it refuses one would never come to an end:
/// after this number of exchanges it hears the rest with [`Input::Continue`](crate::Input::Continue).
const ROUNDS_MAX: u32 = 4096;

impl Node {
    /// Takes a device in hand until nothing is left for it or its hosts. Whether it is on.
    pub(crate) fn take_up(&mut self, id: DeviceId) -> bool {
        debug_assert!(self.hand.is_none(), "one device at a time");
        if self.devices.get(id).is_none() {
            return false;
        }
        (self.hand, self.rounds) = (Some(id), 0);
        true
    }

    /// Feeds a device. Its outputs are taken by the drain.
    #[inline(always)]
    pub(crate) fn feed(&mut self, id: DeviceId, input: device::Input) {
        let (Some(slot), Some(desk)) = (self.devices.get_mut(id), &mut self.desk) else { return };
        slot.device.exchange_outputs(&mut desk.device_outputs);
        slot.device.handle_input(self.now, input);
        slot.device.exchange_outputs(&mut desk.device_outputs);
        self.was_fed(id);
    }

    #[inline(always)]
    pub(crate) fn wake_device(&mut self, id: DeviceId) {
        let (Some(slot), Some(desk)) = (self.devices.get_mut(id), &mut self.desk) else { return };
        slot.device.exchange_outputs(&mut desk.device_outputs);
        slot.device.handle_timeout(self.now);
        slot.device.exchange_outputs(&mut desk.device_outputs);
        self.was_fed(id);
    }

    /// The device that was just fed is in hand if it wants something. A packet that joins a queue, which most do, is all
    /// that happens.
    #[inline(always)]
    fn was_fed(&mut self, id: DeviceId) {
        if self.desk.as_ref().is_some_and(|desk| !desk.device_outputs.is_empty()) {
            (self.hand, self.rounds) = (Some(id), 0);
        } else {
            self.put_down(id);
        }
    }

    /// The device in hand has nothing more to say, and nothing is left for it or its hosts.
    #[inline(always)]
    fn put_down(&mut self, id: DeviceId) {
        self.hand = None;
        let Some(slot) = self.devices.get(id) else { return };
        let (timer, moment) = (slot.timer, slot.device.poll_timeout());
        self.set_timer(timer, moment);
    }

    /// A frame reaches a port, or the beginning of a cable that takes a while.
    #[inline(always)]
    pub(crate) fn arrives(&mut self, at: PortId, frame: Frame) {
        if self.is_wired {
            return self.arrives_over_cable(at, frame);
        }
        let (Some(slot), Some(desk)) = (self.devices.get_mut(at.device), &mut self.desk) else { return };
        slot.device.exchange_outputs(&mut desk.device_outputs);
        slot.device.handle_input(self.now, device::Input::Arrive { port: at.port, frame });
        slot.device.exchange_outputs(&mut desk.device_outputs);
        self.was_fed(at.device);
    }

    #[inline(never)]
    fn arrives_over_cable(&mut self, at: PortId, frame: Frame) {
        let Some(slot) = self.devices.get(at.device) else { return };
        let Jack { delay, impaired, .. } = slot.jack(at.port);
        if impaired {
            return self.arrives_impaired(at, delay, frame);
        }
        if delay > Time::ZERO && !frame.is_management() {
            return self.hold_back(at, delay, frame);
        }
        self.feed(at.device, device::Input::Arrive { port: at.port, frame });
    }

    fn hold_back(&mut self, at: PortId, delay: Time, frame: Frame) {
        if let Err(arriving) = self.held.put(self.now + delay, at, Arriving::Frame(frame)) {
            self.cables.lose(arriving.lane());
            return self.say(Output::CableFull { at });
        }
        self.set_held_timer();
    }

    pub(crate) fn set_held_timer(&mut self) {
        let timer = *self.held_timer.get_or_insert_with(|| self.timers.add(Owner::Held));
        let moment = self.held.earliest();
        self.set_timer(timer, moment);
        // It arrives in this turn, and asks for no other.
        if moment.is_some_and(|at| at <= self.now) {
            self.woken_at = Some(self.now);
        }
    }

    /// The link at a port is gone, and what was on its way over a long cable with it.
    pub(crate) fn link_goes(&mut self, at: PortId) {
        self.lose_held(at);
        self.feed(at.device, device::Input::LinkDown { port: at.port });
    }

    /// What was on its way to a port over a long cable is lost.
    pub(crate) fn lose_held(&mut self, at: PortId) {
        if self.held_timer.is_none() {
            return;
        }
        for arriving in self.held.forget(at) {
            self.cables.lose(arriving.lane());
        }
        self.impaired.begin_anew(at);
        self.set_held_timer();
    }

    /// Something happens at an end of a cable between two ports of the node.
    fn crosses(&mut self, crossing: Crossing) {
        match crossing {
            Crossing::Arrived { at, frame } => {
                if self.is_watching {
                    self.say(Output::Crossed { at, received: true, frame: Box::new(frame.clone()) });
                }
                self.arrives(at, frame);
            }
            Crossing::Up { at, peer } => {
                self.say(Output::LinkUp { at });
                let peer = self.degraded.limited(at, peer);
                self.feed(at.device, device::Input::LinkUp { port: at.port, peer });
            }
            Crossing::Down { at, cause } => {
                self.say(Output::LinkDown { at, cause });
                self.link_goes(at);
            }
        }
    }

    /// Begins with what is next when no device is in hand; whether there is anything that may begin.
    pub(crate) fn begin_next(&mut self) -> bool {
        if self.steps == 0 {
            return false;
        }
        if let Some(woken_at) = self.woken_at {
            if let Some((owner, at)) = self.timers.due(woken_at) {
                self.steps -= 1;
                if self.options.notes_lateness {
                    self.late.push(self.now.saturating_sub(at));
                }
                self.fire(owner);
                return true;
            }
            self.woken_at = None;
        }
        if !self.may_go_on {
            return false;
        }
        if let Some((at, what)) = self.later.pop_front() {
            if self.take_up(at.device) {
                self.desk().for_hosts.push_back((at.port, what));
            }
        } else if let Some(crossing) = self.cables.poll() {
            self.crosses(crossing);
        } else {
            self.may_go_on = false;
            return false;
        }
        self.steps -= 1;
        true
    }

    pub(crate) fn fire(&mut self, owner: Owner) {
        match owner {
            Owner::Free => {}
            Owner::Device(id) => self.wake_device(id),
            Owner::Host(at) => {
                if self.take_up(at.device) {
                    self.wake_host(at);
                }
            }
            Owner::Layer(client) => {
                if self.take_up(client.device) {
                    self.wake_layer(client);
                }
            }
            Owner::Held => {
                let due = self.held.due(self.now);
                self.set_held_timer();
                if let Some((at, arriving)) = due {
                    self.held_arrives(at, arriving);
                }
            }
            Owner::Flap => self.flap(),
        }
    }

    /// The next things that the device in hand wants, up to one that is not taken, or what is left for it. An output if that
    /// leaves the node.
    #[inline(always)]
    pub(crate) fn go_on(&mut self, id: DeviceId, taker: &mut impl Taker) -> Option<Output> {
        use device::Output as From;
        let at = |port: &PortNum| PortId::new(id, *port);
        let (is_wired, has_hosts) = (self.is_wired, self.has_hosts);
        let Some(desk) = &mut self.desk else {
            self.hand = None;
            return None;
        };
        desk.device_outputs.drop_while(|output| match output {
            From::Transmit { port, frame } => !is_wired && taker.transmit(at(port), frame),
            From::Injected { port, service_level, packets } => {
                !has_hosts && taker.injected(at(port), *service_level, *packets)
            }
            From::Accept { port, packet } => !has_hosts && taker.accept(at(port), packet),
            _ => false,
        });
        if let Some(output) = desk.device_outputs.pop_front() {
            return self.translate(id, output);
        }
        self.go_on_with_rest(id);
        None
    }

    /// What is left for the device in hand when its outputs have been taken.
    #[inline]
    fn go_on_with_rest(&mut self, id: DeviceId) {
        let (Some(slot), Some(desk)) = (self.devices.get_mut(id), &mut self.desk) else {
            self.hand = None;
            return;
        };
        if let Some(injection) = desk.injections.pop_front() {
            slot.device.exchange_outputs(&mut desk.device_outputs);
            slot.device.handle_input(self.now, injection);
            slot.device.exchange_outputs(&mut desk.device_outputs);
        } else if let Some((port, what)) = desk.for_hosts.pop_front() {
            self.rounds += 1;
            let at = PortId::new(id, port);
            if self.rounds < ROUNDS_MAX {
                self.give_host(at, what);
            } else {
                self.later.push_back((at, what));
                self.may_go_on = true;
            }
        } else {
            self.put_down(id);
        }
    }

    /// What becomes of a device's output: it leaves the node, or goes to where it belongs within it.
    #[inline(never)]
    fn translate(&mut self, device: DeviceId, output: device::Output) -> Option<Output> {
        use device::Output as From;
        let at = |port| PortId::new(device, port);
        match output {
            From::Transmit { port, frame } => self.transmit(at(port), frame),
            From::Injected { port, service_level, packets } => {
                self.for_host(at(port), ToHost::Injected { service_level, packets })
            }
            From::Accept { port, packet } => self.for_host(at(port), ToHost::Accept(packet)),
            From::Refused { port, dest_qp } => self.for_host(at(port), ToHost::Refused(dest_qp)),
            From::HostPort { port, facts } => self.for_host(at(port), ToHost::Facts(facts)),
            From::Deliver { client, mad } => self.deliver(device, client, mad),
            From::Attached { client, port, outcome } => self.attached(at(port), client, outcome),
            From::Registered { client, key, outcome } => {
                self.claimed(device, client, key, outcome.is_ok());
                None
            }
            From::PortChanged { client, up } => self.port_changed(device, client, up),
            From::SetLink { port, enabled, parameters } => self.set_link(at(port), enabled, parameters),
            From::Overrun { port, lane } => self.overrun(at(port), lane),
            From::Event(event) => Some(Output::Event { device, event }),
        }
    }

    #[inline(always)]
    fn transmit(&mut self, at: PortId, frame: Frame) -> Option<Output> {
        if self.is_wired { self.transmit_over_cable(at, frame) } else { Some(Output::Transmit { at, frame }) }
    }

    fn transmit_over_cable(&mut self, at: PortId, frame: Frame) -> Option<Output> {
        let jack = self.devices.get(at.device)?.jack(at.port);
        let Plugged::Inside(end) = jack.cable else { return Some(Output::Transmit { at, frame }) };
        self.may_go_on = true;
        let shown = self.is_watching.then(|| Box::new(frame.clone()));
        match self.cables.send(end, frame) {
            Ok(()) => shown.map(|frame| Output::Crossed { at, received: false, frame }),
            Err(frame) => {
                if let Some(unsent) = frame.unsent() {
                    self.desk()
                        .injections
                        .push_back(device::Input::TransmitDropped { port: at.port, unsent });
                }
                None
            }
        }
    }

    fn overrun(&mut self, at: PortId, lane: weft_wire::VirtualLane) -> Option<Output> {
        if let Plugged::Inside(end) = self.devices.get(at.device)?.jack(at.port).cable {
            self.cables.overrun(end);
            self.may_go_on = true;
        }
        Some(Output::Overrun { at, lane })
    }
}
