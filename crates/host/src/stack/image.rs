//! The image of a suspended stack, which goes with a virtual machine to another host.
//!
//! ```text
//!   version │ checksum │ epoch │ moment of the suspension │ identity │ state
//!           └ of everything else, as bincode writes it
//! ```
//!
//! [`STATE_VERSION`] counts changes of the state, which is that of the stack's own structures: an image lives for
//! seconds, and both hosts run the same program.
//!
//! An image has no packets of the adapter, which go-back-N repeats, no open questions to subnet administration, which are
//! asked again, and no options of the host, like the number of packets that the adapter takes. It has the options that are attributes of
//! queue pairs: window, acknowledgement timeout and retries.

use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::{GidPrefix, Guid, Lid, PKey, PortFacts};

use super::StackCounts;
use super::flow::{Flow, Flows};
use super::lanes::KeptLane;
use super::names::Offer;
use super::numbers::{COUNT_MAX, ensure};
use super::paths::Paths;
use super::subscriptions::Subscriptions;

/// The version of the state. Increase it with every change of a structure in it.
const STATE_VERSION: u16 = 8;
/// Bytes of an image at most, as bincode writes it.
pub const IMAGE_BYTES_MAX: usize = 16 << 20;

const BINCODE: bincode::config::Configuration = bincode::config::standard();

/// Whose port it is, as far as a stack knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The port's GUID.
    pub guid: Guid,
    /// The upper half of its GIDs.
    pub gid_prefix: GidPrefix,
    /// The port's base LID; 0 while it has none.
    pub lid: Lid,
    /// It has 2 to this power LIDs.
    pub lmc: u8,
    /// The partitions of the paths in its cache, each once, in order. The port's table may have others.
    pub p_keys: Vec<PKey>,
}

/// Where an image goes, as the virtual-machine manager says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The port GUID that is moved: an image of another one is refused, unless the place renames it.
    pub guid: Guid,
    /// The epoch that the image must be of: an image of another move is refused.
    pub from_epoch: u64,
    /// The epoch that begins with this import, later than all before it.
    pub epoch: u64,
    /// Whether the port here has a GUID of its own: then the image is of another one.
    pub renames: bool,
    /// The LID here, if it changes; `None` if it moves with the port, as prepopulated and dynamic LIDs do. It holds until the
    /// adapter tells of the active port.
    pub lid: Option<Lid>,
}

/// Why an image cannot be made, read or taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// A running stack changes with every packet.
    #[error("the stack is running; hint: suspend it first")]
    Running,
    /// The stack is in use.
    #[error(
        "the stack is running and has {0} flows of its own; hint: suspend it, or import into another one"
    )]
    Occupied(usize),
    /// It is over [`IMAGE_BYTES_MAX`].
    #[error("the image has {bytes} bytes, and may have {IMAGE_BYTES_MAX}")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// It does not decode.
    #[error("the image is cut short or damaged: {0}")]
    Unreadable(String),
    /// Another program wrote it.
    #[error("the image has version {found}, and version {STATE_VERSION} is expected")]
    Version {
        /// Its version.
        found: u16,
    },
    /// Its checksum is wrong.
    #[error("the image is damaged: its checksum is {found:#010x}, and that of its content {computed:#010x}")]
    Damaged {
        /// The checksum in it.
        found: u32,
        /// The one of its content.
        computed: u32,
    },
    /// It is another port's.
    #[error("the image is of port {found}, and port {expected} moves")]
    Foreign {
        /// The GUID in it.
        found: Guid,
        /// The GUID of [`Place`].
        expected: Guid,
    },
    /// It is of another move.
    #[error("the image is of epoch {found}, and the move is from epoch {expected}")]
    Stale {
        /// The epoch in it.
        found: u64,
        /// The epoch of [`Place`].
        expected: u64,
    },
    /// The move is not the latest that this stack has heard of.
    #[error("epoch {given} is over; the stack is in epoch {known}")]
    OldEpoch {
        /// The epoch that the import should begin.
        given: u64,
        /// The latest one known.
        known: u64,
    },
    /// The new LID is none.
    #[error("LID {0} is no unicast LID")]
    Lid(Lid),
    /// Its parts do not fit together.
    #[error("the image contradicts itself: {0}")]
    Contradiction(&'static str),
}

