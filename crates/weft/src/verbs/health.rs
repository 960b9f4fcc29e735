//! `weft health`: whether a process in this container is well.

use std::time::Duration;

use weft_bundle::folder::LabFolder;
use weft_control::Request;
use weft_lab::site::status::is_up;
use weft_process::Client;

use crate::cli::process::HealthArgs;

/// How long a process has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(args: &HealthArgs) -> anyhow::Result<()> {
    let folder = LabFolder::of_run(&args.run, "")?;
    if args.lab_up {
        return is_up(&folder);
    }
    // One that answers is well: what it waits for is for its laboratory's health.
    Client::connect(&folder.control(&args.name))?.ask(Request::Health, PATIENCE)?;
    Ok(())
}
