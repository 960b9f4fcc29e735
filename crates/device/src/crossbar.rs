//! The crossbar of a switch: its settings, and profiles of them with a source each.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What lies between a switch's input buffers and its links, and what comes with it: buffers, latency, the host's bus.
///
/// Limits count for each *port*, all lanes together, and at each port's own data rate. They need rates: where packets
/// take no time ([`DataPathOptions::shaped`](crate::DataPathOptions::shaped) is off) a crossbar is as [`Self::UNLIMITED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Crossbar {
    /// Packets that one input sends at once, 1 to 3; 0 sets no limit.
    pub input_packets: u8,
    /// Speed of one transfer through the crossbar, in percent of the port's data rate, at least 100.
    pub bus_percent: u16,
    /// Packets that an output holds behind the crossbar, the one on the wire included; 0 for no buffer: a packet
    /// crosses as it leaves. Packets in this buffer have their credit already, so they always leave.
    pub output_packets: u8,
    /// Whether each lane of an input has one queue for each output. Otherwise it has one FIFO, whose head blocks what
    /// is behind it.
    pub output_queues: bool,
    /// Size of the input buffer of a lane, in blocks of 64 bytes, where
    /// [`DataPathOptions::buffer_packets`](crate::DataPathOptions::buffer_packets) does not say; at least one packet.
    pub buffer_blocks: u16,
    /// Time from the arrival of a packet's last bit to the departure of its first, in nanoseconds of fabric time.
    pub latency_ns: u16,
    /// What a host sends at most, in percent of its link's data rate, where
    /// [`DataPathOptions::host_limit_mbps`](crate::DataPathOptions::host_limit_mbps) does not say; 0 sets no limit.
    pub host_bus_percent: u8,
}

impl Crossbar {
    /// The crossbar of Karol, Hluchyj and Morgan (1987): one FIFO for each input and lane, which sends one packet at a
    /// time at the speed of its link, and no output buffer. Saturates at 58.6 % with many ports.
    pub const FIFO: Self = Self {
        input_packets: 1,
        bus_percent: 100,
        output_packets: 0,
        output_queues: false,
        buffer_blocks: 0,
        latency_ns: 0,
        host_bus_percent: 0,
    };

    /// FIFOs with unlimited speed-up: the next head stands in line as its predecessor begins to leave. Saturates at
    /// √3 − 1 = 73.2 % with many ports.
    pub const UNLIMITED: Self = Self { input_packets: 0, ..Self::FIFO };

    /// The InfiniBand flit model for OMNeT++ (Mellanox, 2013) as it is shipped: three packets at once from an input, 24
    /// bytes at 250 MHz (1.5 times QDR's data rate), 78 flits of 64 bytes behind the crossbar (two packets of 2 KiB),
    /// 200 flits before it, a queue for each output, 50 + 50 ns, and hosts whose bus brings 80 % of their link's rate to it.
    pub const IS4: Self = Self {
        input_packets: 3,
        bus_percent: 150,
        output_packets: 2,
        output_queues: true,
        buffer_blocks: 200,
        latency_ns: 100,
        host_bus_percent: 80,
    };

    /// The profiles by name, the default first.
    pub const PROFILES: [(&str, Self); 3] =
        [("is4", Self::IS4), ("fifo", Self::FIFO), ("unlimited", Self::UNLIMITED)];

    /// The most packets that a limited input sends at once.
    pub(crate) const INPUT_PACKETS_MAX: usize = 3;
}

impl Default for Crossbar {
    fn default() -> Self {
        Self::IS4
    }
}

impl fmt::Display for Crossbar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = Self::PROFILES.iter().find(|(_, profile)| profile == self) {
            return f.write_str(name);
        }
        let latency = self.latency_ns;
        let named =
            Self::PROFILES.iter().find(|(_, profile)| Self { latency_ns: latency, ..*profile } == *self);
        if let Some((name, _)) = named {
            return write!(f, "{name} with {latency} ns");
        }
        let Self { input_packets, bus_percent, output_packets, buffer_blocks, host_bus_percent, .. } = self;
        let queues = if self.output_queues { "a queue for each output" } else { "FIFOs" };
        write!(
            f,
            "{input_packets} packets at once from an input (0 is no limit), bus {bus_percent} %, {output_packets} packets behind it, \
             {queues}, {buffer_blocks} blocks before it, host bus {host_bus_percent} %, {latency} ns"
        )
    }
}

/// No crossbar has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown crossbar: is4, fifo or unlimited")]
pub struct UnknownCrossbar;

impl FromStr for Crossbar {
    type Err = UnknownCrossbar;

    fn from_str(text: &str) -> Result<Self, UnknownCrossbar> {
        let found = Self::PROFILES.iter().find(|(name, _)| *name == text);
        found.map(|(_, profile)| *profile).ok_or(UnknownCrossbar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_as_it_is_written() {
        for (name, profile) in Crossbar::PROFILES {
            assert_eq!((name.parse(), profile.to_string().as_str()), (Ok(profile), name));
        }
        let slower = Crossbar { latency_ns: 150, ..Crossbar::IS4 };
        assert_eq!(slower.to_string(), "is4 with 150 ns");
        let other = Crossbar { bus_percent: 120, ..slower }.to_string();
        assert!(
            ["120 %", "150 ns", "200 blocks", "host bus 80 %"].iter().all(|part| other.contains(part)),
            "{other}"
        );
        assert_eq!("spectrum".parse::<Crossbar>(), Err(UnknownCrossbar));
        assert_eq!(Crossbar::default(), Crossbar::IS4);
    }
}
