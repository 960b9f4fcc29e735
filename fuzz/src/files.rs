//! Files that people write or processes keep: experiments, schedules of faults, partitions, the VM manager's journal.

use std::sync::LazyLock;

use weft_experiment::{ExperimentFile, ScheduleFile};
use weft_machine::{Machine, Time};
use weft_routing::files::partitions::PartitionsFile;
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, ring};
use weft_vm::journal::{Writer, read};
use weft_vm::{Change, Input, Options, Record, VmManager};

/// The laboratory of journals.
const LAB: &str = "fuzz";

/// Three switches with a host each.
static FABRIC: LazyLock<Fabric> = LazyLock::new(|| ring(3, 1, &GenerateOptions::default()).expect("a ring"));

/// An experiment: each of its runs can be read, and nothing of one happens after its end.
///
/// # Panics
/// When a run of an accepted file cannot be read, or something lasts longer than the run.
pub fn experiment(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(file) = ExperimentFile::parse("fuzz", text) else { return };
    let runs = file.runs();
    assert!((1..=10_000).contains(&runs.len()), "{} runs", runs.len());
    for run in runs.iter().take(8) {
        let experiment = file.experiment(run).expect("each run was read before");
        assert!(experiment.faults.iter().all(|fault| fault.at <= experiment.duration));
    }
}

/// A schedule of faults: what is accepted ends within the hour, and is written so that it reads the same again.
///
/// # Panics
/// When it does not.
pub fn schedule(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(file) = ScheduleFile::parse("fuzz", text) else { return };
    assert!(weft_chaos::ends_at(&file.faults) <= Time::from_secs(3600));
    let written = file.to_string();
    assert_eq!(ScheduleFile::parse("written", &written).as_ref(), Ok(&file), "{written}");
    let steps = weft_chaos::steps(&file.faults);
    assert!(steps.is_sorted_by_key(|(at, _)| *at));
}

/// A file of partitions: what is accepted is written so that it reads the same again, and resolves.
///
/// # Panics
/// When it does not.
pub fn partitions(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(file) = PartitionsFile::parse("fuzz", text) else { return };
    let written = file.to_string();
    assert_eq!(PartitionsFile::parse("written", &written).as_ref(), Ok(&file), "{written}");
    let of_manager = FABRIC.hosts().next().and_then(|(_, host)| host.ports.get(1)).map(|port| port.guid);
    for manager in [None, of_manager] {
        let resolved = file.resolve(&FABRIC, manager);
        let mut keys: Vec<u16> = resolved.list.iter().map(|partition| partition.pkey).collect();
        keys.sort_unstable();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "a P_Key has one partition: {keys:?}");
    }
}

/// A journal, as it is; and lines of it that get their checksums and numbers here, which chance would not find. A manager begins with
/// what was read.
///
/// # Panics
/// When what was read is written so that it reads differently.
pub fn journal(bytes: &[u8]) {
    if let Ok(Some(journal)) = read(bytes, LAB) {
        assert!(journal.bytes <= bytes.len());
        begin_with(journal.records);
    }
    let records = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let records: Vec<Record> = records.collect();
    let whole = Writer::new(LAB, 0).bytes(&Change::Replace(records.clone()));
    match read(whole.as_bytes(), LAB) {
        Ok(Some(journal)) => {
            assert_eq!((&journal.records, journal.bytes), (&records, whole.len()));
            begin_with(records);
        }
        Ok(None) => assert!(records.is_empty()),
        // It does not begin as journals do.
        Err(_) => assert!(!matches!(records.first(), Some(Record::Started { .. }))),
    }
}

fn begin_with(records: Vec<Record>) {
    let mut manager = VmManager::new(Options::default());
    let start = Input::Start { journal: Some(records), hosts: Vec::new(), guids: Vec::new() };
    manager.handle_input(Time::ZERO, start);
    // It looks for its hosts for ever: a few rounds show what it makes of the journal.
    for _ in 0..8 {
        while manager.poll_output().is_some() {}
        let Some(at) = manager.poll_timeout() else { return };
        manager.handle_timeout(at);
    }
}
