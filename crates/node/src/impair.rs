//! The fate of the frames that come out of an impaired cable: a machine of numbers alone, which neither holds them nor knows
//! what they are. [`Node`](crate::Node) asks it where cables end, so agents and simulator ask the same one.
//!
//! Chance is that of each impairment's own seed, and is drawn for each frame whether another impairment has taken it or not:
//! what one does depends on no other.

use weft_fault::{Impairment, Lag, Share};
use weft_machine::{Random, Time};

/// Wrong bits of one packet that are counted at most.
const BIT_ERRORS_MAX: u16 = 64;
/// The lanes, 15 among them.
const LANES: usize = 16;

/// A frame, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A packet of lane 15.
    Management {
        /// Its length in bytes.
        bytes: u32,
    },
    /// A packet of another lane.
    Data {
        /// Its lane.
        lane: u8,
        /// Its length in bytes.
        bytes: u32,
    },
    /// Flow control of a lane.
    Credit {
        /// The lane.
        lane: u8,
    },
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// When it arrives, or is found to be lost.
    pub(crate) at: Time,
    pub(crate) what: What,
    /// Whether others may overtake it.
    pub(crate) is_overtaken: bool,
}

/// How a frame arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Whole,
    Twice,
    Lost,
    Damaged { bit_errors: u16 },
}

/// What impairments have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ImpairmentCounts {
    /// Packets that vanished.
    pub lost: u64,
    /// Packets dropped for wrong bits.
    pub damaged: u64,
    /// Packets of lane 15 that arrived twice.
    pub duplicated: u64,
    /// Packets held back for others to overtake.
    pub reordered: u64,
    /// Packets that arrived late.
    pub late: u64,
    /// Packets lost because as many were late already as there is room for.
    pub no_room: u64,
}

impl std::ops::Add for ImpairmentCounts {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            lost: self.lost + more.lost,
            damaged: self.damaged + more.damaged,
            duplicated: self.duplicated + more.duplicated,
            reordered: self.reordered + more.reordered,
            late: self.late + more.late,
            no_room: self.no_room + more.no_room,
        }
    }
}

/// The impairments of what arrives at one port.
#[derive(Debug, Default)]
pub(crate) struct Impairments {
    active: Vec<Active>,
    order: [Order; LANES],
}

#[derive(Debug)]
struct Active {
    how: Impairment,
    seed: u32,
    random: Random,
}

/// Until when the order of a lane is decided.
#[derive(Clone, Copy, Debug, Default)]
struct Order {
    /// Nothing that comes now arrives before this.
    from: Time,
    /// All that has come has arrived by then.
    until: Time,
}

impl Impairments {
    /// Begins one, unless it is there already.
    pub(crate) fn add(&mut self, how: Impairment, seed: u32) {
        let is_there = self.active.iter().any(|active| (active.how, active.seed) == (how, seed));
        if !is_there {
            let random = Random::of_purpose(seed.into(), how.word().name());
            self.active.push(Active { how, seed, random });
        }
    }

    /// Ends one. What it has held back arrives at its time.
    pub(crate) fn remove(&mut self, how: Impairment, seed: u32) {
        self.active.retain(|active| (active.how, active.seed) != (how, seed));
    }

    /// Whether there is none any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// All of them.
    pub(crate) fn list(&self) -> impl Iterator<Item = (Impairment, u32)> {
        self.active.iter().map(|active| (active.how, active.seed))
    }

    /// What was on its way is gone.
    pub(crate) fn begin_anew(&mut self) {
        self.order = Default::default();
    }

    /// Decides about a frame that would arrive now.
    pub(crate) fn judge(&mut self, now: Time, kind: Kind) -> Fate {
        let mut drawn = Drawn::default();
        for active in &mut self.active {
            drawn.add(active, kind);
        }
        let order = match kind {
            Kind::Management { .. } => &mut self.order[LANES - 1],
            Kind::Data { lane, .. } | Kind::Credit { lane } => &mut self.order[usize::from(lane) % LANES],
        };
        // Flow control counts the packets before it, so that none may come on its other side.
        let after = if matches!(kind, Kind::Credit { .. }) { order.until } else { order.from };
        let at = (now + drawn.lag + drawn.overtaken).max(after);
        order.until = order.until.max(at);
        if !drawn.is_overtaken() {
            order.from = at;
        }
        let what = match drawn {
            Drawn { lost: true, .. } => What::Lost,
            Drawn { bit_errors: 1.., .. } => What::Damaged { bit_errors: drawn.bit_errors },
            Drawn { twice: true, .. } => What::Twice,
            _ => What::Whole,
        };
        Fate { at, what, is_overtaken: drawn.is_overtaken() }
    }
}

/// What chance has decided about a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Drawn {
    lag: Time,
    /// How long others may overtake it.
    overtaken: Time,
    lost: bool,
    twice: bool,
    bit_errors: u16,
}

impl Drawn {
    fn add(&mut self, active: &mut Active, kind: Kind) {
        let random = &mut active.random;
        match (active.how, kind) {
            (Impairment::Delay(lag), _) => self.lag += Time::from_nanos(lag.as_nanos()),
            (Impairment::Jitter(lag), _) => self.lag += below(random, lag),
            (_, Kind::Credit { .. }) | (Impairment::Duplicate(_), Kind::Data { .. }) => {}
            // These are of the port.
            (
                Impairment::Flap { .. }
                | Impairment::Width(_)
                | Impairment::Speed(_)
                | Impairment::SlowDrain(_),
                _,
            ) => {}
            (Impairment::Loss(share), _) => self.lost |= is_of(random, share),
            (Impairment::Duplicate(share), Kind::Management { .. }) => self.twice |= is_of(random, share),
            (Impairment::Reorder { share, by }, _) => {
                if is_of(random, share) {
                    self.overtaken += Time::from_nanos(by.as_nanos());
                }
            }
            (Impairment::BitErrors(rate), Kind::Management { bytes } | Kind::Data { bytes, .. }) => {
                let drawn = bit_errors(random, u64::from(bytes) * 8 * rate.in_1e15());
                self.bit_errors = self.bit_errors.saturating_add(drawn);
            }
        }
    }

    /// Whether others may overtake it.
    const fn is_overtaken(&self) -> bool {
        self.overtaken.as_nanos() > 0
    }
}

fn is_of(random: &mut Random, share: Share) -> bool {
    random.below(1_000_000) < share.ppm()
}

/// A time below a lag.
fn below(random: &mut Random, lag: Lag) -> Time {
    let nanos = (u128::from(random.draw()) * u128::from(lag.as_nanos())) >> 64;
    Time::from_nanos(nanos as u64)
}

/// Wrong bits of a packet that has this many in 10^15 packets like it. Each is drawn like the one before it, which is the law
/// of rare errors as long as most packets have none.
fn bit_errors(random: &mut Random, in_1e15: u64) -> u16 {
    let limit = in_1e15.min(999_000_000_000_000);
    let mut count = 0;
    while count < BIT_ERRORS_MAX
        && ((u128::from(random.draw()) * 1_000_000_000_000_000) >> 64) < u128::from(limit)
    {
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests;
