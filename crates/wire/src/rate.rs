//! Rates of lanes and links: each number of a speed stands here and nowhere else.

use serde::{Deserialize, Serialize};

use crate::{LinkSpeedExt2, PortInfo};

crate::worded! {
    /// What a lane signals. Ordered from slow to fast.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum LinkSpeed {
        /// 2.5 Gb/s.
        Sdr => ("SDR"),
        /// 5 Gb/s.
        Ddr => ("DDR"),
        /// 10 Gb/s.
        #[default]
        Qdr => ("QDR"),
        /// 10.3125 Gb/s with the lean coding of FDR, from before FDR was standard.
        Fdr10 => ("FDR10"),
        /// 14.0625 Gb/s.
        Fdr => ("FDR"),
        /// 25.78125 Gb/s.
        Edr => ("EDR"),
        /// 53.125 Gb/s.
        Hdr => ("HDR"),
        /// 106.25 Gb/s.
        Ndr => ("NDR"),
        /// 212.5 Gb/s.
        Xdr => ("XDR"),
    }
}

impl LinkSpeed {
    /// All speeds, from slow to fast.
    pub const ALL: [Self; 9] =
        [Self::Sdr, Self::Ddr, Self::Qdr, Self::Fdr10, Self::Fdr, Self::Edr, Self::Hdr, Self::Ndr, Self::Xdr];

    /// PortInfo's LinkSpeed bit; the extended speeds report QDR there, and so does FDR10.
    pub const fn mask(self) -> u8 {
        match self {
            Self::Sdr => 1,
            Self::Ddr => 2,
            _ => 4,
        }
    }

    /// The bit of [`LinkParameters::speed_ext`](crate::LinkParameters): LinkSpeedExt's bit up to NDR, and for XDR the one
    /// that stands for LinkSpeedExt2. 0 up to FDR10.
    pub const fn mask_ext(self) -> u8 {
        match self {
            Self::Sdr | Self::Ddr | Self::Qdr | Self::Fdr10 => 0,
            Self::Fdr => 1,
            Self::Edr => 2,
            Self::Hdr => 4,
            Self::Ndr => 8,
            Self::Xdr => crate::LinkParameters::XDR,
        }
    }

    /// The speed that a port runs at; `fdr10` is what MlnxExtPortInfo says. `None` while PortInfo names none.
    pub fn active(info: &PortInfo, fdr10: bool) -> Option<Self> {
        Some(match (info.link_speed_ext2.active, info.link_speed_ext_active, info.link_speed_active) {
            (LinkSpeedExt2::XDR, ..) => Self::Xdr,
            (_, 1, _) => Self::Fdr,
            (_, 2, _) => Self::Edr,
            (_, 4, _) => Self::Hdr,
            (_, 8, _) => Self::Ndr,
            _ if fdr10 => Self::Fdr10,
            (.., 1) => Self::Sdr,
            (.., 2) => Self::Ddr,
            (.., 4) => Self::Qdr,
            _ => return None,
        })
    }

    /// What a lane is called in path records, in Mb/s: 14 Gb/s for FDR, and 10 for FDR10 (IBA 14.2.5.6).
    pub const fn nominal_mbps(self) -> u32 {
        match self {
            Self::Sdr => 2_500,
            Self::Ddr => 5_000,
            Self::Qdr | Self::Fdr10 => 10_000,
            Self::Fdr => 14_000,
            Self::Edr => 25_000,
            Self::Hdr => 50_000,
            Self::Ndr => 100_000,
            Self::Xdr => 200_000,
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
            Self::Xdr => 212_500_000_000,
        }
    }

    /// What one lane carries after its coding. Up to QDR that is 8b/10b, up to EDR 64b/66b; from HDR on 256b/257b with
    /// RS(544,514), which leave 512 of 544.
    pub const fn data_rate(self) -> DataRate {
        let (kept, of) = match self {
            Self::Sdr | Self::Ddr | Self::Qdr => (8, 10),
            Self::Fdr10 | Self::Fdr | Self::Edr => (64, 66),
            Self::Hdr | Self::Ndr | Self::Xdr => (512, 544),
        };
        // Every speed comes out as a whole number of elevenths of a megabit per second; a test holds this.
        DataRate((self.signalling_bits_per_second() * kept * 11 / (of * 1_000_000)) as u32)
    }
}

/// How fast data moves, exactly: FDR's 14.0625 Gb/s x 64/66 is 150 000/11 Mb/s, so the unit is an eleventh of a megabit
/// per second. 0 stands for data that takes no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DataRate(u32);

impl DataRate {
    /// Data takes no time.
    pub const INSTANT: Self = Self(0);

    /// Megabits per second; the fastest rate there is, 390 Tb/s, where that is less.
    pub const fn from_mbps(mbps: u32) -> Self {
        Self(mbps.saturating_mul(11))
    }

