//! An agent's state of virtual machines beside its node: the manager's generation, images on their way in, and the accounts
//! of functions that had other identities before. And the node's words for slots as the control protocol's.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use weft_control::vm as told;
use weft_control::{Error, ErrorCode, HexGuid};
use weft_device::DataAccount;
use weft_host::stack::IMAGE_BYTES_MAX;
use weft_node::{DeviceId, VmIdentity};
use weft_wire::Guid;

use crate::kept;

/// Bytes of images on their way in, of all slots together.
const PARTS_BYTES_MAX: usize = 4 * IMAGE_BYTES_MAX;

/// Managers that an agent remembers at most, one for each piece of a fabric that it is in, and bytes of their names.
const MANAGERS_MAX: usize = 256;
const MANAGER_BYTES_MAX: usize = 64;

/// The agent's part of virtual machines.
#[derive(Debug, Default)]
pub(crate) struct Vms {
    /// The highest generation that was heard of, by manager: the first has an empty name.
    generations: BTreeMap<String, u64>,
    /// The file that keeps `away` for the agent's next life.
    file: Option<PathBuf>,
    /// Slots whose own identities have left them: they may be on another host.
    away: BTreeSet<Guid>,
    /// Images on their way in, by slot.
    parts: BTreeMap<DeviceId, Parts>,
    /// What lanes had moved under identities that have left.
    past: BTreeMap<DeviceId, DataAccount>,
    /// Sets that functions had received under identities that have left.
    past_sets: BTreeMap<DeviceId, u64>,
}

/// A virtual machine in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VmEpoch<'a> {
    pub(crate) vm: &'a str,
    pub(crate) epoch: u64,
}

/// The beginning of an image, and whose it is.
#[derive(Debug)]
struct Parts {
    vm: String,
    epoch: u64,
    bytes: Vec<u8>,
}

impl Parts {
    fn are_of(&self, of: VmEpoch<'_>) -> bool {
        of == VmEpoch { vm: &self.vm, epoch: self.epoch }
    }
}

impl Vms {
    /// State of the agent's previous life. An unreadable file is logged; all slots begin afresh.
    pub(crate) fn load(file: Option<&Path>) -> Self {
        let away = file.map(kept::read).transpose().unwrap_or_else(|error| {
            tracing::warn!(file = file.map(|file| tracing::field::display(file.display())), %error, "slots of the agent's life before are not known");
            None
        });
        Self { file: file.map(Path::to_owned), away: away.unwrap_or_default(), ..Self::default() }
    }

    /// The highest generation of a manager that was heard of.
    pub(crate) fn generation(&self, manager: &str) -> u64 {
        self.generations.get(manager).copied().unwrap_or(0)
    }

    /// Those of other managers than the first.
    pub(crate) fn other_generations(&self) -> BTreeMap<String, u64> {
        let others = self.generations.iter().filter(|(manager, _)| !manager.is_empty());
        others.map(|(manager, generation)| (manager.clone(), *generation)).collect()
    }

    /// Takes note of a manager's generation; false where that is another manager than an agent remembers.
    pub(crate) fn note_generation(&mut self, manager: &str, generation: u64) -> bool {
        let fits = manager.len() <= MANAGER_BYTES_MAX && self.generations.len() < MANAGERS_MAX;
        let takes = fits || self.generations.contains_key(manager);
        if takes {
            self.generations.insert(manager.to_owned(), generation);
        }
        takes
    }

    /// Whether the identity that a slot begins with may be on another host.
    pub(crate) fn is_away(&self, slot: Guid) -> bool {
        self.away.contains(&slot)
    }

    /// Keeps whether the identity that a slot begins with may be on another host.
    pub(crate) fn set_away(&mut self, slot: Guid, is_away: bool) -> io::Result<()> {
        let changed = if is_away { self.away.insert(slot) } else { self.away.remove(&slot) };
        match &self.file {
            Some(file) if changed => kept::write(file, &self.away),
            _ => Ok(()),
        }
    }

