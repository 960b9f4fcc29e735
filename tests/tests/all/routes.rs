//! The files in OpenSM's shapes, judged by OpenSM and by ibutils' ibdmchk: weft writes what OpenSM writes byte for byte,
//! OpenSM routes by what weft writes, and ibdmchk follows every path of it and looks for credit loops.

use std::fmt::Write;
use std::process::Command;

use tempfile::TempDir;
use weft_judges::{Ibsim, first_host, opensm, output_of};
use weft_routing::files::{Dump, GuidToLid, parse_lfts, parse_sl2vl, parse_subnet};
use weft_routing::{
    Engine, EngineOptions, Expectations, Input, Lids, Routing, ServiceLevels, minhop, trace, verify_routing,
};
use weft_topology::generate::{self, GenerateOptions, RandomFabric};
use weft_topology::{Fabric, PortRef, diff};
use weft_wire::{PortNum, ServiceLevel};

fn options() -> GenerateOptions {
    GenerateOptions::default()
}

fn tree_324() -> Fabric {
    generate::xgft(&[18, 18], &[1, 18], &options()).unwrap()
}

fn ring(switches: u32) -> Fabric {
    generate::ring(switches, 1, &options()).unwrap()
}

fn random(seed: u64) -> Fabric {
    let parameters = RandomFabric { switches: 6, hosts: 12, extra_cables: 5, parallel_cables: 2 };
    generate::random(&parameters, seed, &options()).unwrap()
}

fn text(write: impl FnOnce(&mut dyn Write) -> std::fmt::Result) -> String {
    let mut text = String::new();
    write(&mut text).unwrap();
    text
}

/// Runs OpenSM once on an ibsim; its files are in the ibsim's folder then.
fn run_opensm(fabric: &Fabric, ibsim: &Ibsim, arguments: &[&str]) {
    let mut command = ibsim.command("opensm", &first_host(fabric).1.id);
    // Log flag 0x40 makes it write its tables.
    output_of(command.args(["-o", "-D", "0x43", "-f", "opensm.log"]).args(arguments));
}

#[track_caller]
fn same(name: &str, file: &str, ours: &str, theirs: &str) {
    for (number, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(ours, theirs, "{name}: {file}:{}", number + 1);
    }
    assert_eq!(ours.len(), theirs.len(), "{name}: {file}");
}

/// What OpenSM wrote is read, and written again as it was.
fn written_as_opensm_writes_it(name: &str, fabric: &Fabric, arguments: &[&str]) {
    let ibsim = Ibsim::start(fabric);
    run_opensm(fabric, &ibsim, arguments);
    let read = |file: &str| std::fs::read_to_string(ibsim.folder().join(file)).unwrap();
    let (lids, fdbs) = opensm::written(fabric, ibsim.folder());
    let mut routing = Routing::on_one_lane("opensm", fdbs.routes);
    routing.lanes = parse_sl2vl("opensm-sl2vl.dump", &read("opensm-sl2vl.dump"), fabric).unwrap();
    let lfts = parse_lfts("opensm-lfts.dump", &read("opensm-lfts.dump"), fabric).unwrap();
    assert!(lfts == routing.routes, "{name}: its two files of tables do not say the same");
    let cabling = parse_subnet("opensm-subnet.lst", &read("opensm-subnet.lst")).unwrap();
    let differences = diff(fabric, &cabling);
    assert!(differences.is_empty(), "{name}: {differences:?}");

    let dump = Dump::new(fabric, &lids, &routing);
    same(name, "opensm.fdbs", &text(|out| dump.fdbs(out)), &read("opensm.fdbs"));
    same(name, "opensm-lfts.dump", &text(|out| dump.lfts(out)), &read("opensm-lfts.dump"));
    same(name, "opensm-lid-matrix.dump", &text(|out| dump.lid_matrix(out)), &read("opensm-lid-matrix.dump"));
    same(name, "opensm-sl2vl.dump", &text(|out| dump.sl2vl(out)), &read("opensm-sl2vl.dump"));
    // The devices of ibsim have a revision of their own.
    let theirs = read("opensm-subnet.lst").replace("Rev:000000A1", "Rev:00000000");
    same(name, "opensm-subnet.lst", &text(|out| dump.subnet(out, Some(first_host(fabric).0))), &theirs);
}

