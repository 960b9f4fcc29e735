//! SMPs that go round: a switch knows them by their checksums.
//!
//! A packet has no hop limit. Where tables lead in a circle, as in a piece of the fabric that was recabled while no manager reached it,
//! a trap goes round for as long as the tables stay: at line rate in silicon, but as all that processes do here. Data waits for credit,
//! and for ports that a manager has armed; lane 15 waits for nothing.

use weft_machine::Time;
use weft_wire::Packet;

/// How often a switch sends the same SMP on: more often than a directed route has hops.
const ROUNDS_MAX: u32 = 64;
/// One that is as late as this was sent again, or takes no time to speak of. Traps are repeated no sooner.
const AGAIN: Time = Time::from_millis(100);
/// How many are followed at a time.
const FOLLOWED: usize = 64;
/// The invariant CRC and the variant CRC, at the end of a packet.
const CHECKSUMS: usize = 6;

#[derive(Clone, Copy, Debug)]
struct Passed {
    checksums: [u8; CHECKSUMS],
    last: Time,
    times: u32,
}

/// SMPs that a switch follows, each at the place that its checksums say.
///
/// One that comes by keeps its place until it has been away for [`AGAIN`]; others that belong there are not counted meanwhile. So
/// however many go round, some are followed until they end, and then the next ones.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Vec<Option<Passed>>);

impl Rounds {
    /// Notes that a packet comes by. True once it goes round.
    pub(crate) fn goes_round(&mut self, now: Time, packet: &Packet) -> bool {
        let Some(&checksums) = packet.bytes().last_chunk() else { return false };
        if self.0.is_empty() {
            self.0.resize(FOLLOWED, None);
        }
        let place = &mut self.0[usize::from(checksums[0]) % FOLLOWED];
        let times = match place {
            Some(passed) if now < passed.last + AGAIN => match passed.checksums == checksums {
                true => passed.times + 1,
                false => return false,
            },
            _ => 1,
        };
        *place = Some(Passed { checksums, last: now, times });
        times > ROUNDS_MAX
    }
}
