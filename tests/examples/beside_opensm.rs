//! One fabric, two subnet managers, one run: OpenSM and weft's own in turns, both managing the same ibsim fabric.
//!
//!     cargo build --profile dist && cargo run --profile dist -p weft-judges --example beside_opensm -- FILE [ROUNDS]
//!
//! Each round and manager has an ibsim of its own, so that no one finds what another left behind. Both route by
//! min-hop, and neither writes tables of service levels. OpenSM runs as `opensm -o -r -R minhop --maxsmps W`, at its
//! default window of 4, at 16 and at 64; its time is that of its log, from the first line to SUBNET UP, so what it
//! takes to start is not counted. weft's is from before the process is started to SUBNET UP. The medians are printed,
//! their ratios, and how many MADs each sent: PortXmitPkts of the port that both sit behind, as ibsim counts it.
//!
//! OpenSM also brings up the same fabric as weft emulates it, packed in one process and unshaped, beside itself on ibsim.
//!
//! Beside them stands what ibsim can do at all: NodeInfo of its own node, asked with a window of 1, 4 and 10.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weft_ibsim::{Program, Received};
use weft_judges::{Ibsim, Lab, first_host, output_of, weft_program};
use weft_mgmt::{DirectedPath, Request, SmpRoute, perf};
use weft_topology::Fabric;
use weft_wire::{AttributeId, Method, PerfMad, PortCounters, ServiceLevel};

/// OpenSM's windows: its default, and those at which it may be at its best. Without any limit it hangs ibsim.
const WINDOWS: [u32; 3] = [4, 16, 64];

/// Round trips of each ping.
const PINGS: u32 = 20_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("the first argument is a topology file");
    let rounds: usize = arguments.next().map_or(5, |rounds| rounds.parse().expect("ROUNDS is a number"));
    let text = std::fs::read_to_string(&file).expect("the topology file can be read");
    let fabric = weft_topology::parse(&file, &text).unwrap_or_else(|error| panic!("{error}"));
    let (hosts, switches) = (fabric.hosts().count(), fabric.switches().count());
    println!("{file}: {hosts} hosts, {switches} switches, medians of {rounds}");
    ceiling(&Ibsim::start(&fabric));
    let mut opensm: [Vec<Run>; 3] = Default::default();
    let mut on_weft: [Vec<Run>; 3] = Default::default();
    let mut weft: [Vec<Run>; 2] = Default::default();
    for _ in 0..rounds {
        for (window, runs) in WINDOWS.into_iter().zip(&mut opensm) {
            runs.push(opensm_run(&Ibsim::start(&fabric), &fabric, window));
        }
        for (window, runs) in WINDOWS.into_iter().zip(&mut on_weft) {
            runs.push(opensm_on_weft(&fabric, window));
        }
        for (window, runs) in [4, 10].into_iter().zip(&mut weft) {
            runs.push(weft_run(&Ibsim::start(&fabric), &fabric, window));
        }
    }
    let opensm = opensm.map(median);
    for (window, run) in WINDOWS.into_iter().zip(&opensm) {
        println!("OpenSM, window {window:<3} {:>8.3} s {:>9} MADs", run.seconds, run.mads);
    }
    for ((window, run), beside) in WINDOWS.into_iter().zip(on_weft.map(median)).zip(&opensm) {
        println!(
            "OpenSM on weft, window {window:<3}{:>8.3} s {:>9} MADs; {:.2} times what it takes on ibsim",
            run.seconds,
            run.mads,
            run.seconds / beside.seconds
        );
    }
    let best = opensm.iter().map(|run| run.seconds).fold(f64::INFINITY, f64::min);
    for (window, run) in [4, 10].into_iter().zip(weft.map(median)) {
        let (default, best) = (opensm[0].seconds / run.seconds, best / run.seconds);
        println!(
            "weft sm, window {window:<3}{:>8.3} s {:>9} MADs; {default:.2} times as fast as OpenSM at its default, {best:.2} as at its best",
            run.seconds, run.mads
        );
    }
}

