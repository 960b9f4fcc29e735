//! Cables and how their links come and go.

use weft_machine::Time;
use weft_topology::{Fabric, PortRef};
use weft_wire::LinkParameters;

/// One cable. Its link is up when both devices are on, both ends allow it and the cable is whole.
#[derive(Clone, Debug)]
pub(crate) struct Cable {
    pub(crate) ends: [PortRef; 2],
    pub(crate) whole: bool,
    pub(crate) link: Link,
    /// Counts every change, so that what is under way from before it does not arrive after it.
    pub(crate) incarnation: u64,
    /// Whether each device lets its link come up.
    pub(crate) enabled: [bool; 2],
    /// What each device says in its hello.
    pub(crate) parameters: [LinkParameters; 2],
    /// When each end lost the link, as long as it has not been told.
    pub(crate) lost: [Option<Time>; 2],
    /// When the last packet of the lanes that keep their order arrives at each end.
    pub(crate) last_arrival: [Time; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Down,
    Training,
    Up,
}

impl Cable {
    pub(crate) fn new(ends: [PortRef; 2], parameters: [LinkParameters; 2]) -> Self {
        Self {
            ends,
            whole: true,
            link: Link::Down,
            incarnation: 0,
            enabled: [true; 2],
            parameters,
            lost: [None; 2],
            last_arrival: [Time::ZERO; 2],
        }
    }
}

/// Which cable is in each port: by node, then by port number, the cable's index and which of its ends it is.
#[derive(Debug)]
pub(crate) struct Cabling {
    pub(crate) cables: Vec<Cable>,
    at: Vec<Vec<Option<(usize, usize)>>>,
}

impl Cabling {
    pub(crate) fn new(fabric: &Fabric) -> Self {
        let mut at: Vec<Vec<_>> = fabric.nodes().iter().map(|node| vec![None; node.ports.len()]).collect();
        let mut cables = Vec::new();
        for cable in fabric.cables() {
            let ends = [cable.a, cable.b];
            for (side, end) in ends.into_iter().enumerate() {
                at[end.node.index()][usize::from(end.port.0)] = Some((cables.len(), side));
            }
            cables.push(Cable::new(ends, ends.map(|end| initial_parameters(fabric, end))));
        }
        Self { cables, at }
    }

    /// The cable in a port, and which of its ends that is.
    pub(crate) fn find(&self, port: PortRef) -> Option<(usize, usize)> {
        *self.at.get(port.node.index())?.get(usize::from(port.port.0))?
    }

    /// All cables of a node.
    pub(crate) fn of_node(&self, node: weft_topology::NodeIndex) -> Vec<usize> {
        let mut cables: Vec<usize> =
            self.at[node.index()].iter().flatten().map(|&(cable, _)| cable).collect();
        // A switch may be cabled to itself.
        cables.sort_unstable();
        cables.dedup();
        cables
    }
}

/// What a port that has just been switched on says in its hello.
pub(crate) fn initial_parameters(fabric: &Fabric, end: PortRef) -> LinkParameters {
    fabric.port(end).map(|port| port.enabled).unwrap_or_default().into()
}