/// A suspended stack. [`Stack::import`](super::Stack::import) checks its version and checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    version: u16,
    checksum: u32,
    epoch: u64,
    /// When the stack was suspended, by the clock of its host: all moments in it are of that clock.
    suspended_at: Time,
    identity: Identity,
    state: State,
}

/// Everything that a stack takes along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Attributes of queue pairs: packets, and how long and how often they wait for acknowledgements.
    pub(super) window_packets: u32,
    pub(super) ack_timeout: Time,
    pub(super) retries: u32,
    pub(super) heeds_repath: bool,
    pub(super) retry_at: Option<Time>,
    /// The facts of the port that were received last.
    pub(super) facts: PortFacts,
    pub(super) lanes: [KeptLane; 16],
    pub(super) subscriptions: Subscriptions,
    pub(super) offer: Offer,
    pub(super) paths: Paths,
    pub(super) flows: Vec<Flow>,
    pub(super) counts: StackCounts,
}

/// The parts of a state that are put together again.
pub(super) struct Restored {
    pub(super) suspended_at: Time,
    pub(super) flows: Flows,
    /// The rest; its flows are taken out.
    pub(super) state: State,
}

impl Image {
    pub(super) fn seal(epoch: u64, suspended_at: Time, state: State) -> Result<Self, ImageError> {
        let facts = &state.facts;
        let identity = Identity {
            guid: facts.guid,
            gid_prefix: facts.gid_prefix,
            lid: facts.lid,
            lmc: facts.lmc,
            p_keys: state.paths.p_keys(),
        };
        let mut image = Self { version: STATE_VERSION, checksum: 0, epoch, suspended_at, identity, state };
        image.checksum = image.compute()?;
        Ok(image)
    }

    /// Whose port it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The epoch that it was taken in.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// When the stack was suspended, by the clock of its host.
    pub fn suspended_at(&self) -> Time {
        self.suspended_at
    }

    /// Flows in it, sent or received.
    pub fn flows(&self) -> usize {
        self.state.flows.len()
    }

    /// Unacknowledged packets, which are repeated first.
    pub fn unacknowledged(&self) -> u64 {
        let senders = self.state.flows.iter().filter_map(|flow| flow.sender.as_deref());
        senders.fold(0, |sum, sender| sum.saturating_add(sender.fresh.saturating_sub(sender.unacknowledged)))
    }

    /// Encodes it, in at most [`IMAGE_BYTES_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// [`ImageError::TooLarge`].
    pub fn encode(&self) -> Result<Vec<u8>, ImageError> {
        let unwritable = |error: EncodeError| ImageError::Unreadable(error.to_string());
        let bytes = bincode::serde::encode_to_vec(self, BINCODE).map_err(unwritable)?;
        if bytes.len() > IMAGE_BYTES_MAX {
            return Err(ImageError::TooLarge { bytes: bytes.len() });
        }
        Ok(bytes)
    }