/// One bring-up.
#[derive(Clone, Copy, Debug)]
struct Run {
    seconds: f64,
    mads: u32,
}

fn median(mut runs: Vec<Run>) -> Run {
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    runs[runs.len() / 2]
}

/// How many MADs ibsim answers in a second.
fn ceiling(ibsim: &Ibsim) {
    let patience = Duration::from_secs(5);
    let mut program = Program::connect(ibsim.socket(), "", patience).expect("ibsim takes a program");
    let own = SmpRoute::Directed(DirectedPath::default());
    let ping = Request::get(AttributeId::NodeInfo, 0).by(&own);
    for window in [1, 4, 10] {
        let start = Instant::now();
        for sent in 0..PINGS + window {
            if sent >= window {
                let answer = program.recv(patience).expect("ibsim lives");
                assert!(matches!(answer, Some(Received::Mad(_))), "{answer:?}");
            }
            if sent < PINGS {
                program.send(&ping).expect("ibsim lives");
            }
        }
        println!(
            "ibsim's ceiling, window {window:<3} {:>9.0} MADs/s",
            f64::from(PINGS) / start.elapsed().as_secs_f64()
        );
    }
}

/// The host that both managers sit at.
fn host(fabric: &Fabric) -> &str {
    &first_host(fabric).1.id
}

/// How many packets the host has sent.
fn packets(ibsim: &Ibsim, fabric: &Fabric) -> u32 {
    let patience = Duration::from_secs(5);
    let mut program =
        Program::connect(ibsim.socket(), host(fabric), patience).expect("ibsim takes a program");
    let port = program.port_info();
    let (lid, port_select) = (port.lid, port.local_port_num);
    let asked = PortCounters { port_select, ..PortCounters::default() }.encode();
    let request = perf(lid, ServiceLevel(0), Method::Get, AttributeId::PORT_COUNTERS, &asked);
    program.send(&request).expect("ibsim lives");
    match program.recv(patience).expect("ibsim lives") {
        Some(Received::Mad(answer)) => {
            let data = PerfMad::data.get(&answer.mad.0);
            PortCounters::decode(data.first_chunk().expect("the counters are shorter")).port_xmit_pkts
        }
        other => panic!("no counters: {other:?}"),
    }
}

fn opensm_run(ibsim: &Ibsim, fabric: &Fabric, window: u32) -> Run {
    let seconds = opensm(ibsim.command("opensm", host(fabric)), ibsim.folder(), window);
    Run { seconds, mads: packets(ibsim, fabric) }
}

fn opensm_on_weft(fabric: &Fabric, window: u32) -> Run {
    let lab = Lab::start(fabric, &["--no-sm", "--pack", "all"]);
    let (_, node) = first_host(fabric);
    let seconds = opensm(lab.command("opensm", node, &[]), lab.folder(), window);
    let (port, _) = node.cabled_ports().next().expect("the host has a cable");
    let sent = lab.totals(node.guid, port).expect("the laboratory knows its ports").xmit_packets;
    Run { seconds, mads: u32::try_from(sent).unwrap_or(u32::MAX) }
}

/// How long OpenSM says that it took.
fn opensm(mut command: Command, folder: &Path, window: u32) -> f64 {
    let log = folder.join("timed.log");
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

fn weft_run(ibsim: &Ibsim, fabric: &Fabric, window: u32) -> Run {
    let mut command = Command::new(weft_program());
    command.args(["sm", "--ibsim", ibsim.socket(), "--at", host(fabric), "--once"]);
    command.args(["--max-wire-smps", &window.to_string()]);
    let start = Instant::now();
    let mut child = command
        .env("WEFT_LOG", "error")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped"))
        .read_line(&mut line)
        .expect("it says what became of it");
    let seconds = start.elapsed().as_secs_f64();
    assert!(child.wait().expect("it ends").success() && line.starts_with("SUBNET UP"), "{line}");
    Run { seconds, mads: packets(ibsim, fabric) }
}
