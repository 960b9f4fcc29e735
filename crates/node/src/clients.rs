//! Programs attached to devices, some of them through a MAD layer, as a kernel's programs are.

use weft_device as device;
use weft_device::{ClientId, RefusalReason};
use weft_host::mad::{self, AgentId, Limits, MadLayer};
use weft_machine::Machine;
use weft_wire::{AddressedMad, Registration};

use crate::parts::{Attachment, Layer, host_port};
use crate::timers::Owner;
use crate::{Answer, Client, DeviceId, Message, Node, Output, PortId, Reading, Refusal, RequestId, ToHost};

impl Node {
    /// Programs attached to a device.
    pub fn clients(&self, device: DeviceId) -> impl Iterator<Item = Client> {
        let of = |number| Client { device, number: ClientId(number) };
        self.clients.attached.range(of(0)..=of(u16::MAX)).map(|(client, _)| *client)
    }

    pub(crate) fn mad_layer(&self, client: Client) -> Option<&MadLayer> {
        self.clients.attached.get(&client)?.layer.as_deref().map(|layer| &layer.layer)
    }

    /// A number that no program of the device has, and that has not been given away for as long as possible: answers to
    /// a program that is gone must not reach another.
    fn free_client(&mut self, id: DeviceId) -> Option<Client> {
        let slot = self.devices.get_mut(id)?;
        for _ in 1..ClientId::HOSTS {
            slot.last_client = slot.last_client % (ClientId::HOSTS - 1) + 1;
            let client = Client { device: id, number: ClientId(slot.last_client) };
            if !self.clients.attached.contains_key(&client) {
                return Some(client);
            }
        }
        None
    }

    /// Attaches a program; the device decides.
    pub(crate) fn attach(
        &mut self,
        id: RequestId,
        at: PortId,
        registrations: Vec<Registration>,
        is_sm: bool,
        layer: Option<Limits>,
    ) -> Result<Option<Answer>, Refusal> {
        self.devices.get(at.device).ok_or(Refusal::NoSuchDevice(at.device))?;
        let client = self.free_client(at.device).ok_or(Refusal::Attach(RefusalReason::TooMany))?;
        let layer = layer.map(|limits| {
            let timer = self.timers.add(Owner::Layer(client));
            Box::new(Layer { layer: MadLayer::new(limits), timer })
        });
        self.clients.attached.insert(client, Attachment { is_sm, layer });
        self.clients.waiting.push((client, id));
        let number = client.number;
        self.feed(at.device, device::Input::Attach { client: number, port: at.port, registrations });
        Ok(None)
    }

    /// A device has taken a program or a host, or has not.
    pub(crate) fn attached(
        &mut self,
        at: PortId,
        number: ClientId,
        outcome: Result<(), RefusalReason>,
    ) -> Option<Output> {
        if let Some(port) = host_port(number) {
            self.host_attached(PortId::new(at.device, port), outcome.is_ok());
            return outcome.err().map(|reason| Output::HostRefused { at, reason });
        }
        let client = Client { device: at.device, number };
        let place = self.clients.waiting.iter().position(|(waiting, _)| *waiting == client)?;
        let (_, id) = self.clients.waiting.remove(place);
        let outcome = match outcome {
            Ok(()) => {
                if self.clients.attached.get(&client).is_some_and(|attachment| attachment.is_sm) {
                    let is_sm = device::Input::SetSm { client: number, is_sm: true };
                    self.desk().injections.push_back(is_sm);
                }
                Ok(Answer::Client(client))
            }
            Err(reason) => {
                self.forget_client(client);
                Err(Refusal::Attach(reason))
            }
        };
        Some(Output::Answer { id, outcome })
    }

    fn forget_client(&mut self, client: Client) -> bool {
        let Some(attachment) = self.clients.attached.remove(&client) else { return false };
        if let Some(layer) = attachment.layer {
            self.timers.remove(layer.timer);
        }
        true
    }

    /// A program is gone.
    pub(crate) fn detach(&mut self, client: Client) {
        if self.forget_client(client) {
            self.feed(client.device, device::Input::Detach { client: client.number });
        }
    }

    /// A device is gone, and its programs are notified.
    pub(crate) fn detach_all(&mut self, id: DeviceId) {
        let clients: Vec<Client> = self.clients(id).collect();
        for client in clients {
            self.forget_client(client);
            self.say(Output::Detached { client });
        }
    }

    /// A program sends a MAD.
    pub(crate) fn client_sends(&mut self, client: Client, mad: Box<AddressedMad>) {
        if self.clients.attached.contains_key(&client) && !self.is_frozen(client.device) {
            self.feed(client.device, device::Input::Send { client: client.number, mad });
        }
    }

