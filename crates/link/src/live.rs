//! The connection that carries a link, and what waits to go out on it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use quinn::{Connection, SendDatagramError};
use weft_wire::VirtualLane;

use crate::cable::{DropReason, SendOutcome};
use crate::config::LinkConfig;
use crate::lanes::{self, Frame, LaneQueue, PACKET_BYTES_MAX};
use crate::process::Process;

/// A connection that carries a link.
pub(crate) struct Live {
    pub(crate) connection: Connection,
    pub(crate) peer_incarnation: u64,
    /// The peer, where the kernel tells of it.
    pub(crate) process: Option<Rc<Process>>,
    /// What had been heard of it at the last look.
    pub(crate) heard: Cell<u64>,
    /// Looks in a row at which nothing more had been.
    pub(crate) unheard: Cell<u32>,
    /// Management packets that found QUIC's buffer full.
    backlog: Rc<RefCell<VecDeque<Bytes>>>,
    lanes: RefCell<BTreeMap<u8, Rc<LaneQueue>>>,
    /// The lanes that the peer has opened, one bit each.
    lanes_read: Cell<u16>,
}

impl Live {
    pub(crate) fn new(connection: Connection, peer_incarnation: u64, process: Option<Rc<Process>>) -> Self {
        Self {
            connection,
            peer_incarnation,
            process,
            heard: Cell::default(),
            unheard: Cell::default(),
            backlog: Rc::default(),
            lanes: RefCell::default(),
            lanes_read: Cell::new(0),
        }
    }

    fn send_datagram(&self, packet: Bytes, config: &LinkConfig) -> SendOutcome {
        // The same on every network: a UDP payload may hold more than a packet, or less.
        if packet.len() > PACKET_BYTES_MAX {
            return SendOutcome::Dropped(DropReason::TooLong);
        }
        let mut backlog = self.backlog.borrow_mut();
        // QUIC would make room by dropping the oldest unseen, so it is asked first.
        if backlog.is_empty() && self.connection.datagram_send_buffer_space() >= packet.len() {
            return match self.connection.send_datagram(packet) {
                Ok(()) => SendOutcome::Sent,
                Err(SendDatagramError::TooLarge) => SendOutcome::Dropped(DropReason::TooLong),
                Err(_) => SendOutcome::Dropped(DropReason::LinkDown),
            };
        }
        if self.connection.max_datagram_size().is_none_or(|bytes| packet.len() > bytes) {
            return SendOutcome::Dropped(DropReason::TooLong);
        }
        if backlog.len() >= config.vl15_queue_packets {
            return SendOutcome::Dropped(DropReason::QueueFull);
        }
        backlog.push_back(packet);
        if backlog.len() == 1 {
            tokio::task::spawn_local(drain(self.connection.clone(), self.backlog.clone()));
        }
        SendOutcome::Queued
    }

    pub(crate) fn send(&self, lane: VirtualLane, frame: Frame, config: &LinkConfig) -> SendOutcome {
        match frame {
            Frame::Packet(packet) if lane == VirtualLane::MANAGEMENT => self.send_datagram(packet, config),
            frame => self.send_on_lane(lane, &frame, config),
        }
    }

    fn send_on_lane(&self, lane: VirtualLane, frame: &Frame, config: &LinkConfig) -> SendOutcome {
        if lane.0 >= lanes::LANES {
            return SendOutcome::Dropped(DropReason::NoSuchLane);
        }
        if matches!(frame, Frame::Packet(packet) if packet.len() > PACKET_BYTES_MAX) {
            return SendOutcome::Dropped(DropReason::TooLong);
        }
        let mut lanes = self.lanes.borrow_mut();
        let queue = lanes.entry(lane.0).or_insert_with(|| {
            let queue = Rc::new(LaneQueue::new(lane.0));
            tokio::task::spawn_local(lanes::write(self.connection.clone(), queue.clone()));
            queue
        });
        match queue.push(frame, config.lane_queue_frames) {
            true => SendOutcome::Queued,
            false => SendOutcome::Dropped(DropReason::QueueFull),
        }
    }

    /// Marks a lane as being read; a lane has one stream.
    pub(crate) fn claim_lane(&self, lane: VirtualLane) -> bool {
        let bit = 1u16 << (lane.0 & 15);
        let read = self.lanes_read.get();
        self.lanes_read.set(read | bit);
        read & bit == 0
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.lanes.borrow().values().for_each(|queue| queue.close());
    }
}

/// Sends the backlog as QUIC finds room. The packet in hand stays at the front until it is gone, so that
/// later ones queue behind it.
async fn drain(connection: Connection, backlog: Rc<RefCell<VecDeque<Bytes>>>) {
    loop {
        let Some(packet) = backlog.borrow().front().cloned() else { return };
        let sent = connection.send_datagram_wait(packet).await;
        let mut backlog = backlog.borrow_mut();
        backlog.pop_front();
        if sent.is_err() {
            backlog.clear();
        }
    }
}
