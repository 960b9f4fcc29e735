//! Ports for a laboratory's links (UDP) and its metrics (TCP): blocks of the range below Linux's ephemeral one, on as many
//! addresses of 127.0.0.0/8 as it takes.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::{fmt, io};

use anyhow::Context as _;
use rustix::io::Errno;

use crate::failure::Failure;
use crate::folder::Base;
use crate::place::block::{Block, FIRST, LAST, PER_ADDRESS, UNIT, at};
use crate::record::LabRecord;

/// The UDP port of a hub's door, and of managers' where they have hosts of their own.
pub const DOOR_PORT: u16 = 7443;

/// Addresses that are searched in a row: room for two hundred laboratories of 13 000 agents.
const ADDRESSES: u32 = 256;

/// What fails where the system, and not a port, is in the way.
const LOOKING: &str = "cannot look for free ports";

/// Whose ports they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
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

    fn can_be_bound(self, at: SocketAddrV4) -> io::Result<bool> {
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

impl Block {
    /// Claims the block if each port can be bound and no agent keeps one, with `whole_units` none of its units either;
    /// otherwise names a port that cannot be had. An error is one of the system's and says nothing about ports.
    fn claim(self, transport: Transport, whole_units: bool) -> io::Result<Result<Claim, SocketAddrV4>> {
        let mut units = Vec::new();
        for run in self.runs() {
            for unit in run.units() {
                let name =
                    format!("weft-{}-{}ports-{}", transport.lower(), of(run.ip), unit * u32::from(UNIT));
                let is_kept = whole_units && keep_unit(transport, run.ip, unit)?.is_none();
                let claimed = if is_kept { None } else { bind_abstract(&name)? };
                match claimed {
                    Some(unit) => units.push(unit),
                    None => {
                        let last = (unit + 1) * u32::from(UNIT) - 1;
                        return Ok(Err(at(run.ip, last.clamp(run.ports.start, run.ports.end - 1))));
                    }
                }
            }
        }
        for run in self.runs() {
            let unit = u32::from(UNIT);
            let kept = if whole_units {
                run.units().start * unit..run.units().end * unit
            } else {
                run.ports.clone()
            };
            for port in kept.rev() {
                if keep_port(transport, at(run.ip, port))?.is_none() {
                    return Ok(Err(at(run.ip, port.clamp(run.ports.start, run.ports.end - 1))));
                }
            }
            for port in run.ports {
                if !transport.can_be_bound(at(run.ip, port))? {
                    return Ok(Err(at(run.ip, port)));
                }
            }
        }
        Ok(Ok(Claim { block: self, _units: units }))
    }
}

/// What tells the names of an address from those of others. 127.0.0.1 has none, as in versions that knew no other.
fn of(ip: Ipv4Addr) -> String {
    if ip == Ipv4Addr::LOCALHOST { String::new() } else { format!("{ip}-") }
}

/// Where free ports are looked for: on some addresses of 127.0.0.0/8 in a row, from this one up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search(Ipv4Addr);

impl Search {
    /// From 127.0.0.1 up, for a laboratory that starts now.
    pub const NOW: Self = Self(Ipv4Addr::LOCALHOST);

    /// From any address up, for one that starts some day: another that was planned meanwhile will hardly have the same.
    pub fn for_later() -> Self {
        let [a, b, ..] = rand::random::<[u8; 4]>();
        // The rows of 256 addresses from 127.1.0.0 on.
        Self(Ipv4Addr::new(127, a.max(1), b.min(254), 1))
    }

    /// One of the ports, counted over all addresses.
    fn slot(self, number: u32) -> SocketAddrV4 {
        at((u32::from(self.0) + number / PER_ADDRESS).into(), u32::from(FIRST) + number % PER_ADDRESS)
    }

    /// The number of a port; of one that is none of weft's own, the next one's.
    fn number(self, address: SocketAddrV4) -> u32 {
        let addresses = u32::from(*address.ip()).saturating_sub(self.0.into());
        let port = u32::from(address.port().saturating_sub(FIRST)).min(PER_ADDRESS);
        addresses.saturating_mul(PER_ADDRESS).saturating_add(port)
    }
}

/// A block of ports, claimed until this is dropped: between our looking and the agents' binding, no other
/// launcher of this machine takes one of them.
#[derive(Debug)]
pub struct Claim {
    /// The ports.
    pub block: Block,
    _units: Vec<UnixDatagram>,
}

/// A block of `count` ports that no other laboratory has and no other program uses. With `pinned` the one from that port of
/// 127.0.0.1 up.
pub fn claim(
    base: &Base,
    transport: Transport,
    count: u32,
    search: Search,
    pinned: Option<u16>,
) -> anyhow::Result<Claim> {
    let Some(first) = pinned else {
        return claim_free(&blocks_of_others(base, transport)?, transport, count, search);
    };
    let option = transport.option();
    if first > LAST && u32::from(first) + count > 65_536 {
        let message = format!("{count} {transport} ports from {first} up go beyond 65535");
        return Err(Failure::bad_input(message)
            .hint(format!("give a lower {option}, or run several devices per agent with --pack")));
    }
    let block = Block { first: at(Ipv4Addr::LOCALHOST, first.into()), count };
    claim_block(base, transport, block, &format!("leave the port of {option} out"))
}

/// One port more for a laboratory that has these: behind the last of them, in the same unit, which no other is given; none if that is
/// full, or none of weft's own.
pub fn claim_behind(
    transport: Transport,
    own: Block,
    taken: &[SocketAddrV4],
) -> anyhow::Result<Option<Claim>> {
    let (last, unit) = (own.last(), u32::from(UNIT));
    let behind = u32::from(last.port()) + 1;
    for port in behind..behind.next_multiple_of(unit).min(u32::from(LAST) + 1) {
        let first = at(*last.ip(), port);
        if port < FIRST.into() || taken.contains(&first) {
            continue;
        }
        if let Ok(claim) = (Block { first, count: 1 }).claim(transport, false).context(LOOKING)? {
            return Ok(Some(claim));
        }
    }
    Ok(None)
}

/// This block and no other; `advice` is what to do where it cannot be had.
pub fn claim_block(base: &Base, transport: Transport, block: Block, advice: &str) -> anyhow::Result<Claim> {
    let others = blocks_of_others(base, transport)?;
    if let Some((_, name)) = others.iter().find(|(other, _)| other.overlaps(&block)) {
        let last = block.place(block.count.saturating_sub(1)).map_or(0, |last| last.port());
        let message =
            format!("{transport} ports {} to {last} belong to the laboratory `{name}`", block.first.port());
        return Err(Failure::new(message).hint(format!("{advice}, or `weft down --lab {name}` first")));
    }
    let claimed = block.claim(transport, false).context(LOOKING)?;
    claimed.map_err(|busy| {
        let shown = match *busy.ip() == Ipv4Addr::LOCALHOST {
            true => busy.port().to_string(),
            false => busy.to_string(),
        };
        Failure::new(format!("{transport} port {shown} is in use by another program"))
            .hint(format!("{advice} to use a block that is free"))
    })
}

fn claim_free(
    others: &[(Block, String)],
    transport: Transport,
    count: u32,
    search: Search,
) -> anyhow::Result<Claim> {
    let end = ADDRESSES * PER_ADDRESS;
    let mut first: u32 = 0;
    while first.saturating_add(count) <= end {
        let block = Block { first: search.slot(first), count };
        let busy = match others.iter().find(|(other, _)| other.overlaps(&block)) {
            Some((other, _)) => other.last(),
            None => match block.claim(transport, true).context(LOOKING)? {
                Ok(claim) => return Ok(claim),
                Err(busy) => busy,
            },
        };
        first = (first + 1).max(search.number(busy).saturating_add(1));
    }
    let (from, to) = (search.slot(0), search.slot(end - 1));
    Err(Failure::new(format!("no {count} {transport} ports in a row are free between {from} and {to}"))
        .hint("take another laboratory down, or run several devices per agent with --pack"))
}

/// Keeps an agent's port, and with it its neighbours' ports, from being chosen for another laboratory, also while
/// a neighbour is dead. `None` when somebody keeps it already.
pub fn keep_port(transport: Transport, address: SocketAddrV4) -> io::Result<Option<UnixDatagram>> {
    bind_abstract(&format!("weft-{}-{}port-{}", transport.lower(), of(*address.ip()), address.port()))
}

/// Keeps what is in the units of a block from being chosen for another laboratory, also while none of its agents lives. Units that
/// somebody keeps already stay theirs.
pub fn keep_units(transport: Transport, block: Block) -> io::Result<Vec<UnixDatagram>> {
    let mut kept = Vec::new();
    for run in block.runs() {
        for unit in run.units() {
            kept.extend(keep_unit(transport, run.ip, unit)?);
        }
    }
    Ok(kept)
}

fn keep_unit(transport: Transport, ip: Ipv4Addr, unit: u32) -> io::Result<Option<UnixDatagram>> {
    bind_abstract(&format!("weft-{}-labports-{}{}", transport.lower(), of(ip), unit * u32::from(UNIT)))
}

/// An abstract name is known to the whole machine, needs no file, and goes with its process.
fn bind_abstract(name: &str) -> io::Result<Option<UnixDatagram>> {
    unless_busy(UnixDatagram::bind_addr(&UnixAddress::from_abstract_name(name)?))
}

/// A socket; `None` where the address cannot be had. That too few files may be open, or that the loopback has no such
/// address, is no fault of the port.
fn unless_busy<T>(bound: io::Result<T>) -> io::Result<Option<T>> {
    let others = [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL].map(|errno| Some(errno.raw_os_error()));
    match bound {
        Err(error) if others.contains(&error.raw_os_error()) => Err(error),
        bound => Ok(bound.ok()),
    }
}

fn blocks_of_others(base: &Base, transport: Transport) -> anyhow::Result<Vec<(Block, String)>> {
    let mut blocks = Vec::new();
    for lab in base.labs()?.into_iter().chain(base.unfinished()?) {
        // One that is just being made or removed may have no record; then its ports are found busy, if at all.
        if let Ok(record) = LabRecord::load(&lab) {
            let (block, came) = of_record(&record, transport);
            let came = came.into_iter().map(|first| Block { first, count: 1 });
            blocks.extend(block.into_iter().chain(came).map(|block| (block, lab.name().to_owned())));
        }
    }
    Ok(blocks)
}

/// The ports that a laboratory was planned with, and those of agents that came later.
pub fn of_record(record: &LabRecord, transport: Transport) -> (Option<Block>, Vec<SocketAddrV4>) {
    let came_later = |first: &SocketAddrV4| {
        record.udp_ports.is_some_and(|block| !block.overlaps(&Block { first: *first, count: 1 }))
    };
    let v4 = |at| if let SocketAddr::V4(at) = at { Some(at) } else { None };
    let agents = record.agents.iter();
    match transport {
        Transport::Udp => {
            let addresses = agents.filter_map(|agent| agent.address.literal().and_then(v4));
            (record.udp_ports, addresses.filter(came_later).collect())
        }
        Transport::Tcp => {
            (record.metrics_ports(), agents.filter_map(|agent| agent.metrics.and_then(v4)).collect())
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    use super::*;

    fn block(first: &str, count: u32) -> Block {
        Block { first: first.parse().unwrap(), count }
    }

    fn places(block: Block) -> Vec<SocketAddr> {
        (0..block.count).map(|at| block.place(at).unwrap()).collect()
    }

    #[test]
    fn a_block_goes_on_at_the_next_address() {
        let long = block("127.0.0.1:20000", 13_284);
        let all = places(long);
        assert_eq!(all[0].to_string(), "127.0.0.1:20000");
        assert_eq!(all[12_767].to_string(), "127.0.0.1:32767");
        assert_eq!(all[12_768].to_string(), "127.0.0.2:20000");
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 13_284);
        assert_eq!(long.place(13_284), None);
        let pinned = places(block("127.0.0.1:5000", 27_769));
        assert_eq!(pinned.last().unwrap().to_string(), "127.0.0.2:20000");
        let high = places(block("127.0.0.1:65530", 6));
        assert_eq!(high.last().unwrap().to_string(), "127.0.0.1:65535");
        assert!(long.overlaps(&block("127.0.0.2:20515", 1)) && !long.overlaps(&block("127.0.0.2:20516", 1)));
        assert!(!long.overlaps(&block("127.0.0.1:32768", 5)));
    }

    #[test]
    fn slots_are_numbered_in_a_row() {
        for search in [Search::NOW, Search::for_later(), Search::for_later()] {
            for number in [0, 1, 12_767, 12_768, 25_536, 255 * 12_768 + 7] {
                let slot = search.slot(number);
                assert!(slot.ip().is_loopback());
                assert_eq!(search.number(slot), number);
                let block = Block { first: search.slot(0), count: number + 1 };
                assert_eq!((Some(SocketAddr::V4(slot)), slot), (block.place(number), block.last()));
            }
        }
    }

    /// Two launchers at once, each with blocks of all sizes: together 20 000 ports, and no port twice.
    #[test]
    fn claims_of_two_launchers_never_collide() {
        weft_process::raise_file_limit();
        let (begin, sizes) = (Barrier::new(2), [1, 31, 32, 33, 100, 702, 1000, 2101, 6000]);
        assert_eq!(sizes.iter().sum::<u32>(), 10_000);
        let launcher = || {
            begin.wait();
            sizes.map(|size| claim_free(&[], Transport::Udp, size, Search::NOW).unwrap())
        };
        let [one, other] = std::thread::scope(|scope| {
            let threads = [scope.spawn(launcher), scope.spawn(launcher)];
            threads.map(|thread| thread.join().unwrap())
        });
        let mut all = BTreeSet::new();
        for claim in one.iter().chain(&other) {
            for place in places(claim.block) {
                assert!(all.insert(place), "{place} was claimed twice");
                // What is claimed can be had.
                UdpSocket::bind(place).unwrap();
            }
        }
        assert_eq!(all.len(), 20_000);
        let again = one[8].block.claim(Transport::Udp, false).unwrap();
        assert!(again.is_err(), "a block that is claimed was claimed again");
        drop((one, other));
    }

    /// A laboratory whose agents are all dead has its units still, and agents that come have ports in them.
    #[test]
    fn a_laboratory_keeps_its_units() {
        let claim = claim_free(&[], Transport::Udp, 40, Search::NOW).unwrap();
        let own = claim.block;
        let _kept = keep_units(Transport::Udp, own).unwrap();
        drop(claim);
        let whole = Block { first: own.first, count: 64 };
        let mut taken = Vec::new();
        while let Some(claim) = claim_behind(Transport::Udp, own, &taken).unwrap() {
            assert!(whole.overlaps(&claim.block) && !own.overlaps(&claim.block), "{claim:?}");
            taken.push(claim.block.first);
        }
        assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), 24);
        let another = claim_free(&[], Transport::Udp, 1, Search::NOW).unwrap().block;
        assert!(!whole.overlaps(&another), "{another:?}");
    }

    /// As long as one agent keeps its port, its neighbours' ports are not given away.
    #[test]
    fn a_kept_port_keeps_its_unit() {
        let claimed = claim_free(&[], Transport::Tcp, 64, Search::NOW).unwrap().block;
        let SocketAddr::V4(kept) = claimed.place(33).unwrap() else { panic!("no such address") };
        let _kept = keep_port(Transport::Tcp, kept).unwrap().unwrap();
        let next = claim_free(&[], Transport::Tcp, 64, Search::NOW).unwrap().block;
        assert!(!next.overlaps(&Block { first: kept, count: 1 }), "{next:?}");
        assert!(claimed.claim(Transport::Tcp, false).unwrap().is_err());
    }
}
