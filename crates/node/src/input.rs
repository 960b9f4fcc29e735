//! Inputs of a node.

use serde::{Deserialize, Serialize};
use weft_device::Unsent;
use weft_fault::Impairment;
use weft_host::mad::{Address, AgentId, AgentRequest};
use weft_host::stack::StackOptions;
use weft_host::traffic::Command;
use weft_machine::Time;
use weft_wire::{AddressedMad, DataPacket, LinkParameters, Registration};

use crate::{Client, DeviceId, Frame, NewDevice, PortId, RequestId, VmCommand};

/// What happens to a node. All of it is recorded, so all of it can be written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// A frame came out of a cable that leaves the node.
    Arrived {
        /// The port of arrival.
        at: PortId,
        /// What came.
        frame: Frame,
    },
    /// The bytes that came out of a cable that leaves the node are no packet.
    Damaged {
        /// The port of arrival.
        at: PortId,
        /// Whether a checksum says that they were damaged on their way.
        physical: bool,
    },
    /// The packet of an [`Output::Transmit`](crate::Output::Transmit) could not be sent.
    Unsent {
        /// The port of departure.
        at: PortId,
        /// What it was like.
        unsent: Unsent,
    },
    /// The hello has passed in both directions of a cable that leaves the node.
    LinkUp {
        /// The port.
        at: PortId,
        /// What the other end enables.
        peer: LinkParameters,
    },
    /// The link of a cable that leaves the node is gone.
    LinkDown {
        /// The port.
        at: PortId,
    },
    /// A program sends a MAD.
    Send {
        /// Which program.
        client: Client,
        /// What it sends.
        mad: Box<AddressedMad>,
    },
    /// A program with a MAD layer sends.
    SendThroughLayer {
        /// Which program.
        client: Client,
        /// What it sends.
        message: Box<Message>,
    },
    /// A program is gone.
    Detach {
        /// Which program.
        client: Client,
    },
    /// Somebody gives an adapter a data packet, past any host.
    Inject {
        /// Through which port.
        at: PortId,
        /// The packet.
        packet: DataPacket,
    },
    /// Something to be answered ([`Output::Answer`](crate::Output::Answer)).
    Request {
        /// Repeated in the answer.
        id: RequestId,
        /// What is wanted.
        request: Box<Request>,
    },
    /// What [`Node::is_unfinished`](crate::Node::is_unfinished) says is left to do goes on.
    Continue,
}

/// A send through a MAD layer, as [`mad::Input::Send`](weft_host::mad::Input::Send) has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// As which registration.
    pub agent: AgentId,
    /// To whom.
    pub address: Address,
    /// How long to wait for the answer, in milliseconds; 0 when there is none to come.
    pub timeout_ms: u32,
    /// Repetitions when none comes.
    pub retries: u32,
    /// The MAD, or the headers of one and all data of an RMPP message.
    pub data: Vec<u8>,
}

/// What a node is asked to do. Each is answered once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Switch on another device. Answered with its name.
    AddDevice(NewDevice),
    /// Switch off a device, with its hosts, programs and cables. Answered with what its lanes had moved and held.
    RemoveDevice(DeviceId),
    /// Put a cable between two free ports of the node.
    Connect {
        /// The ports.
        ends: [PortId; 2],
        /// How long its data lanes take.
        delay: Time,
    },
    /// A cable that leaves the node is in a free port.
    Lead {
        /// The port.
        at: PortId,
        /// How long its data lanes take beside what the driver takes.
        delay: Time,
    },
    /// Take out a cable, at both ends if both are here.
    Disconnect(PortId),
    /// Let the cables between ports of the node come up, those that there are and those to come.
    Begin,
    /// Plug a cable in at one end, or pull it out.
    Plug {
        /// The end.
        at: PortId,
        /// Whether it is in.
        plugged: bool,
    },
    /// Attach a program to a port (0 on a switch). Answered with its name.
    Attach {
        /// The port.
        at: PortId,
        /// What the program wants delivered unasked.
        registrations: Vec<Registration>,
        /// Whether it is a subnet manager whatever it registers, for the port's IsSM bit.
        is_sm: bool,
    },
    /// Attach a program through a MAD layer. Answered with its name.
    Open {
        /// The port.
        at: PortId,
        /// Bytes of its longest message.
        message_bytes: usize,
    },
    /// A program with a MAD layer registers. Answered with the registration's name.
    Register {
        /// Which program.
        client: Client,
        /// What for.
        registration: AgentRequest,
    },
    /// A program with a MAD layer gives a registration back.
    Unregister {
        /// Which program.
        client: Client,
        /// Which registration.
        agent: AgentId,
    },
    /// Tell the host behind a port to do something.
    Command {
        /// The port.
        at: PortId,
        /// What to do.
        command: Command,
    },
    /// Put a host behind a port that has none. One that is there stays as it is.
    StartHost {
        /// The port of an adapter.
        at: PortId,
        /// What the host is like.
        options: StackOptions,
    },
    /// Take the host behind a port away, with its flows, its cache of paths and its subscriptions.
    EndHost {
        /// The port.
        at: PortId,
    },
    /// Give a device another description.
    Describe {
        /// Which one.
        device: DeviceId,
        /// The text.
        text: String,
    },
    /// Show what crosses the cables between ports of the node ([`Output::Crossed`](crate::Output::Crossed)), or no more.
    Watch(bool),
    /// Switch on another device that is a slot of virtual machines. Answered with its name.
    AddSlot {
        /// The adapter, with one port.
        new: NewDevice,
        /// Whether it is empty at first; otherwise it is free.
        empty: bool,
    },
    /// Take a virtual machine in a slot one step on. Answered with [`Answer::Vm`](crate::Answer::Vm).
    Vm {
        /// The slot.
        device: DeviceId,
        /// The step.
        command: Box<VmCommand>,
    },
    /// Impair what arrives at a port, whatever cable is in it, or the port itself. Nothing changes when this impairment is
    /// there already.
    Impair {
        /// The port.
        at: PortId,
        /// What happens to packets.
        how: Impairment,
        /// What chance follows from.
        seed: u32,
    },
    /// End an impairment. What is late arrives at its time.
    Mend {
        /// The port.
        at: PortId,
        /// What happened to packets.
        how: Impairment,
        /// Its seed.
        seed: u32,
    },
    /// A device stops answering, or goes on: its links are down and its programs hear nothing. It forgets nothing.
    Freeze {
        /// Which one.
        device: DeviceId,
        /// Whether it is to be so.
        frozen: bool,
    },
}