    /// What the port's link carries: its lanes times its speed (IBA 14.2.5.6).
    pub fn of_link(info: &PortInfo, fdr10: bool) -> Self {
        LinkSpeed::active(info, fdr10).unwrap_or(LinkSpeed::Sdr).data_rate().times(info.lanes())
    }

    /// A part of this rate; 0 % is [`Self::INSTANT`].
    #[must_use]
    pub const fn percent(self, percent: u8) -> Self {
        Self((self.0 as u64 * percent as u64 / 100) as u32)
    }

    /// A share of this rate in parts per million: the least rate there is, and no instant one, where that is less.
    #[must_use]
    pub const fn ppm(self, ppm: u32) -> Self {
        let share = (self.0 as u64 * ppm as u64 / 1_000_000) as u32;
        if share == 0 && self.0 > 0 { Self(1) } else { Self(share) }
    }

    /// `lanes` lanes of this rate.
    pub const fn times(self, lanes: u32) -> Self {
        Self(self.0.saturating_mul(lanes))
    }

    /// Elevenths of a megabit per second.
    pub const fn elevenths(self) -> u32 {
        self.0
    }

    /// Bits per second, the rest of less than one left out.
    pub const fn bits_per_second(self) -> u64 {
        self.0 as u64 * 1_000_000 / 11
    }

    /// Whether data takes no time.
    pub const fn is_instant(self) -> bool {
        self.0 == 0
    }

    /// The rate of two in a row: the slower of them, and the other one where one is instant.
    pub fn slower(self, other: Self) -> Self {
        if self.is_instant() || other.is_instant() { self.max(other) } else { self.min(other) }
    }

    /// How long `bytes` bytes take: nanoseconds, and the rest in parts of [`Self::elevenths`]; a
    /// nanosecond of fabric time is `dilation` of the answer's. `None` where they take no time.
    #[inline]
    pub fn nanos(self, bytes: usize, dilation: u32) -> Option<(u64, u32)> {
        let whole = bytes as u64 * (8_000 * 11) * u64::from(dilation);
        let rate = u64::from(self.0);
        Some((whole.checked_div(rate)?, (whole % rate) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_speed_is_exact() {
        let elevenths = LinkSpeed::ALL.map(|speed| speed.data_rate().elevenths());
        let gigabits = [2, 4, 8, 10, 0, 25, 50, 100, 200];
        for (speed, (elevenths, gigabits)) in
            LinkSpeed::ALL.into_iter().zip(elevenths.into_iter().zip(gigabits))
        {
            let expected = if speed == LinkSpeed::Fdr { 150_000 } else { gigabits * 11_000 };
            assert_eq!(elevenths, expected, "{speed:?}");
        }
        assert_eq!(LinkSpeed::Fdr.data_rate().bits_per_second(), 13_636_363_636);
        assert_eq!(LinkSpeed::Fdr.data_rate().times(4).bits_per_second(), 54_545_454_545);
        assert_eq!(LinkSpeed::Xdr.data_rate().times(12).bits_per_second(), 2_400_000_000_000);
    }

    #[test]
    fn the_speed_in_use_is_the_newest_named() {
        let of = |speed, ext, ext2, fdr10| {
            let info = PortInfo {
                link_speed_active: speed,
                link_speed_ext_active: ext,
                link_speed_ext2: LinkSpeedExt2 { active: ext2, ..LinkSpeedExt2::default() },
                ..PortInfo::default()
            };
            LinkSpeed::active(&info, fdr10)
        };
        assert_eq!(of(0, 0, 0, false), None);
        assert_eq!(
            [1, 2, 4].map(|speed| of(speed, 0, 0, false).unwrap()),
            [LinkSpeed::Sdr, LinkSpeed::Ddr, LinkSpeed::Qdr]
        );
        assert_eq!(of(4, 0, 0, true), Some(LinkSpeed::Fdr10));
        assert_eq!(of(4, 1, 0, true), Some(LinkSpeed::Fdr));
        assert_eq!(of(4, 8, 0, false), Some(LinkSpeed::Ndr));
        assert_eq!(of(4, 8, 1, false), Some(LinkSpeed::Xdr));
    }

    #[test]
    fn the_slower_of_two_and_no_time_at_all() {
        let [none, slow, fast] = [0, 12_900, 16_000].map(DataRate::from_mbps);
        assert_eq!(
            [slow.slower(fast), fast.slower(slow), none.slower(fast), slow.slower(none)],
            [slow, slow, fast, slow]
        );
        assert_eq!(none.nanos(2_074, 1_000), None);
        // 2074 bytes at 4x FDR: 16 592 bits at 600 000/11 Mb/s are 304.186 666... ns.
        assert_eq!(LinkSpeed::Fdr.data_rate().times(4).nanos(2_074, 1), Some((304, 112_000)));
    }
}
