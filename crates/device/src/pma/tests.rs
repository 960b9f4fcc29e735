use super::totals::write_extended;
use super::*;
use crate::testing::*;
use weft_wire::{MadHeader, MgmtClass, TransactionId};

pub(crate) fn ask(bench: &mut Bench, method: Method, attribute_id: AttributeId, data: &[u8]) -> (u16, Mad) {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::Perf,
        class_version: 1,
        method,
        transaction_id: TransactionId(3),
        attribute_id,
        ..MadHeader::default()
    });
    mad.0[PERF_DATA][..data.len()].copy_from_slice(data);
    let answer = bench.device.performance_answer(bench.now, &mad, Method::GetResp);
    assert_eq!((answer.method(), answer.transaction_id()), (Method::GetResp, TransactionId(3)));
    (answer.status(), answer)
}

fn basic(bench: &mut Bench, method: Method, asked: &PortCounters) -> (u16, PortCounters) {
    let (status, mad) = ask(bench, method, AttributeId::PORT_COUNTERS, &asked.encode());
    (status, PortCounters::decode(mad.0[PERF_DATA].first_chunk().unwrap()))
}

fn extended(bench: &mut Bench, method: Method, asked: &PortCountersExtended) -> (u16, PortCountersExtended) {
    let (status, mad) = ask(bench, method, AttributeId::PortCountersExtended, &asked.encode());
    (status, PortCountersExtended::decode(mad.0[PERF_DATA].first_chunk().unwrap()))
}

fn select(port: u8) -> PortCounters {
    PortCounters { port_select: PortNum(port), ..PortCounters::default() }
}

/// All counters of port 1 at `value`.
fn counted(value: u64) -> Bench {
    let mut bench = switch(2);
    let port = &mut bench.device.ports[1];
    let all = PortCountersExtended::decode(&value.to_be_bytes().repeat(23).try_into().unwrap());
    write_extended(port, &all, u64::MAX);
    port.counted_before = crate::Counters::default();
    bench
}

#[test]
fn the_small_counters_stop_at_their_highest_value() {
    let mut bench = counted(u64::from(u32::MAX) + 10);
    let (status, counters) = basic(&mut bench, Method::Get, &select(1));
    assert_eq!(status, status::OK);
    let mut full = PortCounters::decode(&[0xff; 44]);
    (full.reserved_0, full.port_select, full.counter_select, full.counter_select2) = (0, PortNum(1), 0, 0);
    assert_eq!(counters, full);
    let asked = PortCountersExtended { port_select: PortNum(1), ..PortCountersExtended::default() };
    let (_, counters) = extended(&mut bench, Method::Get, &asked);
    assert_eq!(counters.port_xmit_data, u64::from(u32::MAX) + 10);
    assert_eq!(counters.qp1_dropped, u64::from(u32::MAX) + 10);
}

#[test]
fn a_counter_set_changes_only_the_selected_counters() {
    for bit in 0..18u32 {
        let mut bench = counted(7);
        let mut asked = select(1);
        (asked.counter_select, asked.counter_select2) = ((1u32 << bit) as u16, (1u32 << bit >> 16) as u8);
        let (status, after) = basic(&mut bench, Method::Set, &asked);
        assert_eq!(status, status::OK);
        let before = basic(&mut counted(7), Method::Get, &select(1)).1;
        let differing = PortCounters::TABLE
            .iter()
            .filter(|row| row.first >= 32)
            .filter(|row| {
                let bits = |counters: &PortCounters| {
                    let bytes = counters.encode();
                    (row.first..row.first + row.width)
                        .map(|at| bytes[at / 8] >> (7 - at % 8) & 1)
                        .collect::<Vec<_>>()
                };
                !row.name.starts_with("counter_select") && bits(&before) != bits(&after)
            })
            .count();
        assert_eq!(differing, 1, "bit {bit}");
        let asked = PortCountersExtended { port_select: PortNum(1), ..PortCountersExtended::default() };
        let (_, all) = extended(&mut bench, Method::Get, &asked);
        assert!(all.encode()[8..].chunks(8).all(|value| value == 7u64.to_be_bytes()), "bit {bit}");
    }
}

#[test]
fn extended_counters_are_cleared_on_their_own() {
    let mut bench = counted(7);
    let asked = PortCountersExtended {
        port_select: PortNum(1),
        counter_select: 1,
        counter_select2: 1 << 13,
        ..PortCountersExtended::default()
    };
    let (_, after) = extended(&mut bench, Method::Set, &asked);
    assert_eq!((after.port_xmit_data, after.port_rcv_data, after.qp1_dropped), (0, 7, 0));
    let (_, small) = basic(&mut bench, Method::Get, &select(1));
    assert_eq!((small.port_xmit_data, small.qp1_dropped), (7, 7), "PortCounters stays as it was");
}

