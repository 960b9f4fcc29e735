//! Newtypes for every identifier, so that a LID is never taken for a port number.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::value::{Bits, Value};

macro_rules! ids {
    ($( $(#[$meta:meta])* $name:ident($int:ty), $bits:literal, $format:literal; )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
        #[serde(transparent)]
        pub struct $name(pub $int);

        impl Bits for $name {
            const BITS: usize = $bits;
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                Self(bits as $int)
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                u64::from(self.0)
            }
        }

        impl From<$int> for $name {
            fn from(value: $int) -> Self {
                Self(value)
            }
        }

        crate::displayed!($name(value) => $format, value);
    )+};
}

ids! {
    /// A local identifier: the address of a port within its subnet (IBA 4.1.3).
    Lid(u16), 16, "{}";
    /// A 64-bit EUI-64 that names a node, a port or a system (IBA 4.1).
    Guid(u64), 64, "0x{:016x}";
    /// A port of a node; 0 is a switch's management port.
    PortNum(u8), 8, "{}";
    /// A vendor's identifier as the IEEE gives it out, 24 bits; 0 stands for none.
    Oui(u32), 24, "0x{:06x}";
    /// A queue pair number, 24 bits; 0 carries SMPs and 1 carries GMPs.
    QpNum(u32), 24, "{}";
    /// A partition key; its top bit says full membership (IBA 10.9).
    PKey(u16), 16, "0x{:04x}";
    /// A queue key, checked by the receiver of a datagram.
    QKey(u32), 32, "0x{:08x}";
    /// A service level, 0 to 15.
    ServiceLevel(u8), 4, "{}";
    /// A virtual lane: 0 to 14 carry data, 15 carries subnet management.
    VirtualLane(u8), 4, "{}";
    /// A MAD's transaction id.
    TransactionId(u64), 64, "0x{:016x}";
    /// A management key (IBA 14.2.4).
    MKey(u64), 64, "0x{:016x}";
    /// The key of subnet managers that trust each other (IBA 14.2.5.13).
    SmKey(u64), 64, "0x{:016x}";
    /// The upper half of a GID: the subnet's prefix.
    GidPrefix(u64), 64, "0x{:016x}";
    /// A trap number (IBA 14.3.1 and 13.4.9).
    TrapNumber(u16), 16, "{}";
}

impl Lid {
    /// The destination that stands for "whoever is at the end of this directed route" (0xFFFF).
    pub const PERMISSIVE: Self = Self(0xffff);
    /// The highest unicast LID (0xBFFF).
    pub const UNICAST_MAX: Self = Self(0xbfff);

    /// Whether this names one port: 0x0001 to 0xBFFF.
    pub const fn is_unicast(self) -> bool {
        self.0 >= 1 && self.0 <= Self::UNICAST_MAX.0
    }

    /// The LFT block of 64 entries that holds this LID.
    pub const fn block(self) -> u16 {
        self.0 / 64
    }

    /// The place of this LID within its LFT block.
    pub const fn offset(self) -> usize {
        (self.0 % 64) as usize
    }
}

impl PortNum {
    /// The LFT entry that means "no route" (255).
    pub const NONE: Self = Self(255);
    /// A switch's management port.
    pub const ZERO: Self = Self(0);
}

impl QpNum {
    /// Queue pair 0, subnet management.
    pub const SMI: Self = Self(0);
    /// Queue pair 1, general services.
    pub const GSI: Self = Self(1);
}

impl PKey {
    /// The default partition, full member.
    pub const DEFAULT_FULL: Self = Self(0xffff);

    /// The bit that full members have (IBA 10.9.1.1).
    const FULL: u16 = 0x8000;

    /// The key of a member of a partition, which is named by the lower 15 bits.
    pub const fn new(partition: u16, is_full: bool) -> Self {
        Self(partition & !Self::FULL | if is_full { Self::FULL } else { 0 })
    }

    /// The lower 15 bits, which name the partition.
    pub const fn partition(self) -> u16 {
        self.0 & !Self::FULL
    }

    /// Whether it is a full member's.
    pub const fn is_full(self) -> bool {
        self.0 & Self::FULL != 0
    }

    /// Whether a member with this key is what another key says, or more: a full member speaks for a limited one.
    pub const fn speaks_for(self, other: Self) -> bool {
        self.partition() == other.partition() && (self.is_full() || !other.is_full())
    }
}

impl QKey {
    /// The well-known key of queue pair 1.
    pub const GSI: Self = Self(0x8001_0000);
}

impl VirtualLane {
    /// The management lane.
    pub const MANAGEMENT: Self = Self(15);
}

impl GidPrefix {
    /// The prefix of a subnet that no one has renamed: fe80::/64.
    pub const DEFAULT: Self = Self(0xfe80_0000_0000_0000);
}

impl FromStr for Guid {
    type Err = ParseIntError;

    /// Reads hexadecimal digits with or without `0x`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text.trim_start_matches("0x"), 16).map(Self)
    }
}

/// A 128-bit global identifier: prefix and port GUID (IBA 4.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gid {
    /// The subnet's prefix.
    pub prefix: GidPrefix,
    /// The port's GUID.
    pub guid: Guid,
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = (u128::from(self.prefix.0) << 64) | u128::from(self.guid.0);
        write!(f, "{}", core::net::Ipv6Addr::from(bits))
    }
}

impl Value for Gid {
    const BITS: usize = 64;
    const COUNT: usize = 2;
    #[inline(always)]
    fn read(bytes: &[u8], first: usize, width: usize) -> Self {
        let [prefix, guid] = <[u64; 2]>::read(bytes, first, width);
        Self { prefix: GidPrefix(prefix), guid: Guid(guid) }
    }
    #[inline(always)]
    fn write(&self, bytes: &mut [u8], first: usize, width: usize) {
        [self.prefix.0, self.guid.0].write(bytes, first, width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_member_speaks_for_a_limited_one() {
        let [full, limited, other] = [PKey::new(1, true), PKey::new(0x8001, false), PKey::new(2, true)];
        assert_eq!((full, limited, PKey::new(0x7fff, true)), (PKey(0x8001), PKey(1), PKey::DEFAULT_FULL));
        assert_eq!((full.partition(), full.is_full(), limited.is_full()), (1, true, false));
        assert!(full.speaks_for(limited) && full.speaks_for(full) && limited.speaks_for(limited));
        assert!(!limited.speaks_for(full) && !other.speaks_for(limited));
    }
}
