//! Tapes of laboratories from their start, of experiments and of virtual time; and the last minutes, which the hub keeps.

use std::path::{Path, PathBuf};

use common::{Home, text, wait_until};
use serde_json::{Value, json};
use weft_page::tape::Tape;

use crate::common;
use crate::ui::{Page, node, rows};

/// Nothing takes longer, also where other tests run beside it.
const BOUND_MS: u128 = 60_000;

/// A tape that was written.
struct Written(Tape<std::fs::File>);

impl Written {
    fn open(path: &Path) -> Self {
        let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(Tape::open(file).unwrap())
    }

    fn at(&mut self, ms: u64) -> Value {
        self.0.at(ms).unwrap()
    }

    /// The state at the end.
    fn last(&mut self) -> Value {
        self.at(u64::MAX)
    }

    /// The moment of the first mark that says this.
    fn mark(&self, text: &str) -> u64 {
        let span = self.0.span();
        let found = span.marks.iter().find(|mark| mark.text.contains(text));
        found.unwrap_or_else(|| panic!("no {text}: {:?}", span.marks)).at_ms
    }
}

fn is_listed(home: &Home) -> bool {
    let processes = home.json(&["ps", "--json"]);
    let kind = |line: &&Value| line["kind"] == "tape" && line["state"] == "running";
    processes.as_array().unwrap().iter().filter(kind).count() == 1
}

#[test]
fn a_laboratory_is_taped_from_its_start_to_its_end() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree), "--tape", "no/such/day.tape"]).fails(2, "cannot write");
    home.weft(&["up", text(&tree), "--tape", "tapes/"]).succeeds();
    assert!(is_listed(&home));
    home.weft(&["fault", "kill", "switch-2-1"]).succeeds();
    home.weft(&["fault", "restart", "switch-2-1"]).succeeds();
    wait_until("all hosts are reached again", || home.weft(&["check"]).code == 0);
    home.weft(&["down"]).succeeds();
    let path = home.folder().join("tapes/default.tape");
    let mut tape = Written::open(&path);
    // It began before all was up, and saw what was done.
    let up = tape.mark("laboratory has started");
    assert!(tape.0.span().from_ms <= up, "{:?}", tape.0.span());
    let killed = tape.mark("kill");
    let states: Vec<String> = (killed..killed + 5000)
        .step_by(50)
        .map(|ms| node(&tape.at(ms), "switch-2-1")["state"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(states.contains(&"down".to_owned()) && states.contains(&"up".to_owned()), "{states:?}");
    let last = tape.last();
    assert_eq!((&last["may_act"], &last["summary"]["hosts"]), (&Value::Null, &json!(4)));
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.ends_with(b"\n"), "it was ended in order");
    // Another laboratory gets another file; one that is full ends, and the laboratory goes on.
    home.weft(&["up", text(&tree), "--tape", "tapes/", "--tape-megabytes", "1"]).succeeds();
    assert!(home.folder().join("tapes/default-2.tape").exists());
    home.weft(&["down"]).succeeds();
}

/// Marks of a short tape are on it, of a ring as of any fabric.
#[test]
fn a_short_tape_of_a_ring_has_marks() {
    let home = Home::new();
    let ring = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies/ring-4.topo");
    home.weft(&["up", text(&ring), "--tape", "ring.tape"]).succeeds();
    let links = home.json(&["links", "--json"]);
    let end = &links[0]["a"];
    let port = format!("{}:{}", end["id"].as_str().unwrap(), end["port"]);
    home.weft(&["fault", "link-down", &port]).succeeds();
    // It takes longer than an event takes to be shown.
    home.weft(&["check"]);
    home.weft(&["down"]).succeeds();
    let tape = Written::open(&home.folder().join("ring.tape"));
    let kinds: Vec<String> = tape.0.span().marks.into_iter().map(|mark| mark.kind).collect();
    assert!(
        kinds.contains(&"lab-started".to_owned()) && kinds.contains(&"fault-set".to_owned()),
        "{kinds:?}"
    );
}

