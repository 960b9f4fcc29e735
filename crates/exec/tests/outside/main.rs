//! Programs that route, and programs that do everything else.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use weft_exec::programs;
use weft_routing::{Chain, EngineOptions, Input, Lids, Outside, Routing};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, xgft};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python/examples/minhop.py");

/// A tree of four switches and four hosts, and what programs say.
struct Bench {
    folder: tempfile::TempDir,
    fabric: Fabric,
    lids: Lids,
    options: EngineOptions,
    said: Arc<Mutex<Vec<String>>>,
    programs: Arc<dyn Outside>,
}

impl Bench {
    fn new() -> Self {
        let fabric = xgft(&[2, 2], &[1, 2], &GenerateOptions::default()).unwrap();
        let lids = Lids::in_guid_order(&fabric, 1).unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let programs = programs(move |_, line| heard.lock().unwrap().push(line.to_owned()));
        let options = EngineOptions { exec_timeout_ms: 20_000, ..EngineOptions::default() };
        Self { folder: tempfile::tempdir().unwrap(), fabric, lids, options, said, programs }
    }

    fn route(&self, command: &str) -> Result<Routing, String> {
        let input = Input { fabric: &self.fabric, lids: &self.lids, options: &self.options };
        self.programs.route(command, &input).map_err(|failed| failed.to_string())
    }

    /// What comes of a script.
    fn script(&self, text: &str) -> Result<Routing, String> {
        let path = self.folder.path().join("engine");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        self.route(path.to_str().unwrap())
    }

    #[track_caller]
    fn refuses(&self, script: &str, words: &str) -> String {
        let refused = self.script(&format!("#!/bin/sh\n{script}\n")).unwrap_err();
        assert!(refused.contains(words), "{script}: {refused}");
        refused
    }
}

#[test]
fn the_example_is_proved() {
    let bench = Bench::new();
    let mut chain: Chain = format!("exec:{EXAMPLE},no_fallback").parse().unwrap();
    chain.set_outside(Arc::clone(&bench.programs));
    let routing = chain.route(&bench.fabric, &bench.lids, &bench.options).unwrap();
    assert!(routing.report.engine.starts_with("exec:/"), "{:?}", routing.report);
    assert_eq!((routing.report.lanes, routing.report.fallbacks.len()), (1, 0));
}

