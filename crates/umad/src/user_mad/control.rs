//! Questions about and commands to the emulated kernel, and their answers.

use weft_wire::{Bits, GidPrefix, Guid, Lid, NodeType, PKey, PhysState, PortNum, PortState, ServiceLevel};

use super::preamble::{Kind, Malformed, join, split};

/// Names an open port. A program takes a number of its system that no other open socket has, the socket's own inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// What a program asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Makes this connection an open port; MADs follow on it.
    Open {
        /// How other connections name it.
        token: Token,
        /// The node.
        node: Guid,
        /// Its port; a switch's is 0.
        port: PortNum,
    },
    /// What is there to know of a node.
    Ca {
        /// The node.
        node: Guid,
    },
    /// What is there to know of a port.
    Port {
        /// The node.
        node: Guid,
        /// Its port.
        port: PortNum,
    },
    /// Where is the file that makes a subnet manager of whoever holds it open?
    Issm {
        /// The node.
        node: Guid,
        /// Its port.
        port: PortNum,
    },
    /// Registers a MAD agent at an open port.
    Register {
        /// The open port.
        token: Token,
        /// For what.
        registration: AgentRegistration,
    },
    /// Takes a registration back.
    Unregister {
        /// The open port.
        token: Token,
        /// Which.
        agent_id: u32,
    },
}

/// What the kernel's `struct ib_user_mad_reg_req2` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentRegistration {
    /// 0 for subnet management, 1 for everything else.
    pub qpn: u8,
    /// The management class.
    pub class: u8,
    /// Its version.
    pub class_version: u8,
    /// 1 when RMPP is to be done for the program, 0 when not.
    pub rmpp_version: u8,
    /// Bit 0: the program does RMPP of its own.
    pub flags: u32,
    /// The organisation of a vendor class in the range 0x30 to 0x4f.
    pub oui: u32,
    /// Methods that are to be delivered unasked: bit n is method n.
    pub methods: u128,
}

/// What an agent answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Done, nothing to tell.
    Done,
    /// Not done, and why: an error number of Linux.
    Failed(u32),
    /// The answer to [`Request::Ca`].
    Ca(CaAttributes),
    /// The answer to [`Request::Port`].
    Port(PortAttributes),
    /// The answer to [`Request::Issm`]: a path, as bytes.
    Issm(Vec<u8>),
    /// The answer to [`Request::Register`].
    Registered {
        /// The number of the registration.
        agent_id: u32,
    },
}

/// What Linux tells of a channel adapter in `/sys/class/infiniband`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaAttributes {
    /// The node's GUID.
    pub node_guid: Guid,
    /// Shared by the nodes of one box.
    pub system_image_guid: Guid,
    /// What it is.
    pub node_type: NodeType,
    /// The vendor, 24 bits.
    pub vendor_id: u32,
    /// The vendor's device id.
    pub device_id: u16,
    /// The revision of the hardware.
    pub revision: u32,
    /// The first port that programs may open: 0 at a switch, which has no other.
    pub first_port: PortNum,
    /// The last one.
    pub last_port: PortNum,
    /// The node's description.
    pub description: String,
}

/// What Linux tells of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortAttributes {
    /// The port.
    pub port: PortNum,
    /// Its logical state.
    pub state: PortState,
    /// Its physical state.
    pub phys_state: PhysState,
    /// Its base LID.
    pub lid: Lid,
    /// How many low bits of the LID are its own to use.
    pub lmc: u8,
    /// The subnet manager's LID.
    pub sm_lid: Lid,
    /// The service level to the subnet manager.
    pub sm_sl: ServiceLevel,
    /// The data rate in units of 100 Mb/s: 25 is 4x SDR's quarter, 1000 is 4x EDR.
    pub rate_100mbps: u32,
    /// PortInfo's CapabilityMask.
    pub capability_mask: u32,
    /// The subnet's prefix.
    pub gid_prefix: GidPrefix,
    /// The port's GUID.
    pub port_guid: Guid,
    /// The whole P_Key table.
    pub p_keys: Vec<PKey>,
}

