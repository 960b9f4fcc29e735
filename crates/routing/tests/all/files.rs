//! Round trips through OpenSM's file formats; no text makes a reader panic.

use std::fmt::Write;

use proptest::prelude::*;
use weft_routing::files::{
    Dump, FileError, GuidToLid, SavedRouting, parse_fdbs, parse_guids, parse_lfts, parse_psl, parse_sl2vl,
    parse_slvl, parse_subnet, parse_vm_weights, parse_weights,
};
use weft_routing::{LaneMap, Lids, PortLids, Routing, SERVICE_LEVELS, ServiceLevels, minhop};
use weft_topology::generate::{GenerateOptions, RandomFabric, random, ring};
use weft_topology::{Fabric, NodeIndex, diff};
use weft_wire::{Lid, PortNum, ServiceLevel, VirtualLane};

/// A random fabric with random levels and lanes. Its descriptions are not nice.
fn routed(seed: u64) -> (Fabric, Lids, Routing) {
    let parameters = RandomFabric {
        switches: 3 + (seed % 9) as u32,
        hosts: 2 + (seed % 13) as u32,
        extra_cables: (seed % 5) as u32,
        parallel_cables: (seed % 3) as u32,
    };
    let made = random(&parameters, seed, &GenerateOptions::default()).expect("the parameters fit");
    let text = made.write_ibnetdiscover().replace("\"host-1\"", "\"it's } LID:0001 {x} # a \\ host\"");
    let fabric = weft_topology::parse("random", &text).expect("it was written by weft");
    let lids = Lids::in_guid_order(&fabric, (seed % 4) as u8).expect("there are enough LIDs");
    let mut routing = Routing::on_one_lane("minhop", minhop(&fabric, &lids));
    let classes = lids.len();
    routing.levels = ServiceLevels::classes(lids.top(), classes, classes);
    for (class, lids) in (0..).zip(lids.iter()) {
        lids.iter().for_each(|lid| routing.levels.set_source(lid, class));
        lids.iter().for_each(|lid| routing.levels.set_destination(lid, class));
        for (to, level) in routing.levels.row_mut(class).iter_mut().enumerate() {
            *level = ((to as u64 * 7 + u64::from(class) * seed) % 5) as u8;
        }
    }
    let (switch, node) = fabric.switches().next().expect("there is one");
    for (exit, _) in node.cabled_ports() {
        let lanes = [VirtualLane(exit.0 % 15); SERVICE_LEVELS];
        routing.lanes.exceptions.insert((switch, PortNum(1), exit), lanes);
    }
    (fabric, lids, routing)
}

