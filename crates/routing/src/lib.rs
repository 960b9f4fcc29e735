//! Cabling in, forwarding tables out: pure routing functions and their verifier.
//!
//! An engine takes an immutable [`Fabric`](weft_topology::Fabric) and the [`Lids`] of its end ports and returns
//! [`Routes`]; it writes into nothing and knows no switch but as a node of the graph. [`verify`] follows every LID
//! from every switch through any tables, those of an engine or those read from a running fabric, and shows the way
//! of a packet that does not arrive; [`verify_routing`] proves all else that a routing promises, such as that no
//! deadlock is possible, or shows the counter-example; [`trace`] shows one path.
//!
//! ```text
//!   Fabric ──┐                        ┌── verify ──▶ Report (with counter-examples)
//!            ├──▶ minhop ──▶ Routes ──┤
//!   Lids ────┘                        └── trace ───▶ Path
//! ```
//!
//! Not here: multicast, and anything that needs a MAD.
//!
//! ```
//! use weft_routing::{Lids, minhop, trace, verify};
//! use weft_topology::generate::{GenerateOptions, xgft};
//!
//! let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
//! let lids = Lids::in_guid_order(&fabric, 0).unwrap();
//! let routes = minhop(&fabric, &lids);
//! assert!(verify(&fabric, &lids, &routes, &[]).is_minimal());
//!
//! let (first, last) = (fabric.find("host-0").unwrap(), fabric.find("host-3").unwrap());
//! let end_port = |node| weft_topology::PortRef::new(node, weft_wire::PortNum(1));
//! let lid = lids.of(end_port(last)).unwrap().base;
//! let path = trace(&fabric, &lids, &routes, end_port(first), lid).unwrap();
//! assert_eq!(path.cables(), 4, "{path}");
//! ```

mod balance;
mod bfs;
mod bits;
mod collapse;
mod engines;
pub mod files;
mod input;
mod lanes;
mod lids;
mod management;
pub mod moves;
mod options;
mod order;
mod partitions;
pub mod quality;
mod repair;
mod routing;
mod sorted;
mod switches;
mod tables;
mod trace;
mod tree;
mod verify;
mod virtual_rows;

pub use collapse::{VSwitch, vswitches};
pub use engines::{
    CalculatedPaths, Chain, ChainError, ENGINES, Engine, Input, KeptPaths, Outside, PROGRAM, PROGRAM_OPTIONS,
    ProgramFailed, Refusal, WEIGHTS, learn_order, learn_weights, minhop,
};
pub use lanes::{LaneMap, LaneRow, SERVICE_LEVELS, ServiceLevels, Takeover};
pub use lids::{LidError, Lids, PortLids, shares_lid};
pub use management::ManagementNodes;
pub use options::{EngineOptions, LANES_DEFAULT, LANES_MAX, PftreeOrder, WEIGHT_OF_A_HOST};
pub use partitions::{DEFAULT_PKEY, Isolation, Member, Partition, Partitions, Strictness};
pub use repair::{Ends, Outdated, Proven, Row, Unrepaired, keeps};
pub use routing::{Ranks, Routing};
pub use tables::{BLOCK_ENTRIES, ForwardingTable, Routes};
pub use trace::{Hop, Path, TraceError, TraceProblem, trace};
pub use verify::{
    Asymmetry, Breach, COUNTER_EXAMPLES_MAX, Channel, Cycle, Drops, Expectations, IsolationReport, LaneUse,
    LevelsOfPair, LostEntry, MixedHop, MixedLoop, Pair, Report, ReportSummary, Stream, StreamsVerdict,
    Tables, TransitionVerdict, Turn, Turns, Verdict, verify, verify_routing, verify_streams,
    verify_transition,
};
pub use virtual_rows::{KeptRows, VirtualRows};
pub use weft_vocabulary::routing::EngineReport;
