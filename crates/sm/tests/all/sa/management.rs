//! A lane of management's own: the settings of devices, and what they do to paths and routing.

use super::client::*;
use super::fake::{Fake, World};
use weft_sm::{Activity, Event, GuidToLid, Input, LaneOptions, Options, RoutingOptions};
use weft_topology::generate::{GenerateOptions, ring, xgft};
use weft_topology::{Fabric, PortRef};
use weft_wire::*;

const MANAGEMENT: ServiceLevel = ServiceLevel(15);

fn options() -> Options {
    Options::from(LaneOptions { management_lane: true, ..LaneOptions::default() })
}

fn a_tree() -> Fabric {
    xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).expect("a tree")
}

/// The ports that have a cable.
fn cabled(world: &World) -> Vec<PortRef> {
    let fabric = &world.fake.fabric;
    fabric.cables().flat_map(|cable| [cable.a, cable.b]).collect()
}

/// A port's mappings, from every input.
fn rows(world: &World, at: PortRef) -> Vec<[u8; 16]> {
    let device = &world.fake.devices[at.node.index()];
    let output = if world.fake.fabric.node(at.node).is_switch() { at.port.0 } else { 0 };
    let rows = device.sl_to_vl.iter().filter(|((_, to), _)| *to == output);
    rows.map(|(_, bytes)| SlToVlTable::decode(bytes.first_chunk().expect("16 lanes")).lanes.map(|vl| vl.0))
        .collect()
}

/// The entries of a table that count.
fn arbitration(world: &World, at: PortRef, block: u32) -> Vec<(u8, u8)> {
    let device = &world.fake.devices[at.node.index()];
    let bytes = device.arbitration[&(block << 16 | u32::from(at.port.0))];
    let table = VlArbitrationTable::decode(&bytes);
    let entries = table.entries.iter().filter(|entry| entry.weight > 0);
    entries.map(|entry| (entry.vl.0, entry.weight)).collect()
}

fn told(world: &World) -> Vec<Option<VirtualLane>> {
    let lanes = world.events.iter().filter_map(|(_, event)| match event {
        Event::ManagementLane { lane } => Some(*lane),
        _ => None,
    });
    lanes.collect()
}

#[test]
fn the_highest_lane_is_managements_alone() {
    let world = up(a_tree(), options());
    assert_eq!(told(&world), [Some(VirtualLane(7))]);
    for at in cabled(&world) {
        for row in rows(&world, at) {
            assert_eq!(row[15], 7);
            assert!(row[..15].iter().all(|lane| *lane < 7), "{row:?}");
            assert_eq!(row[..7], [0, 1, 2, 3, 4, 5, 6]);
        }
        assert!(!rows(&world, at).is_empty());
        assert_eq!(arbitration(&world, at, 3), [(7, 64)], "served first");
        let low: Vec<u8> = arbitration(&world, at, 1).iter().map(|(lane, _)| *lane).collect();
        assert_eq!(low, [0, 1, 2, 3, 4, 5, 6]);
        assert!(arbitration(&world, at, 1).iter().all(|(_, weight)| *weight == 32), "in equal parts");
        let info = world.fake.devices[at.node.index()].ports[usize::from(at.port.0)];
        assert_eq!(info.vl_high_limit, 1, "but not for ever");
    }
    for (index, node) in world.fake.fabric.iter() {
        for (number, _) in node.end_ports() {
            let info = world.fake.devices[index.index()].ports[usize::from(number.0)];
            assert_eq!(info.master_sm_sl, MANAGEMENT);
        }
    }
}

