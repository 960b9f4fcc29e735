//! What can be wrong with the packets of a cable whose link stays up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::amount::{Lag, Rate, Share};
use crate::{Damage, Word};

/// What happens to packets on their way over a cable. Flow control is late with them, and never lost: IBA repeats it.
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
}

/// Which way over a cable, seen from the port that it is told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Both ways.
    #[default]
    Both,
    /// What arrives at the port.
    In,
    /// What the port sends.
    Out,
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
        }
    }

    /// The impairment of a word, and of its amounts as [`fmt::Display`] writes them: `5%`, `2ms`, `5% 2ms`, `1e-9`.
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
            Word::Kill | Word::Restart | Word::LinkDown | Word::LinkUp | Word::Clear => return None,
        })
    }
}

impl fmt::Display for Impairment {
    /// The word and the amounts: `reorder 5% 2ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word().name())?;
        match self {
            Self::Loss(share) | Self::Duplicate(share) => write!(f, " {share}"),
            Self::Delay(lag) | Self::Jitter(lag) => write!(f, " {lag}"),
            Self::Reorder { share, by } => write!(f, " {share} {by}"),
            Self::BitErrors(rate) => write!(f, " {rate}"),
        }
    }
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Both, Self::In, Self::Out];

    /// Its name in commands, files and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::In => "in",
            Self::Out => "out",
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
    /// its own.
    pub fn damage(self, peer: Port) -> impl Iterator<Item = Damage<Port>> {
        let Self { at, way, how, seed } = self;
        let here = (way != Way::Out).then_some(Damage::Impaired { at, how, seed });
        let seed = seed.wrapping_add(1);
        let there = (way != Way::In).then_some(Damage::Impaired { at: peer, how, seed });
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
        let way = Way::ALL.into_iter().find(|known| known.name() == way)?;
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
