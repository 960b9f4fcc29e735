use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest name of a fault.
const ID_BYTES_MAX: usize = 64;

/// A fault's name, the same at every agent that takes part in it: 1 to 64 letters, digits, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct FaultId(
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[A-Za-z0-9_.-]{1,64}$")))] String,
);

/// A text cannot name a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot name a fault; use 1 to 64 letters, digits, `-`, `_` and `.`")]
pub struct BadFaultId(String);

impl std::str::FromStr for FaultId {
    type Err = BadFaultId;

    fn from_str(text: &str) -> Result<Self, BadFaultId> {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let fits = (1..=ID_BYTES_MAX).contains(&text.len()) && text.chars().all(good);
        let shown = || text.chars().take(ID_BYTES_MAX).collect();
        if fits { Ok(Self(text.to_owned())) } else { Err(BadFaultId(shown())) }
    }
}

impl<'de> Deserialize<'de> for FaultId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for FaultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_faults() {
        for good in ["1", "f-12", "run.3_a", &"x".repeat(64)] {
            assert_eq!(good.parse::<FaultId>().unwrap().to_string(), good);
        }
        for bad in ["", "a b", "../x", "é", &"x".repeat(65)] {
            assert!(bad.parse::<FaultId>().is_err(), "{bad}");
            assert!(serde_json::from_value::<FaultId>(bad.into()).is_err(), "{bad}");
        }
    }
}
