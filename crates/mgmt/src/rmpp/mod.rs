//! Messages longer than one MAD: the reliable multi-packet protocol, both ways (IBA 13.6).
//!
//! Like the rest of this crate it does no I/O and reads no clock. An [`Outbox`] holds the messages that are being sent
//! and an [`Inbox`] those that are being received. A program that talks RMPP has both in an [`Endpoint`], hands it every
//! MAD that [`weft_wire::Mad::is_rmpp_active`], and transmits what it has to say:
//!
//! ```text
//!  message ──offer──▶ Outbox ──poll_transmit──▶ Data 1 ─▶ │        │ ─▶ Inbox::handle ──▶ message
//!                       ▲                      ◀─ Ack 1, 65 ◀──────── poll_transmit
//!                       │                       Data 2 … 65 ─▶         window 64
//!      poll_finished ◀──┴─ Outbox::handle ◀──── Ack 65, 129
//! ```
//!
//! A message is the bytes of a MAD up to where its class's data begins ([`weft_wire::MgmtClass::data_offset`]: 56 in
//! subnet administration), followed by all of the data. Each segment repeats those headers, and PayloadLength counts
//! the part of them behind the RMPP header in each segment again.
//!
//! Rules where the architecture leaves a choice, or where Linux, whose programs are to find what they know, makes one:
//!
//! * A sender pauses for a millisecond after 256 segments, however wide the window.
//! * A sender begins with a window of one segment, unless the receiver granted one beforehand (the turn-around of
//!   a double-sided transfer). When time runs out it begins again behind the last segment acknowledged.
//! * A receiver keeps what comes out of order inside its window. It acknowledges at the end of the window, the end of
//!   the message, and whatever it has had before.
//! * An Ack, and a Stop or Abort by the receiver, carries the method of the data with its response bit turned over.
//! * PayloadLength in the first segment may be 0, or count the repeated headers once or in each segment.
//! * A message that was complete is acknowledged again for [`InboxLimits::linger`].
//!
//! ```
//! use weft_machine::Time;
//! use weft_mgmt::rmpp::{Inbox, InboxLimits, Outbox, OutboxLimits, Timing};
//! use weft_wire::{AddressedMad, Lid, MadHeader, Method, MgmtClass, ServiceLevel};
//!
//! let header = MadHeader { mgmt_class: MgmtClass::SubnAdm, method: Method::GetTableResp, ..Default::default() };
//! let mut message = vec![0; 5000];
//! message[..24].copy_from_slice(&header.encode());
//! let (mut outbox, mut inbox) = (Outbox::new(OutboxLimits::default()), Inbox::new(InboxLimits::default()));
//! let to = AddressedMad::gmp(Lid(9), ServiceLevel(0), Default::default());
//! outbox.offer(Time::ZERO, &to, message.clone(), &Timing::default()).unwrap();
//! let mut received = None;
//! while let Some(segment) = outbox.poll_transmit(Time::ZERO) {
//!     received = received.or(inbox.handle(Time::ZERO, &segment));
//!     while let Some(answer) = inbox.poll_transmit() {
//!         outbox.handle(Time::ZERO, &answer);
//!     }
//! }
//! // What is not said to be otherwise is as it was; the RMPP header is the protocol's.
//! assert_eq!(received.unwrap().data[36..], message[36..]);
//! assert_eq!(outbox.poll_finished().unwrap().failure, None);
//! ```

mod endpoint;
mod inbox;
mod outbox;
mod receiver;
mod sender;

use weft_machine::Time;
use weft_wire::{
    AddressedMad, Lid, Mad, MadHeader, Method, MgmtClass, QpNum, RMPP_VERSION, RmppHeader, RmppType,
    TransactionId, rmpp_status,
};

pub use endpoint::Endpoint;
pub use inbox::{Inbox, InboxLimits, InboxStats, Received};
pub use outbox::{Finished, OfferError, Outbox, OutboxLimits, OutboxStats};

/// RRespTime of who does not say it.
pub const RESP_TIME_UNKNOWN: u8 = 31;

/// What tells one transfer from another at one port (IBA 13.6.2): the other end, and whose message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId {
    /// The other end's LID.
    pub lid: Lid,
    /// The other end's queue pair.
    pub qp: QpNum,
    /// The transaction.
    pub transaction_id: TransactionId,
    /// The class.
    pub class: MgmtClass,
    /// The method of the message that is transferred.
    pub method: Method,
}

