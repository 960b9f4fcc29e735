//! Names of what requests are about.

use weft_wire::PortNum;

/// A port of a node in the list that a step works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortAt {
    pub(crate) node: u32,
    pub(crate) port: PortNum,
}

/// What a request is about, for the step that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// The node behind this port; `None` asks for the own one.
    NodeInfo(Option<PortAt>),
    NodeDescription(u32),
    SwitchInfo(u32),
    /// Sets SwitchInfo's PortStateChange, which clears it.
    ClearChange(u32),
    PortInfo(PortAt),
    /// Gives the port this manager's M_Key.
    Claim(PortAt),
    SmInfo(PortAt),
    Lft {
        node: u32,
        block: u16,
    },
    /// The mapping towards this port from one input port; an HCA has only one.
    SlToVl(PortAt, u8),
    VlArbitration(PortAt, VlBlock),
    /// A block of a port's P_Key table.
    PKeys(PortAt, u16),
    /// The write, or the read, at this place of the step's plan.
    Write(u32),
}

impl Key {
    /// Asks for PortInfo of every port of a switch.
    pub(crate) fn ports(node: u32, num_ports: u8) -> impl Iterator<Item = Self> {
        (0..=num_ports).map(move |port| Self::PortInfo(PortAt { node, port: PortNum(port) }))
    }

    /// The node that it is about, where it is about one that is known.
    pub(crate) fn node(self) -> Option<u32> {
        match self {
            Self::NodeDescription(at) | Self::SwitchInfo(at) | Self::ClearChange(at) => Some(at),
            Self::Lft { node, .. } => Some(node),
            Self::PortInfo(at)
            | Self::Claim(at)
            | Self::SmInfo(at)
            | Self::SlToVl(at, _)
            | Self::VlArbitration(at, _)
            | Self::PKeys(at, _) => Some(at.node),
            Self::NodeInfo(_) | Self::Write(_) => None,
        }
    }

    /// The same of the node at another place of the list.
    pub(crate) fn at_node(self, node: u32) -> Self {
        let there = |at: PortAt| PortAt { node, ..at };
        match self {
            Self::NodeDescription(_) => Self::NodeDescription(node),
            Self::SwitchInfo(_) => Self::SwitchInfo(node),
            Self::ClearChange(_) => Self::ClearChange(node),
            Self::Lft { block, .. } => Self::Lft { node, block },
            Self::PortInfo(at) => Self::PortInfo(there(at)),
            Self::Claim(at) => Self::Claim(there(at)),
            Self::SmInfo(at) => Self::SmInfo(there(at)),
            Self::SlToVl(at, input) => Self::SlToVl(there(at), input),
            Self::VlArbitration(at, block) => Self::VlArbitration(there(at), block),
            Self::PKeys(at, block) => Self::PKeys(there(at), block),
            Self::NodeInfo(_) | Self::Write(_) => self,
        }
    }
}

/// The parts of a port's arbitration tables (IBA 14.2.5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VlBlock {
    LowFirst = 1,
    LowSecond = 2,
    HighFirst = 3,
    HighSecond = 4,
}
