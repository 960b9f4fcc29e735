use super::*;
use crate::testing::*;
use crate::{Input, Output};
use weft_machine::Machine;
use weft_wire::{
    CaCongestionLogEntry, CongestionEvent, CongestionSettings, Lid, MadHeader, MgmtClass, QpNum,
    ServiceLevel, TransactionId,
};

fn ask(
    bench: &mut Bench,
    method: Method,
    attribute_id: AttributeId,
    modifier: u32,
    data: &[u8],
) -> (u16, Mad) {
    asked_with(bench, 0, method, attribute_id, modifier, data).expect("an answer")
}

fn asked_with(
    bench: &mut Bench,
    key: u64,
    method: Method,
    attribute_id: AttributeId,
    attribute_modifier: u32,
    data: &[u8],
) -> Option<(u16, Mad)> {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::CongestionControl,
        class_version: CONGESTION_CLASS_VERSION,
        method,
        transaction_id: TransactionId(3),
        attribute_id,
        attribute_modifier,
        ..MadHeader::default()
    });
    CongestionMad::cc_key.set(&mut mad.0, key);
    mad.0[CONGESTION_DATA][..data.len()].copy_from_slice(data);
    let port = bench.device.end_port(ONE);
    let answer = bench.device.congestion_answer(bench.now, port, &mad, Method::GetResp)?;
    assert_eq!(answer.method(), Method::GetResp);
    Some((answer.status(), answer))
}

fn data<const N: usize>(mad: &Mad) -> &[u8; N] {
    mad.0[CONGESTION_DATA].first_chunk().unwrap()
}

/// The settings that the host got last.
fn told(bench: &mut Bench) -> Option<CongestionSettings> {
    let outputs: Vec<Output> = std::iter::from_fn(|| bench.device.poll_output()).collect();
    outputs.into_iter().rev().find_map(|output| match output {
        Output::HostPort { facts, .. } => Some(facts.congestion),
        _ => None,
    })?
}

#[test]
fn every_method_with_every_attribute() {
    for code in (0..0x100).chain([0xff00, 0xffff]) {
        let attribute = AttributeId::from_code(code);
        for (mut bench, is_switch) in [(switch(2), true), (hca(2), false)] {
            let (get, set) = match code {
                0x01 | 0x11 | 0x13 | 0x18 => (true, false),
                0x12 => (true, true),
                0x14 | 0x15 => (is_switch, is_switch),
                0x16 | 0x17 => (!is_switch, !is_switch),
                _ => (false, false),
            };
            let mut status = |method| ask(&mut bench, method, attribute, 0, &[]).0;
            let served = |served| if served { status::OK } else { status::BAD_METHOD_ATTRIBUTE };
            assert_eq!(status(Method::Get), served(get), "Get {attribute}");
            assert_eq!(status(Method::Set), served(set), "Set {attribute}");
            assert_eq!(status(Method::GetTable), status::BAD_METHOD, "{attribute}");
        }
    }
}

#[test]
fn a_set_of_a_switch_changes_what_its_map_says() {
    let mut bench = switch(2);
    let all = SwitchCongestionSetting {
        control_map: 0x1f,
        victim_mask: [1; 32],
        credit_mask: [2; 32],
        threshold: 15,
        packet_size: 8,
        cs_threshold: 3,
        cs_return_delay: 4,
        marking_rate: 5,
        ..Default::default()
    };
    let (_, answer) = ask(&mut bench, Method::Set, cc::SWITCH_CONGESTION_SETTING, 0, &all.encode());
    assert_eq!(SwitchCongestionSetting::decode(data(&answer)), all);
    let none = |control_map| SwitchCongestionSetting { control_map, ..Default::default() };
    ask(
        &mut bench,
        Method::Set,
        cc::SWITCH_CONGESTION_SETTING,
        0,
        &none(switch_control::MARKING_RATE).encode(),
    );
    let (_, answer) = ask(&mut bench, Method::Get, cc::SWITCH_CONGESTION_SETTING, 0, &[]);
    let held = SwitchCongestionSetting::decode(data(&answer));
    assert_eq!(held, SwitchCongestionSetting { marking_rate: 0, ..all });
    let ports =
        |bench: &mut Bench, block| ask(bench, Method::Get, cc::SWITCH_PORT_CONGESTION_SETTING, block, &[]).0;
    assert_eq!((ports(&mut bench, 0), ports(&mut bench, 1)), (status::OK, status::BAD_VALUE));
    assert_eq!(ports(&mut bench, u32::MAX), status::BAD_VALUE);
}

