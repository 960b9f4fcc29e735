//! Impairments of a cable: of its packets while its link stays up, or of the link and the host at one of its ports.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::amount::{Lag, Rate, Share};
use crate::link::{Signalling, Width};
use crate::{Damage, Word};

/// What happens to packets on their way over a cable, or to the port that it is in. Flow control is late with packets, and never
/// lost: IBA repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Impairment"))]
#[serde(rename_all = "kebab-case")]
pub enum Impairment {
    /// A share of the packets vanishes. No counter of a port shows it.
    Loss(Share),
    /// All are late by the same time.
    Delay(Lag),
    /// Each is late by a time below this one, and keeps its place behind those before it.
    Jitter(Lag),
    /// A share of the packets is late by this time, and those behind them overtake them. No packet of a data lane passes flow
    /// control, which counts those before it.
    Reorder {
        /// The share.
        share: Share,
        /// How late.
        by: Lag,
    },
    /// A share of lane 15's packets arrives twice.
    Duplicate(Share),
    /// Bits are wrong at this rate; a packet with a wrong bit is dropped and counted (SymbolErrorCounter, PortRcvErrors).
    BitErrors(Rate),
    /// The link of the port goes down for a while, and comes back, again and again.
    Flap {
        /// From one loss to the next. It begins with a time in which the link is up.
        every: Lag,
        /// How long the link is down each time: less than `every`.
        down: Lag,
    },
    /// The port has no more than this number of working lanes, and its link trains again (LinkWidthActive).
    Width(Width),
    /// The port signals no faster than this, and its link trains again (LinkSpeedActive).
    Speed(Signalling),
    /// The host behind the port takes packets at this share of its usual rate, so that credits return slowly.
    SlowDrain(Share),
}

weft_wire::named! {
    /// Direction over a cable, seen from the port that the fault names.
    #[derive(Default, PartialOrd, Ord, Hash)]
    pub enum Way {
        /// Both ways.
        #[default]
        Both = "both",
        /// What arrives at the port.
        In = "in",
        /// What the port sends.
        Out = "out",
    }
}

/// An impairment of the cable in a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Impaired<Port> {
    /// The port.
    pub at: Port,
    /// Which way.
    pub way: Way,
    /// What happens.
    pub how: Impairment,
    /// What chance follows from.
    pub seed: u32,
}

impl Impairment {
    /// Its word.
    pub const fn word(&self) -> Word {
        match self {
            Self::Loss(_) => Word::Loss,
            Self::Delay(_) => Word::Delay,
            Self::Jitter(_) => Word::Jitter,
            Self::Reorder { .. } => Word::Reorder,
            Self::Duplicate(_) => Word::Duplicate,
            Self::BitErrors(_) => Word::BitErrors,
            Self::Flap { .. } => Word::Flap,
            Self::Width(_) => Word::Width,
            Self::Speed(_) => Word::Speed,
            Self::SlowDrain(_) => Word::SlowDrain,
        }
    }

    /// Whether it befalls the port itself. Such an impairment has no direction, and no chance.
    pub const fn is_of_port(&self) -> bool {
        matches!(self, Self::Flap { .. } | Self::Width(_) | Self::Speed(_) | Self::SlowDrain(_))
    }

    /// The impairment of a word, and of its amounts as [`fmt::Display`] writes them: `5%`, `2ms`, `5% 2ms`, `1e-9`, `1x`, `sdr`.
    pub fn of(word: Word, amounts: &str) -> Option<Self> {
        Some(match word {
            Word::Loss => Self::Loss(amounts.parse().ok()?),
            Word::Delay => Self::Delay(amounts.parse().ok()?),
            Word::Jitter => Self::Jitter(amounts.parse().ok()?),
            Word::Reorder => {
                let (share, by) = amounts.split_once(' ')?;
                Self::Reorder { share: share.parse().ok()?, by: by.parse().ok()? }
            }
            Word::Duplicate => Self::Duplicate(amounts.parse().ok()?),
            Word::BitErrors => Self::BitErrors(amounts.parse().ok()?),
            Word::Flap => {
                let (every, down) = amounts.split_once(' ')?;
                let (every, down) = (every.parse::<Lag>().ok()?, down.parse().ok()?);
                (down < every).then_some(Self::Flap { every, down })?
            }
            Word::Width => Self::Width(amounts.parse().ok()?),
            Word::Speed => Self::Speed(amounts.parse().ok()?),
            Word::SlowDrain => Self::SlowDrain(amounts.parse().ok()?),
            Word::Kill
            | Word::Restart
            | Word::LinkDown
            | Word::LinkUp
            | Word::Freeze
            | Word::Thaw
            | Word::Partition
            | Word::Heal
            | Word::BadIdentity
            | Word::GoodIdentity
            | Word::Clear => return None,
        })
    }
}

impl fmt::Display for Impairment {
    /// The word and the amounts: `reorder 5% 2ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word().name())?;
        match self {
            Self::Loss(share) | Self::Duplicate(share) | Self::SlowDrain(share) => write!(f, " {share}"),
            Self::Delay(lag) | Self::Jitter(lag) => write!(f, " {lag}"),
            Self::Reorder { share, by } => write!(f, " {share} {by}"),
            Self::BitErrors(rate) => write!(f, " {rate}"),
            Self::Flap { every, down } => write!(f, " {every} {down}"),
            Self::Width(width) => write!(f, " {width}"),
            Self::Speed(speed) => write!(f, " {speed}"),
        }
    }
}

impl<Port> Impaired<Port> {
    /// The same with its port named in another way.
    ///
    /// # Errors
    ///
    /// What `port` fails with.
    pub fn try_map<P, E>(self, port: impl FnOnce(Port) -> Result<P, E>) -> Result<Impaired<P>, E> {
        let Self { at, way, how, seed } = self;
        Ok(Impaired { at: port(at)?, way, how, seed })
    }

    /// What it does to the two ends of the cable, whose other one is `peer`: what arrives at each is impaired by chances of
    /// its own. What befalls a port is there alone.
    pub fn damage(self, peer: Port) -> impl Iterator<Item = Damage<Port>> {
        let Self { at, way, how, seed } = self;
        let of_port = how.is_of_port();
        let here = (way != Way::Out || of_port).then_some(Damage::Impaired { at, how, seed });
        let seed = seed.wrapping_add(1);
        let there = (way != Way::In && !of_port).then_some(Damage::Impaired { at: peer, how, seed });
        here.into_iter().chain(there)
    }

    /// What follows the word in its text: `5% in seed 7 at S-1:4`.
    pub(crate) fn of(word: Word, text: &str) -> Option<Self>
    where
        Port: FromStr,
    {
        let (start, at) = text.split_once(" at ")?;
        let (start, seed) = start.split_once(" seed ")?;
        let (amounts, way) = start.rsplit_once(' ')?;
        let way = Way::named(way)?;
        let seed: u32 = seed.parse().ok().filter(|number: &u32| number.to_string() == seed)?;
        Some(Self { at: at.parse().ok()?, way, how: Impairment::of(word, amounts)?, seed })
    }
}

impl<Port: fmt::Display> fmt::Display for Impaired<Port> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, way, how, seed } = self;
        write!(f, "{how} {} seed {seed} at {at}", way.name())
    }
}
