//! Stands in for what `weft-wire` will define, field by field.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weft_wire::{Lid, QKey, QpNum, ServiceLevel};

/// One management datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mad(pub [u8; 256]);

impl Serialize for Mad {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Mad {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        bytes.try_into().map(Self).map_err(|_| serde::de::Error::custom("a MAD is 256 bytes"))
    }
}

/// A MAD as a management program sends or gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressedMad {
    /// The peer's LID.
    pub lid: Lid,
    /// The peer's queue pair.
    pub remote_qp: QpNum,
    /// The own queue pair.
    pub local_qp: QpNum,
    /// The service level.
    pub service_level: ServiceLevel,
    /// The index into the port's P_Key table.
    pub pkey_index: u16,
    /// The queue key.
    pub qkey: QKey,
    /// The datagram.
    pub mad: Mad,
}

/// Which unsolicited MADs a program wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The management class.
    pub class: u8,
    /// The class's version.
    pub class_version: u8,
    /// The methods.
    pub methods: Vec<u8>,
}
