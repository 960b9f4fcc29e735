//! `weft status`

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use weft_umad::lock;

use crate::lab::launch::{PM, SM};
use crate::lab::{LabFolder, LabRecord, Place};
use crate::manager::status_file::{STALE_AFTER, age};
use crate::output::{Table, print, print_json};
use crate::pm_process::PmStatus;
use crate::sm_process::{ManagerLine, SmStatus, in_charge};

pub(super) fn run(folder: &LabFolder, json: bool) -> anyhow::Result<()> {
    let record = LabRecord::load(folder)?;
    let managers = managers(folder, &record)?;
    let in_charge = in_charge(folder, &record);
    let shown = managers.iter().find(|manager| manager.name == in_charge);
    let running = shown.is_some_and(|manager| manager.running);
    let status = shown.and_then(|manager| manager.status.as_ref());
    let age = shown.and_then(|manager| manager.age);
    let pm = pm_status(folder, &record)?;
    let list = list(&managers, shown);
    if json {
        let name = folder.name();
        let sm_age_s = age.map(|age| age.as_secs_f64());
        return print_json(&serde_json::json!({
            "lab": name, "running": running, "managers": list, "sm": status, "sm_age_s": sm_age_s,
            "sm_stale": running && is_stale(age), "pm": pm
        }));
    }
    let mut text = format!("laboratory `{}` of {}\n", folder.name(), record.topology);
    if list.len() > 1 {
        text += &table(&list);
    }
    let process = shown.map_or(SM, |manager| manager.name.as_str());
    let name =
        if process == SM { "the subnet manager".to_owned() } else { format!("the subnet manager {process}") };
    text += &match (shown, running) {
        (None, _) => "no subnet manager (--no-sm)\n".to_owned(),
        (Some(_), false) => {
            format!("{name} is not running; this is what it said last, {}:\n", ago(age))
        }
        (Some(_), true) if is_stale(age) => stale(&name, age, &folder.log(process)),
        (Some(_), true) => format!("{name} is running\n"),
    };
    if let Some(status) = status {
        text += &status.to_string();
    }
    if let Some(pm) = pm {
        if pm.stale {
            let age = pm.age_s.map(Duration::from_secs_f64);
            text += &stale("the performance manager", age, &folder.log(PM));
        }
        text += &pm.line();
    }
    print(&text)
}

/// A subnet manager of the laboratory.
struct Manager {
    name: String,
    running: bool,
    status: Option<SmStatus>,
    /// How long ago its status held.
    age: Option<Duration>,
}

fn managers(folder: &LabFolder, record: &LabRecord) -> anyhow::Result<Vec<Manager>> {
    let managers = record.subnet_managers().map(|(name, _)| {
        let files = folder.sm_files(&name);
        let lock = files.lock;
        let holder =
            lock::holder(&lock).with_context(|| format!("cannot ask who locks {}", lock.display()))?;
        let (status, age) = (SmStatus::load(&files.status)?, age(&files.status));
        Ok(Manager { name, running: holder.is_some(), status, age })
    });
    managers.collect()
}

/// A line of the list of managers: the laboratory's own, and those of others that its managers have met.
#[derive(Serialize)]
struct Row {
    /// The process; none of the laboratory's for others.
    process: Option<String>,
    running: bool,
    #[serde(flatten)]
    line: ManagerLine,
}

fn list(managers: &[Manager], shown: Option<&Manager>) -> Vec<Row> {
    let own = managers.iter().map(|manager| {
        let mut lines = manager.status.iter().flat_map(|status| &status.managers);
        let mut line = lines.rfind(|line| line.is_self).cloned().unwrap_or_default();
        if !manager.running || line.state.is_empty() {
            line.state = if manager.running { "waiting" } else { "not running" }.to_owned();
        }
        Row { process: Some(manager.name.clone()), running: manager.running, line }
    });
    let mut rows: Vec<Row> = own.collect();
    let met = shown.filter(|manager| manager.running).and_then(|manager| manager.status.as_ref()).into_iter();
    for line in met.flat_map(|status| &status.managers) {
        if rows.iter().all(|row| row.line.guid != line.guid) {
            rows.push(Row { process: None, running: true, line: line.clone() });
        }
    }
    rows
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new(&["manager", "state", "priority", "GUID", "LID"]);
    for Row { process, line, .. } in rows {
        let lid = if line.lid == 0 { "-".to_owned() } else { line.lid.to_string() };
        table.row([
            process.clone().unwrap_or_else(|| "another".to_owned()),
            line.state.clone(),
            line.priority.to_string(),
            line.guid.clone(),
            lid,
        ]);
    }
    table.to_string()
}

/// The performance manager in few words; all that it sees is `weft top`'s.
#[derive(Serialize)]
struct Pm {
    running: bool,
    /// How long ago what follows held.
    age_s: Option<f64>,
    /// It runs and does not say how it is.
    stale: bool,
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
    let path = folder.place(Place::PmStatus);
    let (status, age) = (PmStatus::load(&path)?, age(&path));
    let snapshot = status.as_ref().map(|status| &status.snapshot);
    let statistics = snapshot.map(|snapshot| snapshot.statistics).unwrap_or_default();
    Ok(Some(Pm {
        running: holder.is_some(),
        age_s: age.map(|age| age.as_secs_f64()),
        stale: holder.is_some() && is_stale(age),
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

/// Whether a manager that runs would have said more since.
fn is_stale(age: Option<Duration>) -> bool {
    age.is_some_and(|age| age > STALE_AFTER)
}

fn stale(manager: &str, age: Option<Duration>, log: &Path) -> String {
    let log = log.display();
    format!("{manager} runs but has not updated its status; what follows held {}; see {log}\n", ago(age))
}

fn ago(age: Option<Duration>) -> String {
    age.map_or_else(|| "at an unknown time".to_owned(), |age| format!("{:.1} s ago", age.as_secs_f64()))
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
