//! One cable over QUIC: handshake, lanes, liveness.
//!
//! ```text
//!   agent A                                              agent B
//!   (lower GUID, port) ── dials, TLS 1.3 both ways ────▶ checks A's certificate
//!   checks B's name     ── Hello(cable, incarnation) ──▶ checks certificate against cable
//!                       ◀────────────── Hello ──────────
//!   Up                  ── Ready ──────────────────────▶ Up
//!   VL 15               ◀═ one datagram per packet ════▶
//!   VL 0-14             ◀═ one stream per lane ════════▶
//! ```
//!
//! [`Links`] holds an agent's end of all its cables to other agents: one UDP socket, one QUIC connection per
//! cable. A lane's stream carries packets, packets whose body is a length, and the lane's flow control, all in order.
//! Events go to a [`Handler`] that is called from the reading task itself. Nothing here knows what a packet means: it is
//! handed over, in order where its lane is ordered, or dropped and counted.
//!
//! Clients of the agent itself come to the same port under protocol names of their own, one for requests and one for MADs:
//! see [`Visitor`], and [`visit`] and [`Tunnel`] for their side. A process without links takes them in at a [`Doorway`].
//!
//! A link that was up always goes down before it comes up again, however short the gap: a second connection or a
//! new incarnation of the peer is `Down`, then `Up`.

mod accept;
mod alarm;
mod cable;
mod clock;
mod codec;
mod config;
mod credentials;
mod dial;
mod doorway;
mod end;
#[doc(hidden)]
pub mod fuzz;
mod gate;
mod handshake_slots;
mod identity;
mod lanes;
mod links;
mod live;
mod liveness;
mod peer;
mod pipe;
mod places;
mod process;
mod reactor;
mod reason;
mod resolve;
mod revocation;
mod session;
mod state;
mod transport;
mod tunnel;
mod visit;
mod visitor;
mod watch;

pub use alarm::Alarm;
pub use cable::{Cable, DropReason, Handler, LinkEvent, LinkIndex, PeerStats, SendOutcome, Stats};
pub use config::LinkConfig;
pub use credentials::Credentials;
pub use doorway::{Doorway, HANDSHAKES_MAX, STREAMS_MAX};
pub use end::CableEnd;
pub use handshake_slots::TurnedAway;
pub use identity::{Authority, Identity, IdentityError, PAGES, Validity, node_name};
pub use links::Links;
pub use peer::{PeerAddress, PeerAddressError};
pub use pipe::Pipe;
pub use places::{Place, Places, Room, Seat};
pub use reason::{DownReason, RefusalReason};
pub use revocation::{RevocationList, Serial};
pub use transport::BindError;
pub use tunnel::{Destination, Tunnel};
pub use visit::{Call, Line, Peer, Visit, VisitError, find, visit};
pub use visitor::{Protocol, Visitor, VisitorStream};
