//! `weft ps`

use std::collections::{BTreeMap, BTreeSet};

use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_bundle::record::{AgentRecord, DeviceRecord};
use weft_control::agent::{AgentStatus, DeviceStatus, PortEnd};
use weft_control::hub::ProcessLine;
use weft_control::report::ps::{Device, Process, State};
use weft_control::{Answer, Page, Request};
use weft_lab::agents::{ask_each, further};
use weft_lab::process::TAPER;
use weft_lab::site;
use weft_lab::site::frozen::Frozen;
use weft_lab::site::status::lab_status;
use weft_lab::view::Lab;
use weft_process::ClientError;
use weft_process::lock::{LastWord, last_word};

use crate::output::{Table, or_dash, print, print_json};

pub(super) fn run(folder: &LabFolder, json: bool) -> anyhow::Result<()> {
    let lab = Lab::load(folder)?;
    let mut processes = managers(&lab)?;
    for agent in &lab.record.agents {
        processes.push(agent_process(folder, &lab, agent)?);
    }
    if super::hub::had_one(folder)? {
        processes.push(without_devices(&lab, HUB.to_owned(), HUB)?);
    }
    if is_taped(folder)? {
        processes.push(without_devices(&lab, TAPER.to_owned(), "tape")?);
    }
    ask(folder, &mut processes)?;
    add_what_the_hub_knows(folder, &mut processes);
    if json {
        return print_json(&processes);
    }
    let longest = processes.iter().filter_map(|process| process.link_timeout_ms).max();
    let seconds = longest.unwrap_or(lab.record.link_timeout_ms) as f64 / 1e3;
    let mut table =
        Table::headed("process | pid | state | restarts | kind | udp | refused | node | description");
    for process in processes {
        let refused = process.counts.as_ref().and_then(|counts| counts.get("peers_refused"));
        let (node, description) = match process.devices.as_slice() {
            [] => (String::new(), String::new()),
            [device] => (device.label.clone(), device.description.clone()),
            [device, others @ ..] => (format!("{} and {} more", device.label, others.len()), String::new()),
        };
        table.row(&[
            &process.process,
            &or_dash(process.pid),
            &process.state.name(),
            &or_dash(process.restarts),
            &process.kind,
            &or_dash(process.address.as_deref().map(short)),
            &or_dash(refused),
            &node,
            &description,
        ]);
    }
    let silence = "dead local agents are detected immediately; frozen or remote ones within";
    print(&format!("{table}\n{silence} {seconds:.1} s\n"))
}

/// Whether a process tapes the laboratory, or should. One that has ended in order has reached its bound.
fn is_taped(folder: &LabFolder) -> anyhow::Result<bool> {
    let lock = folder.locks().join(TAPER);
    if folder.remote().is_some() || !lock.exists() {
        return Ok(false);
    }
    let has_ended = || last_word(&lock).is_ok_and(|word| word == LastWord::Stopped);
    Ok(site::pid(folder, TAPER)?.is_some() || !has_ended())
}

/// Where an agent is found: the port alone where most agents are.
fn short(address: &str) -> String {
    address.strip_prefix("127.0.0.1:").unwrap_or(address).to_owned()
}

/// Subnet managers, performance manager and server for ibsim's programs.
fn managers(lab: &Lab) -> anyhow::Result<Vec<Process>> {
    lab.record.others().map(|(name, kind)| without_devices(lab, name, kind.name())).collect()
}

/// A process that runs no devices.
fn without_devices(lab: &Lab, process: String, kind: &'static str) -> anyhow::Result<Process> {
    let pid = site::pid(&lab.folder, &process)?;
    let is_frozen = pid.is_some() && Frozen::of_process(&lab.folder, &process).is_some();
    Ok(Process {
        pid,
        state: if is_frozen { State::Frozen } else { state(pid) },
        kind: kind.to_owned(),
        metrics: metrics_of(lab, &process),
        process,
        ..Process::default()
    })
}

