//! Units of flows: of the machine where packets take no time, of fabric time where they do.

use weft_control::flow::{FlowLine, FlowShape};

/// The units in which a laboratory's flows are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Wall-clock nanoseconds in one nanosecond of fabric time, where packets take time.
    pub dilation: Option<u32>,
}

impl Units {
    /// The name of the unit of rates.
    pub fn of_rates(self) -> &'static str {
        if self.dilation.is_some() { "Gb/s" } else { "MB/s" }
    }

    /// What rates are of, as a sentence.
    pub fn explained(self) -> String {
        match self.dilation {
            Some(dilation) => {
                format!("rates and times are of fabric time, which is {dilation} times slower here")
            }
            None => "rates are the machine's: packets take no time on this laboratory's cables".to_owned(),
        }
    }

    /// Whole packets of a message for each byte of its body.
    fn whole(shape: &FlowShape) -> f64 {
        let (message, packet) = (u64::from(shape.message_bytes.max(1)), u64::from(shape.packet_bytes.max(1)));
        let packets = message.div_ceil(packet);
        (message + packets * shape.transport.overhead()) as f64 / message as f64
    }

    /// Bytes of body per second of wall-clock time as a rate: MB/s of body, or Gb/s of whole packets in fabric time.
    pub fn rate(self, bytes_per_second: u64, shape: &FlowShape) -> f64 {
        let bytes = bytes_per_second as f64;
        match self.dilation {
            Some(dilation) => bytes * Self::whole(shape) * 8.0 * f64::from(dilation.max(1)) / 1e9,
            None => bytes / 1e6,
        }
    }

    /// The other way round: at least a byte per second.
    pub fn bytes_per_second(self, rate: f64, shape: &FlowShape) -> u64 {
        let bytes = match self.dilation {
            Some(dilation) => rate * 1e9 / 8.0 / f64::from(dilation.max(1)) / Self::whole(shape),
            None => rate * 1e6,
        };
        bytes.round().max(1.0) as u64
    }

    /// What a cable carries, from MB/s of wall-clock time.
    pub fn carried(self, megabytes: f64) -> f64 {
        self.dilation.map_or(megabytes, |dilation| megabytes * 8.0 * f64::from(dilation.max(1)) / 1e3)
    }

    /// A flow's throughput between the hub's last two looks.
    pub fn throughput(self, flow: &FlowLine) -> f64 {
        self.rate(flow.delivered_bytes_per_second, &flow.shape)
    }

    /// The same in MB/s: of body and of the machine, or of whole packets in fabric time.
    pub fn megabytes(self, flow: &FlowLine) -> f64 {
        let throughput = self.throughput(flow);
        if self.dilation.is_some() { throughput * 1e3 / 8.0 } else { throughput }
    }

    /// Nanoseconds of wall-clock time as microseconds of these units.
    pub fn micros(self, nanos: u64) -> f64 {
        nanos as f64 / 1e3 / f64::from(self.dilation.unwrap_or(1).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_fabric_time_counts_whole_packets() {
        let shape = FlowShape { message_bytes: 8192, packet_bytes: 2048, ..FlowShape::default() };
        let units = Units { dilation: Some(1000) };
        // 16 Gb/s of a link that is slowed down a thousand times are 2 MB/s of packets with 26 bytes around 2048.
        let body = units.bytes_per_second(16.0, &shape);
        assert_eq!(body, 1_974_928);
        assert!((units.rate(body, &shape) - 16.0).abs() < 1e-4);
        assert!((units.micros(1_500_000) - 1.5).abs() < 1e-9);
        let plain = Units::default();
        assert_eq!((plain.bytes_per_second(2.5, &shape), plain.of_rates()), (2_500_000, "MB/s"));
        assert!((plain.rate(2_500_000, &shape) - 2.5).abs() < 1e-9);
        assert_eq!(units.bytes_per_second(0.0, &shape), 1, "never none");
    }
}
