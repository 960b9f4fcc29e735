//! What crosses the agent's cables, and what is plugged in.

use bytes::Bytes;
use weft_device::Input;
use weft_link::{CableEnd, DownReason, DropReason, LinkEvent, Links, SendOutcome, TwinEvent};
use weft_machine::Time;
use weft_wire::{DataPacket, FlowControl, LinkParameters, Packet, PortNum, VirtualLane};

use crate::core::Core;
use crate::tap::Direction;
use crate::wiring::{Attachment, Place};

/// What crosses a cable within the agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A packet with all its bytes.
    Packet(Packet),
    /// A packet whose body is a length.
    Data(DataPacket),
    /// What the sender's end of a lane has room for.
    Credit(FlowControl),
}

impl Frame {
    /// Whether it is on lane 15, whose packets take real time.
    fn is_management(&self) -> bool {
        matches!(self, Self::Packet(packet) if packet.vl() == VirtualLane::MANAGEMENT)
    }
}

/// How far an agent's links are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkCounts {
    /// Ports of its devices whose link stands.
    pub(crate) up: usize,
    /// Cabled ports of its devices.
    pub(crate) total: usize,
    /// Cables that it has to dial and that do not stand.
    pub(crate) to_dial: usize,
}

impl Core {
    /// A cable to another agent has something to tell.
    pub(crate) fn link_event(&mut self, event: LinkEvent) {
        let now = self.now();
        let link = match &event {
            LinkEvent::Up { link, .. }
            | LinkEvent::Down { link, .. }
            | LinkEvent::Received { link, .. }
            | LinkEvent::ReceivedData { link, .. }
            | LinkEvent::Credit { link, .. } => Some(*link),
            LinkEvent::Refused { link, .. } => *link,
        };
        let place = link.and_then(|link| self.wiring.link_place(link));
        match (event, place) {
            (LinkEvent::Received { lane, packet, .. }, Some(place)) => {
                self.bytes_came(now, place, lane, packet);
            }
            (LinkEvent::ReceivedData { packet, .. }, Some(place)) => {
                self.frame_came(now, place, Frame::Data(packet));
            }
            (LinkEvent::Credit { flow_control, .. }, Some(place)) => {
                self.frame_came(now, place, Frame::Credit(flow_control));
            }
            (LinkEvent::Up { peer, .. }, Some(place)) => self.link_up(now, place, peer),
            (LinkEvent::Down { reason, .. }, Some(place)) => self.link_down(now, place, &reason),
            (LinkEvent::Refused { address, reason, .. }, place) => {
                let at = place.and_then(|place| Some((&self.devices.get(place.device)?.who, place.port)));
                self.recorder.refused(at, link, address, &reason);
            }
            (_, None) => {}
        }
    }

    /// A packet's bytes, not looked at yet.
    fn bytes_came(&mut self, now: Time, place: Place, lane: VirtualLane, bytes: Bytes) {
        // A copy for the tap, if there is one; the packet itself is taken apart.
        let tapped = self.taps.is_active().then(|| bytes.clone());
        let error = |physical| (Input::ReceiveError { port: place.port, physical }, Direction::Damaged);
        let (input, direction) = match Packet::parse(Vec::from(bytes)) {
            Ok(packet) if packet.vl() == lane => {
                (Input::Receive { port: place.port, packet }, Direction::Received)
            }
            Ok(_) => error(false),
            Err(refusal) => error(refusal.is_physical()),
        };
        if let Some(bytes) = tapped {
            self.tap(place, direction, &bytes);
        }
        self.feed(place.device, now, input);
    }

    #[inline]
    fn frame_came(&mut self, now: Time, place: Place, frame: Frame) {
        if self.taps.is_active() {
            self.tap_frame(place, Direction::Received, &frame);
        }
        let delay = self.wiring.jack(place.device, place.port).delay;
        if delay > Time::ZERO && !frame.is_management() {
            return self.hold_back(now, delay, place, frame);
        }
        self.frame_arrives(now, place, frame);
    }

    #[inline]
    pub(crate) fn frame_arrives(&mut self, now: Time, place: Place, frame: Frame) {
        let port = place.port;
        let input = match frame {
            Frame::Packet(packet) => Input::Receive { port, packet },
            Frame::Data(packet) => Input::ReceiveData { port, packet },
            Frame::Credit(flow_control) => Input::Credit { port, flow_control },
        };
        self.feed(place.device, now, input);
    }

    #[inline]
    pub(crate) fn twin_event(&mut self, now: Time, event: TwinEvent<Frame>) {
        let (TwinEvent::Received { end, .. } | TwinEvent::Up { end, .. } | TwinEvent::Down { end, .. }) =
            event;
        let Some(place) = self.wiring.twin_place(end) else { return };
        match event {
            TwinEvent::Received { packet, .. } => self.frame_came(now, place, packet),
            TwinEvent::Up { peer, .. } => self.link_up(now, place, peer),
            TwinEvent::Down { reason, .. } => self.link_down(now, place, &reason),
        }
    }

