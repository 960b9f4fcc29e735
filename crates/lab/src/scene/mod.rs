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
mod partitions;
mod paths;
mod plan;
mod recall;
mod slow;
pub(crate) mod taping;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_control::flow::{FlowChoice, FlowLine};
use weft_control::{Answer, ErrorCode, Request, Role};
use weft_page::Stage;
use weft_process::{Client, ClientError, raise_file_limit};

use crate::agents::PATIENCE;

pub use act::{Acknowledged, Hands};
pub use taping::{TapeTo, Taped, Taping, tape};

/// Parts of what is shown, for those who show a fabric without a laboratory.
pub mod parts {
    pub use super::counters::{PortRates, load, rates};
    pub use super::facts::flow;
    pub use super::partitions::table as partitions;
    pub use super::plan::{End, Plan, rate};
    pub use super::slow::phases;
}

/// Flows that are not the hub's: whoever began them says how they are.
#[derive(Clone, Debug, Default)]
pub struct Guests(Arc<Mutex<Vec<FlowLine>>>);

impl Guests {
    /// They are these now.
    pub fn are(&self, flows: Vec<FlowLine>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = flows;
    }

    fn list(&self) -> Vec<FlowLine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What others than the laboratory say of what is shown.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Alarms that somebody has seen.
    pub acknowledged: Acknowledged,
    /// Flows that are not the hub's.
    pub guests: Guests,
}

/// Shows a laboratory on a stage, by a thread that ends with the laboratory.
///
/// # Errors
/// When its record cannot be read, or a thread cannot be started.
pub fn show(
    folder: &LabFolder,
    stage: &Arc<Stage>,
    role: Role,
    seen: Seen,
) -> anyhow::Result<JoinHandle<()>> {
    raise_file_limit();
    let gatherer = gather::Gatherer::new(folder, stage.clone(), role, seen)?;
    let run = move || gatherer.run();
    std::thread::Builder::new().name("scene".into()).spawn(run).context("cannot start a thread")
}

/// Puts the hub's last minutes before what a stage shows, once they have come.
pub fn recall(folder: &LabFolder, stage: &Arc<Stage>) {
    recall::begin(folder, stage);
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
