//! UDP ports for a laboratory's agents: a block of the range below Linux's ephemeral one.

use std::net::{Ipv4Addr, UdpSocket};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::failure::Failure;
use crate::lab::{Base, LabRecord};

/// Ports that weft uses by itself. Linux hands out ephemeral ports from 32768 up.
const RANGE: std::ops::RangeInclusive<u32> = 20_000..=32_767;

/// Ports are claimed this many at a time.
const UNIT: u32 = 32;

/// A block of ports, claimed until this is dropped: between our looking and the agents' binding, no other
/// launcher of this machine takes one of them.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The first port.
    pub(crate) first: u16,
    _units: Vec<UnixDatagram>,
}

/// A block of `count` ports that no other laboratory has and nobody else uses. With `pinned` exactly that one.
pub(crate) fn claim(base: &Base, count: usize, pinned: Option<u16>) -> anyhow::Result<Claim> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let others = blocks_of_others(base)?;
    match pinned {
        Some(first) => claim_pinned(&others, first, count),
        None => claim_free(&others, count),
    }
}

fn claim_pinned(others: &[(Block, String)], first: u16, count: u32) -> anyhow::Result<Claim> {
    let block = Block::new(u32::from(first), count);
    if block.end > 65_536 {
        let message = format!("{count} agents from UDP port {first} up need ports beyond 65535");
        return Err(Failure::bad_input(message)
            .hint("give a lower --udp-port, or run several devices per agent with --pack")
            .into());
    }
    if let Some((_, name)) = others.iter().find(|(other, _)| other.overlaps(&block)) {
        let message = format!("UDP ports {first} to {} belong to the laboratory `{name}`", block.end - 1);
        return Err(Failure::new(message)
            .hint(format!("leave --udp-port out, or `weft down --lab {name}` first"))
            .into());
    }
    block.claim(block.first..block.end).map_err(|busy| {
        Failure::new(format!("UDP port {busy} is in use by another program"))
            .hint("leave --udp-port out to use a block that is free")
            .into()
    })
}

fn claim_free(others: &[(Block, String)], count: u32) -> anyhow::Result<Claim> {
    let (start, last) = (*RANGE.start(), *RANGE.end());
    let mut first = start;
    while first.saturating_add(count) <= last + 1 {
        let block = Block::new(first, count);
        match others.iter().find(|(other, _)| other.overlaps(&block)) {
            Some((other, _)) => first = other.end,
            None => match block.claim(block.units().start * UNIT..block.units().end * UNIT) {
                Ok(claim) => return Ok(claim),
                Err(busy) => first = busy + 1,
            },
        }
    }
    Err(Failure::new(format!("no {count} UDP ports in a row are free between {start} and {last}"))
        .hint("take another laboratory down, or run several devices per agent with --pack")
        .into())
}

struct Block {
    first: u32,
    end: u32,
}

impl Block {
    fn new(first: u32, count: u32) -> Self {
        Self { first, end: first.saturating_add(count) }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.first < other.end && other.first < self.end
    }

    /// The units that the block has a part of.
    fn units(&self) -> Range<u32> {
        self.first / UNIT..self.end.div_ceil(UNIT)
    }

    /// Claims the block if each port can be bound and no agent keeps one of the ports `unkept`; otherwise names a
    /// port that cannot be had.
    fn claim(&self, unkept: Range<u32>) -> Result<Claim, u32> {
        let mut units = Vec::new();
        for unit in self.units() {
            let claimed = bind_abstract(&format!("weft-udp-ports-{}", unit * UNIT));
            units.push(claimed.ok_or((unit * UNIT + UNIT - 1).max(self.first))?);
        }
        if let Some(kept) = unkept.rev().find(|port| keep_port(*port).is_none()) {
            return Err(kept.max(self.first));
        }
        for port in self.first..self.end {
            let number = u16::try_from(port).map_err(|_| port)?;
            UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).map_err(|_| port)?;
        }
        let first = u16::try_from(self.first).map_err(|_| self.first)?;
        Ok(Claim { first, _units: units })
    }
}

/// Keeps an agent's port, and with it its neighbours' ports, from being chosen for another laboratory, also while
/// a neighbour is dead. `None` when somebody keeps it already.
pub(crate) fn keep_port(port: u32) -> Option<UnixDatagram> {
    bind_abstract(&format!("weft-udp-port-{port}"))
}

/// An abstract name is known to the whole machine, needs no file, and goes with its process.
fn bind_abstract(name: &str) -> Option<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name).ok()?).ok()
}

fn blocks_of_others(base: &Base) -> anyhow::Result<Vec<(Block, String)>> {
    let mut blocks = Vec::new();
    for lab in base.labs()?.into_iter().chain(base.unfinished()?) {
        // One that is just being made or removed may have no record; then its ports are found busy, if at all.
        if let Ok(record) = LabRecord::load(&lab) {
            let (first, count) = record.udp_ports;
            blocks.push((Block::new(first.into(), count.into()), lab.name().to_owned()));
        }
    }
    Ok(blocks)
}
