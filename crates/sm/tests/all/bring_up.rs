//! Whole sweeps against a scripted fabric.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use fake::{Fake, World};
use weft_machine::Time;
use weft_mgmt::Window;
use weft_sm::{Event, GuidToLid, Input, Options, RoutingOptions, SmpOptions, SmpRouting, SweepOptions};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::{AttributeId, DirectedSmp, Lid, Method, PortInfo, PortNum, PortState, VlCap};

use crate::fake;

fn tree(children: &[u32], parents: &[u32]) -> Fabric {
    xgft(children, parents, &GenerateOptions::default()).expect("a tree")
}

fn first_host(fabric: &Fabric) -> PortRef {
    PortRef::new(fabric.hosts().next().expect("a host").0, PortNum(1))
}

fn world(fabric: Fabric, options: Options) -> World {
    let own = first_host(&fabric);
    World::new(Fake::new(fabric, own), options, &GuidToLid::default())
}

#[test]
fn a_small_tree_comes_up() {
    let mut world = world(tree(&[3, 4], &[1, 2]), Options::default());
    world.run_for(Time::from_secs(5));
    world.check();
    let summary = world.last_summary();
    assert!(summary.complete, "{:#?}", world.events);
    assert_eq!((summary.switches, summary.hosts, summary.lids), (6, 12, 18));
    assert_eq!(world.summaries().len(), 1);
}

#[test]
fn the_large_tree_comes_up_within_its_budget_of_smps() {
    let mut world = world(tree(&[18, 36], &[1, 18]), Options::default());
    world.run_for(Time::from_secs(5));
    world.check();
    let summary = world.last_summary();
    assert!(summary.complete);
    assert_eq!((summary.switches, summary.hosts, summary.cables), (54, 648, 1296));
    assert_eq!((summary.ports_active, summary.lids), (2592, 702));
    assert!(summary.smps.total <= 17_000, "{:#?}", summary);
    assert_eq!(world.sent, summary.smps.total, "nothing is sent twice");
    assert_eq!(summary.smps.get_lft, 0, "a fresh table is not read");
    assert_eq!(summary.smps.set_lft, 54 * 11);
    assert!(summary.smps.get_node_info <= 1297 + 20, "{:#?}", summary);
}

#[test]
fn a_restarted_manager_reads_everything_and_writes_nothing() {
    for options in [Options::default(), Options::from(RoutingOptions { lmc: 2, ..RoutingOptions::default() })]
    {
        let mut world = world(tree(&[3, 4], &[1, 2]), options.clone());
        world.run_for(Time::from_secs(5));
        // Without the file: the LIDs are read from the ports.
        world.restart_sm(options, &GuidToLid::default());
        world.run_for(Time::from_secs(5));
        world.check();
        assert_eq!(world.fake.sets, Default::default(), "{:#?}", world.last_summary());
        assert!(world.last_summary().complete);
        assert!(world.last_summary().smps.get_lft > 0);
    }
}

#[test]
fn a_second_sweep_reads_no_table_again() {
    let mut world = world(tree(&[3, 4], &[1, 2]), Options::default());
    world.run_for(Time::from_secs(5));
    world.command(Input::Resweep { heavy: true });
    world.run_for(Time::from_secs(5));
    let smps = world.last_summary().smps;
    assert_eq!((smps.sets(), smps.get_lft, smps.get_sl_to_vl, smps.get_vl_arbitration), (0, 0, 0, 0));
}

#[test]
fn lids_on_file_go_before_lids_in_ports() {
    let mut world = world(tree(&[3, 4], &[1, 2]), Options::default());
    world.run_for(Time::from_secs(5));
    let first = world.persisted.clone().unwrap();
    assert_eq!(first.len(), 18);
    // The same file gives the same LIDs to a fabric that has forgotten all.
    let fabric = world.fake.fabric.clone();
    let mut fresh = World::new(Fake::new(fabric.clone(), first_host(&fabric)), Options::default(), &first);
    fresh.run_for(Time::from_secs(5));
    assert_eq!(fresh.persisted, None, "nothing new");
    fresh.check();
    // Another file moves them all.
    let text = first.to_string();
    let moved: String = text
        .lines()
        .filter(|line| !line.is_empty())
        .enumerate()
        .map(|(at, line)| {
            let guid = line.split_whitespace().next().unwrap();
            format!("{guid} {:#x} {:#x}\n", 100 + at, 100 + at)
        })
        .collect();
    world.restart_sm(Options::default(), &GuidToLid::parse("guid2lid", &moved).unwrap());
    world.run_for(Time::from_secs(5));
    world.check();
    assert_eq!(world.fake.devices[0].ports.iter().map(|p| p.lid.0).max().unwrap().max(100) / 100, 1);
    assert!(world.last_summary().complete);
}

