//! Hosts behind the adapters' ports: one [`Stack`] each, attached to its device like a program.
//!
//! ```text
//!   program ── Host, Flows ──▶ stack ── Send, Inject ──────────────────────────▶ device
//!                                    ◀─ Receive, Accept, Injected, Port ───────
//! ```

use std::collections::BTreeMap;

use weft_device::{ClientId, Input};
use weft_host::stack::{self, Stack, StackOptions};
use weft_host::traffic::Command;
use weft_machine::{Machine, Time};
use weft_umad::{HostFlows, PortEnd};
use weft_wire::{Guid, NodeType, PortNum};

use crate::config::AgentConfig;
use crate::core::Core;

/// Flows of all hosts of the agent: what became of them has to fit into one answer.
const FLOWS_MAX: usize = 1 << 15;

/// All hosts of the agent.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// In order of node and port.
    hosts: Vec<Host>,
    by_client: BTreeMap<ClientId, usize>,
    /// By device and port number.
    by_port: Vec<Vec<Option<usize>>>,
    /// How many flows there are at most.
    flows: usize,
}

#[derive(Debug)]
struct Host {
    device: usize,
    end: PortEnd,
    stack: Stack,
    client: Option<ClientId>,
    /// Why the command that was just given is not carried out.
    refused: Option<String>,
}

impl Hosts {
    /// One for each port of each adapter, if the configuration wants hosts.
    pub(crate) fn new(config: &AgentConfig) -> Self {
        let Some(options) = &config.hosts else { return Self::default() };
        let mut ends = Vec::new();
        for (index, device) in config.devices.iter().enumerate() {
            if device.kind != NodeType::Switch {
                let ports = (1..=u8::MAX).take(device.ports.len());
                ends.extend(ports.map(|port| (PortEnd { node: device.guid, port: PortNum(port) }, index)));
            }
        }
        ends.sort_unstable();
        let mut by_port: Vec<Vec<Option<usize>>> =
            config.devices.iter().map(|device| vec![None; device.ports.len() + 1]).collect();
        for (index, (end, device)) in ends.iter().enumerate() {
            by_port[*device][usize::from(end.port.0)] = Some(index);
        }
        let hosts = ends.into_iter().map(|(end, device)| Host::new(end, device, options)).collect();
        Self { hosts, by_client: BTreeMap::new(), by_port, flows: 0 }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// The host that is this client of its device.
    #[inline]
    pub(crate) fn of_client(&self, client: ClientId) -> Option<usize> {
        if self.by_client.is_empty() { None } else { self.by_client.get(&client).copied() }
    }

    /// Whether there may be one more flow. They are counted only when there seem to be too many.
    fn has_room(&mut self) -> bool {
        if self.flows >= FLOWS_MAX {
            self.flows = self.hosts.iter().map(|host| host.stack.reports().len()).sum();
        }
        self.flows < FLOWS_MAX
    }

    /// The host behind a port.
    #[inline]
    pub(crate) fn at(&self, device: usize, port: PortNum) -> Option<usize> {
        *self.by_port.get(device)?.get(usize::from(port.0))?
    }
}

impl Host {
    fn new(end: PortEnd, device: usize, options: &StackOptions) -> Self {
        Self { device, end, stack: Stack::new(options.clone()), client: None, refused: None }
    }
}

impl Core {
    /// Attaches every host to its port.
    pub(crate) fn attach_hosts(&mut self) {
        for index in 0..self.hosts.hosts.len() {
            let Some(client) = self.free_client() else { return };
            let Some(host) = self.hosts.hosts.get_mut(index) else { return };
            host.client = Some(client);
            let (device, port) = (host.device, host.end.port);
            self.hosts.by_client.insert(client, index);
            self.input(device, Input::Attach { client, port, registrations: Stack::registrations() });
        }
    }