#[test]
fn the_host_is_told_when_there_are_levels_and_delays() {
    let mut bench = hca(1);
    let mut setting = CaCongestionSetting { control_map: 2, ..Default::default() };
    setting.entries = [CaCongestionEntry { ccti_timer: 150, ccti_increase: 1, ..Default::default() }; 16];
    ask(&mut bench, Method::Set, cc::CA_CONGESTION_SETTING, 0, &setting.encode());
    assert_eq!(told(&mut bench), None, "no delays yet");
    let mut table = CongestionControlTable { ccti_limit: 65, ..Default::default() };
    (table.entries[0], table.entries[1]) = (64, 65);
    ask(&mut bench, Method::Set, cc::CONGESTION_CONTROL_TABLE, 1, &table.encode());
    let settings = told(&mut bench).unwrap();
    assert_eq!((settings.control_map, settings.by_service_level), (2, false));
    assert_eq!((settings.levels[1].timer, settings.levels[0].increase), (150, 0));
    assert_eq!((settings.table.len(), &settings.table[63..]), (66, &[0, 64, 65][..]));
    ask(&mut bench, Method::Set, cc::CONGESTION_CONTROL_TABLE, 1, &table.encode());
    assert_eq!(told(&mut bench), None, "nothing has changed, and nothing is said");
    let (_, answer) = ask(&mut bench, Method::Get, cc::CONGESTION_CONTROL_TABLE, 1, &[]);
    assert_eq!(CongestionControlTable::decode(data(&answer)), table);
    let too_long = CongestionControlTable { ccti_limit: 4096, ..table };
    let refused = ask(&mut bench, Method::Set, cc::CONGESTION_CONTROL_TABLE, 0, &too_long.encode()).0;
    assert_eq!(refused, status::BAD_VALUE);
    assert_eq!(ask(&mut bench, Method::Get, cc::CONGESTION_CONTROL_TABLE, 64, &[]).0, status::BAD_VALUE);
}

#[test]
fn a_set_needs_the_key_and_a_protected_key_is_not_shown() {
    let mut bench = hca(1);
    let info = CongestionKeyInfo { cc_key: 7, protect: true, lease_period: 2, ..Default::default() };
    ask(&mut bench, Method::Set, cc::CONGESTION_KEY_INFO, 0, &info.encode());
    let set = |bench: &mut Bench, key| {
        asked_with(bench, key, Method::Set, cc::CA_CONGESTION_SETTING, 0, &[]).is_some()
    };
    let seen = |bench: &mut Bench, key| {
        let answer = asked_with(bench, key, Method::Get, cc::CONGESTION_KEY_INFO, 0, &[]).unwrap().1;
        let info = CongestionKeyInfo::decode(data(&answer));
        (info.cc_key, info.violations)
    };
    assert!(!set(&mut bench, 0) && !set(&mut bench, 8) && set(&mut bench, 7));
    assert_eq!((seen(&mut bench, 0), seen(&mut bench, 7)), ((0, 2), (7, 2)));
    assert!(!set(&mut bench, 8));
    bench.now += Time::from_secs(2);
    assert_eq!(seen(&mut bench, 0), (7, 3), "nobody showed the key in time: it can be read");
    assert!(!set(&mut bench, 0), "and is still asked for");
}

#[test]
fn another_class_version_is_refused_and_logs_have_their_kind() {
    for (mut bench, kind) in [(switch(2), 1), (hca(1), 2)] {
        let (status, answer) = ask(&mut bench, Method::Get, cc::CONGESTION_LOG, 0, &[]);
        let log = SwitchCongestionLog::decode(answer.0[CONGESTION_LOG_DATA].first_chunk().unwrap());
        assert_eq!((status, log.log_type), (status::OK, kind));
        let mut mad = answer;
        CongestionMad::class_version.set(&mut mad.0, 1);
        CongestionMad::method.set(&mut mad.0, Method::Get);
        let port = bench.device.end_port(ONE);
        let answer = bench.device.congestion_answer(bench.now, port, &mad, Method::GetResp).unwrap();
        assert_eq!(answer.status(), status::BAD_VERSION);
    }
}

