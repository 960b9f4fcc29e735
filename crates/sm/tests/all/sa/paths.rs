//! PathRecords: which ways there are, what they can do, and what is asked of them.

use super::client::*;
use super::fake::World;
use std::collections::{BTreeMap, BTreeSet};

use weft_sm::{Activity, Event, Input, LaneOptions, Options, RoutingOptions};
use weft_topology::generate::{GenerateOptions, ring, torus, xgft};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::*;

fn bit(name: &str) -> u64 {
    component::<PathRecord>(name)
}

/// The hosts' ports.
fn hosts(world: &World) -> Vec<PortRef> {
    world.fake.fabric.hosts().map(|(index, _)| PortRef::new(index, PortNum(1))).collect()
}

fn gid(world: &World, port: PortRef) -> Gid {
    Gid { prefix: GidPrefix::DEFAULT, guid: world.fake.fabric.port(port).expect("a port").guid }
}

fn lid(world: &World, port: PortRef) -> Lid {
    lid_of(world, port.node, port.port)
}

/// From the first host to the last, by GIDs.
fn far(world: &World) -> PathRecord {
    let hosts = hosts(world);
    let (from, to) = (hosts[0], hosts[3]);
    PathRecord { sgid: gid(world, from), dgid: gid(world, to), ..PathRecord::default() }
}

fn by_gid() -> u64 {
    bit("sgid") | bit("dgid")
}

fn paths(world: &mut World, mask: u64, record: &PathRecord) -> Result<Vec<PathRecord>, u16> {
    table(world, &Asked::all::<PathRecord>().with(mask, record))
}

fn path(world: &mut World, mask: u64, record: &PathRecord) -> Result<PathRecord, u16> {
    one(world, &Asked::all::<PathRecord>().with(mask, record))
}

#[test]
fn by_gid_and_by_lid() {
    let mut world = tree();
    let hosts = hosts(&world);
    let (from, to) = (hosts[0], hosts[3]);
    let want = PathRecord {
        slid: lid(&world, from),
        dlid: lid(&world, to),
        reversible: true,
        p_key: PKey::DEFAULT_FULL,
        sl: ServiceLevel(0),
        mtu_selector: Selector::Exactly,
        mtu: Mtu::Bytes4096.code(),
        rate_selector: Selector::Exactly,
        rate: PathRate::Gb40,
        packet_life_time_selector: Selector::Exactly,
        packet_life_time: 0x12,
        ..far(&world)
    };
    assert_eq!(path(&mut world, by_gid(), &want), Ok(want));
    assert_eq!(paths(&mut world, by_gid(), &want), Ok(vec![want]));
    assert_eq!(path(&mut world, bit("slid") | bit("dlid"), &want), Ok(want));
    assert_eq!(path(&mut world, bit("slid") | bit("dgid"), &want), Ok(want));
    // Both at one end must mean one port.
    assert_eq!(path(&mut world, by_gid() | bit("dlid"), &want), Ok(want));
    let crossed = PathRecord { dlid: want.slid, ..want };
    assert_eq!(path(&mut world, by_gid() | bit("dlid"), &crossed), Err(sa_status::NO_RECORDS));
}

#[test]
fn path_queries_for_unknown_ports_are_refused() {
    let mut world = tree();
    let known = far(&world);
    let stranger = PathRecord { dgid: Gid { guid: Guid(0xdead), ..known.dgid }, ..known };
    assert_eq!(path(&mut world, by_gid(), &stranger), Err(sa_status::REQ_INVALID_GID));
    assert_eq!(paths(&mut world, by_gid(), &stranger), Err(sa_status::REQ_INVALID_GID));
    let elsewhere = PathRecord { sgid: Gid { prefix: GidPrefix(1), ..known.sgid }, ..known };
    assert_eq!(path(&mut world, by_gid(), &elsewhere), Err(sa_status::REQ_INVALID_GID));
    let nobody = PathRecord { dlid: Lid(0x1234), ..known };
    assert_eq!(path(&mut world, bit("sgid") | bit("dlid"), &nobody), Err(sa_status::NO_RECORDS));
    assert_eq!(paths(&mut world, bit("sgid") | bit("dlid"), &nobody), Ok(Vec::new()));
    assert_eq!(path(&mut world, bit("sgid"), &known), Err(sa_status::INSUFFICIENT_COMPONENTS));
    assert_eq!(path(&mut world, bit("dlid"), &known), Err(sa_status::INSUFFICIENT_COMPONENTS));
}

