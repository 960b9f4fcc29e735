//! Virtual machines as their manager lists them, and how their addresses move.

use serde::{Deserialize, Serialize};
use weft_wire::{VmMoveLate, VmMoveMethod, VmMoveOrder};

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

/// How the subnet manager chooses the switches that it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VmMethod {
    /// The fewest switches of a fat tree; falls back to the others.
    #[default]
    Ftreeminrc,
    /// Every switch whose row does not lead nearer to the new place.
    Skyline,
    /// Every switch whose row differs.
    Itrc,
    /// Every block of every switch.
    Full,
}

/// What waits for what while switches are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VmUpdate {
    /// A switch is written when the next written switch on its new path has acknowledged.
    #[default]
    Ordered,
    /// As `ordered`, but the last switches, those around the old place, drop packets until those of the old way are gone.
    OrderedLate,
    /// Packets are dropped first.
    DropFirst,
    /// All at once.
    Unordered,
}

/// What is done where an order alone is not safe: a new row could turn packets of the old way round and close a circle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VmLate {
    /// The switch sends packets a detour until those of the old way are gone, or drops them where there is none.
    #[default]
    Detour,
    /// The switch drops packets until then.
    Wait,
    /// The move is refused.
    Refuse,
}

impl From<VmMethod> for VmMoveMethod {
    fn from(name: VmMethod) -> Self {
        match name {
            VmMethod::Ftreeminrc => Self::FtreeMinrc,
            VmMethod::Skyline => Self::Skyline,
            VmMethod::Itrc => Self::Itrc,
            VmMethod::Full => Self::Full,
        }
    }
}

/// A code without a name counts as the default.
impl From<VmMoveMethod> for VmMethod {
    fn from(code: VmMoveMethod) -> Self {
        match code {
            VmMoveMethod::Skyline => Self::Skyline,
            VmMoveMethod::Itrc => Self::Itrc,
            VmMoveMethod::Full => Self::Full,
            _ => Self::Ftreeminrc,
        }
    }
}

impl From<VmUpdate> for VmMoveOrder {
    fn from(name: VmUpdate) -> Self {
        match name {
            VmUpdate::Ordered => Self::Ordered,
            VmUpdate::OrderedLate => Self::OrderedLate,
            VmUpdate::DropFirst => Self::DropFirst,
            VmUpdate::Unordered => Self::Unordered,
        }
    }
}

/// A code without a name counts as the default.
impl From<VmMoveOrder> for VmUpdate {
    fn from(code: VmMoveOrder) -> Self {
        match code {
            VmMoveOrder::OrderedLate => Self::OrderedLate,
            VmMoveOrder::DropFirst => Self::DropFirst,
            VmMoveOrder::Unordered => Self::Unordered,
            _ => Self::Ordered,
        }
    }
}

impl From<VmLate> for VmMoveLate {
    fn from(name: VmLate) -> Self {
        match name {
            VmLate::Detour => Self::Detour,
            VmLate::Wait => Self::Wait,
            VmLate::Refuse => Self::Refuse,
        }
    }
}

/// A code without a name counts as the default.
impl From<VmMoveLate> for VmLate {
    fn from(code: VmMoveLate) -> Self {
        match code {
            VmMoveLate::Wait => Self::Wait,
            VmMoveLate::Refuse => Self::Refuse,
            _ => Self::Detour,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_of_a_move_is_a_code_and_back() {
        for method in [VmMethod::Ftreeminrc, VmMethod::Skyline, VmMethod::Itrc, VmMethod::Full] {
            assert_eq!(VmMethod::from(VmMoveMethod::from(method)), method);
        }
        for update in [VmUpdate::Ordered, VmUpdate::OrderedLate, VmUpdate::DropFirst, VmUpdate::Unordered] {
            assert_eq!(VmUpdate::from(VmMoveOrder::from(update)), update);
        }
        for late in [VmLate::Detour, VmLate::Wait, VmLate::Refuse] {
            assert_eq!(VmLate::from(VmMoveLate::from(late)), late);
        }
        assert_eq!(VmMethod::from(VmMoveMethod::from_code(0xff)), VmMethod::Ftreeminrc);
    }
}
