//! The performance manager: sweeps counters, finds hot spots, asks for slow lanes.
//!
//! It is fed with MADs and time and says what to send; it knows no device, no topology file and no agent, and learns
//! the fabric through MADs alone.
//!
//! ```text
//!  learn.rs ──▶ fabric.rs ──▶ sweep.rs ──▶ totals.rs, rates.rs ──▶ detect.rs ──▶ moves.rs ──▶ the subnet manager
//!   own port,    nodes and     counters     64-bit totals,         algorithm 1   repath 69,
//!   SA tables    ports         by window    equations 1 to 3                     unpath 68
//! ```
//!
//! | what it sends | to whom | when |
//! |---|---|---|
//! | SubnGet(PortInfo), no hops | its own port | when it is attached, and every [`Options::refresh`] |
//! | SubnAdmGetTable(NodeRecord, PortInfoRecord, LinkRecord) | subnet administration | then; when a Report comes, when a device falls silent, when its own port changes |
//! | SubnAdmSet(InformInfo) for traps 64, 65 and 128 | subnet administration | with each of those, because subscriptions die with a subnet manager |
//! | SubnAdmGetTable(InformInfoRecord) of its own | subnet administration | every two seconds |
//! | PerformanceGet(PortCountersExtended, PortCounters) | every active port | every [`Options::interval`] |
//! | PerformanceSet(PortCounters) by CounterSelect | a port | when a counter is past half of its range |
//! | SubnAdmGet and Set(ReceivedData) | the subnet manager | at most once in [`Options::learn_weights`] sweeps |
//! | SubnAdmSet(Notice) with trap 69 or 68 and [`RepathDetails`] | the subnet manager | when a host is to take the slow lane towards a hot spot, or to leave it |
//!
//! [`RepathDetails`]: weft_wire::RepathDetails
//!
//! **Restart.** A manager that begins while hosts are on the slow lane cannot know which. When it has learned the fabric
//! it asks the subnet manager once to tell every subscriber to leave all slow lanes (unpath of kind WILDCARD, target 0;
//! [`Options::wildcard_at_start`]); the next sweeps find those hot spots again that there still are. An unpath for every
//! LID would be as many notices as hosts times hosts, and a repath of kind WILDCARD is what the subnet manager itself
//! says when paths change, which must not end hot spots. A manager that ends in order gets
//! [`Input::Withdraw`] before.
//!
//! **When the subnet manager restarts,** hosts forget the notices, and it forgets who has
//! subscribed. So the manager looks every two seconds whether its own subscriptions are still
//! there, and when they are not it learns the fabric, subscribes and sends all notices again.
//!
//! **What hosts receive** is reported where [`Options::learn_weights`] says so, for routing that learns from it (`report.rs`).
//!
//! **A port with several LIDs** (LMC) is repathed by its base LID only.
//!
//! **Where it is attached.** It registers for Reports of subnet administration ([`registrations`]). A port has only
//! one program that does; on an adapter whose host does so itself it is attached without, and learns of changes by
//! silence and by [`Options::refresh`] alone. A switch's port 0 is always free.
//!
//! ```
//! use weft_machine::{Machine, Time};
//! use weft_pm::{Input, Options, Output, PerformanceManager};
//! use weft_wire::{AttributeId, Guid, PortNum};
//!
//! let mut manager = PerformanceManager::new(Options::default());
//! let (node_guid, port_guid, port) = (Guid(0x10), Guid(0x11), PortNum(1));
//! manager.handle_input(Time::ZERO, Input::Attached { node_guid, port_guid, port });
//! let Some(Output::Send(first)) = manager.poll_output() else { panic!("it asks at once") };
//! // Where the subnet manager is, its own port knows.
//! assert_eq!(first.mad.attribute_id(), AttributeId::PortInfo);
//! assert_eq!(manager.poll_timeout(), Some(Time::from_secs(1)));
//! ```

mod detect;
mod fabric;
mod input;
mod learn;
mod manager;
mod moves;
mod options;
mod output;
pub mod rates;
mod report;
mod request;
mod snapshot;
mod sweep;
mod timers;
mod totals;

pub use input::Input;
pub use manager::PerformanceManager;
pub use options::{DetectorKind, Options, PRINTED_THRESHOLD, SHAPED_THRESHOLD};
pub use output::Output;
pub use snapshot::{PortSnapshot, Snapshot};
pub use timers::PmTimer;
pub use totals::ErrorTotals;
pub use weft_vocabulary::pm::{End, Event, HotSpot, Question, Statistics, Totals};

use weft_wire::{Method, MgmtClass, Registration, SA_CLASS_VERSION};

/// What the driver registers when it attaches the manager: the Reports of subnet administration. Answers need no
/// registration.
pub fn registrations() -> Vec<Registration> {
    vec![Registration::new(MgmtClass::SubnAdm, SA_CLASS_VERSION, [Method::Report])]
}
