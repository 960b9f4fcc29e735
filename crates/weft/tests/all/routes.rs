//! `weft routes`: engines and their options, written and proved routings, and errors.

use common::{Home, text};

use crate::common;

const MINHOP: &[&str] = &["--engine", "minhop"];

fn x5() -> String {
    format!("{}/../../topologies/psmn-x5.topo", env!("CARGO_MANIFEST_DIR"))
}

/// A ring of five switches with a host each, whose shortest paths wait for each other.
fn ring(home: &Home) -> String {
    home.weft(&["topo", "gen", "ring", "--switches", "5", "-o", "ring.topo"]).succeeds();
    "ring.topo".into()
}

/// Computes into a folder.
fn compute(home: &Home, file: &str, arguments: &[&str], folder: &str) {
    home.weft(&[&["routes", "compute", file, "--dump", folder], arguments].concat()).succeeds();
}

/// Replaces text in a file of a folder.
#[track_caller]
fn change(home: &Home, file: &str, from: &str, to: &str) {
    let path = home.base().with_file_name(file);
    let before = std::fs::read_to_string(&path).unwrap();
    assert!(before.contains(from), "{from} is not in {file}:\n{before}");
    std::fs::write(&path, before.replacen(from, to, 1)).unwrap();
}

#[test]
fn a_tree_is_routed_written_down_and_proved() {
    let home = Home::new();
    let file = home.small_tree();
    let done = home.weft(&[&["routes", "compute", text(&file), "--dump", "out"], MINHOP].concat());
    let said = &done.succeeds().stdout;
    assert!(said.starts_with("minhop: switches: 4, hosts: 4, LIDs: 8, computed in "), "{said}");
    let files = [
        "guid2lid",
        "ibdmchk.psl",
        "ibdmchk.slvl",
        "opensm-lfts.dump",
        "opensm-lid-matrix.dump",
        "opensm-sl2vl.dump",
        "opensm-subnet.lst",
        "opensm.fdbs",
        "opensm.mcfdbs",
        "report.json",
    ];
    let folder = home.base().with_file_name("out");
    let mut listed: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    listed.sort();
    assert_eq!(listed, files);
    let found = home.json(&["routes", "verify", text(&file), "out", "--json"]);
    for what in ["sound", "deadlock_free", "minimal"] {
        assert_eq!(found[what], true, "{what}: {found}");
    }
    assert_eq!((&found["engine"], &found["reach"]["pairs"]), (&"minhop".into(), &32.into()), "{found}");
    // The cabling is in the folder, too.
    home.weft(&["topo", "diff", text(&file), "out/opensm-subnet.lst"]).succeeds();
    home.weft(&["routes", "verify", "out/opensm-subnet.lst", "out"]).succeeds();
    // OpenSM alone writes neither a report nor levels.
    for file in ["report.json", "ibdmchk.psl", "ibdmchk.slvl", "opensm-lfts.dump"] {
        std::fs::remove_file(folder.join(file)).unwrap();
    }
    home.weft(&["routes", "verify", text(&file), "out"]).succeeds();
    home.weft(&["routes", "verify", text(&file), "."])
        .fails(2, "holds neither opensm-lfts.dump nor opensm.fdbs");
}

#[test]
fn lids_are_kept() {
    let home = Home::new();
    let file = home.small_tree();
    let lids =
        |folder: &str| std::fs::read_to_string(home.base().with_file_name(folder).join("guid2lid")).unwrap();
    compute(&home, text(&file), MINHOP, "counted");
    assert!(lids("counted").starts_with("0x0200484300000001 0x0001 0x0001\n\n"), "{}", lids("counted"));
    compute(&home, text(&file), &[MINHOP, &["--lmc", "2"]].concat(), "wide");
    assert!(lids("wide").starts_with("0x0200484300000001 0x0004 0x0007\n\n"), "{}", lids("wide"));
    compute(&home, text(&file), &[MINHOP, &["--lids", "wide/guid2lid"]].concat(), "again");
    assert_eq!(lids("again"), lids("wide"));
    home.weft(&["routes", "verify", text(&file), "again"]).succeeds();
    // The cluster's file has LIDs.
    compute(&home, &x5(), MINHOP, "x5");
    assert!(lids("x5").contains("0x003048c749000001 0x0060 0x0060\n"), "{}", lids("x5"));
    // LIDs of virtual functions have no place in guid2lid.
    compute(&home, text(&file), &[MINHOP, &["--vms", "3"]].concat(), "virtual");
    assert_eq!(lids("virtual"), lids("counted"));
    let found = home.json(&["routes", "verify", text(&file), "virtual", "--json"]);
    assert_eq!(found["reach"]["pairs"], (8 + 4 * 3) * 4, "{found}");
}

