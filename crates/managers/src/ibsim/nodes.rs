//! Attachment of a program that names a node as `SIM_HOST` does.

use std::path::PathBuf;

use anyhow::Context;
use weft_bundle::record::LabRecord;
use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Guid, PortNum};

/// The nodes of the laboratory.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) fabric: Fabric,
    pub(crate) record: LabRecord,
    /// The folder of the agents' sockets.
    pub(crate) sockets: PathBuf,
}

/// A place to attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodePort {
    /// What the node is called in the topology file.
    pub(crate) id: String,
    pub(crate) node: Guid,
    pub(crate) port: PortNum,
    /// The socket of its agent.
    pub(crate) socket: PathBuf,
}

impl Nodes {
    /// The node of that id, GUID or description, of which only the beginning may have come (`cut`). Without a name it
    /// is the first of the file, as with ibsim.
    pub(crate) fn find(&self, name: &str, cut: bool) -> anyhow::Result<NodePort> {
        let index = match name {
            "" => NodeIndex(0),
            name => self.fabric.find(name).or_else(|error| self.begins(name).filter(|_| cut).ok_or(error))?,
        };
        let node = self.fabric.node(index);
        let cabled = node.cabled_ports().map(|(port, _)| port).next();
        let port = if node.is_switch() { PortNum::ZERO } else { cabled.unwrap_or(PortNum(1)) };
        let (agent, _) = self.record.device(node.guid).context("no agent runs it")?;
        let socket = self.sockets.join(&agent.name);
        Ok(NodePort { id: node.id.clone(), node: node.guid, port, socket })
    }

    /// The only node whose id or description begins so.
    fn begins(&self, name: &str) -> Option<NodeIndex> {
        let begins =
            |node: &weft_topology::Node| node.id.starts_with(name) || node.description.starts_with(name);
        let mut found = self.fabric.iter().filter(|(_, node)| begins(node)).map(|(index, _)| index);
        found.next().filter(|_| found.next().is_none())
    }
}
