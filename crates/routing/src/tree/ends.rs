//! The end ports of a tree: which switch delivers to them, by which port, and what they are.

use std::collections::BTreeSet;

use weft_topology::PortRef;
use weft_wire::{Guid, Lid, PortNum};

use crate::input::Input;
use crate::management::ManagementNodes;
use crate::sorted;
use crate::switches::SwitchGraph;

/// What an end port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EndKind {
    /// A host that the tree is balanced for; its switch is a leaf.
    Compute,
    /// A host that an operator named as an I/O node.
    Io,
    /// A host of another kind, or a router.
    Other,
    /// A node that serves management alone.
    Management,
    /// Port 0 of a switch.
    Switch,
}

impl EndKind {
    /// Whether data comes from there and goes there, which the up/down rule is for.
    pub(crate) fn is_host(self) -> bool {
        match self {
            Self::Compute | Self::Io | Self::Other => true,
            Self::Management | Self::Switch => false,
        }
    }
}

/// An end port that has LIDs.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// The end port.
    pub(crate) port: PortRef,
    /// Its GUID.
    pub(crate) guid: Guid,
    /// The switch that delivers to it.
    pub(crate) at: u32,
    /// The port by which that switch does.
    pub(crate) exit: PortNum,
    /// What it is.
    pub(crate) kind: EndKind,
    /// Its LIDs in order: those of the port itself come first, `own` of them, those of virtual functions follow.
    pub(crate) lids: Vec<Lid>,
    /// How many LIDs are the port's own: those that are marked so, or else the 2^LMC of the lowest.
    pub(crate) own: usize,
}

/// All end ports of a fabric.
pub(super) struct Ends {
    /// By switch, then by port.
    pub(super) list: Vec<End>,
    /// Where the end ports of each switch begin in `list`.
    pub(super) rows: Vec<u32>,
    /// By switch: whether a compute node is cabled to it.
    pub(super) is_leaf: Vec<bool>,
}

impl Ends {
    pub(super) fn new(input: &Input<'_>, graph: &SwitchGraph) -> Self {
        let kinds = Kinds::new(input);
        let mut is_leaf = vec![false; graph.len()];
        for (index, node) in input.fabric.hosts() {
            for (number, port) in node.end_ports() {
                let compute = kinds.of(input, PortRef::new(index, number), port.guid) == EndKind::Compute;
                let switch = graph.attachment(input.fabric, PortRef::new(index, number));
                if let Some((switch, _)) = switch.filter(|_| compute) {
                    is_leaf[switch as usize] = true;
                }
            }
        }
        let mut list: Vec<End> = Vec::with_capacity(input.lids.len());
        for lids in input.lids.iter() {
            let Some((at, exit)) = graph.attachment(input.fabric, lids.port) else { continue };
            let guid = input.fabric.port(lids.port).map_or(Guid(0), |port| port.guid);
            let kind = kinds.of(input, lids.port, guid);
            let all: Vec<Lid> = lids.iter().collect();
            list.push(End { port: lids.port, guid, at, exit, kind, own: all.len(), lids: all });
        }
        // Stable, so that the entries of one end port stay in the order of their LIDs, its own first.
        let is_own = |end: &End| end.lids.first().is_some_and(|lid| input.lids.is_own(*lid));
        sorted::by_key(&mut list, |end| (end.at, end.exit, !is_own(end)));
        list.dedup_by(|next, first| {
            let same = next.port == first.port;
            if same {
                if is_own(next) {
                    first.own += next.own;
                }
                first.lids.append(&mut next.lids);
            }
            same
        });
        let rows =
            (0..=graph.len() as u32).map(|at| list.partition_point(|end| end.at < at) as u32).collect();
        Self { list, rows, is_leaf }
    }
}

/// Who is a compute node and who an I/O node.
struct Kinds {
    compute: BTreeSet<Guid>,
    io: BTreeSet<Guid>,
    management: ManagementNodes,
}

impl Kinds {
    fn new(input: &Input<'_>) -> Self {
        let set = |list: &[Guid]| list.iter().copied().collect();
        Self {
            compute: set(&input.options.compute_nodes),
            io: set(&input.options.io_nodes),
            management: ManagementNodes::new(input.fabric, &input.options.management_nodes),
        }
    }

    fn of(&self, input: &Input<'_>, port: PortRef, guid: Guid) -> EndKind {
        let node = input.fabric.node(port.node);
        let named =
            |set: &BTreeSet<Guid>| !set.is_empty() && (set.contains(&guid) || set.contains(&node.guid));
        if node.is_switch() {
            return EndKind::Switch;
        }
        let compute = named(&self.compute);
        match named(&self.io) {
            true if !compute => EndKind::Io,
            _ if compute => EndKind::Compute,
            _ if self.management.contains(port.node) => EndKind::Management,
            _ if self.compute.is_empty() && node.kind == weft_wire::NodeType::Hca => EndKind::Compute,
            _ => EndKind::Other,
        }
    }
}
