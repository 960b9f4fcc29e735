//! Routing time and memory of weft's engines beside OpenSM's.
//!
//! ```text
//! cargo run --profile dist -p weft-judges --example routing_speed -- [--without-opensm] [FABRIC:ENGINE …]
//! ```
//!
//! A FABRIC is its number of hosts, 324, 648, 5832 or 11664 for the full trees of switches with 36 ports, or `irregular`
//! for 5000 hosts on 300 switches cabled at random; an ENGINE is one of weft's, or `verify` (everything, on the
//! eight lanes of vftree) or `bisect` (1000 runs over what ftree makes). Without any, the rows of docs/benchmarks.md. OpenSM's time is that of its log, from "building
//! routing" to "tables configured", so that neither discovery nor writing counts; its memory is its peak, sampled
//! while it runs. weft's is the best of five, in a process of its own each, with two threads.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weft_judges::{Ibsim, first_host, seconds_of};
use weft_routing::quality::{Participants, Paths, Pattern, SimulateOptions, hosts, simulate};
use weft_routing::{Engine, EngineOptions, Expectations, Input, Lids, verify_routing};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, RandomFabric, random, rlft, xgft};

const ROWS: &[&str] = &[
    "11664:ftree",
    "11664:minhop",
    "11664:updn",
    "11664:dfsssp",
    "5832:dfsssp",
    "irregular:dfsssp",
    "5832:lash",
    "11664:verify",
    "11664:bisect",
];
/// The engines that OpenSM has too.
const SHARED: [&str; 7] = ["minhop", "updn", "dor", "ftree", "lash", "sssp", "dfsssp"];
const ROUNDS: usize = 5;
/// How often the memory of a running OpenSM is looked at.
const SAMPLE: Duration = Duration::from_millis(50);

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [child, row] = &arguments[..]
        && child == "--child"
    {
        return measure(row);
    }
    let beside = arguments.first().is_none_or(|first| first != "--without-opensm");
    if !beside {
        arguments.remove(0);
    }
    let named: Vec<&str> = arguments.iter().map(String::as_str).collect();
    println!("| fabric | engine | weft | peak | OpenSM | peak | ratio |\n|---|---|---|---|---|---|---|");
    for row in if named.is_empty() { ROWS } else { &named } {
        let (fabric, engine) = row.split_once(':').expect("FABRIC:ENGINE");
        let ours = (0..ROUNDS).map(|_| child(row)).reduce(Cost::best).expect("some rounds");
        let theirs = (beside && SHARED.contains(&engine)).then(|| opensm(&fabric_of(fabric), engine));
        let (seconds, memory, ratio) = theirs.map_or(Default::default(), |theirs| {
            let ratio = format!("{:.0}", theirs.seconds / ours.seconds);
            (format!("{:.1} s", theirs.seconds), format!("{} MiB", theirs.memory), ratio)
        });
        let Cost { seconds: own, memory: peak } = ours;
        println!("| {fabric} | {engine} | {own:.3} s | {peak} MiB | {seconds} | {memory} | {ratio} |");
    }
}

/// What something takes.
#[derive(Clone, Copy, Debug)]
struct Cost {
    seconds: f64,
    /// The peak, in MiB.
    memory: u64,
}

impl Cost {
    fn best(self, other: Self) -> Self {
        Self { seconds: self.seconds.min(other.seconds), memory: self.memory.max(other.memory) }
    }
}

fn fabric_of(name: &str) -> Fabric {
    let options = GenerateOptions::default();
    let fabric = match name {
        "324" => xgft(&[18, 18], &[1, 18], &options),
        "648" => xgft(&[18, 36], &[1, 18], &options),
        "5832" => xgft(&[18, 18, 18], &[1, 18, 18], &options),
        "11664" => rlft(36, 3, &options),
        "irregular" => {
            let parameters =
                RandomFabric { switches: 300, hosts: 5000, extra_cables: 3000, parallel_cables: 0 };
            random(&parameters, 1, &GenerateOptions { radix: Some(48), ..options })
        }
        _ => panic!("no fabric is called {name}; there are 324, 648, 5832, 11664 and irregular"),
    };
    fabric.expect("the parameters are sound")
}

/// Runs one row once, and says in two words how long that took and how much memory the process has used at most.
fn measure(row: &str) {
    let (fabric, task) = row.split_once(':').expect("FABRIC:ENGINE");
    let fabric = fabric_of(fabric);
    let lids = Lids::in_guid_order(&fabric, 0).expect("there are enough LIDs");
    let options = EngineOptions { threads: 2, ..EngineOptions::default() };
    let input = Input { fabric: &fabric, lids: &lids, options: &options };
    let name = match task {
        "verify" => "vftree",
        "bisect" => "ftree",
        engine => engine,
    };
    let engine = Engine::by_name(name).expect("weft has this engine");
    let begun = Instant::now();
    let routing = engine.route(&input).unwrap_or_else(|refusal| panic!("{refusal}"));
    let mut took = begun.elapsed();
    if task == "verify" {
        let begun = Instant::now();
        let expected = Expectations { tree: true, ..Expectations::default() };
        let verdict = verify_routing(&fabric, &lids, &routing, &expected);
        assert!(verdict.is_sound() && verdict.is_deadlock_free(), "{verdict}");
        took = begun.elapsed();
    } else if task == "bisect" {
        let begun = Instant::now();
        let paths = Paths::new(&fabric, &lids, &routing.routes);
        let participants = Participants::all(hosts(&fabric, &lids));
        let options = SimulateOptions { runs: 1000, seed: 1, ..SimulateOptions::default() };
        simulate(&paths, &participants, Pattern::Bisect, &options).expect("every host has a LID");
        took = begun.elapsed();
    }
    println!("{} {}", took.as_secs_f64(), peak("self").expect("a process has memory"));
}

/// Runs one row in a process of its own, so that its peak is its own.
fn child(row: &str) -> Cost {
    let own = std::env::current_exe().expect("a program knows itself");
    let output = Command::new(own).args(["--child", row]).output().expect("it can be started again");
    let said = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [seconds, memory] = numbers[..] else {
        panic!("{row}: {}", String::from_utf8_lossy(&output.stderr));
    };
    Cost { seconds, memory: memory as u64 }
}

/// The most memory that a process has used so far, in MiB; `None` when it has ended.
fn peak(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

fn opensm(fabric: &Fabric, engine: &str) -> Cost {
    let ibsim = Ibsim::start(fabric);
    let (_, host) = first_host(fabric);
    let log = ibsim.folder().join("opensm.log");
    let mut command = ibsim.command("opensm", &host.id);
    command.args(["-o", "-Q", "--maxsmps", "64", "-D", "0x7", "-R", engine, "-f"]).arg(&log);
    let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("OpenSM is installed");
    let memory = wait(process);
    let text = String::from_utf8_lossy(&std::fs::read(&log).expect("it writes a log")).into_owned();
    assert!(text.contains(&format!("{engine} tables configured")), "OpenSM does not route this by {engine}");
    Cost { seconds: seconds_of(&text), memory }
}

/// Waits for the end of a process; gives its peak of memory in MiB.
fn wait(mut process: Child) -> u64 {
    let id = process.id().to_string();
    let pid = rustix::process::Pid::from_child(&process);
    let end = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).expect("it runs");
    let mut memory = 0;
    loop {
        memory = memory.max(peak(&id).unwrap_or(0));
        let timeout = Timespec::try_from(SAMPLE).expect("it fits");
        let ended = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&timeout)).expect("it can be polled");
        if ended > 0 {
            process.wait().expect("it has ended");
            return memory;
        }
    }
}
