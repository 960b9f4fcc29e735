//! A cable, and its events.

use std::net::SocketAddr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use weft_wire::{DataPacket, FlowControl, LinkParameters, VirtualLane};

use crate::end::CableEnd;
use crate::peer::PeerAddress;
use crate::reason::{DownReason, RefusalReason};
use crate::visitor::Visitor;

/// A cable to another agent, as the cabling gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// The end that this agent holds.
    pub local: CableEnd,
    /// The other end.
    pub remote: CableEnd,
    /// Where the other end's agent listens.
    pub remote_addr: PeerAddress,
    /// What the local end enables; offered in the hello.
    pub parameters: LinkParameters,
}

impl Cable {
    /// Whether this end dials: the lower GUID does, then the lower port number.
    pub fn dials(&self) -> bool {
        self.local < self.remote
    }
}

/// Which of an agent's links: the place of its cable in the list that [`crate::Links::bind`] was given, or what
/// [`crate::Links::add`] said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkIndex(pub usize);

/// What happened to a link.
#[derive(Debug)]
pub enum LinkEvent {
    /// Hellos have passed in both directions.
    Up {
        /// The link.
        link: LinkIndex,
        /// What the other end enables.
        peer: LinkParameters,
    },
    /// The link is gone; every `Up` is followed by exactly one of these before the next `Up`.
    Down {
        /// The link.
        link: LinkIndex,
        /// Why.
        reason: DownReason,
    },
    /// A packet came in.
    Received {
        /// The link.
        link: LinkIndex,
        /// The lane it came on; not yet compared with what its header says.
        lane: VirtualLane,
        /// The packet's bytes, unchecked.
        packet: Bytes,
    },
    /// A packet whose body is a length came in. Its lane is the one it came on.
    ReceivedData {
        /// The link.
        link: LinkIndex,
        /// The packet.
        packet: DataPacket,
    },
    /// The other end tells of its buffer, in order with the packets of the lane it tells of.
    Credit {
        /// The link.
        link: LinkIndex,
        /// What it tells.
        flow_control: FlowControl,
    },
    /// The name of a peer does not resolve any more, or does again. Reported once for each change.
    Lookup {
        /// A link to that peer; there may be others.
        link: LinkIndex,
        /// Why it does not resolve; none when it does again.
        failure: Option<String>,
    },
    /// A peer was refused, or refused us.
    Refused {
        /// The link, where it is known.
        link: Option<LinkIndex>,
        /// The peer's address.
        address: SocketAddr,
        /// Why.
        reason: RefusalReason,
    },
}

/// Takes link events, called from the task that read them so that a packet needs no further task switch.
///
/// It may call every method of [`crate::Links`]: none of them calls back.
pub trait Handler {
    /// Takes one event.
    fn on_event(&self, event: LinkEvent);

    /// A client of the agent itself has come; without a taker it is sent away.
    fn on_visitor(&self, visitor: Visitor) {
        visitor.refuse("no clients are served here");
    }
}

/// What became of a packet that was handed to a link. Dropped by a data lane that is full, it takes the link down: the
/// lane is lossless, and both ends would count its credits differently from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SendOutcome {
    /// On its way.
    Sent,
    /// Behind others in the link's own queue.
    Queued,
    /// Dropped and counted.
    Dropped(DropReason),
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The link is down.
    LinkDown,
    /// The lane's queue is full.
    QueueFull,
    /// The packet is longer than the lane carries.
    TooLong,
    /// There is no such link or lane.
    NoSuchLane,
}

/// What became of peers that knocked, on whatever link or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerStats {
    /// Peers refused, and times a peer refused us.
    pub refused: u64,
    /// Connections ignored because too many handshakes were under way.
    pub ignored: u64,
    /// Handshakes that peers began and neither finished in time nor were refused in.
    pub unfinished: u64,
    /// Handshakes whose dialler was asked to prove its address first, because half of the places were taken.
    pub retried: u64,
}

/// What a link has done since the agent began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Packets handed to QUIC or the link's queue.
    pub sent_packets: u64,
    /// Packets taken from QUIC.
    pub received_packets: u64,
    /// Packets dropped on sending.
    pub dropped_packets: u64,
    /// Flow control packets handed to QUIC or the link's queue.
    pub sent_credits: u64,
    /// Flow control packets taken from QUIC.
    pub received_credits: u64,
    /// Times a data lane was full; each took the link down.
    pub overflows: u64,
    /// Times the peer sent more than its credit; each took the link down.
    pub overruns: u64,
    /// Frames that were not what they claimed; each closed the link.
    pub malformed_frames: u64,
    /// Peers refused on this link, and times a peer refused us.
    pub refused: u64,
    /// Attempts to dial.
    pub dials: u64,
    /// Attempts that ended because the peer's name did not resolve.
    pub unresolved: u64,
    /// Times the peer was asked whether it lives.
    pub asked: u64,
    /// Times the link came up.
    pub ups: u64,
    /// Times the link went down.
    pub downs: u64,
}