    /// Keeps a part of an image of a virtual machine in an epoch.
    pub(crate) fn keep_part(
        &mut self,
        slot: DeviceId,
        of: VmEpoch<'_>,
        offset: u32,
        part: Vec<u8>,
    ) -> Result<(), Error> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if part.len() > told::IMAGE_PART_BYTES_MAX || offset.saturating_add(part.len()) > IMAGE_BYTES_MAX {
            let message = format!(
                "a part of an image has at most {} bytes, and an image {IMAGE_BYTES_MAX}",
                told::IMAGE_PART_BYTES_MAX
            );
            return Err(Error::new(ErrorCode::InvalidRequest, message).hint("send it in smaller parts"));
        }
        let others = self.parts.iter().filter(|(id, _)| **id != slot);
        let others: usize = others.map(|(_, parts)| parts.bytes.len()).sum();
        if others + offset + part.len() > PARTS_BYTES_MAX {
            let message = format!("images on their way in have {PARTS_BYTES_MAX} bytes here already");
            return Err(Error::new(ErrorCode::TooMany, message).hint("import the others first"));
        }
        let known =
            self.parts.get(&slot).filter(|parts| parts.are_of(of)).map_or(0, |parts| parts.bytes.len());
        if offset > known {
            let message = format!("the part begins at byte {offset}, and {known} are here");
            return Err(Error::new(ErrorCode::Conflict, message).hint("send the image again from byte 0"));
        }
        if offset == 0 {
            self.parts.insert(slot, Parts { vm: of.vm.to_owned(), epoch: of.epoch, bytes: part });
        } else if let Some(parts) = self.parts.get_mut(&slot) {
            // A part that comes again takes its place again.
            parts.bytes.truncate(offset);
            parts.bytes.extend(part);
        }
        Ok(())
    }

    /// The image whose parts came for a virtual machine in an epoch.
    pub(crate) fn image(&self, slot: DeviceId, of: VmEpoch<'_>) -> Option<&[u8]> {
        self.parts.get(&slot).filter(|parts| parts.are_of(of)).map(|parts| parts.bytes.as_slice())
    }

    /// The slot needs no image any more.
    pub(crate) fn forget_parts(&mut self, slot: DeviceId) {
        self.parts.remove(&slot);
    }

    /// A slot's device has another identity; its account begins at zero.
    pub(crate) fn bury(&mut self, slot: DeviceId, account: &DataAccount, sets: u64) {
        self.past.entry(slot).or_default().bury(account);
        *self.past_sets.entry(slot).or_default() += sets;
    }

    /// Sets that a slot's device had received under identities that have left.
    pub(crate) fn past_sets(&self, slot: DeviceId) -> u64 {
        self.past_sets.get(&slot).copied().unwrap_or(0)
    }

    /// Adds what a slot's device had moved under identities that have left.
    pub(crate) fn add_past(&self, slot: DeviceId, account: &mut DataAccount) {
        if let Some(past) = self.past.get(&slot) {
            account.bury(past);
        }
    }
}

/// An identity in a client's words.
pub(crate) fn told_identity(identity: &VmIdentity) -> told::VmIdentity {
    let VmIdentity { guid, port_guid, description, p_keys, weight, rate_mbps } = identity.clone();
    told::VmIdentity { node: HexGuid(guid), port: HexGuid(port_guid), description, p_keys, weight, rate_mbps }
}

/// An identity that a client names.
pub(crate) fn heard_identity(identity: told::VmIdentity) -> VmIdentity {
    let told::VmIdentity { node, port, description, p_keys, weight, rate_mbps } = identity;
    VmIdentity { guid: node.0, port_guid: port.0, description, p_keys, weight, rate_mbps }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: DeviceId = DeviceId(3);
    const WEB: VmEpoch<'static> = VmEpoch { vm: "web", epoch: 2 };
    const DB: VmEpoch<'static> = VmEpoch { vm: "db", epoch: 1 };

    #[test]
    fn parts_of_an_image_come_in_order_and_may_come_again() {
        let mut vms = Vms::default();
        assert_eq!(vms.image(SLOT, WEB), None);
        vms.keep_part(SLOT, WEB, 0, vec![1, 2, 3]).unwrap();
        let gap = vms.keep_part(SLOT, WEB, 4, vec![5]).unwrap_err();
        assert_eq!(gap.code, ErrorCode::Conflict);
        vms.keep_part(SLOT, WEB, 3, vec![4, 5]).unwrap();
        vms.keep_part(SLOT, WEB, 3, vec![4, 5]).unwrap();
        assert_eq!(vms.image(SLOT, WEB), Some(&[1, 2, 3, 4, 5][..]));
        assert_eq!(vms.image(SLOT, VmEpoch { epoch: 1, ..WEB }), None, "it is of another epoch");
        assert_eq!(vms.keep_part(SLOT, DB, 5, vec![6]).unwrap_err().code, ErrorCode::Conflict);
        vms.keep_part(SLOT, DB, 0, vec![7]).unwrap();
        assert_eq!(vms.image(SLOT, WEB), None, "another image has begun");
        vms.forget_parts(SLOT);
        assert_eq!(vms.image(SLOT, DB), None);
    }

    #[test]
    fn images_on_their_way_in_have_a_bound() {
        let mut vms = Vms::default();
        let part = || vec![0; told::IMAGE_PART_BYTES_MAX];
        let longer = vec![0; told::IMAGE_PART_BYTES_MAX + 1];
        assert_eq!(vms.keep_part(SLOT, WEB, 0, longer).unwrap_err().code, ErrorCode::InvalidRequest);
        let parts = IMAGE_BYTES_MAX / told::IMAGE_PART_BYTES_MAX;
        for slot in 0..4 {
            for number in 0..parts {
                let offset = u32::try_from(number * told::IMAGE_PART_BYTES_MAX).unwrap();
                vms.keep_part(DeviceId(slot), WEB, offset, part()).unwrap();
            }
            let end = u32::try_from(IMAGE_BYTES_MAX).unwrap();
            let beyond = vms.keep_part(DeviceId(slot), WEB, end, vec![0]).unwrap_err();
            assert_eq!(beyond.code, ErrorCode::InvalidRequest, "an image has a bound");
        }
        let full = vms.keep_part(DeviceId(4), WEB, 0, part()).unwrap_err();
        assert_eq!(full.code, ErrorCode::TooMany);
        vms.forget_parts(DeviceId(0));
        vms.keep_part(DeviceId(4), WEB, 0, part()).unwrap();
    }
}
