//! Growth of routing's cost with the tables written, from 324 to 11664 hosts.
//!
//! ```text
//! cargo run --release -p weft-routing --example growth -- [--svg FILE] [--rounds N] [ENGINE …]
//! ```
//!
//! Every engine routes full trees of switches with 36 ports, N (5) times or more in a process of its own with two threads;
//! the best time and the peak of memory count, which includes the fabric. Prints a Markdown table, with the exponent by which
//! time grows with the tables from the smallest fabric to the largest: 1 is as the tables grow. With `--svg`, plots it.
//! An engine that refuses a fabric, or takes longer than ten minutes for it, is listed, and gets no larger one.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an example measures time and prints what it finds"
)]

use std::fmt::Write;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use weft_routing::{ENGINES, Engine, EngineOptions, Input, Lids};
use weft_topology::Fabric;
use weft_topology::generate::{GenerateOptions, xgft};

/// The trees: hosts, and children and parents by level.
const TREES: [(u32, &[u32], &[u32]); 4] = [
    (324, &[18, 18], &[1, 18]),
    (648, &[18, 36], &[1, 18]),
    (5832, &[18, 18, 18], &[1, 18, 18]),
    (11664, &[18, 18, 36], &[1, 18, 18]),
];

/// The limit for one engine on one tree, in seconds.
const LIMIT: &str = "600";

/// How long rounds are repeated at least, as short ones are easily disturbed.
const SHORT: Duration = Duration::from_millis(300);

/// What an engine takes for a tree.
#[derive(Clone, Copy, Debug)]
struct Point {
    hosts: u32,
    table_bytes: f64,
    seconds: f64,
    peak_mib: u64,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (mut svg, mut rounds, mut engines) = (None, "5".to_owned(), Vec::new());
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_default();
        match argument.as_str() {
            "--svg" => svg = Some(value()),
            "--rounds" => rounds = value(),
            "--child" => return measure(&value(), &value(), &value()),
            name => engines.push(name.to_owned()),
        }
    }
    if engines.is_empty() {
        engines = ENGINES.iter().map(|engine| engine.name.to_owned()).collect();
    }
    let mut curves = Vec::new();
    println!("| engine | hosts | tables, kB | time, ms | peak, MiB | exponent |\n|---|---|---|---|---|---|");
    for engine in engines {
        let points = curve(&engine, &rounds);
        if !points.is_empty() {
            curves.push((engine, points));
        }
    }
    let Some(path) = svg else { return ExitCode::SUCCESS };
    match std::fs::write(&path, plot(&curves)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures one engine on all trees and prints its lines.
fn curve(engine: &str, rounds: &str) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for (hosts, ..) in TREES {
        match child(engine, hosts, rounds) {
            Ok(point) => {
                let exponent = points.first().map(|first| {
                    (point.seconds / first.seconds).ln() / (point.table_bytes / first.table_bytes).ln()
                });
                println!(
                    "| {engine} | {hosts} | {:.0} | {:.2} | {} | {} |",
                    point.table_bytes / 1000.0,
                    point.seconds * 1000.0,
                    point.peak_mib,
                    exponent.map_or_else(|| "–".to_owned(), |exponent| format!("{exponent:.2}")),
                );
                points.push(point);
            }
            Err(reason) => {
                println!("| {engine} | {hosts} | – | {reason} | – | – |");
                break;
            }
        }
    }
    points
}

/// Runs one engine on one tree in a process of its own, so that its peak is its own.
fn child(engine: &str, hosts: u32, rounds: &str) -> Result<Point, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("timeout");
    command.arg(LIMIT).arg(own).args(["--child", engine, &hosts.to_string(), rounds]);
    let output = command.output().map_err(|error| format!("timeout: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [table_bytes, seconds, peak_mib] => {
            Ok(Point { hosts, table_bytes, seconds, peak_mib: peak_mib as u64 })
        }
        _ if output.status.code() == Some(124) => Err(format!("more than {LIMIT} s")),
        _ => Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ")),
    }
}

fn tree(hosts: &str) -> Option<Fabric> {
    let (_, children, parents) = TREES.into_iter().find(|(count, ..)| count.to_string() == hosts)?;
    xgft(children, parents, &GenerateOptions::default()).ok()
}

