use serde::{Deserialize, Serialize};
use weft_topology::{NodeIndex, PortRef};

/// Something that goes wrong, or is put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// A device loses its power; everything it knew is gone.
    Kill(NodeIndex),
    /// A device is switched on again; one that is on is switched off first.
    Restart(NodeIndex),
    /// The cable in this port is pulled.
    Cut(PortRef),
    /// The cable in this port is put back.
    Restore(PortRef),
    /// The subnet manager's process ends.
    KillSm,
    /// The subnet manager's process begins; one that runs ends first.
    StartSm {
        /// Whether it finds the `guid2lid` file that the one before wrote.
        with_guid2lid: bool,
    },
    /// The process of a subnet manager beside the first one ends; by its place in [`SimOptions::standbys`].
    ///
    /// [`SimOptions::standbys`]: crate::SimOptions::standbys
    KillStandby(u8),
    /// The same begins, with the `guid2lid` file that it wrote.
    StartStandby(u8),
    /// The performance manager's process ends.
    KillPm,
    /// The performance manager's process begins; one that runs ends first.
    StartPm,
}
