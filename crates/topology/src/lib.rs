//! The cabling of a fabric: graph, ibnetdiscover text, generators, comparison.
//!
//! A [`Fabric`] is nodes, their ports, and cables between ports. It is immutable: a [`FabricBuilder`] makes one, and
//! sees to it that both ends of every cable agree. It comes from a file ([`parse`]), from a formula ([`generate`]),
//! or from what a subnet manager has discovered; routing and laboratories take it from there.
//!
//! ```text
//!   ibnetdiscover text ──parse──▶        ──write_ibnetdiscover──▶ the same text
//!   generate::xgft, torus, … ───▶ Fabric ──diff──▶ what two of them do not share
//!                                        ──virtualised──▶ the same with a vSwitch and its functions in every HCA
//!   FabricBuilder ──────────────▶        ──cables, hosts, find, pieces──▶ routing, laboratories, people
//! ```
//!
//! Not here: files (the caller reads them), states of ports, and routes.
//!
//! ```
//! use weft_topology::generate::{GenerateOptions, xgft};
//! use weft_topology::{diff, parse};
//!
//! // Two leaves with two hosts each under two roots.
//! let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
//! assert_eq!((fabric.hosts().count(), fabric.switches().count(), fabric.cables().count()), (4, 4, 8));
//!
//! let text = fabric.write_ibnetdiscover();
//! assert_eq!(parse("tree.topo", &text).unwrap(), fabric);
//!
//! // The same tree with slower cables differs in each of them.
//! let slower = parse("tree.topo", &text.replace("4xQDR", "4xDDR")).unwrap();
//! let differences = diff(&fabric, &slower);
//! assert_eq!(differences.len(), 8);
//! assert!(differences[0].to_string().ends_with("rate 4xQDR -> 4xDDR"));
//!
//! // An error in a file is one line.
//! let error = parse("tree.topo", "Switch 4 \"leaf\"\n[5] \"host\"[1]\n").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "tree.topo:2:1: port 5 is out of range for `leaf`, whose ports are 1 to 4: `[5]`",
//! );
//! ```

mod builder;
mod diff;
mod find;
pub mod generate;
mod graph;
mod parse;
mod pieces;
mod rate;
mod recable;
mod seats;
mod virtualise;
mod write;

pub use builder::{BuildError, FabricBuilder, NODES_MAX, PORTS_MAX, PORTS_PER_NODE_MAX};
pub use diff::{Difference, PortId, diff};
pub use find::FindError;
pub use graph::{Cable, Counts, Fabric, Node, NodeIndex, Port, PortName, PortRef};
pub use parse::{
    LoadError, Loader, ParseError, Position, Problem, is_tool_message, parse, parse_bytes, parse_with,
};
pub use pieces::Pieces;
pub use rate::{LinkMasks, LinkRate, LinkWidth, RateError};
pub use virtualise::{Adapter, UPLINK, VFS_MAX, VirtualiseError, Virtualised, derived_guid};
pub use weft_wire::LinkSpeed;
pub use weft_wire::NodeType;
