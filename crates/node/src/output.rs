//! Outputs and answers of a node.

use serde::Serialize;
use weft_device::{DataAccount, Event, RefusalReason};
use weft_host::mad::{Address, AgentId, RegisterError, SendError};
use weft_wire::{AddressedMad, DataPacket, LinkParameters, PortFacts, QpNum, ServiceLevel, VirtualLane};

use crate::{Client, DeviceId, Frame, PortId, RequestId, VmDone, VmRefusal};

/// What a node wants done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Output {
    /// Send a frame over the cable at a port, in order with the others of its lane.
    Transmit {
        /// The port of departure.
        at: PortId,
        /// What is sent.
        frame: Frame,
    },
    /// A device, or whoever plugs cables, switched the link of a cable that leaves the node.
    SetLink {
        /// The port.
        at: PortId,
        /// Whether the link may be up.
        enabled: bool,
        /// What the next hello is to say.
        parameters: LinkParameters,
    },
    /// The other end of a cable that leaves the node has sent more than its credit: the link is to be broken.
    Overrun {
        /// The port.
        at: PortId,
        /// On which lane.
        lane: VirtualLane,
    },
    /// Give a MAD to a program.
    Deliver {
        /// Which one.
        client: Client,
        /// The MAD.
        mad: Box<AddressedMad>,
    },
    /// Give a program with a MAD layer something to read.
    DeliverThroughLayer {
        /// Which one.
        client: Client,
        /// What it reads.
        reading: Box<Reading>,
    },
    /// A send through a MAD layer is not done.
    SendRefused {
        /// Whose.
        client: Client,
        /// As which registration.
        agent: AgentId,
        /// Why.
        reason: SendError,
    },
    /// The link of a program's port came up or went down.
    PortChanged {
        /// Which program.
        client: Client,
        /// Whether there is a link now.
        up: bool,
    },
    /// The device that a program was attached to is gone.
    Detached {
        /// Which program.
        client: Client,
    },
    /// Something for the host behind a port, where there is none in the node.
    ToHost {
        /// The port.
        at: PortId,
        /// What it is.
        what: ToHost,
    },
    /// What became of a request.
    Answer {
        /// Which one.
        id: RequestId,
        /// Its end.
        outcome: Result<Answer, Refusal>,
    },
    /// A frame crosses a cable between ports of the node ([`Request::Watch`](crate::Request::Watch)).
    Crossed {
        /// The port that it leaves, or arrives at.
        at: PortId,
        /// Whether it arrives.
        received: bool,
        /// The frame.
        frame: Box<Frame>,
    },
    /// A cable between ports of the node came up, as one of its ends sees it.
    LinkUp {
        /// The end.
        at: PortId,
    },
    /// A cable between ports of the node went down, as one of its ends sees it.
    LinkDown {
        /// The end.
        at: PortId,
        /// Why.
        cause: LinkLoss,
    },
    /// A device has no room for the host behind one of its ports.
    HostRefused {
        /// The port.
        at: PortId,
        /// Why.
        reason: RefusalReason,
    },
    /// What was on its way over a long cable found no room, and is lost.
    CableFull {
        /// Where it was to arrive.
        at: PortId,
    },
    /// Something worth counting or logging happened in a device.
    Event {
        /// Which one.
        device: DeviceId,
        /// What happened.
        event: Event,
    },
}

/// What an adapter has for the host behind one of its ports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum ToHost {
    /// A MAD for it.
    Receive(Box<AddressedMad>),
    /// A packet for it.
    Accept(DataPacket),
    /// Packets of its have left.
    Injected {
        /// The service level that they were given with.
        service_level: ServiceLevel,
        /// How many.
        packets: u16,
    },
    /// A packet of its for this queue pair was not taken.
    Refused(QpNum),
    /// What it is to know of the port.
    Facts(Box<PortFacts>),
    /// A Report that the physical function of its adapter hands on.
    HandedOn(Box<AddressedMad>),
}

/// What a program reads from its MAD layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// Through which registration.
    pub agent: AgentId,
    /// 0, or a number of Linux with the beginning of what the program had sent.
    pub status: u32,
    /// From whom; of what was sent in vain, to whom.
    pub address: Address,
    /// A MAD, a message, or the header of what was sent in vain.
    pub data: Vec<u8>,
}

/// A request's success.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Answer {
    /// It is done.
    Done,
    /// A device is on.
    Device(DeviceId),
    /// A device is off; this is what its lanes had moved and held.
    Removed(Box<DataAccount>),
    /// A program is attached.
    Client(Client),
    /// A registration stands.
    Agent(AgentId),
    /// A step of a virtual machine is done, or was done before.
    Vm(Box<VmDone>),
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No device of that name is on.
    #[error("{0} is not here")]
    NoSuchDevice(DeviceId),
    /// The device has no such port.
    #[error("there is no {0}")]
    NoSuchPort(PortId),
    /// A cable is in the port already.
    #[error("{0} has a cable already")]
    Cabled(PortId),
    /// No cable is in the port.
    #[error("{0} has no cable")]
    NotCabled(PortId),
    /// There is no host behind the port.
    #[error("there is no host behind {0}")]
    NoHost(PortId),
    /// The device has no room for the host behind the port.
    #[error("the host behind {0} could not be attached")]
    HostNotAttached(PortId),
    /// The host will not do it.
    #[error("{0}")]
    Command(String),
    /// The device does not take the program.
    #[error("{0:?}")]
    Attach(RefusalReason),
    /// No program of that name is attached, or not through a MAD layer.
    #[error("no such program is attached")]
    NoSuchClient,
    /// The MAD layer does not take the registration.
    #[error("{0}")]
    Register(RegisterError),
    /// A step of a virtual machine cannot be done.
    #[error("{0}")]
    Vm(VmRefusal),
}

weft_wire::worded! {
    /// Why a cable between ports of the node went down.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    pub enum LinkLoss {
        /// This end switched it off, or its cable was pulled out.
        Cut => ("cut here"),
        /// The other end did.
        CutByPeer => ("cut at the other end"),
        /// What must not be lost found no room.
        Overflow => ("a lossless lane found no room"),
        /// The other end sent more than its credit.
        Overrun => ("more than its credit from the other end"),
        /// The other end found that this one sent more than its credit, or that there was no room.
        BrokenByPeer => ("closed by the other end"),
    }
}