/// Whoever leaves out an end means all ports.
#[test]
fn wildcards() {
    let mut world = tree();
    let known = far(&world);
    let all = paths(&mut world, 0, &known).unwrap();
    assert_eq!(all.len(), 8 * 8);
    assert!(all.is_sorted_by_key(|path| (path.slid, path.dlid)));
    for path in &all {
        let owner = |lid: Lid, gid: Gid| {
            let ports = world.fake.fabric.iter().flat_map(|(index, node)| {
                node.end_ports().map(move |(number, port)| (PortRef::new(index, number), port.guid))
            });
            ports.into_iter().any(|(end, guid)| lid_of(&world, end.node, end.port) == lid && guid == gid.guid)
        };
        assert!(owner(path.slid, path.sgid) && owner(path.dlid, path.dgid), "{path:?}");
        assert_eq!(path.packet_life_time, if path.slid == path.dlid { 0 } else { 0x12 });
    }
    assert_eq!(paths(&mut world, bit("sgid"), &known).unwrap().len(), 8);
    assert_eq!(paths(&mut world, bit("dgid"), &known).unwrap().len(), 8);
}

/// Between two hosts whose cables differ, the slowest link counts, however the way leads.
#[test]
fn the_worst_link_counts() {
    let mut world = tree();
    let known = far(&world);
    let hosts = hosts(&world);
    // The last host's link runs at 1x FDR with 2048 bytes, and its switch says so too.
    let peer = world.fake.fabric.peer(hosts[3]).unwrap();
    for port in [hosts[3], peer] {
        let info = &mut world.fake.devices[port.node.index()].ports[usize::from(port.port.0)];
        (info.link_width_active, info.link_speed_ext_active, info.mtu_cap) = (1, 1, Mtu::Bytes2048);
    }
    world.command(Input::Resweep { heavy: true });
    world.run_until(Activity::Up);
    let found = path(&mut world, by_gid(), &known).unwrap();
    assert_eq!((found.rate, found.mtu), (PathRate::Gb14, Mtu::Bytes2048.code()));
    let back = PathRecord { sgid: known.dgid, dgid: known.sgid, ..known };
    let found = path(&mut world, by_gid(), &back).unwrap();
    assert_eq!((found.rate, found.mtu), (PathRate::Gb14, Mtu::Bytes2048.code()));
    let near = PathRecord { dgid: gid(&world, hosts[1]), ..known };
    let found = path(&mut world, by_gid(), &near).unwrap();
    assert_eq!((found.rate, found.mtu), (PathRate::Gb40, Mtu::Bytes4096.code()));
}

/// The path of 40 Gb/s, 4096 bytes and lifetime 18: what each selector makes of it.
#[test]
fn selectors() {
    let mut world = tree();
    let known = far(&world);
    let (greater, less) = (Selector::GreaterThan, Selector::LessThan);
    let (exactly, best) = (Selector::Exactly, Selector::Best);
    let none = Err(sa_status::NO_RECORDS);
    let no_rate = Err(sa_status::NO_RECORDS);
    let mtu = bit("mtu") | bit("mtu_selector");
    for (mtu_selector, value, want) in [
        (greater, 4, Ok(5)),
        (greater, 5, none),
        (less, 5, Ok(4)),
        (less, 9, Ok(5)),
        (less, 1, none),
        (less, 0, none),
        (exactly, 5, Ok(5)),
        (exactly, 3, Ok(3)),
        (exactly, 6, none),
        (best, 1, Ok(5)),
    ] {
        let record = PathRecord { mtu_selector, mtu: value, ..known };
        let found = path(&mut world, by_gid() | mtu, &record).map(|path| path.mtu);
        assert_eq!(found, want, "MTU {mtu_selector} {value}");
        // Alone neither is a condition.
        assert_eq!(path(&mut world, by_gid() | bit("mtu"), &record).map(|path| path.mtu), Ok(5));
    }
    let rate = bit("rate") | bit("rate_selector");
    for (rate_selector, value, want) in [
        (greater, PathRate::Gb30, Ok(PathRate::Gb40)),
        (greater, PathRate::Gb40, no_rate),
        // 5 Gb/s has a higher code than 30 Gb/s.
        (greater, PathRate::Gb5, Ok(PathRate::Gb40)),
        (less, PathRate::Gb40, Ok(PathRate::Gb30)),
        (less, PathRate::Gb100, Ok(PathRate::Gb40)),
        (less, PathRate::Gb2_5, no_rate),
        (exactly, PathRate::Gb20, Ok(PathRate::Gb20)),
        (exactly, PathRate::Gb56, no_rate),
        (exactly, PathRate::from_code(63), no_rate),
        (best, PathRate::Gb5, Ok(PathRate::Gb40)),
    ] {
        let record = PathRecord { rate_selector, rate: value, ..known };
        let found = path(&mut world, by_gid() | rate, &record).map(|path| path.rate);
        assert_eq!(found, want, "rate {rate_selector} {value}");
    }
    let life = bit("packet_life_time") | bit("packet_life_time_selector");
    for (packet_life_time_selector, packet_life_time, want) in [
        (greater, 0x11, Ok(0x12)),
        (greater, 0x12, none),
        (less, 0x13, Ok(0x12)),
        (less, 0x12, none),
        (exactly, 0x12, Ok(0x12)),
        (exactly, 0x11, none),
        (best, 0, Ok(0x12)),
    ] {
        let record = PathRecord { packet_life_time_selector, packet_life_time, ..known };
        let found = path(&mut world, by_gid() | life, &record).map(|path| path.packet_life_time);
        assert_eq!(found, want, "lifetime {packet_life_time_selector} {packet_life_time}");
    }
}

