//! A disk that forgets what was not synced, and may keep half of a line.

use std::collections::VecDeque;

use weft_machine::Random;
use weft_vm::journal::{Writer, read};
use weft_vm::{Change, Record, Write};

pub(crate) const LAB: &str = "model";

#[derive(Debug)]
pub(crate) struct Disk {
    bytes: Vec<u8>,
    unsynced: VecDeque<(u64, bool, Vec<u8>)>,
    writer: Writer,
    pub(crate) torn: u64,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), unsynced: VecDeque::new(), writer: Writer::new(LAB, 0), torn: 0 }
    }

    pub(crate) fn write(&mut self, write: &Write) {
        let bytes = self.writer.bytes(&write.change).into_bytes();
        self.unsynced.push_back((write.number, matches!(write.change, Change::Replace(_)), bytes));
    }

    /// Everything up to a write is on disk.
    pub(crate) fn sync(&mut self, number: u64) {
        while self.unsynced.front().is_some_and(|(first, ..)| *first <= number) {
            let (_, replaces, bytes) = self.unsynced.pop_front().unwrap();
            if replaces {
                self.bytes.clear();
            }
            self.bytes.extend(bytes);
        }
    }

    /// The writer dies.
    pub(crate) fn crash(&mut self, random: &mut Random) {
        for (_, replaces, bytes) in std::mem::take(&mut self.unsynced) {
            let kept = random.below(bytes.len() as u32 + 1) as usize;
            if replaces {
                // The new file has its name or it does not.
                if random.below(2) == 0 {
                    break;
                }
                self.bytes = bytes;
                continue;
            }
            self.bytes.extend(&bytes[..kept]);
            if kept < bytes.len() {
                self.torn += u64::from(kept > 0);
                break;
            }
        }
    }

    /// What a new manager finds.
    pub(crate) fn open(&mut self) -> Result<Option<Vec<Record>>, String> {
        let journal = read(&self.bytes, LAB).map_err(|error| error.to_string())?;
        let Some(journal) = journal else {
            *self = Self { torn: self.torn, ..Self::new() };
            return Ok(None);
        };
        self.bytes.truncate(journal.bytes);
        self.writer = Writer::new(LAB, journal.records.len());
        Ok(Some(journal.records))
    }

    /// An operator removes the journal.
    pub(crate) fn lose(&mut self) {
        *self = Self { torn: self.torn, ..Self::new() };
    }

    /// The records that are on disk.
    pub(crate) fn synced(&self) -> Vec<Record> {
        read(&self.bytes, LAB).unwrap().map(|journal| journal.records).unwrap_or_default()
    }
}
