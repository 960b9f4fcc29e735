//! All the links of one agent: the state of each, and what the agent may ask of them.

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use quinn::{ClientConfig, Endpoint};
use tokio::sync::Notify;
use weft_wire::{DataPacket, FlowControl, LinkParameters, VirtualLane};

use crate::cable::{
    Cable, CableEnd, DropReason, Handler, LinkEvent, LinkIndex, PeerStats, SendOutcome, Stats,
};
use crate::codec::Hello;
use crate::gate::Gate;
use crate::identity::Identity;
use crate::lanes::Frame;
use crate::live::Live;
use crate::places::Places;
use crate::process::Processes;
use crate::reason::{CloseCode, DownReason};
use crate::resolve::Resolver;
use crate::transport::{self, BindError};
use crate::visitor::Visitor;
use crate::{accept, dial, liveness};

/// How an agent's links behave.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The laboratory's name; peers of another are refused.
    pub lab: String,
    /// How long a link may be silent before it is down. Both ends of a cable should agree. A peer that dies without a
    /// word is noticed when between four fifths and the whole of this has passed, or at once where the kernel tells of
    /// its process.
    pub link_timeout_ms: u64,
    /// How long a handshake may take. A busy peer is dialled again only after it.
    pub handshake_timeout_ms: u64,
    /// A number that no other process of this agent has had, such as its start time.
    pub incarnation: u64,
    /// What the jitter of the back-off is drawn from.
    pub jitter_seed: u64,
    /// How many management packets wait, beyond QUIC's own buffer, before one is dropped.
    pub vl15_queue_packets: usize,
    /// How many frames of a data lane wait at most; one more takes the link down. A peer's credit is less than 2048
    /// blocks (IBA 7.9.4) and no packet is shorter than one, so that credits bind first.
    pub lane_queue_frames: usize,
    /// QUIC's own buffer for management packets.
    pub datagram_send_bytes: usize,
    /// The size of UDP payloads. 1400 passes 1500-byte networks with a tunnel in between.
    pub udp_payload_bytes: u16,
}