/// A part of a message: its fields one after the other, little-endian and without padding.
trait Field: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(from: &mut &[u8]) -> Result<Self, Malformed>;
}

macro_rules! numbers {
    ($($number:ident)*) => {
        $(impl Field for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
                let (bytes, rest) = from.split_first_chunk().ok_or(Malformed::Short)?;
                *from = rest;
                Ok(Self::from_le_bytes(*bytes))
            }
        })*
    };
}

macro_rules! codes {
    ($($code:ident)*) => {
        $(impl Field for $code {
            fn put(&self, out: &mut Vec<u8>) {
                (self.to_bits() as u8).put(out);
            }

            fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
                u8::take(from).map(|bits| Self::from_bits(bits.into()))
            }
        })*
    };
}

macro_rules! records {
    ($($name:ident { $($field:tt)* })*) => {
        $(impl Field for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
                Ok(Self { $($field: Field::take(from)?),* })
            }
        })*
    };
}

/// The messages of one direction: which kind of datagram each is, and its fields.
macro_rules! messages {
    ($name:ident: $($kind:ident $variant:ident $(($value:ident))? $({ $($field:ident)* })?,)*) => {
        impl $name {
            /// The datagram.
            pub fn encode(&self) -> Vec<u8> {
                let mut out = Vec::new();
                let kind = match self {
                    $(Self::$variant $(($value))? $({ $($field),* })? => {
                        $($value.put(&mut out);)? $($($field.put(&mut out);)*)?
                        Kind::$kind
                    })*
                };
                join(kind, &out)
            }

            pub(super) fn of_kind(kind: Kind, mut body: &[u8]) -> Result<Self, Malformed> {
                let message = match kind {
                    $(Kind::$kind => {
                        $(let $value = Field::take(&mut body)?;)? $($(let $field = Field::take(&mut body)?;)*)?
                        Self::$variant $(($value))? $({ $($field),* })?
                    })*
                    other => return Err(Malformed::Kind(other as u8)),
                };
                if body.is_empty() { Ok(message) } else { Err(Malformed::Trailing) }
            }
        }
    };
}

numbers!(u8 u16 u32 u64 u128);
codes!(NodeType PortState PhysState);
records! {
    Token { 0 }
    Guid { 0 }
    GidPrefix { 0 }
    Lid { 0 }
    PKey { 0 }
    PortNum { 0 }
    ServiceLevel { 0 }
    AgentRegistration { qpn class class_version rmpp_version flags oui methods }
    CaAttributes {
        node_guid system_image_guid node_type vendor_id device_id revision first_port last_port description
    }
    PortAttributes {
        port state phys_state lid lmc sm_lid sm_sl rate_100mbps capability_mask gid_prefix port_guid p_keys
    }
}
messages! { Request:
    Open Open { token node port },
    Ca Ca { node },
    Port Port { node port },
    Issm Issm { node port },
    Register Register { token registration },
    Unregister Unregister { token agent_id },
}
messages! { Reply:
    Done Done,
    Failed Failed(error),
    CaIs Ca(attributes),
    PortIs Port(attributes),
    IssmIs Issm(path),
    Registered Registered { agent_id },
}

impl Reply {
    /// Reads a datagram.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (kind, body) = split(bytes)?;
        Self::of_kind(kind, body)
    }
}

/// The rest of a message.
impl Field for Vec<u8> {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(std::mem::take(from).to_vec())
    }
}

/// The rest of a message, as text.
impl Field for String {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self::from_utf8_lossy(std::mem::take(from)).into_owned())
    }
}

/// The rest of a message, as P_Keys.
impl Field for Vec<PKey> {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|key| key.put(out));
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        let keys = std::mem::take(from).chunks_exact(2);
        Ok(keys.map(|key| PKey(u16::from_le_bytes([key[0], key[1]]))).collect())
    }
}
