//! All the links of one agent, and what the agent may ask of them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use weft_wire::{DataPacket, FlowControl, LinkParameters, VirtualLane};

use crate::cable::{Cable, DropReason, Handler, LinkIndex, PeerStats, SendOutcome, Stats};
use crate::config::LinkConfig;
use crate::credentials::Credentials;
use crate::gate::Gate;
use crate::handshake_slots::HandshakeSlots;
use crate::lanes::Frame;
use crate::process::Processes;
use crate::reason::{CloseCode, DownReason};
use crate::resolve::Resolver;
use crate::state::{FreeIndices, Inner, Slot};
use crate::transport::{self, BindError};
use crate::{accept, dial, liveness};

/// An agent's links: one UDP socket, one QUIC connection per cable.
///
/// Lives in one thread: its tasks are spawned with `spawn_local`, so it must be made inside a
/// [`tokio::task::LocalSet`] or a [`tokio::runtime::LocalRuntime`].
#[derive(Clone)]
pub struct Links {
    inner: Rc<Inner>,
}

impl Links {
    /// Opens the UDP socket and begins to accept. Dialling waits for [`Links::start_dialling`].
    pub fn bind(
        address: SocketAddr,
        credentials: &Credentials,
        config: LinkConfig,
        cables: Vec<Cable>,
        handler: Rc<dyn Handler>,
    ) -> Result<Self, BindError> {
        let mut by_ends = BTreeMap::new();
        for (index, cable) in cables.iter().enumerate() {
            if by_ends.insert((cable.local, cable.remote), LinkIndex(index)).is_some() {
                return Err(BindError::DuplicateCable(cable.local, cable.remote));
            }
        }
        let (endpoint, client) = transport::open(address, credentials, &config, cables.len())?;
        let local = endpoint.local_addr().map_err(|source| BindError::Socket { address, source })?;
        let places = HandshakeSlots::new(&cables);
        let free = FreeIndices::default();
        let slots = (0..).map(LinkIndex).zip(cables);
        let slots = slots.map(|(link, cable)| Some(Rc::new(Slot::new(link, cable, &free)))).collect();
        let slots = RefCell::new(slots);
        let by_ends = RefCell::new(by_ends);
        let inner = Rc::new(Inner {
            endpoint,
            local,
            client,
            credentials: credentials.clone(),
            config,
            slots,
            free,
            by_ends,
            handler,
            dialling: Cell::new(false),
            stopped: Cell::new(false),
            places,
            gate: Gate::new(),
            resolver: Resolver::new(),
            processes: Processes::new(),
            peers: Cell::default(),
        });
        tokio::task::spawn_local(accept::accept_forever(inner.clone()));
        tokio::task::spawn_local(liveness::watch(inner.clone()));
        tokio::task::spawn_local(Inner::end_revoked(Rc::downgrade(&inner), credentials.revocations()));
        Ok(Self { inner })
    }

