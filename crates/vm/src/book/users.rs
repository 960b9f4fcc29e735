//! Which GUIDs are in use, and by what: an index, so that no one has to walk all machines for one GUID.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use weft_wire::Guid;

use crate::identity::PortIdentity;
use crate::names::{Slot, VmName};
use crate::steps;

/// What uses a GUID. Of several, the first in this order is named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum User {
    /// A virtual machine that is not lost.
    Vm(VmName),
    /// The identity of a slot without a virtual machine.
    Spare(Slot),
    /// The identity that a slot had before a virtual machine began to move there.
    Displaced(Slot),
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vm(name) => write!(f, "`{name}`"),
            Self::Spare(slot) | Self::Displaced(slot) => write!(f, "the free {slot}"),
        }
    }
}

/// What uses which GUID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Users(BTreeMap<Guid, BTreeSet<User>>);

impl Users {
    /// Someone uses these GUIDs from now on, or no longer.
    pub(super) fn note(&mut self, port: &PortIdentity, user: &User, uses: bool) {
        for guid in [port.node_guid, port.port_guid] {
            if uses {
                self.0.entry(guid).or_default().insert(user.clone());
            } else if let Some(users) = self.0.get_mut(&guid) {
                users.remove(user);
                if users.is_empty() {
                    self.0.remove(&guid);
                }
            }
        }
    }

    /// The first user of one of a port's GUIDs, besides the spare identity of `but`.
    pub(super) fn first(&self, port: &PortIdentity, but: Option<&Slot>) -> Option<&User> {
        let users = [port.node_guid, port.port_guid].into_iter().filter_map(|guid| self.0.get(&guid));
        let others = |user: &&User| !matches!(user, User::Spare(slot) if Some(slot) == but);
        users.flatten().inspect(|_| steps::count()).filter(others).min()
    }
}
