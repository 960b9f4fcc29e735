//! Changes of a cabling that runs: nodes and cables that come and go.

use weft_wire::{Guid, PortNum};

use crate::{BuildError, Fabric, LinkMasks, LinkRate, Node, NodeIndex, PortRef};

impl Fabric {
    /// Says what a port without a cable is like, which no file tells: its GUID, and what it allows its link to be. Nothing
    /// where a cable is in it. The GUID of a switch's port is that of its port 0, and stays.
    pub fn equip(&mut self, port: PortRef, guid: Guid, enabled: LinkMasks) {
        let Some(node) = self.nodes.get_mut(port.node.index()) else { return };
        let is_switch = node.is_switch();
        let Some(port) = node.ports.get_mut(usize::from(port.port.0)) else { return };
        if port.peer.is_none() {
            port.guid = if is_switch { port.guid } else { guid };
            port.enabled = enabled;
        }
    }

    /// Puts a cable between two ports; its rate is the best that both allow.
    ///
    /// # Errors
    /// When there is no such port, when one has a cable, or when they have no rate in common.
    pub fn connect(&mut self, a: PortRef, b: PortRef) -> Result<LinkRate, BuildError> {
        let rate = self.settle(a, b)?;
        self.reconnect(a, b, rate);
        Ok(rate)
    }

    /// The rate of a cable between two ports, if there can be one.
    pub(crate) fn settle(&self, a: PortRef, b: PortRef) -> Result<LinkRate, BuildError> {
        let name = |end: PortRef| self.port_name(end).to_string();
        for end in [a, b] {
            let node = self.nodes.get(end.node.index()).ok_or(BuildError::UnknownNode(end.node))?;
            if end.port == PortNum::ZERO || end.port.0 > node.port_count() {
                let (id, count) = (node.id.clone(), node.port_count());
                return Err(BuildError::PortOutOfRange { id, port: end.port, count });
            }
        }
        if a == b {
            return Err(BuildError::SelfLoop { port: name(a) });
        }
        for end in [a, b] {
            if let Some(peer) = self.peer(end) {
                return Err(BuildError::PortTaken { port: name(end), peer: name(peer) });
            }
        }
        let masks = |end| self.port(end).map(|port| port.enabled).unwrap_or_default();
        let common = masks(a).common(masks(b));
        common.best().ok_or_else(|| BuildError::NoCommonRate { a: name(a), b: name(b) })
    }

    /// The same with another node, which comes last and has no cable.
    ///
    /// # Errors
    /// When one of its GUIDs or its id is taken, or when there are too many nodes or ports.
    pub fn with(&self, node: Node) -> Result<(Self, NodeIndex), BuildError> {
        let mut builder = self.builder(|_| true, self.cables())?;
        let index = builder.add_node(node)?;
        Ok((builder.into_fabric(), index))
    }

    /// The same without a node and its cables. Nodes behind it have other indices.
    ///
    /// # Errors
    /// None: what is left of a fabric is one.
    pub fn without(&self, node: NodeIndex) -> Result<Self, BuildError> {
        Ok(self.builder(|index| index != node, self.cables())?.into_fabric())
    }
}
