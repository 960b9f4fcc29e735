//! Requests to a node: devices, cables and programs come and go.

use weft_device as device;
use weft_device::Device;
use weft_host::mad::{self, Limits};
use weft_machine::Time;
use weft_wire::{LinkParameters, PortNum};

use crate::devices::{Jack, Plugged, Slot};
use crate::timers::Owner;
use crate::{Answer, DeviceId, NewDevice, Node, Output, PortId, Refusal, Request, RequestId};

impl Node {
    /// Does what is asked; `None` when the answer comes with the outputs that follow.
    pub(crate) fn carry_out(&mut self, id: RequestId, request: Request) -> Result<Option<Answer>, Refusal> {
        match request {
            Request::AddDevice(new) => Ok(Some(Answer::Device(self.add_device(&new)))),
            Request::RemoveDevice(device) => self.remove_device(device),
            Request::Connect { ends, delay } => self.connect(ends, delay),
            Request::Lead { at, delay } => {
                self.free_jack(at)?;
                self.set_jack(at, Jack::of(Plugged::Outside, delay));
                Ok(Some(Answer::Done))
            }
            Request::Disconnect(at) => self.disconnect(at),
            Request::Begin => {
                self.cables.begin();
                Ok(Some(Answer::Done))
            }
            Request::Plug { at, plugged } => self.plug(at, plugged),
            Request::Attach { at, registrations, is_sm } => self.attach(id, at, registrations, is_sm, None),
            Request::Open { at, message_bytes } => {
                let limits = Limits { message_bytes, ..Limits::default() };
                self.attach(id, at, Vec::new(), false, Some(limits))
            }
            Request::Register { client, registration } => {
                self.ask_layer(client, mad::Input::Register { request: id.0, registration }, None)
            }
            Request::Unregister { client, agent } => {
                self.ask_layer(client, mad::Input::Unregister { agent }, Some(Answer::Done))
            }
            Request::Command { at, command } => self.command(id, at, command),
            Request::StartHost { at, options } => self.start_host(at, &options),
            Request::EndHost { at } => self.end_host(at),
            Request::Describe { device, text } => {
                self.devices.get(device).ok_or(Refusal::NoSuchDevice(device))?;
                self.feed(device, device::Input::Describe { text });
                Ok(Some(Answer::Done))
            }
            Request::Watch(watch) => {
                self.is_watching = watch;
                Ok(Some(Answer::Done))
            }
            Request::AddSlot { new, empty } => Ok(Some(Answer::Device(self.add_slot(new, empty)))),
            Request::Impair { at, how, seed } => self.impair(at, how, seed).map(|()| Some(Answer::Done)),
            Request::Mend { at, how, seed } => self.mend(at, how, seed).map(|()| Some(Answer::Done)),
            Request::Freeze { device, frozen } => self.freeze(device, frozen),
            Request::Vm { device, command } => self.vm(device, *command).map(Some),
        }
    }

    pub(crate) fn add_device(&mut self, new: &NewDevice) -> DeviceId {
        let device = Device::new(&new.config).with_incarnation(new.incarnation);
        let id = self.devices.next_id();
        let timer = self.timers.add(Owner::Device(id));
        self.devices.add(Slot::new(device, timer));
        if let Some(options) = &new.stack {
            self.take_up(id);
            self.add_hosts(id, &new.hosts, options);
        }
        id
    }

    fn remove_device(&mut self, id: DeviceId) -> Result<Option<Answer>, Refusal> {
        let cabled: Vec<PortNum> =
            self.devices.get(id).ok_or(Refusal::NoSuchDevice(id))?.cabled().map(|(port, _)| port).collect();
        for port in cabled {
            // A cable from the device to itself goes with the first of its ends.
            if self.devices.get(id).is_some_and(|slot| slot.jack(port).cable != Plugged::Nothing) {
                self.take_out(PortId::new(id, port))?;
            }
        }
        self.detach_all(id);
        let Some(slot) = self.devices.remove(id) else { return Ok(None) };
        self.timers.remove(slot.timer);
        self.forget_hosts(slot.hosts);
        self.slots.remove(id);
        self.impaired.forget(id);
        self.degraded.forget(id);
        Ok(Some(Answer::Removed(Box::new(slot.device.data_account()))))
    }

