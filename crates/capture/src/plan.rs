//! From what the user names to what each agent is asked.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_control::HexGuid;
use weft_control::agent::{PortEnd, Tap, TappedPort};
use weft_lab::view::{Lab, VM_PREFIX};
use weft_topology::{Fabric, PortRef};

/// Ports that fit into one request to an agent.
const PORTS_MAX: usize = 4096;

/// What is to be captured.
#[derive(Debug)]
pub(crate) struct Plan {
    /// How many ports.
    pub(crate) ports: usize,
    /// What each agent is asked, by its name.
    pub(crate) taps: BTreeMap<String, Tap>,
}

impl Plan {
    /// Reads `NODE:PORT`, `NODE` and `all`.
    pub(crate) fn new(lab: &Lab, names: &[String]) -> anyhow::Result<Self> {
        if names.iter().any(|name| name == "all") {
            let taps = lab.record.agents.iter().map(|agent| (agent.name.clone(), Tap::Everything));
            return Ok(Self { ports: 2 * lab.fabric.cables().count(), taps: taps.collect() });
        }
        let mut ports = BTreeSet::new();
        for name in names {
            ports.extend(named(lab, name)?);
        }
        let mut taps = BTreeMap::new();
        for tapped in tapped(&lab.fabric, &ports) {
            let (agent, _) =
                lab.record.device(tapped.end.node.0).context("the laboratory has no such node")?;
            taps.entry(agent.name.clone()).or_insert_with(Vec::new).push(tapped);
        }
        if taps.values().any(|ports| ports.len() > PORTS_MAX) {
            return Err(Failure::bad_input(format!("more than {PORTS_MAX} ports of one agent"))
                .hint("`all` captures every port"));
        }
        let taps = taps.into_iter().map(|(agent, ports)| (agent, Tap::Ports(ports))).collect();
        Ok(Self { ports: ports.len(), taps })
    }
}

/// The port of that name, or all cabled ports of the node of that name.
fn named(lab: &Lab, name: &str) -> anyhow::Result<Vec<PortRef>> {
    let is_vm = name.strip_prefix(VM_PREFIX).is_some_and(|vm| !vm.contains(':'));
    let node = match lab.find(name) {
        Ok(node) => node,
        Err(error) if is_vm => return Err(error),
        Err(_) => return Ok(vec![lab.cable(name)?.0]),
    };
    let ports: Vec<PortRef> =
        lab.fabric.node(node).cabled_ports().map(|(port, _)| PortRef::new(node, port)).collect();
    if ports.is_empty() {
        return Err(Failure::bad_input(format!("`{name}` has no cable")).into());
    }
    Ok(ports)
}

/// Each packet is wanted once: what a port receives is only asked for where the port that sends it is not among these.
fn tapped(fabric: &Fabric, ports: &BTreeSet<PortRef>) -> Vec<TappedPort> {
    let end = |port: &PortRef| PortEnd { node: HexGuid(fabric.node(port.node).guid), port: port.port };
    let received = |port: &PortRef| fabric.peer(*port).is_none_or(|peer| !ports.contains(&peer));
    ports.iter().map(|port| TappedPort { end: end(port), received: received(port) }).collect()
}
