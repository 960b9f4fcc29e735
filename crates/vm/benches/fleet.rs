//! Time that the VM manager computes for a fleet that fills all slots, with agents and a disk that take no time.

use std::collections::{BTreeMap, VecDeque};

use divan::Bencher;
use weft_machine::{Machine, Time};
use weft_vm::{
    Act, Adapter, Content, Create, Deed, HostName, HostReport, Input, Options, Outcome, Output, PortIdentity,
    Record, Reply, Request, RequestId, Scheme, SlotReport, VmManager,
};
use weft_wire::{Guid, Lid, PortNum};

fn main() {
    divan::main();
}

/// Slots of each host.
const VFS: u32 = 4;
/// Machines of one request at most.
const FLEET: u32 = 1000;

fn host(number: u32) -> HostName {
    format!("host-{number}").parse().expect("a name")
}

fn report(number: u32, scheme: Scheme) -> HostReport {
    let slot = |vf: u8| {
        let guid = Guid((u64::from(number) << 8) + u64::from(vf) + (1 << 40));
        let lid = Lid((number * VFS) as u16 + u16::from(vf));
        let configured = PortIdentity { node_guid: guid, port_guid: guid, lid };
        let content = if scheme == Scheme::Dynamic { Content::Bare } else { Content::Spare(configured) };
        SlotReport { vf, configured, epoch: 0, content }
    };
    let adapter = Adapter {
        port_guid: Guid((1 << 41) + u64::from(number)),
        system_guid: Guid((1 << 42) + u64::from(number)),
        port_num: PortNum(1),
        ..Adapter::default()
    };
    HostReport { incarnation: 1, generation: 0, adapter, slots: (1..=VFS as u8).map(slot).collect() }
}

/// Answers whatever the manager says, until it says no more.
fn settle(manager: &mut VmManager, reports: &Reports) -> Vec<Reply> {
    let (mut inputs, mut replies) = (VecDeque::new(), Vec::new());
    loop {
        while let Some(output) = manager.poll_output() {
            match output {
                Output::Journal(write) => inputs.push_back(Input::Synced(write.number)),
                Output::Command { host, command } => {
                    let outcome = match command.act {
                        Act::Slot { deed: Deed::Create(occupant), .. } => {
                            Outcome::Done(Content::Running(occupant))
                        }
                        Act::Slot { deed: Deed::Clear(port), .. } => {
                            Outcome::Done(port.map_or(Content::Bare, Content::Spare))
                        }
                        _ => Outcome::Report(Box::new(reports[&host].clone())),
                    };
                    inputs.push_back(Input::Answer { host, number: command.number, outcome });
                }
                Output::Reply { result, .. } => replies.push(result.expect("there is room")),
                Output::AskSm(_) | Output::Event(_) => {}
            }
        }
        let Some(input) = inputs.pop_front() else { return replies };
        manager.handle_input(Time::ZERO, input);
    }
}

type Reports = BTreeMap<HostName, HostReport>;

fn reports(machines: u32, scheme: Scheme) -> Reports {
    (0..machines / VFS).map(|number| (host(number), report(number, scheme))).collect()
}

/// With the empty journal of a new laboratory.
fn started(machines: u32, scheme: Scheme) -> (VmManager, Reports) {
    let reports = reports(machines, scheme);
    (start(&reports, scheme, Some(Vec::new())), reports)
}

fn start(reports: &Reports, scheme: Scheme, journal: Option<Vec<Record>>) -> VmManager {
    let mut manager = VmManager::new(Options { scheme, ..Options::default() });
    let hosts: Vec<HostName> = reports.keys().cloned().collect();
    let start = Input::Start { journal, hosts: hosts.clone(), guids: Vec::new() };
    manager.handle_input(Time::ZERO, start);
    hosts.into_iter().for_each(|host| manager.handle_input(Time::ZERO, Input::HostUp(host)));
    settle(&mut manager, reports);
    manager
}

/// A manager that has lost its journal finds the slots again, all of them free.
#[divan::bench(args = [500, 1000, 2000], sample_count = 3, sample_size = 1)]
fn adopting(bencher: Bencher<'_, '_>, machines: u32) {
    let reports = reports(machines, Scheme::Prepopulated);
    bencher.bench_local(|| {
        let manager = start(&reports, Scheme::Prepopulated, None);
        assert_eq!(manager.census().slots_free, u64::from(machines));
        manager
    });
}

fn create(manager: &mut VmManager, machines: u32) {
    for (number, first) in (0..machines).step_by(FLEET as usize).enumerate() {
        let name = format!("fleet-{number}").parse().expect("a name");
        let create = Create { count: Some(FLEET.min(machines - first)), ..Create::new(name, None) };
        let request = Request::Create(create);
        manager.handle_input(Time::ZERO, Input::Request { id: RequestId(number as u64), request });
    }
}

fn fleet(bencher: Bencher<'_, '_>, machines: u32, scheme: Scheme) {
    bencher.with_inputs(|| started(machines, scheme)).bench_local_values(|(mut manager, reports)| {
        create(&mut manager, machines);
        let replies = settle(&mut manager, &reports);
        let made = replies.iter().map(|reply| match reply {
            Reply::Created(made) => made.len(),
            _ => 0,
        });
        assert_eq!(made.sum::<usize>(), machines as usize);
        manager
    });
}

#[divan::bench(args = [500, 1000, 2000], sample_count = 3, sample_size = 1)]
fn prepopulated(bencher: Bencher<'_, '_>, machines: u32) {
    fleet(bencher, machines, Scheme::Prepopulated);
}

#[divan::bench(args = [500, 1000, 2000], sample_count = 3, sample_size = 1)]
fn dynamic(bencher: Bencher<'_, '_>, machines: u32) {
    fleet(bencher, machines, Scheme::Dynamic);
}

/// What `weft status` and `/metrics` ask for, with all slots taken but those of one host.
#[divan::bench(args = [500, 1000, 2000], sample_count = 3, sample_size = 1)]
fn census(bencher: Bencher<'_, '_>, machines: u32) {
    let (mut manager, reports) = started(machines, Scheme::Prepopulated);
    create(&mut manager, machines - VFS);
    settle(&mut manager, &reports);
    bencher.bench_local(|| manager.census());
}