    fn link_up(&mut self, now: Time, place: Place, peer: LinkParameters) {
        let jack = self.wiring.jack(place.device, place.port);
        self.recorder.link_up(&self.devices[place.device].who, place.port, jack.peer);
        self.signals.links.notify_one();
        self.feed(place.device, now, Input::LinkUp { port: place.port, peer });
    }

    fn link_down(&mut self, now: Time, place: Place, reason: &DownReason) {
        let jack = self.wiring.jack(place.device, place.port);
        self.recorder.link_down(&self.devices[place.device].who, place.port, jack.peer, reason);
        self.signals.links.notify_one();
        self.held.forget(place);
        self.feed(place.device, now, Input::LinkDown { port: place.port });
    }

    /// Hands a frame to the cable at a port and shows it to those who listen, if it went.
    #[inline]
    pub(crate) fn transmit(&mut self, device: usize, port: PortNum, frame: Frame) -> SendOutcome {
        if self.taps.is_active() {
            return self.transmit_tapped(Place { device, port }, frame);
        }
        self.hand_over(device, port, frame)
    }

    #[inline]
    pub(crate) fn hand_over(&mut self, device: usize, port: PortNum, frame: Frame) -> SendOutcome {
        match (self.wiring.jack(device, port).attachment, &self.links) {
            (Attachment::Twin(end), _) => match frame {
                Frame::Packet(packet) if packet.vl() == VirtualLane::MANAGEMENT => {
                    self.twins.send(end, Frame::Packet(packet))
                }
                frame => self.twins.send_kept(end, frame),
            },
            (Attachment::Link(link), Some(links)) => match frame {
                Frame::Packet(packet) => {
                    let lane = packet.vl();
                    links.send(link, lane, Bytes::from(packet.into_bytes()))
                }
                Frame::Data(packet) => links.send_data(link, packet),
                Frame::Credit(flow_control) => links.send_credit(link, flow_control),
            },
            _ => SendOutcome::Dropped(DropReason::LinkDown),
        }
    }

    /// The other end of the cable at a port has sent more than its credit: it is disconnected.
    pub(crate) fn disconnect(&mut self, place: Place) {
        self.recorder.count("credit_overruns");
        match (self.wiring.jack(place.device, place.port).attachment, &self.links) {
            (Attachment::Twin(end), _) => self.twins.overrun(end),
            (Attachment::Link(link), Some(links)) => links.overrun(link),
            _ => {}
        }
    }

    pub(crate) fn set_link(&mut self, place: Place, enabled: bool, parameters: LinkParameters) {
        let Some(jack) = self.wiring.jack_mut(place) else { return };
        jack.enabled = enabled;
        match (jack.attachment, &self.links) {
            (Attachment::Link(link), Some(links)) => links.set_parameters(link, parameters),
            (Attachment::Twin(end), _) => self.twins.set_parameters(end, parameters),
            _ => {}
        }
        self.apply_jack(place);
    }

    /// Plugs a cable in or out at one of the agent's ports.
    pub(crate) fn set_cable(&mut self, end: CableEnd, plugged: bool) -> Result<(), String> {
        let device =
            self.by_guid.get(&end.guid).copied().ok_or_else(|| format!("node {} is not here", end.guid))?;
        let place = Place { device, port: end.port };
        match self.wiring.jack_mut(place) {
            Some(jack) if jack.attachment != Attachment::None => jack.plugged = plugged,
            _ => return Err(format!("no cable at {end}")),
        }
        self.apply_jack(place);
        Ok(())
    }

    /// A link may be up when its cable is plugged in and its port allows it.
    fn apply_jack(&mut self, place: Place) {
        let jack = self.wiring.jack(place.device, place.port);
        let enabled = jack.plugged && jack.enabled;
        match (jack.attachment, &self.links) {
            (Attachment::Link(link), Some(links)) => links.set_enabled(link, enabled),
            (Attachment::Twin(end), _) => self.twins.set_enabled(end, enabled),
            _ => {}
        }
    }

    /// Lets the cables come up.
    pub(crate) fn start_dialling(&mut self) {
        self.twins.start();
        if let Some(links) = &self.links {
            links.start_dialling();
        }
    }

    /// How many cabled ports have a link, how many there are, and how many cables there are still to be dialled.
    pub(crate) fn link_counts(&self) -> LinkCounts {
        let outside = self.links.as_ref().map_or(0, Links::up_count);
        LinkCounts {
            up: outside + 2 * self.twins.up_count(),
            total: self.wiring.cabled_count(),
            to_dial: self.links.as_ref().map_or(0, Links::to_dial_count),
        }
    }
}
