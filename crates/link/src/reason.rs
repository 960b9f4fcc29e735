//! Why links go down and peers are refused, and the codes that say so to the peer.

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DownReason {
    /// Cut at this end by an operator or by the port's own state.
    #[error("cut here")]
    Cut,
    /// Cut at the other end.
    #[error("cut at the other end")]
    CutByPeer,
    /// This agent is stopping.
    #[error("this agent is stopping")]
    Shutdown,
    /// The other agent stopped in order.
    #[error("the other agent stopped")]
    PeerShutdown,
    /// Nothing was heard for the link timeout, or the other agent's process did not run for so long.
    #[error("nothing heard for the link timeout")]
    Silent,
    /// The other agent's process has ended without a word.
    #[error("the other agent's process has ended")]
    PeerDied,
    /// The other agent answers that it knows nothing of this connection: it was restarted.
    #[error("the other agent was restarted")]
    Reset,
    /// A newer process of the other agent has dialled.
    #[error("a new process of the other agent has dialled")]
    NewIncarnation,
    /// The other agent has dialled a second time.
    #[error("replaced by a second connection")]
    SecondConnection,
    /// The other end sent frames that are none.
    #[error("malformed frames from the other end")]
    Malformed,
    /// The other end sent more than its credit.
    #[error("more than its credit from the other end")]
    Overrun,
    /// This end could not hand over a packet of a lossless lane.
    #[error("a lossless lane found no room")]
    Overflow,
    /// This end proves itself with another identity from now on.
    #[error("this end has another identity")]
    OtherIdentity,
    /// The other end's identity was revoked.
    #[error("the other end's identity was revoked")]
    Revoked,
    /// The other end says that this end's identity was revoked.
    #[error("this end's identity was revoked")]
    RevokedByPeer,
    /// The other end closed the link, in its own words.
    #[error("closed by the other end: {0}")]
    ClosedByPeer(String),
    /// QUIC itself failed.
    #[error("QUIC failed: {0}")]
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

/// TLS says of certificates at which second they were looked at, so that the same refusal never reads the same twice.
fn without_times(reason: &str) -> String {
    reason.split_once(": verification time").map_or(reason, |(what, _)| what).to_owned()
}

/// Why a peer was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalReason {
    /// TLS does not accept the peer's certificate.
    #[error("certificate not accepted: {0}")]
    Certificate(String),
    /// The peer's certificate does not cover the node that its hello claims to be.
    #[error("certificate does not cover node {0}")]
    WrongNode(Guid),
    /// The cabling knows no such cable.
    #[error("no cable from {from} to {to}")]
    NotCabled {
        /// The end the peer claims to be.
        from: CableEnd,
        /// The end it wants.
        to: CableEnd,
    },
    /// The cable's other end is the one that dials.
    #[error("this cable is dialled from the other end")]
    NotTheDialler,
    /// The peer belongs to another laboratory.
    #[error("of another laboratory: {0:?}")]
    WrongLab(String),
    /// The peer speaks another version of the link protocol.
    #[error("speaks version {0} of the link protocol")]
    Version(u16),
    /// The hello is longer than any hello.
    #[error("hello of {0} bytes is too long")]
    Oversized(usize),
    /// The hello does not decode, or something else came in its place.
    #[error("malformed hello")]
    Malformed,
    /// The link is cut at this end.
    #[error("the link is cut at this end")]
    Cut,
    /// The link is cut at the other end.
    #[error("the link is cut at the other end")]
    CutByPeer,
    /// The other end refused us, in its own words.
    #[error("refused by the other end: {0}")]
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
