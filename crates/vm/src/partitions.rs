//! The partitions that virtual machines may be in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, PKey};

use crate::error::VmError;
use crate::identity::P_KEYS_MAX;
use crate::names::Slot;

/// The lower 15 bits of the default partition's P_Key (IBA 10.9.2).
const DEFAULT: u16 = 0x7fff;

/// The P_Keys that the subnet manager gives to ports, by port GUID. They follow a virtual machine, since its GUID does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PortPartitions(BTreeMap<Guid, Vec<PKey>>);

impl PortPartitions {
    /// A port is in a partition, with this membership.
    pub fn add(&mut self, port: Guid, p_key: PKey) {
        self.0.entry(port).or_default().push(p_key);
    }

    /// Whether a port is such a member of a partition, or a full one.
    fn has(&self, port: Guid, p_key: PKey) -> bool {
        self.0.get(&port).is_some_and(|own| own.iter().any(|own| own.speaks_for(p_key)))
    }

    /// Whether a virtual machine with this port can be in the partitions that are asked for.
    pub(crate) fn check(&self, slot: &Slot, port: Guid, wanted: &[PKey]) -> Result<(), VmError> {
        match wanted.iter().find(|p_key| !self.has(port, **p_key)) {
            Some(p_key) => Err(VmError::NotInPartition { slot: slot.clone(), guid: port, p_key: *p_key }),
            None => Ok(()),
        }
    }
}

/// Whether these P_Keys make sense by themselves.
pub(crate) fn check_p_keys(wanted: &[PKey]) -> Result<(), VmError> {
    if wanted.len() > P_KEYS_MAX {
        return Err(VmError::TooManyPKeys { wanted: wanted.len(), max: P_KEYS_MAX });
    }
    for (at, p_key) in wanted.iter().enumerate() {
        if p_key.partition() == 0 {
            return Err(VmError::NoPartition(*p_key));
        }
        if p_key.0 == DEFAULT {
            return Err(VmError::DefaultPartition);
        }
        if wanted[..at].iter().any(|before| before.partition() == p_key.partition()) {
            return Err(VmError::PartitionTwice(*p_key));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_member_speaks_for_a_limited_one() {
        let mut partitions = PortPartitions::default();
        partitions.add(Guid(1), PKey(0x8001));
        partitions.add(Guid(1), PKey(2));
        let has = |port, p_key| partitions.has(Guid(port), PKey(p_key));
        assert!(has(1, 0x8001) && has(1, 1) && has(1, 2));
        assert!(!has(1, 0x8002), "a limited member");
        assert!(!has(1, 0x8003) && !has(2, 1));
    }

    #[test]
    fn p_keys_that_make_no_sense_are_refused() {
        let check = |keys: &[u16]| check_p_keys(&keys.iter().map(|key| PKey(*key)).collect::<Vec<_>>());
        assert_eq!((check(&[]), check(&[0x8001, 2, 0xffff])), (Ok(()), Ok(())));
        for none in [0, 0x8000] {
            assert_eq!(check(&[1, none]), Err(VmError::NoPartition(PKey(none))));
        }
        assert_eq!(check(&[0x7fff]), Err(VmError::DefaultPartition));
        for twice in [[1, 1], [0x8001, 1], [1, 0x8001]] {
            assert_eq!(check(&twice), Err(VmError::PartitionTwice(PKey(twice[1]))));
        }
        let many: Vec<u16> = (1..=65).collect();
        assert_eq!(check(&many), Err(VmError::TooManyPKeys { wanted: 65, max: 64 }));
    }
}
