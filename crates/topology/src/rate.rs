//! Rates of links: width and speed, and the masks by which two ends agree on them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weft_wire::{DataRate, LinkParameters, LinkSpeed, LinkSpeedExt2, PortInfo};

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
    /// LinkSpeedExtEnabled: FDR is 1, EDR 2, HDR 4, NDR 8; and XDR 16, in a field of its own.
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

impl LinkRate {
    /// A rate of this width and speed.
    pub const fn new(width: LinkWidth, speed: LinkSpeed) -> Self {
        Self { width, speed }
    }

    /// What the link carries with its coding, in bit/s, all lanes together.
    pub const fn signalling_bits_per_second(self) -> u64 {
        self.width.lanes() as u64 * self.speed.signalling_bits_per_second()
    }

    /// What the link carries after its coding, all lanes together.
    pub const fn data_rate(self) -> DataRate {
        self.speed.data_rate().times(self.width.lanes() as u32)
    }

    /// The rate at which a port's link runs. PortInfo does not tell FDR10 from QDR, which it is taken for.
    pub fn active(info: &PortInfo) -> Self {
        let width = LinkWidth::widest(info.link_width_active).unwrap_or_default();
        Self::new(width, LinkSpeed::active(info, false).unwrap_or_default())
    }

    /// The best rate that two ports can have between them, where their link runs at a lower one.
    pub fn better(a: &PortInfo, b: &PortInfo) -> Option<Self> {
        let possible = LinkMasks::supported(a).common(LinkMasks::supported(b)).best()?;
        let active = Self::active(a);
        possible.exceeds(active).then_some(possible)
    }

    /// Whether a link of this rate carries more than one of another.
    pub const fn exceeds(self, other: Self) -> bool {
        self.signalling_bits_per_second() > other.signalling_bits_per_second()
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
    /// What a port can do. PortInfo says nothing of FDR10.
    pub fn supported(info: &PortInfo) -> Self {
        let xdr =
            if info.link_speed_ext2.supported & LinkSpeedExt2::XDR != 0 { LinkParameters::XDR } else { 0 };
        Self {
            width: info.link_width_supported,
            speed: info.link_speed_supported & 0x7,
            speed_ext: info.link_speed_ext_supported & 0xf | xdr,
            fdr10: false,
        }
    }

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

impl From<LinkParameters> for LinkMasks {
    /// What a port with these masks said to the other end.
    fn from(said: LinkParameters) -> Self {
        let fdr10 = said.speed & LinkParameters::FDR10 != 0;
        Self {
            width: said.width,
            speed: said.speed & !LinkParameters::FDR10,
            speed_ext: said.speed_ext,
            fdr10,
        }
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

weft_wire::displayed!(LinkRate { width, speed } => "{width}{speed}");

/// A text that is no link rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no link rate; one looks like `4xQDR`, of 1x 2x 4x 8x 12x and SDR DDR QDR FDR10 FDR EDR HDR NDR XDR"
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

weft_wire::serde_as_text!(LinkRate);
