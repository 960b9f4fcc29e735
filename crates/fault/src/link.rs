//! Limits of a link's width and speed. Bits are PortInfo's, which the types of this crate may not name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text is no width or no speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadLink {
    /// No width.
    #[error("a width is 1x, 2x, 4x or 8x")]
    Width,
    /// No speed.
    #[error("a speed is sdr, ddr, qdr, fdr10, fdr, edr, hdr or ndr")]
    Speed,
}

/// The number of lanes that work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum Width {
    /// One.
    #[serde(rename = "1x")]
    X1,
    /// Two.
    #[serde(rename = "2x")]
    X2,
    /// Four.
    #[serde(rename = "4x")]
    X4,
    /// Eight.
    #[serde(rename = "8x")]
    X8,
}

/// The highest speed of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
pub enum Signalling {
    /// 2.5 Gb/s.
    Sdr,
    /// 5 Gb/s.
    Ddr,
    /// 10 Gb/s.
    Qdr,
    /// 10.3125 Gb/s.
    Fdr10,
    /// 14.0625 Gb/s.
    Fdr,
    /// 25.78125 Gb/s.
    Edr,
    /// 53.125 Gb/s.
    Hdr,
    /// 106.25 Gb/s.
    Ndr,
}

impl Width {
    /// All, from the narrowest.
    pub const ALL: [Self; 4] = [Self::X1, Self::X2, Self::X4, Self::X8];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X1 => "1x",
            Self::X2 => "2x",
            Self::X4 => "4x",
            Self::X8 => "8x",
        }
    }
}

impl Signalling {
    /// All, from the slowest.
    pub const ALL: [Self; 8] =
        [Self::Sdr, Self::Ddr, Self::Qdr, Self::Fdr10, Self::Fdr, Self::Edr, Self::Hdr, Self::Ndr];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sdr => "sdr",
            Self::Ddr => "ddr",
            Self::Qdr => "qdr",
            Self::Fdr10 => "fdr10",
            Self::Fdr => "fdr",
            Self::Edr => "edr",
            Self::Hdr => "hdr",
            Self::Ndr => "ndr",
        }
    }
}

impl FromStr for Width {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Self, BadLink> {
        Self::ALL.into_iter().find(|width| width.name() == text).ok_or(BadLink::Width)
    }
}

impl FromStr for Signalling {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Self, BadLink> {
        Self::ALL.into_iter().find(|speed| speed.name() == text).ok_or(BadLink::Speed)
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Signalling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
