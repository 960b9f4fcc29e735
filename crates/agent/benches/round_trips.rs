//! Round trips of one MAD at a time over three agents' links, unshaped: SMPs, and GMPs of the performance class, which
//! travel on a data lane with its credits.
//!
//! `cargo bench -p weft-agent --bench round_trips`

#![expect(clippy::unwrap_used, reason = "a program to be watched")]

#[path = "../tests/all/common/mod.rs"]
mod common;

use std::time::Instant;

use common::{Fabric, HCA_A, HCA_B, PATIENCE, Running, SWITCH, ask, end};
use weft_mgmt::{DirectedPath, Request, SmpRoute};
use weft_umad::{Client, ServerMessage};
use weft_wire::{
    AddressedMad, AttributeId, Lid, LinearForwardingTable, Method, Mtu, PortCountersExtended, PortInfo,
    PortNum, PortState, ServiceLevel, SwitchInfo, VirtualLane, VlArbitrationEntry, VlArbitrationTable,
};

const ROUNDS: usize = 20;
const TRIPS: usize = 1000;

fn main() {
    let fabric = Fabric::spread();
    let agents = fabric.start();
    agents[0].await_link(end(HCA_A, 1), true);
    agents[1].await_link(end(SWITCH, 2), true);
    agents[2].await_link(end(HCA_B, 1), true);
    let mut program = agents[0].attach(HCA_A, 1);
    activate(&mut program);
    let which = PortCountersExtended { port_select: PortNum(1), ..PortCountersExtended::default() }.encode();
    let perf =
        |lid| weft_mgmt::perf(lid, ServiceLevel(0), Method::Get, AttributeId::PortCountersExtended, &which);
    let smp = |path: &[u8]| Request::get(AttributeId::NodeInfo, 0).by(&route(path));
    let asked = [
        ("SMP to the own adapter", smp(&[])),
        ("SMP, one cable", smp(&[1])),
        ("SMP, two cables", smp(&[1, 2])),
        ("PerfMgt to the own adapter", perf(Lid(1))),
        ("PerfMgt, one cable", perf(Lid(10))),
        ("PerfMgt, two cables", perf(Lid(2))),
    ];
    let mut best = [f64::MAX; 6];
    // In turns, so that what else the machine does meets all alike.
    for _ in 0..ROUNDS {
        for (best, (_, request)) in best.iter_mut().zip(&asked) {
            *best = best.min(median_us(&mut program, request));
        }
    }
    for ((what, _), best) in asked.iter().zip(best) {
        println!("{what}: {best:.1} us (median of {TRIPS}, the best of {ROUNDS} rounds)");
    }
    agents.into_iter().for_each(Running::stop);
}

fn median_us(program: &mut Client, request: &AddressedMad) -> f64 {
    let mut times: Vec<f64> = (0..TRIPS)
        .map(|_| {
            let began = Instant::now();
            program.send(request).unwrap();
            program.flush().unwrap();
            assert!(matches!(program.recv(PATIENCE), Ok(Some(ServerMessage::Receive(_)))), "{request:?}");
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[TRIPS / 2]
}

fn route(path: &[u8]) -> SmpRoute {
    let ports: Vec<PortNum> = path.iter().copied().map(PortNum).collect();
    SmpRoute::Directed(DirectedPath::new(&ports).unwrap())
}

fn set(program: &mut Client, path: &[u8], attribute: AttributeId, modifier: u32, value: &[u8]) {
    let answer = ask(program, &Request::set(attribute, modifier, value).by(&route(path)));
    assert_eq!(answer.mad.status() & 0x1f, 0, "{attribute:?} {modifier:#x} at {path:?}");
}

fn activate(program: &mut Client) {
    let mut table = LinearForwardingTable { ports: [PortNum(255); 64] };
    (table.ports[1], table.ports[2], table.ports[10]) = (PortNum(1), PortNum(2), PortNum(0));
    let now = ask(program, &Request::get(AttributeId::SwitchInfo, 0).by(&route(&[1])));
    let now = SwitchInfo::decode(now.mad.smp_attribute());
    set(program, &[1], AttributeId::SwitchInfo, 0, &SwitchInfo { linear_fdb_top: Lid(10).0, ..now }.encode());
    set(program, &[1], AttributeId::LinearForwardingTable, 0, &table.encode());
    let info = PortInfo { lid: Lid(10), ..PortInfo::default() };
    set(program, &[1], AttributeId::PortInfo, 0, &info.encode());
    let mut low = VlArbitrationTable::default();
    low.entries[0] = VlArbitrationEntry { reserved: 0, vl: VirtualLane(0), weight: 64 };
    for state in [PortState::NoChange, PortState::Armed, PortState::Active] {
        let ports: [(&[u8], u32, u16); 4] = [(&[], 1, 1), (&[1], 1, 0), (&[1], 2, 0), (&[1, 2], 1, 2)];
        for (path, port, lid) in ports {
            set(program, path, AttributeId::VlArbitrationTable, 1 << 16 | port, &low.encode());
            let (lid, neighbor_mtu) = (Lid(lid), Mtu::Bytes2048);
            let info = PortInfo { lid, neighbor_mtu, port_state: state, hoq_life: 20, ..PortInfo::default() };
            set(program, path, AttributeId::PortInfo, port, &info.encode());
        }
    }
}