#[test]
fn smps_go_by_lid_once_tables_stand() {
    let options = Options::from(SmpOptions { smp_routing: SmpRouting::Lid, ..SmpOptions::default() });
    let mut world = world(tree(&[3, 4], &[1, 2]), options);
    world.run_for(Time::from_secs(15));
    world.check();
    let summary = world.last_summary();
    assert!(summary.complete, "{:#?}", world.events);
    assert!(world.fake.by_lid > u64::from(summary.ports_active), "{}", world.fake.by_lid);
    assert_eq!(summary.retries, 0);
}

#[test]
fn smps_lost_by_lid_go_by_directed_route() {
    let fabric = tree(&[3, 4], &[1, 2]);
    let own = first_host(&fabric);
    let mut fake = Fake::new(fabric, own);
    fake.lids_are_lost = true;
    let options = Options::from(SmpOptions { smp_routing: SmpRouting::Lid, ..SmpOptions::default() });
    let mut world = World::new(fake, options, &GuidToLid::default());
    world.run_for(Time::from_secs(20));
    let states = world.fake.devices.iter().flat_map(|device| &device.ports).map(|port| port.port_state);
    assert!(states.into_iter().all(|state| state != weft_wire::PortState::Initialize));
    let summary = world.last_summary();
    assert!(summary.complete, "{summary:#?}");
    assert!(summary.took < Time::from_secs(2), "one time-out in Activate, one in Verify: {}", summary.took);
}

#[test]
fn switches_without_wildcards_are_told_pair_by_pair() {
    let fabric = tree(&[3, 4], &[1, 2]);
    let own = first_host(&fabric);
    let mut fake = Fake::new(fabric, own);
    fake.devices.iter_mut().for_each(|device| device.switch.optimized_sl_to_vl_mapping = 0);
    let mut world = World::new(fake, Options::default(), &GuidToLid::default());
    world.run_for(Time::from_secs(5));
    world.check();
    // Four leaves with 3 + 2 ports, two spines with 4, and 12 hosts.
    assert_eq!(world.last_summary().smps.set_sl_to_vl, 4 * 5 * 6 + 2 * 4 * 5 + 12);
}

/// SMPs may overtake each other, so a switch's exceptions wait for its common mapping's answer.
#[test]
fn ports_that_differ_are_told_after_the_common_mapping() {
    let fabric = tree(&[6, 4], &[1, 2]);
    let own = first_host(&fabric);
    let mut fake = Fake::new(fabric, own);
    let hosts: Vec<_> = fake.fabric.hosts().map(|(index, _)| index).collect();
    hosts.iter().step_by(6).for_each(|host| fake.devices[host.index()].ports[1].vl_cap = VlCap::Vl0);
    let options = Options::from(SmpOptions { max_wire_smps: Window::Fixed(64), ..SmpOptions::default() });
    let mut world = World::new(fake, options, &GuidToLid::default());
    let told = Rc::new(RefCell::new(BTreeMap::new()));
    let telling = Rc::clone(&told);
    world.watch = Some(Box::new(move |now, request| {
        if request.mad.attribute_id() == AttributeId::SlToVlTable && request.mad.method() == Method::Set {
            let path = DirectedSmp::initial_path.get(&request.mad.0);
            let common = request.mad.attribute_modifier() == 0x3_0000;
            let mut told = telling.borrow_mut();
            let times: &mut [Vec<Time>; 2] = told.entry(path).or_default();
            times[usize::from(common)].push(now);
        }
    }));
    world.run_for(Time::from_secs(5));
    world.check();
    let both = told.borrow().values().filter(|[own, common]| !own.is_empty() && !common.is_empty()).count();
    assert_eq!(both, 4, "every leaf has a common mapping and an exception");
    for [own, common] in told.borrow().values().filter(|[_, common]| !common.is_empty()) {
        assert!(own.iter().all(|own| *own >= common[0] + fake::ROUND_TRIP), "{own:?} {common:?}");
    }
}

