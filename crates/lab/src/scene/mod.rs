//! The scene: what the live page shows of a running laboratory, gathered once a second and at each event.
//!
//! ```text
//!   events ────────────────┐                        (follow: a thread that waits for the hub)
//!   status, ports, counters├─▶ Gatherer ─▶ State ─▶ Stage ─▶ readers, tapes
//!   managers, faults, paths┘                        (slow: a thread that may wait for silent processes)
//! ```
//!
//! It asks as any verb does, so it works on every kind of site. Counters are asked for only while somebody looks.

mod act;
mod alarms;
mod counters;
mod events;
mod facts;
mod gather;
mod paths;
mod plan;
mod slow;

use std::sync::Arc;

use anyhow::Context;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_control::flow::FlowChoice;
use weft_control::{Answer, ErrorCode, Request, Role};
use weft_page::Stage;
use weft_process::{Client, ClientError, raise_file_limit};

use crate::agents::PATIENCE;

pub use act::{Acknowledged, Hands};

/// Shows a laboratory on a stage, until the process ends.
///
/// # Errors
/// When its record cannot be read, or a thread cannot be started.
pub fn show(folder: &LabFolder, stage: &Arc<Stage>, role: Role, seen: Acknowledged) -> anyhow::Result<()> {
    raise_file_limit();
    let gatherer = gather::Gatherer::new(folder, stage.clone(), role, seen)?;
    let run = move || gatherer.run();
    std::thread::Builder::new().name("scene".into()).spawn(run).context("cannot start a thread")?;
    Ok(())
}

/// The role in which the hub is asked. At a door the hub's own socket knows nothing of it, but the door refuses what is an operator's: here
/// an end to no flow.
///
/// # Errors
/// When the hub does not answer.
pub fn role(folder: &LabFolder) -> anyhow::Result<Role> {
    let mut hub = Client::connect(&folder.control(HUB))?;
    let Answer::Hello(hello) = hub.ask(Request::Hello, PATIENCE)? else {
        anyhow::bail!("the hub answers something else");
    };
    if folder.remote().is_none() {
        return Ok(hello.role);
    }
    match hub.ask(Request::FlowStop(FlowChoice::default()), PATIENCE) {
        Err(ClientError::Refused(error)) if error.code == ErrorCode::Forbidden => Ok(Role::Viewer),
        _ => Ok(hello.role),
    }
}
