//! Cost of a sweep for the manager: requests made, answers taken, totals, rates, detection. The fabric answers at once.

use std::collections::VecDeque;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use weft_machine::{Machine, Time};
use weft_mgmt::rmpp::{Outbox, OutboxLimits, Timing};
use weft_pm::{Input, Options, Output, PerformanceManager};
use weft_wire::{
    AddressedMad, AttributeId, Guid, Lid, LinkRecord, Mad, Method, MgmtClass, NodeInfo, NodeRecord, NodeType,
    PERF_DATA, PortCounters, PortCountersExtended, PortInfo, PortInfoRecord, PortNum, PortState, RmppHeader,
    SaMad, SaRecord, Smp, sa_attribute,
};

fn main() {
    divan::main();
}

/// 648 hosts on 36 leaves of 36 ports, and 18 roots.
const LEAVES: u16 = 36;
const ROOTS: u16 = 18;
const HOSTS: u16 = 648;

fn leaf(at: u16) -> u16 {
    1 + at
}

fn root(at: u16) -> u16 {
    1 + LEAVES + at
}

fn host(at: u16) -> u16 {
    1 + LEAVES + ROOTS + at
}

/// Both directions of every cable.
fn cables() -> Vec<((u16, u8), (u16, u8))> {
    let down = (0..HOSTS).map(|at| ((leaf(at / 18), (at % 18) as u8 + 1), (host(at), 1)));
    let up =
        (0..LEAVES).flat_map(|l| (0..ROOTS).map(move |r| ((leaf(l), 19 + r as u8), (root(r), 1 + l as u8))));
    down.chain(up).flat_map(|(a, b)| [(a, b), (b, a)]).collect()
}

fn table(attribute: AttributeId) -> (u16, Vec<u8>) {
    let mut body = Vec::new();
    let mut add = |record: &dyn Fn(&mut Vec<u8>)| {
        record(&mut body);
        body.resize(body.len().next_multiple_of(8), 0);
    };
    match attribute {
        sa_attribute::NODE_RECORD => {
            for lid in 1..=LEAVES + ROOTS + HOSTS {
                let node_type = if lid <= LEAVES + ROOTS { NodeType::Switch } else { NodeType::Hca };
                let (node_guid, port_guid) = (Guid(u64::from(lid) << 8), Guid((u64::from(lid) << 8) + 1));
                let node_info = NodeInfo { node_type, node_guid, port_guid, ..NodeInfo::default() };
                let record = NodeRecord { lid: Lid(lid), node_info, ..NodeRecord::default() };
                add(&|body| record.append_to(body));
            }
            (NodeRecord::OFFSET, body)
        }
        sa_attribute::PORT_INFO_RECORD => {
            for ((lid, port), _) in cables() {
                let (port_state, link_width_active, link_speed_active) = (PortState::Active, 2, 4);
                let port_info =
                    PortInfo { port_state, link_width_active, link_speed_active, ..PortInfo::default() };
                let record = PortInfoRecord { lid: Lid(lid), port_num: PortNum(port), port_info, options: 0 };
                add(&|body| record.append_to(body));
            }
            (PortInfoRecord::OFFSET, body)
        }
        _ => {
            for (from, to) in cables() {
                let (from_lid, from_port) = (Lid(from.0), PortNum(from.1));
                let record = LinkRecord { from_lid, from_port, to_port: PortNum(to.1), to_lid: Lid(to.0) };
                add(&|body| record.append_to(body));
            }
            (LinkRecord::OFFSET, body)
        }
    }
}

/// Answers at once.
struct Fabric {
    outbox: Outbox,
    answers: VecDeque<AddressedMad>,
    ticks: u32,
}

