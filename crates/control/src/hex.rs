//! Bytes as people write them.

use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that are hexadecimal digits in JSON, two for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HexBytes(pub Vec<u8>);

const DIGITS: [u8; 16] = *b"0123456789abcdef";

impl Serialize for HexBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
        let mut text = String::with_capacity(2 * self.0.len());
        text.extend(self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]));
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for HexBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(value(*high)? << 4 | value(*low)?),
            _ => None,
        };
        let bytes = text.as_bytes().chunks(2).map(byte).collect::<Option<_>>();
        bytes.map(Self).ok_or_else(|| D::Error::custom("not pairs of hexadecimal digits"))
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for HexBytes {
    fn schema_name() -> Cow<'static, str> {
        "HexBytes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^([0-9a-f]{2})*$" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let text = serde_json::to_string(&HexBytes(bytes.clone())).unwrap();
            prop_assert_eq!(text.len(), 2 * bytes.len() + 2);
            prop_assert_eq!(serde_json::from_str::<HexBytes>(&text).unwrap(), HexBytes(bytes));
        }
    }

    #[test]
    fn invalid_hexadecimal_is_refused() {
        for wrong in ["\"0\"", "\"0g\"", "\"+1\"", "\"é\"", "7"] {
            assert!(serde_json::from_str::<HexBytes>(wrong).is_err(), "{wrong}");
        }
        assert_eq!(serde_json::from_str::<HexBytes>("\"0aFF\"").unwrap(), HexBytes(vec![10, 255]));
    }
}
