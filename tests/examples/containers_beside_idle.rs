//! Start of a laboratory in containers, beside as many containers that do nothing.
//!
//! ```text
//! cargo build --profile dist --workspace --bins --example containers_beside_idle
//! target/dist/examples/containers_beside_idle [TURNS]
//! ```
//!
//! The X5 cluster with a container per device, and a tree of 648 hosts and 54 switches with a container per leaf, on Docker's
//! engine with Compose 5. A turn starts the containers that do nothing and then the laboratory, each alone: from the start of
//! `docker compose up --detach` until it ends, and until the subnet manager's event that the subnet is up with all its nodes. Of TURNS (3)
//! it prints all times and the medians' ratio. Ends with 1 if a ratio is above its bound: 1.15 for X5, 1.25 for the tree.
//!
//! The kernel's table of neighbours must have room for all pairs of containers that talk (docs/operations.md): it refuses to begin
//! where `net.ipv4.neigh.default.gc_thresh3` is below 4096.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weft_judges::{Containers, Image, x5};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, xgft};

/// What the tree needs, with room to spare.
const NEIGHBOURS: u32 = 4096;

/// A fabric, how its devices are packed, and how much longer it may take.
struct Case {
    name: &'static str,
    fabric: Fabric,
    pack: &'static str,
    most: f64,
}

fn main() -> ExitCode {
    let room = std::fs::read_to_string("/proc/sys/net/ipv4/neigh/default/gc_thresh3").unwrap_or_default();
    if room.trim().parse::<u32>().is_ok_and(|room| room < NEIGHBOURS) {
        eprintln!(
            "the kernel keeps {} neighbours\nhint: sysctl -w net.ipv4.neigh.default.gc_thresh3={NEIGHBOURS}",
            room.trim()
        );
        return ExitCode::FAILURE;
    }
    let turns = std::env::args().nth(1).map_or(3, |turns| turns.parse().expect("TURNS is a number"));
    let tree = xgft(&[18, 36], &[1, 18], &GenerateOptions::default()).expect("the parameters are sound");
    let cases = [
        Case { name: "x5", fabric: x5(), pack: "1", most: 1.15 },
        Case { name: "tree", fabric: tree, pack: "leaf", most: 1.25 },
    ];
    let (image, idle) = (Image::make(), Image::idle());
    println!("| fabric | devices | containers | turn | idle | SUBNET UP | ratio |");
    println!("|---|---|---|---|---|---|---|");
    let mut good = true;
    for case in &cases {
        let ratio = beside(case, &image, &idle, turns);
        println!("{}: {ratio:.3} by the medians, at most {} wanted", case.name, case.most);
        good &= ratio <= case.most;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs all turns and tells how many times as long the laboratory takes.
fn beside(case: &Case, image: &Image, idle: &Image, turns: usize) -> f64 {
    let folder = tempfile::tempdir().expect("a scratch folder can be made");
    let file = folder.path().join("fabric.topo");
    std::fs::write(&file, case.fabric.write_ibnetdiscover()).expect("the scratch folder can be written");
    let (mut alone, mut whole) = (Vec::new(), Vec::new());
    for turn in 1..=turns {
        let (still, up, containers) = one_turn(case, image, idle, &file);
        let devices = case.fabric.nodes().len();
        println!(
            "| {} | {devices} | {containers} | {turn} | {still:.2} s | {up:.2} s | {:.3} |",
            case.name,
            up / still
        );
        alone.push(still);
        whole.push(up);
    }
    median(&mut whole) / median(&mut alone)
}

/// Seconds of the containers that do nothing, seconds of the laboratory, and how many containers each has.
fn one_turn(case: &Case, image: &Image, idle: &Image, file: &Path) -> (f64, f64, usize) {
    let lab = Containers::planned(image, case.name, file, &["--pack", case.pack]);
    let still = lab.idle(idle);
    let start = ["up", "--detach", "--quiet-pull"];
    let began = Instant::now();
    still.compose(&start);
    let alone = began.elapsed().as_secs_f64();
    drop(still);
    let began = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    lab.compose(&start);
    let nodes = case.fabric.nodes().len() as u64;
    lab.wait_for_subnet(case.name, nodes);
    let up = Duration::from_nanos(lab.subnet_up_at(nodes).as_nanos()).saturating_sub(began).as_secs_f64();
    (alone, up, lab.services().len())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