/// The first of the seeds; every failure names its own.
fn seed() -> u64 {
    std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn written(write: impl FnOnce(&mut dyn Write) -> std::fmt::Result) -> String {
    let mut text = String::new();
    write(&mut text).expect("a text takes everything");
    text
}

fn same_levels(seed: u64, lids: &Lids, left: &ServiceLevels, right: &ServiceLevels) {
    let all = || lids.iter().flat_map(PortLids::iter);
    for (from, to) in all().flat_map(|from| all().map(move |to| (from, to))) {
        assert_eq!(left.of(from, to), right.of(from, to), "seed {seed}: from LID {from} to LID {to}");
    }
}

fn same_lanes(seed: u64, fabric: &Fabric, left: &LaneMap, right: &LaneMap) {
    for (index, node) in fabric.iter() {
        for (exit, _) in node.cabled_ports() {
            for entry in (0..=node.port_count()).map(PortNum) {
                for level in (0..16).map(ServiceLevel) {
                    let lanes = [left, right].map(|map| map.lane(index, entry, exit, level));
                    assert_eq!(lanes[0], lanes[1], "seed {seed}: {} {entry} {exit} {level}", node.id);
                }
            }
        }
    }
}

#[test]
fn written_routing_files_are_read_back() {
    let first = seed();
    for seed in first..first + 24 {
        let (fabric, lids, routing) = routed(seed);
        let dump = Dump::new(&fabric, &lids, &routing);
        let fdbs = written(|out| dump.fdbs(out));
        let read = parse_fdbs("opensm.fdbs", &fdbs, &fabric)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{fdbs}"));
        assert_eq!(read.routes, routing.routes, "seed {seed}");
        let lfts = written(|out| dump.lfts(out));
        let read =
            parse_lfts("lfts", &lfts, &fabric).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{lfts}"));
        assert_eq!(read, routing.routes, "seed {seed}");
        let psl = written(|out| dump.psl(out));
        let read = parse_psl("psl", &psl, &fabric, &lids)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{psl}"));
        same_levels(seed, &lids, &read, &routing.levels);
        let sl2vl = written(|out| dump.sl2vl(out));
        let read = parse_sl2vl("sl2vl", &sl2vl, &fabric)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{sl2vl}"));
        same_lanes(seed, &fabric, &read, &routing.lanes);
        let slvl = written(|out| dump.slvl(out));
        let read =
            parse_slvl("slvl", &slvl, &fabric).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{slvl}"));
        same_lanes(seed, &fabric, &read, &routing.lanes);
        let known = GuidToLid::of(&fabric, &lids);
        let read = GuidToLid::parse("guid2lid", &known.to_string()).expect("it was written");
        assert_eq!(read.lids(&fabric), Ok(lids.clone()), "seed {seed}");
    }
}

#[test]
fn the_cabling_is_read_back_with_its_lids() {
    let first = seed();
    for seed in first..first + 24 {
        let (fabric, lids, routing) = routed(seed);
        let dump = Dump::new(&fabric, &lids, &routing);
        let text = written(|out| dump.subnet(out, Some(NodeIndex(0))));
        let read = parse_subnet("opensm-subnet.lst", &text)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let differences = diff(&fabric, &read);
        assert!(differences.is_empty(), "seed {seed}: {differences:?}\n{text}");
        let of = |fabric: &Fabric, lids: &Lids| {
            let guid = |port| fabric.port(port).expect("it has LIDs").guid;
            lids.iter().map(|lids| (guid(lids.port), lids.base)).collect::<Vec<_>>()
        };
        let known = Lids::from_fabric(&read).expect("they are all different");
        let cabled = of(&fabric, &lids);
        assert_eq!(of(&read, &known), cabled, "seed {seed}\n{text}");
        for (_, node) in fabric.iter() {
            let other = read.node(read.by_guid(node.guid).expect("no difference"));
            assert_eq!((other.vendor_id, other.device_id), (node.vendor_id, node.device_id));
        }
    }
}

#[test]
fn the_matrix_is_the_hops_of_the_cabling() {
    let fabric = ring(4, 1, &GenerateOptions::default()).expect("a ring");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let routing = Routing::on_one_lane("minhop", minhop(&fabric, &lids));
    let dump = Dump::new(&fabric, &lids, &routing);
    let text = written(|out| dump.lid_matrix(out));
    let node = |name| fabric.find(name).expect("it is there");
    let rows_of = |name| {
        let heading = format!("Switch: guid {}", fabric.node(node(name)).guid);
        text.lines()
            .skip_while(move |line| *line != heading)
            .skip(1)
            .take_while(|line| line.starts_with("0x"))
    };
    let row = |from, to| {
        let lid = lids.iter().find(|lids| lids.port.node == node(to)).expect("it has one").base;
        let row = rows_of(from).find_map(|line| line.strip_prefix(&format!("0x{:04x}: ", lid.0)))?;
        row.split(" #").next()
    };
    // Port 1 has the host, port 2 the next switch, port 3 the one before.
    assert_eq!(row("switch-0", "switch-0"), Some("00 ff 02 02"), "{text}");
    assert_eq!(row("switch-0", "switch-1"), Some("01 ff 01 03"), "{text}");
    assert_eq!(row("switch-0", "switch-2"), Some("02 ff 02 02"), "{text}");
    assert_eq!(row("switch-0", "host-1"), None);
    let switches = ["switch-0", "switch-1", "switch-2", "switch-3"];
    assert_eq!(switches.map(|name| rows_of(name).count()), [4; 4], "{text}");
}

#[test]
fn errors_name_the_place() {
    let fabric = ring(3, 1, &GenerateOptions::default()).expect("a ring");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let fdbs = |text: &str| parse_fdbs("f", text, &fabric).unwrap_err();
    let heading = "dump_ucast_routes: Switch 0x0200535700000001\n";
    is(&fdbs("0x0001 : 001 : 01 : yes\n"), "f:1:1: no heading says whose entry this is: `0x0001`");
    is(
        &fdbs("dump_ucast_routes: Switch 0x7\n"),
        "f:1:27: the fabric has no switch of the GUID 0x0000000000000007: `0x7`",
    );
    is(&fdbs(&format!("{heading}0xC000 : 001 : 01 : yes\n")), "f:2:1: a LID is 0x1 to 0xbfff: `0xC000`");
    is(&fdbs(&format!("{heading}0x0001 : 001\n")), "f:2:13: expected :");
    is(
        &fdbs(&format!("{heading}{heading}")),
        "f:2:27: 0x0200535700000001 stands here for the second time: `0x0200535700000001`",
    );
    let twice = format!("{heading}0x0001 : 001 : 01 : yes\n0x0001 : 002 : 01 : yes\n");
    is(&fdbs(&twice), "f:3:10: the entry of LID 1 stands here for the second time: `002`");
    let lfts = |text: &str| parse_lfts("f", text, &fabric).unwrap_err();
    is(&lfts("Unicast lids [0-8] of switch Lid 5 ('x'):\n"), "f:1:42: expected ` guid 0x…`");
    is(&lfts("hello\n"), "f:1:1: expected a heading, or a LID that begins with 0x: `hello`");
    let hops = |text: &str| SavedRouting::default().with_lid_matrix("f", text).unwrap_err();
    is(&hops("0x0001: 00 01\n"), "f:1:1: no heading says whose entry this is: `0x0001:`");
    is(
        &hops("Switch: guid 0x0200535700000001\n0x0001: 00 100\n"),
        "f:2:12: expected hops, from 00 to ff: `100`",
    );
    let psl = |text: &str| parse_psl("f", text, &fabric, &lids).unwrap_err();
    is(&psl("0x0200484300000000 1 16\n"), "f:1:22: a service level must be 0 to 15: `16`");
    is(&psl("0x0200484300000000 99 1\n"), "f:1:20: no end port has the LID 99: `99`");
    is(&psl("0x0200484300000000 1 1 2\n"), "f:1:24: no end port has the LID 2: `2`");
    let sl2vl = parse_sl2vl("f", "Switch 0x0200535700000001, base LID 5, \"x\"\n0   1   : 0 1 2\n", &fabric);
    is(&sl2vl.unwrap_err(), "f:2:16: expected a lane for each level");
    let slvl = parse_slvl("f", "0x0200535700000001 0 4 0x01\n", &fabric);
    is(
        &slvl.unwrap_err(),
        "f:1:22: port 4 is out of range for `S-0200535700000001`, whose ports are 0 to 3: `4`",
    );
    is(&parse_subnet("f", "{ XX Ports:01").unwrap_err(), "f:1:3: expected CA, SW or Rt: `XX`");
}

#[track_caller]
fn is(error: &FileError, says: &str) {
    assert_eq!(error.to_string(), says);
}

/// All readers on one text.
fn read_all(text: &str) {
    let fabric = ring(3, 1, &GenerateOptions::default()).expect("a ring");
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let _ = parse_fdbs("f", text, &fabric);
    let _ = parse_lfts("f", text, &fabric);
    let _ = SavedRouting::default().with_lid_matrix("f", text);
    let _ = parse_psl("f", text, &fabric, &lids);
    let _ = parse_sl2vl("f", text, &fabric);
    let _ = parse_slvl("f", text, &fabric);
    let _ = parse_subnet("f", text);
    let _ = (parse_guids("f", text), parse_weights("f", text, 1..=9), parse_vm_weights("f", text, 1..=9));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        read_all(&text);
    }

    /// A good file with some characters of it replaced.
    #[test]
    fn no_damage_panics(which in 0usize..6, cuts in prop::collection::vec((any::<prop::sample::Index>(), "[ -~é\n]?"), 1..6)) {
        let (fabric, lids, routing) = routed(5);
        let dump = Dump::new(&fabric, &lids, &routing);
        let mut text = written(|out| match which {
            0 => dump.fdbs(out),
            1 => dump.lfts(out),
            2 => dump.lid_matrix(out),
            3 => dump.psl(out),
            4 => dump.sl2vl(out),
            _ => dump.subnet(out, None),
        });
        for (at, with) in cuts {
            let at = at.index(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
                text.replace_range(at..at + 1, &with);
            }
        }
        read_all(&text);
        let _ = parse_fdbs("f", &text, &fabric);
        let _ = parse_lfts("f", &text, &fabric);
        let _ = parse_psl("f", &text, &fabric, &lids);
        let _ = parse_sl2vl("f", &text, &fabric);
    }
}

