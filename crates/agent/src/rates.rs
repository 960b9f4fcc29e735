//! Link rates in the words of the field: `4xHDR`.

use weft_wire::{LinkParameters, LinkSpeed};

/// Lanes and PortInfo's bits for them, from wide to narrow.
const WIDTHS: [(u8, u8); 5] = [(12, 8), (8, 4), (4, 2), (2, 16), (1, 1)];

/// The best of some widths and speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    lanes: u8,
    speed: LinkSpeed,
}

impl Rate {
    /// Of these masks; none where they allow nothing.
    pub(crate) fn best(link: LinkParameters) -> Option<Self> {
        let (lanes, _) = WIDTHS.into_iter().find(|(_, bit)| link.width & bit != 0)?;
        let is_there = |speed: &LinkSpeed| match speed {
            LinkSpeed::Fdr10 => link.speed & LinkParameters::FDR10 != 0,
            LinkSpeed::Sdr | LinkSpeed::Ddr | LinkSpeed::Qdr => link.speed & 0x7 & speed.mask() != 0,
            _ => link.speed_ext & speed.mask_ext() != 0,
        };
        let speed = LinkSpeed::ALL.into_iter().rev().find(is_there)?;
        Some(Self { lanes, speed })
    }

    /// Whether a link of this rate carries more than one of another.
    pub(crate) fn exceeds(self, other: Self) -> bool {
        let bits = |rate: Self| u64::from(rate.lanes) * rate.speed.signalling_bits_per_second();
        bits(self) > bits(other)
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.lanes, self.speed)
    }
}

/// The same as text; empty where there is none.
pub(crate) fn shown(link: LinkParameters) -> String {
    Rate::best(link).map_or_else(String::new, |rate| rate.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_the_masks_is_named_as_the_field_does() {
        let rate = |width, speed, speed_ext| shown(LinkParameters { width, speed, speed_ext });
        for (width, speed, speed_ext, wanted) in [
            (2, 4, 4, "4xHDR"),
            (1 | 2, 7, 7, "4xHDR"),
            (16, 4, LinkParameters::XDR | 8, "2xXDR"),
            (8, 4 | LinkParameters::FDR10, 0, "12xFDR10"),
            (1, 1, 0, "1xSDR"),
            (0, 4, 0, ""),
            (2, 0, 0, ""),
        ] {
            assert_eq!(rate(width, speed, speed_ext), wanted);
        }
        let best = |width, speed| Rate::best(LinkParameters { width, speed, speed_ext: 0 }).unwrap();
        assert!(best(2, 4).exceeds(best(1, 4)) && !best(2, 1).exceeds(best(1, 4)));
    }
}
