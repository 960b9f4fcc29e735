//! An index of GUIDs and their owners, so that no one has to walk everything for one GUID.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::Guid;

use crate::identity::PortIdentity;
use crate::steps;

/// The owners of GUIDs; several may have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuidIndex<T>(BTreeMap<Guid, BTreeSet<T>>);

impl<T> Default for GuidIndex<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + Clone> GuidIndex<T> {
    /// An owner has a port's GUIDs from now on, or no longer.
    pub(crate) fn note(&mut self, port: &PortIdentity, owner: &T, has: bool) {
        for guid in guids(port) {
            if has {
                self.0.entry(guid).or_default().insert(owner.clone());
            } else if let Some(owners) = self.0.get_mut(&guid) {
                owners.remove(owner);
                if owners.is_empty() {
                    self.0.remove(&guid);
                }
            }
        }
    }

    /// The owners of either of a port's GUIDs. One that has both comes twice.
    pub(crate) fn of(&self, port: &PortIdentity) -> impl Iterator<Item = &T> {
        guids(port).into_iter().filter_map(|guid| self.0.get(&guid)).flatten().inspect(|_| steps::count())
    }
}

fn guids(port: &PortIdentity) -> [Guid; 2] {
    [port.node_guid, port.port_guid]
}
