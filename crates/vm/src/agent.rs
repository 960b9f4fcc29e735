//! Commands to agents, and their answers.
//!
//! **What an agent must do.** A driver may say all this in other messages, but the rules are these:
//!
//! 1. A new process has a new incarnation and no virtual machine of the old one. It plugs in no
//!    identity without an order ([`Content::Bare`]), because identities may have moved. At a
//!    laboratory's first start it may plug in those of its configuration; else the manager does.
//! 2. It remembers the highest generation that it has seen, and refuses lower ones. [`Act::Inspect`] of generation 0 changes nothing.
//! 3. It refuses a command that names another incarnation.
//! 4. A slot remembers the highest epoch that it has seen, also when it is empty. It refuses a lower one. A command of the same epoch is
//!    the same command again: it has been carried out, and is answered with the slot's content. Only [`Deed::Export`], which changes
//!    nothing, has the epoch of the freeze before it. A command that was refused leaves the epoch as it was.
//! 5. It never starts or resumes a virtual machine unless a command says so.
//! 6. It holds a frozen virtual machine, unplugged, so that it neither sends nor receives, and an
//!    image that has arrived, until a command clears the slot.
//!
//! Then a command that is late or doubled does no harm: whatever takes something back has a higher epoch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, Lid, PortNum};

use crate::identity::{Identity, P_KEYS_MAX, PortIdentity};
use crate::names::{VFS_MAX, VmName};

/// Bytes of an image at most, as of a host's stack.
pub const IMAGE_BYTES_MAX: usize = 16 << 20;
/// The highest epoch or generation that is accepted from an agent, so that it can be counted on.
pub(crate) const COUNT_MAX: u64 = 1 << 62;
/// Bytes at most of words that came in a message; the rest is cut off.
pub const WORDS_BYTES_MAX: usize = 512;

/// A command for an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The answer names it. A command that is repeated keeps its number.
    pub number: u64,
    /// The manager's generation; 0 in an inspection that changes nothing.
    pub generation: u64,
    /// What is to be done.
    pub act: Act,
}

/// What an agent is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Say which incarnation it is and what is in its slots. Changes nothing but the generation.
    Inspect,
    /// Something with one slot.
    Slot {
        /// The virtual function, counted from 1.
        vf: u8,
        /// The incarnation that the manager means.
        incarnation: u64,
        /// The epoch that begins for this slot.
        epoch: u64,
        /// What to do.
        deed: Deed,
    },
}

/// What an agent is to do with a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Start a virtual machine in a free slot.
    Create(Box<Occupant>),
    /// Keep a free slot for one that will come.
    Reserve(VmName),
    /// Suspend it and unplug it.
    Freeze(VmName),
    /// Give the image of the frozen one; changes nothing. A cold one has no state to take along: its image is empty.
    Export {
        /// The virtual machine.
        vm: VmName,
        /// Whether it is shut down rather than suspended.
        cold: bool,
    },
    /// Take an image into a reserved slot, unplugged and frozen.
    Import {
        /// The virtual machine.
        occupant: Box<Occupant>,
        /// The epoch that the image was taken in.
        from_epoch: u64,
        /// The image.
        image: Image,
    },
    /// Plug in and resume an imported one; or one that was frozen here, which stays.
    Activate(VmName),
    /// Empty the slot whatever is in it, and plug in an identity without a virtual machine, if there is one.
    Clear(Option<PortIdentity>),
}

/// A virtual machine's state on its way, which only agents understand.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u8>", into = "Vec<u8>")]
pub struct Image(pub Arc<[u8]>);

impl From<Vec<u8>> for Image {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<Image> for Vec<u8> {
    fn from(image: Image) -> Self {
        image.0.to_vec()
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({} bytes)", self.0.len())
    }
}

/// A virtual machine in a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupant {
    /// Its name.
    pub vm: VmName,
    /// Its identity. Its LID is that of the port, 0 while the port has none.
    pub identity: Identity,
}

/// What is in a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Nothing, not even an identity.
    #[default]
    Bare,
    /// An identity without a virtual machine.
    Spare(PortIdentity),
    /// Kept for a virtual machine that will come.
    Reserved(VmName),
    /// A virtual machine that runs.
    Running(Box<Occupant>),
    /// One that was suspended here.
    Frozen(Box<Occupant>),
    /// One whose image has arrived.
    Imported(Box<Occupant>),
}

impl Content {
    /// Whether a virtual machine can come here.
    pub fn is_free(&self) -> bool {
        matches!(self, Self::Bare | Self::Spare(_))
    }

    /// The virtual machine in it, running or not.
    pub fn occupant(&self) -> Option<&Occupant> {
        match self {
            Self::Running(occupant) | Self::Frozen(occupant) | Self::Imported(occupant) => Some(occupant),
            Self::Bare | Self::Spare(_) | Self::Reserved(_) => None,
        }
    }

    pub(crate) fn port_mut(&mut self) -> Option<&mut PortIdentity> {
        match self {
            Self::Spare(port) => Some(port),
            Self::Running(occupant) | Self::Frozen(occupant) | Self::Imported(occupant) => {
                Some(&mut occupant.identity.port)
            }
            Self::Bare | Self::Reserved(_) => None,
        }
    }