/// The other components: some are conditions, some describe the traffic and come back.
#[test]
fn the_other_components() {
    let mut world = tree();
    let known = far(&world);
    let none = Err(sa_status::NO_RECORDS);
    let mut ask = |name: &str, record: PathRecord| path(&mut world, by_gid() | bit(name), &record);
    assert_eq!(ask("sl", PathRecord { sl: ServiceLevel(5), ..known }).unwrap().sl, ServiceLevel(5));
    assert_eq!(ask("p_key", PathRecord { p_key: PKey(0x7fff), ..known }).unwrap().p_key, PKey::DEFAULT_FULL);
    assert_eq!(ask("p_key", PathRecord { p_key: PKey(0x8001), ..known }), none);
    assert!(ask("reversible", PathRecord { reversible: true, ..known }).unwrap().reversible);
    assert!(ask("reversible", known).is_ok());
    assert_eq!(ask("raw_traffic", PathRecord { raw_traffic: true, ..known }), none);
    assert_eq!(ask("preference", PathRecord { preference: 1, ..known }), none);
    assert_eq!(ask("tclass", PathRecord { tclass: 7, ..known }).unwrap().tclass, 7);
    assert_eq!(ask("flow_label", PathRecord { flow_label: 7, ..known }).unwrap().flow_label, 7);
    assert_eq!(ask("qos_class", PathRecord { qos_class: 7, ..known }).unwrap().qos_class, 7);
    assert_eq!(ask("tclass", PathRecord { flow_label: 7, ..known }).unwrap().flow_label, 0);
    assert!(ask("hop_limit", PathRecord { hop_limit: 1, ..known }).is_ok());
    let service = PathRecord { service_id: 0x1_0000_0002, ..known };
    assert_eq!(path(&mut world, by_gid() | 0b11, &service).unwrap().service_id, 0x1_0000_0002);
    let beyond = Asked::all::<PathRecord>().with(1 << 24, &known);
    assert_eq!(table::<PathRecord>(&mut world, &beyond), Err(sa_status::REQ_INVALID));
}

/// With an LMC, ports have several LIDs, each with a way of its own.
#[test]
fn several_lids() {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut world = up(fabric, Options::from(RoutingOptions { lmc: 1, ..RoutingOptions::default() }));
    let known = far(&world);
    let found = paths(&mut world, by_gid(), &known).unwrap();
    let (slid, dlid) = (found[0].slid.0, found[0].dlid.0);
    let lids: Vec<_> = found.iter().map(|path| (path.slid.0, path.dlid.0)).collect();
    assert_eq!(lids, [(slid, dlid), (slid + 1, dlid + 1)]);
    let limited = PathRecord { numb_path: 1, ..known };
    assert_eq!(paths(&mut world, by_gid() | bit("numb_path"), &limited).unwrap().len(), 1);
    assert_eq!(paths(&mut world, by_gid() | bit("numb_path"), &known).unwrap().len(), 0);
    assert_eq!(path(&mut world, by_gid(), &known), Ok(found[0]), "a Get wants the best one");
    let given = PathRecord { dlid: Lid(dlid + 1), ..known };
    let found = paths(&mut world, bit("sgid") | bit("dlid"), &given).unwrap();
    let lids: Vec<_> = found.iter().map(|path| (path.slid.0, path.dlid.0)).collect();
    assert_eq!(lids, [(slid, dlid + 1), (slid + 1, dlid + 1)]);
}

