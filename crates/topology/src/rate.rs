//! How fast a link is: its width and speed, and the masks by which two ends agree on them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weft_wire::LinkParameters;

/// How many lanes a link bundles. Ordered from narrow to wide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LinkWidth {
    /// One lane.
    X1,
    /// Two lanes.
    X2,
    /// Four lanes.
    #[default]
    X4,
    /// Eight lanes.
    X8,
    /// Twelve lanes.
    X12,
}

/// What a lane signals. Ordered from slow to fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LinkSpeed {
    /// 2.5 Gb/s.
    Sdr,
    /// 5 Gb/s.
    Ddr,
    /// 10 Gb/s.
    #[default]
    Qdr,
    /// 10.3125 Gb/s with the lean coding of FDR, from before FDR was standard.
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

/// A width and a speed, written `4xQDR`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkRate {
    /// How many lanes.
    pub width: LinkWidth,
    /// What each signals.
    pub speed: LinkSpeed,
}

/// The widths and speeds that one end allows, as masks in PortInfo's codes (IBA 14.2.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkMasks {
    /// LinkWidthEnabled: 1x is 1, 4x is 2, 8x is 4, 12x is 8, 2x is 16.
    pub width: u8,
    /// LinkSpeedEnabled: SDR is 1, DDR is 2, QDR is 4.
    pub speed: u8,
    /// LinkSpeedExtEnabled: FDR is 1, EDR is 2, HDR is 4, NDR is 8.
    pub speed_ext: u8,
    /// Whether FDR10 is allowed, which PortInfo has no bit for.
    pub fdr10: bool,
}

impl LinkWidth {
    /// All widths, from narrow to wide.
    pub const ALL: [Self; 5] = [Self::X1, Self::X2, Self::X4, Self::X8, Self::X12];

    /// How many lanes.
    pub const fn lanes(self) -> u8 {
        match self {
            Self::X1 => 1,
            Self::X2 => 2,
            Self::X4 => 4,
            Self::X8 => 8,
            Self::X12 => 12,
        }
    }

    /// PortInfo's bit for this width.
    pub const fn mask(self) -> u8 {
        match self {
            Self::X1 => 1,
            Self::X2 => 16,
            Self::X4 => 2,
            Self::X8 => 4,
            Self::X12 => 8,
        }
    }

    /// The widest in a mask of PortInfo's bits.
    pub fn widest(mask: u8) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|width| width.mask() & mask != 0)
    }
}

impl LinkSpeed {
    /// All speeds, from slow to fast.
    pub const ALL: [Self; 8] =
        [Self::Sdr, Self::Ddr, Self::Qdr, Self::Fdr10, Self::Fdr, Self::Edr, Self::Hdr, Self::Ndr];

    /// PortInfo's LinkSpeed bit; the extended speeds report QDR there, and so does FDR10.
    pub const fn mask(self) -> u8 {
        match self {
            Self::Sdr => 1,
            Self::Ddr => 2,
            _ => 4,
        }
    }

    /// PortInfo's LinkSpeedExt bit; 0 up to FDR10.
    pub const fn mask_ext(self) -> u8 {
        match self {
            Self::Sdr | Self::Ddr | Self::Qdr | Self::Fdr10 => 0,
            Self::Fdr => 1,
            Self::Edr => 2,
            Self::Hdr => 4,
            Self::Ndr => 8,
        }
    }

    /// What one lane carries with its coding, in bit/s.
    pub const fn signalling_bits_per_second(self) -> u64 {
        match self {
            Self::Sdr => 2_500_000_000,
            Self::Ddr => 5_000_000_000,
            Self::Qdr => 10_000_000_000,
            Self::Fdr10 => 10_312_500_000,
            Self::Fdr => 14_062_500_000,
            Self::Edr => 25_781_250_000,
            Self::Hdr => 53_125_000_000,
            Self::Ndr => 106_250_000_000,
        }
    }

