//! The cabling of a fabric: graph, ibnetdiscover text, generators, comparison

mod builder;
mod graph;
mod kind;
mod rate;

pub use builder::{BuildError, FabricBuilder, NODES_MAX, PORTS_MAX, PORTS_PER_NODE_MAX};
pub use graph::{Cable, Counts, Fabric, Node, NodeIndex, Port, PortName, PortRef};
pub use kind::NodeType;
pub use rate::{LinkMasks, LinkRate, LinkSpeed, LinkWidth, RateError};
