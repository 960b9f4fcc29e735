//! The file of the VM manager's journal, which outlives the process; what was not synced does so in part, or not at all.

use std::collections::VecDeque;

use weft_machine::Random;
use weft_vm::journal::{self, Writer};
use weft_vm::{Change, Record, Write};

use crate::DiskOptions;

/// The laboratory that a journal is of.
const LAB: &str = "simulation";

/// Writes to the VM manager's journal that were not synced, by what became of them, and syncs that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// On disk as a whole.
    pub kept: u64,
    /// On disk in part.
    pub torn: u64,
    /// Not on disk.
    pub missing: u64,
    /// Syncs that failed.
    pub full: u64,
}

/// The journal's file, and what is to be written there.
#[derive(Debug)]
pub(crate) struct Disk {
    bytes: Vec<u8>,
    writer: Writer,
    waiting: VecDeque<Write>,
    /// Whether a sync has failed: what is in the file is then not known to the process.
    has_failed: bool,
    random: Random,
    pub(crate) options: DiskOptions,
    pub(crate) counts: DiskCounts,
}

impl Disk {
    /// An empty file: the journal of a laboratory that has just been made.
    pub(super) fn new(options: DiskOptions, seed: u64) -> Self {
        Self {
            bytes: Vec::new(),
            writer: Writer::new(LAB, 0),
            waiting: VecDeque::new(),
            has_failed: false,
            random: Random::of_purpose(seed, "disk"),
            options,
            counts: DiskCounts::default(),
        }
    }

    /// What a process finds that begins. A line that a dying writer has left is cut off.
    pub(super) fn open(&mut self) -> Result<Option<Vec<Record>>, String> {
        self.waiting.clear();
        self.has_failed = false;
        let journal = journal::read(&self.bytes, LAB).map_err(|error| error.to_string())?;
        let (records, length) = journal.map_or_else(Default::default, |found| (found.records, found.bytes));
        self.bytes.truncate(length);
        self.writer = Writer::new(LAB, records.len());
        Ok(Some(records))
    }

    /// The process has ended.
    pub(super) fn close(&mut self) {
        if !self.waiting.is_empty() && self.draws(self.options.torn_per_mille) {
            self.tear();
        }
        self.counts.missing += self.waiting.len() as u64;
        self.waiting.clear();
    }

    /// A change that is to be written.
    pub(super) fn push(&mut self, write: Write) {
        self.waiting.push_back(write);
    }

    /// Everything up to a write is on disk, or nothing more will be.
    pub(super) fn sync(&mut self, number: u64) -> Result<(), String> {
        if self.has_failed || self.draws(self.options.full_per_mille) {
            if !std::mem::replace(&mut self.has_failed, true) {
                self.counts.full += 1;
                self.tear();
            }
            self.counts.missing += self.waiting.len() as u64;
            self.waiting.clear();
            return Err("no space left on device".to_owned());
        }
        while let Some(write) = self.waiting.pop_front_if(|write| write.number <= number) {
            self.write(&write.change);
        }
        Ok(())
    }

    fn draws(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.random.below(1000) < per_mille
    }

    fn write(&mut self, change: &Change) {
        let text = self.writer.bytes(change);
        if matches!(change, Change::Replace(_)) {
            self.bytes.clear();
        }
        self.bytes.extend(text.into_bytes());
    }

