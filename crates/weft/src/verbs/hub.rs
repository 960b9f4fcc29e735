//! `weft hub`

use std::path::Path;

use anyhow::Context;
use weft_bundle::config::hub::HubConfig;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::folder::{LabFile, LabFolder};
use weft_bundle::names::HUB;
use weft_bundle::record::LabRecord;
use weft_lab::{hub, restart, site};
use weft_process::lock::{LastWord, last_word};

use crate::cli::hub::HubArgs;
use crate::output::say;

pub(super) fn run(lab: &LabFolder, args: &HubArgs) -> anyhow::Result<()> {
    let mut config = HubConfig::load(lab)?;
    config.http = args.metrics.or(config.http);
    config.door = args.door.or(config.door);
    tell_of_http(&config, &lab.bundle());
    warn_of_versions(lab)?;
    if args.detached {
        hub::refuse_second(lab)?;
        // The hub that is started reads what is written here.
        config.store(lab)?;
        let pid = restart::start_hub(lab)?.id();
        say(&format!("the hub of `{}` runs as process {pid}", lab.name()));
        return Ok(());
    }
    hub::run(lab, config, || {
        say(&format!("watching `{}`; press Ctrl-C to end", lab.name()));
    })
}

/// Watches remote processes, whoever has started them.
pub(super) fn run_for_remote(bundle: &Path, run: &Path, args: &HubArgs) -> anyhow::Result<()> {
    let config = HubConfig { http: args.metrics, door: args.door, ..HubConfig::default() };
    tell_of_http(&config, &Bundle::at(bundle));
    hub::run_for_remote(&Bundle::at(bundle), run, args.identity.as_deref(), config)
}

/// Whether the laboratory has ever had a hub.
pub(super) fn had_one(lab: &LabFolder) -> anyhow::Result<bool> {
    if site::pid(lab, HUB)?.is_some() {
        return Ok(true);
    }
    let path = lab.place(LabFile::HubLock);
    let word = last_word(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(word != LastWord::Nothing)
}

/// Says how to look, where that is not on this machine alone.
pub(super) fn tell_of_http(config: &HubConfig, bundle: &Bundle) {
    if let Some(address) = config.http.filter(|address| !address.ip().is_loopback()) {
        let token = bundle.http_token();
        say(&format!(
            "https://{address} asks for the token in {}: Authorization: Bearer TOKEN",
            token.display()
        ));
    }
}

fn warn_of_versions(lab: &LabFolder) -> anyhow::Result<()> {
    let (started, own) = (LabRecord::load(lab)?.version, env!("CARGO_PKG_VERSION"));
    if started != own {
        say(&format!("warning: `{}` was started by weft {started}; this hub is of weft {own}", lab.name()));
    }
    Ok(())
}
