//! Switches that do not acknowledge, and SMPs that are sent twice.

use super::site::{options, tree};
use weft_machine::Time;
use weft_sm::{Activity, Event};
use weft_topology::NodeIndex;
use weft_wire::*;

#[test]
fn no_acknowledgement_ends_the_plan_and_a_sweep_heals() {
    let mut site = tree();
    let spine = site.world.fake.fabric.iter().find(|(_, node)| node.description == "switch-2-0");
    let spine: NodeIndex = spine.expect("a spine").0;
    let ask = site.swap((1, 0), (9, 1));
    site.world.fake.kill_unnoticed(spine);
    let (status, answer) = site.set(&ask);
    assert_eq!((status, answer.result), (sa_status::NO_RESOURCES, VmMoveResult::Broken));
    assert!(answer.reason_text().contains("does not acknowledge"), "{}", answer.reason_text());
    assert_eq!(site.events(|event| matches!(event, Event::MoveBroken { .. })), 1);
    site.world.run_for(Time::from_secs(20));
    assert!(site.heavy_sweeps() > 1);
    site.world.check_with("nothing has moved, and the spine is gone");
    let neighbours = site.world.fake.restart(spine);
    site.world.traps(&neighbours);
    site.world.run_for(Time::from_secs(5));
    let done = site.done(&VmMove { epoch: 2, ..ask });
    assert_eq!(done.vswitches, 2);
    site.exchange((1, 0), (9, 1));
    site.world.run_for(Time::from_secs(2));
    site.world.check();
}

#[test]
fn blocks_that_were_sent_twice_are_read_back_at_once() {
    let mut site = tree();
    let ask = site.swap((1, 0), (9, 1));
    site.world.run_for(Time::from_secs(20));
    // The third of its SMPs is lost.
    site.world.fake.lose_every = site.world.fake.seen + 3;
    let gets = std::rc::Rc::new(std::cell::Cell::new(0));
    let seen = gets.clone();
    site.world.watch = Some(Box::new(move |_, request| {
        let is_read = request.mad.method() == Method::Get
            && request.mad.attribute_id() == AttributeId::LinearForwardingTable;
        seen.set(seen.get() + u32::from(is_read));
    }));
    let done = site.done(&ask);
    site.world.fake.lose_every = 0;
    assert!(done.took_us >= 200_000, "a retry takes a timeout");
    assert_eq!(gets.get(), 1, "one block was sent twice");
}

/// A manager dies with each round that is written, and the next one heals.
#[test]
fn a_manager_that_dies_between_rounds_leaves_what_a_sweep_heals() {
    for lost in 1..=6 {
        let mut site = tree();
        let ask = site.swap((1, 0), (9, 1));
        let file = site.world.persisted.clone().expect("LIDs on file");
        // From the SMP of this number on all is lost, as when the process is gone.
        let sets = site.lft_sets();
        let asked = site.request(Method::Set, sa_attribute::VM_MOVE, &ask);
        site.world.command(weft_sm::Input::Receive(asked.mad()));
        while site.lft_sets() - sets < lost && site.world.administration.is_empty() {
            site.world.run_for(Time::from_micros(50));
        }
        for exchanged in [false, true] {
            site.world.restart_sm(options("ftree"), &file);
            site.world.run_until(Activity::Up);
            site.world.check_with(&format!("{lost} SMPs, exchanged: {exchanged}"));
            if !exchanged {
                site.exchange((1, 0), (9, 1));
            }
        }
    }
}
