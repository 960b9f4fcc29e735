//! Whatever agents, the subnet manager, clients and the disk say in whatever order: no panic, no endless loop, one answer to a request, and
//! queues within their bounds. `WEFT_SEED` replays one seed, `WEFT_SCHEDULES` says how many there are (24 if not said).

use std::collections::BTreeSet;

use seeds::number;
use weft_machine::{Machine, Random, Time};
use weft_vm::Scheme;
use weft_vm::{
    Act, Command, Content, Create, Deed, Detach, HostName, HostReport, Hypervisor, Identity, Input, Migrate,
    MoveCounts, Occupant, Options, Outcome, Output, Place, PortIdentity, Record, Refusal, Request, RequestId,
    Route, SlotReport, SmAnswer, VmManager, VmName,
};
use weft_wire::{Guid, Lid, PKey};

use crate::seeds;

const SEEDS: u64 = 24;
const STEPS: u32 = 1500;
/// Outputs of one input: each of three hosts has three slots and may get a command for each of them in a pass, and each of eight
/// machines a record and an event.
const OUTPUTS_MAX: usize = 20_000;

struct Hostile(Random);

impl Hostile {
    fn one_in(&mut self, count: u32) -> bool {
        self.0.below(count) == 0
    }

    fn host(&mut self) -> HostName {
        let hosts = if self.one_in(12) { 4 } else { 3 };
        format!("host-{}", self.0.below(hosts)).parse().unwrap()
    }

    fn vm(&mut self) -> VmName {
        format!("vm-{}", self.0.below(3)).parse().unwrap()
    }

    /// Mostly small, sometimes the largest.
    fn number(&mut self) -> u64 {
        if self.one_in(12) { u64::MAX - u64::from(self.0.below(2)) } else { self.0.below(40).into() }
    }

    fn port(&mut self) -> PortIdentity {
        let guid = Guid(u64::from(self.0.below(200)));
        let lid = if self.one_in(20) { Lid(0xffff) } else { Lid(self.0.below(30) as u16) };
        PortIdentity { node_guid: guid, port_guid: guid, lid }
    }

    fn content(&mut self) -> Content {
        let p_keys = vec![PKey(1); if self.one_in(30) { 100 } else { 1 }];
        let identity = Identity { port: self.port(), p_keys, weight: 1, rate_mbps: 0 };
        let occupant = Box::new(Occupant { vm: self.vm(), identity });
        match self.0.below(6) {
            0 => Content::Bare,
            1 => Content::Spare(self.port()),
            2 => Content::Reserved(self.vm()),
            3 => Content::Running(occupant),
            4 => Content::Frozen(occupant),
            _ => Content::Imported(occupant),
        }
    }

    fn outcome(&mut self) -> Outcome {
        match self.0.below(8) {
            0..3 => {
                let slots = (0..self.0.below(4)).map(|vf| SlotReport {
                    vf: if self.one_in(30) { 255 } else { vf as u8 + 1 },
                    configured: self.port(),
                    epoch: if self.one_in(50) { u64::MAX } else { u64::from(self.0.below(40)) },
                    content: if self.one_in(3) { self.content() } else { Content::Bare },
                });
                let slots = slots.collect();
                let incarnation = if self.one_in(8) { u64::from(self.0.below(3)) } else { 1 };
                let generation = u64::from(self.one_in(30));
                Outcome::Report(Box::new(HostReport {
                    incarnation,
                    generation,
                    slots,
                    ..HostReport::default()
                }))
            }
            3..5 => Outcome::Done(self.content()),
            5 => Outcome::Image(vec![7; self.0.below(40) as usize].into()),
            6 => Outcome::Refused(Refusal::Words("no\n".repeat(400))),
            _ => Outcome::Refused(match self.0.below(8) {
                0 if self.one_in(4) => Refusal::Generation(self.0.below(4).into()),
                0 => Refusal::Incarnation(1),
                1..4 => Refusal::Incarnation(self.number()),
                _ => Refusal::Epoch(self.number()),
            }),
        }
    }

    fn request(&mut self) -> Request {
        match self.0.below(6) {
            0 => {
                let count = self.one_in(4).then(|| self.0.below(4));
                let guid = self.one_in(12).then(|| Guid(self.number()));
                let vf = self.one_in(12).then(|| self.0.below(256) as u8);
                let host = (!self.one_in(3)).then(|| self.host());
                Request::Create(Create { count, guid, vf, ..Create::new(self.vm(), host) })
            }
            1 => Request::Destroy(self.vm()),
            2 | 3 => {
                let (vm, host) = (self.vm(), self.host());
                let hypervisor =
                    Hypervisor { pre_copy: Time::from_nanos(self.number()), ..Hypervisor::default() };
                Request::Migrate(Migrate {
                    vm,
                    host,
                    cold: self.one_in(2),
                    detach: Detach::Early,
                    hypervisor,
                    route: Route::default(),
                })
            }
            4 => Request::Plan { vm: self.vm(), host: self.host(), route: Route::default() },
            _ => Request::Forget { vm: self.vm(), force: self.one_in(2) },
        }
    }

    fn sm_answer(&mut self) -> SmAnswer {
        match self.0.below(6) {
            0 | 1 => SmAnswer::Done(MoveCounts::default()),
            2 => SmAnswer::Refused("no ".repeat(1000)),
            3 => SmAnswer::OldEpoch(self.number()),
            4 => SmAnswer::Unknown,
            _ => SmAnswer::Timeout,
        }
    }

