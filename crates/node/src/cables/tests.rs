use weft_wire::{FlowControl, Packet, PortNum};

use super::*;
use crate::DeviceId;

const A: PortId = PortId::new(DeviceId(0), PortNum(1));
const B: PortId = PortId::new(DeviceId(1), PortNum(2));

fn cable() -> (Cables, End, End) {
    let mut cables = Cables::default();
    let [a, b] = cables.connect([(A, LinkParameters::default(), true), (B, LinkParameters::default(), true)]);
    cables.begin();
    let peer = LinkParameters::default();
    assert_eq!(cables.poll(), Some(Crossing::Up { at: A, peer }));
    assert_eq!(cables.poll(), Some(Crossing::Up { at: B, peer }));
    assert_eq!(cables.poll(), None);
    (cables, a, b)
}

fn credit(fccl: u16) -> Frame {
    Frame::Credit(FlowControl { fccl, ..FlowControl::default() })
}

fn smp() -> Frame {
    let route = weft_wire::MadRoute::smp(weft_wire::Lid(1), weft_wire::Lid(2));
    Frame::Packet(Packet::from_mad(&route, &weft_wire::Mad::default()))
}

#[test]
fn frames_arrive_at_the_other_end_in_order() {
    let (mut cables, a, b) = cable();
    for number in 0..3 {
        assert_eq!(cables.send(a, credit(number)), Ok(()));
    }
    assert_eq!(cables.send(b, credit(9)), Ok(()));
    for number in 0..3 {
        assert_eq!(cables.poll(), Some(Crossing::Arrived { at: B, frame: credit(number) }));
    }
    assert_eq!(cables.poll(), Some(Crossing::Arrived { at: A, frame: credit(9) }));
    assert!(cables.is_idle());
}

#[test]
fn lane_15_drops_beyond_its_bound_and_nothing_else_does() {
    let (mut cables, a, b) = cable();
    for _ in 0..MANAGEMENT_MAX {
        assert_eq!(cables.send(a, smp()), Ok(()));
    }
    assert_eq!(cables.send(a, smp()), Err(smp()));
    assert_eq!(cables.send(a, credit(1)), Ok(()), "data lanes have room of their own");
    assert_eq!(cables.poll(), Some(Crossing::Arrived { at: B, frame: smp() }));
    assert_eq!(cables.send(a, smp()), Ok(()));
    assert!(cables.is_up(b));
}

#[test]
fn a_cut_takes_both_ends_down_and_what_was_under_way_is_lost() {
    let (mut cables, a, b) = cable();
    assert_eq!(cables.send(a, smp()), Ok(()));
    cables.set_enabled(b, false);
    assert_eq!(cables.send(a, credit(1)), Err(credit(1)));
    assert_eq!(cables.poll(), Some(Crossing::Down { at: B, cause: LinkLoss::Cut }));
    assert_eq!(cables.poll(), Some(Crossing::Down { at: A, cause: LinkLoss::CutByPeer }));
    assert_eq!(cables.poll(), None);
    assert_eq!(cables.lost()[15], 1);

    cables.set_enabled(a, false);
    cables.set_enabled(b, true);
    assert_eq!(cables.poll(), None, "the other end is still cut");
    cables.set_enabled(a, true);
    assert!(matches!(cables.poll(), Some(Crossing::Up { .. })));
    assert!(matches!(cables.poll(), Some(Crossing::Up { .. })));
    assert_eq!(cables.up_count(), 1);
}

#[test]
fn a_frame_of_an_earlier_life_is_lost_however_short_the_cut() {
    let (mut cables, a, _) = cable();
    assert_eq!(cables.send(a, credit(0)), Ok(()));
    cables.set_enabled(a, false);
    cables.set_enabled(a, true);
    assert_eq!(cables.send(a, credit(1)), Ok(()));
    let seen: Vec<_> = std::iter::from_fn(|| cables.poll()).collect();
    assert_eq!(seen.len(), 5, "{seen:?}");
    assert!(matches!(seen[..2], [Crossing::Down { .. }, Crossing::Down { .. }]));
    assert!(matches!(seen[2..4], [Crossing::Up { .. }, Crossing::Up { .. }]));
    assert_eq!(seen[4], Crossing::Arrived { at: B, frame: credit(1) });
}

#[test]
fn a_credit_without_room_takes_the_cable_down() {
    let (mut cables, a, _) = cable();
    for _ in 0..DATA_MAX {
        assert_eq!(cables.send(a, credit(0)), Ok(()));
    }
    assert_eq!(cables.send(a, smp()), Ok(()), "lane 15 has room of its own");
    assert_eq!(cables.send(a, credit(1)), Err(credit(1)));
    assert_eq!(cables.overflows(), 1);
    let seen: Vec<_> = std::iter::from_fn(|| cables.poll()).collect();
    assert_eq!(seen[0], Crossing::Down { at: A, cause: LinkLoss::Overflow });
    assert_eq!(seen[1], Crossing::Down { at: B, cause: LinkLoss::BrokenByPeer });
    assert_eq!(seen.len(), 4, "down and up at both ends, and nothing of the life before");
    assert_eq!(cables.send(a, credit(3)), Ok(()));
    assert_eq!(cables.poll(), Some(Crossing::Arrived { at: B, frame: credit(3) }));
}

#[test]
fn an_overrun_begins_a_new_life() {
    let (mut cables, a, b) = cable();
    assert_eq!(cables.send(a, credit(0)), Ok(()));
    cables.overrun(b);
    let seen: Vec<_> = std::iter::from_fn(|| cables.poll()).collect();
    assert_eq!(seen[0], Crossing::Down { at: B, cause: LinkLoss::Overrun });
    assert_eq!(seen[1], Crossing::Down { at: A, cause: LinkLoss::BrokenByPeer });
    assert_eq!(seen.len(), 4, "down and up at both ends, and no frame: {seen:?}");
}

#[test]
fn a_removed_cable_drops_its_frames_and_frees_its_slot() {
    let (mut cables, a, _) = cable();
    assert_eq!(cables.send(a, smp()), Ok(()));
    cables.remove(a);
    let c = PortId::new(DeviceId(7), PortNum(1));
    let [again, _] =
        cables.connect([(A, LinkParameters::default(), true), (c, LinkParameters::default(), true)]);
    assert_eq!(again, a, "the place is given to the next cable");
    let seen: Vec<_> = std::iter::from_fn(|| cables.poll()).collect();
    assert!(
        matches!(seen[..], [Crossing::Down { at: A, .. }, Crossing::Down { at: B, .. }, Crossing::Up { at: A, .. }, Crossing::Up { at, .. }] if at == c),
        "{seen:?}"
    );
    assert_eq!((cables.up_count(), cables.lost()[15]), (1, 1));
    assert_eq!(cables.peer(a), c);
}
