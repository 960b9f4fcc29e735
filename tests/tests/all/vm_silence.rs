//! The silence of a machine that moves, on processes, for hosts at its old place and at others,
//! beside what `weft vm migrate` says of it. `weft check` looks all the while.
//!
//! `WEFT_ROUNDS` says how many moves (20 if not said), `WEFT_SEED` draws other ones. The long tier runs it.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::Value;
use weft_judges::moves::{Functions, Lids, Machines, Manager, askers, cabled_hosts};
use weft_judges::{Lab, small_broken_three_levels, x5};
use weft_topology::{Fabric, NodeIndex};

/// For how long no one may hear anything longer than was said, as processes wait for their turn on a processor. Where a look at it
/// shows a longer wait within the round, the round says nothing.
const NOISE: Duration = Duration::from_millis(150);

/// Longer than the managers are silent while they have something to do.
const REST: Duration = Duration::from_secs(2);

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// The longest that a thread without work waited for a processor, until it is stopped.
fn longest_wait(stop: &AtomicBool) -> Duration {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    let (mut longest, step) = (Duration::ZERO, Duration::from_millis(2));
    while !stop.load(Ordering::Relaxed) {
        let before = Instant::now();
        let _ = never.recv_timeout(step);
        longest = longest.max(before.elapsed().saturating_sub(step));
    }
    longest
}

/// A look by `weft check`.
struct Checked {
    began: Instant,
    problems: Vec<String>,
    under_way: u64,
}

/// Looks while machines move until it is stopped: by turns at once, and once nothing is under way.
fn check(lab: &Lab, stop: &AtomicBool) -> Vec<Checked> {
    let mut all = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let (began, wait) = (Instant::now(), if all.len() % 2 == 0 { "0" } else { "30" });
        let found = lab.weft(&["check", "--json", "--wait", wait]).output().expect("weft can be started");
        let said: Value = serde_json::from_slice(&found.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&found.stderr)));
        let problems = said["problems"].as_array().expect("a list").iter().map(ToString::to_string).collect();
        all.push(Checked {
            began,
            problems,
            under_way: said["packets_under_way"].as_u64().expect("a count"),
        });
    }
    all
}

fn span(value: &Value) -> Duration {
    Duration::from_nanos(value.as_u64().unwrap_or(0))
}

/// Moves a machine again and again. No host hears nothing of it for longer than was said, and its LID stays.
fn rounds(what: &str, fabric: &Fabric, engine: &str) {
    let (rounds, seed) = (number("WEFT_ROUNDS", 20), number("WEFT_SEED", 1));
    let _ = writeln!(std::io::stderr(), "{what}: WEFT_SEED={seed} WEFT_ROUNDS={rounds}");
    let mut random = Pcg64::seed_from_u64(seed);
    let hosts: Vec<NodeIndex> = cabled_hosts(fabric).map(|(host, _)| host).collect();
    let mut at = hosts[random.random_range(0..hosts.len())];
    let functions = Functions { each: 2, lids: Lids::Dynamic };
    let options = ["--pack", "leaf", "--engine", engine];
    let machines = Machines::start(fabric, Manager::Weft, functions, &options, at, REST);
    let (lid, [mut late, mut spoilt, mut under_way]) = (machines.lid(), [0_u64; 3]);
    for round in 0..rounds {
        let to = loop {
            let to = hosts[random.random_range(0..hosts.len())];
            if to != at {
                break to;
            }
        };
        let stop_copy = ["0", "200", "2000"][random.random_range(0..3_usize)];
        let peers = askers(fabric, (at, to), |count| random.random_range(0..count));
        let peers: Vec<NodeIndex> = peers.into_iter().map(|(_, host)| host).collect();
        let (lab, stop, watch_stops) = (machines.lab(), AtomicBool::new(false), AtomicBool::new(false));
        let ((report, silent), (checks, served), waited) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| longest_wait(&watch_stops));
            let checks = scope.spawn(|| check(lab, &stop));
            let after = |report: &Value| span(&report["silent_after_ns"]) + Duration::from_secs(1);
            let moved = machines.migrate_seen(to, &peers, &["--stop-copy", stop_copy], after);
            let served = Instant::now() - Duration::from_secs(1);
            stop.store(true, Ordering::Relaxed);
            let checked = checks.join().expect("check goes on");
            watch_stops.store(true, Ordering::Relaxed);
            (moved, (checked, served), watch.join().expect("it watches"))
        });
        let named = report["peers"].as_array().map(Vec::as_slice).unwrap_or_default();
        late += u64::from(report["counts"]["late"] != 0 || report["counts"]["detours"] != 0);
        under_way += checks.iter().map(|check| check.under_way).sum::<u64>();
        let text = format!(
            "{what}, seed {seed}, round {round}, {stop_copy} ms: {silent:?} by {:?}, waits {waited:?}: {report}",
            peers.iter().map(|host| &fabric.node(*host).description).collect::<Vec<_>>()
        );
        let _ = writeln!(
            std::io::stderr(),
            "{what}, round {round}: stop-copy {stop_copy} ms, silent {silent:?}, said {:?} and {:?}, busy {waited:?}",
            span(&report["downtime_ns"]),
            span(&report["runs_again_ns"])
        );
        // One that waited longer for a processor than is allowed for is no result.
        if waited > NOISE {
            spoilt += 1;
        } else {
            for (host, silent) in peers.iter().zip(&silent) {
                let is_named = named.iter().any(|peer| peer["host"] == fabric.label(*host).as_str());
                let said = span(&report[if is_named { "downtime_ns" } else { "runs_again_ns" }]);
                assert!(
                    *silent <= said + NOISE,
                    "{} heard nothing for {silent:?}: {text}",
                    fabric.node(*host).id
                );
            }
        }
        // Once the last host is served nothing of the machine is a problem.
        let settled = checks.iter().filter(|check| check.began > served + NOISE);
        let wrong: Vec<&String> = settled.flat_map(|check| &check.problems).collect();
        assert!(wrong.is_empty(), "`check` after the move: {wrong:?}; {text}");
        assert_eq!(machines.lid(), lid, "{text}");
        machines.wait_until_up();
        at = to;
    }
    let _ = writeln!(
        std::io::stderr(),
        "{what}: {late} of {rounds} moves with late rows or detours, {spoilt} spoilt, {under_way} packets under way"
    );
    assert!(spoilt * 2 <= rounds, "the machine was too busy for most rounds: {spoilt} of {rounds}");
}

#[test]
fn on_x5_hosts_wait_no_longer_than_is_said() {
    rounds("X5", &x5(), "updn");
}

#[test]
fn on_three_damaged_levels_hosts_wait_no_longer_than_is_said() {
    rounds("three damaged levels", &small_broken_three_levels(), "ftree");
}