#[test]
fn the_bytes_are_those_of_opensm() {
    let minhop = &["-R", "minhop", "-Q"][..];
    written_as_opensm_writes_it("X5", &weft_judges::x5(), minhop);
    written_as_opensm_writes_it("324 hosts", &tree_324(), minhop);
    for seed in 0..4 {
        written_as_opensm_writes_it(&format!("seed {seed}"), &random(seed), minhop);
    }
    written_as_opensm_writes_it("LMC 2", &random(4), &["-R", "minhop", "-Q", "-l", "2"]);
}

#[test]
fn odd_descriptions_are_written_as_opensm_writes_them() {
    let odd = random(5).write_ibnetdiscover().replace("\"switch-1\"", "\"odd {x}: 'q' 100% #7 é\"");
    let odd = odd.replace("\"host-2\"", "\"it's } LID:1 # a \\ host\"");
    let fabric = weft_topology::parse("odd.topo", &odd).unwrap();
    written_as_opensm_writes_it("odd", &fabric, &["-R", "minhop", "-Q"]);
}

/// OpenSM's engine `file` reads weft's tables and hops and, with the LIDs of weft's `guid2lid`, writes them as they were.
fn taken_by_opensm(name: &str, fabric: &Fabric, lids: &Lids, lmc: u8) {
    let routing = Routing::on_one_lane("minhop", minhop(fabric, lids));
    let dump = Dump::new(fabric, lids, &routing);
    let ibsim = Ibsim::start(fabric);
    let write = |file: &str, text: &str| std::fs::write(ibsim.folder().join(file), text).unwrap();
    write("guid2lid", &GuidToLid::of(fabric, lids).to_string());
    let (lfts, matrix) = (text(|out| dump.lfts(out)), text(|out| dump.lid_matrix(out)));
    write("weft-lfts", &lfts);
    write("weft-matrix", &matrix);
    let lmc = lmc.to_string();
    run_opensm(fabric, &ibsim, &["-x", "-R", "file", "-U", "weft-lfts", "-M", "weft-matrix", "-l", &lmc]);
    let read = |file: &str| std::fs::read_to_string(ibsim.folder().join(file)).unwrap();
    let log = read("opensm.log");
    assert!(log.contains("file tables configured on all switches"), "{name}: {log}");
    assert_eq!(opensm::lids_of(fabric, &read("guid2lid")), *lids, "{name}");
    same(name, "opensm-lfts.dump", &lfts, &read("opensm-lfts.dump"));
    same(name, "opensm-lid-matrix.dump", &matrix, &read("opensm-lid-matrix.dump"));
    same(name, "opensm.fdbs", &text(|out| dump.fdbs(out)), &read("opensm.fdbs"));
}

#[test]
fn opensm_routes_by_what_weft_writes() {
    let in_order = |fabric: &Fabric, lmc| Lids::in_guid_order(fabric, lmc).unwrap();
    let (x5, tree, irregular) = (weft_judges::x5(), tree_324(), random(6));
    taken_by_opensm("X5", &x5, &Lids::from_fabric(&x5).unwrap(), 0);
    taken_by_opensm("324 hosts", &tree, &in_order(&tree, 0), 0);
    taken_by_opensm("LMC 1", &irregular, &in_order(&irregular, 1), 1);
}