fn agent_process(folder: &LabFolder, lab: &Lab, agent: &AgentRecord) -> anyhow::Result<Process> {
    let pid = site::pid(folder, &agent.name)?;
    let device = |device: &DeviceRecord| Device {
        id: device.id.clone(),
        guid: device.guid.into(),
        description: device.description.clone(),
        label: device.label.clone(),
        lft_writes: None,
    };
    let kind = match agent.devices.as_slice() {
        [device] if device.switch => "switch",
        [_] => "hca",
        _ => "packed",
    };
    Ok(Process {
        process: agent.name.clone(),
        pid,
        state: state(pid),
        kind: kind.to_owned(),
        address: Some(agent.address.to_string()),
        metrics: metrics_of(lab, &agent.name),
        devices: agent.devices.iter().map(device).collect(),
        link_timeout_ms: Some(lab.record.link_timeout_ms),
        ..Process::default()
    })
}

/// What an agent says of itself.
#[derive(Default)]
struct Told {
    status: AgentStatus,
    devices: BTreeMap<weft_wire::Guid, DeviceStatus>,
}

/// Asks all processes that run how they are. One that hangs is listed as such; one that a fault keeps frozen is not asked.
fn ask(folder: &LabFolder, processes: &mut [Process]) -> anyhow::Result<()> {
    let mut told: BTreeMap<String, Told> = BTreeMap::new();
    let running = processes.iter().filter(|process| process.pid.is_some() && process.state != State::Frozen);
    let first = running.map(|process| {
        let is_agent = process.address.is_some();
        (process.process.as_str(), if is_agent { &Request::AgentStatus } else { &Request::Health })
    });
    let failed = ask_each(folder, first, |agent, answer| match answer {
        Answer::AgentStatus(status) => {
            told.insert(agent.to_owned(), Told { status, ..Told::default() });
            Some(Request::Devices(Page::default()))
        }
        Answer::Devices { devices, more } => {
            let next = further(devices.last().map(|device| PortEnd::of_node(device.node)), more);
            let devices = devices.into_iter().map(|device| (device.node.0, device));
            told.entry(agent.to_owned()).or_default().devices.extend(devices);
            next.map(Request::Devices)
        }
        _ => None,
    })?;
    // One that has no socket comes or goes; one that has and says nothing hangs.
    let hangs = |error: &ClientError| matches!(error, ClientError::TimedOut(_));
    let silent = failed.into_iter().filter(|(_, error)| hangs(error));
    let silent: BTreeSet<String> = silent.map(|(name, _)| name.to_owned()).collect();
    for process in processes {
        if silent.contains(&process.process) {
            process.state = State::Silent;
        }
        let Some(Told { status, mut devices }) = told.remove(&process.process) else { continue };
        // For an agent without links, the one of its configuration.
        process.link_timeout_ms =
            Some(status.link_timeout_ms).filter(|longest| *longest > 0).or(process.link_timeout_ms);
        process.counts = Some(status.counts);
        for device in &mut process.devices {
            device.lft_writes = devices.remove(&device.guid.0).map(|device| device.lft_writes);
        }
    }
    Ok(())
}

/// Restarts and ends, which only the hub sees.
fn add_what_the_hub_knows(folder: &LabFolder, processes: &mut [Process]) {
    let Some(status) = lab_status(folder) else { return };
    let mut known: BTreeMap<String, ProcessLine> =
        status.processes.into_iter().map(|line| (line.name.clone(), line)).collect();
    for process in processes {
        let Some(line) = known.remove(&process.process) else { continue };
        (process.restarts, process.last_end) = (Some(line.restarts), line.last_end);
    }
}

fn state(pid: Option<i32>) -> State {
    if pid.is_some() { State::Running } else { State::Dead }
}

fn metrics_of(lab: &Lab, process: &str) -> Option<String> {
    lab.record.metrics_of(process).map(|address| address.to_string())
}
