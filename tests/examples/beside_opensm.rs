//! One fabric, two subnet managers, one run: OpenSM on ibsim beside weft's own on a packed laboratory.
//!
//!     cargo build --release && cargo run --release -p weft-judges --example beside_opensm -- FILE [ROUNDS]
//!
//! OpenSM's time is from the first line of its log to SUBNET UP; weft's is the manager's part, from its first SMP to
//! SUBNET UP, as `weft status` tells it. They take turns, and the medians and their ratios are printed.

use std::path::Path;
use std::process::Command;

use weft_judges::{Ibsim, output_of};
use weft_topology::Fabric;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("the first argument is a topology file");
    let rounds: usize = arguments.next().map_or(5, |rounds| rounds.parse().expect("ROUNDS is a number"));
    let text = std::fs::read_to_string(&file).expect("the topology file can be read");
    let fabric = weft_topology::parse(&file, &text).unwrap_or_else(|error| panic!("{error}"));
    let ibsim = Ibsim::start(&fabric);
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        times[0].push(opensm(&ibsim, &fabric, 4));
        times[1].push(opensm(&ibsim, &fabric, 64));
        times[2].push(weft(&file));
    }
    let [default, wide, weft] = times.map(median);
    println!(
        "{file}: {} hosts, {} switches, median of {rounds}",
        fabric.hosts().count(),
        fabric.switches().count()
    );
    println!("OpenSM on ibsim, window 4     {default:.3} s");
    println!("OpenSM on ibsim, window 64    {wide:.3} s");
    println!(
        "weft sm, packed, window 4     {weft:.3} s, {:.2} and {:.2} of the two",
        weft / default,
        weft / wide
    );
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// OpenSM leaves its state in the simulator, so each round begins with a relinked fabric: a fresh ibsim would do the
/// same at a higher price, and OpenSM's `-r` makes it assign all LIDs anew.
fn opensm(ibsim: &Ibsim, fabric: &Fabric, window: u32) -> f64 {
    let host = fabric.hosts().next().expect("the fabric has a host").1.id.clone();
    let log = ibsim.folder().join("timed.log");
    let _ = std::fs::remove_file(&log);
    let mut command = ibsim.command("opensm", &host);
    command.args(["-o", "-r", "-R", "minhop", "--maxsmps", &window.to_string(), "-f"]).arg(&log);
    output_of(&mut command);
    let text = std::fs::read_to_string(&log).expect("OpenSM wrote its log");
    let first = text.lines().find_map(seconds).expect("the log has a first line");
    let up = text.lines().filter(|line| line.contains("SUBNET UP")).find_map(seconds);
    up.expect("OpenSM says SUBNET UP") - first
}

/// The time of day of a log line: `Nov 20 10:47:25 590492 [….`
fn seconds(line: &str) -> Option<f64> {
    let mut words = line.split_whitespace().skip(2);
    let clock: Vec<f64> = words.next()?.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [hours, minutes, seconds] = clock[..] else { return None };
    let micros: f64 = words.next()?.parse().ok()?;
    Some(hours * 3600.0 + minutes * 60.0 + seconds + micros / 1e6)
}

fn weft(file: &str) -> f64 {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/weft");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        output_of(command.args(["--lab", "beside-opensm"]).args(arguments))
    };
    run(&["up", "--pack", "all", file]);
    let status = run(&["status"]);
    run(&["down"]);
    let line = status.lines().find_map(|line| line.strip_prefix("last heavy sweep: "));
    let took = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    took.unwrap_or_else(|| panic!("no time in {status}"))
}
