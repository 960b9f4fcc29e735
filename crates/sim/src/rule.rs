//! Rules that lose or delay packets on their way.

use rand::RngExt;
use rand_pcg::Pcg64;
use weft_machine::Time;
use weft_topology::PortRef;
use weft_wire::{DataPacket, Packet};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It arrives as packets do.
    Pass,
    /// It arrives this much later.
    Delay(Time),
    /// It is lost without notice.
    Drop,
}

/// Decides what becomes of packets of lane 15, and of those of other lanes if it says so.
pub trait Rule {
    /// Whether it decides about data lanes too. Those lose nothing for want of credits, but a packet may arrive
    /// damaged; and what is late there delays what comes behind it.
    fn judges_data(&self) -> bool {
        false
    }

    /// What becomes of `packet`, which has just left `from`. Chance comes from `random` alone, so that a seed
    /// decides everything.
    fn judge(&mut self, now: Time, from: PortRef, packet: &Packet, random: &mut Pcg64) -> Verdict;

    /// The same of a data packet whose body is a length; asked of rules that decide about data lanes.
    fn judge_data(&mut self, now: Time, from: PortRef, packet: &DataPacket, random: &mut Pcg64) -> Verdict {
        self.judge(now, from, &packet.to_whole(), random)
    }
}

/// Loses and delays packets by chance, until some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomLoss {
    /// After this, everything passes.
    pub until: Time,
    /// Of a thousand packets, how many are lost.
    pub lost_per_mille: u32,
    /// Of a thousand packets, how many are late.
    pub late_per_mille: u32,
    /// How late at most.
    pub delay_max: Time,
}

impl Rule for RandomLoss {
    fn judge(&mut self, now: Time, _: PortRef, _: &Packet, random: &mut Pcg64) -> Verdict {
        if now >= self.until {
            return Verdict::Pass;
        }
        let chance = random.random_range(0..1000u32);
        if chance < self.lost_per_mille {
            Verdict::Drop
        } else if chance < self.lost_per_mille + self.late_per_mille {
            Verdict::Delay(below(random, self.delay_max))
        } else {
            Verdict::Pass
        }
    }
}

/// A time below `most`, or none at all.
pub(crate) fn below(random: &mut Pcg64, most: Time) -> Time {
    match most.as_nanos() {
        0 => Time::ZERO,
        most => Time::from_nanos(random.random_range(0..most)),
    }
}
