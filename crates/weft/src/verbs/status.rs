//! `weft status`

use anyhow::Context;
use serde::Serialize;
use weft_umad::lock;

use crate::lab::{LabFolder, LabRecord, Place};
use crate::output::{print, print_json};
use crate::pm_process::PmStatus;
use crate::sm_process::SmStatus;

pub(super) fn run(folder: &LabFolder, json: bool) -> anyhow::Result<()> {
    let record = LabRecord::load(folder)?;
    let lock = folder.place(Place::SmLock);
    let holder = lock::holder(&lock).with_context(|| format!("cannot ask who locks {}", lock.display()))?;
    let status = SmStatus::load(&folder.place(Place::SmStatus))?;
    let pm = pm_status(folder, &record)?;
    if json {
        let running = holder.is_some();
        let name = folder.name();
        return print_json(&serde_json::json!({ "lab": name, "running": running, "sm": status, "pm": pm }));
    }
    let mut text = format!("laboratory `{}` of {}\n", folder.name(), record.topology);
    text += match (&record.sm, holder) {
        (None, _) => "no subnet manager (--no-sm)\n",
        (Some(_), None) => "the subnet manager is not running; this is what it said last:\n",
        (Some(_), Some(_)) => "the subnet manager is running\n",
    };
    if let Some(status) = status {
        text += &status.to_string();
    }
    if let Some(pm) = pm {
        text += &pm.line();
    }
    print(&text)
}

/// The performance manager in few words; all that it sees is `weft top`'s.
#[derive(Serialize)]
struct Pm {
    running: bool,
    attached: bool,
    ready: bool,
    sweeps: u64,
    sweep_took_s: f64,
    nodes: u64,
    silent_nodes: u64,
    ports: u64,
    hot_spots: usize,
}

fn pm_status(folder: &LabFolder, record: &LabRecord) -> anyhow::Result<Option<Pm>> {
    if record.pm.is_none() {
        return Ok(None);
    }
    let lock = folder.place(Place::PmLock);
    let holder = lock::holder(&lock).with_context(|| format!("cannot ask who locks {}", lock.display()))?;
    let status = PmStatus::load(&folder.place(Place::PmStatus))?;
    let snapshot = status.as_ref().map(|status| &status.snapshot);
    let statistics = snapshot.map(|snapshot| snapshot.statistics).unwrap_or_default();
    Ok(Some(Pm {
        running: holder.is_some(),
        attached: status.as_ref().is_some_and(|status| status.attached),
        ready: snapshot.is_some_and(|snapshot| snapshot.ready),
        sweeps: statistics.sweeps,
        sweep_took_s: statistics.sweep_last.as_secs_f64(),
        nodes: statistics.nodes,
        silent_nodes: statistics.silent_nodes,
        ports: statistics.ports,
        hot_spots: snapshot.map_or(0, |snapshot| snapshot.hot_spots.len()),
    }))
}

impl Pm {
    fn line(&self) -> String {
        let state = match (self.running, self.attached, self.ready) {
            (false, ..) => "not running",
            (_, false, _) => "waiting for its agent",
            (_, _, false) => "learning the fabric",
            _ => "sweeping",
        };
        format!(
            "performance manager: {state}; {} sweeps, the last in {:.3} s; {} ports of {} nodes, {} silent; {} hot spots\n",
            self.sweeps, self.sweep_took_s, self.ports, self.nodes, self.silent_nodes, self.hot_spots
        )
    }
}