    /// Where this agent listens.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.inner.endpoint.local_addr()
    }

    /// Begins to dial the cables that this agent dials, and goes on for ever.
    pub fn start_dialling(&self) {
        if self.inner.dialling.replace(true) {
            return;
        }
        for slot in self.inner.slots.borrow().iter().flatten() {
            self.dial(slot);
        }
    }

    /// Dials a cable from now on, if this end is to.
    fn dial(&self, slot: &Rc<Slot>) {
        if slot.cable.dials() {
            tokio::task::spawn_local(dial::dial_forever(self.inner.clone(), slot.clone()));
        }
    }

    /// Puts in another cable; none where one with the same ends is there. It is dialled as the others are.
    pub fn add(&self, cable: Cable) -> Option<LinkIndex> {
        let ends = (cable.local, cable.remote);
        let link = match self.inner.by_ends.borrow_mut().entry(ends) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(vacant) => *vacant.insert(self.inner.next_index()),
        };
        self.inner.places.add(&cable);
        let slot = Rc::new(Slot::new(link, cable, &self.inner.free));
        let mut slots = self.inner.slots.borrow_mut();
        match slots.get_mut(link.0) {
            Some(place) => *place = Some(slot.clone()),
            None => slots.push(Some(slot.clone())),
        }
        drop(slots);
        if self.inner.dialling.get() {
            self.dial(&slot);
        }
        Some(link)
    }

    /// Takes a cable out: its link goes down, and its peer is refused. Another cable may get its index once no event of this one
    /// can follow.
    ///
    /// The `Down` event follows from the link's own task, not from within this call.
    pub fn remove(&self, link: LinkIndex) {
        let slot = self.inner.slots.borrow_mut().get_mut(link.0).and_then(Option::take);
        let Some(slot) = slot else { return };
        self.inner.by_ends.borrow_mut().remove(&(slot.cable.local, slot.cable.remote));
        self.inner.places.remove(&slot.cable);
        slot.removed.set(true);
        slot.enabled.set(false);
        slot.close(CloseCode::Cut, DownReason::Cut);
        slot.wake.notify_one();
        slot.gone.notify_one();
    }

    /// The links in order.
    pub fn links(&self) -> Vec<LinkIndex> {
        self.inner.slots.borrow().iter().flatten().map(|slot| slot.link).collect()
    }

    /// The cable of a link that is there.
    pub fn cable(&self, link: LinkIndex) -> Option<Cable> {
        self.inner.slot(link).map(|slot| slot.cable.clone())
    }

    /// Whether hellos have passed in both directions.
    pub fn is_up(&self, link: LinkIndex) -> bool {
        self.inner.slot(link).is_some_and(|slot| slot.live.borrow().is_some())
    }

    /// How many links are up.
    pub fn up_count(&self) -> usize {
        self.inner.slots.borrow().iter().flatten().filter(|slot| slot.live.borrow().is_some()).count()
    }

    /// How many cables this agent dials that are not up.
    pub fn to_dial_count(&self) -> usize {
        let slots = self.inner.slots.borrow();
        slots.iter().flatten().filter(|slot| slot.cable.dials() && slot.live.borrow().is_none()).count()
    }

    /// What a link has done so far.
    pub fn stats(&self, link: LinkIndex) -> Stats {
        self.inner.slot(link).map(|slot| slot.stats()).unwrap_or_default()
    }

    /// How long the peer of a link that stands may be silent, and the round trip to it: the longer the one, the longer the other.
    pub fn patience(&self, link: LinkIndex) -> Option<(Duration, Duration)> {
        let slot = self.inner.slot(link)?;
        let live = slot.live();
        let live = live.as_ref()?;
        Some((live.timeout(self.inner.link_timeout()), live.connection.rtt()))
    }

    /// Times such a peer had not run for the whole link timeout because it waited for a core.
    pub fn processes_starved(&self) -> u64 {
        self.inner.processes.starved()
    }

    /// How many peers are processes of this machine, whose end the kernel tells.
    pub fn processes_watched(&self) -> usize {
        self.inner.processes.count()
    }

    /// What became of peers that knocked, on whatever link or none.
    pub fn peer_stats(&self) -> PeerStats {
        self.inner.peers.get()
    }

    /// Hands over one packet. Never blocks and never waits: what cannot go or queue is dropped and counted.
    ///
    /// Lane 15 goes as one unreliable datagram, other lanes on their ordered streams.
    pub fn send(&self, link: LinkIndex, lane: VirtualLane, packet: Bytes) -> SendOutcome {
        self.hand_over(link, lane, Frame::Packet(packet))
    }

    /// Hands over one packet whose body is a length, on its own lane.
    pub fn send_data(&self, link: LinkIndex, packet: DataPacket) -> SendOutcome {
        self.hand_over(link, packet.vl, Frame::Data(packet))
    }

    /// Hands over what a lane's buffer has room for, in order with the lane's packets.
    pub fn send_credit(&self, link: LinkIndex, flow_control: FlowControl) -> SendOutcome {
        self.hand_over(link, flow_control.vl, Frame::Credit(flow_control))
    }

    fn hand_over(&self, link: LinkIndex, lane: VirtualLane, frame: Frame) -> SendOutcome {
        let slots = self.inner.slots.borrow();
        let Some(slot) = slots.get(link.0).and_then(Option::as_ref) else {
            return SendOutcome::Dropped(DropReason::NoSuchLane);
        };
        let is_packet = frame.is_packet();
        let outcome = match slot.live.borrow().as_ref() {
            None => SendOutcome::Dropped(DropReason::LinkDown),
            Some(live) => live.send(lane, frame, &self.inner.config),
        };
        slot.count(|stats| match (outcome, is_packet) {
            (SendOutcome::Dropped(_), true) => stats.dropped_packets += 1,
            (SendOutcome::Dropped(_), false) => {}
            (_, true) => stats.sent_packets += 1,
            (_, false) => stats.sent_credits += 1,
        });
        if outcome == SendOutcome::Dropped(DropReason::QueueFull) && lane != VirtualLane::MANAGEMENT {
            slot.count(|stats| stats.overflows += 1);
            slot.close(CloseCode::Overflow, DownReason::Overflow);
        }
        outcome
    }

    /// Takes a link down whose peer has sent more than its credit. It may come up again, with credits that begin again.
    ///
    /// The `Down` event follows from the link's own task, not from within this call.
    pub fn overrun(&self, link: LinkIndex) {
        if let Some(slot) = self.inner.slot(link) {
            slot.count(|stats| stats.overruns += 1);
            slot.close(CloseCode::Overrun, DownReason::Overrun);
        }
    }

    /// Ends all links, so that both ends prove themselves again with the identities that they have now.
    ///
    /// The `Down` events follow from the links' own tasks, not from within this call.
    pub fn prove_again(&self) {
        for slot in self.inner.slots.borrow().iter().flatten() {
            slot.close(CloseCode::OtherIdentity, DownReason::OtherIdentity);
            slot.wake.notify_one();
        }
    }

    /// Cuts a link or lets it come up again. While cut, the cable is not dialled and its peer is refused.
    ///
    /// The `Down` event follows from the link's own task, not from within this call.
    pub fn set_enabled(&self, link: LinkIndex, enabled: bool) {
        let Some(slot) = self.inner.slot(link) else { return };
        if slot.enabled.replace(enabled) == enabled {
            return;
        }
        if enabled {
            slot.wake.notify_one();
        } else {
            slot.close(CloseCode::Cut, DownReason::Cut);
        }
    }

    /// What this end enables from the next hello on.
    pub fn set_parameters(&self, link: LinkIndex, parameters: LinkParameters) {
        if let Some(slot) = self.inner.slot(link) {
            slot.parameters.set(parameters);
        }
    }

    /// Closes every link and tells the peers; returns when the closing packets are out.
    pub async fn shutdown(&self) {
        self.inner.stopped.set(true);
        self.inner.endpoint.close(CloseCode::Shutdown.var_int(), b"agent stopped");
        for slot in self.inner.slots.borrow().iter().flatten() {
            slot.enabled.set(false);
            slot.close(CloseCode::Shutdown, DownReason::Shutdown);
            slot.wake.notify_one();
        }
        // The closing packets leave when the connections' tasks next run; their draining need not be awaited.
        // The runtime polls some sixty tasks before it lets a yielding one go on.
        let count = self.inner.slots.borrow().len();
        for _ in 0..4 + count / 8 {
            tokio::task::yield_now().await;
        }
    }
}
