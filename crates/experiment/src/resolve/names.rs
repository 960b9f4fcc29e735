//! Names of hosts, nodes and ports, looked up in the cabling.

use weft_topology::{Adapter, Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, PortNum};

use crate::file::{Choice, Role, VM_PREFIX, Wrong, choices, listed, nearest};
use crate::{FlowPlan, VmPlan, What};

/// The most hosts that a range names.
const RANGE_MAX: u32 = 100_000;
/// How many examples an error gives.
const EXAMPLES: usize = 4;

pub(super) struct Names<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) adapters: &'a [Adapter],
    /// Virtual machines, once they are known.
    pub(super) machines: &'a [VmPlan],
    pub(super) choice: &'a Choice,
}

impl Names<'_> {
    /// All hosts, in the order of the cabling's list, without virtual functions.
    pub(super) fn all_hosts(&self) -> Vec<NodeIndex> {
        self.fabric.hosts().map(|(index, _)| index).filter(|index| !self.is_function(*index)).collect()
    }

    pub(super) fn is_function(&self, node: NodeIndex) -> bool {
        self.adapters.iter().any(|adapter| adapter.vfs.contains(&node))
    }

    /// The end of a flow: a host, or a virtual machine by the function that it starts in.
    pub(super) fn end(&self, text: &str) -> Result<NodeIndex, Wrong> {
        let Some(name) = text.strip_prefix(VM_PREFIX) else { return self.host(text) };
        let found = self.machines.iter().find(|vm| vm.name.to_string() == name);
        found.map(|vm| vm.born).ok_or_else(|| {
            let names: Vec<String> = self.machines.iter().map(|vm| vm.name.to_string()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let message = format!("no virtual machine is called `{name}`");
            self.choice.wrong(Role::Host, text, message).allowed(choices(name, &names))
        })
    }

    /// The GUID of the port of a flow's end.
    pub(super) fn end_guid(&self, end: NodeIndex) -> Guid {
        let vm = self.machines.iter().find(|vm| vm.born == end);
        vm.map_or_else(|| self.port_guid(end), |vm| vm.port_guid)
    }

    /// Hosts by name, by range (`host-[1-6]`), or `all`; each once.
    pub(super) fn hosts(&self, texts: &[String]) -> Result<Vec<NodeIndex>, Wrong> {
        let mut found = Vec::new();
        for text in texts {
            match range(text) {
                _ if text == "all" => found.extend(self.all_hosts()),
                None => found.push(self.host(text)?),
                Some((before, first, last, after)) => {
                    if first > last || last - first >= RANGE_MAX {
                        let message = format!("the range `{text}` is empty or too long");
                        return Err(self.choice.wrong(Role::Host, text, message));
                    }
                    for number in first..=last {
                        found.push(self.host_named(&format!("{before}{number}{after}"), text)?);
                    }
                }
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        found.retain(|host| seen.insert(*host));
        Ok(found)
    }

    pub(super) fn host(&self, name: &str) -> Result<NodeIndex, Wrong> {
        self.host_named(name, name)
    }

    /// A host; `text` is what the file says.
    fn host_named(&self, name: &str, text: &str) -> Result<NodeIndex, Wrong> {
        let wrong = |message: String| {
            self.choice.wrong(Role::Host, text, message).allowed(self.examples(name, false))
        };
        let found = self.fabric.find(name).map_err(|error| wrong(error.to_string()))?;
        if self.fabric.node(found).is_switch() {
            return Err(wrong(format!("`{name}` is a switch, and a host is meant")));
        }
        if self.is_function(found) {
            let wrong = wrong(format!("`{name}` is a virtual function, and a host is meant"));
            return Err(wrong.allowed("a virtual machine is named `vm:NAME` as the end of a flow"));
        }
        if self.fabric.node(found).attach_port().is_none() {
            return Err(wrong(format!("the host `{name}` has no cable")));
        }
        Ok(found)
    }

    pub(super) fn node(&self, name: &str) -> Result<NodeIndex, Wrong> {
        self.fabric.find(name).map_err(|error| {
            self.choice.wrong(Role::Node, name, error.to_string()).allowed(self.examples(name, true))
        })
    }

    /// A port: `node/port`, `node:port`, or the name of a link.
    pub(super) fn port(&self, text: &str) -> Result<PortRef, Wrong> {
        let links = &self.choice.experiment.links;
        let text = links.get(text).map_or(text, String::as_str);
        let wrong = |message: String| self.choice.wrong(Role::Port, text, message);
        let Some((node, number)) = text.rsplit_once(['/', ':']) else {
            let names: Vec<&str> = links.keys().map(String::as_str).collect();
            let allowed = format!(
                "ports are written `node/port`, as `A/4`; the names of [link] are {}",
                listed(&names)
            );
            return Err(wrong(format!("`{text}` names no port")).allowed(allowed));
        };
        let index = self
            .fabric
            .find(node)
            .map_err(|error| wrong(error.to_string()).allowed(self.examples(node, true)))?;
        let known = self.fabric.node(index);
        let number = number.parse().ok().map(PortNum).filter(|port| known.port(*port).is_some());
        number.map(|port| PortRef::new(index, port)).ok_or_else(|| {
            let allowed = format!("{node} has the ports 1 to {}", known.port_count());
            wrong(format!("`{text}` names no port of {node}")).allowed(allowed)
        })
    }

    /// A port with a cable.
    pub(super) fn cabled(&self, text: &str) -> Result<PortRef, Wrong> {
        let port = self.port(text)?;
        let text = self.choice.experiment.links.get(text).map_or(text, String::as_str);
        if self.fabric.peer(port).is_some() {
            return Ok(port);
        }
        let node = self.fabric.node(port.node);
        let cabled: Vec<String> = node.cabled_ports().map(|(port, _)| port.0.to_string()).collect();
        let cabled: Vec<&str> = cabled.iter().map(String::as_str).collect();
        let wrong = self.choice.wrong(Role::Port, text, format!("no cable is in `{text}`"));
        Err(wrong.allowed(format!("{} has cables in {}", self.name(port.node), listed(&cabled))))
    }

    /// The GUID of a host's port.
    pub(super) fn port_guid(&self, host: NodeIndex) -> Guid {
        self.fabric.port(self.port_of(host)).map_or(Guid(0), |port| port.guid)
    }

    /// A host's port.
    pub(super) fn port_of(&self, host: NodeIndex) -> PortRef {
        PortRef::new(host, self.fabric.node(host).attach_port().unwrap_or(PortNum(1)))
    }

    pub(super) fn name(&self, node: NodeIndex) -> &str {
        self.fabric.name(node)
    }

    /// "the hosts are called host-1, host-2, …"
    fn examples(&self, wrong: &str, any: bool) -> String {
        let nodes = self.fabric.iter().filter(|(_, node)| any || !node.is_switch());
        let names: Vec<&str> = nodes.map(|(index, _)| self.fabric.name(index)).collect();
        let near = nearest(wrong, &names).map(|near| format!("did you mean `{near}`? "));
        let kind = if any { "nodes" } else { "hosts" };
        let few = names.iter().take(EXAMPLES).copied().collect::<Vec<_>>().join(", ");
        let more = if names.len() > EXAMPLES { ", …" } else { "" };
        format!("{}the {} {kind} are called {few}{more}", near.unwrap_or_default(), names.len())
    }

    /// Fails where something measured is about a flow that is not there: a pair of a pattern that has no such pair.
    pub(super) fn check_flows(&self, what: &What, flows: &[FlowPlan]) -> Result<(), Wrong> {
        let named = what.flows();
        let is_there = |name: &str| {
            flows.iter().any(|flow| flow.name == name || flow.group.as_deref() == Some(name))
                || self.choice.experiment.patterns.iter().any(|pattern| pattern.name == name)
        };
        match named.iter().find(|name| !is_there(name)) {
            None => Ok(()),
            Some(name) => {
                let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
                let wrong = self.choice.wrong(Role::Flow, name, format!("no flow is called `{name}`"));
                Err(wrong.allowed(format!("the flows are {}", listed(&names))))
            }
        }
    }
}

/// `host-[1-6]` as its parts.
fn range(text: &str) -> Option<(&str, u32, u32, &str)> {
    let (before, rest) = text.split_once('[')?;
    let (inner, after) = rest.split_once(']')?;
    let (first, last) = inner.split_once('-')?;
    Some((before, first.parse().ok()?, last.parse().ok()?, after))
}
