//! Requests to a planner.

use std::fmt;

use serde::{Deserialize, Serialize};
use weft_topology::PortRef;
use weft_wire::Lid;

/// One change of place. Ports are end ports: of a virtual function where vSwitches are switches of the fabric, of the host
/// where they are not. A place where no one is yet is the port of its vSwitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Move {
    /// A virtual machine moves with its LID, which takes over the rows of another LID at the new place: that of the physical
    /// function (dynamic LIDs; vSwitch paper of 2015, V-C2).
    Copy {
        /// The machine's LID.
        lid: Lid,
        /// The end port that has it now.
        from: PortRef,
        /// The end port that gets it.
        to: PortRef,
        /// The LID whose rows are copied.
        of: Lid,
    },
    /// A virtual machine moves with its LID, and the LID that was at the new place comes back for it (prepopulated LIDs;
    /// vSwitch paper of 2015, V-C1).
    Swap {
        /// The machine's LID.
        lid: Lid,
        /// The end port that has it now.
        from: PortRef,
        /// The end port that gets it.
        to: PortRef,
        /// The LID of that end port, which `from` gets.
        with: Lid,
    },
    /// A virtual machine starts with a LID that no table has a row for (vSwitch paper of 2015, V-B).
    Boot {
        /// The machine's LID.
        lid: Lid,
        /// The end port that gets it.
        to: PortRef,
        /// The LID whose rows are copied.
        of: Lid,
    },
    /// A virtual machine stays where it is, and its LID gets the rows of [fresh tables](super::Planner::fresh), by [`Method::Itrc`]:
    /// links carry less.
    Rebalance {
        /// The machine's LID.
        lid: Lid,
        /// The end port that has it.
        at: PortRef,
    },
    /// A virtual machine has ended; its LID loses all rows.
    Clear {
        /// The machine's LID.
        lid: Lid,
        /// The end port that had it.
        from: PortRef,
    },
    /// A virtual machine has moved, and the last switches, those without a row, take over the rows of another LID at its place.
    /// Method and order make no difference to which they are.
    Finish {
        /// The machine's LID.
        lid: Lid,
        /// The end port that has it.
        at: PortRef,
        /// The LID whose rows are copied.
        of: Lid,
    },
}

impl Move {
    /// The LID of the virtual machine.
    pub fn lid(&self) -> Lid {
        match self {
            Self::Copy { lid, .. }
            | Self::Swap { lid, .. }
            | Self::Boot { lid, .. }
            | Self::Clear { lid, .. }
            | Self::Rebalance { lid, .. }
            | Self::Finish { lid, .. } => *lid,
        }
    }

    /// All LIDs that change their places: the virtual machine's, and of a swap the other one.
    pub fn lids(&self) -> impl Iterator<Item = Lid> + use<> {
        let with = if let Self::Swap { with, .. } = self { Some(*with) } else { None };
        std::iter::once(self.lid()).chain(with)
    }

    /// SMPs that only hypervisors receive: one that takes a LID away, one that sets it, and one that sets the virtual GUID at the
    /// new place (vSwitch paper of 2015, V-C and V-C-a).
    pub fn hypervisor_smps(&self) -> u32 {
        match self {
            Self::Copy { .. } | Self::Swap { .. } => 3,
            Self::Boot { .. } => 2,
            Self::Clear { .. } => 1,
            Self::Finish { .. } | Self::Rebalance { .. } => 0,
        }
    }
}

/// How the switches to be written are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Every block of every switch, by tables computed from scratch: what a subnet manager does that knows nothing of virtual
    /// machines.
    Full,
    /// Every switch whose rows differ (ItRC; vSwitch paper of 2015, algorithm 1).
    Itrc,
    /// The switches that stand between two leaves of a fat-tree, by their tuples (FTreeMinRC; vSwitch paper of 2017, 6.2).
    FtreeMinrc,
    /// Every switch whose row does not lead nearer to the new place, on any topology.
    Skyline,
}

impl Method {
    /// What is tried, in order, until a plan can be proved.
    pub fn chain(self) -> &'static [Self] {
        match self {
            Self::Full => &[Self::Full],
            Self::Itrc => &[Self::Itrc],
            Self::FtreeMinrc => &[Self::FtreeMinrc, Self::Skyline, Self::Itrc],
            Self::Skyline => &[Self::Skyline, Self::Itrc],
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Itrc => "itrc",
            Self::FtreeMinrc => "ftreeminrc",
            Self::Skyline => "skyline",
        })
    }
}

/// What is done where a row would turn packets of the old way round, and that could close a circle of channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatePolicy {
    /// The switch has another row for the meantime, by which no circle can close; it drops packets where there is none.
    #[default]
    Detour,
    /// The switch drops packets until those of the old way are gone.
    Wait,
    /// There is no plan.
    Refuse,
}

/// What waits for what while switches are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateOrder {
    /// A switch is written once the next written switch on its new path has acknowledged: the destination's first, the source's
    /// last.
    #[default]
    Ordered,
    /// Ordered, but for some switches, most of them around the old place: they drop packets for the LID at first, or send them a
    /// detour, and get their rows once packets of the old way are gone.
    OrderedLate,
    /// Packets for the LID are dropped first, by port 255, at every switch that is written (vSwitch paper of 2015, VI-C).
    DropFirst,
    /// All at once.
    Unordered,
}
