//! Inputs and outputs of a MAD layer.

use serde::{Deserialize, Serialize};
use weft_mgmt::rmpp::{InboxStats, OutboxStats};
use weft_wire::{
    AddressedMad, Lid, Mad, MethodMask, MgmtClass, Oui, QKey, QpNum, Registration, ServiceLevel,
};

/// The status of a send that no one answered: Linux' ETIMEDOUT.
pub const TIMED_OUT: u32 = 110;

/// A registration of one layer, as in `ib_user_mad`'s `id`: 0 to [`Limits::agents`] - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AgentId(pub u32);

weft_wire::displayed!(AgentId(number) => "{number}");

/// What a program wants to register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRequest {
    /// The queue pair it sends from: 0 for the two classes of SMPs, 1 for every other.
    pub qp: QpNum,
    /// The class; 0 for a registration that sends and gets answers alone, whatever its methods.
    pub class: MgmtClass,
    /// The class version.
    pub class_version: u8,
    /// The vendor, for the classes 0x30 to 0x4f.
    pub oui: Oui,
    /// The methods that are to be delivered unasked.
    pub methods: MethodMask,
    /// 1: the layer takes RMPP messages apart and puts them together. 0: the program does.
    pub rmpp_version: u8,
}

/// The other end of what is sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The peer's LID; permissive on a purely directed route.
    pub lid: Lid,
    /// The peer's queue pair.
    pub qp: QpNum,
    /// The queue key.
    pub qkey: QKey,
    /// The service level.
    pub service_level: ServiceLevel,
    /// Which entry of the port's P_Key table.
    pub pkey_index: u16,
}

impl Address {
    /// A MAD with this address, sent from `local_qp`.
    pub fn with(&self, local_qp: QpNum, mad: Mad) -> AddressedMad {
        AddressedMad {
            lid: self.lid,
            remote_qp: self.qp,
            local_qp,
            service_level: self.service_level,
            pkey_index: self.pkey_index,
            qkey: self.qkey,
            mad,
        }
    }
}

impl From<&AddressedMad> for Address {
    fn from(mad: &AddressedMad) -> Self {
        Self {
            lid: mad.lid,
            qp: mad.remote_qp,
            qkey: mad.qkey,
            service_level: mad.service_level,
            pkey_index: mad.pkey_index,
        }
    }
}

/// What happens to a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
// A MAD is carried as it is: boxing it would cost an allocation for each one, and inputs do not live long.
#[allow(clippy::large_enum_variant)]
pub enum Input {
    /// The program registers. [`Output::Registered`] or [`Output::Refused`] answers.
    Register {
        /// Chosen by the driver and repeated in the answer.
        request: u64,
        /// What for.
        registration: AgentRequest,
    },
    /// The device's answer to [`Output::Claim`].
    Claimed {
        /// For which registration.
        agent: AgentId,
        /// Whether it was granted; `false` when another has a method of it.
        granted: bool,
    },
    /// The program gives a registration back: its sends are cancelled without a word, and nothing is delivered to it
    /// any more. Of a registration that does not exist it is counted only.
    Unregister {
        /// Which one.
        agent: AgentId,
    },
    /// The program sends.
    Send {
        /// As which registration.
        agent: AgentId,
        /// To whom.
        address: Address,
        /// How long to wait for the answer; 0 when there is none to come.
        timeout_ms: u32,
        /// How many times to send again when none comes.
        retries: u32,
        /// At least 36 and at most 256 bytes, filled up with zeros; or, as RMPP, the headers of a MAD and all data.
        data: Vec<u8>,
    },
    /// The device delivers a MAD to this client.
    Receive(AddressedMad),
}