/// What ibdmchk says of a routing, by its files. What it exits with says nothing: ibutils' last version ends with a
/// segmentation fault after all is said, by OpenSM's files too.
fn ibdmchk(fabric: &Fabric, lids: &Lids, routing: &Routing, more: &[&str]) -> String {
    let folder = TempDir::new().unwrap();
    let dump = Dump::new(fabric, lids, routing);
    let write = |file: &str, text: String| std::fs::write(folder.path().join(file), text).unwrap();
    write("subnet.lst", text(|out| dump.subnet(out, None)));
    write("fdbs", text(|out| dump.fdbs(out)));
    write("mcfdbs", String::new());
    write("psl", text(|out| dump.psl(out)));
    write("slvl", text(|out| dump.slvl(out)));
    let mut command = Command::new("ibdmchk");
    command.args(["-s", "subnet.lst", "-f", "fdbs", "-m", "mcfdbs", "-c", "psl", "-d", "slvl"]).args(more);
    let output = command
        .current_dir(folder.path())
        .output()
        .expect("ibdmchk must be installed: apt-get install ibutils");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn no_credit_loops(name: &str, fabric: &Fabric, lids: &Lids, routing: &Routing) {
    let said = ibdmchk(fabric, lids, routing, &[]);
    assert!(said.contains("no credit loops found"), "{name}:\n{said}");
    let hosts: usize = fabric.hosts().map(|(_, node)| node.cabled_ports().count()).sum();
    let paths = format!("Scanned:{} CA to CA paths", hosts * (hosts - 1));
    assert!(said.contains(&paths), "{name}: {paths}\n{said}");
    for complaint in ["-E-", "-W-", "credit loops in routing"] {
        assert!(!said.contains(complaint), "{name}: {complaint}\n{said}");
    }
}

/// The routing of an engine that must serve the fabric.
fn routed(name: &str, fabric: &Fabric, lids: &Lids, engine: &str) -> Routing {
    let options = EngineOptions::default();
    let input = Input { fabric, lids, options: &options };
    let engine = Engine::by_name(engine).unwrap();
    engine.route(&input).unwrap_or_else(|refusal| panic!("{name}: {refusal}"))
}

fn is_deadlock_free(fabric: &Fabric, lids: &Lids, routing: &Routing) -> bool {
    verify_routing(fabric, lids, routing, &Expectations::default()).is_deadlock_free()
}

#[test]
fn ibdmchk_finds_no_loops_where_an_engine_promises_none() {
    let torus = generate::torus(&[4, 4], 2, &options()).unwrap();
    for (name, fabric, engines) in [
        ("X5", weft_judges::x5(), &["updn", "lash", "dfsssp"][..]),
        ("324 hosts", tree_324(), &["ftree", "dfsssp"]),
        ("4x4 torus", torus, &["updn", "dor", "lash", "dfsssp"]),
        ("ring", ring(7), &["updn", "lash", "dfsssp"]),
        ("irregular", random(7), &["updn", "lash", "dfsssp"]),
    ] {
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        for engine in engines {
            let name = format!("{name}, {engine}");
            let routing = routed(&name, &fabric, &lids, engine);
            println!("{name}: {} lanes", routing.report.lanes);
            assert!(is_deadlock_free(&fabric, &lids, &routing), "{name}");
            no_credit_loops(&name, &fabric, &lids, &routing);
        }
    }
}

/// weft's verifier counts what hosts send and receive: more than ibdmchk by itself, which follows hosts to hosts, and less
/// than ibdmchk with `-a`, which follows switches to switches too.
#[test]
fn ibdmchk_and_weft_find_the_same_loops() {
    let mut counts = [0; 3];
    let irregular = (10..24).map(|seed| (format!("seed {seed}"), random(seed)));
    for (name, fabric) in
        irregular.chain([("X5".to_owned(), weft_judges::x5()), ("ring".to_owned(), ring(6))])
    {
        let lids = Lids::in_guid_order(&fabric, 0).unwrap();
        let routing = Routing::on_one_lane("minhop", minhop(&fabric, &lids));
        let has_loop = |more: &[&str]| {
            let said = ibdmchk(&fabric, &lids, &routing, more);
            let found = said.contains("-E- credit loops in routing");
            assert_ne!(found, said.contains("no credit loops found"), "{name} {more:?}:\n{said}");
            found
        };
        let found = [has_loop(&[]), !is_deadlock_free(&fabric, &lids, &routing), has_loop(&["-a"])];
        assert!(found.is_sorted(), "{name}: hosts to hosts, weft, all: {found:?}");
        assert!(name != "ring" || found[0], "{name}");
        for (count, found) in counts.iter_mut().zip(found) {
            *count += u32::from(found);
        }
    }
    println!("of 16 fabrics, with loops: hosts to hosts, weft, all: {counts:?}");
    assert!(counts[0] > 0 && counts[2] < 16, "{counts:?}");
}

/// A ring's shortest paths on one lane wait for each other. Those that cross one certain cable on a lane of their own do
/// not, and ibdmchk sees that by weft's files of levels and lanes.
#[test]
fn ibdmchk_sees_a_rings_loop_and_the_lanes_that_break_it() {
    let fabric = ring(5);
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let mut routing = Routing::on_one_lane("minhop", minhop(&fabric, &lids));
    let said = ibdmchk(&fabric, &lids, &routing, &[]);
    assert!(said.contains("-E- credit loops in routing"), "{said}");
    assert!(!is_deadlock_free(&fabric, &lids, &routing));

    let (first, last) = (fabric.find("switch-0").unwrap(), fabric.find("switch-4").unwrap());
    let ends: Vec<_> = lids.iter().map(|lids| (lids.base, lids.port)).collect();
    routing.levels = ServiceLevels::classes(lids.top(), ends.len(), ends.len());
    for (class, (lid, _)) in (0..).zip(&ends) {
        routing.levels.set_source(*lid, class);
        routing.levels.set_destination(*lid, class);
    }
    for (source, (_, from)) in (0..).zip(&ends) {
        for (destination, (to, _)) in (0..).zip(&ends) {
            let from = if fabric.node(from.node).is_switch() {
                PortRef::new(from.node, PortNum::ZERO)
            } else {
                *from
            };
            let path = trace(&fabric, &lids, &routing.routes, from, *to).unwrap();
            let crosses = |pair: &[weft_routing::Hop]| {
                [(first, last), (last, first)].contains(&(pair[0].node, pair[1].node))
            };
            let level = u8::from(path.hops.windows(2).any(crosses));
            routing.levels.set(source, destination, ServiceLevel(level));
        }
    }
    no_credit_loops("two lanes", &fabric, &lids, &routing);
    assert!(is_deadlock_free(&fabric, &lids, &routing));
}

/// torus-2QoS spreads pairs over lanes by levels that OpenSM writes nowhere, so that nothing is to be said of deadlock.
#[test]
fn levels_of_opensms_torus_are_unknown() {
    let fabric = generate::torus(&[3, 3, 5], 1, &options()).unwrap();
    let ibsim = Ibsim::start(&fabric);
    let guid = |name: &str| fabric.node(fabric.find(name).unwrap()).guid;
    let origin = guid("switch-0-0-0");
    let mut seed = "torus 3 3 5\n".to_owned();
    for (axis, next) in [("x", "switch-1-0-0"), ("y", "switch-0-1-0"), ("z", "switch-0-0-1")] {
        writeln!(seed, "{axis}p_link {origin} {}", guid(next)).unwrap();
    }
    std::fs::write(ibsim.folder().join("seed"), seed).unwrap();
    run_opensm(&fabric, &ibsim, &["-R", "torus-2QoS", "-Q", "--torus_config", "seed"]);
    let read = |file: &str| std::fs::read_to_string(ibsim.folder().join(file)).unwrap();
    assert!(read("opensm.log").contains("torus-2QoS tables configured on all switches"));
    let (lids, fdbs) = opensm::written(&fabric, ibsim.folder());
    let mut routing = Routing::on_one_lane("opensm", fdbs.routes);
    routing.lanes = parse_sl2vl("opensm-sl2vl.dump", &read("opensm-sl2vl.dump"), &fabric).unwrap();
    let verdict = |levels_known| {
        let expectations = Expectations { levels_known, ..Expectations::default() };
        verify_routing(&fabric, &lids, &routing, &expectations)
    };
    assert!(!verdict(true).cycles.is_empty(), "on level 0 alone packets wait in circles");
    let open = verdict(false);
    assert!(open.reach.is_sound() && open.levels_unknown && open.cycles.is_empty(), "{open}");
}