    /// Some writes are on disk, and a part of the next. A whole journal gets its name when all of it is on disk.
    fn tear(&mut self) {
        let whole = self.random.below(self.waiting.len() as u32 + 1);
        for write in self.waiting.drain(..whole as usize).collect::<Vec<_>>() {
            self.write(&write.change);
            self.counts.kept += 1;
        }
        if let Some(Write { change: change @ Change::Append(_), .. }) = self.waiting.front() {
            let text = self.writer.bytes(change);
            let part = self.random.below(text.len() as u32) as usize;
            self.bytes.extend(&text.as_bytes()[..part]);
            self.waiting.pop_front();
            self.counts.torn += 1;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use weft_vm::{HostName, Scheme, Slot};
    use weft_wire::Guid;

    use super::*;

    const RECORDS: u8 = 4;

    fn started(generation: u64) -> Record {
        let (scheme, next_guid) = (Scheme::Dynamic, Guid(7));
        Record::Started { generation, scheme, adopts: false, epoch: 0, next_guid }
    }

    fn tomb(vf: u8) -> Record {
        Record::Tomb(Slot { host: "host-0".parse::<HostName>().unwrap(), vf })
    }

    /// A journal of one record on disk, with more that wait.
    fn waiting(options: DiskOptions, seed: u64) -> Disk {
        let mut disk = Disk::new(options, seed);
        assert_eq!(disk.open(), Ok(Some(Vec::new())));
        disk.push(Write { number: 1, change: Change::Replace(vec![started(1)]) });
        disk.options = DiskOptions::default();
        assert_eq!(disk.sync(1), Ok(()));
        disk.options = options;
        for vf in 1..=RECORDS {
            disk.push(Write { number: 1 + u64::from(vf), change: Change::Append(tomb(vf)) });
        }
        disk
    }

    /// The journal has the synced record and some of those that waited, in order, and is read after any death.
    fn reads(disk: &mut Disk) -> usize {
        let records = disk.open().unwrap().unwrap();
        let expected: Vec<Record> = std::iter::once(started(1)).chain((1..=RECORDS).map(tomb)).collect();
        assert_eq!(records, expected[..records.len()]);
        let length = disk.bytes.len();
        disk.push(Write { number: 1, change: Change::Append(tomb(9)) });
        disk.options = DiskOptions::default();
        disk.sync(1).unwrap();
        assert!(disk.bytes.len() > length);
        assert_eq!(disk.open().unwrap().unwrap().last(), Some(&tomb(9)), "it goes on where it was cut");
        records.len()
    }

    #[test]
    fn a_torn_journal_is_read_up_to_the_tear() {
        let mut lengths = [0; 6];
        for seed in 0..200 {
            let mut disk = waiting(DiskOptions { torn_per_mille: 1000, full_per_mille: 0 }, seed);
            disk.close();
            let DiskCounts { kept, torn, missing, full } = disk.counts;
            assert_eq!((kept + torn + missing, full), (RECORDS.into(), 0));
            assert_eq!(reads(&mut disk) as u64, 1 + kept);
            lengths[1 + kept as usize] += 1;
        }
        assert!(lengths[1..].iter().all(|count| *count > 0), "{lengths:?}");
    }

    #[test]
    fn writes_that_were_not_synced_are_missing() {
        let mut disk = waiting(DiskOptions::default(), 1);
        disk.close();
        assert_eq!(disk.counts, DiskCounts { missing: RECORDS.into(), ..DiskCounts::default() });
        assert_eq!(reads(&mut disk), 1);
    }

    #[test]
    fn a_full_disk_takes_nothing_more_until_the_next_process() {
        for seed in 0..50 {
            let mut disk = waiting(DiskOptions { torn_per_mille: 0, full_per_mille: 1000 }, seed);
            disk.sync(2).unwrap_err();
            disk.push(Write { number: 6, change: Change::Append(tomb(6)) });
            disk.options = DiskOptions::default();
            disk.sync(6).unwrap_err();
            disk.close();
            assert_eq!((disk.counts.full, disk.waiting.len()), (1, 0));
            reads(&mut disk);
        }
    }

    /// A whole journal takes the old one's place when all of it is on disk.
    #[test]
    fn a_torn_replacement_leaves_the_old_journal() {
        for seed in 0..50 {
            let mut disk = waiting(DiskOptions { torn_per_mille: 1000, full_per_mille: 0 }, seed);
            disk.waiting.clear();
            disk.push(Write { number: 2, change: Change::Replace(vec![started(2)]) });
            disk.close();
            let generation = 1 + disk.counts.kept;
            assert_eq!(disk.open(), Ok(Some(vec![started(generation)])));
        }
    }
}
