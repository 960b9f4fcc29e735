//! Requests that contradict themselves, the subnet or an earlier one, and those who may not ask.

use super::client::{exchange, lid_of};
use super::site::{Site, options, tree};
use weft_routing::{Isolation, Member, Partition, Partitions};
use weft_sm::{Event, Input, KeyOptions, Options};
use weft_topology::generate::{GenerateOptions, ring, xgft};
use weft_wire::*;

#[test]
fn those_without_the_key_may_not() {
    let mut site = tree();
    let ask = site.swap((1, 0), (9, 1));
    let mut asked = site.request(Method::Set, sa_attribute::VM_MOVE, &ask);
    asked.key = SmKey(9);
    let (head, _) = exchange(&mut site.world, &asked);
    assert_eq!(head.status(), sa_status::REQ_DENIED, "a wrong key");
    asked = super::client::Asked { key: SmKey(0), id: 99, ..asked };
    let (status, answer) = site.tell(&asked);
    assert_eq!((status, answer.result), (sa_status::REQ_DENIED, VmMoveResult::Denied));
    assert_eq!(answer.reason_text(), "moves of LIDs need the manager's SM_Key");
    assert_eq!(site.events(|event| matches!(event, Event::MoveStarted { .. })), 0);
}

#[test]
fn a_key_that_everyone_knows_is_none() {
    let physical = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut site = Site::new(
        &physical,
        1,
        Options { keys: KeyOptions { sa_key: SmKey(1), ..KeyOptions::default() }, ..options("ftree") },
    );
    let ask = site.swap((0, 0), (3, 0));
    let mut asked = site.request(Method::Set, sa_attribute::VM_MOVE, &ask);
    asked.key = SmKey(1);
    let (status, answer) = site.tell(&asked);
    assert_eq!((status, answer.result), (sa_status::REQ_DENIED, VmMoveResult::Denied));
    assert!(answer.reason_text().contains("SM_Key is 1"), "{}", answer.reason_text());
}

#[test]
fn one_host_leaves_room_for_requests_of_another() {
    const OF_ONE: usize = 128;
    let mut site = tree();
    let ask = site.swap((1, 0), (9, 1));
    let asked: Vec<_> = (0..200).map(|_| site.request(Method::Set, sa_attribute::VM_MOVE, &ask)).collect();
    // A sweep is under way, so that they wait.
    site.world.command(Input::Resweep { heavy: true });
    for asked in &asked {
        site.world.command(Input::Receive(asked.mad()));
    }
    let refused = (200 - OF_ONE) as u64;
    let counts = site.world.sm.sa_counts();
    assert_eq!((counts.limited.requester_moves, counts.limited.busy), (refused, refused), "{counts:?}");
    let from = lid_of(&site.world, site.adapters[3].pf, PortNum(1));
    let other = super::client::Asked { from, id: 999, ..asked[0] };
    site.world.command(Input::Receive(other.mad()));
    assert_eq!(site.world.sm.sa_counts().limited.busy, refused, "it waits too");
}

#[test]
fn a_virtual_machine_may_not_ask_and_a_hypervisor_may() {
    let mut site = tree();
    let ask = site.swap((1, 0), (9, 1));
    for (node, is_guest) in [(site.vf((5, 1)), true), (site.adapters[5].pf, false)] {
        let mut asked = site.request(Method::Get, sa_attribute::VM_MOVE, &ask);
        asked.from = lid_of(&site.world, node, PortNum(1));
        let (status, answer) = site.tell(&asked);
        let expected = if is_guest { VmMoveResult::Denied } else { VmMoveResult::Planned };
        assert_eq!(answer.result, expected, "{status:#x} {}", answer.reason_text());
    }
    let mut asked = site.request(Method::Set, sa_attribute::VM_MOVE, &ask);
    asked.from = Lid(0x1234);
    assert_eq!(site.tell(&asked).1.reason_text(), "the sender's LID is no one's in this subnet");
}

