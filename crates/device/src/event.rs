//! Everything that a device can say about itself.

use std::fmt;

use serde::{Deserialize, Serialize};
use weft_wire::{AttributeId, Lid, Method, MgmtClass, PKey, PortNum, PortState, ServiceLevel, TrapNumber};

use crate::ClientId;

/// Something worth counting or logging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Event {
    /// A port went from one logical state to another.
    PortStateChanged {
        /// Which port.
        port: PortNum,
        /// The state before.
        from: PortState,
        /// The state now.
        to: PortState,
    },
    /// The two ends of a cable have no width or no speed in common; the port stays down.
    LinkMismatch {
        /// Which port.
        port: PortNum,
    },
    /// A port was given another LID.
    LidChanged {
        /// Which port; 0 on a switch.
        port: PortNum,
        /// The LID before.
        from: Lid,
        /// The LID now.
        to: Lid,
    },
    /// A block of the linear forwarding table was written.
    ForwardingTableWritten {
        /// Which block of 64 entries.
        block: u16,
    },
    /// A packet was dropped.
    Dropped {
        /// Where it arrived, or 0 when it came from within.
        port: PortNum,
        /// Why.
        reason: DropReason,
    },
    /// A packet on a data lane was dropped, which [`Self::Dropped`] may have said already: whose it was.
    DataDropped {
        /// Where it arrived, or was to leave.
        port: PortNum,
        /// Why.
        reason: DropReason,
        /// From this LID.
        slid: Lid,
        /// To this one.
        dlid: Lid,
        /// On this service level.
        service_level: ServiceLevel,
        /// In this partition; a raw packet is in none.
        p_key: Option<PKey>,
    },
    /// A trap was sent.
    TrapSent {
        /// Which trap.
        trap_number: TrapNumber,
        /// The how manieth sending this is, from 1.
        attempt: u16,
    },
    /// The subnet manager has heard a trap.
    TrapRepressed {
        /// Which trap.
        trap_number: TrapNumber,
    },
    /// No one answered a trap, and the limit is reached.
    TrapAbandoned {
        /// Which trap.
        trap_number: TrapNumber,
    },
    /// A request came with a wrong M_Key and was not answered.
    MKeyViolation {
        /// Through which port.
        port: PortNum,
        /// What was tried.
        method: Method,
        /// On what.
        attribute_id: AttributeId,
    },
    /// A program is gone.
    ClientDetached {
        /// Which one.
        client: ClientId,
    },
}

/// Why a program was not attached, or may not register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The device has no such port, or it takes no programs.
    #[error("there is no such port for programs")]
    NoSuchPort,
    /// There are [`DeviceOptions::clients_max`](crate::DeviceOptions::clients_max) already.
    #[error("too many programs are attached")]
    TooMany,
    /// There is no such program.
    #[error("the program is not attached")]
    NotAttached,
    /// The program has a registration of that name already.
    #[error("the program has a registration of that name")]
    KeyInUse,
    /// A program at this port has registered for the same.
    #[error("a program has registered for {method} of class {class}, version {class_version}")]
    Taken {
        /// The class.
        class: MgmtClass,
        /// The class version.
        class_version: u8,
        /// The method.
        method: Method,
    },
}

macro_rules! drop_reasons {
    ($( $(#[$meta:meta])* $name:ident = $text:literal, )*) => {
        /// Why a packet or a MAD was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum DropReason { $( $(#[$meta])* $name, )* }

        impl DropReason {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$( Self::$name ),*];

            /// A name for metrics.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$name => $text, )* }
            }
        }
    };
}

drop_reasons! {
    /// The device has no such port.
    NoSuchPort = "no_such_port",
    /// It arrived over a link that is not up.
    LinkDown = "link_down",
    /// The port's state does not let data through yet.
    PortNotReady = "port_not_ready",
    /// The lane is not in use on this port.
    BadLane = "bad_lane",
    /// The bytes are no packet any more: a checksum is wrong.
    BadPacket = "bad_packet",
    /// The bytes never were a packet: a length, a lane or a version cannot be.
    Malformed = "malformed",
    /// Longer than the port takes.
    LongerThanMtu = "longer_than_mtu",
    /// The ICRC is wrong.
    BadIcrc = "bad_icrc",
    /// No MAD for one of the two management queue pairs.
    NotAMad = "not_a_mad",
    /// The destination is not this port and cannot be reached from here.
    BadAddress = "bad_address",
    /// The forwarding table has no port for the destination.
    NoRoute = "no_route",
    /// The forwarding table sends it back to where it came from.
    Loop = "loop",
    /// The service level has no lane at the port of departure.
    NoLane = "no_lane",
    /// The port of departure is not up, or not active.
    OutputInactive = "output_inactive",
    /// Longer than the neighbour takes.
    TooLong = "too_long",
    /// The driver could not send it.
    TransmitDropped = "transmit_dropped",
    /// The buffer of lane 15 is full.
    Vl15Full = "vl15_full",
    /// A directed route with a pointer, count or port that cannot be.
    BadDirectedRoute = "bad_directed_route",
    /// The M_Key is wrong.
    BadMKey = "bad_m_key",
    /// The P_Key is in none of the port's table entries.
    BadPKey = "bad_p_key",
    /// The Q_Key is wrong.
    BadQKey = "bad_q_key",
    /// The sender had no credit for it.
    BufferOverrun = "buffer_overrun",
    /// The link that it came over was lost while it waited.
    LinkLost = "link_lost",
    /// It was in the switch for too long (SwitchInfo.LifeTimeValue).
    SwitchLifetime = "switch_lifetime",
    /// It headed its queue for too long (PortInfo.HOQLife), or its lane is stalled.
    HeadLifetime = "head_lifetime",
    /// The port of arrival enforces partitions and does not know the P_Key.
    PartitionInbound = "partition_inbound",
    /// The port of departure enforces partitions and does not know the P_Key.
    PartitionOutbound = "partition_outbound",
    /// Too many of the device's own packets wait for their lane.
    QueueFull = "queue_full",
    /// No one here asked for it or wants it.
    NoReceiver = "no_receiver",
    /// A sender that is not attached.
    NoSuchClient = "no_such_client",
    /// A program's SMP, at a port whose programs may send none.
    Qp0Denied = "qp0_denied",
    /// The CC_Key is wrong.
    BadCcKey = "bad_cc_key",
    /// It was lost on the cable, by a fault that was set on purpose.
    LostOnCable = "lost_on_cable",
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
