//! Words and text of faults.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Fault, Process};

/// What somebody broke or repaired on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Fault"))]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// A process was killed.
    Kill,
    /// A process was started again.
    Restart,
    /// Both ends of a cable were unplugged.
    LinkDown,
    /// Both ends of a cable were plugged in.
    LinkUp,
    /// A fault that lasts was cleared by its name.
    Clear,
}

impl Word {
    /// The words of a [`Fault`], in the order of its variants: all but [`Word::Clear`], whose target is a fault.
    pub const OF_FAULTS: [Self; 4] = [Self::Kill, Self::Restart, Self::LinkDown, Self::LinkUp];

    /// Its name in commands, files and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::LinkDown => "link-down",
            Self::LinkUp => "link-up",
            Self::Clear => "clear",
        }
    }
}

/// A text is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFault {
    /// It begins with none of the words.
    #[error("`{0}` is not a fault; use kill, restart, link-down or link-up, and a name")]
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
    /// A fault of a word and the text of its target; none where the text names nothing, and for [`Word::Clear`].
    pub fn of(word: Word, target: &str) -> Option<Self> {
        let process = || target.parse::<Process<Node>>().ok();
        let port = || target.parse::<Port>().ok();
        match word {
            Word::Kill => process().map(Self::Kill),
            Word::Restart => process().map(Self::Restart),
            Word::LinkDown => port().map(Self::LinkDown),
            Word::LinkUp => port().map(Self::LinkUp),
            Word::Clear => None,
        }
    }
}

impl<Node: fmt::Display, Port: fmt::Display> fmt::Display for Fault<Node, Port> {
    /// The word and the target: `kill sm`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word().name();
        match self {
            Self::Kill(process) | Self::Restart(process) => write!(f, "{word} {process}"),
            Self::LinkDown(port) | Self::LinkUp(port) => write!(f, "{word} {port}"),
        }
    }
}

impl<Node: FromStr, Port: FromStr> FromStr for Fault<Node, Port> {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, BadFault> {
        let (name, target) = text.split_once(' ').unwrap_or((text, ""));
        let word = Word::OF_FAULTS.into_iter().find(|word| word.name() == name);
        let word = word.ok_or_else(|| BadFault::Word(name.to_owned()))?;
        let invalid = || BadFault::Target { word, target: target.to_owned() };
        Self::of(word, target).ok_or_else(invalid)
    }
}
