//! Growth with a fleet, of what grows and what must not; and a journal that stays readable.

use std::collections::{BTreeMap, VecDeque};

use weft_wire::{Lid, PortNum};

use super::*;
use crate::agent::{Act, Adapter, Content, Deed, HostReport, Outcome, SlotReport};
use crate::identity::{PortIdentity, Scheme};
use crate::journal::{self, Change, Writer};
use crate::request::{Create, Request};
use crate::steps;

/// Slots of each host.
const VFS: u8 = 4;

fn report(number: u64, scheme: Scheme) -> HostReport {
    let slot = |vf: u8| {
        let guid = Guid((number << 8) + u64::from(vf) + (1 << 40));
        let configured = PortIdentity { node_guid: guid, port_guid: guid, lid: Lid(1) };
        let content = if scheme == Scheme::Dynamic { Content::Bare } else { Content::Spare(configured) };
        SlotReport { vf, configured, epoch: 0, content }
    };
    let (port_guid, system_guid) = (Guid((1 << 41) + number), Guid((1 << 42) + number));
    let adapter = Adapter { port_guid, system_guid, port_num: PortNum(1), ..Adapter::default() };
    HostReport { incarnation: 1, generation: 0, adapter, slots: (1..=VFS).map(slot).collect() }
}

/// A manager whose agents and disk do everything at once.
struct Lab {
    manager: VmManager,
    reports: BTreeMap<HostName, HostReport>,
    file: Vec<u8>,
    writer: Writer,
    /// The most bytes that the journal has had.
    longest: usize,
    whole: u32,
    replies: Vec<Result<Reply, VmError>>,
    asked: u64,
}

impl Lab {
    fn new(hosts: u64, options: Options) -> Self {
        Self::starting(hosts, options, Some(Vec::new()))
    }

    fn starting(hosts: u64, options: Options, journal: Option<Vec<Record>>) -> Self {
        let name = |number: u64| format!("host-{number}").parse().unwrap();
        let reports: BTreeMap<HostName, _> =
            (0..hosts).map(|number| (name(number), report(number, options.scheme))).collect();
        let hosts: Vec<HostName> = reports.keys().cloned().collect();
        let (manager, writer) = (VmManager::new(options), Writer::new("lab", 0));
        let (file, replies) = (Vec::new(), Vec::new());
        let mut lab = Self { manager, reports, file, writer, longest: 0, whole: 0, replies, asked: 0 };
        let start = Input::Start { journal, hosts: hosts.clone(), guids: Vec::new() };
        lab.feed(start);
        hosts.into_iter().for_each(|host| lab.feed(Input::HostUp(host)));
        lab
    }

    fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.manager.handle_input(Time::ZERO, input);
            while let Some(output) = self.manager.poll_output() {
                inputs.extend(self.carry_out(output));
            }
        }
    }

    fn carry_out(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::Journal(write) => {
                if let Change::Replace(_) = write.change {
                    self.file.clear();
                    self.whole += 1;
                }
                self.file.extend(self.writer.bytes(&write.change).into_bytes());
                self.longest = self.longest.max(self.file.len());
                Some(Input::Synced(write.number))
            }
            Output::Command { host, command } => {
                let outcome = match command.act {
                    Act::Slot { deed: Deed::Create(occupant), .. } => {
                        Outcome::Done(Content::Running(occupant))
                    }
                    Act::Slot { deed: Deed::Clear(port), .. } => {
                        Outcome::Done(port.map_or(Content::Bare, Content::Spare))
                    }
                    _ => Outcome::Report(Box::new(self.reports[&host].clone())),
                };
                Some(Input::Answer { host, number: command.number, outcome })
            }
            Output::Reply { result, .. } => {
                self.replies.push(result);
                None
            }
            Output::AskSm(_) | Output::Event(_) => None,
        }
    }

    fn ask(&mut self, request: Request) {
        self.asked += 1;
        self.feed(Input::Request { id: RequestId(self.asked), request });
    }
}

