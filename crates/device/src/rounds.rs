//! SMPs that go round: a switch knows them by their checksums.
//!
//! A packet has no hop limit. Where tables lead in a circle, as in a piece of the fabric that was recabled while no manager reached it, a
//! trap goes round for as long as the tables stay: at line rate in silicon, but as all that processes do here. Data waits for credit, and
//! for ports that a manager has armed; lane 15 waits for nothing.

use std::collections::VecDeque;

use weft_machine::Time;
use weft_wire::Packet;

/// How often a switch sends the same SMP on: more often than a directed route has hops.
const ROUNDS_MAX: u32 = 64;
/// One that is as late as this was sent again. Managers and traps wait longer for an answer.
const AGAIN: Time = Time::from_millis(100);
/// How many are remembered: those that came by last.
const REMEMBERED: usize = 64;
/// The invariant CRC and the variant CRC, at the end of a packet.
const CHECKSUMS: usize = 6;

#[derive(Debug)]
struct Passed {
    checksums: [u8; CHECKSUMS],
    last: Time,
    times: u32,
}

/// SMPs that a switch has sent on lately, the last one in front.
#[derive(Debug, Default)]
pub(crate) struct Rounds(VecDeque<Passed>);

impl Rounds {
    /// Notes that a packet comes by. True once it goes round.
    pub(crate) fn goes_round(&mut self, now: Time, packet: &Packet) -> bool {
        let Some(&checksums) = packet.bytes().last_chunk() else { return false };
        let known = self.0.iter().position(|passed| passed.checksums == checksums);
        let known = known.and_then(|at| self.0.remove(at)).filter(|passed| now < passed.last + AGAIN);
        let times = known.map_or(0, |passed| passed.times) + 1;
        self.0.push_front(Passed { checksums, last: now, times });
        self.0.truncate(REMEMBERED);
        times > ROUNDS_MAX
    }
}