#[test]
fn lost_smps_are_sent_again() {
    for lose_every in [3, 7, 20, 101] {
        let fabric = tree(&[3, 4], &[1, 2]);
        let own = first_host(&fabric);
        let mut fake = Fake::new(fabric, own);
        fake.lose_every = lose_every;
        let mut world = World::new(fake, Options::default(), &GuidToLid::default());
        world.run_for(Time::from_secs(600));
        world.check();
        assert!(world.last_summary().complete, "one in {lose_every}");
        assert!(world.last_summary().retries > 0 || world.summaries().len() > 1);
    }
}

#[test]
fn every_cable_is_one_sweep_however_its_ends_report() {
    for late in [Time::ZERO, Time::from_millis(3), Time::from_millis(700), Time::from_secs(3)] {
        let mut world = world(tree(&[3, 4], &[1, 2]), Options::default());
        world.run_for(Time::from_secs(2));
        let port = spine_cable(&mut world);
        let ends = world.fake.cut(port);
        let [first, second] = ends.map(|end| world.fake.trap(end).unwrap());
        world.deliver(Time::from_micros(50), first);
        world.deliver(late, second);
        world.run_for(Time::from_secs(6));
        world.check();
        assert_eq!(world.summaries().len(), 2, "{late}");
        world.fake.mend(port);
        world.traps(&ends);
        world.run_for(Time::from_secs(6));
        world.check();
        assert_eq!(world.summaries().len(), 3, "{late}");
    }
}

#[test]
fn an_end_that_notices_late_is_no_second_sweep() {
    for late_ms in [0, 1, 5, 12, 15, 25, 500, 900, 3_000] {
        let mut world = world(tree(&[3, 4], &[1, 2]), Options::default());
        world.run_for(Time::from_secs(2));
        let port = spine_cable(&mut world);
        let ends = world.fake.cut_unnoticed(port);
        world.fake.notice(ends[0]);
        world.traps(&ends[..1]);
        world.run_for(Time::from_millis(late_ms));
        world.fake.notice(ends[1]);
        world.traps(&ends[1..]);
        world.run_for(Time::from_secs(15));
        world.check();
        assert_eq!(world.summaries().len(), 2, "{late_ms} ms: {:#?}", world.events);
        assert!(world.last_summary().took < Time::from_millis(200), "nobody waits for the cable");
    }
}

#[test]
fn a_killed_switch_is_bypassed_as_neighbours_notice_in_turn() {
    for apart_ms in [1, 30, 100, 700] {
        let fabric = tree(&[3, 6], &[1, 3]);
        let spine = fabric.switches().last().unwrap().0;
        let mut world = world(fabric, Options::default());
        world.run_for(Time::from_secs(2));
        let neighbours = world.fake.kill_unnoticed(spine);
        assert_eq!(neighbours.len(), 6);
        for port in neighbours {
            world.fake.notice(port);
            world.traps(&[port]);
            world.run_for(Time::from_millis(apart_ms));
        }
        world.run_for(Time::from_secs(15));
        world.check();
        assert_eq!(world.sm.progress().ports_silent, 0, "{apart_ms} ms");
        let longest = world.summaries().iter().map(|summary| summary.took).max().unwrap();
        assert!(longest < Time::from_secs(2), "{apart_ms} ms: {longest}");
        assert!(world.summaries().len() <= 8, "{apart_ms} ms: {}", world.summaries().len());
    }
}

/// A light sweep may miss a dead host before its switch sees the link go: that it does is the answer that the fabric lacked.
#[test]
fn a_fabric_is_whole_when_the_link_to_a_silent_host_goes_down() {
    let fabric = tree(&[3, 4], &[1, 2]);
    let host = fabric.hosts().last().unwrap().0;
    let mut world = world(fabric, Options::default());
    world.run_for(Time::from_secs(2));
    let switch = world.fake.kill_unnoticed(host);
    world.run_for(Time::from_secs(30));
    let lacking = world.last_summary();
    assert_eq!((lacking.complete, lacking.ports_silent, lacking.hosts), (false, 1, 11));
    world.fake.notice(switch[0]);
    world.traps(&switch);
    world.run_for(Time::from_secs(2));
    let whole = world.last_summary();
    assert_eq!((whole.complete, whole.ports_silent, whole.hosts), (true, 0, 11));
    world.check();
}

#[test]
fn every_trap_is_one_sweep_when_that_is_wanted() {
    let options = Options::from(SweepOptions { one_sweep_per_cable: false, ..SweepOptions::default() });
    let mut world = world(tree(&[3, 4], &[1, 2]), options);
    world.run_for(Time::from_secs(2));
    let port = spine_cable(&mut world);
    let ends = world.fake.cut(port);
    world.traps(&ends);
    world.run_for(Time::from_secs(5));
    world.check();
    assert_eq!(world.summaries().len(), 3);
}

