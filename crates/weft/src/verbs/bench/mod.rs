//! `weft bench`

mod bare_quic;
mod door;
mod lft;
mod moves;
mod own_lab;
mod placement;
mod quiet;
mod up;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::signals::{Interruption, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use weft_lab::survey::{Session, limits, survey};
use weft_lab::view::Lab;
use weft_mgmt::{DirectedPath, Request, SmpRoute, Window};
use weft_process::lock;
use weft_sm::Surveyed;
use weft_wire::{AddressedMad, AttributeId, Guid, Lid, TransactionId};

use super::{report, trace};
use crate::cli::BenchSmpArgs;
use crate::output::{Table, print, print_json};
use bare_quic::BareQuic;
use placement::{Placed, Placement};
use quiet::Watch;

pub(super) use bare_quic::echo;
pub(super) use door::run as door;
pub(super) use moves::run as moves;
pub(super) use up::run as up;

/// The windows that are tried.
const WINDOWS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// In how many turns the round trips that are compared are taken.
const TURNS: u32 = 20;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize)]
struct Report {
    machine: String,
    lab: String,
    attached_to: String,
    round_trips: u32,
    compared: Vec<Compared>,
    /// All processes on one core.
    hops: Vec<HopRow>,
    windows: Vec<WindowRow>,
    /// What else ran meanwhile, in shares of one core.
    others_used: f64,
}

/// The round trips that are compared, all placed alike.
#[derive(Debug, Serialize)]
struct Compared {
    placement: Placement,
    /// A bare QUIC datagram of a packet's size between two processes.
    bare_quic_us: Quantiles,
    /// From the attached program to its own HCA's agent and back.
    own_agent_us: Quantiles,
    /// From the attached program to the neighbouring agent and back.
    neighbour_us: Quantiles,
    /// From the HCA's agent to the neighbouring agent and back: the difference of the two before.
    agent_to_agent_us: f64,
    agent_to_agent_ratio: f64,
    attached_ratio: f64,
}

/// Microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Quantiles {
    p50: f64,
    p99: f64,
}

impl Quantiles {
    fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let at = |share: f64| {
            let index = ((samples.len() as f64 * share) as usize).min(samples.len().saturating_sub(1));
            samples.get(index).map_or(0.0, |took| took.as_secs_f64() * 1e6)
        };
        Self { p50: at(0.5), p99: at(0.99) }
    }
}

#[derive(Debug, Serialize)]
struct HopRow {
    hops: usize,
    target: String,
    directed_us: Quantiles,
    lid_routed_us: Option<Quantiles>,
}

#[derive(Debug, Serialize)]
struct WindowRow {
    window: u32,
    neighbour_per_s: f64,
    farthest_per_s: f64,
}

/// What all measurements need.
struct Bench {
    session: Session,
    interruption: Interruption,
}

impl Bench {
    /// Sends requests with a window; how long all took. `take` gets each answer, or `None` where there was none.
    fn exchange<K>(
        &mut self,
        window: u32,
        requests: Vec<(K, AddressedMad)>,
        mut take: impl FnMut(K, Option<AddressedMad>),
    ) -> anyhow::Result<Duration> {
        self.interruption.check()?;
        let began = Instant::now();
        self.session.exchange(limits(Window::Fixed(window)), requests, |key, answer, _| take(key, answer))?;
        Ok(began.elapsed())
    }
}

/// A node to send to.
struct Target {
    name: String,
    guid: Guid,
    path: DirectedPath,
    lid: Option<Lid>,
}

