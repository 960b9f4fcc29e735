//! Contents of slots, in the machine's types and in the control protocol's.

use weft_control::HexGuid;
use weft_control::vm::{Slot as Told, SlotState, VmIdentity};
use weft_vm::{Content, Identity, Occupant, Places, PortIdentity, VmName};

/// The identity in a slot, or that an empty one began with.
pub(crate) fn held(told: &Told) -> PortIdentity {
    PortIdentity { node_guid: told.identity.node.0, port_guid: told.identity.port.0, lid: told.lid }
}

/// The content of a slot.
pub(crate) fn content(told: &Told) -> Content {
    let port = held(told);
    let occupant = || {
        let VmIdentity { p_keys, weight, rate_mbps, .. } = told.identity.clone();
        let identity = Identity { port, p_keys, weight, rate_mbps };
        Box::new(Occupant { vm: name(told), identity })
    };
    match told.state {
        SlotState::Empty => Content::Bare,
        SlotState::Free => Content::Spare(port),
        SlotState::Reserved => Content::Reserved(name(told)),
        SlotState::Running => Content::Running(occupant()),
        SlotState::Frozen => Content::Frozen(occupant()),
        SlotState::Imported => Content::Imported(occupant()),
    }
}

fn name(told: &Told) -> VmName {
    VmName::heard(told.vm.as_deref().unwrap_or_default())
}

/// What a virtual machine takes along.
pub(crate) fn identity(occupant: &Occupant, places: &Places) -> VmIdentity {
    let Identity { port, p_keys, weight, rate_mbps } = occupant.identity.clone();
    let (node, port) = (HexGuid(port.node_guid), HexGuid(port.port_guid));
    VmIdentity { node, port, description: places.describe(occupant), p_keys, weight, rate_mbps }
}

/// An identity without a virtual machine.
pub(crate) fn spare_identity(port: &PortIdentity, places: &Places) -> VmIdentity {
    let description = places.describe_spare(port);
    let (node, port) = (HexGuid(port.node_guid), HexGuid(port.port_guid));
    VmIdentity { node, port, description, weight: 1, ..VmIdentity::default() }
}
