//! Requests to a planner.

use serde::{Deserialize, Serialize};
use weft_topology::PortRef;
use weft_wire::Lid;

use crate::lanes::Takeover;

pub use weft_vocabulary::vm::{LatePolicy, Method, UpdateOrder};

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

    /// The LIDs that get the classes of service levels which another one has at their new places.
    pub fn takeovers(&self) -> impl Iterator<Item = Takeover> + use<> {
        let (first, second) = match *self {
            Self::Copy { lid, of, .. } | Self::Boot { lid, of, .. } => (Some(Takeover { lid, of }), None),
            Self::Swap { lid, with, .. } => {
                (Some(Takeover { lid, of: with }), Some(Takeover { lid: with, of: lid }))
            }
            Self::Rebalance { .. } | Self::Clear { .. } | Self::Finish { .. } => (None, None),
        };
        first.into_iter().chain(second)
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
