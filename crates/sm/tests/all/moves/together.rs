//! Several moves that are asked for at the same time.

use super::site::{options, tree, with};
use weft_machine::Time;
use weft_sm::{Input, LaneOptions, Options};
use weft_wire::*;

/// Asks for all at once, and gives the answers in the order of the requests.
fn all(site: &mut super::site::Site, asks: &[VmMove]) -> Vec<VmMove> {
    let requests: Vec<_> =
        asks.iter().map(|ask| site.request(Method::Set, sa_attribute::VM_MOVE, ask)).collect();
    // A sweep is under way, so that they wait together.
    site.world.command(Input::Resweep { heavy: true });
    for asked in &requests {
        site.world.command(Input::Receive(asked.mad()));
    }
    site.world.run_for(Time::from_secs(8));
    let answers = std::mem::take(&mut site.world.administration);
    let of = |id: u64| {
        let found = answers.iter().find(|answer| answer.mad.transaction_id() == TransactionId(id));
        let events = &site.world.events;
        let found = found.unwrap_or_else(|| panic!("no answer to {id}: {answers:?} {events:#?}"));
        VmMove::from_bytes(&SaMad::data.get(&found.mad.0))
    };
    requests.iter().map(|asked| of(asked.id)).collect()
}

#[test]
fn moves_that_can_be_proved_together_go_together() {
    let mut site = tree();
    let pairs = [((1, 0), (1, 1)), ((5, 0), (5, 1)), ((9, 0), (9, 1))];
    let asks = pairs.map(|(from, to)| site.swap(from, to));
    let tables = site.tables();
    let answers = all(&mut site, &asks);
    for answer in &answers {
        assert_eq!(answer.result, VmMoveResult::Done, "{}", answer.reason_text());
        assert_eq!((answer.together, answer.physical, answer.vswitches), (3, 0, 3), "a vSwitch for each");
    }
    assert_eq!(site.differing(&tables), (0, 3));
    pairs.into_iter().for_each(|(from, to)| site.exchange(from, to));
    site.world.run_for(Time::from_secs(2));
    site.world.check();
}

/// Packets that are under way to the old place turn at its vSwitch. Turns at two leaves close a circle with what is sent
/// between them, so the second move waits until packets of the first are gone.
#[test]
fn moves_that_cannot_be_proved_together_go_one_after_the_other() {
    let mut site = tree();
    let pairs = [((1, 0), (2, 0)), ((5, 0), (6, 0))];
    let asks = pairs.map(|(from, to)| site.swap(from, to));
    let tables = site.tables();
    let answers = all(&mut site, &asks);
    let numbers = |answer: &VmMove| (answer.result, answer.together, answer.physical, answer.vswitches);
    assert!(answers.iter().all(|answer| numbers(answer) == (VmMoveResult::Done, 1, 1, 2)), "{answers:?}");
    assert!(answers[0].took_us < 1_000_000 && answers[1].took_us >= 3_000_000, "{answers:?}");
    assert_eq!(site.differing(&tables), (2, 4));
    pairs.into_iter().for_each(|(from, to)| site.exchange(from, to));
    site.world.run_for(Time::from_secs(2));
    site.world.check();
}

#[test]
fn two_moves_of_one_machine_go_in_order() {
    let mut site = tree();
    let first = site.swap((1, 0), (9, 1));
    let second =
        VmMove { epoch: 2, guid: first.guid, partner: site.port_guid((13, 0)), ..site.swap((9, 1), (13, 0)) };
    let answers = all(&mut site, &[first, second]);
    let results: Vec<_> = answers.iter().map(|answer| (answer.result, answer.together)).collect();
    assert_eq!(results, [(VmMoveResult::Done, 1), (VmMoveResult::Done, 1)], "{}", answers[1].reason_text());
    // The other way round the second is old.
    let answers = all(&mut site, &[VmMove { epoch: 1, ..second }]);
    assert_eq!(answers[0].result, VmMoveResult::OldEpoch);
}

/// The hold that goes before a swap.
fn hold(ask: &VmMove) -> VmMove {
    VmMove { kind: VmMoveKind::Hold, hold_s: 30, epoch: 0, ..*ask }
}

/// The same two moves by machines that are held first: the second machine runs on until packets of the first are gone, and its move waits
/// for nothing once it is frozen.
#[test]
fn a_machine_is_held_when_its_move_waits_for_no_packets() {
    // Leaf, vSwitch of the old place and leaf hold a packet for 1.07 s each by default, and for 67 ms.
    for (life, longest) in [(18, 3_221_226), (14, 201_327)] {
        held_in_turn(life, longest);
    }
}

