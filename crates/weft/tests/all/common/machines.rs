//! Virtual machines of a laboratory: as the VM manager lists them, and as agents have them in their slots.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use weft_control::vm::{Slot, SlotState};
use weft_control::{Answer, Page, Request};
use weft_process::Client;
use weft_wire::Guid;

use super::Home;

/// How long an agent has to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The line of a virtual machine in `weft vm ls`.
pub(crate) fn listed(home: &Home, vm: &str) -> Option<Value> {
    let list = home.json(&["vm", "ls", "--json"]);
    list.as_array().unwrap().iter().find(|port| port["vm"] == vm).cloned()
}

/// Its state there; empty if it is not listed.
pub(crate) fn state(home: &Home, vm: &str) -> String {
    listed(home, vm).map_or_else(String::new, |port| port["vm_state"].as_str().unwrap().to_owned())
}

/// What the VM manager says of itself, if it has begun.
pub(crate) fn manager_status(home: &Home) -> Option<Value> {
    let told = home.weft(&["ask", "vmm", "vmm-status"]);
    let status: Value = serde_json::from_str(&told.stdout).ok()?;
    (told.code == 0 && status["generation"] != 0).then_some(status)
}

/// The agents of hosts with slots, which are asked directly.
pub(crate) struct Slots {
    agents: Vec<Agent>,
    patience: Duration,
}

struct Agent {
    host: String,
    process: String,
    control: PathBuf,
    client: Option<Client>,
}

/// A slot of a host.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) host: String,
    pub(crate) slot: Slot,
}

/// The GUIDs of ports in slots.
pub(crate) fn guids(seen: &[Seen]) -> BTreeSet<Guid> {
    seen.iter().map(|seen| seen.slot.identity.port.0).collect()
}

impl Slots {
    /// Of the only laboratory, all of whose agents run.
    pub(crate) fn of(home: &Home) -> Self {
        let processes = home.json(&["ps", "--json"]);
        let agent = |process: &Value| {
            let devices = process["devices"].as_array().unwrap();
            let mut names = devices.iter().map(|device| device["description"].as_str().unwrap());
            let host = names.find_map(|name| name.strip_suffix(" vSwitch"))?.to_owned();
            let process = process["process"].as_str().unwrap().to_owned();
            let control = home.lab("default").join("control").join(&process);
            Some(Agent { host, process, control, client: None })
        };
        Self { agents: processes.as_array().unwrap().iter().filter_map(agent).collect(), patience: PATIENCE }
    }

    /// The same where agents may be stopped, and are not waited for.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    pub(crate) fn hosts(&self) -> Vec<String> {
        self.agents.iter().map(|agent| agent.host.clone()).collect()
    }

    /// The process of a host.
    pub(crate) fn agent(&self, host: &str) -> String {
        self.agents.iter().find(|agent| agent.host == host).unwrap().process.clone()
    }

    /// What the agents that answer have, one after the other.
    pub(crate) fn read(&mut self) -> Vec<Seen> {
        let hosts = self.hosts();
        hosts.iter().flat_map(|host| self.of_host(host)).collect()
    }

    /// What one agent has; nothing if it does not answer.
    pub(crate) fn of_host(&mut self, host: &str) -> Vec<Seen> {
        let Some(agent) = self.agents.iter_mut().find(|agent| agent.host == host) else { return Vec::new() };
        let slots = agent.ask(self.patience).unwrap_or_default();
        slots.into_iter().map(|slot| Seen { host: host.to_owned(), slot }).collect()
    }

    /// A virtual machine that runs in two places, in words.
    ///
    /// Agents are asked one after the other, and a machine may move meanwhile. So where two have it, the first is asked again: every step
    /// of a slot has an epoch of its own, so a machine that runs in the same epoch as before has run all the time.
    pub(crate) fn twice(&mut self) -> Option<String> {
        let mut running: BTreeMap<Guid, Vec<Seen>> = BTreeMap::new();
        for seen in self.read() {
            if seen.slot.state == SlotState::Running {
                running.entry(seen.slot.identity.port.0).or_default().push(seen);
            }
        }
        for (guid, places) in running {
            let Some((last, earlier)) = places.split_last().filter(|(_, earlier)| !earlier.is_empty()) else {
                continue;
            };
            for before in earlier {
                let now = self.of_host(&before.host);
                let runs_on = now.iter().any(|now| {
                    (now.slot.slot, now.slot.epoch, now.slot.state, &now.slot.vm)
                        == (before.slot.slot, before.slot.epoch, SlotState::Running, &before.slot.vm)
                });
                if runs_on {
                    return Some(format!("{guid} runs twice: in {before:?} and in {last:?}"));
                }
            }
        }
        None
    }
}

impl Agent {
    fn ask(&mut self, patience: Duration) -> Option<Vec<Slot>> {
        let mut client = self.client.take().or_else(|| Client::connect(&self.control).ok())?;
        let answer = client.ask(Request::Slots(Page::default()), patience).ok()?;
        self.client = Some(client);
        match answer {
            Answer::Slots { slots, .. } => Some(slots),
            _ => None,
        }
    }
}