/// Who looks at a laboratory for the first time can go back to before that.
#[test]
fn a_page_goes_back_to_before_it_was_opened() {
    let home = Home::new();
    let tree = home.small_tree();
    let markup = "<script>alert(1)</script>";
    home.write("partitions.conf", &format!("{markup}=0x1 : ALL=full;\nDefault=0x7fff : ALL=full;\n"));
    home.weft(&["up", text(&tree), "--partitions", "partitions.conf"]).succeeds();
    // Its minutes begin with the first state that it has seen.
    wait_until("the hub keeps states", || home.weft(&["ask", "hub", "past"]).stdout.contains(r#"\"key\""#));
    home.weft(&["fault", "kill", "switch-2-1"]).succeeds();
    wait_until("the hub keeps that", || home.weft(&["ask", "hub", "past"]).stdout.contains(r#"\"down\""#));
    home.weft(&["fault", "restart", "switch-2-1"]).succeeds();
    wait_until("all hosts are reached again", || home.weft(&["check"]).code == 0);
    let opened = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let opened = u64::try_from(opened.as_millis()).unwrap();
    let page = Page::open(&home, &[]);
    let mut watch = page.watch();
    watch.until("all is shown", |state| {
        state["summary"]["hosts"] == 4 && state["managers"]["sm"]["state"] == "master"
    });
    let state = &watch.state;
    // What it shows of partitions and of the manager's window.
    assert_eq!(
        (&state["partitions"]["0x0001"]["name"], &state["partitions"]["0x0001"]["members"]),
        (&json!(markup), &json!(8))
    );
    let sm = &state["managers"]["sm"];
    let window = sm["window"].as_u64().unwrap();
    assert!(
        sm["in_flight"].as_u64().unwrap_or(0) <= window
            && sm["text"].as_str().unwrap().contains("last sweep"),
        "{sm}"
    );
    let killed_of = |span: &Value| {
        let marks = span["marks"].as_array().unwrap();
        let killed = marks.iter().find(|mark| mark["text"].as_str().unwrap().contains("kill"));
        killed.map(|mark| mark["at_ms"].as_u64().unwrap())
    };
    wait_until("the hub's minutes are there", || killed_of(&page.get("/api/tape")).is_some());
    let span = page.get("/api/tape");
    let killed = killed_of(&span).unwrap();
    assert!(killed < opened && span["live"] == true, "{span}");
    let was_down = (killed..opened).step_by(50).any(|ms| {
        let state = page.get(&format!("/api/tape/at?ms={ms}"));
        node(&state["key"], "switch-2-1")["state"] == "down"
    });
    assert!(was_down, "{span}");
    page.close();
}

/// What a cut would do is what it does: blocks that switches count, and flows that take another way.
#[test]
fn what_a_cut_would_do_is_what_it_does() {
    let home = Home::new();
    let tree = home.small_tree();
    home.weft(&["up", text(&tree)]).succeeds();
    home.weft(&["flow", "start", "host-0", "host-3", "--name", "far"]).succeeds();
    home.weft(&["flow", "start", "host-0", "host-1", "--name", "near"]).succeeds();
    let way = home.json(&["trace", "host-0", "host-3", "--json"]);
    let hop = &way["hops"][1];
    let port = format!("{}:{}", hop["node"].as_str().unwrap(), hop["out_port"]);
    let told = home.json(&["links", "--if-cut", &port, "--json"]);
    assert_eq!(
        (&told["flows"], &told["cut_off"], &told["anew"]),
        (&json!(["far"]), &json!([]), &Value::Null)
    );
    let writes = || -> u64 {
        let processes = home.json(&["ps", "--json"]);
        let devices =
            processes.as_array().unwrap().iter().flat_map(|line| line["devices"].as_array().unwrap().clone());
        devices.filter_map(|device| device["lft_writes"].as_u64()).sum()
    };
    let before = writes();
    home.weft(&["fault", "link-down", &port]).succeeds();
    let blocks = told["blocks"].as_u64().unwrap();
    assert!(blocks > 0, "{told}");
    wait_until("it is repaired", || writes() >= before + blocks);
    // Until it knows whether a sweep is due.
    home.weft(&["check"]);
    assert_eq!(writes(), before + blocks);
    home.weft(&["links", "--if-cut", &port]).fails(2, "there is no link at");
    let host = home.weft(&["links", "--if-cut", "host-1:1"]);
    assert!(host.succeeds().stdout.contains("1 node with 1 LID would be cut off: host-1"), "{}", host.stdout);
}

fn experiment(stem: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../experiments/{stem}.toml"))
}

/// The parking lot of `dftree-1`: 12.9 Gb/s of host 5 are shared as a half and two quarters (the file's closed form), and the hot spot and
/// who makes way for it are shown.
#[test]
fn a_run_in_virtual_time_is_taped_by_its_own_clock() {
    let home = Home::new();
    let file = experiment("dftree-1");
    let run = ["run", text(&file), "--virtual", "--only", "pm.mode=on", "--tape", "run.tape"];
    home.weft(&run).succeeds();
    let mut tape = Written::open(&home.folder().join("run.tape"));
    let span = tape.0.span();
    assert_eq!((span.from_ms, span.to_ms), (0, 48_000), "the plan's clock");
    let state = tape.at(30_000);
    assert_eq!(
        (&state["clock"], &state["shaped"], &state["may_act"]),
        (&json!("virtual"), &json!(true), &Value::Null)
    );
    for (flow, gbps) in [("1-5", 3.23), ("3-5", 3.23), ("6-5", 6.45)] {
        let shown = &state["flows"][flow];
        let seen = shown["mbps"].as_f64().unwrap() * 8.0 / 1e3;
        assert!((seen - gbps).abs() < gbps * 0.05, "{flow}: {seen} Gb/s: {shown}");
        let way = shown["path"].as_array().unwrap();
        // The last cable carries all three.
        let (id, side) = (way.last().unwrap()[0].as_str().unwrap(), &way.last().unwrap()[1]);
        let load = &state["cables"][id][if side == 0 { "ab" } else { "ba" }];
        let all = load["mbps"].as_f64().unwrap() * 8.0 / 1e3;
        assert!((all - 12.9).abs() < 0.7, "{all} Gb/s: {load}");
    }
    assert!(state["hot"]["host-5"].is_object(), "{}", state["hot"]);
    assert_eq!(state["flows"]["2-3"]["state"], "running");
    let early = tape.at(5000);
    assert_eq!((&early["flows"]["1-5"]["state"], &early["hot"]), (&json!("starting"), &json!({})));
    let hot = tape.mark("hot spot: host-5");
    assert!((13_000..19_000).contains(&hot), "{hot}");
    // Several runs want a folder.
    home.weft(&["run", text(&file), "--virtual", "--tape", "run.tape"]).fails(2, "2 runs have a tape each");
}

/// On processes the clock is the machine's, and packets are those of the run. How fast they are is no matter here.
#[test]
fn a_live_run_is_taped_by_the_wall_clock() {
    let home = Home::new();
    let file = home.write(
        "short.toml",
        "title = \"two hosts\"\nduration = 4\n[fabric]\ntopology = \"tree.topo\"\n[engine]\nchain = \"minhop\"\n\
         [flow.far]\nfrom = \"host-0\"\nto = \"host-3\"\nstart = 0.5\n[window]\nsteady = [1, 4]\n",
    );
    home.small_tree();
    let run = home.weft(&["run", text(&file), "--allow-busy", "--tape", "run.tape"]);
    // One that woke up too late is taped as well.
    assert!(run.code == 0 || run.stderr.contains("machine too busy"), "{}", run.stderr);
    let mut tape = Written::open(&home.folder().join("run.tape"));
    let span = tape.0.span();
    let now_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let ago = now_ms - u128::from(span.to_ms);
    assert!(ago < BOUND_MS && span.to_ms - span.from_ms >= 3000, "{span:?}, {ago} ms ago");
    let seen = (span.from_ms..=span.to_ms).step_by(100).map(|ms| tape.at(ms));
    let flowed = seen.filter(|state| {
        let far = &state["flows"]["far"];
        far["state"] == "running" && far["mbps"].as_f64().is_some_and(|mbps| mbps > 0.0)
    });
    let shown: Vec<Value> = flowed.collect();
    assert!(!shown.is_empty(), "{span:?}: {}", tape.last()["flows"]);
    assert_eq!((&shown[0]["clock"], &shown[0]["may_act"]), (&json!("wall"), &Value::Null));
}

#[test]
fn a_start_in_virtual_time_is_taped_in_microseconds() {
    let home = Home::new();
    let tree = home.small_tree();
    let told = home.json(&["sim", text(&tree), "--tape", "sim.tape", "--json"]);
    let mut tape = Written::open(&home.folder().join("sim.tape"));
    let last = tape.last();
    let up_us = told["up_at"].as_u64().unwrap() / 1000;
    assert_eq!((&last["clock"], last["at_ms"].as_u64().unwrap()), (&json!("virtual-us"), up_us));
    assert!(rows(&last, "cables").all(|(_, cable)| cable["state"] == "active"), "{last}");
    assert!(rows(&last, "nodes").all(|(_, node)| node["lids"].is_array()), "{last}");
    let first = tape.at(0);
    assert!(rows(&first, "cables").all(|(_, cable)| cable["state"] != "active"), "{first}");
    // Each phase of the sweep is a moment to jump to.
    for phase in ["discover", "program", "activate", "verify"] {
        tape.mark(&format!("sweep phase {phase}"));
    }
    // The same start without a tape takes as long and sends as much.
    let plain = home.json(&["sim", text(&tree), "--json"]);
    assert_eq!((&plain["up_at"], &plain["statistics"]), (&told["up_at"], &told["statistics"]));
}
