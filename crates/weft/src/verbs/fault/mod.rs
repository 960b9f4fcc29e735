//! `weft fault`

mod lasting;

use std::path::PathBuf;

use weft_control::EventKind;
use weft_control::event::{Fault, LabEvent};
use weft_process::lock::note_kill;
use weft_process::{Clock, EventLog, Journal};

use super::Lab;
use crate::cli::FaultVerb;
use crate::failure::Failure;
use crate::lab::events::note_fault;
use crate::lab::names::{IBSIM, PM, SM};
use crate::lab::process::Holder;
use crate::lab::{LabFolder, Place, restart, teardown};

pub(super) fn run(folder: &LabFolder, verb: &FaultVerb) -> anyhow::Result<()> {
    let lab = Lab::load(folder)?;
    match verb {
        FaultVerb::Kill { node } => kill(&lab, &Target::find(&lab, node)?),
        FaultVerb::Restart { node } => start_again(&lab, &Target::find(&lab, node)?),
        FaultVerb::LinkDown { port, lasts } => lasting::unplug(&lab, port, *lasts),
        FaultVerb::LinkUp { port } => lasting::plug(&lab, port),
        FaultVerb::Ls { json } => lasting::list(&lab, *json),
        FaultVerb::Clear { ids, all } => lasting::clear(&lab, ids, *all),
    }
}

/// A process of the laboratory.
struct Target {
    name: String,
    verb: &'static str,
    lock: PathBuf,
    /// The devices that go with it.
    devices: Vec<String>,
}

impl Target {
    fn find(lab: &Lab, name: &str) -> anyhow::Result<Self> {
        let folder = &lab.folder;
        if lab.record.subnet_managers().any(|(manager, _)| manager == name) {
            let lock = folder.sm_files(name).lock;
            return Ok(Self { name: name.into(), verb: SM, lock, devices: Vec::new() });
        }
        if name == SM {
            return Err(Failure::new("this laboratory has no subnet manager")
                .hint("it was started with --no-sm")
                .into());
        }
        if name == PM {
            if lab.record.pm.is_none() {
                return Err(Failure::new("this laboratory has no performance manager")
                    .hint("start it with `weft up --pm`")
                    .into());
            }
            let lock = folder.place(Place::PmLock);
            return Ok(Self { name: PM.into(), verb: PM, lock, devices: Vec::new() });
        }
        if name == IBSIM && lab.record.ibsim.is_some() {
            let lock = folder.place(Place::IbsimLock);
            return Ok(Self { name: IBSIM.into(), verb: IBSIM, lock, devices: Vec::new() });
        }
        let guid = lab.fabric.node(lab.find(name)?).guid;
        let Some((agent, _)) = lab.record.device(guid) else {
            anyhow::bail!("no agent runs `{name}`");
        };
        Ok(Self {
            name: agent.name.clone(),
            verb: crate::AGENT,
            lock: folder.agent_lock(&agent.name),
            devices: agent.devices.iter().map(|device| device.label.clone()).collect(),
        })
    }

    fn what(&self) -> String {
        match self.devices.as_slice() {
            [] if self.name == PM => "the performance manager".to_owned(),
            [] if self.name == IBSIM => "the server for ibsim's programs".to_owned(),
            [] if self.name == SM => "the subnet manager".to_owned(),
            [] => format!("the subnet manager {}", self.name),
            [device] => format!("`{device}` ({})", self.name),
            [device, others @ ..] => {
                format!("`{device}` and {} more devices ({})", others.len(), self.name)
            }
        }
    }
}

/// Kills the process of a node or a manager.
pub(super) fn kill_named(lab: &Lab, name: &str) -> anyhow::Result<()> {
    kill(lab, &Target::find(lab, name)?)
}

/// Starts it afresh.
pub(super) fn start_named(lab: &Lab, name: &str) -> anyhow::Result<()> {
    start_again(lab, &Target::find(lab, name)?)
}

fn kill(lab: &Lab, target: &Target) -> anyhow::Result<()> {
    let Some(holder) = Holder::of(&target.lock)? else {
        // A hub that is about to start it again leaves it dead.
        let _ = note_kill(&target.lock);
        crate::output::say(&format!("{} is not running", target.what()));
        return Ok(());
    };
    record(lab, Fault::Kill, &target.name);
    teardown::kill(vec![holder])?;
    crate::output::say(&format!("killed {}", target.what()));
    Ok(())
}

fn start_again(lab: &Lab, target: &Target) -> anyhow::Result<()> {
    if let Some(holder) = Holder::of(&target.lock)? {
        record(lab, Fault::Kill, &target.name);
        teardown::kill(vec![holder])?;
    }
    record(lab, Fault::Restart, &target.name);
    drop(restart::start(&lab.folder, target.verb, &target.name)?);
    crate::output::say(&format!("restarted {}", target.what()));
    Ok(())
}

/// Tells the laboratory, and writes into its file of events, what is done to it.
fn record(lab: &Lab, fault: Fault, target: &str) {
    if !note_fault(&lab.folder, &lab.record, fault, target) {
        crate::output::say("warning: no process of the laboratory took note of the fault");
    }
    let mut journal = Journal::open(Some(&lab.folder.place(Place::Events)), "fault");
    let fault = LabEvent::Fault { fault, target: target.to_owned() };
    journal.record_line(&EventLog::new("fault", Clock::start()).publish(EventKind::Lab(fault)));
}
