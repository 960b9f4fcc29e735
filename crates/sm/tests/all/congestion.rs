//! Congestion control: what the manager writes, and what it leaves alone.

use fake::{Fake, World};
use weft_machine::Time;
use weft_sm::{CongestionControl, Event, GuidToLid, Input, Options};
use weft_topology::PortRef;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_wire::*;

use crate::fake;

/// Six switches with twelve hosts.
fn fake() -> Fake {
    let fabric = xgft(&[3, 4], &[1, 2], &GenerateOptions::default()).expect("a tree");
    let own = PortRef::new(fabric.hosts().next().expect("a host").0, PortNum(1));
    Fake::new(fabric, own)
}

fn on() -> Options {
    Options::from(CongestionControl { is_on: true, ..CongestionControl::default() })
}

fn up(fake: Fake, options: Options) -> World {
    let mut world = World::new(fake, options, &GuidToLid::default());
    world.run_for(Time::from_secs(5));
    world.check();
    assert!(world.last_summary().complete, "{:#?}", world.events);
    world
}

fn sweep(world: &mut World) {
    (world.fake.regulated, world.fake.sets) = ((0, 0), Default::default());
    let before = world.summaries().len();
    world.command(Input::Resweep { heavy: true });
    world.run_for(Time::from_secs(5));
    assert!(world.summaries().len() > before && world.last_summary().complete, "{:#?}", world.events);
}

/// A setting of every switch, and one and two blocks of the table of every host.
const GETS: u64 = 6 + 12 * 3;

/// What a host's port holds.
fn adapter(world: &World, node: usize) -> (CaCongestionSetting, u16) {
    let held = world.fake.devices[node].congestion.as_ref().expect("an agent");
    let data = |attribute, block| held.get(&(1, attribute, block)).copied().unwrap_or([0; 192]);
    let setting = data(congestion_attribute::CA_CONGESTION_SETTING, 0);
    let table = data(congestion_attribute::CONGESTION_CONTROL_TABLE, 1);
    (
        CaCongestionSetting::decode(setting.first_chunk().expect("long enough")),
        CongestionControlTable::decode(table.first_chunk().expect("long enough")).entries[63],
    )
}

fn last_host(world: &World) -> usize {
    world.fake.fabric.hosts().last().expect("a host").0.index()
}

#[test]
fn a_second_sweep_reads_everything_and_writes_nothing() {
    let mut world = up(fake(), on());
    assert_eq!(world.fake.regulated, (GETS, GETS));
    let timer = on().congestion.settings.ca_cong_setting_ccti_timer;
    let (setting, last) = adapter(&world, last_host(&world));
    assert_eq!((setting.entries[15].ccti_timer, setting.control_map), (timer, 0xffff));
    assert_eq!(last, *on().congestion.settings.cct.last().expect("a table"));
    sweep(&mut world);
    assert_eq!(world.fake.regulated, (GETS, 0));
    world.restart_sm(on(), &GuidToLid::default());
    world.run_for(Time::from_secs(5));
    assert_eq!(world.fake.regulated, (GETS, 0), "nor does another manager");
}

#[test]
fn only_foreign_congestion_changes_are_rewritten() {
    let mut world = up(fake(), on());
    let host = last_host(&world);
    let held = world.fake.devices[host].congestion.as_mut().expect("an agent");
    let setting = held.get_mut(&(1, congestion_attribute::CA_CONGESTION_SETTING, 0)).expect("it was set");
    // The timer of service level 0.
    setting[5] ^= 1;
    sweep(&mut world);
    assert_eq!(world.fake.regulated, (GETS, 1));
    let timer = on().congestion.settings.ca_cong_setting_ccti_timer;
    assert_eq!(adapter(&world, host).0.entries[0].ccti_timer, timer);
}

#[test]
fn a_node_that_comes_late_gets_its_settings() {
    let mut fake = fake();
    let late = fake.fabric.hosts().last().expect("a host").0;
    fake.kill(late);
    let mut world = up(fake, on());
    assert_eq!(world.fake.regulated, (GETS - 3, GETS - 3));
    assert_eq!(adapter(&world, late.index()).0, CaCongestionSetting::default());
    let neighbours = world.fake.restart(late);
    world.fake.regulated = (0, 0);
    world.traps(&neighbours);
    world.run_for(Time::from_secs(20));
    world.check();
    assert_eq!(
        world.fake.regulated.1,
        3 + 1,
        "what it lacks, and that its switch has one more port to a host"
    );
    let timer = on().congestion.settings.ca_cong_setting_ccti_timer;
    assert_eq!(adapter(&world, late.index()).0.entries[0].ccti_timer, timer);
}

#[test]
fn a_node_without_the_class_is_left_alone() {
    let mut fake = fake();
    let (switch, host) = (fake.fabric.switches().next(), fake.fabric.hosts().last());
    for (node, _) in [switch, host].into_iter().flatten() {
        fake.devices[node.index()].congestion = None;
    }
    let world = up(fake, on());
    assert_eq!(world.fake.regulated, (GETS, GETS - 4), "asked once, and not told");
    let complaints = |event: &&(Time, Event)| {
        matches!(event.1, Event::Refused { .. } | Event::Unanswered { .. } | Event::Unsettled { .. })
    };
    assert_eq!(world.events.iter().find(complaints), None);
    assert_eq!((world.last_summary().refused, world.summaries().len()), (0, 1));
}

#[test]
fn an_sm_without_cc_reports_and_keeps_foreign_settings() {
    let left = |world: &World| {
        let events = world.events.iter().filter_map(|(_, event)| match event {
            Event::CongestionLeft { switches, hosts } => Some((*switches, *hosts)),
            _ => None,
        });
        events.collect::<Vec<_>>()
    };
    let mut world = up(fake(), Options::default());
    assert_eq!((world.fake.regulated, left(&world)), ((0, 0), vec![]), "of a fresh fabric nothing is asked");
    world.restart_sm(Options::default(), &GuidToLid::default());
    world.run_for(Time::from_secs(5));
    assert_eq!((world.fake.regulated, left(&world)), ((18, 0), vec![]), "asked, and nothing was there");
    world.restart_sm(on(), &GuidToLid::default());
    world.run_for(Time::from_secs(5));
    let before = adapter(&world, last_host(&world));
    world.restart_sm(Options::default(), &GuidToLid::default());
    world.run_for(Time::from_secs(5));
    assert_eq!((world.fake.regulated, left(&world)), ((18, 0), vec![(6, 12)]));
    assert_eq!(adapter(&world, last_host(&world)), before);
    sweep(&mut world);
    assert_eq!((world.fake.regulated, left(&world).len()), ((0, 0), 1), "it is said once");
}

#[test]
fn zeros_take_it_back() {
    let mut world = up(fake(), on());
    let mut zeros = on();
    (
        zeros.congestion.settings.sw_cong_setting_threshold,
        zeros.congestion.settings.ca_cong_setting_ccti_increase,
    ) = (0, 0);
    world.restart_sm(zeros, &GuidToLid::default());
    world.run_for(Time::from_secs(5));
    assert_eq!(world.fake.regulated, (GETS, 6 + 12), "the table may stay");
    world.restart_sm(Options::default(), &GuidToLid::default());
    world.run_for(Time::from_secs(5));
    let left = world.events.iter().filter(|(_, event)| matches!(event, Event::CongestionLeft { .. }));
    assert_eq!(left.count(), 0);
}