/// Steps are users of GUIDs and machines that were looked at. A machine is looked at when its record is on disk, when its agent has
/// answered, when that is on disk, and each time once more to see that there is nothing left to do. A slot's GUID has one user, the slot
/// itself. So there are few steps for each machine, however large the fleet. Walked through, 400 machines would be 400² for the GUIDs
/// of their slots alone.
#[test]
fn a_fleet_takes_steps_in_proportion_to_its_size() {
    for scheme in [Scheme::Prepopulated, Scheme::Dynamic] {
        let steps: Vec<u64> =
            [100, 200, 400].into_iter().map(|machines| steps_of(machines, scheme)).collect();
        assert!(steps[1] <= 2 * steps[0] + 20 && steps[2] <= 4 * steps[0] + 60, "{scheme:?}: {steps:?}");
    }
}

fn steps_of(machines: u32, scheme: Scheme) -> u64 {
    let mut lab = Lab::new(u64::from(machines) / u64::from(VFS), Options { scheme, ..Options::default() });
    steps::taken();
    assert_eq!(lab.manager.census().slots_free, u64::from(machines));
    assert!(steps::taken() <= 2 * u64::from(machines), "a slot's GUIDs have one user");
    let fleet = Create { count: Some(machines), ..Create::new("fleet".parse().unwrap(), None) };
    lab.ask(Request::Create(fleet));
    let made = match &lab.replies[..] {
        [Ok(Reply::Created(made))] => made.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!((made as u32, lab.manager.census().slots_free), (machines, 0));
    let steps = steps::taken();
    assert!(steps <= 16 * u64::from(machines), "{steps} steps for {machines} machines");
    steps
}

/// Without its journal a manager asks of each slot whether another one has the identity of its configuration. For each of its two GUIDs it
/// looks at the slot itself and no other; walked through, 400 slots would be 400².
#[test]
fn slots_are_found_again_in_steps_in_proportion_to_their_number() {
    let scheme = Scheme::Prepopulated;
    for slots in [100, 200, 400] {
        steps::taken();
        let lab = Lab::starting(slots / u64::from(VFS), Options { scheme, ..Options::default() }, None);
        let steps = steps::taken();
        assert!(lab.manager.book.adopts);
        assert!((slots..=4 * slots).contains(&steps), "{steps} steps for {slots} slots");
        assert_eq!(lab.manager.census().slots_free, slots);
    }
}

/// The count of records would let it grow to 64 MiB and beyond, which no manager reads any more.
#[test]
fn a_journal_never_has_more_bytes_than_can_be_read() {
    let (journal_bytes_max, compact_after) = (64 << 10, u64::MAX);
    let scheme = Scheme::Dynamic;
    let mut lab = Lab::new(60, Options { scheme, journal_bytes_max, compact_after, ..Options::default() });
    let name = |number: u32| format!("{}-{number:03}", "x".repeat(60)).parse::<VmName>().unwrap();
    let mut made = 0;
    loop {
        lab.ask(Request::Create(Create::new(name(made), None)));
        match lab.replies.pop() {
            Some(Ok(_)) => made += 1,
            Some(Err(VmError::JournalFull)) => break,
            other => panic!("{other:?} after {made}"),
        }
    }
    assert!((50..240).contains(&made), "{made} machines");
    // There is room for what those that are there do.
    for lid in 1..2000 {
        lab.manager.record(Record::HasLid { name: name(0), lid: Lid(lid) });
        lab.ask(Request::List);
        assert!(matches!(lab.replies.pop(), Some(Ok(Reply::List(_)))), "it goes on");
    }
    assert!(lab.longest <= journal_bytes_max && lab.whole > 1, "{} bytes, {} times", lab.longest, lab.whole);
    let read = journal::read(&lab.file, "lab").unwrap().unwrap();
    assert_eq!(Book::replay(&read.records).unwrap().vms().len() as u32, made);
    assert!(matches!(lab.manager.phase, Phase::Running));
}
