//! Blocks of ports on addresses of 127.0.0.0/8, in the range below Linux's ephemeral one.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Ports that weft uses by itself. Linux hands out ephemeral ports from 32768 up.
pub(crate) const FIRST: u16 = 20_000;
pub(crate) const LAST: u16 = 32_767;
pub(crate) const PER_ADDRESS: u32 = LAST as u32 - FIRST as u32 + 1;

/// Ports are claimed this many at a time.
pub(crate) const UNIT: u16 = 32;

/// A row of ports: `count` from the first one up, and where the address has no more, those of the next address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The first.
    pub first: SocketAddrV4,
    /// How many.
    pub count: u32,
}

/// The ports of a block on one of its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) ip: Ipv4Addr,
    pub(crate) ports: Range<u32>,
}

impl Run {
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.ip == other.ip && self.ports.start < other.ports.end && other.ports.start < self.ports.end
    }

    /// The units that it has a part of.
    pub(crate) fn units(&self) -> Range<u32> {
        self.ports.start / u32::from(UNIT)..self.ports.end.div_ceil(UNIT.into())
    }
}

impl Block {
    /// A member of the block; none beyond its end.
    pub fn place(&self, at: u32) -> Option<SocketAddr> {
        if at >= self.count {
            return None;
        }
        let mut passed = 0;
        let run = self.runs().find(|run| {
            passed += run.ports.len() as u32;
            at < passed
        })?;
        let port = run.ports.end - (passed - at);
        Some(SocketAddr::from((run.ip, u16::try_from(port).ok()?)))
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = Run> {
        // A block that was pinned above the range stays on its address.
        let last = if self.first.port() <= LAST { LAST } else { u16::MAX };
        let (mut ip, mut port, mut left) =
            (u32::from(*self.first.ip()), u32::from(self.first.port()), self.count);
        std::iter::from_fn(move || {
            let taken = left.min(u32::from(last) + 1 - port);
            let run = Run { ip: ip.into(), ports: port..port + taken };
            (ip, port, left) = (ip.checked_add(1)?, FIRST.into(), left - taken);
            (taken > 0).then_some(run)
        })
    }

    /// The last of them; the first of an empty block.
    pub(crate) fn last(&self) -> SocketAddrV4 {
        self.runs().last().map_or(self.first, |run| at(run.ip, run.ports.end - 1))
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.runs().any(|run| other.runs().any(|other| run.overlaps(&other)))
    }
}

/// A port of an address; every port of a block is one.
pub(crate) fn at(ip: Ipv4Addr, port: u32) -> SocketAddrV4 {
    SocketAddrV4::new(ip, u16::try_from(port).unwrap_or(u16::MAX))
}