    /// Whether a cable can be put into a port.
    fn free_jack(&self, at: PortId) -> Result<LinkParameters, Refusal> {
        let slot = self.devices.get(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        let parameters = slot.device.link_parameters(at.port).ok_or(Refusal::NoSuchPort(at))?;
        let parameters = self.degraded.limited(at, parameters);
        if slot.jack(at.port).cable == Plugged::Nothing { Ok(parameters) } else { Err(Refusal::Cabled(at)) }
    }

    /// The port's own wish for its link stays, whether a function is there, and a fault: that is not the cable's.
    fn set_jack(&mut self, at: PortId, jack: Jack) {
        self.is_wired = true;
        if let Some(slot) = self.devices.get_mut(at.device) {
            let known = slot.jack_mut(at.port);
            let Jack { enabled, seated, impaired, held_down, frozen, .. } = *known;
            *known = Jack { enabled, seated, impaired, held_down, frozen, ..jack };
        }
    }

    fn connect(&mut self, ends: [PortId; 2], delay: Time) -> Result<Option<Answer>, Refusal> {
        let [a, b] = ends;
        let enabled = |at: PortId| {
            self.devices
                .get(at.device)
                .is_some_and(|slot| Jack { plugged: true, ..slot.jack(at.port) }.may_be_up())
        };
        let both = [(a, self.free_jack(a)?, enabled(a)), (b, self.free_jack(b)?, enabled(b))];
        if a == b {
            return Err(Refusal::Cabled(b));
        }
        for (at, end) in ends.into_iter().zip(self.cables.connect(both)) {
            self.set_jack(at, Jack::of(Plugged::Inside(end), delay));
        }
        Ok(Some(Answer::Done))
    }

    fn disconnect(&mut self, at: PortId) -> Result<Option<Answer>, Refusal> {
        if self.take_out(at)? == Plugged::Outside {
            self.feed(at.device, device::Input::LinkDown { port: at.port });
        }
        Ok(Some(Answer::Done))
    }

    /// Takes a cable out of its ports. The ends of one within the node hear of it with what crosses cables next.
    fn take_out(&mut self, at: PortId) -> Result<Plugged, Refusal> {
        let slot = self.devices.get(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        let jack = slot.jack(at.port);
        let ends = match jack.cable {
            Plugged::Nothing => return Err(Refusal::NotCabled(at)),
            Plugged::Outside => vec![at],
            Plugged::Inside(end) => {
                let peer = self.cables.peer(end);
                self.cables.remove(end);
                vec![at, peer]
            }
        };
        for end in ends {
            self.lose_held(end);
            self.set_jack(end, Jack::of(Plugged::Nothing, Time::ZERO));
        }
        Ok(jack.cable)
    }

    fn plug(&mut self, at: PortId, plugged: bool) -> Result<Option<Answer>, Refusal> {
        let slot = self.devices.get_mut(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        if slot.jack(at.port).cable == Plugged::Nothing {
            return Err(Refusal::NotCabled(at));
        }
        slot.jack_mut(at.port).plugged = plugged;
        let said = self.apply_jack(at);
        self.desk().ready.extend(said);
        Ok(Some(Answer::Done))
    }

    /// A function comes into its slot, or leaves it.
    pub(crate) fn seat(&mut self, at: PortId, seated: bool) {
        let Some(slot) = self.devices.get_mut(at.device) else { return };
        slot.jack_mut(at.port).seated = seated;
        if !seated {
            self.lose_held(at);
        }
        let said = self.apply_jack(at);
        self.desk().ready.extend(said);
    }

    /// Whether there is a function in the slot that a port is of.
    pub(crate) fn is_seated(&self, at: PortId) -> bool {
        self.devices.get(at.device).is_some_and(|slot| slot.jack(at.port).seated)
    }

    /// The port of another device than before is at the cable: it is on, and says in its hello what it can do.
    pub(crate) fn offer_link(&mut self, at: PortId) {
        let Some(slot) = self.devices.get_mut(at.device) else { return };
        slot.jack_mut(at.port).enabled = true;
        let (cable, parameters) = (slot.jack(at.port).cable, slot.device.link_parameters(at.port));
        if let (Plugged::Inside(end), Some(parameters)) = (cable, parameters) {
            self.cables.set_parameters(end, self.degraded.limited(at, parameters));
        }
    }

    /// A device switches the link of one of its ports.
    pub(crate) fn set_link(
        &mut self,
        at: PortId,
        enabled: bool,
        parameters: LinkParameters,
    ) -> Option<Output> {
        self.may_go_on = true;
        let parameters = self.degraded.limited(at, parameters);
        let slot = self.devices.get_mut(at.device)?;
        match slot.jack(at.port).cable {
            Plugged::Nothing => {
                slot.jack_mut(at.port).enabled = enabled;
                let enabled = slot.jack(at.port).may_be_up();
                return Some(Output::SetLink { at, enabled, parameters });
            }
            Plugged::Outside => {}
            Plugged::Inside(end) => self.cables.set_parameters(end, parameters),
        }
        slot.jack_mut(at.port).enabled = enabled;
        self.apply_jack(at)
    }

    /// A link may be up when its cable is plugged in and its port allows it.
    fn apply_jack(&mut self, at: PortId) -> Option<Output> {
        let slot = self.devices.get(at.device)?;
        let jack = slot.jack(at.port);
        match jack.cable {
            Plugged::Nothing => None,
            Plugged::Inside(end) => {
                self.cables.set_enabled(end, jack.may_be_up());
                None
            }
            Plugged::Outside => self.link_wish(at),
        }
    }

    /// What the driver of a port's link is to know.
    fn link_wish(&self, at: PortId) -> Option<Output> {
        let slot = self.devices.get(at.device)?;
        let parameters = self.degraded.limited(at, slot.device.link_parameters(at.port)?);
        Some(Output::SetLink { at, enabled: slot.jack(at.port).may_be_up(), parameters })
    }

    /// A fault changes what a port's link may do. The driver hears of it also without a cable.
    pub(crate) fn show_link(&mut self, at: PortId) {
        self.may_go_on = true;
        let Some(slot) = self.devices.get(at.device) else { return };
        let said = match slot.jack(at.port).cable {
            Plugged::Inside(end) => {
                if let Some(parameters) = slot.device.link_parameters(at.port) {
                    self.cables.set_parameters(end, self.degraded.limited(at, parameters));
                }
                self.apply_jack(at)
            }
            Plugged::Nothing | Plugged::Outside => self.link_wish(at),
        };
        self.desk().ready.extend(said);
    }
}
