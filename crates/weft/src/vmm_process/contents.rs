//! Contents of slots, in the machine's types and in the control protocol's.

use weft_control::HexGuid;
use weft_control::vm::{Slot as Told, SlotState, VmIdentity};
use weft_vm::{Content, Identity, Occupant, Places, PortIdentity, SlotPart, VmName};
use weft_wire::Lid;

/// The content of a slot.
pub(super) fn content(told: &Told) -> Content {
    let port =
        PortIdentity { node_guid: told.identity.node.0, port_guid: told.identity.port.0, lid: told.lid };
    let occupant = || {
        let VmIdentity { p_keys, weight, .. } = told.identity.clone();
        let identity = Identity { port, p_keys, weight, rate_mbps: 0 };
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

/// The virtual machine in a slot. One that somebody else has booted may have a name that the manager's cannot have.
fn name(told: &Told) -> VmName {
    let text = told.vm.as_deref().unwrap_or_default();
    let good = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let text: String = text.chars().map(good).take(weft_vm::NAME_BYTES_MAX).collect();
    text.parse().unwrap_or_else(|_| "_".parse().expect("it is a name"))
}

/// The identity that a slot begins with; its LID is known while it is there.
pub(super) fn configured(slot: &SlotPart, told: &Told) -> PortIdentity {
    let lid = if told.identity.node.0 == slot.guid { told.lid } else { Lid(0) };
    PortIdentity { node_guid: slot.guid, port_guid: slot.port_guid, lid }
}

/// What a virtual machine takes along. The identity of a slot keeps its description; another one has the machine's name.
pub(super) fn identity(occupant: &Occupant, places: &Places) -> VmIdentity {
    let Identity { port, p_keys, weight, .. } = occupant.identity.clone();
    let description =
        places.description(port.node_guid).map_or_else(|| occupant.vm.to_string(), str::to_owned);
    let (node, port) = (HexGuid(port.node_guid), HexGuid(port.port_guid));
    VmIdentity { node, port, description, p_keys, weight }
}

/// An identity without a virtual machine.
pub(super) fn spare_identity(port: &PortIdentity, places: &Places) -> VmIdentity {
    let description = places.description(port.node_guid).unwrap_or("spare function").to_owned();
    let (node, port) = (HexGuid(port.node_guid), HexGuid(port.port_guid));
    VmIdentity { node, port, description, p_keys: Vec::new(), weight: 1 }
}
