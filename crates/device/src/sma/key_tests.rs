//! The M_Key as managers meet it: what answers show, and what is left of it when its lease has run out.

use super::*;
use crate::testing::*;
use weft_wire::{NodeType, PortInfo, PortState};

const OLD: MKey = MKey(42);
const NEW: MKey = MKey(0x1234);

/// A Set or Get of PortInfo that shows `key`.
fn ask(bench: &mut Bench, method: Method, key: MKey, info: &PortInfo) -> Option<PortInfo> {
    let mut mad = smp(method, AttributeId::PortInfo, 0, &info.encode());
    SmpLayout::m_key.set(&mut mad.0, key);
    let answer = bench.ask_through(ONE, mad)?;
    assert_eq!(answer.status(), status::OK);
    Some(PortInfo::decode(answer.smp_attribute()))
}

fn unchanged_state(info: PortInfo) -> PortInfo {
    let (port_state, port_physical_state) = (PortState::NoChange, weft_wire::PhysState::NoChange);
    PortInfo { port_state, port_physical_state, ..info }
}

/// A manager that sets a key believes the answer: it is the key now in force, whichever protection comes with it, and
/// whatever key the request bore. A Get without the key sees it at level 0 alone.
#[test]
fn the_answer_to_a_set_shows_the_key_in_force() {
    for kind in [NodeType::Switch, NodeType::Hca] {
        for (before, level_before) in [(MKey(0), 0), (OLD, 0), (OLD, 1), (OLD, 2), (OLD, 3)] {
            for level in 0..4 {
                let what = format!("{kind}, {before} at level {level_before}, then level {level}");
                let mut bench = Bench::new(&config(kind, 1));
                bench.link_up(ONE);
                assert_eq!(bench.set_port_info(0, |info| info.m_key = before), status::OK);
                let now =
                    unchanged_state(ask(&mut bench, Method::Get, before, &PortInfo::default()).unwrap());
                let protected = PortInfo { m_key_protect_bits: level_before, ..now };
                assert_eq!(ask(&mut bench, Method::Set, before, &protected).unwrap().m_key, before, "{what}");

                let wanted = PortInfo { m_key: NEW, m_key_protect_bits: level, ..protected };
                let answer = ask(&mut bench, Method::Set, before, &wanted).expect("the key was right");
                assert_eq!((answer.m_key, answer.m_key_protect_bits), (NEW, level), "{what}");
                let mut seen = |key| ask(&mut bench, Method::Get, key, &PortInfo::default());
                assert_eq!(seen(NEW).unwrap().m_key, NEW, "{what}");
                let stranger = seen(MKey(1)).map(|info| info.m_key);
                assert_eq!(stranger, [Some(NEW), Some(MKey(0)), None, None][usize::from(level)], "{what}");
                assert!(ask(&mut bench, Method::Set, MKey(1), &wanted).is_none(), "{what}");
            }
        }
    }
}

/// The lease: a wrong key starts it, its end takes protection to level 0, where the key is shown to whoever comes next
/// and still asked for in a Set. Setting the key again protects the port again.
#[test]
fn a_key_whose_lease_has_run_out_can_be_read_and_used() {
    for level in 1..4 {
        let mut bench = hca(1);
        bench.link_up(ONE);
        let set = |info: &mut PortInfo| {
            (info.m_key, info.m_key_protect_bits, info.m_key_lease_period) = (OLD, level, 5);
        };
        assert_eq!(bench.set_port_info(0, set), status::OK);
        let violate = |bench: &mut Bench| {
            assert!(ask(bench, Method::Set, NEW, &PortInfo::default()).is_none());
        };
        violate(&mut bench);
        bench.now += Time::from_millis(4_999);
        violate(&mut bench);
        let hidden = ask(&mut bench, Method::Get, NEW, &PortInfo::default()).map(|info| info.m_key);
        assert_eq!(hidden, (level == 1).then_some(MKey(0)), "level {level}");
        bench.now += Time::from_millis(1);
        let shown = ask(&mut bench, Method::Get, NEW, &PortInfo::default()).expect("level 0");
        assert_eq!((shown.m_key, shown.m_key_protect_bits), (OLD, 0), "level {level}");
        violate(&mut bench);
        let violations = 3 + u16::from(level > 1);
        assert_eq!(shown.m_key_violations + 1, violations, "level {level}");

        let taken = PortInfo { m_key: NEW, m_key_protect_bits: 2, ..unchanged_state(shown) };
        assert_eq!(ask(&mut bench, Method::Set, OLD, &taken).unwrap().m_key, NEW);
        assert!(ask(&mut bench, Method::Get, OLD, &PortInfo::default()).is_none());
    }
}

/// A right key in time stops the lease, and the next wrong one starts it from its beginning.
#[test]
fn a_right_key_begins_the_lease_again() {
    let mut bench = hca(1);
    bench.link_up(ONE);
    let set = |info: &mut PortInfo| {
        (info.m_key, info.m_key_protect_bits, info.m_key_lease_period) = (OLD, 2, 5);
    };
    assert_eq!(bench.set_port_info(0, set), status::OK);
    let get = |bench: &mut Bench, key| ask(bench, Method::Get, key, &PortInfo::default()).is_some();
    for _ in 0..3 {
        assert!(!get(&mut bench, NEW));
        bench.now += Time::from_secs(4);
        assert!(get(&mut bench, OLD));
    }
    assert!(!get(&mut bench, NEW));
    bench.now += Time::from_secs(5);
    assert!(get(&mut bench, NEW), "five seconds without the key");
}