    /// The addresses that are here, plugged in or not.
    pub fn port(&self) -> Option<&PortIdentity> {
        match self {
            Self::Spare(port) => Some(port),
            other => other.occupant().map(|occupant| &occupant.identity.port),
        }
    }
}

/// A slot, as its agent tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotReport {
    /// The virtual function, counted from 1.
    pub vf: u8,
    /// The identity of its configuration.
    pub configured: PortIdentity,
    /// The highest epoch that it has seen.
    pub epoch: u64,
    /// What is in it.
    pub content: Content,
}

/// The physical function of an adapter, for lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapter {
    /// What people call it.
    pub description: String,
    /// The GUID of the system.
    pub system_guid: Guid,
    /// The GUID of the port.
    pub port_guid: Guid,
    /// The port.
    pub port_num: PortNum,
}

/// An agent's answer to [`Act::Inspect`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// Its incarnation: another process has another one.
    pub incarnation: u64,
    /// The highest generation of a manager that it has seen.
    pub generation: u64,
    /// Its physical function.
    pub adapter: Adapter,
    /// Its slots.
    pub slots: Vec<SlotReport>,
}

/// How an agent answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// To an inspection.
    Report(Box<HostReport>),
    /// The slot's content, after what was to be done is done.
    Done(Content),
    /// To an export.
    Image(Image),
    /// It was not done.
    Refused(Refusal),
}

/// Why an agent did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Another manager has taken over.
    #[error("the agent has heard of generation {0}")]
    Generation(u64),
    /// The command was for a process that is no more.
    #[error("the agent is incarnation {0:#x}")]
    Incarnation(u64),
    /// The slot has heard of a later epoch.
    #[error("the slot is in epoch {0}")]
    Epoch(u64),
    /// It cannot, in words: another content, a cut or foreign image.
    #[error("{0}")]
    Words(String),
}

/// What is wrong with a report, if anything is.
pub(crate) fn verify_report(report: &HostReport) -> Result<(), String> {
    let mut vfs: Vec<u8> = report.slots.iter().map(|slot| slot.vf).collect();
    vfs.sort_unstable();
    if vfs.len() > usize::from(VFS_MAX) {
        return Err(format!("it has {} slots, and may have {VFS_MAX}", vfs.len()));
    }
    if vfs.iter().any(|vf| !(1..=VFS_MAX).contains(vf)) {
        return Err(format!("a slot has a number that is not in 1 to {VFS_MAX}"));
    }
    if vfs.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("two slots have the same number".to_owned());
    }
    if report.generation > COUNT_MAX || report.slots.iter().any(|slot| slot.epoch > COUNT_MAX) {
        return Err(format!("an epoch or the generation is above {COUNT_MAX}"));
    }
    if report.adapter.description.len() > WORDS_BYTES_MAX {
        return Err(format!("its description is longer than {WORDS_BYTES_MAX} bytes"));
    }
    report.slots.iter().try_for_each(|slot| verify_content(&slot.content))
}

/// What is wrong with a content, if anything is.
pub(crate) fn verify_content(content: &Content) -> Result<(), String> {
    let p_keys = content.occupant().map_or(0, |occupant| occupant.identity.p_keys.len());
    if p_keys > P_KEYS_MAX {
        return Err(format!("a virtual machine has {p_keys} P_Keys, and may have {P_KEYS_MAX}"));
    }
    let Some(port) = content.port() else { return Ok(()) };
    if port.node_guid == Guid(0) || port.port_guid == Guid(0) {
        return Err("a GUID is 0".to_owned());
    }
    if port.lid != Lid(0) && !port.lid.is_unicast() {
        return Err(format!("{} is no unicast LID", port.lid));
    }
    Ok(())
}

/// Words that came in a message or a file, cut to their bound, in one line.
pub(crate) fn cut(words: &str) -> String {
    let mut end = words.len().min(WORDS_BYTES_MAX);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    words[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(vfs: &[u8]) -> HostReport {
        let slot = |vf: &u8| SlotReport {
            vf: *vf,
            configured: PortIdentity::default(),
            epoch: 0,
            content: Content::Bare,
        };
        HostReport { slots: vfs.iter().map(slot).collect(), ..HostReport::default() }
    }

    #[test]
    fn reports_that_no_adapter_can_give() {
        assert_eq!(verify_report(&report(&[1, 2, 252])), Ok(()));
        for wrong in [&[0][..], &[253], &[1, 2, 1]] {
            assert!(verify_report(&report(wrong)).is_err(), "{wrong:?}");
        }
        let port = |guid, lid| PortIdentity { node_guid: Guid(7), port_guid: Guid(guid), lid: Lid(lid) };
        assert_eq!(verify_content(&Content::Spare(port(8, 0xbfff))), Ok(()));
        for wrong in [port(0, 1), port(8, 0xc000)] {
            assert!(verify_content(&Content::Spare(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn words_are_cut_between_characters() {
        assert_eq!(cut(&"é".repeat(400)).chars().count(), WORDS_BYTES_MAX / 2);
        assert_eq!(cut("a\nb"), "a b");
    }
}
