//! Ways from port to port.

use super::Parts::Split;
use super::record;
use crate::{DataRate, Gid, Lid, LinkSpeed, PKey, PortInfo, ServiceLevel};

/// Lists the rates from slow to fast, each with its code and its Mb/s. Codes are in the order in which they were invented.
macro_rules! rates {
    ($( $(#[$doc:meta])* $rate:ident = $code:literal, $megabits:literal; )+) => {
        codes! {
            /// The rate of a path (IBA 15.2.5.16); see [`PathRate::megabits`] for their order.
            PathRate(u8), 6 { $( $(#[$doc])* $rate = $code, )+ }
        }

        impl PathRate {
            /// All rates, from slow to fast.
            pub const ALL: [(Self, u32); 24] = [$( (Self::$rate, $megabits) ),+];
        }
    };
}

rates! {
    /// 2.5 Gb/s.
    Gb2_5 = 2, 2_500;
    /// 5 Gb/s.
    Gb5 = 5, 5_000;
    /// 10 Gb/s.
    Gb10 = 3, 10_000;
    /// 14 Gb/s.
    Gb14 = 11, 14_000;
    /// 20 Gb/s.
    Gb20 = 6, 20_000;
    /// 25 Gb/s.
    Gb25 = 15, 25_000;
    /// 28 Gb/s.
    Gb28 = 19, 28_000;
    /// 30 Gb/s.
    Gb30 = 4, 30_000;
    /// 40 Gb/s.
    Gb40 = 7, 40_000;
    /// 50 Gb/s.
    Gb50 = 20, 50_000;
    /// 56 Gb/s.
    Gb56 = 12, 56_000;
    /// 60 Gb/s.
    Gb60 = 8, 60_000;
    /// 80 Gb/s.
    Gb80 = 9, 80_000;
    /// 100 Gb/s.
    Gb100 = 16, 100_000;
    /// 112 Gb/s.
    Gb112 = 13, 112_000;
    /// 120 Gb/s.
    Gb120 = 10, 120_000;
    /// 168 Gb/s.
    Gb168 = 14, 168_000;
    /// 200 Gb/s.
    Gb200 = 17, 200_000;
    /// 300 Gb/s.
    Gb300 = 18, 300_000;
    /// 400 Gb/s.
    Gb400 = 21, 400_000;
    /// 600 Gb/s.
    Gb600 = 22, 600_000;
    /// 800 Gb/s.
    Gb800 = 23, 800_000;
    /// 1200 Gb/s.
    Gb1200 = 24, 1_200_000;
    /// 1600 Gb/s.
    Gb1600 = 25, 1_600_000;
}

impl PathRate {
    /// What the code stands for, in Mb/s; `None` for a code without a name.
    pub fn megabits(self) -> Option<u32> {
        Self::ALL.iter().find(|(rate, _)| *rate == self).map(|(_, megabits)| *megabits)
    }

    /// The code for this many Mb/s, if there is one.
    pub fn from_megabits(megabits: u32) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == megabits).map(|(rate, _)| *rate)
    }

    /// What the code stands for in data, after the encoding of links that have this rate (IBA 14.2.5.6). FDR10 has the codes
    /// of QDR, and would carry more.
    pub fn data_rate(self) -> Option<DataRate> {
        let nominal = self.megabits()?;
        let (lanes_of, named) = match self {
            Self::Gb14 | Self::Gb28 | Self::Gb56 | Self::Gb112 | Self::Gb168 => (LinkSpeed::Fdr, 14_000),
            Self::Gb2_5 | Self::Gb5 | Self::Gb10 | Self::Gb20 | Self::Gb30 => (LinkSpeed::Sdr, 2_500),
            Self::Gb40 | Self::Gb60 | Self::Gb80 | Self::Gb120 => (LinkSpeed::Sdr, 2_500),
            // EDR and everything after it carries in data what it is called.
            _ => return Some(DataRate::from_mbps(nominal)),
        };
        Some(lanes_of.data_rate().times(nominal / named))
    }

    /// The rate of a port's link: lanes times the nominal speed. One that no path record can name has code 0.
    pub fn of_link(info: &PortInfo) -> Self {
        let lane = LinkSpeed::active(info, false).unwrap_or(LinkSpeed::Sdr).nominal_mbps();
        Self::from_megabits(info.lanes() * lane).unwrap_or_default()
    }

    /// The fastest rate that is slower than this many Mb/s.
    pub fn below(megabits: u32) -> Option<Self> {
        Self::ALL.iter().rev().find(|(_, known)| *known < megabits).map(|(rate, _)| *rate)
    }
}

codes! {
    /// How a path's MTU, rate or lifetime is to compare with the value beside it (IBA 15.2.5.16).
    Selector(u8), 2 {
        /// Greater than it.
        GreaterThan = 0,
        /// Less than it.
        LessThan = 1,
        /// It, exactly.
        Exactly = 2,
        /// The best there is; for lifetimes the smallest.
        Best = 3,
    }
}

layout! {
    /// A way from one port to another (IBA 15.2.5.16).
    pub struct PathRecord: 64 {
        /// The service that it is for.
        0, 64, service_id: u64;
        /// To whom.
        64, 128, dgid: Gid;
        /// From whom.
        192, 128, sgid: Gid;
        /// To which LID.
        320, 16, dlid: Lid;
        /// From which LID.
        336, 16, slid: Lid;
        /// Raw packets, as opposed to IBA transport.
        352, 1, raw_traffic: bool;
        /// Reserved.
        353, 3, reserved_353: u8;
        /// The flow label behind a GRH.
        356, 20, flow_label: u32;
        /// The hop limit behind a GRH; 0 is within the subnet.
        376, 8, hop_limit: u8;
        /// The traffic class behind a GRH.
        384, 8, tclass: u8;
        /// Whether what comes is answered with source and destination exchanged, on the same service level.
        392, 1, reversible: bool;
        /// In a query: how many ways at most.
        393, 7, numb_path: u8;
        /// The partition.
        400, 16, p_key: PKey;
        /// The quality of service.
        416, 12, qos_class: u16;
        /// The service level.
        428, 4, sl: ServiceLevel;
        /// In a query: how the MTU is to compare.
        432, 2, mtu_selector: Selector;
        /// The MTU, in the code of [`Mtu`](crate::Mtu).
        434, 6, mtu: u8;
        /// In a query: how the rate is to compare.
        440, 2, rate_selector: Selector;
        /// The rate.
        442, 6, rate: PathRate;
        /// In a query: how the lifetime is to compare.
        448, 2, packet_life_time_selector: Selector;
        /// How long a packet may take: 4.096 µs times 2 to this power.
        450, 6, packet_life_time: u8;
        /// 0 is the best of several.
        456, 8, preference: u8;
        /// Reserved.
        464, 48, reserved_464: u64;
    }
}
record!(PathRecord: PATH_RECORD, 24, service_id: Split(2));
