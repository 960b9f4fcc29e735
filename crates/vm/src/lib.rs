//! The VM manager: virtual machines in slots of virtualised adapters, their moves, and the journal of both.
//!
//! It is fed with answers of agents, answers of the subnet manager, requests of clients and time, and says what to send and what to write
//! down; it knows no socket and no file. What crosses the network in which form is the driver's business.
//!
//! ```text
//!            Request                                   Write / Synced
//!  clients ──────────▶  ┌───────────────────────┐  ◀────────────────▶  journal
//!          ◀──────────  │ book.rs   what it says │
//!            Reply      │ hosts.rs  what is there│      SmRequest
//!            Command    │ manager/  what is next │  ────────────────▶  subnet manager
//!  agents  ◀──────────  └───────────────────────┘  ◀────────────────
//!          ──────────▶                                 SmAnswer
//!            Outcome
//! ```
//!
//! A move:
//!
//! ```text
//!  reserve ─▶ pre-copy ─▶ hold ─▶ freeze ─▶ export ─▶ import ─▶ reroute ─▶ COMMIT ─▶ activate ─▶ release
//!    dst                   SM      src       src       dst        SM        disk       dst        src
//! ```
//!
//! **What always holds.** A virtual machine runs in one slot at most. A step is taken when its record is on disk. The destination
//! is activated when the source is known to be frozen, has given its image, and COMMIT is on disk. Before COMMIT a move can go back, after
//! it only forward. Nothing that an agent, the subnet manager, a client or a journal says stops the machine with a panic.
//!
//! **What may take long.** Without one of its two hosts, or without the subnet manager once it was asked, a move waits: the virtual
//! machine is frozen and listed as `in doubt`. A host's new incarnation, or its exit status, is proof that what ran there is lost.
//! Decision 18 (docs/decisions/0018-vm-manager.md) gives the reasons.
//!
//! ```
//! use weft_machine::{Machine, Time};
//! use weft_vm::{Change, Input, Options, Output, Record, VmManager};
//!
//! let mut manager = VmManager::new(Options::default());
//! manager.handle_input(Time::ZERO, Input::Start { journal: None, hosts: Vec::new(), guids: Vec::new() });
//! let Some(Output::Journal(write)) = manager.poll_output() else { panic!("its generation goes to disk first") };
//! let Change::Replace(records) = &write.change else { panic!("in a new journal") };
//! assert!(matches!(records[0], Record::Started { generation: 1, adopts: true, .. }));
//! assert!(manager.poll_output().is_none());
//! manager.handle_input(Time::ZERO, Input::Synced(write.number));
//! assert!(matches!(manager.poll_output(), Some(Output::Event(_))));
//! ```

mod agent;
mod book;
mod error;
mod guids;
mod hosts;
mod identity;
mod input;
pub mod journal;
mod manager;
mod names;
mod options;
mod output;
mod partitions;
mod places;
mod record;
mod request;
mod sa;
mod sm;
pub mod station;
mod steps;
mod task;
mod timers;

pub use agent::{
    Act, Adapter, Command, Content, Deed, HostReport, IMAGE_BYTES_MAX, Image, Occupant, Outcome, Refusal,
    SlotReport, WORDS_BYTES_MAX,
};
pub use error::{VmError, Why};
pub use identity::{Identity, P_KEYS_MAX, PortIdentity, Scheme};
pub use input::Input;
pub use journal::{Change, JOURNAL_BYTES_MAX, Journal, JournalError, Write};
pub use manager::{Census, Counts, VmManager};
pub use names::{BadName, HostName, NAME_BYTES_MAX, Place, Slot, VFS_MAX, VmName};
pub use options::{ASK_FOR, BUSY_FOR, Options};
pub use output::Output;
pub use partitions::PortPartitions;
pub use places::{HostPart, Places, SlotPart, all_guids, seat_beside};
pub use record::{Move, Proof, Record, State, Vm};
pub use request::{
    Create, Detach, FLEET_MAX, Hypervisor, Migrate, Migration, QUEUE_MAX, Reply, Request, RequestId, VMS_MAX,
};
pub use sa::SaClient;
pub use sm::{AddressMove, End, MovePlan, PLAN_WRITES_MAX, Route, SmAnswer, SmRequest, SmWish, Stages};
pub use timers::VmTimer;
pub use weft_vocabulary::vm::{
    Event, LatePolicy, Method, MoveCounts, PlanWrite, Silent, Step, UpdateOrder, VPort,
};
