//! Questions to subnet administration, of many clients at once: their rate and their answers' times.
//!
//! Clients attach to hosts' agents as any program does, so that a question goes from host to manager hop by hop, whoever the manager is:
//! weft's and OpenSM are compared on the same fabric with the same clients. Each client keeps a number of questions outstanding, or asks
//! once for all paths of its port, as a host does after a reroute.

mod client;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::signals::{Interruption, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use weft_lab::survey::{Session, survey};
use weft_lab::view::Lab;
use weft_sm::Surveyed;
use weft_wire::{Guid, Lid};

use super::quiet::{self, Watch};
use super::{placement, smp::Quantiles};
use client::{Asker, Job, Tally};

/// The stack of a client's thread.
const STACK_BYTES: usize = 512 << 10;
/// How often it is looked whether a client has ended.
const LOOK: Duration = Duration::from_millis(20);

weft_wire::named! {
    /// What clients ask for.
    #[derive(Default)]
    pub enum Record {
        /// One path after the other: Get(PathRecord) by SGID and DGID.
        #[default]
        Path = "path",
        /// All paths of the client's port once: GetTable(PathRecord) by SGID, in segments.
        Paths = "paths",
        /// One node after the other: Get(NodeRecord) by port GUID.
        Node = "node",
    }
}

weft_wire::named! {
    /// Whether a client keeps path records (thesis 003, lines 548–554).
    #[derive(Default)]
    pub enum Cache {
        /// Each connection asks.
        #[default]
        Off = "off",
        /// The first connection to a peer asks.
        On = "on",
    }
}

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Clients, dealt over the hosts in order.
    pub clients: u32,
    /// Questions of one client that are outstanding at most.
    pub window: u32,
    /// What they ask for.
    pub record: Record,
    /// Whether they keep what they hear.
    pub cache: Cache,
    /// Seconds that they ask for. Questions for all paths are asked once.
    pub seconds: u64,
    /// Give numbers even if something else used the processor meanwhile.
    pub allow_busy: bool,
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Processor, cores and kernel.
    pub machine: String,
    /// The laboratory's name.
    pub lab: String,
    /// The subnet's manager: `weft` or `opensm`.
    pub manager: &'static str,
    /// Hosts of the fabric.
    pub hosts: usize,
    /// Agent processes.
    pub agents: usize,
    /// What was asked for.
    pub record: Record,
    /// Clients.
    pub clients: u32,
    /// Questions of one client that were outstanding at most.
    pub window: u32,
    /// Whether clients kept what they heard.
    pub cache: Cache,
    /// Seconds from the first question to the last answer.
    pub took_s: f64,
    /// Connections, each of which needs a path.
    pub lookups: u64,
    /// Questions answered with records.
    pub answers: u64,
    /// Answers in a second.
    pub answers_per_s: f64,
    /// Records in all answers.
    pub records: u64,
    /// From a question to its answer: with `paths` to the whole table, pauses after BUSY included.
    pub answer_us: Quantiles,
    /// The longest of these, in microseconds.
    pub longest_us: f64,
    /// Answers that said BUSY.
    pub busy: u64,
    /// Questions asked again because no answer came.
    pub repeated: u64,
    /// Questions refused, or not answered at all.
    pub failed: u64,
    /// What else ran meanwhile, in shares of one core.
    pub others_used: f64,
}