    /// Decodes what [`Image::encode`] has written.
    ///
    /// # Errors
    ///
    /// [`ImageError::TooLarge`], [`ImageError::Version`], [`ImageError::Unreadable`] or [`ImageError::Damaged`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ImageError> {
        if bytes.len() > IMAGE_BYTES_MAX {
            return Err(ImageError::TooLarge { bytes: bytes.len() });
        }
        let unreadable = |reason: String| ImageError::Unreadable(reason);
        // Another version may have other fields: it is to be named, and not called damaged.
        let version: Result<(u16, usize), _> = bincode::serde::decode_from_slice(bytes, BINCODE);
        check_version(version.map_err(|error| unreadable(error.to_string()))?.0)?;
        let decoded = bincode::serde::decode_from_slice(bytes, BINCODE.with_limit::<IMAGE_MEMORY_MAX>());
        let (image, used): (Self, usize) = decoded.map_err(|error| unreadable(error.to_string()))?;
        if used < bytes.len() {
            return Err(unreadable(format!("{} bytes are left over", bytes.len() - used)));
        }
        image.check()?;
        Ok(image)
    }

    /// Whether it is whole.
    fn check(&self) -> Result<(), ImageError> {
        check_version(self.version)?;
        match self.compute()? {
            computed if computed == self.checksum => Ok(()),
            computed => Err(ImageError::Damaged { found: self.checksum, computed }),
        }
    }

    /// The checksum of everything else.
    fn compute(&self) -> Result<u32, ImageError> {
        let mut sink = Sink::default();
        let content = (self.version, self.epoch, self.suspended_at, &self.identity, &self.state);
        bincode::serde::encode_into_writer(content, &mut sink, BINCODE)
            .map_err(|error| ImageError::Unreadable(error.to_string()))?;
        // Leave room for what the image has besides.
        if sink.bytes > IMAGE_BYTES_MAX - 64 {
            return Err(ImageError::TooLarge { bytes: sink.bytes });
        }
        Ok(sink.checksum.finalize())
    }

    /// Takes it apart for a place, or says why it must not be there. `known` is the latest epoch of the stack there.
    pub(super) fn open(self, place: &Place, known: u64) -> Result<Restored, ImageError> {
        self.check()?;
        let Self { epoch, suspended_at, identity, mut state, .. } = self;
        if identity.guid != place.guid && !place.renames {
            return Err(ImageError::Foreign { found: identity.guid, expected: place.guid });
        }
        if epoch != place.from_epoch {
            return Err(ImageError::Stale { found: epoch, expected: place.from_epoch });
        }
        let latest = known.max(epoch);
        if place.epoch <= latest {
            return Err(ImageError::OldEpoch { given: place.epoch, known: latest });
        }
        if let Some(lid) = place.lid.filter(|lid| !lid.is_unicast()) {
            return Err(ImageError::Lid(lid));
        }
        let flows = state.restore(&identity).map_err(ImageError::Contradiction)?;
        Ok(Restored { suspended_at, flows, state })
    }
}

#[cfg(test)]
impl Image {
    /// The same content in another epoch.
    pub(super) fn at_epoch(self, epoch: u64) -> Self {
        Self::seal(epoch, self.suspended_at, self.state).unwrap()
    }

    /// What the bytes say, with the checksum that belongs to it, if they say anything.
    pub(super) fn resealed(bytes: &[u8]) -> Option<Self> {
        let config = BINCODE.with_limit::<IMAGE_MEMORY_MAX>();
        let (mut image, _): (Self, usize) = bincode::serde::decode_from_slice(bytes, config).ok()?;
        image.version = STATE_VERSION;
        image.checksum = image.compute().ok()?;
        Some(image)
    }
}

/// Bytes that decoding may claim: a structure is larger in memory than in the image.
const IMAGE_MEMORY_MAX: usize = 16 * IMAGE_BYTES_MAX;

fn check_version(found: u16) -> Result<(), ImageError> {
    if found == STATE_VERSION { Ok(()) } else { Err(ImageError::Version { found }) }
}

impl State {
    /// Puts flows and paths together again. What is wrong with them, if anything is.
    fn restore(&mut self, identity: &Identity) -> Result<Flows, &'static str> {
        let facts = &self.facts;
        let port = (facts.guid, facts.gid_prefix, facts.lid, facts.lmc);
        ensure(
            port == (identity.guid, identity.gid_prefix, identity.lid, identity.lmc),
            "it has two identities",
        )?;
        self.paths.restore()?;
        self.lanes.iter().try_for_each(KeptLane::verify)?;
        let counts = &self.counts;
        let counts = [
            counts.stray_packets,
            counts.replies_dropped,
            counts.reports,
            counts.repaths,
            counts.repaths_ignored,
            counts.questions,
            counts.questions_failed,
            counts.refused,
            counts.packets_refused,
        ];
        ensure(counts.iter().all(|count| *count <= COUNT_MAX), "a counter is too high")?;
        Flows::restore(std::mem::take(&mut self.flows), self.paths.len())
    }
}

/// Keeps nothing of what is written but its checksum and its length.
#[derive(Default)]
struct Sink {
    checksum: crc32fast::Hasher,
    bytes: usize,
}

impl Writer for Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.checksum.update(bytes);
        self.bytes += bytes.len();
        Ok(())
    }
}
