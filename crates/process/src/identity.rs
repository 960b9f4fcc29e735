//! Identity of this process.

use weft_control::event::ProcessEvent;
use weft_control::process::{Identity, ProcessKind};

use crate::Clock;

/// This process, by its name in its laboratory; `lab` is empty without one.
pub fn identity(lab: &str, name: &str, kind: ProcessKind, clock: Clock) -> Identity {
    Identity {
        lab: lab.to_owned(),
        name: name.to_owned(),
        kind,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        incarnation: clock.incarnation(),
    }
}

/// That this process has begun.
pub fn started(identity: &Identity) -> ProcessEvent {
    let Identity { kind, version, pid, .. } = identity;
    ProcessEvent::Started { kind: *kind, version: version.clone(), pid: *pid }
}