/// Measures the laboratory's subnet manager.
///
/// # Errors
/// Where no host's agent runs, no manager answers, or something else used the processor meanwhile.
pub fn run(folder: &LabFolder, options: &Options) -> anyhow::Result<Report> {
    let lab = Lab::load(folder)?;
    let interruption = Interruption::watch(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
    placement::free(folder)?;
    let jobs = jobs(&lab, options)?;
    let watch = Watch::start(folder)?;
    let tally = ask(jobs, &interruption)?;
    let others_used = watch.others_used(Duration::ZERO)?;
    quiet::judge(others_used, options.allow_busy)?;
    if tally.samples.is_empty() && tally.failed > 0 {
        return Err(Failure::new("subnet administration answers no question")
            .hint("`weft status` says whether a subnet manager is in charge"));
    }
    let Tally { samples, lookups, records, busy, repeated, failed, began, ended } = tally;
    let took_s = began.zip(ended).map_or(0.0, |(began, ended)| ended.duration_since(began).as_secs_f64());
    let answers = samples.len() as u64;
    Ok(Report {
        machine: quiet::machine(),
        lab: folder.name().to_owned(),
        manager: if lab.record.opensms.is_empty() { "weft" } else { "opensm" },
        hosts: lab.fabric.hosts().count(),
        agents: lab.record.agents.len(),
        record: options.record,
        clients: options.clients,
        window: options.window,
        cache: options.cache,
        took_s,
        lookups,
        answers,
        answers_per_s: if took_s > 0.0 { answers as f64 / took_s } else { 0.0 },
        records,
        longest_us: samples.iter().max().map_or(0.0, |longest| longest.as_secs_f64() * 1e6),
        answer_us: Quantiles::of(samples),
        busy,
        repeated,
        failed,
        others_used,
    })
}

/// A port of a host, as the survey has it.
struct Seat {
    node: Guid,
    port: weft_wire::PortNum,
    guid: Guid,
    sm_lid: Lid,
    sm_sl: weft_wire::ServiceLevel,
}

fn seats(live: &Surveyed) -> Vec<Seat> {
    let mut seats = Vec::new();
    for (index, node) in live.fabric.iter().filter(|(_, node)| !node.is_switch()) {
        let Some(port) = node.attach_port() else { continue };
        let info = live.ports.get(index.index()).and_then(|ports| ports.get(usize::from(port.0)));
        let Some(info) = info.copied().flatten().filter(|info| info.master_sm_lid.is_unicast()) else {
            continue;
        };
        let guid = node.port(port).map_or(node.guid, |port| port.guid);
        seats.push(Seat {
            node: node.guid,
            port,
            guid,
            sm_lid: info.master_sm_lid,
            sm_sl: info.master_sm_sl,
        });
    }
    seats
}

/// The clients, attached.
fn jobs(lab: &Lab, options: &Options) -> anyhow::Result<Vec<Job>> {
    let first = lab.fabric.hosts().find_map(|(_, host)| {
        let port = host.attach_port()?;
        Session::attach(&lab.folder, &lab.record, host.guid, port).ok()
    });
    let no_agent = || Failure::new("no host's agent is running").hint("`weft ps` lists the processes");
    let live = survey(&mut first.ok_or_else(no_agent)?, true, |_| Ok(()))?;
    let seats = seats(&live);
    if seats.len() < 2 {
        return Err(Failure::new("fewer than two hosts have a subnet manager to ask")
            .hint("`weft status` says whether the subnet is up"));
    }
    let guids: Vec<Guid> = seats.iter().map(|seat| seat.guid).collect();
    let jobs = (0..options.clients as usize).map(|nth| {
        let seat = &seats[nth % seats.len()];
        let session = Session::attach(&lab.folder, &lab.record, seat.node, seat.port)?;
        // Each begins with another peer, so that not all ask for the same at a time.
        let others = guids.iter().cycle().skip(nth + 1).take(guids.len());
        let peers = others.copied().filter(|guid| *guid != seat.guid).collect();
        let asker = Asker { own: seat.guid, sm_lid: seat.sm_lid, sm_sl: seat.sm_sl };
        Ok(Job { session, asker, peers, options: *options, nth: nth as u32 })
    });
    jobs.collect()
}

/// Has all clients ask, beginning at one moment.
fn ask(jobs: Vec<Job>, interruption: &Interruption) -> anyhow::Result<Tally> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A client whose thread is there waits for this, and ends where the others cannot be started.
        let mut starts = Vec::with_capacity(jobs.len());
        let mut threads = Vec::with_capacity(jobs.len());
        for job in jobs {
            let (start, started) = mpsc::channel();
            let over = &over;
            let builder =
                std::thread::Builder::new().name(format!("client {}", job.nth)).stack_size(STACK_BYTES);
            let run = move || match (started.recv(), job.options.record) {
                (Err(_), _) => Ok(Tally::default()),
                (Ok(()), Record::Paths) => job.all_paths(over),
                (Ok(()), Record::Path | Record::Node) => job.one_by_one(over),
            };
            threads.push(builder.spawn_scoped(scope, run).context("cannot start a client's thread")?);
            starts.push(start);
        }
        for start in &starts {
            // A thread waits for nothing else.
            start.send(()).context("a client's thread has ended")?;
        }
        let mut all = Tally::default();
        for thread in threads {
            while !thread.is_finished() {
                over.fetch_or(interruption.check().is_err(), Ordering::Relaxed);
                std::thread::park_timeout(LOOK);
            }
            let tally = thread.join().map_err(|_| anyhow::anyhow!("a client's thread has panicked"))?;
            all.add(tally?);
        }
        interruption.check()?;
        Ok(all)
    })
}
