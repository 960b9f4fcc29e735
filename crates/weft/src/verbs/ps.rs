//! `weft ps`

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Serialize;
use weft_control::agent::{AgentStatus, DeviceStatus, PortEnd};
use weft_control::{Answer, Page, Request};
use weft_process::lock;

use super::Lab;
use crate::lab::agents::{ask_agents, further};
use crate::lab::names::{HUB, IBSIM, PM, SM};
use crate::lab::record::{AgentRecord, DeviceRecord};
use crate::lab::{LabFolder, Place};
use crate::output::{Table, print, print_json};

#[derive(Serialize)]
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
}

#[derive(Serialize)]
struct Device {
    id: String,
    guid: weft_wire::Guid,
    description: String,
    #[serde(skip)]
    label: String,
    /// As the switch itself counts them, if its agent answers.
    lft_writes: Option<u64>,
}

pub(super) fn run(folder: &LabFolder, json: bool) -> anyhow::Result<()> {
    let lab = Lab::load(folder)?;
    let mut processes = managers(folder, &lab)?;
    let told = ask(folder, &lab)?;
    for agent in &lab.record.agents {
        processes.push(agent_process(folder, &lab, agent, told.get(agent.name.as_str()))?);
    }
    if super::hub::had_one(folder)? {
        processes.push(without_devices(&lab, &folder.place(Place::HubLock), HUB.to_owned(), HUB)?);
    }
    if json {
        return print_json(&processes);
    }
    let mut table = Table::new(&["process", "pid", "state", "kind", "udp", "refused", "node", "description"]);
    for process in processes {
        let refused = process.counts.as_ref().and_then(|counts| counts.get("peers_refused"));
        let (node, description) = match process.devices.as_slice() {
            [] => (String::new(), String::new()),
            [device] => (device.label.clone(), device.description.clone()),
            [device, others @ ..] => (format!("{} and {} more", device.label, others.len()), String::new()),
        };
        table.row([
            process.process,
            process.pid.map_or_else(|| "-".into(), |pid| pid.to_string()),
            process.state.into(),
            process.kind.into(),
            process.address.map_or_else(|| "-".into(), |address| short(&address)),
            refused.map_or_else(|| "-".into(), u64::to_string),
            node,
            description,
        ]);
    }
    let seconds = lab.record.link_timeout_ms as f64 / 1e3;
    let silence = "an agent that is killed here is noticed at once, one that is frozen or elsewhere within";
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
fn managers(folder: &LabFolder, lab: &Lab) -> anyhow::Result<Vec<Process>> {
    let sms = lab.record.subnet_managers().map(|(name, _)| (folder.sm_files(&name).lock, name, SM));
    let others =
        [(lab.record.pm.is_some(), Place::PmLock, PM), (lab.record.ibsim.is_some(), Place::IbsimLock, IBSIM)];
    let others = others.into_iter().filter(|(started, ..)| *started);
    let others = others.map(|(_, lock, kind)| (folder.place(lock), kind.to_owned(), kind));
    sms.chain(others).map(|(lock, name, kind)| without_devices(lab, &lock, name, kind)).collect()
}

/// A process that runs no devices.
fn without_devices(
    lab: &Lab,
    lock: &std::path::Path,
    process: String,
    kind: &'static str,
) -> anyhow::Result<Process> {
    let pid = holder(lock)?;
    Ok(Process {
        pid,
        state: state(pid),
        kind,
        address: None,
        metrics: lab.record.metrics_of(&process),
        devices: Vec::new(),
        link_timeout_ms: None,
        counts: None,
        process,
    })
}

fn agent_process(
    folder: &LabFolder,
    lab: &Lab,
    agent: &AgentRecord,
    says: Option<&Told>,
) -> anyhow::Result<Process> {
    let pid = holder(&folder.agent_lock(&agent.name))?;
    let told = |guid| says.and_then(|says| says.devices.get(&guid));
    let device = |device: &DeviceRecord| Device {
        id: device.id.clone(),
        guid: device.guid,
        description: device.description.clone(),
        label: device.label.clone(),
        lft_writes: told(device.guid).map(|told| told.lft_writes),
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
        counts: says.map(|says| says.status.counts.clone()),
    })
}

/// What an agent says of itself.
#[derive(Default)]
struct Told {
    status: AgentStatus,
    devices: BTreeMap<weft_wire::Guid, DeviceStatus>,
}

/// Asks all agents how they are. One that hangs is listed all the same.
fn ask<'a>(folder: &LabFolder, lab: &'a Lab) -> anyhow::Result<BTreeMap<&'a str, Told>> {
    let mut told: BTreeMap<&str, Told> = BTreeMap::new();
    let names = lab.record.agents.iter().map(|agent| agent.name.as_str());
    ask_agents(folder, names, &Request::AgentStatus, |agent, answer| match answer {
        Answer::AgentStatus(status) => {
            told.insert(agent, Told { status, ..Told::default() });
            Some(Request::Devices(Page::default()))
        }
        Answer::Devices { devices, more } => {
            let next = further(devices.last().map(|device| PortEnd::of_node(device.node)), more);
            let devices = devices.into_iter().map(|device| (device.node.0, device));
            told.entry(agent).or_default().devices.extend(devices);
            next.map(Request::Devices)
        }
        _ => None,
    })?;
    Ok(told)
}

fn holder(path: &std::path::Path) -> anyhow::Result<Option<i32>> {
    let holder = lock::holder(path).with_context(|| format!("cannot ask who locks {}", path.display()))?;
    Ok(holder.map(|pid| pid.as_raw_nonzero().get()))
}

fn state(pid: Option<i32>) -> &'static str {
    if pid.is_some() { "running" } else { "dead" }
}
