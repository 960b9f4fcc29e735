//! The hosts behind adapters' ports: one [`Stack`] each, attached to its device like a program.
//!
//! ```text
//!   Request::Command ──▶ stack ── Send, Inject ─────────────────────▶ device
//!                              ◀─ Receive, Accept, Injected, Port ───
//! ```

use weft_device as device;
use weft_host::stack::{self, Stack, StackOptions};
use weft_host::traffic::{Command, FlowReport};
use weft_machine::Machine;
use weft_wire::{AddressedMad, PortNum};

use crate::devices::{Jack, Plugged};
use crate::parts::{Host, host_client};
use crate::timers::Owner;
use crate::{Answer, DeviceId, Node, Output, PortId, Refusal, RequestId, ToHost};

impl Node {
    /// The host behind a port.
    pub fn stack(&self, at: PortId) -> Option<&Stack> {
        let hosts = &self.devices.get(at.device)?.hosts;
        hosts.get(usize::from(at.port.0))?.as_deref().map(|host| &host.stack)
    }

    /// What became of the flows of every host, in order of device and port.
    pub fn flows(&self) -> impl Iterator<Item = (PortId, Vec<FlowReport>)> {
        self.devices.iter().flat_map(|(id, slot)| {
            let hosts = (0..=u8::MAX).zip(&slot.hosts);
            hosts.filter_map(move |(port, host)| {
                Some((PortId::new(id, PortNum(port)), host.as_deref()?.stack.reports()))
            })
        })
    }

    /// Puts a host behind each of these ports of a device that has just been added.
    pub(crate) fn add_hosts(&mut self, id: DeviceId, ports: &[PortNum], options: &StackOptions) {
        self.has_hosts |= !ports.is_empty();
        for &port in ports {
            let place = usize::from(port.0);
            let timer = self.timers.add(Owner::Host(PortId::new(id, port)));
            let host = Host { stack: Stack::new(options.clone()), timer, is_attached: false };
            let Some(slot) = self.devices.get_mut(id) else { return };
            if slot.hosts.len() <= place {
                slot.hosts.resize_with(place + 1, || None);
            }
            if let Some(replaced) = slot.hosts[place].replace(Box::new(host)) {
                self.timers.remove(replaced.timer);
            }
            let (client, registrations) = (host_client(port), Stack::registrations());
            self.desk().injections.push_back(device::Input::Attach { client, port, registrations });
        }
    }

