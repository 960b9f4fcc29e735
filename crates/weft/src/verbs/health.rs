//! `weft health`: whether a process in this container is well.

use std::time::Duration;

use weft_control::hub::ProcessState;
use weft_control::process::ProcessKind;
use weft_control::{Answer, Request};
use weft_process::Client;

use crate::cli::HealthArgs;
use crate::failure::Failure;
use crate::lab::LabFolder;
use crate::lab::hub_status::lab_status;

/// How long a process has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(args: &HealthArgs) -> anyhow::Result<()> {
    let folder = LabFolder::of_run(&args.run, "")?;
    if args.lab_up {
        return lab_is_up(&folder);
    }
    // One that answers is well: what it waits for is for its laboratory's health.
    Client::connect(&folder.control(&args.name))?.ask(Request::Health, PATIENCE)?;
    Ok(())
}

fn lab_is_up(folder: &LabFolder) -> anyhow::Result<()> {
    let status = lab_status(folder).ok_or_else(|| Failure::new("the hub does not answer"))?;
    let expected = || status.processes.iter().filter(|line| line.is_expected);
    if let Some(line) = expected().find(|line| line.state != ProcessState::Ready) {
        return Err(Failure::new(format!("`{}` is {}", line.name, line.state.name())).into());
    }
    let mut managers = expected().filter(|line| line.kind == Some(ProcessKind::Sm)).peekable();
    if managers.peek().is_none() {
        return Ok(());
    }
    for manager in managers {
        let mut client = Client::connect(&folder.control(&manager.name))?;
        if let Answer::SmStatus(status) = client.ask(Request::SmStatus, PATIENCE)?
            && status.subnet_up
        {
            return Ok(());
        }
    }
    Err(Failure::new("no subnet manager has brought the subnet up").into())
}
