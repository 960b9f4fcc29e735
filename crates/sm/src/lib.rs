//! The subnet manager as a state machine.
//!
//! It is fed with MADs and time and says what to send; it knows no device, no topology file and no agent, and learns
//! the fabric by SMPs alone. `manager` says what it is doing (`task.rs`) and goes from one phase of a heavy sweep to the
//! next (`phases.rs`). Each phase is a file of `sweep` and a step that owns what it works on and hands it on:
//!
//! | phase | file | from | to |
//! |---|---|---|---|
//! | Discover | `discover.rs` | our own port | every node, port and cable, in order of GUIDs |
//! | Read tables | `read_tables.rs` | that | the tables that devices hold already |
//! | Assign | `lids/assign.rs` | GUIDs, LIDs in ports, LIDs on file | LIDs |
//! | Route | `route.rs` | cabling and LIDs | forwarding tables |
//! | Program | `program.rs` | tables wanted and held | Sets of what differs |
//! | Activate | `activate.rs` | what both ends of a cable can do | ports Armed, then Active |
//! | | `congestion.rs` | what agents of congestion control hold, where it is on | Sets of what differs |
//! | Verify | `light.rs` | switches | has anything changed meanwhile? |
//!
//! Between sweeps `sweep/light.rs` looks for changes, when it is time and when a trap comes (`manager/traps.rs`), and
//! `sweep/audit.rs` reads back a part of what was written. A cable between switches that goes or comes back is repaired
//! (`manager/repair.rs`). Of virtual functions that come and go their slots alone are discovered (`manager/functions.rs`). Any
//! other change leads to a heavy sweep. Every SMP passes through one window (`requests`). What all this has found is
//! `knowledge`. [`Survey`] reads a fabric by the same discovery without writing anything.
//!
//! LIDs of virtual machines move without a sweep (`moves`, `manager/moves.rs`).
//!
//! **Invariant:** LIDs follow from the cabling, the options and the LIDs on file or in the ports, and tables from those and
//! from the tables that stand, never from the order in which answers came. **Invariant:** nothing is written that the device is known to hold, so a restarted
//! manager reads everything and writes nothing but ClientReregister, by which hosts learn to subscribe again.
//! **Invariant:** no MAD makes the manager panic, and none makes it work without end: nodes, ports, hops, and sweeps that
//! follow each other at once are bounded.
//!
//! Subnet administration (`sa`) answers what the last sweep found, in this machine too.
//!
//! Several managers on one subnet elect one of them that writes (`election`, `manager/mastership.rs`).
//!
//! Not here yet: multicast.
//!
//! ```
//! use weft_machine::{Machine, Time};
//! use weft_sm::{Event, GuidToLid, Input, Options, Output, SubnetManager};
//! use weft_wire::{AttributeId, Guid, PortNum};
//!
//! let mut manager = SubnetManager::new(Options::default(), &GuidToLid::default());
//! let (node_guid, port_guid, port) = (Guid(0x10), Guid(0x11), PortNum(1));
//! manager.handle_input(Time::ZERO, Input::Attached { node_guid, port_guid, port });
//! let mut first = None;
//! while let Some(output) = manager.poll_output() {
//!     if let Output::Send(smp) = output {
//!         first = Some(smp);
//!     }
//! }
//! // It asks the node that it sits on who that is, and waits for the answer.
//! assert_eq!(first.unwrap().mad.attribute_id(), AttributeId::NodeInfo);
//! assert_eq!(manager.poll_timeout(), Some(Time::from_millis(200)));
//! assert_eq!(manager.next_timer().unwrap().to_string(), "SMP: timeout at 0.200000000");
//! ```

mod election;
mod input;
mod knowledge;
mod lids;
mod manager;
pub mod migrations;
mod moves;
mod options;
mod output;
mod progress;
mod requests;
mod sa;
pub mod signalling;
mod survey;
mod sweep;
mod timers;

pub use input::Input;
pub use manager::{PlannedKeys, SubnetManager};
pub use options::{
    CongestionControl, CongestionOptions, ElectionOptions, KeyOptions, LaneOptions, LidScheme, Options,
    PartEnforce, RoutingOptions, SaOptions, Signalling, SmpOptions, SmpRouting, SweepOptions, SwitchLids,
    VlWeight, VmLidOptions,
};
pub use output::Output;
pub use progress::{Activity, Progress};
pub use sa::SaCounts;
pub use survey::{Survey, SurveyOutput, Surveyed};
pub use sweep::{Computation, NoEngine, Past, Planned};
pub use timers::SmTimer;
pub use weft_mgmt::Window;
pub use weft_routing::files::GuidToLid;
pub use weft_vocabulary::sm::{
    ElectionCounts, Event, Instructed, Instruction, Learning, ManagerStatus, PhaseTime, Reason, Rebalances,
    RepathUse, Signalled, SmState, SmpCounts, Summary, SweepKind, SweepPhase, VmLids, WindowState,
};

use weft_wire::{Method, MgmtClass, Registration, SA_CLASS_VERSION};

/// What the manager must be delivered besides answers: traps, other managers' questions, and requests to subnet
/// administration, acknowledgements of its tables among them.
pub fn registrations() -> Vec<Registration> {
    let taken = [Method::Get, Method::Set, Method::Trap, Method::TrapRepress];
    let asked =
        [Method::Get, Method::Set, Method::GetTable, Method::GetTraceTable, Method::GetMulti, Method::Delete];
    vec![
        Registration::new(MgmtClass::SubnLid, 1, taken),
        Registration::new(MgmtClass::SubnDirected, 1, [Method::Get, Method::Set]),
        Registration::new(MgmtClass::SubnAdm, SA_CLASS_VERSION, asked),
    ]
}