/// Says in three numbers how many bytes the tables have, how many seconds the best round took, and how many MiB of
/// memory the process has used at most.
fn measure(engine: &str, hosts: &str, rounds: &str) -> ExitCode {
    let (Some(engine), Some(fabric)) = (Engine::by_name(engine), tree(hosts)) else {
        eprintln!("no engine is called {engine}, or no tree has {hosts} hosts");
        return ExitCode::FAILURE;
    };
    let Ok(lids) = Lids::in_guid_order(&fabric, 0) else { return ExitCode::FAILURE };
    let options = EngineOptions { threads: 2, ..EngineOptions::default() };
    let (mut best, mut bytes) = (f64::INFINITY, 0);
    let (mut left, started) = (rounds.parse().unwrap_or(1).max(1), Instant::now());
    while left > 0 || started.elapsed() < SHORT {
        left = u32::saturating_sub(left, 1);
        let begun = Instant::now();
        match engine.route(&Input { fabric: &fabric, lids: &lids, options: &options }) {
            Ok(routing) => {
                best = best.min(begun.elapsed().as_secs_f64());
                let tables = routing.routes.tables.iter().filter(|table| !table.is_empty());
                bytes = tables.map(|table| usize::from(table.top().0) + 1).sum();
            }
            Err(refusal) => {
                eprintln!("{refusal}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{bytes} {best} {}", peak().unwrap_or(0));
    ExitCode::SUCCESS
}

/// The most memory that this process has used so far, in MiB.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

/// Colours of paper and text, for light and dark.
const STYLE: &str = "<style>text{font:13px system-ui,sans-serif;fill:#222}.paper{fill:#fff}.grid{stroke:#ddd}.ideal{stroke:#555}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.paper{fill:#161b22}.grid{stroke:#333}.ideal{stroke:#aaa}}</style>";
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 480.0;
/// Left, top, right and bottom of the plot in the picture.
const FRAME: [f64; 4] = [70.0, 20.0, 600.0, 430.0];
/// By Okabe and Ito: distinct also for people who confuse red and green.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b8a900"];
/// How curves differ for those who see no colours.
const DASHES: [&str; 5] = ["none", "8 4", "4 3", "10 3 2 3", "12 3 3 3 3 3"];

/// Two axes in powers of ten.
struct Axes {
    x: [f64; 2],
    y: [f64; 2],
}

impl Axes {
    fn new(curves: &[(String, Vec<Point>)]) -> Self {
        let all = || curves.iter().flat_map(|(_, points)| points);
        let around = |values: &mut dyn Iterator<Item = f64>| {
            let (least, most) =
                values.fold((f64::INFINITY, 0f64), |(a, b), value| (a.min(value), b.max(value)));
            [least.log10().floor(), most.log10().ceil()]
        };
        Self {
            x: around(&mut all().map(|point| point.table_bytes)),
            y: around(&mut all().map(|point| point.seconds)),
        }
    }

    fn at(&self, bytes: f64, seconds: f64) -> (f64, f64) {
        let [left, top, right, bottom] = FRAME;
        let share = |value: f64, [low, high]: [f64; 2]| (value.log10() - low) / (high - low).max(1.0);
        (left + share(bytes, self.x) * (right - left), bottom - share(seconds, self.y) * (bottom - top))
    }
}

/// Time against bytes of tables, both in powers of ten; dotted what grows as the tables do.
fn plot(curves: &[(String, Vec<Point>)]) -> String {
    let axes = Axes::new(curves);
    let [left, top, right, bottom] = FRAME;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>Time of routing against the size of the tables</title>\n<desc>{}</desc>\n{STYLE}\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n",
        curves.iter().map(|(engine, _)| engine.as_str()).collect::<Vec<_>>().join(", ")
    );
    for power in axes.x[0] as i32..=axes.x[1] as i32 {
        let (x, _) = axes.at(10f64.powi(power), 1.0);
        let _ = writeln!(svg, "<path d=\"M{x:.1} {top}V{bottom}\" class=\"grid\"/>");
        let label = bottom + 22.0;
        let _ =
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{label}\" text-anchor=\"middle\">{}</text>", bytes(power));
    }
    for power in axes.y[0] as i32..=axes.y[1] as i32 {
        let (_, y) = axes.at(1.0, 10f64.powi(power));
        let _ = writeln!(svg, "<path d=\"M{left} {y:.1}H{right}\" class=\"grid\"/>");
        let (x, label) = (left - 8.0, y + 4.0);
        let _ =
            writeln!(svg, "<text x=\"{x}\" y=\"{label:.1}\" text-anchor=\"end\">{}</text>", seconds(power));
    }
    let (middle, below) = (f64::midpoint(left, right), HEIGHT - 10.0);
    let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">bytes of tables</text>");
    for (number, (engine, points)) in curves.iter().enumerate() {
        let (colour, dash) = (COLOURS[number % COLOURS.len()], DASHES[number % DASHES.len()]);
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        let ideal = first.seconds * last.table_bytes / first.table_bytes;
        let (from, to) = (axes.at(first.table_bytes, first.seconds), axes.at(last.table_bytes, ideal));
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"{colour}\" stroke-dasharray=\"1 4\" opacity=\"0.8\"/>",
            from.0, from.1, to.0, to.1
        );
        let mut line = String::new();
        for point in points {
            let (x, y) = axes.at(point.table_bytes, point.seconds);
            let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { "M" } else { "L" });
            let hosts = point.hosts;
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{engine}, {hosts} hosts: \
                 {:.2} ms</title></circle>",
                point.seconds * 1000.0
            );
        }
        let look = format!("stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"");
        let _ = writeln!(svg, "<path d=\"{line}\" fill=\"none\" {look}/>");
        let (x, y) = (right + 14.0, top + 14.0 + 20.0 * number as f64);
        let _ = writeln!(svg, "<path d=\"M{x} {:.1}h36\" {look}/>", y - 4.0);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{y}\">{engine}</text>", x + 42.0);
    }
    let (x, y) = (right + 14.0, top + 14.0 + 20.0 * curves.len() as f64);
    let _ = writeln!(svg, "<path d=\"M{x} {:.1}h36\" class=\"ideal\" stroke-dasharray=\"1 4\"/>", y - 4.0);
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{y}\">as tables grow</text>", x + 42.0);
    svg.push_str("</svg>\n");
    svg
}

fn bytes(power: i32) -> String {
    match power {
        ..3 => format!("{} B", 10u64.pow(power.max(0) as u32)),
        3..6 => format!("{} kB", 10u64.pow(power as u32 - 3)),
        _ => format!("{} MB", 10u64.pow(power as u32 - 6)),
    }
}

fn seconds(power: i32) -> String {
    match power {
        0.. => format!("{} s", 10u64.pow(power as u32)),
        -3..0 => format!("{} ms", 10u64.pow((power + 3) as u32)),
        _ => format!("{} µs", 10u64.pow((power + 6).max(0) as u32)),
    }
}
