//! The journal as a file: what a crash leaves, what is damaged, and what belongs to another laboratory.

use weft_machine::{Machine, Time};
use weft_vm::journal::{Writer, read};
use weft_vm::{
    Change, Event, Input, JOURNAL_BYTES_MAX, JournalError, Options, Output, Place, Proof, Record, Request,
    RequestId, Scheme, Slot, Step, VmError, VmManager,
};
use weft_wire::Guid;

fn started(generation: u64) -> Record {
    let (scheme, next_guid) = (Scheme::Prepopulated, Guid(0x10));
    Record::Started { generation, scheme, adopts: false, epoch: 0, next_guid }
}

fn records() -> Vec<Record> {
    let place = |host: &str| Place { slot: Slot { host: host.parse().unwrap(), vf: 1 }, incarnation: 7 };
    let name = || "web1".parse().unwrap();
    let step = |step, epoch| Record::Step { name: name(), step, epoch };
    vec![
        started(1),
        Record::Create { name: name(), identity: Box::default(), place: place("a"), epoch: 1 },
        Record::Created(name()),
        Record::Reserve { name: name(), to: place("b"), displaced: None, cold: false, epoch: 2 },
        step(Step::Freeze, 3),
        step(Step::Import, 4),
        step(Step::Reroute, 5),
        step(Step::Commit, 6),
        step(Step::Done, 6),
        Record::Lost { name: name(), proof: Proof::Absent(place("b").slot) },
        Record::Gone(name()),
    ]
}

fn bytes(records: &[Record]) -> Vec<u8> {
    Writer::new("lab", 0).bytes(&Change::Replace(records.to_vec())).into_bytes()
}

#[test]
fn every_kind_of_record_is_listed_by_its_name() {
    let names: Vec<&str> = records().iter().map(Record::name).collect();
    let steps = Step::ALL.map(Step::name);
    assert!(names.iter().chain(&steps).all(|name| Record::NAMES.contains(name)), "{names:?}, {steps:?}");
    assert_eq!(Change::Replace(records()).name(), "started");
    assert_eq!(Change::Append(records()[1].clone()).name(), "create");
}

#[test]
fn a_torn_journal_is_read_to_its_last_whole_record() {
    let (records, all) = (records(), bytes(&records()));
    let mut longest = 0;
    for end in 0..=all.len() {
        let found = read(&all[..end], "lab").unwrap_or_else(|error| panic!("{end} bytes: {error}"));
        let found = found.map(|journal| {
            assert!(journal.bytes <= end);
            assert_eq!(journal.records, records[..journal.records.len()]);
            // A writer that goes on from there has a whole journal.
            let mut next = all[..journal.bytes].to_vec();
            let more = Change::Append(started(9));
            next.extend(Writer::new("lab", journal.records.len()).bytes(&more).into_bytes());
            let again = read(&next, "lab").unwrap().unwrap();
            assert_eq!(again.records.last(), Some(&started(9)));
            journal.records.len()
        });
        let found = found.unwrap_or(0);
        assert!(found >= longest, "{end} bytes");
        longest = found;
    }
    assert_eq!(longest, records.len());
}

#[test]
fn a_changed_byte_is_never_taken_for_what_was_written() {
    let (records, all) = (records(), bytes(&records()));
    let last_line = all[..all.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for at in 0..all.len() {
        let mut changed = all.clone();
        changed[at] ^= 0x10;
        match read(&changed, "lab") {
            // The last line may be cut, and is then left out; without the break before it, it is one with the line before.
            Ok(Some(journal)) => {
                assert!(at + 1 >= last_line, "byte {at}: {journal:?}");
                let left = if at < last_line { 2 } else { 1 };
                assert_eq!(journal.records, records[..records.len() - left]);
            }
            Ok(None) => panic!("byte {at}: nothing is left"),
            Err(error) => assert!(at + 1 < last_line, "byte {at}: {error}"),
        }
    }
}

#[test]
fn foreign_and_cut_journals_are_refused_in_words() {
    let all = String::from_utf8(bytes(&records())).unwrap();
    let lines: Vec<&str> = all.split_inclusive('\n').collect();
    let without = |line: usize| -> Vec<u8> {
        lines.iter().enumerate().filter(|(i, _)| *i != line).flat_map(|(_, line)| line.bytes()).collect()
    };
    let cases: [(Vec<u8>, &str, &str); 5] = [
        (b"[package]\nname = \"weft\"\n".to_vec(), "lab", "no journal of a VM manager"),
        (bytes(&records()), "other", "the journal of laboratory `lab`, and this is `other`"),
        (without(1), "lab", "line 2 of the journal is record 2, and 1 should follow"),
        (without(4), "lab", "line 5 of the journal is record 5, and 4 should follow"),
        (bytes(&records()[1..]), "lab", "line 2 of the journal is record 1, and 1 should follow"),
    ];
    for (bytes, lab, words) in cases {
        let error = read(&bytes, lab).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let large = vec![b'x'; JOURNAL_BYTES_MAX + 1];
    assert_eq!(read(&large, "lab"), Err(JournalError::TooLarge(JOURNAL_BYTES_MAX + 1)));
    assert_eq!(read(b"", "lab"), Ok(None));
}

/// What a manager says of a journal, and to a client afterwards.
fn answer(journal: Vec<Record>, options: Options) -> String {
    let mut manager = VmManager::new(options);
    manager.handle_input(
        Time::ZERO,
        Input::Start { journal: Some(journal), hosts: Vec::new(), guids: Vec::new() },
    );
    let outputs: Vec<Output> = std::iter::from_fn(|| manager.poll_output()).collect();
    assert!(matches!(&outputs[..], [Output::Event(Event::ManagerStopped { .. })]), "{outputs:?}");
    assert_eq!(manager.next_timer(), None);
    manager.handle_input(Time::ZERO, Input::Request { id: RequestId(1), request: Request::List });
    match manager.poll_output() {
        Some(Output::Reply { result: Err(error @ VmError::Stopped(_)), .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_journal_that_contradicts_itself_stops_the_manager_in_words() {
    let all = records();
    let without = |skip: usize| -> Vec<Record> {
        all.iter().enumerate().filter(|(i, _)| *i != skip).map(|(_, record)| record.clone()).collect()
    };
    let twice = |record: usize| -> Vec<Record> {
        let mut twice = all.clone();
        twice.insert(record, all[record].clone());
        twice
    };
    let cases = [
        (without(1), "record 2 contradicts earlier ones: there is no `web1`"),
        (without(2), "`web1` does not run and is to move"),
        (without(3), "`web1` does not move and has the step freeze"),
        (without(5), "the step commit of `web1`, which was not imported"),
        (without(7), "the step done of `web1` after reroute"),
        (twice(0), "generation 1 after 1"),
        (twice(1), "a second `web1`"),
    ];
    for (journal, words) in cases {
        let error = answer(journal, Options::default());
        assert!(error.contains(words), "{error}");
    }
    let other = Options { scheme: Scheme::Dynamic, ..Options::default() };
    let error = answer(all[..3].to_vec(), other);
    assert!(
        error.contains("the journal has virtual machines with prepopulated LIDs, not dynamic"),
        "{error}"
    );
}
