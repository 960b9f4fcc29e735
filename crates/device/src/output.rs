use serde::{Deserialize, Serialize};
use weft_wire::{
    AddressedMad, DataPacket, FlowControl, LinkParameters, Packet, PortFacts, PortNum, QpNum, ServiceLevel,
};

use crate::{ClientId, Event, RefusalReason};

/// What a device wants done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// Send a packet over the cable at `port`.
    Transmit {
        /// The port of departure.
        port: PortNum,
        /// The packet; its lane is [`Packet::vl`].
        packet: Packet,
    },
    /// Send a data packet whose body is a length over the cable at `port`; its last bit leaves now, or its first bit where
    /// devices [cut through](crate::DataPathOptions::cut_through).
    TransmitData {
        /// The port of departure.
        port: PortNum,
        /// The packet.
        packet: DataPacket,
    },
    /// Tell the other end of the cable at `port` of this end's buffer. In order with the lane's packets, and not to be
    /// lost while the link is up.
    Credit {
        /// The port of departure.
        port: PortNum,
        /// What to tell.
        flow_control: FlowControl,
    },
    /// A packet of the host behind an HCA's `port` has left the adapter, or was dropped by it: there is room for another
    /// one ([`Input::Inject`](crate::Input::Inject)).
    Injected {
        /// Through which port.
        port: PortNum,
        /// The service level that it was given with.
        service_level: ServiceLevel,
        /// How many, at least one.
        packets: u16,
    },
    /// The adapter has not taken a packet of the host behind an HCA's `port`, and would not take the next one like it
    /// either. That there is room again is told behind it, by [`Output::Injected`].
    Refused {
        /// Through which port.
        port: PortNum,
        /// The queue pair that the packet was for.
        dest_qp: QpNum,
    },
    /// Give a data packet to the host behind an HCA's `port`.
    Accept {
        /// The port of arrival.
        port: PortNum,
        /// The packet.
        packet: DataPacket,
    },
    /// What the host behind an HCA's port is to know of it, whenever some of it changes (the events of IBA 11.6.3).
    HostPort {
        /// Which port.
        port: PortNum,
        /// What it is like now.
        facts: Box<PortFacts>,
    },
    /// Give a MAD to an attached program.
    Deliver {
        /// Which one.
        client: ClientId,
        /// The MAD.
        mad: Box<AddressedMad>,
    },
    /// A program's registration ([`Input::Register`](crate::Input::Register)) stands, or does not.
    Registered {
        /// Which one.
        client: ClientId,
        /// Its name for the registration.
        key: u32,
        /// Whether it stands, and why not.
        outcome: Result<(), RefusalReason>,
    },
    /// Tell a program attached to an HCA's port that the port's link came up or went down, as an adapter's driver
    /// tells its programs without any packet (IBA 11.6.3.1, Port Active and Port Error).
    PortChanged {
        /// Which one.
        client: ClientId,
        /// Whether there is a link now.
        up: bool,
    },
    /// The subnet manager switched the link of `port`. `enabled: false` takes the link down at once (the device
    /// knows already and takes no notice of a LinkDown), `enabled: true` lets it come up, and changes nothing on
    /// a link that is up.
    SetLink {
        /// Which port.
        port: PortNum,
        /// Whether the link may be up.
        enabled: bool,
        /// What the next hello is to say.
        parameters: LinkParameters,
    },
    /// Something worth counting or logging happened.
    Event(Event),
}