#[test]
fn a_ring_on_one_lane_may_wait_for_itself() {
    let home = Home::new();
    let file = ring(&home);
    compute(&home, &file, MINHOP, "out");
    let done = home.weft(&["routes", "verify", &file, "out"]);
    done.fails(1, "");
    assert!(
        done.stdout.contains("lane 0: 10 channels, 10 dependencies, DEADLOCK POSSIBLE"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("on lane 0 5 channels may wait for each other in a circle"),
        "{}",
        done.stdout
    );
    let done = home.weft(&["routes", "verify", &file, "out", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(found["cycles"][0]["channels"].as_array().unwrap().len(), 5, "{found}");
    assert_eq!((&found["deadlock_free"], &found["sound"], done.code), (&false.into(), &true.into(), 1));
}

/// OpenSM writes lanes but no levels: with neither a report nor a file of levels nothing is said of deadlock.
#[test]
fn levels_that_nobody_wrote_are_unknown() {
    let home = Home::new();
    let file = ring(&home);
    compute(&home, &file, MINHOP, "out");
    for name in ["report.json", "ibdmchk.psl"] {
        std::fs::remove_file(home.base().with_file_name("out").join(name)).unwrap();
    }
    let done = home.weft(&["routes", "verify", &file, "out"]);
    done.fails(1, "");
    for says in
        ["DEADLOCK NOT JUDGED: the service levels of pairs are unknown", "hint: OpenSM writes no levels"]
    {
        assert!(done.stdout.contains(says) && !done.stdout.contains("POSSIBLE"), "{}", done.stdout);
    }
    let done = home.weft(&["routes", "verify", &file, "out", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&found["deadlock_free"], &found["levels_unknown"]), (&serde_json::Value::Null, &true.into()));
}

#[test]
fn one_wrong_port_is_found() {
    let home = Home::new();
    let file = home.small_tree();
    compute(&home, text(&file), MINHOP, "out");
    // From the first leaf's host to its neighbour's cable.
    change(&home, "out/opensm-lfts.dump", "\n0x0001 001 #", "\n0x0001 002 #");
    let done = home.weft(&["routes", "verify", text(&file), "out"]);
    done.fails(1, "");
    assert!(done.stdout.contains("it ends at the wrong node"), "{}", done.stdout);
}

#[test]
fn hosts_without_lids_are_not_passed_over() {
    let home = Home::new();
    let file = home.small_tree();
    let file = text(&file);
    compute(&home, file, MINHOP, "out");
    // The levels are by LID.
    std::fs::remove_file(home.base().with_file_name("out/ibdmchk.psl")).unwrap();
    let verify = || home.weft(&["routes", "verify", file, "out"]);
    change(&home, "out/guid2lid", "0x0200484300000001 0x0001 0x0001\n", "");
    let done = verify();
    done.fails(1, "");
    let says = "NOT PROVED: 1 cabled host port without a LID, the first is H-0200484300000000[1]";
    assert!(done.stdout.contains(says), "{}", done.stdout);
    home.write("out/guid2lid", "");
    let done = home.weft(&["routes", "verify", file, "out", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&found["without_lid"], &found["sound"], done.code), (&4.into(), &false.into(), 1), "{found}");
    // A host that has lost its cable keeps its LID.
    compute(&home, file, MINHOP, "out");
    for line in ["[1]\t\"H-0200484300000000\"", "[1](200484300000001)"] {
        let before = std::fs::read_to_string(file).unwrap();
        let kept: Vec<&str> = before.lines().filter(|known| !known.starts_with(line)).collect();
        assert_eq!(kept.len() + 1, before.lines().count(), "{line}: {before}");
        std::fs::write(file, kept.join("\n") + "\n").unwrap();
    }
    let done = verify();
    let says = "1 LID of ports that no switch is cabled to";
    assert!(done.stdout.contains(says), "{}", done.stdout);
}

#[test]
fn ranks_that_are_told_are_held_against_the_tables() {
    let home = Home::new();
    let file = home.small_tree();
    let tree =
        home.weft(&["routes", "compute", text(&file), "--engine", "updn,no_fallback", "--dump", "out"]);
    assert!(tree.succeeds().stdout.contains("2 ranks, roots: "), "{}", tree.stdout);
    let done = home.weft(&["routes", "verify", text(&file), "out"]);
    let legal = "tree: 0 pairs of hosts and 0 of management go up after down";
    assert!(done.succeeds().stdout.contains(legal), "{}", done.stdout);
    // One of the two roots turned into a leaf's leaf: what passes it now goes down first.
    change(&home, "out/report.json", "\": 0", "\": 2");
    let done = home.weft(&["routes", "verify", text(&file), "out"]);
    done.fails(1, "");
    assert!(done.stdout.contains("it goes up again at "), "{}", done.stdout);
}

#[test]
fn turns_that_the_engine_tells_of_are_no_failure() {
    let home = Home::new();
    let tree = ["topo", "gen", "xgft", "--children", "2,3", "--parents", "1,2", "-o", "tree.topo"];
    home.weft(&tree).succeeds();
    // The first leaf keeps one root, the last leaf the other: between them hosts pass the leaf that has both.
    for end in [
        "S-0200535700000005\"[1]",
        "S-0200535700000001\"[4]",
        "S-0200535700000004\"[3]",
        "S-0200535700000003\"[3]",
    ] {
        let text = std::fs::read_to_string(home.base().with_file_name("tree.topo")).unwrap();
        let line = text.lines().find(|line| line.starts_with('[') && line.contains(end)).unwrap();
        change(&home, "tree.topo", &format!("{line}\n"), "");
    }
    for engine in ["ftree", "vftree", "vswitch-ftree"] {
        compute(&home, "tree.topo", &["--engine", &format!("{engine},no_fallback")], "out");
        let verify = ["routes", "verify", "tree.topo", "out"];
        let done = home.weft(&verify);
        let says = "tree: 4 pairs of hosts and 8 of management go up after down";
        assert!(done.succeeds().stdout.contains(says), "{engine}: {}", done.stdout);
        let says =
            "that is what the engine says, and it deadlocks no lane: no up/down path for 4 pairs of switches";
        assert!(done.stdout.contains(says), "{engine}: {}", done.stdout);
        let found = home.json(&[&verify[..], &["--json"]].concat());
        let told = found["turns_told"].as_str().unwrap();
        assert!(
            found["sound"] == true && told.contains("hosts go down to one leaf before they go up"),
            "{told}"
        );
        // Who does not tell is wrong.
        change(&home, "out/report.json", "hosts go down", "hosts go");
        home.weft(&verify).fails(1, "");
    }
}

#[test]
fn a_transition_is_verified() {
    let home = Home::new();
    let file = ring(&home);
    compute(&home, &file, MINHOP, "old");
    compute(&home, &file, &["--engine", "updn,no_fallback"], "new");
    home.weft(&["routes", "verify", &file, "new"]).succeeds();
    let done = home.weft(&["routes", "verify", &file, "new", "--from", "old"]);
    done.fails(1, "");
    assert!(done.stdout.contains("while switches change, in any order:"), "{}", done.stdout);
    home.weft(&["routes", "verify", &file, "new", "--from", "new"]).succeeds();
    compute(&home, &file, &[MINHOP, &["--lmc", "1"]].concat(), "wide");
    home.weft(&["routes", "verify", &file, "wide", "--from", "old"]).fails(2, "for different LIDs");
}

#[test]
fn engines_are_listed_and_compared() {
    let home = Home::new();
    let file = x5();
    let listed = home.json(&["routes", "engines", "--json"]);
    let names: Vec<_> =
        listed.as_array().unwrap().iter().map(|engine| engine["name"].as_str().unwrap()).collect();
    assert!(names.starts_with(&["minhop", "updn"]), "{names:?}");
    let table = home.weft(&["routes", "engines"]);
    assert_eq!(table.succeeds().stdout.lines().count(), names.len() + 1);
    let compare = |more: &[&str]| {
        let arguments = ["routes", "compare", &file, "--engines", "updn,minhop", "--runs", "20", "--json"];
        home.json(&[&arguments, more].concat())
    };
    let found = compare(&[]);
    assert_eq!((&found["traffic"], &found["runs"]), (&"bisect".into(), &20.into()), "{found}");
    let rows = found["rows"].as_array().unwrap();
    assert_eq!((&rows[0]["name"], &rows[1]["name"], rows.len()), (&"updn".into(), &"minhop".into(), 2));
    assert_eq!((&rows[0]["failures"], &rows[0]["pairs"]), (&0.into(), &(89 * 88).into()), "{found}");
    let one_thread = compare(&["--threads", "1"]);
    assert_eq!(one_thread["rows"], found["rows"]);
    assert_ne!(compare(&["--seed", "2"])["rows"], found["rows"]);
    // The cluster is no grid: the others are compared, and the reason is said.
    let done = home.weft(&["routes", "compare", &file, "--engines", "minhop,dor", "--runs", "3"]);
    assert!(done.succeeds().stderr.starts_with("dor: "), "{}", done.stderr);
    home.weft(&["routes", "compare", &file, "--engines", "dor", "--runs", "3"]).fails(1, "error: dor: ");
}

#[test]
fn compared_routings_are_verified_for_deadlock() {
    let home = Home::new();
    let file = ring(&home);
    let compare = ["routes", "compare", &file, "--engines", "minhop,updn", "--runs", "3"];
    let done = home.weft(&compare);
    let warning = "\nminhop: this routing may deadlock: ";
    assert!(done.succeeds().stdout.contains(warning), "{}", done.stdout);
    assert!(!done.stdout.contains("updn: this routing may deadlock"), "{}", done.stdout);
    let reports = &home.json(&[&compare[..], &["--json"]].concat())["reports"];
    let says = |engine: &str| reports[engine].to_string().contains("this routing may deadlock");
    assert!(says("minhop") && !says("updn") && reports["updn"]["engine"] == "updn", "{reports}");
}

#[test]
fn an_engine_that_refuses_says_why_and_the_chain_goes_on() {
    let home = Home::new();
    let done = home.weft(&["routes", "compute", &x5(), "--engine", "dor"]);
    // The cluster is a tree of which cables are missing.
    assert!(done.succeeds().stdout.starts_with("ftree: "), "{}", done.stdout);
    assert!(
        done.stderr.contains("warning: ftree took over: dor: ")
            && done.stderr.contains("minhop: this is a damaged tree"),
        "{}",
        done.stderr
    );
    home.weft(&["routes", "compute", &x5(), "--engine", "dor,no_fallback"])
        .fails(1, "error: dor: ")
        .fails(1, "hint: `--engine auto` tries minhop, updn, dfsssp and lash");
}

#[test]
fn invalid_routes_arguments_are_refused() {
    let home = Home::new();
    let file = home.small_tree();
    let file = text(&file);
    let with = |engine: &str, more: &[&str]| {
        home.weft(&[&["routes", "compute", file, "--engine", engine], more].concat())
    };
    with("bogus", &[]).fails(2, "error: no engine is called `bogus`; there are minhop, ");
    with(",", &[]).fails(2, "no engine is named");
    with("minhop", &["--lanes", "3"])
        .fails(2, "--lanes means nothing to minhop")
        .fails(2, "`weft routes engines`");
    with("dfsssp", &["--lanes", "16"]).fails(2, "16 is not in 1..=15");
    with("minhop", &["--lmc", "8"]).fails(2, "8 is not in 0..=7");
    with("pftree-combined", &["--isolation-share", "1.5"]).fails(2, "a share is a number from 0 to 1");
    with("pftree", &["--literal"]).fails(2, "--literal means nothing to pftree");
    with("ftree", &["--pftree-order", "fabric"]).fails(2, "--pftree-order means nothing to ftree");
    with("pftree", &["--pftree-order", "guid"]).fails(2, "an order is interleaved, partition or fabric");
    with("pftree-ext", &["--leave-one"]).fails(2, "--literal");
    with("updn", &["--roots", "nowhere"]).fails(2, "error: cannot read nowhere: ");
    home.write("roots", "0x1\n");
    with("updn", &["--roots", "roots"]).fails(2, "roots: 0x0000000000000001 is nobody's GUID");
    home.write("roots", "# roots\n  spine\n");
    with("updn", &["--roots", "roots"]).fails(2, "error: roots:2:3: expected a GUID");
    home.write("partitions", "Default=0x7fff : ALL=full ;\ntenant=0x2, isolation=perfect : ALL ;\n");
    with("pftree", &["--partitions", "partitions"]).fails(2, "error: partitions:2:");
    home.write("weights", "0x0200484300000001 101\n");
    with("pftree-wt", &["--weights", "weights"])
        .fails(2, "error: weights:1:20: a weight must be 1 to 100: `101`");
    home.write("received", "0x0200484300000001 many\n");
    with("pftree-wt", &["--received", "received"]).fails(2, "error: received:1:20: a count must be 0 to ");
    with("pftree-wt", &["--received", "received", "--weights", "weights"]).fails(2, "cannot be used with");
    home.write("lids", "0x1 0x1 0x1\n");
    with("minhop", &["--lids", "lids"]).fails(2, "lids has no LID of this fabric's ports");
    home.write("lids", "0x0200484300000001 0x1 0x2\n");
    with("minhop", &["--lids", "lids"])
        .fails(2, "error: lids:1:20: the first of 2 LIDs must be a multiple of 2");
    home.write("lids", "0x0200484300000001 0x2 0x4\n");
    with("minhop", &["--lids", "lids"])
        .fails(2, "error: lids:1:24: a port has 1, 2, 4, 8, 16, 32, 64 or 128 LIDs");
    let compare = ["routes", "compare", file, "--engines", "minhop", "--pattern"];
    home.weft(&[&compare[..], &["nonsense"]].concat()).fails(2, "no pattern is called `nonsense`");
    home.weft(&[&compare[..], &["bisect", "--victims", "3"]].concat()).fails(2, "--victims means nothing");
}

#[test]
fn options_are_about_this_fabric() {
    let home = Home::new();
    let file = home.small_tree();
    let file = text(&file);
    let compute = |engine: &str, more: &[&str]| {
        home.weft(&[&["routes", "compute", file, "--engine", engine], more].concat())
    };
    let show = home.json(&["topo", "show", file, "--json"]);
    let guid = |kind: &str| {
        let node = show["nodes"].as_array().unwrap().iter().find(|node| node["kind"] == kind);
        node.unwrap_or_else(|| panic!("{kind}: {show}"))["guid"].as_str().unwrap().to_owned()
    };
    home.write("host", &guid("Hca"));
    home.write("switch", &guid("Switch"));
    compute("updn", &["--roots", "host"]).fails(2, "error: host: 0x").fails(2, ", which is no switch");
    compute("updn", &["--roots", "switch"]).succeeds();
    for option in ["--cn", "--io", "--order"] {
        compute("ftree", &[option, "switch"]).fails(2, "error: switch: 0x").fails(2, ", which is a switch");
        compute("ftree", &[option, "host"]).succeeds();
    }
    home.write("nobody", "0x1 5\n");
    for option in ["--weights", "--received"] {
        compute("pftree-wt", &[option, "nobody"]).fails(2, "nobody: 0x0000000000000001 is nobody's GUID");
    }
    let machines = |text: &str| {
        home.write("machines", text);
        compute("vswitch-ftree", &["--vms", "2", "--vm-weights", "machines"])
    };
    machines("9 5040\n").succeeds();
    machines("9 0\n").fails(2, "error: machines:1:3: a weight must be 1 to 5040: `0`");
    machines("1 5\n").fails(2, "error: machines: LID 1 is no virtual machine's: it is H-");
    machines("99 5\n").fails(2, "error: machines: nobody has LID 99; ");
    machines("9 5040\n10 1\n").fails(2, "weigh 5041 together, more than 5040");
    compute("minhop", &["--vms", "60000"]).fails(2, "LIDs for 60000 virtual functions on every host");
    let many = ["topo", "gen", "xgft", "--children", "20,20", "--parents", "1,1", "-o", "many.topo"];
    home.weft(&many).succeeds();
    home.weft(&["routes", "compute", "many.topo", "--engine", "minhop", "--lmc", "7"])
        .fails(2, "with an LMC of 7")
        .fails(2, "hint: a lower --lmc");
    let versus = |victims: &str| {
        let pattern = ["--pattern", "ptrnvsptrn:gather,alltoall", "--runs", "2", "--victims", victims];
        home.weft(&[&["routes", "compare", file, "--engines", "minhop"], &pattern[..]].concat())
    };
    versus("0").fails(2, "--victims must be 1 to 3, not 0");
    versus("4").fails(2, "--victims must be 1 to 3, not 4");
    versus("3").succeeds();
}

#[test]
fn dumps_that_are_damaged_or_of_another_fabric_are_refused() {
    let home = Home::new();
    let file = home.small_tree();
    compute(&home, text(&file), MINHOP, "out");
    let verify = |file: &str| home.weft(&["routes", "verify", file, "out"]);
    verify(&x5()).fails(2, "out/opensm-lfts.dump:").fails(2, "the fabric has no switch of the GUID");
    change(&home, "out/opensm-lfts.dump", "0x0002 ", "0xc002 ");
    verify(text(&file)).fails(2, "error: out/opensm-lfts.dump:3:1: a LID is 0x1 to 0xbfff: `0xc002`");
    compute(&home, text(&file), MINHOP, "out");
    change(&home, "out/opensm-subnet.lst", "PHY=4x", "PHY=5x");
    home.weft(&["topo", "check", "out/opensm-subnet.lst"])
        .fails(2, "error: out/opensm-subnet.lst:1:")
        .fails(2, "expected 1x, 2x, 4x, 8x, 12x or ??: `5x`");
    change(&home, "out/report.json", "{", "");
    verify(text(&file)).fails(2, "out/report.json: ").fails(2, "hint: weft writes this file");
}

#[test]
fn isolation_that_is_asked_for_is_proved() {
    let home = Home::new();
    let tree = ["topo", "gen", "xgft", "--children", "4,4", "--parents", "1,4", "-o", "tree.topo"];
    home.weft(&tree).succeeds();
    // A host on each leaf, not at the same place everywhere.
    let hosts = |from: u64| {
        let guid = |leaf: u64| {
            format!("0x{:016x}", 0x0200_4843_0000_0001u64 + 0x100 * (4 * leaf + (from + leaf) % 4))
        };
        (0..4).map(guid).collect::<Vec<_>>().join(", ")
    };
    let rule = |number: u64, policy: &str| {
        format!("t{number}=0x{number:04x}, defmember=full, isolation={policy} : {} ;\n", hosts(number - 1))
    };
    home.write("partitions", &(rule(1, "phy") + &rule(2, "vlane") + &rule(3, "vlane") + &rule(4, "def")));
    let partitions = &["--partitions", "partitions"][..];
    let engine = |engine| [&["--engine", engine], partitions].concat();
    compute(&home, "tree.topo", &engine("pftree-ext,no_fallback"), "kept");
    let verify = |folder: &str| home.weft(&[&["routes", "verify", "tree.topo", folder], partitions].concat());
    let done = verify("kept");
    let kept = "isolation: 3 partitions with a policy, broken 0 times";
    assert!(done.succeeds().stdout.contains(kept), "{}", done.stdout);
    // Min-hop knows no partitions.
    compute(&home, "tree.topo", MINHOP, "mixed");
    let done = verify("mixed");
    done.fails(1, "");
    assert!(done.stdout.contains("t1 shares "), "{}", done.stdout);
    let compare = ["routes", "compare", "tree.topo", "--engines", "pftree-ext", "--runs", "5", "--json"];
    let found = home.json(&[&compare, partitions, &["--partition", "t1"]].concat());
    assert_eq!(found["rows"][0]["pairs"], 4 * 3, "{found}");
    // Engines that know no partitions are compared by the traffic of one.
    let others = ["routes", "compare", "tree.topo", "--engines", "ftree,updn", "--runs", "5"];
    let found = home.json(&[&others, partitions, &["--partition", "t1", "--json"]].concat());
    assert_eq!(found["rows"][1]["pairs"], 4 * 3, "{found}");
    home.weft(&[&others, partitions].concat()).fails(2, "error: --partitions means nothing to ftree, updn\n");
    home.weft(&[&compare, partitions, &["--partition", "t9"]].concat())
        .fails(2, "no partition is called `t9`")
        .fails(2, "hint: there are Default, t1, t2, t3, t4");
}

#[test]
fn weights_are_learned_and_graphs_are_written() {
    let home = Home::new();
    let file = home.small_tree();
    home.write("received", "0x0200484300000001 4000\n0x0200484300000101 10000\n");
    let arguments = ["--engine", "pftree-wt,no_fallback", "--received", "received"];
    compute(&home, text(&file), &[&arguments[..], &["--dot", "orcs.dot"]].concat(), "out");
    home.weft(&["routes", "verify", text(&file), "out"]).succeeds();
    let graph = std::fs::read_to_string(home.base().with_file_name("orcs.dot")).unwrap();
    assert!(graph.starts_with("digraph "), "{graph}");
}

#[test]
fn tables_are_verified_by_the_lids_that_they_name() {
    let home = Home::new();
    let file = home.write("three.topo", include_str!("../../../../tests/inputs/three-hosts.topo"));
    let folder = home.base().with_file_name("saved");
    std::fs::create_dir_all(&folder).unwrap();
    let dump = include_str!("../../../../tests/inputs/opensm-lfts-other-lids.dump");
    std::fs::write(folder.join("opensm-lfts.dump"), dump).unwrap();
    let done = home.weft(&["routes", "verify", text(&file), "saved"]);
    done.succeeds();
    assert!(done.stderr.contains("the LIDs are those that opensm-lfts.dump names"), "{}", done.stderr);
}