    /// A MAD for a program, or for a host.
    pub(crate) fn deliver(
        &mut self,
        device: DeviceId,
        number: ClientId,
        mad: Box<AddressedMad>,
    ) -> Option<Output> {
        if let Some(port) = host_port(number) {
            return self.for_host(PortId::new(device, port), ToHost::Receive(mad));
        }
        let client = Client { device, number };
        if self.clients.attached.get(&client)?.layer.is_some() {
            self.layer_hears(client, mad::Input::Receive(*mad));
            return None;
        }
        Some(Output::Deliver { client, mad })
    }

    /// The link of a program's port came up or went down; hosts hear of it by their port's facts.
    pub(crate) fn port_changed(&self, device: DeviceId, number: ClientId, up: bool) -> Option<Output> {
        let client = Client { device, number };
        let attachment = self.clients.attached.get(&client)?;
        attachment.layer.is_none().then_some(Output::PortChanged { client, up })
    }

    /// A device's answer to a claim of a MAD layer.
    pub(crate) fn claimed(&mut self, device: DeviceId, number: ClientId, key: u32, granted: bool) {
        let claimed = mad::Input::Claimed { agent: AgentId(key), granted };
        self.layer_hears(Client { device, number }, claimed);
    }

    /// A program with a MAD layer asks something of it, which the layer answers.
    pub(crate) fn ask_layer(
        &mut self,
        client: Client,
        input: mad::Input,
        answer: Option<Answer>,
    ) -> Result<Option<Answer>, Refusal> {
        if self.clients.attached.get(&client).is_none_or(|attachment| attachment.layer.is_none()) {
            return Err(Refusal::NoSuchClient);
        }
        self.take_up(client.device);
        self.layer_hears(client, input);
        Ok(answer)
    }

    /// A program sends through its MAD layer.
    pub(crate) fn layer_sends(&mut self, client: Client, message: Message) {
        let Message { agent, address, timeout_ms, retries, data } = message;
        let input = mad::Input::Send { agent, address, timeout_ms, retries, data };
        // A program that is gone hears nothing.
        let _ = self.ask_layer(client, input, None);
    }

    /// Something for a MAD layer whose device is in hand.
    fn layer_hears(&mut self, client: Client, input: mad::Input) {
        let now = self.now;
        if let Some(layer) = self.layer(client) {
            layer.layer.handle_input(now, input);
            self.drain_layer(client);
        }
    }

    pub(crate) fn wake_layer(&mut self, client: Client) {
        let now = self.now;
        if let Some(layer) = self.layer(client) {
            layer.layer.handle_timeout(now);
            self.drain_layer(client);
        }
    }

    fn layer(&mut self, client: Client) -> Option<&mut Layer> {
        self.clients.attached.get_mut(&client)?.layer.as_deref_mut()
    }

    /// Puts what a MAD layer wants where its device or its program gets it.
    fn drain_layer(&mut self, client: Client) {
        // What the layer says is taken before anything else goes on.
        self.may_go_on = true;
        let desk = self.desk.get_or_insert_default();
        let Some(attachment) = self.clients.attached.get_mut(&client) else { return };
        let Some(layer) = attachment.layer.as_deref_mut() else { return };
        let number = client.number;
        while let Some(output) = layer.layer.poll_output() {
            let said = match output {
                mad::Output::Transmit(mad) => {
                    desk.injections.push_back(device::Input::Send { client: number, mad: Box::new(mad) });
                    continue;
                }
                mad::Output::Claim { agent, registration } => {
                    let register = device::Input::Register { client: number, key: agent.0, registration };
                    desk.injections.push_back(register);
                    continue;
                }
                mad::Output::Release { agent } => {
                    desk.injections.push_back(device::Input::Unregister { client: number, key: agent.0 });
                    continue;
                }
                mad::Output::Deliver { agent, status, address, data } => {
                    let reading = Box::new(Reading { agent, status, address, data });
                    Output::DeliverThroughLayer { client, reading }
                }
                mad::Output::Registered { request, agent } => {
                    Output::Answer { id: RequestId(request), outcome: Ok(Answer::Agent(agent)) }
                }
                mad::Output::Refused { request, reason } => {
                    Output::Answer { id: RequestId(request), outcome: Err(Refusal::Register(reason)) }
                }
                mad::Output::SendRefused { agent, reason } => Output::SendRefused { client, agent, reason },
            };
            desk.ready.push_back(said);
        }
        let (timer, moment) = (layer.timer, layer.layer.poll_timeout());
        self.set_timer(timer, moment);
    }
}