    /// Puts a host behind a port while the node runs. It hears what the adapter knows of the port.
    pub(crate) fn start_host(
        &mut self,
        at: PortId,
        options: &StackOptions,
    ) -> Result<Option<Answer>, Refusal> {
        let slot = self.devices.get_mut(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        let facts = slot.device.host_facts(at.port).ok_or(Refusal::NoSuchPort(at))?.clone();
        if slot.host(at.port).is_none() {
            self.take_up(at.device);
            self.add_hosts(at.device, &[at.port], options);
            if let Some(vm) = self.slots.all.get(&at.device).and_then(|slot| slot.vm.clone()) {
                self.with_stack(at, |stack| stack.offer_name(&vm));
            }
            self.desk().for_hosts.push_back((at.port, ToHost::Facts(Box::new(facts))));
        }
        Ok(Some(Answer::Done))
    }

    /// Takes a host away. It gives up its subscriptions, so that the manager sends no reports in vain.
    pub(crate) fn end_host(&mut self, at: PortId) -> Result<Option<Answer>, Refusal> {
        let slot = self.devices.get_mut(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        let host = slot.hosts.get_mut(usize::from(at.port.0)).and_then(Option::take);
        let mut host = host.ok_or(Refusal::NoHost(at))?;
        self.later.retain(|(other, _)| *other != at);
        self.timers.remove(host.timer);
        self.take_up(at.device);
        let (client, now) = (host_client(at.port), self.now);
        let injections = &mut self.desk().injections;
        host.stack.unsubscribe(now);
        while let Some(output) = host.stack.poll_output() {
            if let stack::Output::Send(mad) = output {
                injections.push_back(device::Input::Send { client, mad: Box::new(mad) });
            }
        }
        injections.push_back(device::Input::Detach { client });
        Ok(Some(Answer::Done))
    }

    /// The timers of a removed device's hosts are free.
    pub(crate) fn forget_hosts(&mut self, hosts: Vec<Option<Box<Host>>>) {
        hosts.into_iter().flatten().for_each(|host| self.timers.remove(host.timer));
    }

    /// The device took a host in, or has no room for it.
    pub(crate) fn host_attached(&mut self, at: PortId, granted: bool) {
        if let Some(host) = self.devices.get_mut(at.device).and_then(|slot| slot.host(at.port)) {
            host.is_attached = granted;
        }
    }

    /// Something for the host behind a port of the device in hand; without a host it leaves the node.
    #[inline]
    pub(crate) fn for_host(&mut self, at: PortId, what: ToHost) -> Option<Output> {
        if !self.has_hosts || !self.has_host(at) {
            return Some(Output::ToHost { at, what });
        }
        self.desk().for_hosts.push_back((at.port, what));
        None
    }

    #[inline]
    fn has_host(&self, at: PortId) -> bool {
        let hosts = self.devices.get(at.device).map(|slot| &slot.hosts);
        hosts.is_some_and(|hosts| matches!(hosts.get(usize::from(at.port.0)), Some(Some(_))))
    }

    /// A host hears what its adapter has for it.
    #[inline]
    pub(crate) fn give_host(&mut self, at: PortId, what: ToHost) {
        let input = match what {
            ToHost::Receive(mad) => stack::Input::Receive(*mad),
            ToHost::Accept(packet) => stack::Input::Accept(packet),
            ToHost::Injected { service_level, packets } => stack::Input::Injected { service_level, packets },
            ToHost::Refused(dest_qp) => stack::Input::Refused { dest_qp },
            ToHost::Facts(facts) => stack::Input::Port(*facts),
            ToHost::HandedOn(report) => stack::Input::HandedOn(*report),
        };
        self.host_hears(at, input, None);
    }

    /// Something for a host whose device is in hand.
    pub(crate) fn host_hears(&mut self, at: PortId, input: stack::Input, request: Option<RequestId>) {
        let now = self.now;
        if let Some(host) = self.devices.get_mut(at.device).and_then(|slot| slot.host(at.port)) {
            host.stack.handle_input(now, input);
            self.drain_host(at, request);
        }
    }

    /// Does something with the stack behind a port, and what it then wants. The device is in hand, or none is.
    pub(crate) fn with_stack(&mut self, at: PortId, act: impl FnOnce(&mut Stack)) {
        if self.hand != Some(at.device) && !self.take_up(at.device) {
            return;
        }
        if let Some(host) = self.devices.get_mut(at.device).and_then(|slot| slot.host(at.port)) {
            act(&mut host.stack);
            self.drain_host(at, None);
        }
    }

    pub(crate) fn wake_host(&mut self, at: PortId) {
        let now = self.now;
        if let Some(host) = self.devices.get_mut(at.device).and_then(|slot| slot.host(at.port)) {
            host.stack.handle_timeout(now);
            self.drain_host(at, None);
        }
    }

    /// Puts what a host wants where its device gets it.
    fn drain_host(&mut self, at: PortId, request: Option<RequestId>) {
        let port = at.port;
        let Some(slot) = self.devices.get_mut(at.device) else { return };
        let (Some(host), Some(desk)) = (slot.host(port), &mut self.desk) else { return };
        let mut for_guests = Vec::new();
        while let Some(output) = host.stack.poll_output() {
            let input = match output {
                stack::Output::Inject(packet) => device::Input::Inject { port, packet },
                stack::Output::Congestion(event) => device::Input::Congestion { port, event },
                stack::Output::Send(_) if !host.is_attached => continue,
                stack::Output::Send(mad) => {
                    device::Input::Send { client: host_client(port), mad: Box::new(mad) }
                }
                stack::Output::HandOn(report) => {
                    for_guests.push(report);
                    continue;
                }
                stack::Output::Obeyed(outcome) => {
                    let outcome =
                        outcome.map(|()| Answer::Done).map_err(|error| Refusal::Command(error.to_string()));
                    desk.ready.extend(request.map(|id| Output::Answer { id, outcome }));
                    self.may_go_on = true;
                    continue;
                }
            };
            desk.injections.push_back(input);
        }
        let (timer, moment) = (host.timer, host.stack.poll_timeout());
        self.set_timer(timer, moment);
        for report in for_guests {
            self.hand_on(at, &report);
        }
    }

    /// What the host of a physical function hands on goes to those of the functions that are behind the same vSwitch now.
    fn hand_on(&mut self, at: PortId, report: &AddressedMad) {
        let inside = |jack: Jack| match jack.cable {
            Plugged::Inside(end) => Some(self.cables.peer(end)),
            Plugged::Outside | Plugged::Nothing => None,
        };
        let vswitch = self.devices.get(at.device).and_then(|slot| inside(slot.jack(at.port)));
        let Some(vswitch) = vswitch.and_then(|end| self.devices.get(end.device)) else { return };
        let is_guest = |end: &PortId| self.slots.all.contains_key(&end.device) && self.is_seated(*end);
        let guests = vswitch.cabled().filter_map(|(_, jack)| inside(jack)).filter(is_guest);
        let heard = guests.map(|guest| (guest, ToHost::HandedOn(Box::new(*report))));
        let heard: Vec<_> = heard.collect();
        self.may_go_on |= !heard.is_empty();
        self.later.extend(heard);
    }

    /// Tells a host to do something.
    pub(crate) fn command(
        &mut self,
        id: RequestId,
        at: PortId,
        command: Command,
    ) -> Result<Option<Answer>, Refusal> {
        let slot = self.devices.get_mut(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        let host = slot.host(at.port).ok_or(Refusal::NoHost(at))?;
        if !host.is_attached {
            return Err(Refusal::HostNotAttached(at));
        }
        self.take_up(at.device);
        self.host_hears(at, stack::Input::Command(command), Some(id));
        Ok(None)
    }
}
