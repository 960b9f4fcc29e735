//! Traffic of the agent's cables, and changes of the cabling.

use std::fmt::Display;

use bytes::Bytes;
use weft_device::Unsent;
use weft_link::{CableEnd, DownReason, LinkEvent, LinkIndex, Links, SendOutcome};
use weft_node::{Frame, Input, PortId};
use weft_wire::{LinkParameters, Packet, VirtualLane};

use crate::core::Core;
use crate::counter::Counter;
use crate::listener::Direction;
use crate::rates::Rate;

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
        let link = match &event {
            LinkEvent::Up { link, .. }
            | LinkEvent::Down { link, .. }
            | LinkEvent::Received { link, .. }
            | LinkEvent::ReceivedData { link, .. }
            | LinkEvent::Credit { link, .. }
            | LinkEvent::Lookup { link, .. } => Some(*link),
            LinkEvent::Refused { link, .. } => *link,
        };
        let at = link.and_then(|link| self.wiring.of_link(link));
        match (event, at) {
            (LinkEvent::Received { lane, packet, .. }, Some(at)) => self.bytes_came(at, lane, packet),
            (LinkEvent::ReceivedData { packet, .. }, Some(at)) => self.frame_came(at, Frame::Data(packet)),
            (LinkEvent::Credit { flow_control, .. }, Some(at)) => {
                self.frame_came(at, Frame::Credit(flow_control));
            }
            (LinkEvent::Up { link, peer }, Some(at)) => {
                self.wiring.tell_up(link, true);
                self.link_came_up(at);
                self.feed(Input::LinkUp { at, peer });
            }
            (LinkEvent::Down { link, reason }, Some(at)) => {
                self.wiring.tell_up(link, false);
                if reason == DownReason::Shutdown {
                    // The agent's end is reported once, not once for every link.
                    self.recorder.count(Counter::LinkDown);
                    self.signals.links.notify_one();
                } else {
                    self.link_went_down(at, &reason);
                }
                self.feed(Input::LinkDown { at });
            }
            (LinkEvent::Lookup { link, failure }, _) => self.looked_up(link, failure),
            (LinkEvent::Refused { address, reason, .. }, at) => {
                let who = at.and_then(|at| Some((&self.names.of(at.device)?.who, at.port)));
                self.recorder.refused(who, link, address, &reason);
            }
            (_, None) => {}
        }
    }

    /// A peer's name does not resolve any more, or does again.
    fn looked_up(&mut self, link: LinkIndex, failure: Option<String>) {
        let peer = self.links.as_ref().and_then(|links| Some(links.cable(link)?.remote_addr.to_string()));
        let peer = peer.unwrap_or_default();
        match failure {
            Some(error) => {
                self.recorder.count(Counter::PeerNamesFailed);
                tracing::warn!(peer, error, "a peer's name does not resolve; it is tried again");
            }
            None => tracing::info!(peer, "a peer's name resolves again"),
        }
    }

    /// A packet's bytes, not looked at yet.
    fn bytes_came(&mut self, at: PortId, lane: VirtualLane, bytes: Bytes) {
        // A copy for the tap, if there is one; the packet itself is taken apart.
        let tapped = self.taps.is_active().then(|| bytes.clone());
        let damaged = |physical| (Input::Damaged { at, physical }, Direction::Damaged);
        let (input, direction) = match Packet::parse(Vec::from(bytes)) {
            Ok(packet) if packet.vl() == lane => {
                (Input::Arrived { at, frame: Frame::Packet(packet) }, Direction::Received)
            }
            Ok(_) => damaged(false),
            Err(refusal) => damaged(refusal.is_physical()),
        };
        if let Some(bytes) = tapped {
            self.tap(at, direction, &bytes);
        }
        self.feed(input);
    }

    #[inline]
    fn frame_came(&mut self, at: PortId, frame: Frame) {
        if self.taps.is_active() {
            self.tap_frame(at, Direction::Received, &frame);
        }
        self.feed(Input::Arrived { at, frame });
    }

    /// The link at a port stands.
    pub(crate) fn link_came_up(&mut self, at: PortId) {
        let peer = self.peer(at);
        if let Some(named) = self.names.of(at.device) {
            self.recorder.link_up(&named.who, at.port, peer);
        }
        self.signals.links.notify_one();
    }

    /// The ends of a link have agreed on width and speed.
    pub(crate) fn link_was_trained(&mut self, at: PortId) {
        let port = self.node.device(at.device).and_then(|device| device.port_snapshot(at.port));
        let rates =
            port.and_then(|port| Some([Rate::best(port.link_active)?, Rate::best(port.link_supported)?]));
        let degraded = rates.filter(|[rate, supported]| supported.exceeds(*rate));
        let peer = self.peer(at);
        if let Some((rates, named)) = degraded.zip(self.names.of(at.device)) {
            self.recorder.link_degraded(&named.who, at.port, peer, rates);
        }
    }

    /// The link at a port is gone.
    pub(crate) fn link_went_down(&mut self, at: PortId, why: &impl Display) {
        let peer = self.peer(at);
        if let Some(named) = self.names.of(at.device) {
            self.recorder.link_down(&named.who, at.port, peer, why);
        }
        self.signals.links.notify_one();
    }

    /// The port at the other end of the cable at a port.
    pub(crate) fn peer(&self, at: PortId) -> Option<CableEnd> {
        self.wiring.at(at).map(|cabled| cabled.peer)
    }

    /// Hands a frame to the cable at a port and shows it to those who listen, if it went; tells what did not.
    #[inline]
    pub(crate) fn transmit(&mut self, at: PortId, frame: Frame) -> Option<Unsent> {
        let unsent = frame.unsent();
        let outcome =
            if self.taps.is_active() { self.transmit_tapped(at, frame) } else { self.hand_over(at, frame) };
        // Without a link no one counts credits.
        if matches!(outcome, Some(SendOutcome::Sent | SendOutcome::Queued)) { None } else { unsent }
    }

    #[inline]
    pub(crate) fn hand_over(&mut self, at: PortId, frame: Frame) -> Option<SendOutcome> {
        let (links, link) = (self.links.as_ref()?, self.wiring.at(at)?.link?);
        Some(match frame {
            Frame::Packet(packet) => {
                let lane = packet.vl();
                links.send(link, lane, Bytes::from(packet.into_bytes()))
            }
            Frame::Data(packet) => links.send_data(link, packet),
            Frame::Credit(flow_control) => links.send_credit(link, flow_control),
        })
    }

    /// The other end of the cable at a port has sent more than its credit: it is disconnected.
    pub(crate) fn overrun(&mut self, at: PortId, lane: VirtualLane) {
        self.recorder.count(Counter::CreditOverruns);
        if let Some(named) = self.names.of(at.device) {
            self.recorder.overrun(&named.who, at.port, lane);
        }
        if let (Some(links), Some(link)) = (&self.links, self.wiring.at(at).and_then(|cabled| cabled.link)) {
            links.overrun(link);
        }
    }

    pub(crate) fn set_link(&mut self, at: PortId, enabled: bool, parameters: LinkParameters) {
        if let (Some(links), Some(link)) = (&self.links, self.wiring.at(at).and_then(|cabled| cabled.link)) {
            links.set_parameters(link, parameters);
            links.set_enabled(link, enabled);
        }
    }

    /// Whether the link at a port is up.
    pub(crate) fn is_link_up(&self, at: PortId) -> bool {
        match self.wiring.at(at).and_then(|cabled| cabled.link) {
            Some(link) => self.wiring.is_up(link),
            None => self.node.is_link_up(at),
        }
    }

    /// How many cabled ports have a link, how many there are, and how many cables there are still to be dialled.
    pub(crate) fn link_counts(&self) -> LinkCounts {
        LinkCounts {
            up: self.wiring.up_count() + 2 * self.node.inner_links_up(),
            // The cable of an empty slot is down on purpose, at both of its ends.
            total: self.wiring.cabled_count().saturating_sub(2 * self.empty_slots()),
            to_dial: self.links.as_ref().map_or(0, Links::to_dial_count),
        }
    }
}
