//! Cost of one packet in a host's stack: from the adapter's room for it to its delivery, acknowledgements included.

use divan::counter::ItemsCount;
use weft_host::stack::{Input, Output, Stack, StackOptions};
use weft_host::traffic::{
    Command, Destination, FlowId, FlowSpec, LearntPath, MoveBy, PathSource, Transport, Work,
};
use weft_machine::{Machine, Time};
use weft_wire::{DataRate, Guid, Lid, PKey, PathRate, PortFacts, ServiceLevel};

const PACKETS: usize = 10_000;
const HOSTS: u16 = 648;

fn main() {
    divan::main();
}

fn host(number: u16, rate_mbps: u32) -> Stack {
    let mut stack = Stack::new(StackOptions::default());
    let (guid, lid) = (Guid(number.into()), Lid(number));
    let facts =
        PortFacts { guid, lid, active: true, rate: DataRate::from_mbps(rate_mbps), ..PortFacts::default() };
    stack.handle_input(Time::ZERO, Input::Port(facts));
    let paths = (1..=HOSTS).map(|to| LearntPath {
        to: Guid(to.into()),
        dlid: Lid(to),
        service_level: ServiceLevel(0),
        p_key: PKey::DEFAULT_FULL,
        rate: PathRate::default(),
    });
    stack.handle_input(Time::ZERO, Input::Command(Command::LearnPaths(paths.collect())));
    stack
}

fn expect(stack: &mut Stack, transport: Transport) {
    let (flow, from, work, message_bytes) = (FlowId(1), None, Work::Stream, 65_536);
    let command = Command::Expect { flow, from, transport, work, message_bytes };
    stack.handle_input(Time::ZERO, Input::Command(command));
}

fn open(stack: &mut Stack, transport: Transport, to: Destination) {
    let spec = FlowSpec {
        flow: FlowId(1),
        to,
        transport,
        work: Work::Stream,
        message_bytes: 65_536,
        packet_bytes: 2048,
        bytes_per_second: None,
        bytes_max: None,
        paths: PathSource::PathRecord,
        move_by: MoveBy::Drain,
    };
    stack.handle_input(Time::ZERO, Input::Command(Command::Open(spec)));
}

/// Two hosts whose adapters are joined by nothing: a packet leaves and is there at once.
fn exchange(sender: &mut Stack, receiver: &mut Stack) -> usize {
    let (mut delivered, mut now) = (0, Time::ZERO);
    while delivered < PACKETS {
        while delivered < PACKETS
            && let Some(output) = sender.poll_output()
        {
            let Output::Inject(packet) = output else { continue };
            now += Time::from_nanos(1000);
            receiver.handle_input(now, Input::Accept(packet));
            sender.handle_input(now, injected());
            delivered += 1;
        }
        while let Some(output) = receiver.poll_output() {
            let Output::Inject(packet) = output else { continue };
            receiver.handle_input(now, injected());
            sender.handle_input(now, Input::Accept(packet));
        }
        if let Some(at) = sender.poll_timeout().filter(|at| *at <= now + Time::from_nanos(100_000)) {
            now = now.max(at);
            sender.handle_timeout(now);
        }
    }
    delivered
}

fn injected() -> Input {
    Input::Injected { service_level: ServiceLevel(0), packets: 1 }
}

#[divan::bench]
fn connection(bencher: divan::Bencher<'_, '_>) {
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| {
            let (mut a, mut b) = (host(1, 0), host(2, 0));
            expect(&mut b, Transport::ReliableConnection);
            open(&mut a, Transport::ReliableConnection, Destination::One(Guid(2)));
            (a, b)
        })
        .bench_values(|(mut a, mut b)| exchange(&mut a, &mut b));
}

/// A rate in Mb/s: with one, packets come into being by the clock.
#[divan::bench(args = [0, 16_000])]
fn mix(bencher: divan::Bencher<'_, '_>, rate: u32) {
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| {
            let (mut a, mut b) = (host(1, rate), host(2, rate));
            expect(&mut b, Transport::UnreliableDatagram);
            let others = (1..=HOSTS).map(|to| Guid(to.into())).collect();
            let to = Destination::Mix { hot_spot: Some(Guid(7)), hot_permille: 50, others, seed: 1 };
            open(&mut a, Transport::UnreliableDatagram, to);
            (a, b)
        })
        .bench_values(|(mut a, mut b)| exchange(&mut a, &mut b));
}