/// A service level that a port on the way drops is not offered.
#[test]
fn service_levels_that_are_dropped() {
    let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let mut sl2vl = Options::default().lanes.sl2vl;
    (sl2vl[0], sl2vl[3]) = (15, 15);
    let mut world = up(fabric, Options::from(LaneOptions { sl2vl, ..LaneOptions::default() }));
    let known = far(&world);
    assert_eq!(path(&mut world, by_gid(), &known).unwrap().sl, ServiceLevel(1));
    for (sl, want) in [(0, None), (1, Some(1)), (3, None), (4, Some(4))] {
        let record = PathRecord { sl: ServiceLevel(sl), ..known };
        let found = path(&mut world, by_gid() | bit("sl"), &record);
        assert_eq!(found.map(|path| path.sl.0), want.ok_or(sa_status::NO_RECORDS));
    }
}

/// A ring of six switches with a host each, routed by LASH, which needs two lanes for it.
fn layered_ring(mut options: Options) -> World {
    let fabric = ring(6, 1, &GenerateOptions::default()).expect("a ring");
    options.routing.chain = "lash,no_fallback".parse().expect("an engine");
    up(fabric, options)
}

/// A torus of 5 x 5 switches with a host each, routed by dimension order, which needs two lanes in each ring.
fn torus_by_dimension() -> World {
    let fabric = torus(&[5, 5], 1, &GenerateOptions::default()).expect("a torus");
    let engines = "dor,no_fallback".parse().expect("an engine");
    up(fabric, Options::from(RoutingOptions { chain: engines, ..RoutingOptions::default() }))
}

/// The service level is the one that the engine has chosen for the pair, alike in both directions, and no other.
#[test]
fn service_levels_of_the_routing() {
    let mut world = layered_ring(Options::default());
    let hosts = hosts(&world);
    let all = paths(&mut world, 0, &PathRecord::default()).unwrap();
    let levels: BTreeMap<(Lid, Lid), ServiceLevel> =
        all.iter().map(|path| ((path.slid, path.dlid), path.sl)).collect();
    for ((from, to), sl) in &levels {
        assert_eq!(levels.get(&(*to, *from)), Some(sl), "{from} and {to}");
    }
    let of_hosts = |sl: u8| {
        let lids: Vec<Lid> = hosts.iter().map(|port| lid(&world, *port)).collect();
        let pairs = lids.iter().flat_map(|from| lids.iter().map(move |to| (*from, *to)));
        pairs.filter(|pair| levels[pair] == ServiceLevel(sl)).count()
    };
    assert!(of_hosts(0) > 0 && of_hosts(1) > 0 && of_hosts(0) + of_hosts(1) == 36);
    let on_lane_1 = all.iter().find(|path| path.sl == ServiceLevel(1)).unwrap();
    let lids = bit("slid") | bit("dlid");
    assert_eq!(path(&mut world, lids | bit("sl"), on_lane_1), Ok(*on_lane_1));
    let other = PathRecord { sl: ServiceLevel(0), ..*on_lane_1 };
    assert_eq!(path(&mut world, lids | bit("sl"), &other), Err(sa_status::NO_RECORDS));
}

/// Ports talk to the manager on the level that the routing has chosen, as the tables may deadlock on any other.
#[test]
fn the_level_to_the_manager() {
    let mut world = torus_by_dimension();
    let hosts = hosts(&world);
    let manager = lid(&world, hosts[0]);
    let mut levels = BTreeSet::new();
    for port in hosts {
        let record = PathRecord { slid: lid(&world, port), dlid: manager, ..PathRecord::default() };
        let sl = path(&mut world, bit("slid") | bit("dlid"), &record).unwrap().sl;
        let info = world.fake.devices[port.node.index()].ports[1];
        assert_eq!(info.master_sm_sl, sl, "{port:?}");
        levels.insert(sl);
    }
    assert_eq!(levels.len(), 4, "on either side of either ring's closing cable");
}

