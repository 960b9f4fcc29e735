//! A connection's life as a link: up, packets, down.

use std::rc::{Rc, Weak};

use quinn::{Connection, ConnectionError};
use tokio::sync::watch;
use tokio::task::spawn_local;
use weft_wire::VirtualLane;

use crate::cable::LinkEvent;
use crate::codec::Hello;
use crate::lanes::{self, Frame};
use crate::live::Live;
use crate::process::ProcessId;
use crate::reason::{CloseCode, DownReason, RefusalReason};
use crate::state::{Inner, Slot};

impl Inner {
    /// Carries the link over `connection` until it ends. Both hellos have passed.
    pub(crate) async fn carry(self: &Rc<Self>, slot: &Rc<Slot>, connection: Connection, peer: Hello) {
        if slot.removed.get() {
            connection.close(CloseCode::Cut.var_int(), b"taken out");
            return;
        }
        let link = slot.link;
        self.supersede(slot, &peer);
        // Asked last, because the handler may have cut the link when it heard of the old connection's end.
        if !slot.enabled.get() {
            connection.close(CloseCode::Cut.var_int(), b"cut");
            return;
        }
        let inner = Rc::downgrade(self);
        let ended = move |id: &ProcessId| {
            if let Some(inner) = inner.upgrade() {
                inner.process_ended(id);
            }
        };
        let process = self.processes.watch(peer.process.as_ref(), ended);
        let generation = slot.install(Live::new(connection.clone(), peer.incarnation, process));
        self.emit(LinkEvent::Up { link, peer: peer.parameters });
        // It may have been revoked since its handshake.
        if self.credentials.is_revoked(&connection) {
            slot.close(CloseCode::Revoked, DownReason::Revoked);
        }
        let streams = spawn_local(self.clone().accept_lanes(slot.clone(), generation, connection.clone()));
        let error = self.read_datagrams(slot, generation, &connection).await;
        streams.abort();
        self.retire(slot, generation, &error);
    }

    /// Ends links whose peer's identity is revoked, whenever some are.
    pub(crate) async fn end_revoked(inner: Weak<Self>, mut revocations: watch::Receiver<()>) {
        while revocations.changed().await.is_ok() {
            let Some(inner) = inner.upgrade() else { return };
            let is_revoked = |slot: &&Rc<Slot>| {
                slot.live().as_ref().is_some_and(|live| inner.credentials.is_revoked(&live.connection))
            };
            inner.slots.borrow().iter().flatten().filter(is_revoked).for_each(|slot| {
                slot.close(CloseCode::Revoked, DownReason::Revoked);
            });
        }
    }

    /// Ends what carried the link before, however fresh it was.
    fn supersede(&self, slot: &Slot, peer: &Hello) {
        let reason = match slot.live().as_ref() {
            Some(live) if live.peer_incarnation != peer.incarnation => DownReason::NewIncarnation,
            _ => DownReason::SecondConnection,
        };
        slot.close(CloseCode::Superseded, reason);
        self.retire(slot, slot.generation(), &ConnectionError::LocallyClosed);
    }

    fn retire(&self, slot: &Slot, generation: u64, error: &ConnectionError) {
        let (ours, due) = slot.retire(generation);
        if due {
            self.emit(LinkEvent::Down { link: slot.link, reason: DownReason::of(error, ours) });
        }
    }

    async fn read_datagrams(&self, slot: &Slot, generation: u64, connection: &Connection) -> ConnectionError {
        loop {
            match connection.read_datagram().await {
                // A question whether we live: its acknowledgement is the answer.
                Ok(packet) if packet.is_empty() => {}
                Ok(packet) => {
                    self.deliver(slot, generation, VirtualLane::MANAGEMENT, Frame::Packet(packet));
                }
                Err(error) => return error,
            }
        }
    }

    /// Hands a frame to the handler unless its connection carries the link no more.
    fn deliver(&self, slot: &Slot, generation: u64, lane: VirtualLane, frame: Frame) {
        if !slot.carries(generation) {
            return;
        }
        slot.count(|stats| match frame.is_packet() {
            true => stats.received_packets += 1,
            false => stats.received_credits += 1,
        });
        let link = slot.link;
        self.emit(match frame {
            Frame::Packet(packet) => LinkEvent::Received { link, lane, packet },
            Frame::Data(packet) => LinkEvent::ReceivedData { link, packet },
            Frame::Credit(flow_control) => LinkEvent::Credit { link, flow_control },
        });
    }

    async fn accept_lanes(self: Rc<Self>, slot: Rc<Slot>, generation: u64, connection: Connection) {
        while let Ok(stream) = connection.accept_uni().await {
            spawn_local(self.clone().read_lane(slot.clone(), generation, stream));
        }
    }

    async fn read_lane(self: Rc<Self>, slot: Rc<Slot>, generation: u64, stream: quinn::RecvStream) {
        let claim =
            |lane| slot.carries(generation) && slot.live().as_ref().is_some_and(|l| l.claim_lane(lane));
        let deliver = |lane, frame| self.deliver(&slot, generation, lane, frame);
        if lanes::read(stream, claim, deliver).await.is_err() && slot.carries(generation) {
            slot.count(|stats| stats.malformed_frames += 1);
            slot.close(CloseCode::Malformed, DownReason::Malformed);
        }
    }

    /// Counts a refusal and tells of it, except of cuts: those are an operator's doing and come at every attempt.
    pub(crate) fn tell_refused(
        &self,
        slot: Option<&Slot>,
        address: std::net::SocketAddr,
        reason: RefusalReason,
    ) {
        if let Some(slot) = slot {
            slot.count(|stats| stats.refused += 1);
        }
        if !reason.is_cut() {
            self.count_peer(|peers| peers.refused += 1);
            // For a cable that was taken out meanwhile, the event names no link.
            let link = slot.filter(|slot| !slot.removed.get()).map(|slot| slot.link);
            self.emit(LinkEvent::Refused { link, address, reason });
        }
    }
}