#[test]
fn a_program_that_fails_is_refused_in_words() {
    let bench = Bench::new();
    bench.refuses(
        "echo a trace >&2; echo boom >&2; exit 3",
        "it ended with exit code 3; its last words: boom",
    );
    assert_eq!(*bench.said.lock().unwrap(), ["a trace", "boom"]);
    bench.refuses("kill -SEGV $$", "it was ended by signal 11");
    bench.refuses("true", "it wrote nothing to standard output");
    bench.refuses("echo hello world", "is not a JSON document of tables: expected value at line 1 column 1");
    bench.refuses("echo hello world", "it begins \"hello world");
    bench.refuses(r#"echo '{"table": {}}'"#, "unknown field `table`");
    bench.refuses(r#"echo '{"refusal": "switch-1-0 has no way up"}'"#, "switch-1-0 has no way up");
    let refused = bench.route("/none/mine.py --fast").unwrap_err();
    assert!(refused.starts_with("it cannot be started; its last words: "), "{refused}");
    assert!(refused.contains("/none/mine.py"), "{refused}");
}

#[test]
fn a_program_that_takes_too_much_is_killed() {
    let mut bench = Bench::new();
    bench.options.exec_memory_bytes = 128 << 20;
    let python = "#!/usr/bin/env python3\nall = bytearray(2 << 30)\n";
    let refused = bench.script(python).unwrap_err();
    assert!(refused.contains("its last words: MemoryError; --exec-memory limits it to 128 MiB"), "{refused}");
    bench.refuses("yes nonsense", "it wrote more than 128 MiB to standard output and was killed");
    bench.options.exec_timeout_ms = 300;
    bench.refuses("exec sleep 600", "it had not ended after 0.3 s and was killed; --exec-timeout");
    bench.refuses("cat >/dev/null; sleep 600 & sleep 600", "had not ended");
}

#[test]
fn no_process_outlives_its_answer() {
    let bench = Bench::new();
    for script in [
        "sleep 600 & echo '{}'",
        "sleep 600 </dev/null >/dev/null 2>&1 & echo '{}'",
        "setsid sleep 600 </dev/null >/dev/null 2>&1 & sleep 0.2; echo '{}'",
    ] {
        let refused = bench.refuses(script, "it left 1 process behind, which was killed: sleep (");
        let (_, pid) = refused.split_once("sleep (").unwrap();
        let pid = pid.trim_end_matches(')');
        let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }
    // One that ends soon after is waited for.
    assert!(bench.script("#!/bin/sh\nsleep 0.05 & echo '{}'\n").is_ok());
}

#[test]
fn wrong_tables_are_named() {
    let bench = Bench::new();
    let switch = |nth: usize| bench.fabric.switches().nth(nth).unwrap().1.guid.0;
    let host = bench.fabric.hosts().next().unwrap().1.guid.0;
    let lid = bench.lids.iter().next().unwrap().base.0;
    let table = |guid: u64, lid: u16, port: u8| {
        format!(
            r#"cat <<END
{{"tables": {{"0x{guid:x}": {{"{lid}": {port}}}}}}}
END"#
        )
    };
    let name = bench.fabric.label(bench.fabric.switches().next().unwrap().0);
    bench
        .refuses(&table(switch(0), 4711, 1), &format!("the table of {name} has LID 4711, which no port has"));
    let ports = format!("the table of {name} sends LID {lid} by port 99; its ports are 0 to ");
    bench.refuses(&table(switch(0), lid, 99), &ports);
    bench.refuses(&table(host, lid, 1), "which is host-0 and no switch");
    bench.refuses(&table(0xdead, lid, 1), "0xdead, and no node of the fabric has this GUID");
    bench.refuses(r#"echo '{"tables": {"S1": {}}}'"#, "\"S1\", which is not a GUID");
    bench.refuses(r#"echo '{"tables": {"0x1": {"70000": 1}}}'"#, "is not a JSON document of tables");
    bench.refuses(r#"echo '{"levels": {"4711": {}}}'"#, "`levels` has LID 4711");
    bench.refuses(&format!(r#"echo '{{"levels": {{"{lid}": {{"{lid}": 16}}}}}}'"#), "levels are 0 to 15");
    bench.refuses(r#"echo '{"lanes": [0, 16]}'"#, "`lanes` has at most 16 lanes");
}

#[test]
fn levels_and_lanes_reach_the_routing() {
    let bench = Bench::new();
    let lids: Vec<u16> = bench.lids.iter().map(|lids| lids.base.0).collect();
    let [a, b, c] = [lids[0], lids[1], lids[2]];
    let text = format!(
        r#"{{"levels": {{"{a}": {{"{b}": 1, "{c}": 2}}, "{b}": {{"{a}": 2}}}}, "lanes": [0, 3, 1]}}"#
    );
    let routing = bench.script(&format!("#!/bin/sh\necho '{text}'\n")).unwrap();
    let level = |from: u16, to: u16| routing.levels.of(weft_wire::Lid(from), weft_wire::Lid(to)).0;
    assert_eq!([level(a, b), level(a, c), level(b, a), level(b, c)], [1, 2, 2, 0]);
    assert_eq!(routing.report.lanes, 4);
}

#[test]
fn the_end_of_standard_error_is_kept() {
    let bench = Bench::new();
    bench.refuses("i=0; while [ $i -lt 2000 ]; do echo 'a line of a hundred letters or so, that is a line that says nothing to anyone who reads it' >&2; i=$((i+1)); done; echo last >&2; exit 1", "its last words: last");
    let said = bench.said.lock().unwrap();
    assert!(said[0].ends_with("bytes before this are left out"), "{}", said[0]);
    let kept: usize = said[1..].iter().map(|line| line.len() + 1).sum();
    assert!((60_000..=65_536).contains(&kept), "{kept}");
}
