//! Faults that last until they are cleared.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Utc;
use crate::agent::PortEnd;

/// The longest name of a fault.
const ID_BYTES_MAX: usize = 64;

/// A fault's name, the same at every agent that takes part in it: 1 to 64 letters, digits, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct FaultId(#[schemars(regex(pattern = "^[A-Za-z0-9_.-]{1,64}$"))] String);

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

/// What an agent is to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Damage {
    /// The cable is pulled out of this port.
    Unplugged(PortEnd),
}

impl Damage {
    /// The port that it is at.
    pub fn end(&self) -> PortEnd {
        match self {
            Self::Unplugged(end) => *end,
        }
    }

    /// Its name in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unplugged(_) => "unplugged",
        }
    }
}

/// A fault that lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastingFault {
    /// Its name.
    pub id: FaultId,
    /// What is broken here.
    pub damage: Damage,
    /// Since when.
    pub since: Utc,
    /// When the agent itself ends it; none when it is to be cleared.
    pub until: Option<Utc>,
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