impl Fabric {
    fn take(&mut self, now: Time, sent: &AddressedMad) {
        let mut answer = *sent;
        Smp::method.set(&mut answer.mad.0, Method::GetResp);
        match (sent.mad.class(), sent.mad.method(), sent.mad.attribute_id()) {
            (MgmtClass::Perf, _, AttributeId::PORT_COUNTERS) => {
                PortCounters::port_xmit_wait
                    .set(answer.mad.0[PERF_DATA].first_chunk_mut().expect("there are 192 bytes"), self.ticks);
                self.answers.push_back(answer);
            }
            (MgmtClass::Perf, ..) => {
                PortCountersExtended::port_xmit_data.set(
                    answer.mad.0[PERF_DATA].first_chunk_mut().expect("there are 192 bytes"),
                    u64::from(self.ticks) * 1000,
                );
                self.answers.push_back(answer);
            }
            (MgmtClass::SubnDirected, ..) => {
                let info = PortInfo { lid: Lid(60), master_sm_lid: Lid(61), ..PortInfo::default() };
                answer.mad.set_smp_data(&info.encode());
                self.answers.push_back(answer);
            }
            _ if sent.mad.is_rmpp_active() => drop(self.outbox.handle(now, sent)),
            (_, Method::GetTable, attribute) => {
                let (offset, body) = table(attribute);
                SaMad::method.set(&mut answer.mad.0, Method::GetTableResp);
                SaMad::attribute_offset.set(&mut answer.mad.0, offset);
                answer.mad.set_rmpp(&RmppHeader::default());
                let message = [&answer.mad.0[..56], &body].concat();
                self.outbox.offer(now, &answer, message, &Timing::default()).expect("there is room");
            }
            _ => self.answers.push_back(answer),
        }
    }
}

fn drain(now: Time, manager: &mut PerformanceManager, fabric: &mut Fabric) {
    loop {
        while let Some(output) = manager.poll_output() {
            if let Output::Send(mad) = output {
                fabric.take(now, &mad);
            }
        }
        let answer = fabric.answers.pop_front().or_else(|| fabric.outbox.poll_transmit(now));
        let Some(answer) = answer else { return };
        manager.handle_input(now, Input::Receive(answer));
        black_box(manager.poll_timeout());
    }
}

/// A manager that knows the fabric.
fn learned(window: u32) -> (PerformanceManager, Fabric, Time) {
    let mut manager = PerformanceManager::new(Options { window, ..Options::default() });
    let mut fabric =
        Fabric { outbox: Outbox::new(OutboxLimits::default()), answers: VecDeque::new(), ticks: 0 };
    let attached = Input::Attached { node_guid: Guid(1), port_guid: Guid(2), port: PortNum(1) };
    manager.handle_input(Time::ZERO, attached);
    let mut now = Time::ZERO;
    while manager.statistics().sweeps == 0 {
        drain(now, &mut manager, &mut fabric);
        now += Time::from_millis(1);
        fabric.outbox.handle_timeout(now);
    }
    (manager, fabric, now)
}

/// One sweep of the 648-host fabric, 2 x 2592 requests; the fabric's own share is the echo of [`echo`].
#[divan::bench(args = [16, 64, 256])]
fn sweep_648(bencher: Bencher<'_, '_>, window: u32) {
    let (mut manager, mut fabric, mut now) = learned(window);
    assert_eq!((manager.statistics().ports, manager.statistics().nodes), (2592, 702));
    bencher.counter(ItemsCount::new(2 * 2592u32)).bench_local(move || {
        now += Time::from_secs(2);
        fabric.ticks = fabric.ticks.wrapping_add(10) % (1 << 30);
        manager.handle_timeout(now);
        drain(now, &mut manager, &mut fabric);
    });
}

/// What answering costs, which is not the manager's.
#[divan::bench]
fn echo(bencher: Bencher<'_, '_>) {
    let mut fabric =
        Fabric { outbox: Outbox::new(OutboxLimits::default()), answers: VecDeque::new(), ticks: 7 };
    let mad = Mad::default();
    let sent = AddressedMad::gmp(Lid(1), Default::default(), mad);
    let mut request = sent;
    Smp::mgmt_class.set(&mut request.mad.0, MgmtClass::Perf);
    Smp::attribute_id.set(&mut request.mad.0, AttributeId::PORT_COUNTERS);
    bencher.bench_local(move || {
        fabric.take(Time::ZERO, black_box(&request));
        black_box(fabric.answers.pop_front())
    });
}

/// What an exporter asks for at each scrape.
#[divan::bench]
fn snapshot_648(bencher: Bencher<'_, '_>) {
    let (manager, _, now) = learned(64);
    bencher.bench_local(|| black_box(manager.snapshot(now)));
}

/// Learning it, tables and all.
#[divan::bench]
fn learn_648(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| black_box(learned(64)));
}