impl LinkConfig {
    /// The defaults for a laboratory; `incarnation` must differ from process to process.
    pub fn new(lab: &str, incarnation: u64) -> Self {
        Self {
            lab: lab.to_owned(),
            link_timeout_ms: 2000,
            handshake_timeout_ms: 30_000,
            incarnation,
            jitter_seed: incarnation,
            vl15_queue_packets: 1024,
            lane_queue_frames: 4096,
            datagram_send_bytes: 256 << 10,
            udp_payload_bytes: 1400,
        }
    }
}

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
        identity: &Identity,
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
        let (endpoint, client) = transport::open(address, identity, &config, cables.len())?;
        let local = endpoint.local_addr().map_err(|source| BindError::Socket { address, source })?;
        let places = Places::new(&cables);
        let slots = cables.into_iter().map(Slot::new).collect();
        let inner = Rc::new(Inner {
            endpoint,
            local,
            client,
            config,
            slots,
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
        for (index, slot) in self.inner.slots.iter().enumerate() {
            if slot.cable.dials() {
                tokio::task::spawn_local(dial::dial_forever(self.inner.clone(), LinkIndex(index)));
            }
        }
    }

    /// The links in order, with their cables.
    pub fn cables(&self) -> impl Iterator<Item = (LinkIndex, &Cable)> {
        self.inner.slots.iter().enumerate().map(|(index, slot)| (LinkIndex(index), &slot.cable))
    }

    /// Whether hellos have passed in both directions.
    pub fn is_up(&self, link: LinkIndex) -> bool {
        self.inner.slots.get(link.0).is_some_and(|slot| slot.live.borrow().is_some())
    }

    /// How many links are up.
    pub fn up_count(&self) -> usize {
        self.inner.slots.iter().filter(|slot| slot.live.borrow().is_some()).count()
    }

    /// How many cables this agent dials that are not up.
    pub fn to_dial_count(&self) -> usize {
        self.inner.slots.iter().filter(|slot| slot.cable.dials() && slot.live.borrow().is_none()).count()
    }

    /// What a link has done so far.
    pub fn stats(&self, link: LinkIndex) -> Stats {
        self.inner.slots.get(link.0).map(Slot::stats).unwrap_or_default()
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
        let Some(slot) = self.inner.slots.get(link.0) else {
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

    /// Takes a link down whose peer has sent more than its credit. It may come up again, with credits that begin anew.
    ///
    /// The `Down` event follows from the link's own task, not from within this call.
    pub fn overrun(&self, link: LinkIndex) {
        if let Some(slot) = self.inner.slots.get(link.0) {
            slot.count(|stats| stats.overruns += 1);
            slot.close(CloseCode::Overrun, DownReason::Overrun);
        }
    }

    /// Cuts a link or lets it come up again. While cut, the cable is not dialled and its peer is refused.
    ///
    /// The `Down` event follows from the link's own task, not from within this call.
    pub fn set_enabled(&self, link: LinkIndex, enabled: bool) {
        let Some(slot) = self.inner.slots.get(link.0) else { return };
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
        if let Some(slot) = self.inner.slots.get(link.0) {
            slot.parameters.set(parameters);
        }
    }

    /// Closes every link and tells the peers; returns when the closing packets are out.
    pub async fn shutdown(&self) {
        self.inner.stopped.set(true);
        self.inner.endpoint.close(CloseCode::Shutdown.var_int(), b"agent stopped");
        for slot in &self.inner.slots {
            slot.enabled.set(false);
            slot.close(CloseCode::Shutdown, DownReason::Shutdown);
            slot.wake.notify_one();
        }
        // The closing packets leave when the connections' tasks next run; their draining need not be awaited.
        // The runtime polls some sixty tasks before it lets a yielding one go on.
        for _ in 0..4 + self.inner.slots.len() / 8 {
            tokio::task::yield_now().await;
        }
    }
}

/// What the tasks of an agent's links share.
pub(crate) struct Inner {
    pub(crate) endpoint: Endpoint,
    /// Where this agent listens.
    pub(crate) local: SocketAddr,
    pub(crate) client: ClientConfig,
    pub(crate) config: LinkConfig,
    pub(crate) slots: Vec<Slot>,
    by_ends: BTreeMap<(CableEnd, CableEnd), LinkIndex>,
    handler: Rc<dyn Handler>,
    dialling: Cell<bool>,
    /// The agent is ending: nothing is dialled any more.
    pub(crate) stopped: Cell<bool>,
    /// Handshakes that peers have begun and not finished.
    pub(crate) places: Places,
    /// Handshakes that this agent has begun and not finished.
    pub(crate) gate: Rc<Gate>,
    pub(crate) resolver: Resolver,
    /// Peers of this machine.
    pub(crate) processes: Processes,
    peers: Cell<PeerStats>,
}

impl Inner {
    /// A client of the agent itself has come.
    pub(crate) fn visited(&self, visitor: Visitor) {
        self.handler.on_visitor(visitor);
    }

    pub(crate) fn emit(&self, event: LinkEvent) {
        self.handler.on_event(event);
    }

    pub(crate) fn count_peer(&self, change: impl FnOnce(&mut PeerStats)) {
        let mut peers = self.peers.get();
        change(&mut peers);
        self.peers.set(peers);
    }

    pub(crate) fn link_between(&self, local: CableEnd, remote: CableEnd) -> Option<LinkIndex> {
        self.by_ends.get(&(local, remote)).copied()
    }

    pub(crate) fn slot(&self, link: LinkIndex) -> &Slot {
        self.slots.get(link.0).expect("link indices are made from the list of slots")
    }

    /// This end's hello for a link.
    pub(crate) fn hello(&self, link: LinkIndex) -> Hello {
        let slot = self.slot(link);
        Hello {
            lab: self.config.lab.clone(),
            from: slot.cable.local,
            to: slot.cable.remote,
            incarnation: self.config.incarnation,
            parameters: slot.parameters.get(),
            process: self.processes.own().cloned(),
        }
    }
}

/// One cable and the state of its link.
pub(crate) struct Slot {
    pub(crate) cable: Cable,
    pub(crate) enabled: Cell<bool>,
    pub(crate) parameters: Cell<LinkParameters>,
    /// Wakes the dialler when the link is enabled.
    pub(crate) wake: Notify,
    /// The connection that carries the link, while it is up.
    live: RefCell<Option<Live>>,
    /// Counts connections; events of any but the last are stale.
    generation: Cell<u64>,
    /// An `Up` has been told and its `Down` has not.
    told_up: Cell<bool>,
    /// Why this end closed the connection.
    closing: RefCell<Option<DownReason>>,
    stats: Cell<Stats>,
}

impl Slot {
    fn new(cable: Cable) -> Self {
        Self {
            parameters: Cell::new(cable.parameters),
            cable,
            enabled: Cell::new(true),
            wake: Notify::new(),
            live: RefCell::new(None),
            generation: Cell::new(0),
            told_up: Cell::new(false),
            closing: RefCell::new(None),
            stats: Cell::default(),
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        self.stats.get()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Stats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    /// Whether the connection of this generation still carries the link.
    pub(crate) fn carries(&self, generation: u64) -> bool {
        self.generation.get() == generation && self.live.borrow().is_some()
    }

    pub(crate) fn live(&self) -> Ref<'_, Option<Live>> {
        self.live.borrow()
    }

    /// Closes the connection at once; the task that reads it tells of it.
    pub(crate) fn close(&self, code: CloseCode, reason: DownReason) {
        if let Some(live) = self.live.take() {
            live.connection.close(code.var_int(), reason.to_string().as_bytes());
            self.closing.replace(Some(reason));
        }
    }

    /// Installs a new connection and returns its generation.
    pub(crate) fn install(&self, live: Live) -> u64 {
        self.closing.take();
        self.generation.set(self.generation.get() + 1);
        self.live.replace(Some(live));
        self.told_up.set(true);
        self.count(|stats| stats.ups += 1);
        self.generation.get()
    }

    /// Forgets the connection, if it is still the one of `generation`; says why this end closed it and
    /// whether a `Down` is due.
    pub(crate) fn retire(&self, generation: u64) -> (Option<DownReason>, bool) {
        if self.generation.get() != generation {
            return (None, false);
        }
        self.live.take();
        let due = self.told_up.replace(false);
        if due {
            self.count(|stats| stats.downs += 1);
        }
        (self.closing.take(), due)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.get()
    }
}
