//! The text of faults: a word, and what it names.

use std::fmt;
use std::str::FromStr;

use crate::{Fault, Impaired, Presented, Process, Word};

/// A text is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFault {
    /// It begins with none of the words.
    #[error(
        "`{0}` is not a fault; use kill, restart, link-down, link-up, freeze, thaw, partition, heal, bad-identity or good-identity and a name, or an impairment"
    )]
    Word(String),
    /// What follows the word names nothing.
    #[error("{} what? `{target}` names nothing", .word.name())]
    Target {
        /// The word.
        word: Word,
        /// What follows it.
        target: String,
    },
}

impl<Node: FromStr, Port: FromStr> Fault<Node, Port> {
    /// A fault of a word and the text behind it; none where that names nothing. Behind [`Word::Clear`] there is the impairment
    /// that ends, since a fault's id says nothing of what it is.
    pub fn of(word: Word, target: &str) -> Option<Self> {
        let process = || target.parse::<Process<Node>>().ok();
        let port = || target.parse::<Port>().ok();
        let node = || target.parse::<Node>().ok();
        let nodes = || target.parse::<crate::Nodes<Node>>().ok();
        match word {
            Word::Kill => process().map(Self::Kill),
            Word::Restart => process().map(Self::Restart),
            Word::LinkDown => port().map(Self::LinkDown),
            Word::LinkUp => port().map(Self::LinkUp),
            Word::Freeze => process().map(Self::Freeze),
            Word::Thaw => process().map(Self::Thaw),
            Word::Partition => nodes().map(Self::Partition),
            Word::Heal => nodes().map(Self::Heal),
            Word::BadIdentity => Presented::of(target).map(Self::BadIdentity),
            Word::GoodIdentity => node().map(Self::GoodIdentity),
            Word::Clear => {
                let (word, target) = target.split_once(' ')?;
                let word = Word::named(word)?;
                Impaired::of(word, target).map(Self::Clear)
            }
            Word::Loss
            | Word::Delay
            | Word::Jitter
            | Word::Reorder
            | Word::Duplicate
            | Word::BitErrors
            | Word::Flap
            | Word::Width
            | Word::Speed
            | Word::SlowDrain => Impaired::of(word, target).map(Self::Impair),
        }
    }
}

impl<Node: fmt::Display, Port: fmt::Display> fmt::Display for Fault<Node, Port> {
    /// The word and the target: `kill sm`, `loss 5% in seed 7 at S-1:4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word().name();
        match self {
            Self::Kill(process) | Self::Restart(process) | Self::Freeze(process) | Self::Thaw(process) => {
                write!(f, "{word} {process}")
            }
            Self::LinkDown(port) | Self::LinkUp(port) => write!(f, "{word} {port}"),
            Self::GoodIdentity(node) => write!(f, "{word} {node}"),
            Self::BadIdentity(presented) => write!(f, "{word} {presented}"),
            Self::Partition(nodes) | Self::Heal(nodes) => write!(f, "{word} {nodes}"),
            Self::Impair(impaired) => impaired.fmt(f),
            Self::Clear(impaired) => write!(f, "{word} {impaired}"),
        }
    }
}

impl<Node: FromStr, Port: FromStr> FromStr for Fault<Node, Port> {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, BadFault> {
        let (name, target) = text.split_once(' ').unwrap_or((text, ""));
        let word = Word::named(name).ok_or_else(|| BadFault::Word(name.to_owned()))?;
        let invalid = || BadFault::Target { word, target: target.to_owned() };
        Self::of(word, target).ok_or_else(invalid)
    }
}
