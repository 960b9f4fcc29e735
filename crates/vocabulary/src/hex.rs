//! GUIDs in fields: hexadecimal text where people read (JSON), otherwise a number (recordings).
//!
//! `#[serde(with = "weft_vocabulary::hex")]` is for a GUID, [`option`] for one that may be missing, [`list`] for many.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weft_wire::Guid;

use crate::HexGuid;

/// Writes a GUID.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(guid: &Guid, to: S) -> Result<S::Ok, S::Error> {
    if to.is_human_readable() { HexGuid(*guid).serialize(to) } else { guid.serialize(to) }
}

/// Reads a GUID.
///
/// # Errors
/// When there is none.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Guid, D::Error> {
    if from.is_human_readable() {
        HexGuid::deserialize(from).map(Guid::from)
    } else {
        Guid::deserialize(from)
    }
}

/// A GUID that may be missing.
pub mod option {
    use super::{Deserialize, Deserializer, Guid, HexGuid, Serialize, Serializer};

    /// Writes it.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(guid: &Option<Guid>, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { guid.map(HexGuid).serialize(to) } else { guid.serialize(to) }
    }

    /// Reads it.
    ///
    /// # Errors
    /// When something else is there.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Guid>, D::Error> {
        if from.is_human_readable() {
            Ok(Option::<HexGuid>::deserialize(from)?.map(Guid::from))
        } else {
            Option::deserialize(from)
        }
    }
}

/// GUIDs in a row.
pub mod list {
    use super::{Deserialize, Deserializer, Guid, HexGuid, Serialize, Serializer};

    /// Writes them.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(guids: &[Guid], to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() {
            to.collect_seq(guids.iter().copied().map(HexGuid))
        } else {
            guids.serialize(to)
        }
    }

    /// Reads them.
    ///
    /// # Errors
    /// When something else is there.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Guid>, D::Error> {
        if from.is_human_readable() {
            Ok(Vec::<HexGuid>::deserialize(from)?.into_iter().map(Guid::from).collect())
        } else {
            Vec::deserialize(from)
        }
    }
}
