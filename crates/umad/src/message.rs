//! Messages between a program and an agent.

use serde::{Deserialize, Serialize};
use weft_wire::{AddressedMad, Guid, PortNum, Registration};

use crate::Message;

/// The version of this protocol. It changes when a message of this version would be misread by the version before.
pub const VERSION: u32 = 1;

/// What a program sends to an agent.
#[expect(clippy::large_enum_variant, reason = "MADs are nearly all there is; a box each would cost more")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientMessage {
    /// Attaches this connection to a port; at most once per connection.
    Attach {
        /// The version that the program speaks: [`VERSION`]. An agent refuses others.
        version: u32,
        /// The node the port belongs to.
        node: Guid,
        /// The port; 0 is a switch's management port.
        port: PortNum,
        /// Which MADs that no one asked for should come here.
        registrations: Vec<Registration>,
    },
    /// Sends a MAD through the port. Only after [`ServerMessage::Attached`].
    Send(AddressedMad),
    /// A message of libibumad's remote stand-in ([`user_mad::flatten`](crate::user_mad::flatten)).
    /// The first makes this connection one of the stand-in's, which cannot be attached as well.
    User(Vec<u8>),
}

/// What an agent sends to a program.
#[expect(clippy::large_enum_variant, reason = "MADs are nearly all there is; a box each would cost more")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// The attachment stands.
    Attached(Attached),
    /// A MAD arrived for this attachment.
    Receive(AddressedMad),
    /// The agent will not do what was asked, and closes the connection.
    Refused {
        /// Why, for a human.
        reason: String,
    },
    /// The link of the HCA port that this connection is attached to came up or went down.
    PortChanged {
        /// Whether there is a link now.
        up: bool,
    },
    /// A message to libibumad's stand-in, in the same form.
    User(Vec<u8>),
}

impl Message for ClientMessage {
    const FRAME_BYTES_MAX: usize = 64 * 1024;
}

impl Message for ServerMessage {
    const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
}

/// The port a connection is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The number of the attachment within its device.
    pub client: u16,
    /// The node.
    pub node: Guid,
    /// The GUID of the port.
    pub port_guid: Guid,
    /// The port.
    pub port: PortNum,
}
