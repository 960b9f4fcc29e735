//! The journal as a file.
//!
//! ```text
//!   weft-vm-journal 1 LAB
//!   91a0c6f2 1 {"started":{…}}
//!   └ CRC32  │ └ the record
//!            └ its number
//! ```
//!
//! Lines of JSON, because a journal is also what one reads when something has gone wrong. The checksum is that of the number and the record.
//! A writer may die in the middle of a line: the last line may be cut, and is then left out. Everything else that is not as it was
//! written is refused.

use serde::{Deserialize, Serialize};

use crate::record::Record;

/// Bytes of a journal at most.
pub const JOURNAL_BYTES_MAX: usize = 64 << 20;

/// Bytes that are left for the first line, which has the laboratory's name.
pub(crate) const HEAD_BYTES: usize = 4096;

const MAGIC: &str = "weft-vm-journal 1 ";
/// A line without its record and number: a checksum, two spaces and a line break.
const FRAME_BYTES: usize = 11;
/// Digits of the highest number.
const NUMBER_BYTES: usize = 20;

/// A change of the journal, to be on disk before [`Input::Synced`](crate::Input::Synced) tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// Its number, one more than that of the write before.
    pub number: u64,
    /// What changes.
    pub change: Change,
}

/// A change of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// One more record.
    Append(Record),
    /// These records instead of all: the driver writes another file, syncs it and renames it over the old one.
    Replace(Vec<Record>),
}

impl Change {
    /// The kind of record that is written, in a word. A journal that is written as a whole begins with what a new manager says first.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Append(record) => record.name(),
            Self::Replace(records) => records.first().map_or("", Record::name),
        }
    }
}

/// A journal that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// What it says.
    pub records: Vec<Record>,
    /// The bytes that say it. The driver cuts the file to this length before it appends.
    pub bytes: usize,
}

/// Why a file is not this laboratory's journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// It is something else.
    #[error("this is no journal of a VM manager: its first line does not begin with `{}`", MAGIC.trim_end())]
    Foreign,
    /// It is another laboratory's.
    #[error("this is the journal of laboratory `{found}`, and this is `{expected}`")]
    OtherLab {
        /// Whose it is.
        found: String,
        /// Whose it should be.
        expected: String,
    },
    /// It is larger than [`JOURNAL_BYTES_MAX`].
    #[error("the journal has {0} bytes, and may have {JOURNAL_BYTES_MAX}")]
    TooLarge(usize),
    /// A line in the middle is not as it was written.
    #[error("line {line} of the journal is damaged: {why}")]
    Damaged {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Records are missing.
    #[error("line {line} of the journal is record {found}, and {expected} should follow")]
    Cut {
        /// The line, counted from 1.
        line: usize,
        /// The record's number.
        found: u64,
        /// The number that it should have.
        expected: u64,
    },
}

impl JournalError {
    /// The remedy.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Damaged { .. } | Self::Cut { .. } => {
                "move the journal away, and the manager adopts what it finds running"
            }
            _ => "move it away to begin a new one",
        }
    }
}

/// Bytes of a record's line at most, whatever its number.
pub fn line_bytes_max(record: &Record) -> usize {
    FRAME_BYTES + NUMBER_BYTES + json(record).len()
}

fn json(record: &Record) -> String {
    serde_json::to_string(record).expect("records have names for keys and no maps")
}

/// Makes a journal's lines.
#[derive(Clone, Debug)]
pub struct Writer {
    lab: String,
    /// The number of the record that was written last.
    last: u64,
}

impl Writer {
    /// For a journal with this number of records; 0 for one that is not there yet. `lab` has no line break.
    pub fn new(lab: &str, records: usize) -> Self {
        Self { lab: lab.to_owned(), last: records as u64 }
    }

    /// The bytes of a change: to be appended, or to be the whole file.
    pub fn bytes(&mut self, change: &Change) -> String {
        let (mut text, records) = match change {
            Change::Append(record) => (String::new(), std::slice::from_ref(record)),
            Change::Replace(records) => {
                self.last = 0;
                (format!("{MAGIC}{}\n", self.lab), records.as_slice())
            }
        };
        for record in records {
            self.last += 1;
            let body = format!("{} {}", self.last, json(record));
            text.push_str(&format!("{:08x} {body}\n", crc32fast::hash(body.as_bytes())));
        }
        text
    }
}

/// Reads a journal; `None` when its writer died before it had a whole record, or the file is empty.
///
/// # Errors
///
/// [`JournalError`]: it is foreign, damaged or cut.
pub fn read(bytes: &[u8], lab: &str) -> Result<Option<Journal>, JournalError> {
    if bytes.len() > JOURNAL_BYTES_MAX {
        return Err(JournalError::TooLarge(bytes.len()));
    }
    let head = format!("{MAGIC}{lab}\n");
    if head.as_bytes().starts_with(bytes) {
        return Ok(None);
    }
    let Some(rest) = bytes.strip_prefix(head.as_bytes()) else {
        return Err(foreign(bytes, lab));
    };
    let mut journal = Journal { records: Vec::new(), bytes: head.len() };
    let mut lines = rest.split_inclusive(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((i, line)) = lines.next() {
        let (is_last, line_number) = (lines.peek().is_none(), i + 2);
        match parse(line) {
            Ok((number, record)) => {
                let expected = journal.records.len() as u64 + 1;
                let is_start = matches!(record, Record::Started { .. });
                if number != expected || (number == 1 && !is_start) {
                    return Err(JournalError::Cut { line: line_number, found: number, expected });
                }
                journal.records.push(record);
                journal.bytes += line.len();
            }
            Err(_) if is_last => break,
            Err(why) => return Err(JournalError::Damaged { line: line_number, why }),
        }
    }
    Ok(Some(journal).filter(|journal| !journal.records.is_empty()))
}

fn foreign(bytes: &[u8], lab: &str) -> JournalError {
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let found = first.strip_prefix(MAGIC.as_bytes()).map(String::from_utf8_lossy);
    match found {
        Some(found) => JournalError::OtherLab { found: crate::agent::cut(&found), expected: lab.to_owned() },
        None => JournalError::Foreign,
    }
}

fn parse(line: &[u8]) -> Result<(u64, Record), String> {
    let line = line.strip_suffix(b"\n").ok_or("it does not end")?;
    let text = str::from_utf8(line).map_err(|error| error.to_string())?;
    let (sum, body) = text.split_once(' ').ok_or("it has no checksum")?;
    let sum = u32::from_str_radix(sum, 16).map_err(|_| "its checksum is no number")?;
    if sum != crc32fast::hash(body.as_bytes()) {
        return Err("its checksum is wrong".to_owned());
    }
    let (number, json) = body.split_once(' ').ok_or("it has no number")?;
    let number = number.parse().map_err(|_| "its number is none")?;
    let record = serde_json::from_str(json).map_err(|error| error.to_string())?;
    Ok((number, record))
}
