//! SMP round trips in a laboratory that runs, beside those of bare QUIC datagrams.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;
use weft_bundle::folder::LabFolder;
use weft_lab::view::Lab;
use weft_mgmt::{DirectedPath, Request, SmpRoute};
use weft_process::lock;
use weft_sm::Surveyed;
use weft_wire::{AddressedMad, AttributeId, Guid, Lid, TransactionId};

use super::attached::{Bench, Options, WINDOWS};
use super::bare_quic::BareQuic;
use super::placement::{Placed, Placement};
use super::quiet::{self, Watch};

/// In how many turns the round trips that are compared are taken.
const TURNS: u32 = 20;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Processor, cores and kernel.
    pub machine: String,
    /// The laboratory's name.
    pub lab: String,
    /// The host that the bench is attached to.
    pub attached_to: String,
    /// Round trips per measurement.
    pub round_trips: u32,
    /// Round trips beside bare QUIC, all on one core and then on two.
    pub compared: Vec<Compared>,
    /// By distance, all processes on one core.
    pub hops: Vec<HopRow>,
    /// By window, placed by the scheduler.
    pub windows: Vec<WindowRow>,
    /// What else ran meanwhile, in shares of one core.
    pub others_used: f64,
}

/// The round trips that are compared, all placed alike.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Where the far end runs.
    pub placement: Placement,
    /// A bare QUIC datagram of a packet's size between two processes.
    pub bare_quic_us: Quantiles,
    /// From the attached program to its own HCA's agent and back.
    pub own_agent_us: Quantiles,
    /// From the attached program to the neighbouring agent and back.
    pub neighbour_us: Quantiles,
    /// From the HCA's agent to the neighbouring agent and back: the difference of the two before.
    pub agent_to_agent_us: f64,
    /// That to bare QUIC.
    pub agent_to_agent_ratio: f64,
    /// From the attached program to bare QUIC.
    pub attached_ratio: f64,
}

/// Microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Quantiles {
    pub(super) fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let at = |share: f64| {
            let index = ((samples.len() as f64 * share) as usize).min(samples.len().saturating_sub(1));
            samples.get(index).map_or(0.0, |took| took.as_secs_f64() * 1e6)
        };
        Self { p50: at(0.5), p99: at(0.99) }
    }
}

/// Round trips to a node at one distance.
#[derive(Clone, Debug, Serialize)]
pub struct HopRow {
    /// The distance.
    pub hops: usize,
    /// The node's description.
    pub target: String,
    /// By directed route.
    pub directed_us: Quantiles,
    /// By LID, if it has one and is not the own node.
    pub lid_routed_us: Option<Quantiles>,
}

/// SMPs with one window.
#[derive(Clone, Debug, Serialize)]
pub struct WindowRow {
    /// SMPs outstanding at once.
    pub window: u32,
    /// SMPs per second to the neighbour.
    pub neighbour_per_s: f64,
    /// SMPs per second to the node that is farthest.
    pub farthest_per_s: f64,
}

/// A node to send to.
struct Target {
    name: String,
    guid: Guid,
    path: DirectedPath,
    lid: Option<Lid>,
}

/// Measures round trips, beside those of a bare QUIC datagram to another process of the front end's program, which must have weft's verb
/// `bench-echo`.
///
/// # Errors
/// Where no host's agent runs, an SMP is not answered, or something else used the processor meanwhile.
pub fn run(folder: &LabFolder, options: &Options) -> anyhow::Result<Report> {
    let (lab, mut bench, live) = Bench::attach(folder)?;
    let watch = Watch::start(folder)?;
    let targets = targets(&live);
    let own = targets.get(&0).context("the fabric has no node")?;
    let neighbour = targets.get(&1).context("the host has no neighbour")?;
    let program = folder.front().program().context("cannot tell which program this is")?;
    let mut quic = BareQuic::start(&program)?;
    let far = [process_of(&lab, neighbour.guid)?, quic.pid()?];
    let mut compared = Vec::new();
    for placement in [Placement::OneCore, Placement::TwoCores] {
        if let Some(_placed) = Placed::place(folder, &far, placement)? {
            compared.push(compare(&mut bench, &mut quic, [own, neighbour], placement, options.count)?);
        }
    }
    let hops = {
        let _placed = Placed::place(folder, &far, Placement::OneCore)?;
        curve(&mut bench, &targets, options.count)?
    };
    let farthest = targets.values().next_back().unwrap_or(neighbour);
    let mut windows = Vec::new();
    for window in WINDOWS {
        windows.push(WindowRow {
            window,
            neighbour_per_s: pipelined(&mut bench, neighbour, window, options.count)?,
            farthest_per_s: pipelined(&mut bench, farthest, window, options.count)?,
        });
    }
    let others_used = watch.others_used(quic.used())?;
    quiet::judge(others_used, options.allow_busy)?;
    Ok(Report {
        machine: quiet::machine(),
        lab: folder.name().to_owned(),
        attached_to: own.name.clone(),
        round_trips: options.count,
        compared,
        hops,
        windows,
        others_used,
    })
}

