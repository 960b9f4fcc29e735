use serde::{Deserialize, Serialize};
use weft_wire::{
    AddressedMad, DataPacket, LinkParameters, PortFacts, PortNum, QpNum, ServiceLevel, VirtualLane,
};

use crate::{ClientId, Event, Frame, RefusalReason};

/// What a device wants done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// Send something over the cable at `port`, in order with what is sent over the same lane; its last bit leaves now, or
    /// its first one where devices [cut through](crate::DataPathOptions::cut_through).
    Transmit {
        /// The port of departure.
        port: PortNum,
        /// What is sent. Flow control must not be lost while the link is up.
        frame: Frame,
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
    /// The adapter has not taken a packet of the host behind an HCA's `port`, and would not take
    /// another like it. [`Output::Injected`] reports when there is room again.
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
    /// A program's attachment ([`Input::Attach`](crate::Input::Attach)) stands, or does not.
    Attached {
        /// Which one.
        client: ClientId,
        /// The port.
        port: PortNum,
        /// Whether it stands, and why not.
        outcome: Result<(), RefusalReason>,
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
    /// The other end of the cable at `port` has sent more than its credit: the driver breaks the link, which then begins
    /// again with the first credits.
    Overrun {
        /// Which port.
        port: PortNum,
        /// On which lane.
        lane: VirtualLane,
    },
    /// Something worth counting or logging happened.
    Event(Event),
}
