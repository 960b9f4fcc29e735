use super::*;
use crate::Output;
use crate::testing::*;
use weft_wire::{CongestionSettings, MadHeader, MgmtClass, SwitchCongestionLog, TransactionId};

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

/// What the host was told last.
fn told(bench: &mut Bench) -> Option<CongestionSettings> {
    use weft_machine::Machine;
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
