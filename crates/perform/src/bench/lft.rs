//! The cost of writing forwarding tables. Every block that is written is the one that the switch holds.

use std::time::Duration;

use anyhow::Context;
use weft_bundle::folder::LabFolder;
use weft_bundle::folder::bundle::{self, Bundle};
use weft_bundle::folder::front::Work;
use weft_bundle::record::LabRecord;
use weft_lab::survey::limits;
use weft_lab::view::Lab;
use weft_mgmt::{DirectedPath, Request, SmpRoute, Window};
use weft_routing::vswitches;
use weft_sm::Surveyed;
use weft_study::smp::{Burst, Kind, Measured, Report, Route, SWITCHES, Series};
use weft_topology::NodeIndex;
use weft_wire::{AddressedMad, AttributeId, Lid, PortNum, status};

use super::attached::{Bench, Options, WINDOWS};
use super::quiet::{self, Watch};

/// The blocks of a full table (IBA 14.2.5.10): figure 7 ends where each switch gets them all.
const BLOCKS: u16 = 768;

/// LFT updates on all switches together in figure 7.
const BURSTS: [u32; 12] = [1, 6, 60, 300, 600, 1200, 1800, 2400, 3000, 3240, 3900, 4608];

/// The lines of figure 7: route, window, and how many updates at most. Without pipelining, k and r need no more; 12 is the least
/// window that keeps six switches busy.
const BURST_LINES: [(Route, u32, u32); 5] = [
    (Route::LidRouted, 1, 600),
    (Route::LidRouted, 12, 4608),
    (Route::LidRouted, 64, 4608),
    (Route::Directed, 1, 600),
    (Route::Directed, 64, 4608),
];

/// How often each point of figure 7 is taken.
const TIMES: usize = 3;

/// What takes longer is taken once.
const LONG: Duration = Duration::from_millis(500);

/// How long a series lasts at least, unless it is whole before.
const SERIES_TAKES: Duration = Duration::from_millis(400);

/// A switch with what it holds.
struct Target {
    name: String,
    path: DirectedPath,
    lid: Lid,
    /// By block.
    blocks: Vec<[u8; 64]>,
}

impl Target {
    fn route(&self, route: Route) -> SmpRoute {
        match route {
            Route::Directed => SmpRoute::Directed(self.path),
            Route::LidRouted => SmpRoute::Lid(self.lid),
        }
    }

    /// The nth SMP of a series: blocks follow one another.
    fn request(&self, kind: Kind, route: Route, nth: u32) -> AddressedMad {
        let block = nth % u32::from(BLOCKS);
        let request = match kind {
            Kind::Get => Request::get(AttributeId::LinearForwardingTable, block),
            Kind::LftSet => {
                Request::set(AttributeId::LinearForwardingTable, block, &self.blocks[block as usize])
            }
        };
        request.by(&self.route(route))
    }
}

/// Measures by hops, route and window, and figure 7 of the vSwitch paper of 2017.
///
/// # Errors
/// Where no host's agent runs, an SMP is not answered, or something else used the processor meanwhile.
pub fn run(folder: &LabFolder, options: &Options) -> anyhow::Result<Report> {
    let (Lab { record, .. }, bench, live) = &mut Bench::attach(folder)?;
    let watch = Watch::start(folder)?;
    let mut targets = targets(live)?;
    for target in &mut targets {
        target.blocks = read(bench, target)?;
    }
    let mut work = folder.front().listener.work();
    let series = series(bench, &targets, options.count, work.as_mut())?;
    let bursts = bursts(bench, &targets, options.updates, work.as_mut())?;
    drop(work);
    for target in &targets {
        let holds = read(bench, target)?;
        anyhow::ensure!(
            holds == target.blocks,
            "the forwarding table of `{}` has changed meanwhile: the subnet manager has routed",
            target.name
        );
    }
    let attached = live.own.map_or_else(String::new, |port| live.fabric.port_name(port).to_string());
    let measured = Measured {
        machine: quiet::machine(),
        lab: record.lab.clone(),
        attached_to: attached,
        processing_us: processing_us(record, &folder.bundle())?,
        switches: targets.iter().map(|target| target.name.clone()).collect(),
        series,
        bursts,
        others_used: watch.others_used(Duration::ZERO)?,
    };
    quiet::judge(measured.others_used, options.allow_busy)?;
    Ok(Report::new(measured))
}

/// The first physical switches by GUID, as many as figure 7 has.
fn targets(live: &Surveyed) -> anyhow::Result<Vec<Target>> {
    let virtual_ones: Vec<NodeIndex> =
        vswitches(&live.fabric, &[]).into_iter().map(|vswitch| vswitch.node).collect();
    let physical = live.fabric.switches().filter(|(node, _)| !virtual_ones.contains(node));
    let target = |(node, switch): (NodeIndex, &weft_topology::Node)| {
        let path = *live.path(node)?;
        let lid = switch.port(PortNum::ZERO).map(|port| port.lid).filter(|lid| lid.is_unicast())?;
        Some(Target { name: switch.description.clone(), path, lid, blocks: Vec::new() })
    };
    let targets: Vec<Target> = physical.filter_map(target).take(SWITCHES).collect();
    anyhow::ensure!(
        !targets.is_empty(),
        "the fabric has no switch with a LID\nhint: `weft status` shows whether the subnet is up"
    );
    Ok(targets)
}

