//! Virtual machines of a laboratory, by way of their managers.

use std::time::{Duration, Instant};

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::what;
use weft_control::event::VmEvent;
use weft_control::vmm::{VPort, VmCreate, VmPlace};
use weft_control::{Answer, EventFilter, EventKind, ReplyBody, Request};
use weft_process::{Client, ClientError};

use crate::managers::all_vports;
use crate::view::Lab;

/// Longer than the manager takes to give up.
const PATIENCE: Duration = Duration::from_secs(160);
/// How long a new machine may wait for its LID before the verb says so.
const LID_PATIENCE: Duration = Duration::from_secs(10);

/// How far the start of virtual machines is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// One more runs.
    OneMoreRuns,
    /// All run, and some have LIDs.
    HaveLids {
        /// Machines with a LID.
        lids: usize,
        /// All new machines.
        of: usize,
    },
}

/// A laboratory that has a VM manager.
///
/// # Errors
/// Where it has none, or cannot be read.
pub fn load(folder: &LabFolder) -> anyhow::Result<Lab> {
    let lab = Lab::load(folder)?;
    if lab.record.vmms.is_empty() {
        return Err(
            Failure::new("this laboratory has no VM manager").hint("start it with `weft up --vfs COUNT`")
        );
    }
    Ok(lab)
}

/// A connection to a VM manager.
///
/// # Errors
/// Where it does not run.
pub fn connect(lab: &Lab, manager: &str) -> anyhow::Result<Client> {
    Client::connect(&lab.folder.control(manager)).map_err(away(manager))
}

/// What to say of a manager that does not answer.
pub fn away(manager: &str) -> impl Fn(ClientError) -> anyhow::Error {
    move |error| match error {
        ClientError::Refused(error) => Failure::new(error.message).hint_if_any(error.hint),
        error => {
            let who = what(manager).unwrap_or_default();
            Failure::new(format!("{who} does not answer: {error}")).hint(format!(
                "`weft ps` tells whether it runs, `weft fault restart {manager}` starts it again"
            ))
        }
    }
}

/// Asks a VM manager.
///
/// # Errors
/// Where it refuses, or does not answer.
pub fn ask(lab: &Lab, manager: &str, request: Request) -> anyhow::Result<Answer> {
    connect(lab, manager)?.ask(request, PATIENCE).map_err(away(manager))
}

/// Starts machines, and waits for their LIDs.
///
/// # Errors
/// Where the manager refuses one, or does not answer. A machine without a LID is no error.
pub fn start(
    lab: &Lab,
    manager: &str,
    create: VmCreate,
    progress: &mut dyn FnMut(Progress),
) -> anyhow::Result<Vec<VPort>> {
    let mut client = connect(lab, manager)?;
    let kinds = ["vm-runs", "vm-has-lid"].map(str::to_owned).to_vec();
    let filter = EventFilter { kinds, ..EventFilter::default() };
    let told = client.ask(Request::Events(filter), PATIENCE).and_then(|_| {
        client.ask_with(Request::VmCreate(create), PATIENCE, |line| {
            if let ReplyBody::Event(event) = line.body
                && matches!(event.kind, EventKind::Vm(VmEvent::Runs { .. }))
            {
                progress(Progress::OneMoreRuns);
            }
            None
        })
    });
    let made = told.and_then(|answer| match answer {
        Answer::VmCreate { vms } => Ok(vms),
        _ => Err(ClientError::Unexpected("vm-create")),
    });
    wait_for_lids(lab, manager, &mut client, &made.map_err(away(manager))?, progress)
}

/// The new machines with the LIDs that a subnet manager gives them: a sweep finds their ports.
fn wait_for_lids(
    lab: &Lab,
    manager: &str,
    client: &mut Client,
    vms: &[VmPlace],
    progress: &mut dyn FnMut(Progress),
) -> anyhow::Result<Vec<VPort>> {
    let until = Instant::now() + LID_PATIENCE;
    loop {
        let all = all_vports(&lab.folder, manager).map_err(away(manager))?;
        let is_new = |port: &VPort| vms.iter().any(|place| place.vm == port.vm);
        let ports: Vec<VPort> = all.into_iter().filter(is_new).collect();
        let with_lids = ports.iter().filter(|port| port.virtual_port_lid > 0).count();
        progress(Progress::HaveLids { lids: with_lids, of: ports.len() });
        let left = until.saturating_duration_since(Instant::now());
        // Events that came meanwhile are kept: no LID is missed.
        if with_lids == ports.len() || client.next_event(left).map_err(away(manager))?.is_none() {
            return Ok(ports);
        }
    }
}
