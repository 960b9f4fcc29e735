//! GUIDs in use, and their users.

use crate::guids::GuidIndex;
use crate::identity::PortIdentity;
use crate::names::{Slot, VmName};

weft_wire::worded! {
    /// What uses a GUID. Of several, the first in this order is named.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum User {
        /// A virtual machine that is not lost.
        Vm(name: VmName) => ("`{name}`"),
        /// The identity of a slot without a virtual machine.
        Spare(slot: Slot) => ("the free {slot}"),
        /// The identity that a slot had before a virtual machine began to move there.
        Displaced(slot: Slot) => ("the free {slot}"),
    }
}

/// What uses which GUID.
pub(super) type Users = GuidIndex<User>;

/// The first user of one of a port's GUIDs, besides the spare identity of `but`.
pub(super) fn first<'a>(users: &'a Users, port: &PortIdentity, but: Option<&Slot>) -> Option<&'a User> {
    let others = |user: &&User| !matches!(user, User::Spare(slot) if Some(slot) == but);
    users.of(port).filter(others).min()
}
