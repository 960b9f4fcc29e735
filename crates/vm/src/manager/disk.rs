//! Writes to disk, and when the journal is written as a whole again: before it has too many records, or more bytes than can be read.

use super::VmManager;
use crate::journal::{Change, HEAD_BYTES, Write, line_bytes_max};
use crate::output::Output;
use crate::record::Record;

/// Records for each virtual machine that are appended at least before the journal is written again.
const RECORDS_PER_VM: u64 = 8;

/// Writes to the journal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Disk {
    pub(super) written: u64,
    pub(super) synced: u64,
    /// Records since the journal was written as a whole.
    appended: u64,
    /// Bytes of the journal at most.
    bytes: usize,
    /// The same when it was written as a whole.
    whole: usize,
}

impl VmManager {
    /// Takes a record into the book and has it written. The write that has to be on disk before it counts.
    pub(super) fn record(&mut self, record: Record) -> u64 {
        if let Err(wrong) = self.book.apply(&record) {
            // The book checks what a file says; what the manager says itself was decided from the book.
            self.stop(format!("a decision contradicts the journal: {wrong}"));
            return u64::MAX;
        }
        self.disk.appended += 1;
        self.disk.bytes += line_bytes_max(&record);
        let most = self.options.compact_after.max(RECORDS_PER_VM * self.book.vms().len() as u64);
        if self.disk.appended > most || self.disk.bytes > self.options.journal_bytes_max {
            return self.write_whole();
        }
        self.write(Change::Append(record))
    }

    /// Has the journal written with what its records have come to.
    pub(super) fn write_whole(&mut self) -> u64 {
        let records = self.book.records();
        let bytes = HEAD_BYTES + records.iter().map(line_bytes_max).sum::<usize>();
        (self.disk.appended, self.disk.bytes, self.disk.whole) = (0, bytes, bytes);
        let most = self.options.journal_bytes_max;
        if bytes > most {
            // The journal on disk can be read; this one could not be.
            self.stop(format!("the journal would have {bytes} bytes, and may have {most}"));
            return u64::MAX;
        }
        self.write(Change::Replace(records))
    }

    /// Whether the journal has room for another virtual machine: what each comes to may grow while it moves, and the rest is for
    /// steps between two whole journals.
    pub(super) fn has_room(&mut self) -> bool {
        let most = self.options.journal_bytes_max / 2;
        if self.disk.whole > most && self.disk.appended > 0 {
            // Machines may have gone since.
            self.write_whole();
        }
        self.disk.whole <= most
    }

    fn write(&mut self, change: Change) -> u64 {
        self.disk.written += 1;
        self.outputs.push_back(Output::Journal(Write { number: self.disk.written, change }));
        self.disk.written
    }
}
