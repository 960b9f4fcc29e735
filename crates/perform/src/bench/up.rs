//! Time of a fabric to SUBNET UP, its memory, and its cost when nothing happens.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Pid;
use serde::Serialize;
use weft_bundle::failure::Interrupted;
use weft_bundle::folder::{Base, LabFolder};
use weft_bundle::place::groups::Pack;
use weft_lab::events::remembered;
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_mgmt::Window;
use weft_process::{readable, utc_now};

use super::own_lab::OwnLab;
use super::placement::processes;
use super::quiet::{self, Household};

/// The laboratory that is started and taken down.
const LAB: &str = "bench-up";

/// The laboratories to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Their topology file.
    pub file: PathBuf,
    /// Devices per agent process.
    pub pack: Pack,
    /// Maximum outstanding SMPs; the subnet manager's own choice where it is not said.
    pub max_wire_smps: Option<Window>,
    /// Number of laboratories, one after the other.
    pub runs: u32,
    /// How long to watch each idle; zero skips this.
    pub idle_seconds: u64,
    /// Cores to keep busy meanwhile.
    pub burn_cores: u32,
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Processor, cores and kernel.
    pub machine: String,
    /// The topology file.
    pub file: String,
    /// The arguments of `weft up` beside the file.
    pub arguments: Vec<String>,
    /// The laboratories.
    pub runs: Vec<Run>,
}

/// One laboratory, from `up` to `down`.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Its processes.
    pub processes: usize,
    /// From the start of `weft up` to SUBNET UP.
    pub subnet_up_s: f64,
    /// The subnet manager's part: from its first SMP to SUBNET UP.
    pub sm_s: f64,
    /// SMPs sent until then.
    pub smps: u64,
    /// Memory of all processes, shared pages divided among those that share them.
    pub pss_mib: f64,
    /// Of one core, with nothing to do.
    pub idle_cores: Option<f64>,
    /// Links that went down while there was nothing to do.
    pub flaps: Option<usize>,
    /// What else ran meanwhile, in shares of one core.
    pub others_used: f64,
}

/// Starts laboratories with the front end's program, which must be `weft` or have its verbs.
///
/// # Errors
/// Where one does not come up, or something else used the processor meanwhile.
pub fn run(base: &Base, options: &Options) -> anyhow::Result<Report> {
    let mut report = Report {
        machine: quiet::machine(),
        file: options.file.display().to_string(),
        arguments: up_arguments(options),
        runs: Vec::new(),
    };
    let mut stop = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    for _ in 0..options.runs {
        let run = one(base, options, &mut stop)?;
        quiet::judge(run.others_used, false)?;
        report.runs.push(run);
    }
    Ok(report)
}

/// Arguments of `weft up` besides the file.
fn up_arguments(options: &Options) -> Vec<String> {
    let mut arguments = vec!["--pack".to_owned(), options.pack.to_string()];
    if let Some(window) = options.max_wire_smps {
        arguments.extend(["--max-wire-smps".to_owned(), window.to_string()]);
    }
    arguments
}

fn one(base: &Base, options: &Options, stop: &mut Signals) -> anyhow::Result<Run> {
    let lab = OwnLab::start(base, LAB, &up_arguments(options), &options.file)?;
    let (folder, up) = (&lab.folder, lab.up);
    let idle = (options.idle_seconds > 0).then(|| idle(options, folder, stop)).transpose()?;
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

/// What the laboratory does while no one asks anything of it, with cores taken away when that is wanted.
fn idle(options: &Options, folder: &LabFolder, stop: &mut Signals) -> anyhow::Result<Idle> {
    let burning = Arc::new(AtomicBool::new(true));
    for _ in 0..options.burn_cores {
        let burning = burning.clone();
        std::thread::spawn(move || while burning.load(Ordering::Relaxed) {});
    }
    let (watch, since) = (Household::watch(Some(folder))?, utc_now());
    let interrupted = readable(&*stop, Some(Duration::from_secs(options.idle_seconds)))?;
    let used = watch.used(folder)?;
    burning.store(false, Ordering::Relaxed);
    if interrupted && stop.arrived() {
        return Err(Interrupted::NO_RESULT.into());
    }
    // Asked when all is measured, for an answer costs the laboratory something.
    let (downs, _) = remembered(folder, &["link-down"])?;
    Ok(Idle {
        cores: used.lab.as_secs_f64() / used.took.as_secs_f64(),
        flaps: downs.told.iter().filter(|told| told.moment >= since).count(),
        others_used: used.others(Duration::ZERO),
    })
}

/// A process's proportional set size.
fn pss_kib(pid: Pid) -> u64 {
    let text =
        std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero())).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
