//! Why links go down and peers are refused, and the codes that say so to the peer.

use std::fmt;

use quinn::{ConnectionError, VarInt};
use serde::{Deserialize, Serialize};
use weft_wire::Guid;

use crate::end::CableEnd;

/// The code in a connection's close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseCode {
    Shutdown = 0,
    Cut = 1,
    Superseded = 2,
    Malformed = 3,
    Refused = 4,
    Overrun = 5,
    Overflow = 6,
    Silent = 7,
    Revoked = 8,
    OtherIdentity = 9,
}

impl CloseCode {
    pub(crate) fn var_int(self) -> VarInt {
        VarInt::from_u32(self as u32)
    }
}

/// Why a link went down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DownReason {
    /// Cut at this end by an operator or by the port's own state.
    Cut,
    /// Cut at the other end.
    CutByPeer,
    /// This agent is stopping.
    Shutdown,
    /// The other agent stopped in order.
    PeerShutdown,
    /// Nothing was heard for the link timeout, or the other agent's process did not run for so long.
    Silent,
    /// The other agent's process has ended without a word.
    PeerDied,
    /// The other agent answers that it knows nothing of this connection: it was restarted.
    Reset,
    /// A newer process of the other agent has dialled.
    NewIncarnation,
    /// The other agent has dialled a second time.
    SecondConnection,
    /// The other end sent frames that are none.
    Malformed,
    /// The other end sent more than its credit.
    Overrun,
    /// This end could not hand over a packet of a lossless lane.
    Overflow,
    /// This end proves itself with another identity from now on.
    OtherIdentity,
    /// The other end's identity was revoked.
    Revoked,
    /// The other end says that this end's identity was revoked.
    RevokedByPeer,
    /// The other end closed the link, in its own words.
    ClosedByPeer(String),
    /// QUIC itself failed.
    Transport(String),
}

impl DownReason {
    /// What a connection's end means; `ours` is why this side closed it, if it did.
    pub(crate) fn of(error: &ConnectionError, ours: Option<Self>) -> Self {
        match error {
            ConnectionError::TimedOut => Self::Silent,
            ConnectionError::Reset => Self::Reset,
            ConnectionError::LocallyClosed => ours.unwrap_or(Self::Shutdown),
            ConnectionError::ApplicationClosed(close) => {
                let code = close.error_code;
                if code == CloseCode::Shutdown.var_int() {
                    Self::PeerShutdown
                } else if code == CloseCode::Cut.var_int() {
                    Self::CutByPeer
                } else if code == CloseCode::Superseded.var_int() {
                    Self::SecondConnection
                } else if code == CloseCode::Revoked.var_int() {
                    Self::RevokedByPeer
                } else {
                    Self::ClosedByPeer(String::from_utf8_lossy(&close.reason).into_owned())
                }
            }
            other => Self::Transport(other.to_string()),
        }
    }
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("cut here"),
            Self::CutByPeer => f.write_str("cut at the other end"),
            Self::Shutdown => f.write_str("this agent is stopping"),
            Self::PeerShutdown => f.write_str("the other agent stopped"),
            Self::Silent => f.write_str("nothing heard for the link timeout"),
            Self::PeerDied => f.write_str("the other agent's process has ended"),
            Self::Reset => f.write_str("the other agent was restarted"),
            Self::NewIncarnation => f.write_str("a new process of the other agent has dialled"),
            Self::SecondConnection => f.write_str("replaced by a second connection"),
            Self::Malformed => f.write_str("malformed frames from the other end"),
            Self::Overrun => f.write_str("more than its credit from the other end"),
            Self::Overflow => f.write_str("a lossless lane found no room"),
            Self::OtherIdentity => f.write_str("this end has another identity"),
            Self::Revoked => f.write_str("the other end's identity was revoked"),
            Self::RevokedByPeer => f.write_str("this end's identity was revoked"),
            Self::ClosedByPeer(text) => write!(f, "closed by the other end: {text}"),
            Self::Transport(text) => write!(f, "QUIC failed: {text}"),
        }
    }
}

/// TLS says of certificates at which second they were looked at, so that the same refusal never reads the same twice.
fn without_times(reason: &str) -> String {
    reason.split_once(": verification time").map_or(reason, |(what, _)| what).to_owned()
}

/// Why a peer was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalReason {
    /// TLS does not accept the peer's certificate.
    Certificate(String),
    /// The peer's certificate does not cover the node that its hello claims to be.
    WrongNode(Guid),
    /// The cabling knows no such cable.
    NotCabled {
        /// The end the peer claims to be.
        from: CableEnd,
        /// The end it wants.
        to: CableEnd,
    },
    /// The cable's other end is the one that dials.
    NotTheDialler,
    /// The peer belongs to another laboratory.
    WrongLab(String),
    /// The peer speaks another version of the link protocol.
    Version(u16),
    /// The hello is longer than any hello.
    Oversized(usize),
    /// The hello does not decode, or something else came in its place.
    Malformed,
    /// The link is cut at this end.
    Cut,
    /// The link is cut at the other end.
    CutByPeer,
    /// The other end refused us, in its own words.
    ByPeer(String),
}

impl RefusalReason {
    pub(crate) fn close_code(&self) -> CloseCode {
        match self {
            Self::Cut => CloseCode::Cut,
            _ => CloseCode::Refused,
        }
    }

    /// Whether this is an operator's doing and so nothing to report at every attempt.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self, Self::Cut | Self::CutByPeer)
    }

    /// What a failed handshake means, if it means that one side refused the other.
    pub(crate) fn of(error: &ConnectionError) -> Option<Self> {
        match error {
            ConnectionError::TransportError(e) if is_tls_alert(u64::from(e.code)) => {
                Some(Self::Certificate(without_times(&e.reason)))
            }
            ConnectionError::ConnectionClosed(close) if is_tls_alert(u64::from(close.error_code)) => {
                Some(Self::ByPeer(without_times(&String::from_utf8_lossy(&close.reason))))
            }
            ConnectionError::ApplicationClosed(close) => {
                if close.error_code == CloseCode::Cut.var_int() {
                    Some(Self::CutByPeer)
                } else if close.error_code == CloseCode::Refused.var_int() {
                    Some(Self::ByPeer(String::from_utf8_lossy(&close.reason).into_owned()))
                } else {
                    None
                }
            }
            _ => None,
        }
    }
}

/// TLS alerts travel as QUIC error codes 0x0100 to 0x01ff (RFC 9001, section 4.8).
fn is_tls_alert(code: u64) -> bool {
    (0x100..0x200).contains(&code)
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(text) => write!(f, "certificate not accepted: {text}"),
            Self::WrongNode(guid) => write!(f, "certificate does not cover node {guid}"),
            Self::NotCabled { from, to } => write!(f, "no cable from {from} to {to}"),
            Self::NotTheDialler => f.write_str("this cable is dialled from the other end"),
            Self::WrongLab(lab) => write!(f, "of another laboratory: {lab:?}"),
            Self::Version(version) => write!(f, "speaks version {version} of the link protocol"),
            Self::Oversized(bytes) => write!(f, "hello of {bytes} bytes is too long"),
            Self::Malformed => f.write_str("malformed hello"),
            Self::Cut => f.write_str("the link is cut at this end"),
            Self::CutByPeer => f.write_str("the link is cut at the other end"),
            Self::ByPeer(text) => write!(f, "refused by the other end: {text}"),
        }
    }
}
