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

impl Request {
    /// The datagram.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        let kind = match self {
            Self::Open { token, node, port } => {
                out.u64(token.0).u64(node.0).u8(port.0);
                Kind::Open
            }
            Self::Ca { node } => {
                out.u64(node.0);
                Kind::Ca
            }
            Self::Port { node, port } => {
                out.u64(node.0).u8(port.0);
                Kind::Port
            }
            Self::Issm { node, port } => {
                out.u64(node.0).u8(port.0);
                Kind::Issm
            }
            Self::Register { token, registration: wanted } => {
                out.u64(token.0).u8(wanted.qpn).u8(wanted.class).u8(wanted.class_version);
                out.u8(wanted.rmpp_version).u32(wanted.flags).u32(wanted.oui).u128(wanted.methods);
                Kind::Register
            }
            Self::Unregister { token, agent_id } => {
                out.u64(token.0).u32(*agent_id);
                Kind::Unregister
            }
        };
        out.datagram(kind)
    }

    pub(super) fn decode(kind: Kind, body: &[u8]) -> Result<Self, Malformed> {
        let mut body = Reader(body);
        let request = match kind {
            Kind::Open => {
                Self::Open { token: Token(body.u64()?), node: Guid(body.u64()?), port: PortNum(body.u8()?) }
            }
            Kind::Ca => Self::Ca { node: Guid(body.u64()?) },
            Kind::Port => Self::Port { node: Guid(body.u64()?), port: PortNum(body.u8()?) },
            Kind::Issm => Self::Issm { node: Guid(body.u64()?), port: PortNum(body.u8()?) },
            Kind::Register => Self::Register {
                token: Token(body.u64()?),
                registration: AgentRegistration {
                    qpn: body.u8()?,
                    class: body.u8()?,
                    class_version: body.u8()?,
                    rmpp_version: body.u8()?,
                    flags: body.u32()?,
                    oui: body.u32()?,
                    methods: body.u128()?,
                },
            },
            Kind::Unregister => Self::Unregister { token: Token(body.u64()?), agent_id: body.u32()? },
            other => return Err(Malformed::Kind(other as u8)),
        };
        body.ends(request)
    }
}

impl Reply {
    /// The datagram.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        let kind = match self {
            Self::Done => Kind::Done,
            Self::Failed(error) => {
                out.u32(*error);
                Kind::Failed
            }
            Self::Ca(ca) => {
                out.u64(ca.node_guid.0).u64(ca.system_image_guid.0).code(ca.node_type);
                out.u32(ca.vendor_id).u16(ca.device_id).u32(ca.revision);
                out.u8(ca.first_port.0).u8(ca.last_port.0).rest(ca.description.as_bytes());
                Kind::CaIs
            }
            Self::Port(port) => {
                out.u8(port.port.0).code(port.state).code(port.phys_state);
                out.u16(port.lid.0).u8(port.lmc).u16(port.sm_lid.0).u8(port.sm_sl.0);
                out.u32(port.rate_100mbps).u32(port.capability_mask);
                out.u64(port.gid_prefix.0).u64(port.port_guid.0);
                port.p_keys.iter().for_each(|key| {
                    out.u16(key.0);
                });
                Kind::PortIs
            }
            Self::Issm(path) => {
                out.rest(path);
                Kind::IssmIs
            }
            Self::Registered { agent_id } => {
                out.u32(*agent_id);
                Kind::Registered
            }
        };
        out.datagram(kind)
    }

    /// Reads a datagram.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (kind, body) = split(bytes)?;
        let mut body = Reader(body);
        let reply = match kind {
            Kind::Done => Self::Done,
            Kind::Failed => Self::Failed(body.u32()?),
            Kind::CaIs => Self::Ca(CaAttributes {
                node_guid: Guid(body.u64()?),
                system_image_guid: Guid(body.u64()?),
                node_type: body.code()?,
                vendor_id: body.u32()?,
                device_id: body.u16()?,
                revision: body.u32()?,
                first_port: PortNum(body.u8()?),
                last_port: PortNum(body.u8()?),
                description: String::from_utf8_lossy(body.rest()).into_owned(),
            }),
            Kind::PortIs => Self::Port(PortAttributes {
                port: PortNum(body.u8()?),
                state: body.code()?,
                phys_state: body.code()?,
                lid: Lid(body.u16()?),
                lmc: body.u8()?,
                sm_lid: Lid(body.u16()?),
                sm_sl: ServiceLevel(body.u8()?),
                rate_100mbps: body.u32()?,
                capability_mask: body.u32()?,
                gid_prefix: GidPrefix(body.u64()?),
                port_guid: Guid(body.u64()?),
                p_keys: body
                    .rest()
                    .chunks_exact(2)
                    .map(|key| PKey(u16::from_le_bytes([key[0], key[1]])))
                    .collect(),
            }),
            Kind::IssmIs => Self::Issm(body.rest().to_vec()),
            Kind::Registered => Self::Registered { agent_id: body.u32()? },
            other => return Err(Malformed::Kind(other as u8)),
        };
        body.ends(reply)
    }
}

/// Little-endian fields, one after the other.
#[derive(Default)]
struct Writer(Vec<u8>);

macro_rules! fields {
    ($($name:ident)*) => {
        impl Writer {
            $(fn $name(&mut self, value: $name) -> &mut Self {
                self.rest(&value.to_le_bytes())
            })*
        }

        impl Reader<'_> {
            $(fn $name(&mut self) -> Result<$name, Malformed> {
                let (bytes, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
                self.0 = rest;
                Ok($name::from_le_bytes(*bytes))
            })*
        }
    };
}

fields!(u8 u16 u32 u64 u128);

impl Writer {
    /// One of the architecture's codes, none of which is wider than a byte.
    fn code(&mut self, code: impl Bits) -> &mut Self {
        self.u8(code.to_bits() as u8)
    }

    fn rest(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn datagram(self, kind: Kind) -> Vec<u8> {
        join(kind, &self.0)
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn code<T: Bits>(&mut self) -> Result<T, Malformed> {
        self.u8().map(|bits| T::from_bits(bits.into()))
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn ends<T>(self, value: T) -> Result<T, Malformed> {
        if self.0.is_empty() { Ok(value) } else { Err(Malformed::Trailing) }
    }
}
