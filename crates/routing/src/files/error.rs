//! Errors of files, with their place.

use std::fmt;

use weft_wire::{Guid, Lid, Printable};

/// The first thing wrong with a file. Displays as one line: place, problem, offending text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The offending text; empty where something is missing.
    pub text: String,
    /// What is wrong.
    pub problem: Box<FileProblem>,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// Something else stands where this should.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A number that is too small or too large.
    #[error("{what} must be {min} to {max}")]
    Range {
        /// Which number.
        what: &'static str,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
    },
    /// No unicast LID.
    #[error("a LID is 0x1 to 0xbfff")]
    Lid,
    /// More on a line than belongs there.
    #[error("the line ends before this")]
    Surplus,
    /// An entry before the heading that would say whose it is.
    #[error("no heading says whose entry this is")]
    NoHeading,
    /// A GUID or LID for the second time.
    #[error("{0} stands here for the second time")]
    Twice(String),
    /// LIDs that end before they begin.
    #[error("the LIDs end before they begin")]
    Order,
    /// A number of LIDs that no LMC gives a port.
    #[error("a port has 1, 2, 4, 8, 16, 32, 64 or 128 LIDs, not {0}")]
    Count(u16),
    /// LIDs that begin where those of their LMC cannot.
    #[error("the first of {0} LIDs must be a multiple of {0}")]
    Misaligned(u16),
    /// LIDs that another port has.
    #[error("{0} has some of these LIDs already")]
    Overlap(Guid),
    /// A switch of some other fabric.
    #[error("the fabric has no switch of the GUID {0}")]
    UnknownSwitch(Guid),
    /// A node or an end port of some other fabric.
    #[error("the fabric has no node or end port of the GUID {0}")]
    UnknownGuid(Guid),
    /// A LID that no one has.
    #[error("no end port has the LID {0}")]
    UnknownLid(Lid),
    /// More end ports than LIDs.
    #[error(transparent)]
    Lids(#[from] crate::LidError),
    /// A port that its switch does not have.
    #[error("port {port} is out of range for `{node}`, whose ports are 0 to {count}")]
    PortOutOfRange {
        /// The port.
        port: u64,
        /// The switch's id.
        node: String,
        /// Its last port.
        count: u8,
    },
    /// A fabric that cannot be built.
    #[error(transparent)]
    Build(#[from] weft_topology::BuildError),
}

impl FileError {
    /// Something is wrong with a file as a whole.
    pub(super) fn of(file: &str, problem: impl Into<FileProblem>) -> Self {
        let problem = Box::new(problem.into());
        Self { file: file.to_owned(), line: 1, column: 1, text: String::new(), problem }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.problem)?;
        if self.text.is_empty() {
            return Ok(());
        }
        let cut = self.text.char_indices().nth(SHOWN_MAX).map(|(end, _)| end);
        let shown = Printable(&self.text[..cut.unwrap_or(self.text.len())]);
        write!(f, ": `{shown}{}`", cut.map_or("", |_| "…"))
    }
}

/// How many characters of an offending text are shown.
const SHOWN_MAX: usize = 80;

impl std::error::Error for FileError {}