impl TransferId {
    /// The transfers with the port that has this LID, as bounds: an LMC gives a port 2^lmc LIDs that differ in their
    /// last `lmc` bits, 7 at most (IBA 7.11.1).
    fn of_port(lid: Lid, lmc: u8) -> std::ops::Range<Self> {
        let count = 1_u16 << lmc.min(7);
        let first = lid.0 & !(count - 1);
        Self::first_of(Lid(first))..Self::first_of(Lid(first.saturating_add(count)))
    }

    /// Not greater than any transfer with this LID.
    fn first_of(lid: Lid) -> Self {
        let (class, method) = (MgmtClass::from_code(0), Method::from_code(0));
        Self { lid, qp: QpNum::default(), transaction_id: TransactionId::default(), class, method }
    }

    /// The transfer that this belongs to when it comes from, or goes to, whoever has the other part in it and travels
    /// in the direction of the message: Data, and the sender's Stop or Abort.
    pub fn of_message(mad: &AddressedMad) -> Self {
        let MadHeader { transaction_id, mgmt_class: class, method, .. } = mad.mad.header();
        Self { lid: mad.lid, qp: mad.remote_qp, transaction_id, class, method }
    }

    /// The transfer that this belongs to when it travels against the direction of the message: Ack, and the receiver's
    /// Stop or Abort.
    pub fn of_answer(mad: &AddressedMad) -> Self {
        let id = Self::of_message(mad);
        Self { method: turned_over(id.method), ..id }
    }
}

/// The method with its response bit turned over.
fn turned_over(method: Method) -> Method {
    Method::from_code(method.code() ^ 0x80)
}

weft_wire::defaults! {
    /// How long a sender waits and how often it tries.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Timing {
        /// The wait for an acknowledgement as long as the receiver has not said how long it takes.
        pub ack_timeout: Time = Time::from_secs(2),
        /// What is added to a receiver's RRespTime to get the wait: twice the packet's lifetime.
        pub transit: Time = Time::from_secs(1),
        /// How often the same segment is sent again.
        pub retries: u32 = 3,
        /// How long the whole message may take.
        pub total: Time = Time::from_secs(120),
    }
}

weft_wire::worded! {
    /// Why a transfer ended before its time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Failure {
        /// No one acknowledged.
        TimedOut => ("nobody acknowledged"),
        /// The other end stopped it, with this status.
        Stopped(status: u8) => ("the other end stopped it with status {status}"),
        /// The other end aborted it, with this status.
        Aborted(status: u8) => ("the other end aborted it with status {status}"),
        /// The other end broke the protocol and was aborted with this status.
        Protocol(status: u8) => ("the other end broke the protocol, status {status}"),
    }
}

impl Failure {
    /// What a Stop or Abort says; `None` when its status is none that such a packet may have.
    fn told(header: &RmppHeader) -> Option<Self> {
        match (header.kind, header.status) {
            (RmppType::Stop, rmpp_status::RESOURCES) => Some(Self::Stopped(header.status)),
            (RmppType::Abort, rmpp_status::TOTAL_TIME..=rmpp_status::UNSPECIFIED) => {
                Some(Self::Aborted(header.status))
            }
            _ => None,
        }
    }
}

/// A packet of the same transaction that ends a transfer: Stop for want of resources, Abort for everything else.
fn ending(of: &Mad, method: Method, status: u8) -> Mad {
    let kind = if status == rmpp_status::RESOURCES { RmppType::Stop } else { RmppType::Abort };
    control(of, method, RmppHeader { kind, status, ..RmppHeader::default() })
}

/// A packet without data: the headers of `of`, another method, and this of the RMPP header.
fn control(of: &Mad, method: Method, header: RmppHeader) -> Mad {
    let mut mad = Mad::default();
    let headers = of.class().data_offset();
    mad.0[..headers].copy_from_slice(&of.0[..headers]);
    mad.set_header(&MadHeader { method, ..of.header() });
    mad.set_rmpp(&RmppHeader { version: RMPP_VERSION, active: true, ..header });
    mad
}

#[cfg(test)]
mod tests;