#[test]
fn a_killed_switch_is_routed_around_and_comes_back_as_it_was() {
    for with_traps in [true, false] {
        let mut world = world(tree(&[3, 4], &[1, 2]), Options::default());
        world.run_for(Time::from_secs(2));
        let before = tables(&world);
        for (index, _) in world.fake.fabric.clone().switches() {
            let first_leaf = world.fake.fabric.peer(world.fake.own).unwrap().node;
            let neighbours = world.fake.kill(index);
            if with_traps {
                world.traps(&neighbours);
            }
            world.run_for(Time::from_secs(12));
            if index != first_leaf {
                world.check();
            }
            let neighbours = world.fake.restart(index);
            if with_traps {
                world.traps(&neighbours);
            }
            world.run_for(Time::from_secs(12));
            world.check();
            assert!(world.last_summary().complete);
            assert_eq!(tables(&world), before);
        }
        let cut_off = world.events.iter().filter(|(_, event)| matches!(event, Event::HostCutOff { .. }));
        assert_eq!(cut_off.count(), 9, "three hosts each of the three leaves that are not our own");
    }
}

#[test]
fn a_late_set_of_a_manager_before_is_found() {
    let audit_smps = 40;
    let mut world =
        world(tree(&[3, 4], &[1, 2]), Options::from(SweepOptions { audit_smps, ..SweepOptions::default() }));
    world.run_for(Time::from_secs(2));
    let before = tables(&world);
    let (switch, _) = world.fake.fabric.switches().next().expect("a switch");
    world.fake.devices[switch.index()].lft[..64].fill(PortNum::NONE);
    assert!(world.sm.progress().audit_pending);
    world.run_for(Time::from_secs(75));
    world.check();
    assert_eq!(tables(&world), before);
    assert_eq!(world.last_summary().smps.set_lft, 1, "only what differs");
    assert!(!world.sm.progress().audit_pending, "everything was read once");
    let reads = world.sent;
    world.run_for(Time::from_secs(10));
    let (reads, always) = (world.sent - reads, 6 + 18);
    let bounded = always + 1..=always + u64::from(audit_smps);
    assert!(bounded.contains(&reads), "it goes on, and a light sweep stays bounded: {reads}");
}

/// Of a mapping that differs by the port of arrival each round reads one input port.
#[test]
fn one_input_among_all_is_found_in_time() {
    let options = Options::from(SweepOptions { sweep_interval_ms: 1_000, ..SweepOptions::default() });
    let mut world = world(tree(&[3, 4], &[1, 2]), options);
    world.run_for(Time::from_secs(2));
    let (switch, _) = world.fake.fabric.switches().next().expect("a switch");
    let mapping = |world: &World| world.fake.devices[switch.index()].sl_to_vl.clone();
    let before = mapping(&world);
    let input = (3, 2);
    world.fake.devices[switch.index()].sl_to_vl.get_mut(&input).expect("a mapping").fill(0x11);
    assert!(mapping(&world) != before);
    world.run_for(Time::from_secs(12));
    assert!(mapping(&world) == before);
}

/// Whatever a late Set has put back, of whatever attribute, with light sweeps and without.
#[test]
fn everything_that_was_written_is_read_back() {
    type Spoil = fn(&mut fake::Device);
    let spoils: [(AttributeId, Spoil); 5] = [
        (AttributeId::PortInfo, |device| device.ports[1].hoq_life = 1),
        (AttributeId::PortInfo, |device| device.ports[4].neighbor_mtu = weft_wire::Mtu::Bytes256),
        (AttributeId::SwitchInfo, |device| device.switch.linear_fdb_top = 1),
        (AttributeId::SlToVlTable, |device| {
            device.sl_to_vl.iter_mut().for_each(|(_, table)| table.fill(0x11));
        }),
        (AttributeId::VlArbitrationTable, |device| {
            device.arbitration.iter_mut().for_each(|(_, table)| table.fill(0x11));
        }),
    ];
    for sweep_interval_ms in [5_000, 0] {
        for (at, (attribute, spoil)) in spoils.into_iter().enumerate() {
            let options = Options::from(SweepOptions { sweep_interval_ms, ..SweepOptions::default() });
            let mut world = world(tree(&[3, 4], &[1, 2]), options);
            world.run_for(Time::from_secs(2));
            let (switch, _) = world.fake.fabric.switches().next().expect("a switch");
            let all = |world: &World| {
                let device = &world.fake.devices[switch.index()];
                let top = device.switch.linear_fdb_top;
                (device.ports.clone(), top, device.sl_to_vl.clone(), device.arbitration.clone())
            };
            let before = all(&world);
            spoil(&mut world.fake.devices[switch.index()]);
            assert!(all(&world) != before, "{attribute}");
            world.fake.sets.clear();
            world.run_for(Time::from_secs(12));
            world.check();
            assert!(all(&world) == before, "{attribute} {at}, {sweep_interval_ms} ms");
            assert!(world.fake.sets.keys().all(|set| *set == attribute), "{:?}", world.fake.sets);
        }
    }
}