    /// The device has no room for a host.
    pub(crate) fn host_refused(&mut self, index: usize) {
        self.recorder.count("hosts_refused");
        if let Some(host) = self.hosts.hosts.get_mut(index)
            && let Some(client) = host.client.take()
        {
            self.hosts.by_client.remove(&client);
        }
    }

    /// Something for the host behind a port. Whoever calls is draining the device.
    #[inline]
    pub(crate) fn port_host_hears(&mut self, now: Time, device: usize, port: PortNum, input: stack::Input) {
        match self.hosts.at(device, port) {
            Some(host) => self.host_hears(now, host, input),
            None if matches!(input, stack::Input::Accept(_)) => self.recorder.count("packets_without_host"),
            None => {}
        }
    }

    /// Something for a host. Whoever calls is draining its device.
    pub(crate) fn host_hears(&mut self, now: Time, index: usize, input: stack::Input) {
        if let Some(host) = self.hosts.hosts.get_mut(index) {
            host.stack.handle_input(now, input);
            self.host_outputs(now, index);
        }
    }

    /// A host's time has come.
    pub(crate) fn wake_host(&mut self, now: Time, index: usize) {
        if let Some(host) = self.hosts.hosts.get_mut(index) {
            host.stack.handle_timeout(now);
            let device = host.device;
            self.host_outputs(now, index);
            self.drain(device, now);
        }
    }

    /// Does what a host wants. The device is fed, not drained.
    fn host_outputs(&mut self, now: Time, index: usize) {
        let Some(host) = self.hosts.hosts.get_mut(index) else { return };
        let Some(device) = self.devices.get_mut(host.device) else { return };
        let port = host.end.port;
        while let Some(output) = host.stack.poll_output() {
            let input = match output {
                stack::Output::Inject(packet) => Input::Inject { port, packet },
                stack::Output::Congestion(event) => Input::Congestion { port, event },
                stack::Output::Send(mad) => match host.client {
                    Some(client) => Input::Send { client, mad: Box::new(mad) },
                    None => continue,
                },
                stack::Output::Event(event) => {
                    self.recorder.host(&device.who, port, &event);
                    if let stack::Event::Refused { reason } = event {
                        host.refused = Some(reason);
                    }
                    continue;
                }
            };
            device.machine.handle_input(now, input);
        }
        let deadline = host.stack.poll_timeout();
        self.set_deadline(self.devices.len() + index, deadline, now);
    }

    /// Tells a host to do something.
    pub(crate) fn host_command(
        &mut self,
        node: Guid,
        port: PortNum,
        command: &Command,
    ) -> Result<(), String> {
        let device = self.by_guid.get(&node).copied();
        let place = device.and_then(|device| Some((device, self.hosts.at(device, port)?)));
        let Some((device, index)) = place else {
            return Err(format!("there is no host behind port {port} of node {node}"));
        };
        let begins = matches!(command, Command::Open(_) | Command::Expect { .. });
        if begins && !self.hosts.has_room() {
            return Err(format!("the hosts of this agent have {FLOWS_MAX} flows already"));
        }
        let Some(host) = self.hosts.hosts.get_mut(index).filter(|host| host.client.is_some()) else {
            return Err(format!("the host behind port {port} of node {node} could not be attached"));
        };
        host.refused = None;
        let now = self.now();
        self.host_hears(now, index, stack::Input::Command(command.clone()));
        let refused = self.hosts.hosts.get_mut(index).and_then(|host| host.refused.take());
        self.hosts.flows += usize::from(begins && refused.is_none());
        self.drain(device, now);
        refused.map_or(Ok(()), Err)
    }

    /// What became of the flows of every host.
    pub(crate) fn host_flows(&self) -> Vec<HostFlows> {
        let now_ns = self.now().as_nanos();
        let flows = |host: &Host| HostFlows { end: host.end, now_ns, flows: host.stack.reports() };
        self.hosts.hosts.iter().map(flows).collect()
    }
}
