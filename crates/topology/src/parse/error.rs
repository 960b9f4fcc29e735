//! Errors of a topology file, with their place.

use std::fmt;

use weft_wire::{Guid, Printable};

/// The first thing wrong with a topology file. Displays as one line: place, problem, offending text, hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The file, as the caller or an `include` line named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The offending text; empty where something is missing.
    pub text: String,
    /// The problem.
    pub problem: Box<Problem>,
    /// What may help.
    pub hint: Option<String>,
}

/// A place in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A line that begins with no known keyword.
    #[error("unknown keyword")]
    UnknownKeyword,
    /// Something else stands where this should.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A number that is too small or too large.
    #[error("{what} must be {min} to {max}")]
    NumberRange {
        /// Which number.
        what: &'static str,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
    },
    /// A quoted text without its closing quote.
    #[error("a quoted text is not closed")]
    Unterminated,
    /// The file's last line stops in the middle.
    #[error("the file ends in the middle of a line")]
    Truncated,
    /// A file without nodes.
    #[error("the file describes no node")]
    Empty,
    /// A link rate that does not exist.
    #[error("no such link rate")]
    UnknownRate,
    /// `#` or `@` in an id.
    #[error("`#` and `@` are reserved and cannot be part of a name")]
    ReservedCharacter,
    /// A control character in an id.
    #[error("control characters cannot be part of a name")]
    ControlCharacter,
    /// A port line before any node, or after a blank line.
    #[error("this port line belongs to no node")]
    PortOutsideNode,
    /// A port that its node does not have.
    #[error("port {port} is out of range for `{node}`, whose ports are 1 to {count}")]
    PortOutOfRange {
        /// The port.
        port: u64,
        /// The node's id.
        node: String,
        /// The node's last port.
        count: u8,
    },
    /// Two nodes with one id.
    #[error("the id `{id}` is already that of the node at {other}")]
    DuplicateId {
        /// The id.
        id: String,
        /// Where it was first.
        other: Position,
    },
    /// Two nodes or ports with one GUID.
    #[error("the GUID {guid} is already that of {owner} at {other}")]
    DuplicateGuid {
        /// The GUID.
        guid: Guid,
        /// Its owner.
        owner: String,
        /// Where it was first.
        other: Position,
    },
    /// Two lines for one port.
    #[error("port {port} of `{node}` already has a line at {other}")]
    PortTwice {
        /// The port.
        port: u8,
        /// The node's id.
        node: String,
        /// Where it was first.
        other: Position,
    },
    /// Two ports with one alias.
    #[error("the alias `{alias}` is already given at {other}")]
    AliasTwice {
        /// The alias.
        alias: String,
        /// Where it was first.
        other: Position,
    },
    /// A cable to a node that no line describes.
    #[error("node `{0}` is referenced but never defined")]
    MissingNode(String),
    /// A cable to an alias that no line gives.
    #[error("the alias `{0}` is nowhere given")]
    MissingAlias(String),
    /// A port cabled to itself.
    #[error("port {port} of `{node}` is cabled to itself")]
    SelfCabled {
        /// The node's id.
        node: String,
        /// The port.
        port: u8,
    },
    /// Two lines that contradict each other about one cable.
    #[error("the two ends of a cable disagree: here {here}, but {there} at {other}")]
    Disagreement {
        /// What this line says.
        here: String,
        /// What the other line says.
        there: String,
        /// The other line.
        other: Position,
    },
    /// Two ends without a width or a speed in common.
    #[error("the two ends of this cable allow no width and speed in common")]
    NoCommonRate,
    /// More than a reader is willing to take.
    #[error("too large: more than {max} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The most that is taken.
        max: usize,
    },
    /// A file that could not be included.
    #[error("cannot include this file: {0}")]
    Include(String),
    /// Bytes that are no UTF-8.
    #[error("not UTF-8 text")]
    NotUtf8,
    /// A fabric that cannot be built for another reason.
    #[error(transparent)]
    Build(#[from] crate::BuildError),
}

weft_wire::displayed!(Position { file, line, column } => "{file}:{line}:{column}");

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.problem)?;
        if !self.text.is_empty() {
            write!(f, ": `{}`", Shown(&self.text))?;
        }
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
    }
}

impl std::error::Error for ParseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.problem {
            Problem::Build(error) => Some(error),
            _ => None,
        }
    }
}

/// Offending text in one line: control characters escaped, the rest cut where it gets long.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 80;
        let cut = self.0.char_indices().nth(SHOWN_MAX).map(|(end, _)| end);
        write!(f, "{}{}", Printable(&self.0[..cut.unwrap_or(self.0.len())]), cut.map_or("", |_| "…"))
    }
}
