use super::*;
use weft_wire::{VmMoveMethod, VmMoveResult};

fn ask(guid: u64, epoch: u64) -> VmMove {
    VmMove { kind: VmMoveKind::Copy, guid: Guid(guid), epoch, ..VmMove::default() }
}

fn asked(ask: VmMove) -> Asked {
    let request = AddressedMad::smp(Lid(1), weft_wire::Mad::default());
    Asked { request, ask, want: Want::Carry, since: Time::ZERO }
}

fn away(switch: u64, expected: bool) -> Away {
    let expected = expected.then_some((Guid(switch), PortNum(3)));
    Away { lid: Lid(7), switches: [Guid(switch), Guid(switch)], expected, until: Time::ZERO }
}

#[test]
fn a_repeated_request_gets_its_answer_and_an_old_one_is_refused() {
    let mut desk = Desk::default();
    let first = ask(1, 5);
    assert_eq!(desk.by_epoch(&first), None);
    let answer = VmMove { result: VmMoveResult::Done, lid: Lid(9), ..first };
    desk.answered(first, answer);
    assert_eq!(desk.by_epoch(&first), Some(answer));
    let old = desk.by_epoch(&ask(1, 4)).expect("an answer");
    assert_eq!(old.result, VmMoveResult::OldEpoch);
    assert_eq!(old.reason_text(), "epoch 4 of GUID 0x0000000000000001 is old: 5 was seen");
    let other = desk.by_epoch(&VmMove { to_port: PortNum(9), ..first }).expect("an answer");
    assert_eq!(other.result, VmMoveResult::Invalid);
    assert_eq!((desk.by_epoch(&ask(1, 6)), desk.by_epoch(&ask(2, 1))), (None, None));
}

#[test]
fn requests_that_may_go_together_are_taken_from_the_front() {
    let mut desk = Desk::default();
    let at = |guid, switch| VmMove { from_switch: Guid(switch), from_port: PortNum(3), ..ask(guid, 1) };
    for one in [at(2, 12), at(3, 13), at(4, 12), at(5, 15)] {
        desk.push(asked(one));
    }
    let taken = |desk: &mut Desk, first: &VmMove| {
        desk.pop_like(first).iter().map(|asked| asked.ask.guid.0).collect::<Vec<_>>()
    };
    assert_eq!(taken(&mut desk, &at(1, 11)), [2, 3], "the fourth is at the second one's place");
    assert_eq!(taken(&mut desk, &at(5, 11)), [4], "the fifth is the same GUID");
    assert_eq!(taken(&mut desk, &VmMove { method: VmMoveMethod::Full, ..at(1, 11) }), Vec::<u64>::new());
    let others = desk.pop_like(&at(1, 11));
    desk.put_back(others);
    assert_eq!(desk.pop().map(|asked| asked.ask.guid), Some(Guid(5)));
}

#[test]
fn traps_wait_for_those_who_are_away() {
    let mut desk = Desk::default();
    assert!(!desk.keeps_trap(Guid(11)));
    assert!(desk.hold(Time::ZERO, Guid(1), away(11, false), 0));
    assert!(desk.hold(Time::ZERO, Guid(2), away(12, true), 5));
    assert_eq!((desk.keeps_trap(Guid(11)), desk.keeps_trap(Guid(13))), (true, false));
    assert_eq!((desk.expects_at(Guid(11)), desk.expects_at(Guid(12))), (false, true));
    assert_eq!(desk.take_trapped(), []);
    assert_eq!(desk.until(), Some(Time::from_secs(5)));
    assert_eq!(desk.expire(Time::from_secs(4)), []);
    assert_eq!(desk.expire(Time::from_secs(5)).len(), 1);
    desk.release(Guid(1));
    desk.release(Guid(1));
    assert_eq!(desk.take_trapped(), [Guid(11)]);
    assert!(!desk.is_anyone_away());
}

#[test]
fn no_more_than_so_many_are_away() {
    let mut desk = Desk::default();
    for guid in 0..AWAY_MAX as u64 {
        assert!(desk.hold(Time::ZERO, Guid(guid), away(11, false), 0));
    }
    assert!(!desk.hold(Time::ZERO, Guid(u64::MAX), away(11, false), 0));
    assert!(desk.hold(Time::ZERO, Guid(3), away(11, false), 0), "one that is away already");
}
