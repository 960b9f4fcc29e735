//! Ports that a requester may see (IBA 15.4.1): with [`Options::sa_partitions`](crate::Options), those that it shares a
//! partition with, where not both are limited members (IBA 10.9.3). A port that it does not see is as one that is not there.
//!
//! | attribute | given to a requester that is not trusted |
//! |---|---|
//! | NodeRecord, PortInfoRecord, GuidInfoRecord, SL-to-VL and arbitration records | when it sees the end port; a switch's ports are its port 0's |
//! | SwitchInfoRecord, LinearForwardingTableRecord | when it sees port 0 |
//! | SMInfoRecord | when it sees the manager's port |
//! | LinkRecord | when it sees both ends |
//! | PathRecord | when it sees both ends, and they see each other |
//! | InformInfoRecord | when it sees the subscriber |
//! | Set(InformInfo) | when it sees all sources that are named by GID or LID (o13-14.1.1) |
//! | Reports | when the subscriber sees the source; of traps 64 and 65 the port that they are about (o13-17.1.2) |
//! | ServiceRecord | when its port has the ServiceP_Key; to offer or withdraw one, the service's port too |
//! | P_KeyTableRecord | never, with or without the option |
//! | VmMove, and notices to be forwarded | as the key and `repath_needs_key` say |
//!
//! A trusted request, with the SA key, gets everything. OpenSM 3.3.23 has the same table
//! (`osm_physp_share_pkey`, `osm_physp_has_pkey` in its `osm_sa_*.c`), for trusted requests too,
//! except that a switch's port goes by its own P_Key table, and one without keys is seen by all.

use weft_machine::Time;
use weft_wire::{Guid, Lid, PKey};

use super::Administrator;
use super::tables::Tables;
use super::view::View;
use crate::knowledge::{Keys, Subnet};

/// What a requester may see.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Sight<'a> {
    #[default]
    All,
    /// What the port with this GUID may.
    Of(&'a Keys, Guid),
    /// The asker is unknown.
    Nothing,
}

impl View {
    /// That of who asks from this LID.
    pub(super) fn sight(&self, lid: Lid) -> Sight<'_> {
        match (&self.keys, self.by_lid(lid)) {
            (None, _) => Sight::All,
            (Some(keys), Some(end)) => Sight::Of(keys, end.guid),
            (Some(_), None) => Sight::Nothing,
        }
    }
}

impl Sight<'_> {
    /// Whether it includes the port with this GUID.
    pub(super) fn sees(&self, guid: Guid) -> bool {
        match self {
            Self::All => true,
            Self::Of(keys, own) => keys.shared(*own, guid, None).is_some(),
            Self::Nothing => false,
        }
    }

    /// Whether the requester's port has a key of this partition.
    pub(super) fn has(&self, key: PKey) -> bool {
        match self {
            Self::All => true,
            Self::Of(keys, own) => has(keys, *own, key),
            Self::Nothing => false,
        }
    }

    /// Whether the requester's port and this one both have a key of this partition.
    pub(super) fn both_have(&self, key: PKey, other: Guid) -> bool {
        match self {
            Self::Of(keys, own) => has(keys, *own, key) && has(keys, other, key),
            _ => self.has(key),
        }
    }
}

impl Administrator {
    /// Ports have other P_Keys, and nothing else has changed.
    pub(crate) fn keys_changed(&mut self, now: Time, subnet: &Subnet) {
        self.tables = Tables::default();
        if let Some(view) = &mut self.view {
            view.keys.clone_from(&subnet.keys);
        }
        self.flush(now);
    }
}

fn has(keys: &Keys, guid: Guid, key: PKey) -> bool {
    keys.of(guid).iter().any(|own| own.partition() == key.partition())
}
