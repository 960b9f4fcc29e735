//! Virtual machines as their manager lists them, its events, and how addresses move.

mod event;
mod moves;
mod slot;
mod ways;

use serde::{Deserialize, Serialize};

pub use event::Event;
pub use moves::{MoveCounts, PlanWrite, Silent, Step};
pub use slot::SlotState;
pub use ways::{LatePolicy, Method, UpdateOrder};

/// A virtual machine's port. The first ten fields are those of UFM's `GET /resources/vports`
/// (UFM Enterprise REST API Guide, "Virtualization REST API"), with GUIDs as 16 hexadecimal
/// digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VPort {
    /// `Active`, or `Down`.
    pub virtual_port_state: String,
    /// The LID; 0 while it has none.
    pub virtual_port_lid: u16,
    /// The address of the host, which weft does not know: `0.0.0.0`, as UFM writes then.
    pub system_ip: String,
    /// The host.
    pub system_name: String,
    /// The description of its adapter.
    pub node_description: String,
    /// The system's GUID.
    pub system_guid: String,
    /// The GUID of the adapter's physical port.
    pub port_guid: String,
    /// That GUID and the port's number, as in `0002c90300000001_1`.
    pub port_name: String,
    /// The number of the physical port.
    pub physical_port_number: u8,
    /// The GUID of the virtual machine's port.
    pub virtual_port_guid: String,
    /// The virtual machine.
    pub vm: String,
    /// The virtual function that it has.
    pub vf: u8,
    /// `starting`, `running`, `moving`, `stopping`, `frozen`, `in doubt` or `lost`.
    pub vm_state: String,
    /// Where it goes, the step of its move, or why it is in doubt or lost.
    pub detail: String,
    /// Its partitions, in hexadecimal digits.
    pub pkeys: Vec<String>,
    /// What it moves in each direction at most, in Mb/s of fabric time; 0 is no limit but the adapter's.
    #[serde(default)]
    pub rate_mbps: u32,
}
