//! `weft bench up`: how long a fabric takes to SUBNET UP, what it weighs, and what it costs when nothing happens.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde::Serialize;
use weft_bundle::failure::Interrupted;
use weft_bundle::folder::LabFolder;
use weft_lab::events::remembered;
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_process::{readable, utc_now};

use super::own_lab::OwnLab;
use super::placement::processes;
use super::quiet;
use crate::cli::BenchUpArgs;
use crate::output::{Table, print, print_json};

/// The laboratory that is started and taken down.
const LAB: &str = "bench-up";

#[derive(Debug, Serialize)]
struct Report {
    machine: String,
    file: String,
    arguments: Vec<String>,
    runs: Vec<Run>,
}

/// One laboratory, from `up` to `down`.
#[derive(Debug, Serialize)]
struct Run {
    processes: usize,
    /// From the start of `weft up` to SUBNET UP.
    subnet_up_s: f64,
    /// The subnet manager's part: from its first SMP to SUBNET UP.
    sm_s: f64,
    smps: u64,
    /// What all processes weigh, shared pages divided among those that share them.
    pss_mib: f64,
    /// Of one core, with nothing to do.
    idle_cores: Option<f64>,
    /// Links that went down while there was nothing to do.
    flaps: Option<usize>,
    /// What else ran meanwhile, in shares of one core.
    others_used: f64,
}

pub(in crate::verbs) fn run(args: &BenchUpArgs) -> anyhow::Result<ExitCode> {
    let mut report = Report {
        machine: quiet::machine(),
        file: args.file.display().to_string(),
        arguments: up_arguments(args),
        runs: Vec::new(),
    };
    let mut stop = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    for _ in 0..args.runs {
        let run = one(args, &mut stop)?;
        quiet::judge(run.others_used)?;
        report.runs.push(run);
    }
    if args.json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What `weft up` is told besides the file.
fn up_arguments(args: &BenchUpArgs) -> Vec<String> {
    let mut arguments = vec!["--pack".to_owned(), args.pack.to_string()];
    if let Some(window) = args.max_wire_smps {
        arguments.extend(["--max-wire-smps".to_owned(), window.to_string()]);
    }
    arguments
}

fn one(args: &BenchUpArgs, stop: &mut Signals) -> anyhow::Result<Run> {
    let lab = OwnLab::start(LAB, &up_arguments(args), &args.file)?;
    let (folder, up) = (&lab.folder, lab.up);
    let idle = (args.idle_seconds > 0).then(|| idle(args, folder, stop)).transpose()?;
    Ok(Run {
        processes: processes(folder)?.len(),
        subnet_up_s: up.subnet_up_s,
        sm_s: up.sm_s,
        smps: up.smps,
        pss_mib: processes(folder)?.into_iter().map(pss_kib).sum::<u64>() as f64 / 1024.0,
        idle_cores: idle.as_ref().map(|idle| idle.cores),
        flaps: idle.as_ref().map(|idle| idle.flaps),
        others_used: idle.map_or(up.others_used, |idle| idle.others_used.max(up.others_used)),
    })
}

struct Idle {
    cores: f64,
    flaps: usize,
    others_used: f64,
}

/// What the laboratory does while nobody asks anything of it, with cores taken away when that is wanted.
fn idle(args: &BenchUpArgs, folder: &LabFolder, stop: &mut Signals) -> anyhow::Result<Idle> {
    let burning = Arc::new(AtomicBool::new(true));
    for _ in 0..args.burn_cores {
        let burning = burning.clone();
        std::thread::spawn(move || while burning.load(Ordering::Relaxed) {});
    }
    let (before, all, own) = (quiet::lab_used(folder)?, quiet::all_used()?, quiet::own_and_children_used());
    let (since, began) = (utc_now(), Instant::now());
    let interrupted = readable(&*stop, Some(Duration::from_secs(args.idle_seconds)))?;
    let (took, after) = (began.elapsed(), quiet::lab_used(folder)?);
    let used = quiet::all_used()?.saturating_sub(all);
    let ours = quiet::own_and_children_used().saturating_sub(own);
    burning.store(false, Ordering::Relaxed);
    if interrupted && stop.arrived() {
        return Err(Interrupted::NO_RESULT.into());
    }
    // Asked when all is measured, for an answer costs the laboratory something.
    let (downs, _) = remembered(folder, &["link-down"])?;
    let lab: Duration = after
        .iter()
        .map(|(pid, used)| used.saturating_sub(before.get(pid).copied().unwrap_or_default()))
        .sum();
    Ok(Idle {
        cores: lab.as_secs_f64() / took.as_secs_f64(),
        flaps: downs.told.iter().filter(|told| told.moment >= since).count(),
        others_used: quiet::share_of_others(used, lab + ours, took),
    })
}

/// A process's proportional set size.
fn pss_kib(pid: Pid) -> u64 {
    let text =
        std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero())).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn text(report: &Report) -> String {
    let mut table = Table::new(&[
        "run",
        "processes",
        "SUBNET UP s",
        "SM's part s",
        "SMPs",
        "PSS MiB",
        "idle cores",
        "flaps",
        "others %",
    ]);
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    for (number, run) in (1..).zip(&report.runs) {
        table.row([
            format!("{number}"),
            run.processes.to_string(),
            format!("{:.3}", run.subnet_up_s),
            format!("{:.3}", run.sm_s),
            run.smps.to_string(),
            format!("{:.0}", run.pss_mib),
            or_dash(run.idle_cores.map(|cores| format!("{cores:.2}"))),
            or_dash(run.flaps.map(|flaps| flaps.to_string())),
            format!("{:.1}", run.others_used * 100.0),
        ]);
    }
    format!("{}\n{} {}\n\n{table}", report.machine, report.file, report.arguments.join(" "))
}