/// One link with fewer lanes decides for all; with a single lane there is none to be kept, and when the lanes come back
/// there is one again.
#[test]
fn the_poorest_link_decides() {
    let fabric = a_tree();
    let own = PortRef::new(fabric.hosts().next().unwrap().0, PortNum(1));
    let mut fake = Fake::new(fabric, own);
    let poor = fake.fabric.peer(own).unwrap();
    fake.devices[poor.node.index()].ports[usize::from(poor.port.0)].vl_cap = VlCap::Vl0To3;
    let mut world = World::new(fake, options(), &GuidToLid::default());
    world.run_until(Activity::Up);
    let check = |world: &World, lane: u8| {
        for at in cabled(world) {
            assert!(
                rows(world, at).iter().all(|row| row[15] == lane && row[..15].iter().all(|vl| *vl < lane))
            );
        }
    };
    check(&world, 3);
    for (cap, lane) in [(VlCap::Vl0, None), (VlCap::Vl0To7, Some(VirtualLane(7)))] {
        world.fake.devices[poor.node.index()].ports[usize::from(poor.port.0)].vl_cap = cap;
        world.command(Input::Resweep { heavy: true });
        world.run_until(Activity::Up);
        assert_eq!(told(&world).last(), Some(&lane));
        let host = &world.fake.devices[own.node.index()].ports[1];
        assert_eq!(host.master_sm_sl, lane.map_or(ServiceLevel(0), |_| MANAGEMENT));
    }
    check(&world, 7);
    assert_eq!(told(&world).len(), 3);
}

/// LASH has two lanes where links have three for data, and none too few: its levels are the lowest ones.
#[test]
fn routing_has_the_other_lanes() {
    for (vl_cap, engine, lane) in [(VlCap::Vl0To3, "lash", 3), (VlCap::Vl0To1, "updn", 1)] {
        let fabric = ring(6, 1, &GenerateOptions::default()).unwrap();
        let own = PortRef::new(fabric.hosts().next().unwrap().0, PortNum(1));
        let mut fake = Fake::new(fabric, own);
        fake.devices.iter_mut().flat_map(|device| &mut device.ports).for_each(|port| port.vl_cap = vl_cap);
        let engines = "lash".parse().unwrap();
        let mut world = World::new(
            fake,
            Options { routing: RoutingOptions { chain: engines, ..RoutingOptions::default() }, ..options() },
            &GuidToLid::default(),
        );
        world.run_until(Activity::Up);
        let report = world.events.iter().find_map(|(_, event)| match event {
            Event::Routed(report) => Some(report.clone()),
            _ => None,
        });
        let report = report.unwrap();
        assert_eq!((report.engine.as_str(), report.lanes <= lane), (engine, true), "{report:?}");
        assert_eq!(told(&world), [Some(VirtualLane(lane))]);
        let paths: Vec<PathRecord> = table(&mut world, &Asked::all::<PathRecord>()).unwrap();
        assert!(paths.iter().all(|path| path.sl.0 < lane), "data keeps the levels of its routing");
        if engine == "lash" {
            assert!(paths.iter().any(|path| path.sl.0 == 1));
        }
    }
}

/// A path for management is given to who asks for its level.
#[test]
fn a_path_on_managements_level() {
    for management_lane in [true, false] {
        let fabric = ring(6, 1, &GenerateOptions::default()).unwrap();
        let engines = "lash".parse().unwrap();
        let mut world = up(
            fabric,
            Options {
                routing: RoutingOptions { chain: engines, ..RoutingOptions::default() },
                lanes: LaneOptions { management_lane, ..LaneOptions::default() },
                ..Options::default()
            },
        );
        let record = PathRecord { sl: MANAGEMENT, ..PathRecord::default() };
        let asked = Asked::all::<PathRecord>().with(component::<PathRecord>("sl"), &record);
        let found: Vec<PathRecord> = table(&mut world, &asked).unwrap();
        assert_eq!(found.len(), if management_lane { 12 * 12 } else { 0 });
        assert!(found.iter().all(|path| path.sl == MANAGEMENT));
    }
}

/// What a restarted manager finds is as it wants it: it writes no table again.
#[test]
fn a_restarted_manager_leaves_it_alone() {
    let mut world = up(a_tree(), options());
    world.restart_sm(options(), &GuidToLid::default());
    world.run_until(Activity::Up);
    for attribute in [AttributeId::SlToVlTable, AttributeId::VlArbitrationTable] {
        assert_eq!(world.fake.sets_of(attribute), 0);
    }
}

#[test]
fn lanes_that_are_all_alike() {
    let world = up(a_tree(), Options::default().with_equal_lanes());
    for at in cabled(&world) {
        assert_eq!(arbitration(&world, at, 3), [], "none goes first");
        assert_eq!(arbitration(&world, at, 1), [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| (lane, 32)));
    }
}
