//! Default places of programs.

use crate::{Fabric, Node, NodeIndex, PortRef};

impl Fabric {
    /// Where a program can sit: at the first cabled port of each adapter. Aggregation nodes inside of switches count only where
    /// there is no other adapter.
    pub fn seats(&self) -> impl Iterator<Item = PortRef> {
        let seat = |(index, node): (NodeIndex, &Node)| Some(PortRef::new(index, node.attach_port()?));
        let any = self.adapters().next().is_none();
        let aggregation = self.hosts().filter(move |_| any);
        self.adapters().chain(aggregation).filter_map(seat)
    }

    /// The default place of a program: the first of the [seats](Self::seats), else the first node that is a switch or has a
    /// cable. `None` where there is no such node.
    pub fn attach_place(&self) -> Option<PortRef> {
        let any = || self.iter().find_map(|(index, node)| Some(PortRef::new(index, node.attach_port()?)));
        self.seats().next().or_else(any)
    }
}
