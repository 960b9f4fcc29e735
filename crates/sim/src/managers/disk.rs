//! The file of the VM manager's journal, which outlives the process; what was not synced does not.

use std::collections::VecDeque;

use weft_vm::journal::{self, Writer};
use weft_vm::{Change, Record, Write};

/// The laboratory that a journal is of.
const LAB: &str = "simulation";

/// The journal's file, and what is to be written there.
#[derive(Debug, Default)]
pub(super) struct Disk {
    bytes: Vec<u8>,
    writer: Option<Writer>,
    waiting: VecDeque<Write>,
}

impl Disk {
    /// What a process finds that begins.
    pub(super) fn open(&mut self) -> Result<Option<Vec<Record>>, String> {
        self.waiting.clear();
        let journal = journal::read(&self.bytes, LAB).map_err(|error| error.to_string())?;
        let records = journal.map(|journal| journal.records);
        self.writer = Some(Writer::new(LAB, records.as_ref().map_or(0, Vec::len)));
        // A laboratory that has just been made has an empty journal.
        Ok(Some(records.unwrap_or_default()))
    }

    /// The process has ended, with what was not synced.
    pub(super) fn close(&mut self) {
        self.waiting.clear();
    }

    /// A change that is to be written.
    pub(super) fn push(&mut self, write: Write) {
        self.waiting.push_back(write);
    }

    /// Everything up to a write is on disk.
    pub(super) fn sync(&mut self, number: u64) {
        while let Some(write) = self.waiting.pop_front_if(|write| write.number <= number) {
            let Some(writer) = &mut self.writer else { return };
            let text = writer.bytes(&write.change);
            if matches!(write.change, Change::Replace(_)) {
                self.bytes.clear();
            }
            self.bytes.extend(text.into_bytes());
        }
    }
}