fn held_in_turn(packet_life_time: u8, longest: u32) {
    let mut site = with(Options {
        lanes: LaneOptions { packet_life_time, ..LaneOptions::default() },
        ..options("ftree")
    });
    let [first, second] = [((1, 0), (2, 0)), ((5, 0), (6, 0))].map(|(from, to)| site.swap(from, to));
    site.done(&hold(&first));
    // The first may be frozen already: how long its move takes is not known.
    let (status, later) = site.set(&hold(&second));
    assert_eq!((status, later.result), (sa_status::NO_RESOURCES, VmMoveResult::Later), "{later:?}");
    assert_eq!(later.took_us, 200_000, "{}", later.reason_text());
    let moved = site.done(&first);
    let (_, later) = site.set(&hold(&second));
    let wait = Time::from_micros(later.took_us.into());
    assert_eq!(later.result, VmMoveResult::Later);
    assert!(later.took_us > longest * 3 / 4 && later.took_us <= longest, "{wait}");
    // Another one whose move meets no packets need not wait.
    let inside = site.swap((9, 0), (9, 1));
    site.done(&hold(&inside));
    let inside = site.done(&inside);
    // It has sent packets of its own on their way.
    site.world.run_for(wait + Time::from_millis(200));
    site.done(&hold(&second));
    let last = site.done(&second);
    for answer in [moved, inside, last] {
        assert!(answer.took_us < 100_000, "{answer:?}");
    }
    site.exchange((1, 0), (2, 0));
    site.exchange((5, 0), (6, 0));
    site.exchange((9, 0), (9, 1));
    site.world.run_for(Time::from_secs(2));
    site.world.check();
}

/// A sweep makes new tables, and by which ways packets of the first move go is not known any more. So the second waits for them, as it
/// does without a sweep: a machine runs on meanwhile, and a move that is asked for without a hold is not carried out before.
#[test]
fn a_sweep_between_two_moves_does_not_skip_the_wait() {
    for is_held in [true, false] {
        let mut site = tree();
        let [first, second] = [((1, 0), (2, 0)), ((5, 0), (6, 0))].map(|(from, to)| site.swap(from, to));
        let moved = site.done(&first);
        assert!(moved.took_us < 100_000, "{moved:?}");
        site.exchange((1, 0), (2, 0));
        site.world.run_for(Time::from_millis(200));
        site.world.command(Input::Resweep { heavy: true });
        site.world.run_for(Time::from_millis(300));
        if is_held {
            let (_, later) = site.set(&hold(&second));
            assert_eq!(later.result, VmMoveResult::Later, "{}", later.reason_text());
            // 3.22 s after the first, of which the sweep and what is around it have taken half a second.
            assert!((2_500_000..3_221_226).contains(&later.took_us), "{later:?}");
            site.world.run_for(Time::from_micros(later.took_us.into()) + Time::from_millis(200));
            site.done(&hold(&second));
            assert!(site.done(&second).took_us < 100_000);
        } else {
            let asked = site.request(Method::Set, sa_attribute::VM_MOVE, &second);
            site.world.command(Input::Receive(asked.mad()));
            site.world.run_for(Time::from_secs(6));
            let answer = site.world.administration.pop_front().expect("an answer");
            let answer = VmMove::from_bytes(&SaMad::data.get(&answer.mad.0));
            assert_eq!(answer.result, VmMoveResult::Done, "{}", answer.reason_text());
            assert!((2_500_000..3_260_000).contains(&answer.took_us), "{answer:?}");
        }
        site.exchange((5, 0), (6, 0));
        site.world.run_for(Time::from_secs(2));
        site.world.check();
    }
}

/// What would be refused once a machine is frozen is refused before.
#[test]
fn a_machine_is_not_held_for_a_move_that_cannot_be() {
    let mut site = tree();
    let good = hold(&site.swap((1, 0), (9, 1)));
    let here = VmMove { to_switch: good.from_switch, to_port: good.from_port, ..good };
    let other = VmMove { from_switch: site.vswitch_guid(5), ..good };
    let odd = VmMove { method: VmMoveMethod::from_code(9), ..good };
    for (ask, words) in [(here, "the same place"), (other, "not at"), (odd, "there is no method 0x9")] {
        let (status, result, why) = site.refused(&ask);
        assert_eq!((status, result), (sa_status::NO_RESOURCES, VmMoveResult::Unproved), "{why}");
        assert!(why.contains(words), "{why}");
    }
    site.done(&good);
}