fn adapter_log(bench: &mut Bench) -> (CaCongestionLog, Vec<CaCongestionLogEntry>) {
    let answer = ask(bench, Method::Get, cc::CONGESTION_LOG, 0, &[]).1;
    let log = CaCongestionLog::decode(answer.0[CONGESTION_LOG_DATA].first_chunk().unwrap());
    let entries = log.entries.chunks_exact(16).map(|bytes| bytes.try_into().unwrap());
    (log, entries.map(CaCongestionLogEntry::decode).filter(|entry| entry.time_stamp > 0).collect())
}

#[test]
fn an_adapter_logs_its_newest_events_and_counts_new_ones() {
    let mut bench = hca(2);
    let event = |qp| CongestionEvent {
        local_qp: QpNum(qp),
        remote_qp: QpNum(qp + 100),
        remote_lid: Lid(7),
        service_level: ServiceLevel(qp as u8 & 1),
        service_type: 3,
    };
    for qp in 1..=15 {
        bench.now += Time::from_nanos(1024);
        bench.device.handle_input(bench.now, Input::Congestion { port: ONE, event: event(qp) });
    }
    let (log, entries) = adapter_log(&mut bench);
    assert_eq!((log.threshold_event_counter, log.threshold_congestion_event_map), (15, 0b11));
    let newest = &entries[0];
    assert_eq!((newest.local_qp, newest.remote_qp, newest.remote_lid), (QpNum(15), QpNum(115), Lid(7)));
    assert_eq!((newest.service_level, newest.service_type), (ServiceLevel(1), 3));
    assert_eq!(newest.time_stamp, log.current_time_stamp);
    let order: Vec<u32> = entries.iter().map(|entry| entry.local_qp.0).collect();
    assert_eq!(order, (3..=15).rev().collect::<Vec<_>>());
    bench.device.handle_input(bench.now, Input::Congestion { port: TWO, event: event(16) });
    let (log, entries) = adapter_log(&mut bench);
    assert_eq!((log.threshold_event_counter, log.threshold_congestion_event_map), (0, 0), "asked before");
    assert_eq!((entries.len(), entries[0].local_qp), (13, QpNum(15)), "the other port has a log of its own");
}

fn flags(bench: &mut Bench, key: u64) -> u8 {
    let answer = asked_with(bench, key, Method::Get, cc::CONGESTION_LOG, 0, &[]).unwrap().1;
    SwitchCongestionLog::decode(answer.0[CONGESTION_LOG_DATA].first_chunk().unwrap()).congestion_flags
}

#[test]
fn the_log_says_that_the_lease_of_the_key_runs() {
    for mut bench in [switch(2), hca(1)] {
        let info = CongestionKeyInfo { cc_key: 7, lease_period: 2, ..Default::default() };
        ask(&mut bench, Method::Set, cc::CONGESTION_KEY_INFO, 0, &info.encode());
        assert_eq!(flags(&mut bench, 8), 0);
        assert!(asked_with(&mut bench, 8, Method::Set, cc::CONGESTION_KEY_INFO, 0, &[]).is_none());
        assert_eq!((flags(&mut bench, 8), flags(&mut bench, 7)), (1, 0), "the right key ends it");
    }
}

#[test]
fn the_second_block_has_the_ports_from_32_on() {
    let mut bench = switch(36);
    let port = SwitchPortCongestion { valid: true, threshold: 7, packet_size: 9, ..Default::default() };
    let mut setting = SwitchPortCongestionSetting::default();
    (setting.ports[3], setting.ports[5]) = (port, port);
    ask(&mut bench, Method::Set, cc::SWITCH_PORT_CONGESTION_SETTING, 1, &setting.encode());
    let held = bench.device.congestion.marking.ports.iter().enumerate().filter(|(_, held)| **held == port);
    assert_eq!(held.map(|(number, _)| number).collect::<Vec<_>>(), [35], "there is no port 37");
    let answer = ask(&mut bench, Method::Get, cc::SWITCH_PORT_CONGESTION_SETTING, 0, &[]).1;
    assert_eq!(answer.0[CONGESTION_DATA], [0; 192]);
}