#[test]
fn invalid_move_requests_are_refused_with_a_reason() {
    let mut site = tree();
    let (swap, copy) = (site.swap((1, 0), (9, 1)), site.ask(VmMoveKind::Copy, (1, 0), (9, 1)));
    let other = site.lid((2, 0));
    let leaf = site.world.fake.fabric.by_id("S-0000000000000001").map(|_| Guid(1));
    let pf = site.world.fake.identity(site.adapters[3].pf).1;
    let cases = [
        (VmMove { guid: Guid(0), ..swap }, "GUID 0 is no one's"),
        (VmMove { guid: Guid(0xabc), ..swap }, "has no LID"),
        (VmMove { guid: site.port_guid((2, 0)), ..swap }, "is at port 3 of vSwitch"),
        (VmMove { guid: pf, ..swap }, "is at port 2 of vSwitch"),
        (VmMove { lid: other, ..swap }, "is not that of GUID"),
        (VmMove { guid: Guid(0xabc), lid: other, ..swap }, "belongs to another GUID"),
        (VmMove { partner: Guid(0xabc), ..swap }, "has no LID"),
        (VmMove { partner: site.port_guid((2, 0)), ..swap }, "not at port 4"),
        (VmMove { to_switch: Guid(0xabc), ..swap }, "no node with GUID 0x0000000000000abc"),
        (VmMove { to_switch: leaf.unwrap_or(Guid(0)), ..swap }, "no node with GUID"),
        (VmMove { to_port: PortNum(1), ..swap }, "is none of a virtual function"),
        (VmMove { to_port: PortNum(2), ..swap }, "is none of a virtual function"),
        (VmMove { to_port: PortNum(5), ..swap }, "is none of a virtual function"),
        (VmMove { to_switch: swap.from_switch, to_port: swap.from_port, ..swap }, "are the same place"),
        (copy, "is taken by GUID"),
        (VmMove { kind: VmMoveKind::Boot, ..swap }, "already"),
        (VmMove { kind: VmMoveKind::Clear, ..swap }, "unplug it first"),
        (VmMove { kind: VmMoveKind::from_code(77), ..swap }, "moves no LID"),
        (VmMove { method: VmMoveMethod::from_code(9), ..swap }, "there is no method 0x9"),
        (VmMove { order: VmMoveOrder::from_code(9), ..swap }, "with order 0x9"),
    ];
    let count = cases.len();
    for (ask, why) in cases {
        let (status, result, reason) = site.refused(&ask);
        assert_eq!((status, result), (sa_status::REQ_INVALID, VmMoveResult::Invalid), "{reason}");
        assert!(reason.contains(why), "{why}: {reason}");
    }
    assert_eq!(site.events(|event| matches!(event, Event::MoveRefused { .. })), count);
    site.done(&swap);
}

#[test]
fn a_repeated_request_gets_its_answer_and_an_old_epoch_none() {
    let mut site = tree();
    let ask = VmMove { epoch: 5, ..site.swap((1, 0), (9, 1)) };
    let done = site.done(&ask);
    let sets = site.lft_sets();
    assert_eq!(site.done(&ask), done);
    assert_eq!(site.lft_sets(), sets, "nothing is written twice");
    let (_, result, reason) = site.refused(&VmMove { epoch: 4, ..ask });
    assert_eq!(result, VmMoveResult::OldEpoch, "{reason}");
    let (_, result, reason) = site.refused(&VmMove { to_port: PortNum(3), ..ask });
    assert_eq!(result, VmMoveResult::Invalid, "{reason}");
    assert!(reason.contains("was another request"), "{reason}");
}

#[test]
fn without_a_tree_another_move_method_is_used_and_named() {
    let physical = ring(6, 2, &GenerateOptions::default()).expect("a ring");
    let mut site = Site::new(&physical, 1, options("updn"));
    let (answer, _) = site.plan(&site.swap((0, 0), (7, 0)));
    assert_eq!(answer.made_by, VmMoveMethod::Skyline, "{}", answer.reason_text());
    assert!(answer.fallbacks >= 1 && !answer.reason_text().is_empty());
}

/// Min-hop's packets can wait for each other round a ring whatever moves. No proof can say that they do not, and the answer says so.
#[test]
fn lanes_on_which_packets_can_wait_in_a_circle_already_are_told() {
    let physical = ring(6, 2, &GenerateOptions::default()).expect("a ring");
    for (engine, lanes) in [("minhop", 1), ("updn", 0)] {
        let mut site = Site::new(&physical, 1, options(engine));
        let ask = site.swap((0, 0), (7, 0));
        let (plan, _) = site.plan(&ask);
        assert_eq!((plan.unproved_lanes, site.done(&ask).unproved_lanes), (lanes, lanes), "{engine}");
    }
}

/// A port with 32 places takes 31 keys besides the default partition's. A machine that would lack one there would not resume: it is
/// refused while it still runs, and its plan too.
#[test]
fn a_machine_whose_partitions_do_not_fit_is_not_frozen() {
    for count in [31, 32] {
        let mut site = tree();
        let member = |site: &Site| Member { guid: site.port_guid((1, 0)), full: true };
        let partition = |pkey| {
            let (name, isolation) = (String::new(), Isolation::Def);
            Partition { name, pkey, members: vec![member(&site)], isolation }
        };
        let list = (1..=count).map(partition).collect();
        let partitions = Some(Partitions { list, ..Partitions::default() });
        let mut options = options("ftree");
        options.routing.engine.partitions = partitions;
        site = super::site::with(options);
        let swap = site.swap((1, 0), (9, 1));
        let hold = VmMove { kind: VmMoveKind::Hold, hold_s: 30, epoch: 0, ..swap };
        if count == 31 {
            site.done(&hold);
            site.done(&swap);
            continue;
        }
        for ask in [hold, swap] {
            let (_, result, why) = site.refused(&ask);
            assert_eq!(result, VmMoveResult::Invalid, "{why}");
            assert!(why.contains("has 33 P_Keys") && why.contains("has room for 32"), "{why}");
        }
        // Its partner may come here: it is in the default partition alone.
        site.done(&site.swap((9, 1), (1, 1)));
    }
}
