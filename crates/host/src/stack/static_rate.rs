//! Static rate control (IBA 9.11): who sends over a faster link than the slowest one on the way leaves gaps between its
//! packets, so that they do not fill the buffers before that link, which others share.
//!
//! ```text
//!   own link, 4x EDR      ▆▆        ▆▆        ▆▆        a packet and a gap (inter packet delay):
//!   slowest, 1x EDR       ▆▆▆▆▆▆▆▆  ▆▆▆▆▆▆▆▆  ▆▆▆▆▆▆▆▆  together its time on the slowest link
//! ```
//!
//! The slowest one is known from the path record's Rate. A queue pair keeps the gaps for itself; datagrams to many
//! ports keep them for each. Acknowledgements have none, they are few and short; nor have the answers of a ping-pong, whose
//! end has no path record of its own. FDR10 has QDR's rates in path records, and is taken for QDR, which carries less.

use weft_machine::Time;
use weft_wire::{DataRate, PathRate, PortFacts};

/// How long a packet of this size takes at a rate; `None` where it takes no time.
#[inline]
pub(super) fn time_at(rate: DataRate, bytes: usize, dilation: u32) -> Option<Time> {
    rate.nanos(bytes, dilation).map(|(nanos, _)| Time::from_nanos(nanos))
}

/// How long a packet of this size takes on the slowest link of a way; nothing where that is no slower than the own one,
/// where it is not known, or where packets take no time.
#[inline]
pub(super) fn packet_time(bytes: usize, rate: PathRate, facts: &PortFacts, dilation: u32) -> Time {
    if rate == facts.link_rate || facts.rate.is_instant() {
        return Time::ZERO;
    }
    let (Some(way), Some(own)) = (rate.megabits(), facts.link_rate.megabits()) else { return Time::ZERO };
    let data = rate.data_rate().filter(|_| way < own);
    data.and_then(|data| time_at(data, bytes, dilation)).unwrap_or(Time::ZERO)
}

/// When the next packet may go, where this one takes so long. Who was woken late catches up by one packet.
pub(super) fn next_at(before: Time, now: Time, packet_time: Time) -> Time {
    before.max(now.saturating_sub(packet_time)) + packet_time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_way_takes_its_time_and_a_faster_one_none() {
        let facts = PortFacts {
            rate: DataRate::from_mbps(12_900),
            link_rate: PathRate::Gb40,
            ..PortFacts::default()
        };
        let nanos = |rate, facts: &PortFacts| packet_time(2_000, rate, facts, 10).as_nanos();
        // 16 000 bits at 2 Gb/s of data are 8 µs of fabric time.
        assert_eq!(nanos(PathRate::Gb2_5, &facts), 80_000);
        assert_eq!(
            [PathRate::Gb40, PathRate::Gb100, PathRate::default()].map(|rate| nanos(rate, &facts)),
            [0; 3]
        );
        assert_eq!(
            nanos(PathRate::Gb2_5, &PortFacts { rate: DataRate::INSTANT, ..facts.clone() }),
            0,
            "unshaped"
        );
        assert_eq!(nanos(PathRate::Gb2_5, &PortFacts { link_rate: PathRate::default(), ..facts }), 0);
    }

    #[test]
    fn a_late_packet_is_made_up_for_once() {
        let at = Time::from_micros;
        assert_eq!(next_at(at(100), at(100), at(8)), at(108));
        assert_eq!(next_at(at(100), at(103), at(8)), at(108), "three late");
        assert_eq!(next_at(at(100), at(500), at(8)), at(500), "one more at once, and no burst");
    }
}
