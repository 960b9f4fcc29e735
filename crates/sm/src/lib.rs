//! The subnet manager as a state machine: discover, assign, route, program, activate, sweep.

mod activate;
mod agenda;
mod assign;
mod discover;
mod election;
mod event;
mod guid2lid;
mod held;
mod input;
mod learn;
mod light;
mod manager;
mod options;
mod output;
mod phases;
mod pipe;
mod program;
mod progress;
mod route;
mod settings;
mod subnet;
mod survey;
mod sweep;
mod traps;

pub use event::{Event, Phase, PhaseTime, Reason, SmpCounts, Summary, SweepKind};
pub use guid2lid::{GuidToLid, GuidToLidError, GuidToLidErrorKind, LidRange};
pub use input::Input;
pub use manager::SubnetManager;
pub use options::{Options, SmpRouting, VlWeight};
pub use output::Output;
pub use progress::{Activity, Progress};
pub use survey::{Survey, SurveyOutput, Surveyed};

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