    /// What an agent that means well could say.
    fn obeys(&mut self, act: &Act) -> Outcome {
        let occupant = |hostile: &mut Self, vm: &VmName| {
            let port = PortIdentity { node_guid: Guid(90), port_guid: Guid(90), lid: Lid(9) };
            let lid = Lid(hostile.0.below(2) as u16 * 9);
            let identity = Identity { port: PortIdentity { lid, ..port }, ..Identity::default() };
            Box::new(Occupant { vm: vm.clone(), identity })
        };
        let Act::Slot { deed, .. } = act else {
            return loop {
                let outcome = self.outcome();
                if matches!(outcome, Outcome::Report(_)) {
                    break outcome;
                }
            };
        };
        Outcome::Done(match deed {
            Deed::Create(occupant) => Content::Running(occupant.clone()),
            Deed::Reserve(vm) => Content::Reserved(vm.clone()),
            Deed::Freeze(vm) => Content::Frozen(occupant(self, vm)),
            Deed::Export { .. } => return Outcome::Image(vec![1; 8].into()),
            Deed::Import { occupant, .. } => Content::Imported(occupant.clone()),
            Deed::Activate(vm) => Content::Running(occupant(self, vm)),
            Deed::Clear(port) => port.map_or(Content::Bare, Content::Spare),
        })
    }

    /// An input; those that are to be heard have numbers that were given.
    fn input(&mut self, id: u64, commands: &[(HostName, Command)], asked: &[u64], written: u64) -> Input {
        match self.0.below(12) {
            0 if self.one_in(12) => Input::HostUp(self.host()),
            1 if self.one_in(20) => Input::HostDown(self.host()),
            2 if self.one_in(3) => Input::HostEnded {
                host: self.host(),
                incarnation: (!self.one_in(3)).then(|| self.0.below(3).into()),
                how: "x".repeat(2000),
            },
            3 => {
                let number = self.0.below(asked.len() as u32 + 1) as usize;
                let number = asked.get(number).copied().unwrap_or_else(|| self.number());
                Input::Sm { number, answer: self.sm_answer() }
            }
            4 | 5 => Input::Request { id: RequestId(id), request: self.request() },
            6 => {
                let slot = weft_vm::Slot { host: self.host(), vf: self.0.below(5) as u8 };
                let place = Place { slot, incarnation: self.0.below(3).into() };
                let port = self.port();
                Input::PortHasLid { place, port_guid: port.port_guid, lid: port.lid }
            }
            7 => Input::Synced(if self.one_in(10) { u64::MAX } else { written }),
            _ => {
                let recent = commands.len().saturating_sub(12);
                let chosen = recent + self.0.below((commands.len() - recent) as u32 + 1) as usize;
                let Some((host, command)) = commands.get(chosen) else {
                    return Input::Answer {
                        host: self.host(),
                        number: self.number(),
                        outcome: self.outcome(),
                    };
                };
                let outcome = if self.one_in(16) { self.outcome() } else { self.obeys(&command.act) };
                Input::Answer { host: host.clone(), number: command.number, outcome }
            }
        }
    }
}

/// Whether machines were made, moved and adopted: otherwise nothing was tested.
fn run(seed: u64) -> [bool; 3] {
    let mut hostile = Hostile(Random::of_purpose(seed, "hostile"));
    let scheme = if seed.is_multiple_of(2) { Scheme::Prepopulated } else { Scheme::Dynamic };
    let mut manager =
        VmManager::new(Options { scheme, timeout: Time::from_millis(300), ..Options::default() });
    let hosts = (0..3).map(|number| format!("host-{number}").parse().unwrap()).collect();
    manager.handle_input(Time::ZERO, Input::Start { journal: None, hosts, guids: Vec::new() });
    let (mut now, mut commands, mut asked, mut written) = (Time::ZERO, Vec::new(), Vec::new(), 0);
    let (mut requests, mut replies, mut happened) = (BTreeSet::new(), BTreeSet::new(), [false; 3]);
    for step in 0..STEPS {
        let mut outputs = 0;
        while let Some(output) = manager.poll_output() {
            outputs += 1;
            assert!(outputs < OUTPUTS_MAX, "seed {seed}: it never ends");
            match output {
                Output::Journal(write) => {
                    written = write.number;
                    if let weft_vm::Change::Append(record) = write.change {
                        happened[0] |= matches!(record, Record::Create { .. });
                        happened[1] |= matches!(record, Record::Reserve { .. });
                        happened[2] |= matches!(record, Record::Vm { .. });
                    }
                }
                Output::Command { host, command } => commands.push((host, command)),
                Output::AskSm(request) => asked.push(request.number),
                Output::Reply { id, .. } => {
                    assert!(
                        requests.contains(&id.0) && replies.insert(id.0),
                        "seed {seed}: {id:?} is answered twice"
                    );
                }
                Output::Event(_) => {}
            }
        }
        now += Time::from_millis(hostile.0.below(30).into());
        if manager.poll_timeout().is_some_and(|at| at <= now) {
            manager.handle_timeout(now);
        }
        let id = u64::from(step);
        let input = hostile.input(id, &commands, &asked, written);
        if let Input::Request { id, .. } = &input {
            requests.insert(id.0);
        }
        manager.handle_input(now, input);
    }
    happened
}

#[test]
fn nothing_that_is_said_stops_it_with_a_panic() {
    let seeds =
        number("WEFT_SEED").map_or(0..number("WEFT_SCHEDULES").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let mut happened = [false; 3];
    for seed in seeds.clone() {
        let found =
            std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| panic!("WEFT_SEED={seed} replays it"));
        happened.iter_mut().zip(found).for_each(|(all, one)| *all |= one);
    }
    assert!(happened == [true; 3] || seeds.count() < 10, "{happened:?}");
}
