//! Fabrics from formulas: trees, grids, dragonflies, director switches and random ones.
//!
//! Names and GUIDs are deterministic: the same parameters give the same fabric to the byte. Switches come before
//! hosts; on a switch, the ports to hosts and lower levels come before the others.

mod aggregation;
mod degraded;
mod describe;
mod director;
mod dragonfly;
mod grid;
mod random;
mod tree;

pub use aggregation::{AGGREGATION_NODE, with_node_at_every_switch};
pub use degraded::{Damage, degraded};
pub use describe::described_as_linux;
pub use director::{Directors, director};
pub use dragonfly::dragonfly;
pub use grid::{hypercube, mesh, ring, torus};
pub use random::{RandomFabric, random};
pub use tree::{kary_ntree, pgft, rlft, xgft};

use weft_wire::{Guid, Lid, NodeType, PortNum};

use crate::{BuildError, Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PORTS_PER_NODE_MAX, PortRef};

/// What all generators take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GenerateOptions {
    /// How many ports every switch has; as many as it needs where this is `None`.
    pub radix: Option<u8>,
    /// How many hosts a tree has in all, spread evenly over its leaves; as many as it has places
    /// for where this is `None`. The other kinds have parameters of their own for that.
    pub tree_hosts: Option<u32>,
    /// The rate of every cable.
    pub rate: LinkRate,
}

/// Why a fabric cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A parameter outside of its range.
    #[error("{what} must be {min} to {max}, not {value}")]
    OutOfRange {
        /// The parameter.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
    },
    /// Lists that describe one tree and differ in length.
    #[error("the lists of children, parents and parallel cables differ in length: {0}, {1} and {2}")]
    Levels(usize, usize, usize),
    /// A switch that needs more ports than it has.
    #[error("a switch needs {needed} ports, more than the radix of {radix}")]
    Radix {
        /// How many it needs.
        needed: u64,
        /// How many it has.
        radix: u8,
    },
    /// More end ports than there are LIDs.
    #[error("{end_ports} end ports are more than the {} unicast LIDs", Lid::UNICAST_MAX.0)]
    TooLarge {
        /// How many there would be.
        end_ports: u64,
    },
    /// A fabric that cannot be built for another reason.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// The GUID of the first switch; the next ones follow it. The bit for locally given addresses is set.
const SWITCH_GUID: u64 = 0x0200_5357_0000_0001;
/// The GUID of the first host; each has 256 for itself and its ports.
const HOST_GUID: u64 = 0x0200_4843_0000_0000;

/// A cable's end: a node, and its port counted from 0.
#[derive(Clone, Copy, Debug)]
struct End {
    node: NodeIndex,
    port: u64,
}

/// This port of a node, counted from 0.
const fn end(node: NodeIndex, port: u64) -> End {
    End { node, port }
}

/// A fabric being generated.
struct Generator {
    builder: FabricBuilder,
    options: GenerateOptions,
    switches: u64,
    hosts: u64,
}

impl Generator {
    /// For this many switches and end ports of hosts.
    fn new(options: &GenerateOptions, switches: u64, host_ports: u64) -> Result<Self, GenerateError> {
        let end_ports = switches.saturating_add(host_ports);
        if end_ports > u64::from(Lid::UNICAST_MAX.0) {
            return Err(GenerateError::TooLarge { end_ports });
        }
        Ok(Self { builder: FabricBuilder::new(), options: *options, switches: 0, hosts: 0 })
    }

    /// A switch that needs this many ports.
    fn switch(&mut self, name: String, needed: u64) -> Result<NodeIndex, GenerateError> {
        let radix = self.options.radix.unwrap_or(PORTS_PER_NODE_MAX);
        let Some(needed) = u8::try_from(needed).ok().filter(|needed| *needed <= radix) else {
            return Err(GenerateError::Radix { needed, radix });
        };
        let ports = self.options.radix.unwrap_or(needed.max(1));
        let guid = Guid(SWITCH_GUID + self.switches);
        self.switches += 1;
        let mut node = Node::new(NodeType::Switch, guid, ports, self.options.rate);
        node.description = name;
        Ok(self.builder.add_node(node)?)
    }

    /// The next host.
    fn host(&mut self, ports: u64) -> Result<NodeIndex, GenerateError> {
        let ports = in_range("the number of ports of a host", ports, 1, u64::from(PORTS_PER_NODE_MAX))? as u8;
        let mut node = Node::new(NodeType::Hca, Guid(HOST_GUID + self.hosts * 256), ports, self.options.rate);
        node.description = format!("host-{}", self.hosts);
        self.hosts += 1;
        Ok(self.builder.add_node(node)?)
    }

    /// Cables two ports, counted from 0 as formulas do.
    fn cable(&mut self, a: End, b: End) -> Result<(), GenerateError> {
        // The ports were counted when the nodes were made; one that does not fit is out of range as 255 too.
        let port = |end: End| PortRef::new(end.node, PortNum(u8::try_from(end.port + 1).unwrap_or(u8::MAX)));
        Ok(self.builder.connect(port(a), port(b))?)
    }

    /// Adds hosts to ports 0 and up of each switch.
    fn hosts_on(&mut self, switches: &[NodeIndex], hosts_per_switch: u64) -> Result<(), GenerateError> {
        for switch in switches {
            for port in 0..hosts_per_switch {
                let host = self.host(1)?;
                self.cable(end(host, 0), end(*switch, port))?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Fabric {
        self.builder.build()
    }
}

fn in_range(what: &'static str, value: u64, min: u64, max: u64) -> Result<u64, GenerateError> {
    match (min..=max).contains(&value) {
        true => Ok(value),
        false => Err(GenerateError::OutOfRange { what, value, min, max }),
    }
}

fn product(factors: impl IntoIterator<Item = u64>) -> u64 {
    factors.into_iter().fold(1, u64::saturating_mul)
}