/// What a switch holds, all blocks of it.
fn read(bench: &mut Bench, target: &Target) -> anyhow::Result<Vec<[u8; 64]>> {
    bench.interruption.check()?;
    let requests = (0..BLOCKS)
        .map(|block| (usize::from(block), target.request(Kind::Get, Route::LidRouted, u32::from(block))));
    let mut blocks = vec![None; usize::from(BLOCKS)];
    bench.session.exchange(None, limits(Window::Fixed(4)), requests.collect(), |block, answer, _| {
        let good = answer.filter(|answer| answer.mad.status() == status::OK);
        blocks[block] = good.map(|answer| *answer.mad.smp_data());
    })?;
    let whole: Option<Vec<[u8; 64]>> = blocks.into_iter().collect();
    whole.with_context(|| format!("the forwarding table of `{}` cannot be read", target.name))
}

/// The SMPs of a series.
#[derive(Clone, Copy)]
struct How {
    kind: Kind,
    route: Route,
    window: u32,
}

/// Sends SMPs to switches in turns; how long all took. An SMP that is not acknowledged, or with another block than the one that
/// was written, is an error.
fn send(bench: &mut Bench, targets: &[&Target], how: How, count: u32) -> anyhow::Result<Duration> {
    let How { kind, route, window } = how;
    bench.interruption.check()?;
    let turns = targets.len() as u32;
    let request = |nth: u32| {
        let (target, nth) = (targets[(nth % turns) as usize], nth / turns);
        ((target, nth % u32::from(BLOCKS)), target.request(kind, route, nth))
    };
    let requests: Vec<_> = (0..count).map(request).collect();
    let mut wrong = 0;
    let took = bench.exchange(window, requests, |(target, block), answer| {
        let is_held = |answer: &AddressedMad| {
            answer.mad.status() == status::OK && *answer.mad.smp_data() == target.blocks[block as usize]
        };
        wrong += u32::from(!answer.is_some_and(|answer| is_held(&answer)));
    })?;
    anyhow::ensure!(
        wrong == 0,
        "{wrong} of {count} SMPs were not acknowledged with the block that the switch holds"
    );
    Ok(took)
}

/// As many SMPs as fit into the time of a series, `count` at most.
fn one_series(bench: &mut Bench, targets: &[&Target], how: How, count: u32) -> anyhow::Result<(u32, f64)> {
    let pilot = (count / 50).max(how.window);
    let each = send(bench, targets, how, pilot)?.as_secs_f64() / f64::from(pilot);
    let fitting = (SERIES_TAKES.as_secs_f64() / each.max(1e-9)) as u32;
    let smps = fitting.clamp(pilot, count.max(pilot));
    Ok((smps, send(bench, targets, how, smps)?.as_secs_f64()))
}

/// Every kind, route and window: to the nearest switch at each distance, and to all in turns.
fn series(
    bench: &mut Bench,
    targets: &[Target],
    count: u32,
    work: &mut dyn Work,
) -> anyhow::Result<Vec<Series>> {
    let mut places: Vec<(Option<&Target>, Vec<&Target>)> = Vec::new();
    for target in targets {
        let is_new = |(one, _): &(Option<&Target>, Vec<&Target>)| {
            one.is_none_or(|one| one.path.hops() != target.path.hops())
        };
        if places.iter().all(is_new) {
            places.push((Some(target), vec![target]));
        }
    }
    places.push((None, targets.iter().collect()));
    let all = places.len() * Kind::ALL.len() * Route::ALL.len() * WINDOWS.len();
    let mut found = Vec::with_capacity(all);
    for (one, targets) in &places {
        let hops = targets.iter().map(|target| target.path.hops() as f64).sum::<f64>() / targets.len() as f64;
        for (kind, route) in Kind::ALL.into_iter().flat_map(|kind| Route::ALL.map(|route| (kind, route))) {
            for window in WINDOWS {
                work.is_at(&|| format!("series {} of {all}", found.len() + 1));
                let (smps, seconds) = one_series(bench, targets, How { kind, route, window }, count)?;
                let target = one.map(|target| target.name.clone());
                found.push(Series { target, hops, route, kind, window, smps, seconds });
            }
        }
    }
    Ok(found)
}

/// Figure 7: in each time once through all its points, so that a disturbance meets all alike.
fn bursts(
    bench: &mut Bench,
    targets: &[Target],
    updates: u32,
    work: &mut dyn Work,
) -> anyhow::Result<Vec<Burst>> {
    let targets: Vec<&Target> = targets.iter().collect();
    let mut found = Vec::new();
    for (route, window, most) in BURST_LINES {
        let fitting = BURSTS.into_iter().filter(|smps| *smps <= most.min(updates));
        found.extend(fitting.map(|smps| Burst { smps, route, window, seconds: Vec::new() }));
    }
    // The first time is to warm up, but for what takes so long that it needs neither that nor a second time.
    for time in 0..=TIMES {
        for burst in found.iter_mut().filter(|burst| time == 0 || !burst.seconds.iter().any(is_long)) {
            work.is_at(&|| format!("figure 7, time {time} of {TIMES}: {} updates", burst.smps));
            let how = How { kind: Kind::LftSet, route: burst.route, window: burst.window };
            let took = send(bench, &targets, how, burst.smps)?.as_secs_f64();
            burst.seconds.extend((time > 0 || is_long(&took)).then_some(took));
        }
    }
    Ok(found)
}

/// Whether a burst is taken once.
fn is_long(seconds: &f64) -> bool {
    *seconds > LONG.as_secs_f64()
}

/// How long the laboratory's devices take for an SMP, by the configuration of their agents.
fn processing_us(record: &LabRecord, bundle: &Bundle) -> anyhow::Result<u64> {
    let agent = record.agents.first().context("the laboratory has no agents")?;
    let part: weft_agent_config::AgentPart = bundle::load(&bundle.agent(&agent.name))?;
    Ok(part.devices.first().map_or(0, |device| device.options.smp_processing.as_nanos() / 1000))
}
