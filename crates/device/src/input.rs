use serde::{Deserialize, Serialize};
use weft_wire::{AddressedMad, CongestionEvent, DataPacket, LinkParameters, PortNum, Registration};

use crate::{Frame, Unsent};

/// A management program attached to a port; the driver gives each attachment a number of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientId(pub u16);

impl ClientId {
    /// Numbers from here on are of hosts, by their port; programs have lower ones. The highest is the device's own.
    pub const HOSTS: u16 = 0xff00;

    /// Whether it is the host behind a port and no program.
    #[must_use]
    pub const fn is_host(self) -> bool {
        self.0 >= Self::HOSTS
    }
}

weft_wire::displayed!(ClientId(number) => "{number}");

/// What happens to a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// Something came in over the cable at `port`: its last bit, or its first one where devices
    /// [cut through](crate::DataPathOptions::cut_through).
    Arrive {
        /// The port of arrival.
        port: PortNum,
        /// What came.
        frame: Frame,
    },
    /// The host behind an HCA's `port` gives the adapter a packet to send. The adapter puts the port's LID, the
    /// lane, and the port's own key of the packet's partition into it. It is taken whatever waits already: the host counts what it has given and what has left
    /// ([`Output::Injected`](crate::Output::Injected)), and bounds the difference.
    Inject {
        /// Through which port.
        port: PortNum,
        /// The packet.
        packet: DataPacket,
    },
    /// The host behind an HCA's `port` has a queue pair, or a service level, that congestion control slows down to the
    /// manager's threshold.
    Congestion {
        /// Which port.
        port: PortNum,
        /// What happened.
        event: CongestionEvent,
    },
    /// The hello has passed in both directions. Said of a link that is up, it means down and up again.
    LinkUp {
        /// Which port.
        port: PortNum,
        /// What the other end enables.
        peer: LinkParameters,
    },
    /// The link is gone.
    LinkDown {
        /// Which port.
        port: PortNum,
    },
    /// The driver could not send the packet of an [`Output::Transmit`](crate::Output::Transmit): it did not leave and is
    /// counted as a drop.
    TransmitDropped {
        /// Which port.
        port: PortNum,
        /// What the packet was like.
        unsent: Unsent,
    },
    /// The bytes that came in at `port` are no packet, or belong to no lane.
    ReceiveError {
        /// The port of arrival.
        port: PortNum,
        /// Whether a wrong checksum says that they were damaged on their way; otherwise they were sent like that
        /// ([`PacketError::is_physical`](weft_wire::PacketError::is_physical)).
        physical: bool,
    },
    /// A packet did not come out of the cable at `port`, or came out with wrong bits and is dropped. It is counted, and its
    /// credit does not stay away.
    Lost {
        /// The port that it was on its way to.
        port: PortNum,
        /// What the packet was like.
        lost: Unsent,
        /// How many of its bits were wrong; none where it vanished.
        bit_errors: u16,
    },
    /// A management program attaches to `port` (0 on a switch).
    Attach {
        /// Its number; attaching again replaces what was there.
        client: ClientId,
        /// Which port.
        port: PortNum,
        /// What it wants delivered unasked.
        registrations: Vec<Registration>,
    },
    /// An attached program registers for something more; [`Output::Registered`](crate::Output::Registered) answers.
    Register {
        /// Which one.
        client: ClientId,
        /// Its name for the registration, none that it has in use.
        key: u32,
        /// What it wants delivered unasked.
        registration: Registration,
    },
    /// An attached program gives back what it registered for. Nothing happens when there is no such registration.
    Unregister {
        /// Which one.
        client: ClientId,
        /// Its name for the registration.
        key: u32,
    },
    /// An attached program says whether it is a subnet manager, for the port's IsSM bit. One that
    /// attaches with a subnet manager's registrations need not; others are none until they do.
    SetSm {
        /// Which one.
        client: ClientId,
        /// Whether it is.
        is_sm: bool,
    },
    /// The program is gone.
    Detach {
        /// Which one.
        client: ClientId,
    },
    /// An attached program sends a MAD.
    Send {
        /// Which one.
        client: ClientId,
        /// What it sends.
        mad: Box<AddressedMad>,
    },
    /// The node gets another description, as when a host is renamed.
    Describe {
        /// The text.
        text: String,
    },
    /// The host behind an HCA's port takes packets at a share of its usual rate, or as usual again. Nothing happens at a switch.
    DrainAt {
        /// Which port.
        port: PortNum,
        /// The share in parts per million; none as usual.
        share_ppm: Option<u32>,
    },
}