const HDR_LIST: &str = include_str!("../../../../tests/inputs/opensm-subnet-hdr.lst");

/// The speeds of all cables of a list.
fn speeds(text: &str) -> Vec<String> {
    let fabric = parse_subnet("list", text).unwrap_or_else(|error| panic!("{error}"));
    fabric.cables().map(|cable| cable.rate.to_string()).collect()
}

#[test]
fn a_list_of_opensm_names_the_speeds_as_it_does() {
    assert_eq!(speeds(HDR_LIST), ["4xHDR"; 3]);
    // What OpenSM 3.3.23 has no name for is not known; later ones name it.
    for (name, speed) in [("??", "4xQDR"), ("100", "4xNDR"), ("200", "4xXDR"), ("25", "4xEDR")] {
        assert_eq!(speeds(&HDR_LIST.replace("SPD=50", &format!("SPD={name}"))), [speed; 3], "{name}");
    }
    for width in ["2x", "??"] {
        assert_eq!(speeds(&HDR_LIST.replace("PHY=4x", &format!("PHY={width}"))), ["2xHDR"; 3], "{width}");
    }
    assert!(parse_subnet("list", &HDR_LIST.replace("SPD=50", "SPD=51")).is_err());
    // OpenSM 3.3.23 printed these of laboratories with such links.
    let printed = [
        ("4xEDR", "PHY=4x LOG=ACT SPD=25"),
        ("4xHDR", "PHY=4x LOG=ACT SPD=50"),
        ("2xHDR", "PHY=2x LOG=ACT SPD=50"),
        ("4xNDR", "PHY=4x LOG=ACT SPD=??"),
        ("2xNDR", "PHY=2x LOG=ACT SPD=??"),
        ("4xXDR", "PHY=4x LOG=ACT SPD=??"),
    ];
    for (rate, ending) in printed {
        let options = GenerateOptions { rate: rate.parse().unwrap(), ..GenerateOptions::default() };
        let fabric = ring(3, 1, &options).unwrap();
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let routing = Routing::on_one_lane("minhop", minhop(&fabric, &lids));
        let text = written(|out| Dump::new(&fabric, &lids, &routing).subnet(out, None));
        assert!(text.lines().all(|line| line.ends_with(ending)), "{rate}\n{text}");
    }
}