/// Where no engine serves what is left of the fabric, tables and levels stay as they are.
#[test]
fn a_routing_that_fails_leaves_the_one_before_in_force() {
    let mut world = torus_by_dimension();
    let hosts = hosts(&world);
    let pairs: Vec<PathRecord> = hosts
        .iter()
        .map(|to| PathRecord {
            slid: lid(&world, hosts[24]),
            dlid: lid(&world, *to),
            ..PathRecord::default()
        })
        .collect();
    let lids = bit("slid") | bit("dlid");
    let levels = |world: &mut World| -> Vec<Result<ServiceLevel, u16>> {
        pairs.iter().map(|pair| path(world, lids, pair).map(|path| path.sl)).collect()
    };
    let before = levels(&mut world);
    assert!(before.iter().any(|sl| *sl != Ok(ServiceLevel(0))), "{before:?}");
    // Some ways lead over this cable of the first switch's, most do not.
    let (first, node) = world.fake.fabric.switches().next().unwrap();
    let (port, _) = node.cabled_ports().last().unwrap();
    let ends = world.fake.cut(PortRef::new(first, port));
    world.traps(&ends);
    world.run_for(weft_machine::Time::from_secs(2));
    let failed = |(_, event): &(_, Event)| matches!(event, Event::RouteFailed { .. });
    assert!(world.events.iter().any(failed));
    let after = levels(&mut world);
    for (now, then) in after.iter().zip(&before).filter(|(now, _)| now.is_ok()) {
        assert_eq!(now, then);
    }
    assert!(after.iter().any(|sl| sl.is_ok_and(|sl| sl != ServiceLevel(0))), "{after:?}");
}

/// A routing of several lanes brings its own mapping; one of a single lane leaves the operator's.
#[test]
fn lanes_of_the_routing() {
    let sl2vl = [3; 16];
    let lanes_at_switch = |world: &World| {
        let (switch, _) = world.fake.fabric.switches().next().unwrap();
        let tables = &world.fake.devices[switch.index()].sl_to_vl;
        SlToVlTable::decode(tables[&(1, 2)].first_chunk().unwrap()).lanes
    };
    let world = layered_ring(Options::from(LaneOptions { sl2vl, ..LaneOptions::default() }));
    let mapped = lanes_at_switch(&world);
    assert_eq!((mapped[0], mapped[1]), (VirtualLane(0), VirtualLane(1)));
    let tree = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
    let world = up(tree, Options::from(LaneOptions { sl2vl, ..LaneOptions::default() }));
    assert_eq!(lanes_at_switch(&world), [VirtualLane(3); 16]);
}

/// On a torus, dimension order wants another lane out of ports of the second dimension than out of those of the first.
#[test]
fn lanes_of_single_ports() {
    let world = torus_by_dimension();
    let (switch, node) = world.fake.fabric.switches().next().unwrap();
    let tables = &world.fake.devices[switch.index()].sl_to_vl;
    let ports = node.cabled_ports().filter(|(_, peer)| world.fake.fabric.node(peer.node).is_switch());
    let rows: Vec<_> = ports
        .map(|(out, _)| SlToVlTable::decode(tables[&(1, out.0)].first_chunk().unwrap()).lanes)
        .map(|row| [row[0], row[1], row[2], row[3]].map(|lane| lane.0))
        .collect();
    // Bit n of a level is the lane in the n-th ring.
    let (first, second) = ([0, 1, 0, 1], [0, 0, 1, 1]);
    let count = |row| rows.iter().filter(|other| **other == row).count();
    assert_eq!((rows.len(), count(first), count(second)), (4, 2, 2), "{rows:?}");
}

/// Without tables of service levels there is one lane, which LASH does not get along with on a ring: the next engine of the
/// chain routes, and says why.
#[test]
fn a_chain_goes_on() {
    let fabric = ring(6, 1, &GenerateOptions::default()).unwrap();
    let engines = "ftree,lash".parse().unwrap();
    let world = up(
        fabric,
        Options {
            routing: RoutingOptions { chain: engines, ..RoutingOptions::default() },
            lanes: LaneOptions { qos: false, ..LaneOptions::default() },
            ..Options::default()
        },
    );
    let reports = world.events.iter().filter_map(|(_, event)| match event {
        Event::Routed(report) => Some(report),
        _ => None,
    });
    let reports: Vec<_> = reports.collect();
    assert_eq!((reports[0].engine.as_str(), reports[0].lanes), ("updn", 1));
    let refusals = &reports[0].fallbacks;
    assert!(refusals[0].starts_with("ftree: ") && refusals[1].starts_with("lash: "), "{refusals:?}");
}

/// Whoever a sweep did not find has no path, and has one again when it is back.
#[test]
fn paths_follow_the_sweeps() {
    let mut world = tree();
    let known = far(&world);
    let before = path(&mut world, by_gid(), &known).unwrap();
    let last: NodeIndex = hosts(&world)[3].node;
    let neighbours = world.fake.kill(last);
    world.traps(&neighbours);
    world.run_for(weft_machine::Time::from_secs(2));
    assert_eq!(path(&mut world, by_gid(), &known), Err(sa_status::REQ_INVALID_GID));
    let neighbours = world.fake.restart(last);
    world.traps(&neighbours);
    world.run_for(weft_machine::Time::from_secs(2));
    assert_eq!(path(&mut world, by_gid(), &known), Ok(before));
}