/// One node for every distance that there is; the one with the lowest GUID.
fn targets(live: &Surveyed) -> BTreeMap<usize, Target> {
    let mut targets = BTreeMap::new();
    for (index, node) in live.fabric.iter() {
        let Some(&path) = live.path(index) else { continue };
        targets.entry(path.hops()).or_insert_with(|| Target {
            name: node.description.clone(),
            guid: node.guid,
            path,
            lid: node.end_ports().map(|(_, port)| port.lid).find(|lid| lid.is_unicast()),
        });
    }
    targets
}

/// The agent process of a node.
fn process_of(lab: &Lab, node: Guid) -> anyhow::Result<rustix::process::Pid> {
    let (agent, _) = lab.record.device(node).context("the neighbour is not of this laboratory")?;
    let holder = lock::holder(&lab.folder.agent_lock(&agent.name)).context("cannot read the agent's lock")?;
    holder.context("the neighbour's agent is not running")
}

fn compare(
    bench: &mut Bench,
    quic: &mut BareQuic,
    [own, neighbour]: [&Target; 2],
    placement: Placement,
    count: u32,
) -> anyhow::Result<Compared> {
    let [bare_quic_us, own_agent_us, neighbour_us] = in_turns(bench, quic, own, neighbour, count)?;
    let agent_to_agent_us = neighbour_us.p50 - own_agent_us.p50;
    Ok(Compared {
        placement,
        bare_quic_us,
        own_agent_us,
        neighbour_us,
        agent_to_agent_us,
        agent_to_agent_ratio: agent_to_agent_us / bare_quic_us.p50,
        attached_ratio: neighbour_us.p50 / bare_quic_us.p50,
    })
}

/// One node at every distance, by directed route and by LID.
fn curve(bench: &mut Bench, targets: &BTreeMap<usize, Target>, count: u32) -> anyhow::Result<Vec<HopRow>> {
    let mut hops = Vec::new();
    for (distance, target) in targets {
        let lid = target.lid.filter(|_| *distance > 0);
        let mut measure = |route: SmpRoute| {
            let mut samples = Vec::new();
            round_trips(bench, &route, count / 40, &mut Vec::new())?;
            round_trips(bench, &route, count / 4, &mut samples)?;
            anyhow::Ok(Quantiles::of(samples))
        };
        hops.push(HopRow {
            hops: *distance,
            target: target.name.clone(),
            directed_us: measure(SmpRoute::Directed(target.path))?,
            lid_routed_us: lid.map(|lid| measure(SmpRoute::Lid(lid))).transpose()?,
        });
    }
    Ok(hops)
}

/// The three round trips that are compared, in turns, so that all see the same disturbances.
fn in_turns(
    bench: &mut Bench,
    quic: &mut BareQuic,
    own: &Target,
    neighbour: &Target,
    count: u32,
) -> anyhow::Result<[Quantiles; 3]> {
    let mut samples = [Vec::new(), Vec::new(), Vec::new()];
    for turn in 0..=TURNS {
        if turn == 1 {
            samples = [Vec::new(), Vec::new(), Vec::new()]; // The first turn was to warm up.
        }
        quic.round_trips(count / TURNS, &mut samples[0], &bench.interruption)?;
        round_trips(bench, &SmpRoute::Directed(own.path), count / TURNS, &mut samples[1])?;
        round_trips(bench, &SmpRoute::Directed(neighbour.path), count / TURNS, &mut samples[2])?;
    }
    Ok(samples.map(Quantiles::of))
}

/// One SMP at a time.
fn round_trips(
    bench: &mut Bench,
    route: &SmpRoute,
    count: u32,
    samples: &mut Vec<Duration>,
) -> anyhow::Result<()> {
    for round in 0..count {
        bench.interruption.check()?;
        let mut request = Request::get(AttributeId::NodeInfo, 0).by(route);
        let id = TransactionId(u64::from(round) + 1);
        weft_wire::Smp::transaction_id.set(&mut request.mad.0, id);
        let sent = Instant::now();
        bench.session.send(&request)?;
        loop {
            let answer = bench.session.receive(PATIENCE)?.context("an SMP was not answered")?;
            // An answer to an earlier round cannot be: each is awaited; but a trap may come between.
            if answer.mad.transaction_id().0 as u32 == id.0 as u32 {
                break;
            }
        }
        samples.push(sent.elapsed());
    }
    Ok(())
}

/// How many SMPs per second with a window.
fn pipelined(bench: &mut Bench, target: &Target, window: u32, count: u32) -> anyhow::Result<f64> {
    let request = |_| ((), Request::get(AttributeId::NodeInfo, 0).by(&SmpRoute::Directed(target.path)));
    let requests: Vec<((), AddressedMad)> = (0..count).map(request).collect();
    let mut lost = 0;
    let took = bench.exchange(window, requests, |(), answer| lost += u32::from(answer.is_none()))?;
    anyhow::ensure!(lost == 0, "{lost} SMPs were not answered");
    Ok(f64::from(count) / took.as_secs_f64())
}
