//! The two documents of a routing engine that is a program (`exec:`): the fabric that it reads, and the tables that it writes.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number in [`EngineFabric::version`]: it rises when a program that reads the version before would be wrong.
pub const ENGINE_VERSION: u32 = 1;

/// A fabric, as a program gets it on standard input. GUIDs are texts such as `0x0002c90000000001`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineFabric {
    /// The version of this document.
    pub version: u32,
    /// How many data lanes the routing may use: 0 to this number less one.
    pub lanes: u8,
    /// The switches that the operator names as roots, by node GUID; empty where none are named.
    pub roots: Vec<String>,
    /// The switches.
    pub switches: Vec<EngineNode>,
    /// The host adapters and routers.
    pub hosts: Vec<EngineNode>,
    /// The LIDs to route, in their order: those of hosts' ports, and of port 0 of switches.
    pub lids: Vec<EngineLids>,
}

/// A switch, a host adapter or a router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineNode {
    /// Its node GUID.
    pub guid: String,
    /// What people call it.
    pub name: String,
    /// Its ports that have a cable.
    pub ports: Vec<EnginePort>,
}

/// A port and its cable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnginePort {
    /// The port's number.
    pub port: u8,
    /// The node GUID at the other end.
    pub peer_guid: String,
    /// The port at the other end.
    pub peer_port: u8,
    /// What the link carries with its coding, in Gb/s.
    pub rate_gbps: f64,
}

/// The LIDs of a port: 2^`lmc` of them, from `lid` upwards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineLids {
    /// The first LID.
    pub lid: u16,
    /// The LID mask control.
    pub lmc: u8,
    /// The node GUID of the port's node.
    pub guid: String,
    /// The port's number; 0 for switches.
    pub port: u8,
}

/// Tables, as a program writes them to standard output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EngineTables {
    /// Why the program does not serve this fabric, in one sentence that names the node; then nothing else counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// By node GUID of each switch: the output port by LID. A switch's own LIDs are on port 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, Row>,
    /// By LID of a source: the service level by LID of the destination. Pairs that are left out use level 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<u16, Row>,
    /// The lane of each service level from 0 on; level n takes lane n where nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<u8>,
}

/// A small number by LID. It is kept as a list, since tables of a large fabric have millions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row(pub Vec<Entry>);

/// An entry of a [`Row`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The LID.
    pub lid: u16,
    /// Its port or level.
    pub value: u8,
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|entry| (entry.lid, entry.value)))
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of numbers by LID")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let mut row = Row::default();
        while let Some((lid, value)) = map.next_entry()? {
            row.0.push(Entry { lid, value });
        }
        Ok(row)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Row {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Row".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        <BTreeMap<u16, u8>>::json_schema(generator)
    }
}
