//! Links of a tree by the ports of switches.

use weft_wire::Lid;

use crate::tables::ForwardingTable;
use crate::tree::Tree;
use crate::tree::reach::{Link, NO_LINK};

/// How many port numbers there are.
const PORTS: usize = 256;

/// By switch and port: the link that begins there.
pub(super) struct Links(Vec<Link>);

impl Links {
    pub(super) fn new(tree: &Tree) -> Self {
        let mut links = vec![NO_LINK; tree.graph.len() * PORTS];
        for group in &tree.groups {
            for (place, cable) in tree.cables(group) {
                links[group.lower as usize * PORTS + usize::from(cable.lower.0)] = up(place);
                links[group.upper as usize * PORTS + usize::from(cable.upper.0)] = down(place);
            }
        }
        Self(links)
    }

    /// By which link a switch sends to a LID.
    pub(super) fn exit(&self, at: u32, lid: Lid, tables: &[ForwardingTable]) -> Link {
        self.0[at as usize * PORTS + usize::from(tables[at as usize].port(lid).0)]
    }
}

/// The way up by a cable, which is given by its place among all.
pub(super) fn up(cable: usize) -> Link {
    2 * cable as Link + 1
}

/// The way down.
pub(super) fn down(cable: usize) -> Link {
    2 * cable as Link
}
