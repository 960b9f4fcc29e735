//! The subnet manager as a state machine: discover, assign, route, program, activate, sweep.

mod event;
mod guid2lid;
mod input;
mod manager;
mod options;
mod output;
mod progress;

pub use event::{Event, Phase, PhaseTime, Reason, SmpCounts, Summary, SweepKind};
pub use guid2lid::{GuidToLid, GuidToLidError, GuidToLidErrorKind, LidRange};
pub use input::Input;
pub use manager::SubnetManager;
pub use options::{Options, SmpRouting, VlWeight};
pub use output::Output;
pub use progress::{Activity, Progress};

use weft_wire::{Method, MgmtClass, Registration};

/// What the manager must be delivered besides answers: traps, and other managers' questions.
pub fn registrations() -> Vec<Registration> {
    let registration =
        |class, methods: &[Method]| Registration { class, class_version: 1, methods: methods.to_vec() };
    vec![
        registration(MgmtClass::SubnLid, &[Method::Get, Method::Set, Method::Trap, Method::TrapRepress]),
        registration(MgmtClass::SubnDirected, &[Method::Get, Method::Set]),
    ]
}
