//! The cabling of a fabric: graph, ibnetdiscover text, generators, comparison

mod builder;
mod diff;
mod find;
pub mod generate;
mod graph;
mod parse;
mod rate;
mod write;

pub use builder::{BuildError, FabricBuilder, NODES_MAX, PORTS_MAX, PORTS_PER_NODE_MAX};
pub use diff::{Difference, PortId, diff};
pub use find::FindError;
pub use graph::{Cable, Counts, Fabric, Node, NodeIndex, Port, PortName, PortRef};
pub use parse::{Loader, ParseError, Place, Problem, parse, parse_bytes, parse_with};
pub use rate::{LinkMasks, LinkRate, LinkSpeed, LinkWidth, RateError};
pub use weft_wire::NodeType;