/// What a layer wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)]
pub enum Output {
    /// The registration stands.
    Registered {
        /// As in [`Input::Register`].
        request: u64,
        /// Its number.
        agent: AgentId,
    },
    /// The registration does not stand.
    Refused {
        /// As in [`Input::Register`].
        request: u64,
        /// Why.
        reason: RegisterError,
    },
    /// The device is to deliver such MADs to this client. [`Input::Claimed`] answers.
    Claim {
        /// Names the claim to the device.
        agent: AgentId,
        /// Which MADs.
        registration: Registration,
    },
    /// The device is to forget a claim that it granted or was asked for.
    Release {
        /// Which one.
        agent: AgentId,
    },
    /// The device is to send this.
    Transmit(AddressedMad),
    /// The program gets this to read.
    Deliver {
        /// Through which registration.
        agent: AgentId,
        /// 0, or a number of Linux with what the program had sent: [`TIMED_OUT`], or why it was not sent.
        status: u32,
        /// From whom; of a timed-out send, to whom.
        address: Address,
        /// 256 bytes, a message put together from segments, or the 24 bytes of the header of what was sent in vain.
        data: Vec<u8>,
    },
    /// What was asked by an [`Input::Send`] is not done. A program that waits for an answer gets its header back, too.
    SendRefused {
        /// As which registration.
        agent: AgentId,
        /// Why.
        reason: SendError,
    },
}

/// Why a registration was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// There are [`Limits::agents`] already.
    #[error("the port has no room for another registration")]
    TooMany,
    /// The queue pair is neither 0 nor 1, or not that of the class.
    #[error("the queue pair is not that of the class")]
    BadQueuePair,
    /// The class is none that can be registered for: above 0x4f (0x81 apart).
    #[error("nothing can be registered for this class")]
    BadClass,
    /// The class version is above 7.
    #[error("the class version is above 7")]
    BadVersion,
    /// A vendor class without vendor.
    #[error("a vendor class needs the vendor's identifier")]
    NoOui,
    /// The RMPP version is neither 0 nor 1, or the class has no RMPP header.
    #[error("the class has no such RMPP version")]
    BadRmppVersion,
    /// Another registration at this port has one of the methods.
    #[error("another registration has one of the methods")]
    Taken,
}

impl RegisterError {
    /// The number that Linux gives to programs.
    pub const fn errno(self) -> i32 {
        match self {
            Self::TooMany => 12,
            _ => 22,
        }
    }
}

/// Why a send was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no such registration.
    #[error("there is no such registration")]
    NoSuchAgent,
    /// Fewer than 36 bytes, or more than a MAD has and not RMPP.
    #[error("the bytes are no MAD")]
    BadLength,
    /// More bytes than [`Limits::message_bytes`].
    #[error("the message is too long")]
    TooLong,
    /// A send with the same class and transaction id is under way.
    #[error("a send with the same transaction id is under way")]
    Duplicate,
    /// There are [`Limits::sends`] under way already.
    #[error("too many sends are under way")]
    TooMany,
}

impl SendError {
    /// The number that Linux gives to programs.
    pub const fn errno(self) -> i32 {
        match self {
            Self::TooLong | Self::TooMany => 12,
            _ => 22,
        }
    }
}

weft_wire::defaults! {
    /// How much one layer holds at most.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// Registrations; at most 65535.
        pub agents: u32 = 32,
        /// Sends that wait for an answer or an acknowledgement.
        pub sends: usize = 8192,
        /// Bytes of one message.
        pub message_bytes: usize = 32 << 20,
        /// Bytes of all messages being sent by RMPP.
        pub send_bytes: usize = 128 << 20,
        /// Messages being received at the same time.
        pub receives: usize = 256,
        /// Bytes of all messages being received.
        pub receive_bytes: usize = 64 << 20,
    }
}

/// What a layer counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sends accepted.
    pub sends: u64,
    /// Sends refused.
    pub sends_refused: u64,
    /// Times that a MAD was sent again for want of an answer.
    pub retries: u64,
    /// Sends that no one answered.
    pub timeouts: u64,
    /// Sends given up because the registration was given back.
    pub cancelled: u64,
    /// MADs and messages delivered, timed-out sends not counted.
    pub delivered: u64,
    /// Answers to nothing: late, the second one, or never asked for.
    pub answers_unmatched: u64,
    /// Requests that no registration covers.
    pub requests_unmatched: u64,
    /// Unregistrations of what does not exist.
    pub unregistrations_unmatched: u64,
    /// Messages sent by RMPP.
    pub rmpp_sent: OutboxStats,
    /// Messages received by RMPP.
    pub rmpp_received: InboxStats,
}
