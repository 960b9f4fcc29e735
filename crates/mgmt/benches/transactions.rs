//! Cost of one transaction: offered, sent, answered, matched.

use divan::{Bencher, black_box};
use weft_machine::Time;
use weft_mgmt::{DirectedPath, Limits, Request, SmpRoute, Transactions, Window};
use weft_wire::{AttributeId, Method, PortNum, Smp};

fn main() {
    divan::main();
}

/// By how many are in flight: wide windows must not cost more.
#[divan::bench(args = [1, 4, 64, 1024])]
fn transaction(bencher: Bencher<'_, '_>, window: u32) {
    let mut transactions = Transactions::new(Limits { window: Window::Fixed(window), ..Limits::default() });
    let path = DirectedPath::new(&[PortNum(1), PortNum(17), PortNum(3)]).expect("three hops");
    let request = Request::get(AttributeId::PortInfo, 7).by(&SmpRoute::Directed(path));
    let mut flying = std::collections::VecDeque::new();
    let mut now = Time::ZERO;
    bencher.bench_local(|| {
        now += Time::from_micros(1);
        transactions.offer((), black_box(request)).expect("the queue is short");
        while let Some(mut sent) = transactions.poll_transmit(now) {
            Smp::method.set(&mut sent.mad.0, Method::GetResp);
            flying.push_back(sent);
        }
        if flying.len() as u32 == window {
            let answer = flying.pop_front().expect("the window is not empty");
            black_box(transactions.handle_response(now, &answer));
        }
        black_box(transactions.poll_failed(now));
    });
}

#[divan::bench]
fn build_directed_request(bencher: Bencher<'_, '_>) {
    let path = DirectedPath::new(&[PortNum(1), PortNum(17), PortNum(3)]).expect("three hops");
    bencher.bench_local(|| {
        Request::get(AttributeId::PortInfo, black_box(7)).by(&SmpRoute::Directed(black_box(path)))
    });
}
