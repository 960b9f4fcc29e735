//! GUIDs as people write them. JSON's numbers are not safe with 64 bits in every reader.

use std::borrow::Cow;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weft_wire::Guid;

/// A GUID that is `"0x0008f10500108098"` in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HexGuid(pub Guid);

impl From<Guid> for HexGuid {
    fn from(guid: Guid) -> Self {
        Self(guid)
    }
}

impl From<HexGuid> for Guid {
    fn from(guid: HexGuid) -> Self {
        guid.0
    }
}

impl fmt::Display for HexGuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for HexGuid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HexGuid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").filter(|digits| (1..=16).contains(&digits.len()));
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        number.map(|number| Self(Guid(number))).ok_or_else(|| {
            D::Error::custom(format!("invalid GUID `{text}`; use 0x and 1 to 16 hexadecimal digits"))
        })
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for HexGuid {
    fn schema_name() -> Cow<'static, str> {
        "Guid".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A GUID in hexadecimal digits.",
            "type": "string",
            "pattern": "^0x[0-9a-fA-F]{1,16}$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_hexadecimal_text() {
        let guid = HexGuid(Guid(0x8f1_0500_1080));
        assert_eq!(serde_json::to_string(&guid).unwrap(), "\"0x000008f105001080\"");
        assert_eq!(serde_json::from_str::<HexGuid>("\"0x8F105001080\"").unwrap(), guid);
        for wrong in ["7", "\"7\"", "\"0x\"", "\"0x+7\"", "\"0x00000000000000001\"", "\"0xg\"", "null"] {
            assert!(serde_json::from_str::<HexGuid>(wrong).is_err(), "{wrong}");
        }
    }
}