pub(super) fn smp(folder: &LabFolder, args: &BenchSmpArgs) -> anyhow::Result<ExitCode> {
    let lab = Lab::load(folder)?;
    // The processes are held to cores meanwhile; whatever ends the measurement must let them go.
    let interruption = Interruption::watch(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
    placement::free(folder)?;
    report::prepare(args.report.as_deref())?;
    let mut session = attach(&lab)?;
    let live = survey(&mut session)?;
    let mut bench = Bench { session, interruption };
    let watch = Watch::start(folder)?;
    if args.lft {
        let place = (&lab.record, &folder.bundle());
        lft::run(&mut bench, &live, place, args, || watch.others_used(Duration::ZERO))?;
        return Ok(ExitCode::SUCCESS);
    }
    let targets = targets(&live);
    let own = targets.get(&0).context("the fabric has no node")?;
    let neighbour = targets.get(&1).context("the host has no neighbour")?;
    let mut quic = BareQuic::start()?;
    let far = [process_of(&lab, neighbour.guid)?, quic.pid()?];
    let mut compared = Vec::new();
    for placement in [Placement::OneCore, Placement::TwoCores] {
        if let Some(_placed) = Placed::place(folder, &far, placement)? {
            compared.push(compare((&mut bench, &mut quic), [own, neighbour], placement, args.count)?);
        }
    }
    let hops = {
        let _placed = Placed::place(folder, &far, Placement::OneCore)?;
        curve(&mut bench, &targets, args.count)?
    };
    let farthest = targets.values().next_back().unwrap_or(neighbour);
    let mut windows = Vec::new();
    for window in WINDOWS {
        windows.push(WindowRow {
            window,
            neighbour_per_s: pipelined(&mut bench, neighbour, window, args.count)?,
            farthest_per_s: pipelined(&mut bench, farthest, window, args.count)?,
        });
    }
    let others_used = watch.others_used(quic.used())?;
    let report = Report {
        machine: quiet::machine(),
        lab: folder.name().to_owned(),
        attached_to: own.name.clone(),
        round_trips: args.count,
        compared,
        hops,
        windows,
        others_used,
    };
    if !args.allow_busy {
        quiet::judge(others_used)?;
    }
    if args.json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Attaches at a host whose agent is not the subnet manager's, so that the two do not share a socket's queue.
fn attach(lab: &Lab) -> anyhow::Result<Session> {
    let sm = lab.record.sm.as_ref().map(|sm| sm.node);
    let hosts = lab.fabric.hosts().filter(|(_, host)| Some(host.guid) != sm);
    for (index, node) in hosts {
        let Ok(port) = trace::attach_port(lab, index) else { continue };
        if let Ok(session) = Session::attach(&lab.folder, &lab.record, node.guid, port) {
            return Ok(session);
        }
    }
    Err(Failure::new("no host's agent is running").hint("`weft ps` lists the processes").into())
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
    bench: (&mut Bench, &mut BareQuic),
    [own, neighbour]: [&Target; 2],
    placement: Placement,
    count: u32,
) -> anyhow::Result<Compared> {
    let [bare_quic_us, own_agent_us, neighbour_us] = in_turns(bench, own, neighbour, count)?;
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
    (bench, quic): (&mut Bench, &mut BareQuic),
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

fn text(report: &Report) -> String {
    let us = |value: f64| format!("{value:.1}");
    let mut text = format!("{}\nattached to `{}`\n\n", report.machine, report.attached_to);
    for compared in &report.compared {
        let mut table = Table::new(&["round trip, one at a time", "p50 us", "p99 us", "ratio"]);
        let mut row = |what: &str, quantiles: Quantiles, ratio: Option<f64>| {
            let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            table.row([what.to_owned(), us(quantiles.p50), us(quantiles.p99), ratio]);
        };
        row("bare QUIC datagram, 290 bytes", compared.bare_quic_us, Some(1.0));
        row("program to its own agent", compared.own_agent_us, None);
        row("program to the neighbouring agent", compared.neighbour_us, Some(compared.attached_ratio));
        text += &format!(
            "{}\n{table}agent to the neighbouring agent, the difference of the two: {:.1} us, ratio {:.2}\n\n",
            compared.placement.text(),
            compared.agent_to_agent_us,
            compared.agent_to_agent_ratio
        );
    }
    let mut hops =
        Table::new(&["hops, all on one core", "to", "directed p50 us", "p99", "LID-routed p50 us", "p99"]);
    for row in &report.hops {
        let lid = |pick: fn(&Quantiles) -> f64| {
            row.lid_routed_us.as_ref().map_or_else(|| "-".to_owned(), |quantiles| us(pick(quantiles)))
        };
        hops.row([
            row.hops.to_string(),
            row.target.clone(),
            us(row.directed_us.p50),
            us(row.directed_us.p99),
            lid(|quantiles| quantiles.p50),
            lid(|quantiles| quantiles.p99),
        ]);
    }
    let mut windows =
        Table::new(&["window, placed by the scheduler", "SMPs/s, neighbour", "SMPs/s, farthest"]);
    for row in &report.windows {
        let rate = |value: f64| format!("{value:.0}");
        windows.row([row.window.to_string(), rate(row.neighbour_per_s), rate(row.farthest_per_s)]);
    }
    text += &format!("{hops}\n{windows}\n");
    text + &format!("everything else used {:.1} % of a core meanwhile\n", report.others_used * 100.0)
}
