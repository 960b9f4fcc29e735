//! UDP ports for a laboratory's agents: a block of the range below Linux's ephemeral one.

use std::net::{Ipv4Addr, UdpSocket};

use crate::failure::Failure;
use crate::lab::{Base, LabRecord};

/// Ports that weft uses by itself. Linux hands out ephemeral ports from 32768 up.
const RANGE: std::ops::RangeInclusive<u32> = 20_000..=32_767;

/// A block of `count` ports that no other laboratory has and nobody else uses. With `pinned` exactly that one.
pub(crate) fn choose(base: &Base, count: usize, pinned: Option<u16>) -> anyhow::Result<u16> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let others = blocks_of_others(base)?;
    if let Some(first) = pinned {
        let block = Block::new(u32::from(first), count);
        if block.end > 65_536 {
            return Err(Failure::bad_input(format!(
                "{count} agents from UDP port {first} up need ports beyond 65535"
            ))
            .hint("give a lower --udp-port, or run several devices per agent with --pack")
            .into());
        }
        if let Some((_, name)) = others.iter().find(|(other, _)| other.overlaps(&block)) {
            return Err(Failure::new(format!(
                "UDP ports {first} to {} belong to the laboratory `{name}`",
                block.end - 1
            ))
            .hint(format!("leave --udp-port out, or `weft down --lab {name}` first"))
            .into());
        }
        if let Err(busy) = block.bind() {
            return Err(Failure::new(format!("UDP port {busy} is in use by another program"))
                .hint("leave --udp-port out to use a block that is free")
                .into());
        }
        return Ok(first);
    }
    let mut first = *RANGE.start();
    while first.saturating_add(count) <= *RANGE.end() + 1 {
        let block = Block::new(first, count);
        match others.iter().find(|(other, _)| other.overlaps(&block)) {
            Some((other, _)) => first = other.end,
            None => match block.bind() {
                Ok(()) => return Ok(u16::try_from(first).expect("the range ends below 65536")),
                Err(busy) => first = busy + 1,
            },
        }
    }
    Err(Failure::new(format!(
        "no {count} UDP ports in a row are free between {} and {}",
        RANGE.start(),
        RANGE.end()
    ))
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

    /// Whether each port can be bound; the first that cannot otherwise.
    fn bind(&self) -> Result<(), u32> {
        for port in self.first..self.end {
            let number = u16::try_from(port).map_err(|_| port)?;
            UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).map_err(|_| port)?;
        }
        Ok(())
    }
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
