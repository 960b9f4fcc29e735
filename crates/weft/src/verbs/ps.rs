//! `weft ps`

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_bundle::record::{AgentRecord, DeviceRecord};
use weft_control::agent::{AgentStatus, DeviceStatus, PortEnd};
use weft_control::hub::{ProcessEnd, ProcessLine};
use weft_control::{Answer, Page, Request};
use weft_lab::agents::{ask_each, further};
use weft_lab::site;
use weft_lab::site::frozen::Frozen;
use weft_lab::site::status::lab_status;
use weft_lab::view::Lab;
use weft_process::ClientError;

use crate::output::{Table, or_dash, print, print_json};

/// The state of a manager or hub that a fault keeps frozen. Agents answer while they are frozen.
const FROZEN: &str = "frozen";

#[derive(Default, Serialize)]
struct Process {
    process: String,
    pid: Option<i32>,
    state: &'static str,
    kind: &'static str,
    address: Option<weft_link::PeerAddress>,
    /// Where it serves `/metrics`.
    metrics: Option<std::net::SocketAddr>,
    devices: Vec<Device>,
    /// How long a peer that is frozen or on another machine may be silent. One of this machine that ends is noticed at
    /// once.
    link_timeout_ms: Option<u64>,
    /// What the agent counted, if it answers.
    counts: Option<BTreeMap<String, u64>>,
    /// How often the hub has started it again, if a hub answers.
    restarts: Option<u64>,
    /// How it ended last, if a hub answers that has seen it end.
    last_end: Option<ProcessEnd>,
}

#[derive(Serialize)]
struct Device {
    id: String,
    guid: weft_wire::Guid,
    description: String,
    /// The shortest name that finds it.
    label: String,
    /// As the switch itself counts them, if its agent answers.
    lft_writes: Option<u64>,
}

pub(super) fn run(folder: &LabFolder, json: bool) -> anyhow::Result<()> {
    let lab = Lab::load(folder)?;
    let mut processes = managers(&lab)?;
    for agent in &lab.record.agents {
        processes.push(agent_process(folder, &lab, agent)?);
    }
    if super::hub::had_one(folder)? {
        processes.push(without_devices(&lab, HUB.to_owned(), HUB)?);
    }
    ask(folder, &mut processes)?;
    add_what_the_hub_knows(folder, &mut processes);
    if json {
        return print_json(&processes);
    }
    let longest = processes.iter().filter_map(|process| process.link_timeout_ms).max();
    let seconds = longest.unwrap_or(lab.record.link_timeout_ms) as f64 / 1e3;
    let mut table =
        Table::new(&["process", "pid", "state", "restarts", "kind", "udp", "refused", "node", "description"]);
    for process in processes {
        let refused = process.counts.as_ref().and_then(|counts| counts.get("peers_refused"));
        let (node, description) = match process.devices.as_slice() {
            [] => (String::new(), String::new()),
            [device] => (device.label.clone(), device.description.clone()),
            [device, others @ ..] => (format!("{} and {} more", device.label, others.len()), String::new()),
        };
        table.row([
            process.process,
            or_dash(process.pid),
            process.state.into(),
            or_dash(process.restarts),
            process.kind.into(),
            or_dash(process.address.as_ref().map(short)),
            or_dash(refused),
            node,
            description,
        ]);
    }
    let silence = "dead local agents are detected immediately; frozen or remote ones within";
    print(&format!("{table}\n{silence} {seconds:.1} s\n"))
}

/// Where an agent is found: the port alone where most agents are.
fn short(address: &weft_link::PeerAddress) -> String {
    match address.literal() {
        Some(at) if at.ip() == std::net::Ipv4Addr::LOCALHOST => at.port().to_string(),
        _ => address.to_string(),
    }
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
        state: if is_frozen { FROZEN } else { state(pid) },
        kind,
        metrics: lab.record.metrics_of(&process),
        process,
        ..Process::default()
    })
}

fn agent_process(folder: &LabFolder, lab: &Lab, agent: &AgentRecord) -> anyhow::Result<Process> {
    let pid = site::pid(folder, &agent.name)?;
    let device = |device: &DeviceRecord| Device {
        id: device.id.clone(),
        guid: device.guid,
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
        kind,
        address: Some(agent.address.clone()),
        metrics: lab.record.metrics_of(&agent.name),
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
    let running = processes.iter().filter(|process| process.pid.is_some() && process.state != FROZEN);
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
            process.state = "silent";
        }
        let Some(Told { status, mut devices }) = told.remove(&process.process) else { continue };
        // For an agent without links, the one of its configuration.
        process.link_timeout_ms =
            Some(status.link_timeout_ms).filter(|longest| *longest > 0).or(process.link_timeout_ms);
        process.counts = Some(status.counts);
        for device in &mut process.devices {
            device.lft_writes = devices.remove(&device.guid).map(|device| device.lft_writes);
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

fn state(pid: Option<i32>) -> &'static str {
    if pid.is_some() { "running" } else { "dead" }
}
