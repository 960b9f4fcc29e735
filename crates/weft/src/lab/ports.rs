//! Ports for a laboratory's links (UDP) and its metrics (TCP): blocks of the range below Linux's ephemeral one.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use anyhow::Context as _;
use rustix::io::Errno;

use crate::failure::Failure;
use crate::lab::{Base, LabRecord};

/// Ports that weft uses by itself. Linux hands out ephemeral ports from 32768 up.
const RANGE: std::ops::RangeInclusive<u32> = 20_000..=32_767;

/// What fails where the system, and not a port, is in the way.
const LOOKING: &str = "cannot look for free ports";

/// Ports are claimed this many at a time.
const UNIT: u32 = 32;

/// Whose ports they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Links'.
    Udp,
    /// Metrics'.
    Tcp,
}

impl Transport {
    /// The option that pins the first port.
    fn option(self) -> &'static str {
        match self {
            Self::Udp => "--udp-port",
            Self::Tcp => "--metrics",
        }
    }

    /// As it is written in the names that claim ports.
    fn lower(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }

    fn can_be_bound(self, port: u16) -> io::Result<bool> {
        let at = (Ipv4Addr::LOCALHOST, port);
        let bound = match self {
            Self::Udp => unless_busy(UdpSocket::bind(at))?.is_some(),
            Self::Tcp => unless_busy(TcpListener::bind(at))?.is_some(),
        };
        Ok(bound)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        })
    }
}

/// A block of ports, claimed until this is dropped: between our looking and the agents' binding, no other
/// launcher of this machine takes one of them.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The first port.
    pub(crate) first: u16,
    _units: Vec<UnixDatagram>,
}

/// A block of `count` ports that no other laboratory has and nobody else uses. With `pinned` exactly that one.
pub(crate) fn claim(
    base: &Base,
    transport: Transport,
    count: u16,
    pinned: Option<u16>,
) -> anyhow::Result<Claim> {
    let others = blocks_of_others(base, transport)?;
    match pinned {
        Some(first) => claim_pinned(&others, transport, first, count.into()),
        None => claim_free(&others, transport, count.into()),
    }
}

fn claim_pinned(
    others: &[(Block, String)],
    transport: Transport,
    first: u16,
    count: u32,
) -> anyhow::Result<Claim> {
    let block = Block::new(u32::from(first), count);
    let option = transport.option();
    if block.end > 65_536 {
        let message = format!("{count} {transport} ports from {first} up go beyond 65535");
        return Err(Failure::bad_input(message)
            .hint(format!("give a lower {option}, or run several devices per agent with --pack"))
            .into());
    }
    if let Some((_, name)) = others.iter().find(|(other, _)| other.overlaps(&block)) {
        let message =
            format!("{transport} ports {first} to {} belong to the laboratory `{name}`", block.end - 1);
        return Err(Failure::new(message)
            .hint(format!("leave the port of {option} out, or `weft down --lab {name}` first"))
            .into());
    }
    let claimed = block.claim(transport, block.first..block.end).context(LOOKING)?;
    claimed.map_err(|busy| {
        Failure::new(format!("{transport} port {busy} is in use by another program"))
            .hint(format!("leave the port of {option} out to use a block that is free"))
            .into()
    })
}

fn claim_free(others: &[(Block, String)], transport: Transport, count: u32) -> anyhow::Result<Claim> {
    let (start, last) = (*RANGE.start(), *RANGE.end());
    let mut first = start;
    while first.saturating_add(count) <= last + 1 {
        let block = Block::new(first, count);
        match others.iter().find(|(other, _)| other.overlaps(&block)) {
            Some((other, _)) => first = other.end,
            None => {
                let units = block.units().start * UNIT..block.units().end * UNIT;
                match block.claim(transport, units).context(LOOKING)? {
                    Ok(claim) => return Ok(claim),
                    Err(busy) => first = busy + 1,
                }
            }
        }
    }
    Err(Failure::new(format!("no {count} {transport} ports in a row are free between {start} and {last}"))
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
    /// port that cannot be had. An error is one of the system's and says nothing about ports.
    fn claim(&self, transport: Transport, unkept: Range<u32>) -> io::Result<Result<Claim, u32>> {
        let mut claimed = Vec::new();
        for unit in self.units() {
            match bind_abstract(&format!("weft-{}-ports-{}", transport.lower(), unit * UNIT))? {
                Some(unit) => claimed.push(unit),
                None => return Ok(Err((unit * UNIT + UNIT - 1).max(self.first))),
            }
        }
        for port in unkept.rev() {
            if keep_port(transport, port)?.is_none() {
                return Ok(Err(port.max(self.first)));
            }
        }
        for port in self.first..self.end {
            let Ok(number) = u16::try_from(port) else { return Ok(Err(port)) };
            if !transport.can_be_bound(number)? {
                return Ok(Err(port));
            }
        }
        let first = u16::try_from(self.first).map_err(|_| self.first);
        Ok(first.map(|first| Claim { first, _units: claimed }))
    }
}

/// Keeps an agent's port, and with it its neighbours' ports, from being chosen for another laboratory, also while
/// a neighbour is dead. `None` when somebody keeps it already.
pub(crate) fn keep_port(transport: Transport, port: u32) -> io::Result<Option<UnixDatagram>> {
    bind_abstract(&format!("weft-{}-port-{port}", transport.lower()))
}

/// An abstract name is known to the whole machine, needs no file, and goes with its process.
fn bind_abstract(name: &str) -> io::Result<Option<UnixDatagram>> {
    unless_busy(UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?))
}

/// A socket; `None` where the address cannot be had. That too few files may be open is no fault of the address.
fn unless_busy<T>(bound: io::Result<T>) -> io::Result<Option<T>> {
    let limits = [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
    match bound {
        Err(error) if limits.contains(&error.raw_os_error()) => Err(error),
        bound => Ok(bound.ok()),
    }
}

fn blocks_of_others(base: &Base, transport: Transport) -> anyhow::Result<Vec<(Block, String)>> {
    let mut blocks = Vec::new();
    for lab in base.labs()?.into_iter().chain(base.unfinished()?) {
        // One that is just being made or removed may have no record; then its ports are found busy, if at all.
        if let Ok(record) = LabRecord::load(&lab) {
            let ports = match transport {
                Transport::Udp => Some(record.udp_ports),
                Transport::Tcp => record.metrics,
            };
            let Some((first, count)) = ports else { continue };
            blocks.push((Block::new(first.into(), count.into()), lab.name().to_owned()));
        }
    }
    Ok(blocks)
}
