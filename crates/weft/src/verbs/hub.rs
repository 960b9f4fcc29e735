//! `weft hub`

use anyhow::Context;
use weft_process::lock::{LastWord, last_word};

use crate::cli::HubArgs;
use crate::hub_process::{self, HubConfig};
use crate::lab::{LabFolder, LabRecord, Place, restart};
use crate::output::say;

pub(super) fn run(lab: &LabFolder, args: &HubArgs) -> anyhow::Result<()> {
    let mut config = HubConfig::load(lab)?;
    config.http = args.metrics.or(config.http);
    warn_of_http(&config);
    if args.launch.is_some() {
        super::detach(true);
        return hub_process::run(lab, config, args.launch.as_deref(), || ());
    }
    warn_of_versions(lab)?;
    if args.detached {
        hub_process::refuse_second(lab)?;
        // The hub that is started reads what is written here.
        config.store(lab)?;
        let pid = start(lab)?;
        say(&format!("the hub of `{}` runs as process {pid}", lab.name()));
        return Ok(());
    }
    hub_process::run(lab, config, None, || {
        say(&format!("watching `{}`; press Ctrl-C to end", lab.name()));
    })
}

/// Starts a hub that outlives this process; its number.
pub(super) fn start(lab: &LabFolder) -> anyhow::Result<u32> {
    let started = restart::start_hub(lab)?;
    Ok(started.child.id())
}

/// Starts the hub of a laboratory that has come up. The fabric runs without one too, so that it fails is no error.
pub(super) fn start_for_up(lab: &LabFolder, config: HubConfig) {
    warn_of_http(&config);
    let started = config.store(lab).and_then(|()| start(lab));
    if let Err(error) = started {
        say(&format!("warning: no hub watches the laboratory: {error:#}"));
    }
}

/// Whether the laboratory has ever had a hub.
pub(super) fn had_one(lab: &LabFolder) -> anyhow::Result<bool> {
    let path = lab.place(Place::HubLock);
    let word = last_word(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(word != LastWord::Nothing)
}

fn warn_of_http(config: &HubConfig) {
    if let Some(address) = config.http.filter(|address| !address.ip().is_loopback()) {
        say(&format!("warning: whoever can reach {address} can read the laboratory's status and events"));
    }
}

fn warn_of_versions(lab: &LabFolder) -> anyhow::Result<()> {
    let (started, own) = (LabRecord::load(lab)?.version, env!("CARGO_PKG_VERSION"));
    if started != own {
        say(&format!("warning: `{}` was started by weft {started}; this hub is of weft {own}", lab.name()));
    }
    Ok(())
}