#[test]
fn a_counter_can_be_set_to_a_value() {
    let mut bench = counted(7);
    let asked = PortCounters { counter_select: 1 << 14, port_xmit_pkts: 1000, ..select(1) };
    assert_eq!(basic(&mut bench, Method::Set, &asked).1.port_xmit_pkts, 1000);
    bench.device.ports[1].counters.port_xmit_pkts += 5;
    assert_eq!(basic(&mut bench, Method::Get, &select(1)).1.port_xmit_pkts, 1005);
}

#[test]
fn all_ports_together() {
    let mut bench = counted(7);
    bench.device.ports[2].counters.port_rcv_pkts = 5;
    bench.device.ports[0].counters.port_rcv_pkts = 1;
    assert_eq!(basic(&mut bench, Method::Get, &select(255)).1.port_rcv_pkts, 13);
    let asked = PortCounters { counter_select: 1 << 15, ..select(255) };
    assert_eq!(basic(&mut bench, Method::Set, &asked).1.port_rcv_pkts, 0);
    assert_eq!(basic(&mut bench, Method::Get, &select(2)).1.port_rcv_pkts, 0);
}

#[test]
fn absent_ports_and_attributes_get_an_error_status() {
    let mut bench = switch(2);
    assert_eq!(basic(&mut bench, Method::Get, &select(3)).0, status::BAD_VALUE);
    assert_eq!(basic(&mut bench, Method::Get, &select(0)).0, status::OK, "a switch has a port 0");
    assert_eq!(basic(&mut hca(1), Method::Get, &select(0)).0, status::BAD_VALUE);
    assert_eq!(ask(&mut bench, Method::Get, AttributeId::SmInfo, &[]).0, status::BAD_METHOD_ATTRIBUTE);
    let (_, mad) = ask(&mut bench, Method::Get, AttributeId::ClassPortInfo, &[]);
    let info = ClassPortInfo::decode(mad.0[PERF_DATA].first_chunk().unwrap());
    assert_eq!((info.base_version, info.class_version), (1, 1));
    assert_eq!(info.capability_mask2, 0b10, "the error counters of 64 bits");
    assert_eq!(info.capability_mask & perf_capability::QP1_DROPPED, 0, "nothing is ever dropped there");
    assert!(info.capability_mask & perf_capability::EXTENDED_WIDTH != 0);
}

/// Every method that asks for an answer, with every attribute there is and its neighbours: what is served is served,
/// everything else is refused with the status for it.
#[test]
fn every_method_with_every_attribute() {
    let asked = {
        let mut data = [0; 192];
        data[1] = 1;
        data
    };
    for code in (0..0x100).chain([0xff00, 0xff90, 0xffff]) {
        let attribute = AttributeId::from_code(code);
        let (get, set) = match code {
            0x01 | 0x11 | 0x1e => (true, false),
            0x10 | 0x12 | 0x15..=0x1d => (true, true),
            _ => (false, false),
        };
        for mut bench in [switch(2), hca(2)] {
            let mut status = |method| ask(&mut bench, method, attribute, &asked).0;
            let served = |served| if served { status::OK } else { status::BAD_METHOD_ATTRIBUTE };
            assert_eq!(status(Method::Get), served(get), "Get {attribute}");
            assert_eq!(status(Method::Set), served(set), "Set {attribute}");
            for method in [Method::GetTable, Method::GetTraceTable, Method::GetMulti, Method::Delete] {
                assert_eq!(status(method), status::BAD_METHOD, "{method} {attribute}");
            }
        }
    }
}

#[test]
fn a_port_that_is_not_there_has_no_counters() {
    let counting = [0x12, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d];
    for code in counting.into_iter().chain([0x10]) {
        let attribute = AttributeId::from_code(code);
        for (port, on_switch, on_hca) in
            [(0, status::OK, status::BAD_VALUE), (3, status::BAD_VALUE, status::BAD_VALUE), (255, 0, 0)]
        {
            for method in [Method::Get, Method::Set] {
                let data = [0, port, 0, 0];
                assert_eq!(ask(&mut switch(2), method, attribute, &data).0, on_switch, "{attribute} {port}");
                assert_eq!(ask(&mut hca(2), method, attribute, &data).0, on_hca, "{attribute} {port}");
            }
        }
    }
}

#[test]
fn another_class_version_is_refused() {
    let mut bench = hca(1);
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::Perf,
        class_version: 2,
        method: Method::Get,
        attribute_id: AttributeId::ClassPortInfo,
        ..MadHeader::default()
    });
    let answer = bench.device.performance_answer(bench.now, &mad, Method::GetResp);
    assert_eq!(answer.status(), status::BAD_VERSION);
}