/// A leaf restarts between the readings of its two ends of a cable: the host said Active, the leaf says Initialize.
#[test]
fn an_end_that_was_read_before_its_link_went_down_is_read_again() {
    let mut world = world(tree(&[3, 4], &[1, 2]), Options::default());
    world.run_for(Time::from_secs(2));
    let fabric = world.fake.fabric.clone();
    let host = PortRef::new(fabric.hosts().last().expect("a host").0, PortNum(1));
    let leaf = fabric.peer(host).expect("a cable");
    world.fake.set_link(leaf, true);
    world.fake.set_link(host, true);
    let lid = world.fake.devices[host.node.index()].ports[1].lid;
    let mut before_it_noticed = true;
    world.lie = Some(Box::new(move |answer| {
        let mut info = PortInfo::decode(answer.mad.smp_attribute());
        let host = answer.mad.attribute_id() == AttributeId::PortInfo && info.lid == lid;
        if host && std::mem::take(&mut before_it_noticed) {
            info.port_state = PortState::Active;
            answer.mad.set_smp_data(&info.encode());
        }
    }));
    world.command(Input::Resweep { heavy: true });
    world.run_for(Time::from_millis(100));
    world.check();
    assert!(world.last_summary().complete);
}

#[test]
fn a_restart_too_short_to_be_missed_is_seen() {
    let mut world = world(tree(&[3, 4], &[1, 2]), Options::default());
    world.run_for(Time::from_secs(2));
    let before = tables(&world);
    let indices: Vec<_> = world.fake.fabric.iter().map(|(index, _)| index).collect();
    for index in indices {
        let mut neighbours = world.fake.kill(index);
        neighbours.extend(world.fake.restart(index));
        world.traps(&neighbours);
        world.run_for(Time::from_secs(12));
        world.check();
        assert_eq!(tables(&world), before, "{index:?}");
    }
}

/// A switch that was restarted counts its traps from the beginning again.
#[test]
fn the_first_trap_of_a_restarted_switch_is_news() {
    let mut world = world(tree(&[3, 4], &[1, 2]), Options::default());
    world.run_for(Time::from_secs(2));
    let port = spine_cable(&mut world);
    let first_trap = |world: &mut World| {
        let ends = world.fake.cut(port);
        world.fake.trap_id = 0;
        world.traps(&ends[..1]);
        let before = world.summaries().len();
        world.run_for(Time::from_millis(300));
        assert_eq!(world.summaries().len(), before + 1);
        world.check();
        world.fake.trap_id = 100;
        let ends = world.fake.mend(port);
        world.traps(&ends[1..]);
        world.run_for(Time::from_millis(300));
        world.check();
    };
    first_trap(&mut world);
    let mut neighbours = world.fake.kill(port.node);
    neighbours.extend(world.fake.restart(port.node));
    world.traps(&neighbours);
    world.run_for(Time::from_millis(300));
    world.check();
    first_trap(&mut world);
}

fn tables(world: &World) -> Vec<(Vec<weft_wire::PortNum>, u16, Vec<Lid>)> {
    let devices = world.fake.devices.iter();
    devices
        .map(|device| {
            let lids = device.ports.iter().map(|port| port.lid).collect();
            let top = device.switch.linear_fdb_top;
            (device.lft[..=usize::from(top)].to_vec(), top, lids)
        })
        .collect()
}

/// A cable between two switches that both have another way to the manager.
fn spine_cable(world: &mut World) -> PortRef {
    let fabric = world.fake.fabric.clone();
    let spare = fabric.cables().find(|cable| {
        world.fake.cut.insert(cable.a);
        let both = [cable.a, cable.b].map(|end| world.fake.trap(end)).iter().all(Option::is_some);
        world.fake.cut.remove(&cable.a);
        both
    });
    spare.expect("there is such a cable").a
}