#[test]
fn a_list_of_ibdiagnet_has_a_head_and_ports_without_a_lid() {
    let head = "# This database file was automatically generated by IBDIAGNET\n-I- Running version 2.11\n\n";
    assert_eq!(speeds(&format!("{head}{HDR_LIST}")), ["4xHDR"; 3]);
    let fabric = parse_subnet("list", &HDR_LIST.replace("LID:000B", "LID:FFFF")).unwrap();
    assert_eq!(Lids::from_fabric(&fabric).unwrap().len(), 3, "65535 is no LID");
}

#[test]
fn tables_are_read_as_tools_print_them() {
    let fabric =
        weft_topology::parse("three", include_str!("../../../../tests/inputs/three-hosts.topo")).unwrap();
    let text = include_str!("../../../../tests/inputs/dump_lfts-deprecated.txt");
    let routes = parse_lfts("dump", text, &fabric).unwrap_or_else(|error| panic!("{error}"));
    let (switch, _) = fabric.switches().next().unwrap();
    let ports: Vec<u8> = (1..=5).map(|lid| routes.port(switch, Lid(lid)).0).collect();
    assert_eq!(ports, [0, 1, 2, 3, PortNum::NONE.0]);
    let line = "0x0002 001 :";
    // `dump_fts -a` prints all LIDs, and a library's messages are among them.
    let all = text.replace(
        line,
        &format!("0x0000 255 : (illegal port)\n0x0005 255 : (illegal port)\nibwarn: [7] mad_rpc: x\n{line}"),
    );
    assert_eq!(parse_lfts("dump", &all, &fabric), Ok(routes));
    assert!(SavedRouting::parse_lfts("dump", &all).is_ok());
    // The LIDs are those that the tables name.
    let other = include_str!("../../../../tests/inputs/opensm-lfts-other-lids.dump");
    let lids = SavedRouting::parse_lfts("dump", other).unwrap().lids(&fabric).unwrap();
    let bases: Vec<u16> = lids.iter().map(|lids| lids.base.0).collect();
    assert_eq!(bases, [0xb, 0xc, 0xd, 0xe]);
}
