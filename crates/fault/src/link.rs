//! Limits of a link's width and speed, by name: PortInfo has them as bits.

use std::str::FromStr;

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

weft_wire::named! {
    /// The number of lanes that work.
    #[derive(PartialOrd, Ord, Hash)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
    pub enum Width {
        /// One.
        X1 = "1x",
        /// Two.
        X2 = "2x",
        /// Four.
        X4 = "4x",
        /// Eight.
        X8 = "8x",
    }
}

weft_wire::named! {
    /// The highest speed of a lane.
    #[derive(PartialOrd, Ord, Hash)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
    pub enum Signalling {
        /// 2.5 Gb/s.
        Sdr = "sdr",
        /// 5 Gb/s.
        Ddr = "ddr",
        /// 10 Gb/s.
        Qdr = "qdr",
        /// 10.3125 Gb/s.
        Fdr10 = "fdr10",
        /// 14.0625 Gb/s.
        Fdr = "fdr",
        /// 25.78125 Gb/s.
        Edr = "edr",
        /// 53.125 Gb/s.
        Hdr = "hdr",
        /// 106.25 Gb/s.
        Ndr = "ndr",
    }
}

impl FromStr for Width {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Self, BadLink> {
        Self::named(text).ok_or(BadLink::Width)
    }
}

impl FromStr for Signalling {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Self, BadLink> {
        Self::named(text).ok_or(BadLink::Speed)
    }
}