    /// What one lane carries after its coding, in bit/s: 8b/10b up to QDR, 64b/66b above.
    pub const fn data_bits_per_second(self) -> u64 {
        let coded = self.signalling_bits_per_second();
        match self {
            Self::Sdr | Self::Ddr | Self::Qdr => coded / 10 * 8,
            // Some do not divide evenly by 66, so they are multiplied first.
            _ => coded * 64 / 66,
        }
    }
}

impl LinkRate {
    /// A rate of this width and speed.
    pub const fn new(width: LinkWidth, speed: LinkSpeed) -> Self {
        Self { width, speed }
    }

    /// What the link carries with its coding, in bit/s, all lanes together.
    pub const fn signalling_bits_per_second(self) -> u64 {
        self.width.lanes() as u64 * self.speed.signalling_bits_per_second()
    }

    /// What the link carries after its coding, in bit/s, all lanes together.
    pub const fn data_bits_per_second(self) -> u64 {
        self.width.lanes() as u64 * self.speed.data_bits_per_second()
    }

    /// The masks of an end that allows this rate and every lower one.
    pub fn enabled(self) -> LinkMasks {
        let widths = LinkWidth::ALL.into_iter().filter(|width| *width <= self.width);
        let speeds = LinkSpeed::ALL.into_iter().filter(|speed| *speed <= self.speed);
        LinkMasks {
            width: widths.fold(0, |mask, width| mask | width.mask()),
            speed: speeds.clone().fold(0, |mask, speed| mask | speed.mask()),
            speed_ext: speeds.fold(0, |mask, speed| mask | speed.mask_ext()),
            fdr10: self.speed == LinkSpeed::Fdr10,
        }
    }
}

impl LinkMasks {
    /// The best rate that these masks allow.
    pub fn best(self) -> Option<LinkRate> {
        let width = LinkWidth::widest(self.width)?;
        let speed = LinkSpeed::ALL.into_iter().rev().find(|speed| match speed {
            LinkSpeed::Fdr10 => self.fdr10,
            LinkSpeed::Sdr | LinkSpeed::Ddr | LinkSpeed::Qdr => self.speed & speed.mask() != 0,
            _ => self.speed_ext & speed.mask_ext() != 0,
        })?;
        Some(LinkRate { width, speed })
    }

    /// What both ends allow.
    pub fn common(self, other: Self) -> Self {
        Self {
            width: self.width & other.width,
            speed: self.speed & other.speed,
            speed_ext: self.speed_ext & other.speed_ext,
            fdr10: self.fdr10 && other.fdr10,
        }
    }
}

impl From<LinkMasks> for LinkParameters {
    /// What a port with these masks says to the other end of its cable.
    fn from(masks: LinkMasks) -> Self {
        let fdr10 = if masks.fdr10 { Self::FDR10 } else { 0 };
        Self { width: masks.width, speed: masks.speed | fdr10, speed_ext: masks.speed_ext }
    }
}

impl Default for LinkMasks {
    fn default() -> Self {
        LinkRate::default().enabled()
    }
}

impl fmt::Display for LinkWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x", self.lanes())
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sdr => "SDR",
            Self::Ddr => "DDR",
            Self::Qdr => "QDR",
            Self::Fdr10 => "FDR10",
            Self::Fdr => "FDR",
            Self::Edr => "EDR",
            Self::Hdr => "HDR",
            Self::Ndr => "NDR",
        })
    }
}

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.width, self.speed)
    }
}

/// A text that is no link rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no link rate; one looks like `4xQDR`, of 1x 2x 4x 8x 12x and SDR DDR QDR FDR10 FDR EDR HDR NDR"
)]
pub struct RateError(
    /// The text.
    pub String,
);

impl FromStr for LinkRate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let parsed = text.split_once('x').and_then(|(width, speed)| {
            let width = LinkWidth::ALL.into_iter().find(|known| known.lanes().to_string() == width)?;
            let speed = LinkSpeed::ALL.into_iter().find(|known| known.to_string() == speed)?;
            Some(Self { width, speed })
        });
        parsed.ok_or_else(|| RateError(text.to_owned()))
    }
}

impl Serialize for LinkRate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LinkRate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
