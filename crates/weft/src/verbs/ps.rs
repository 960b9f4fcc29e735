//! `weft ps`

use anyhow::Context;
use serde::Serialize;
use weft_umad::lock;

use super::Lab;
use crate::lab::{LabFolder, Place};
use crate::output::{Table, print, print_json};

#[derive(Serialize)]
struct Process {
    process: String,
    pid: Option<i32>,
    state: &'static str,
    kind: &'static str,
    address: Option<std::net::SocketAddr>,
    devices: Vec<Device>,
}

#[derive(Serialize)]
struct Device {
    id: String,
    guid: weft_wire::Guid,
    description: String,
}

pub(super) fn run(folder: &LabFolder, json: bool) -> anyhow::Result<()> {
    let lab = Lab::load(folder)?;
    let mut processes = Vec::new();
    if lab.record.sm.is_some() {
        let pid = holder(&folder.place(Place::SmLock))?;
        let process = crate::lab::launch::SM.to_owned();
        processes.push(Process {
            process,
            pid,
            state: state(pid),
            kind: "sm",
            address: None,
            devices: Vec::new(),
        });
    }
    for agent in &lab.record.agents {
        let pid = holder(&folder.agent_lock(&agent.name))?;
        let devices: Vec<Device> = agent
            .devices
            .iter()
            .map(|device| Device {
                id: device.id.clone(),
                guid: device.guid,
                description: device.description.clone(),
            })
            .collect();
        let kind = match agent.devices.as_slice() {
            [device] if device.switch => "switch",
            [_] => "hca",
            _ => "packed",
        };
        let (process, address) = (agent.name.clone(), Some(agent.address));
        processes.push(Process { process, pid, state: state(pid), kind, address, devices });
    }
    if json {
        return print_json(&processes);
    }
    let mut table = Table::new(&["process", "pid", "state", "kind", "udp", "device"]);
    for process in processes {
        let device = match process.devices.as_slice() {
            [] => String::new(),
            [device] => device.description.clone(),
            [device, others @ ..] => format!("{} and {} more", device.description, others.len()),
        };
        table.row([
            process.process,
            process.pid.map_or_else(|| "-".into(), |pid| pid.to_string()),
            process.state.into(),
            process.kind.into(),
            process.address.map_or_else(|| "-".into(), |address| address.port().to_string()),
            device,
        ]);
    }
    print(&table.to_string())
}

fn holder(path: &std::path::Path) -> anyhow::Result<Option<i32>> {
    let holder = lock::holder(path).with_context(|| format!("cannot ask who locks {}", path.display()))?;
    Ok(holder.map(|pid| pid.as_raw_nonzero().get()))
}

fn state(pid: Option<i32>) -> &'static str {
    if pid.is_some() { "running" } else { "dead" }
}
