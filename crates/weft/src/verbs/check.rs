//! `weft check`

mod due;
mod packets;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_routing::{
    Cycle, Engine, EngineReport, Expectations, Input, Lids, PortLids, Routing, Verdict, verify_routing,
};
use weft_sm::Surveyed;
use weft_topology::{NodeIndex, NodeType, PortRef};
use weft_wire::{Guid, Lid, PortNum, PortState};

use super::{Lab, trace};
use crate::cli::CheckArgs;
use crate::failure::Failure;
use crate::lab::LabFolder;
use crate::lab::process::Holder;
use crate::live::{Session, survey_with};
use crate::output::{Ticker, print, print_json};
use crate::sm_process::{SmConfig, SmStatus, in_charge};

/// Seconds that a check may take, and one with `--all`.
const LIMITS: (u32, u32) = (60, 600);

/// Counter-examples printed; the rest is counted.
const SHOWN_MAX: usize = 20;

#[derive(Debug, Default, Serialize)]
struct Report {
    /// Every host reaches every other.
    ok: bool,
    /// And nothing of this piece of the fabric is out of service: every cabled port is Active.
    subnet_up: bool,
    cables_out_of_service: usize,
    attached_to: String,
    switches: usize,
    hosts: usize,
    cables: usize,
    ports_active: usize,
    lids: usize,
    table_pairs: u64,
    detours: u64,
    deadlock: Option<Deadlock>,
    packets: usize,
    /// Pairs of hosts between which the tables are proved broken: no packet was sent.
    packets_withheld: usize,
    /// Packets that came to no end within the limit.
    packets_not_tried: usize,
    sampled: Option<Sample>,
    /// Out of service, but no host is lost by it.
    notes: Vec<String>,
    /// What is wrong.
    problems: Vec<String>,
}

/// What there is to say of deadlock: on the lanes that weft's own subnet manager has chosen, or, where they are not
/// known, if every packet takes the same lane, which is the worst that can be.
#[derive(Debug, Serialize)]
struct Deadlock {
    /// Directions of cables between switches that carry packets.
    channels: usize,
    /// How many times packets that hold one of these may want another.
    dependencies: usize,
    /// The lanes that weft's own subnet manager spreads packets over, if it has routed.
    lanes: Option<u8>,
    /// Whether it is known which pair takes which of them.
    by_lane: bool,
    /// The fewest channels that may wait for each other in a circle.
    cycle: Option<Cycle>,
}

#[derive(Debug, Serialize)]
struct Sample {
    seed: u64,
    of: usize,
}

/// When a check has to end, and who hears how it gets on.
struct Clock {
    until: Instant,
    limit: u32,
    ticker: Ticker,
}

impl Clock {
    fn begin(args: &CheckArgs) -> Self {
        let limit = args.limit.unwrap_or(if args.all { LIMITS.1 } else { LIMITS.0 });
        let until = Instant::now() + Duration::from_secs(limit.into());
        Self { until, limit, ticker: Ticker::begin() }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

pub(super) fn run(folder: &LabFolder, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let lab = Lab::load(folder)?;
    let mut clock = Clock::begin(args);
    let report = settled(&lab, args, &mut clock)?;
    drop(clock); // The line on the terminal goes.
    if args.json {
        print_json(&report)?;
    } else {
        print(&text(&report))?;
    }
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Looks again after a sweep as long as something is wrong and one is due.
fn settled(lab: &Lab, args: &CheckArgs, clock: &mut Clock) -> anyhow::Result<Report> {
    let patience = (Instant::now() + Duration::from_secs(args.wait.into())).min(clock.until);
    loop {
        // What is swept while the fabric is read may be read as it was before.
        let (before, owed) = (due::Sweeps::of(lab)?, due::owed(lab)?);
        let (mut report, live) = look(lab, clock)?;
        let due =
            |live: &Surveyed| Ok::<_, anyhow::Error>(due::due(lab, before, live)?.or_else(|| owed.clone()));
        let mut why = if report.problems.is_empty() { None } else { due(&live)? };
        // While a sweep is due packets would only find what is known.
        if why.is_none() || Instant::now() >= patience {
            packets::packets(lab, &live, args, clock, &mut report);
        }
        if why.is_none() && !report.problems.is_empty() {
            why = due(&live)?;
        }
        if let Some(why) = why {
            clock.ticker.tell(|| format!("waiting for a sweep: {why}"));
            if Instant::now() < patience {
                // After the last moment it looks once more: a sweep that began before may have been enough.
                due::wait_for_sweep(lab, before, patience)?;
                continue;
            }
            report.notes.push(format!("a sweep is due: {why}; --wait waits longer"));
        }
        report.ok = report.problems.is_empty();
        report.subnet_up = report.ok && report.cables_out_of_service == 0;
        return Ok(report);
    }
}

/// Reads the fabric and judges what was read.
fn look(lab: &Lab, clock: &mut Clock) -> anyhow::Result<(Report, Surveyed)> {
    let mut report = Report::default();
    let mut session = attach_anywhere(lab, clock)?;
    report.attached_to = name(lab, session.attached().node);
    let live = survey_with(&mut session, |sent| {
        clock.ticker.tell(|| format!("reading the fabric: {sent} SMPs"));
        if clock.left().is_zero() {
            let limit = clock.limit;
            return Err(Failure::new(format!("the fabric was not read within {limit} s, {sent} SMPs"))
                .hint("`weft ps` shows which agents run; --limit allows more time")
                .into());
        }
        Ok(())
    })?;
    drop(session);
    unanswered(lab, &live, &mut report);
    against_cabling(lab, &live, &mut report);
    subnet_up(&live, &mut report);
    let routing = routed_by_weft(lab)?;
    let excused = leaves_out_switches(lab, routing.as_ref());
    let spared = if excused { between_switches(&live, &mut report) } else { BTreeSet::new() };
    complete_tables(&live, &spared, &mut report);
    tables(lab, &live, &spared, routing.as_ref(), &mut report);
    Ok((report, live))
}

/// Attaches where the subnet manager sits, or else at the first host that lives.
fn attach_anywhere(lab: &Lab, clock: &Clock) -> anyhow::Result<Session> {
    let sm = lab.record.sm.as_ref().and_then(|sm| lab.fabric.by_guid(sm.node));
    let hosts = lab.fabric.iter().filter(|(_, node)| node.kind == NodeType::Hca).map(|(index, _)| index);
    for index in sm.into_iter().chain(hosts) {
        let left = clock.left();
        if left.is_zero() {
            let message = format!("no host's agent has answered within {} s", clock.limit);
            return Err(Failure::new(message).hint("`weft ps` lists the processes").into());
        }
        let Ok(port) = trace::attach_port(lab, index) else { continue };
        let node = lab.fabric.node(index).guid;
        if let Ok(session) = Session::attach_within(left, &lab.folder, &lab.record, node, port) {
            return Ok(session);
        }
    }
    Err(Failure::new("no host's agent is running").hint("`weft ps` lists the processes").into())
}

/// What the cabling has and the fabric has not.
fn against_cabling(lab: &Lab, live: &Surveyed, report: &mut Report) {
    let pieces = lab.fabric.components();
    let piece = |index: NodeIndex| pieces.get(index.index()).copied();
    let sm = lab.record.sm.as_ref().and_then(|sm| lab.fabric.by_guid(sm.node)).unwrap_or_default();
    let mut outside = 0;
    for (index, node) in lab.fabric.iter() {
        if live.fabric.by_guid(node.guid).is_some() {
            continue;
        }
        if piece(index) != piece(sm) {
            outside += 1;
        } else if node.kind == NodeType::Hca && node.cabled_ports().next().is_some() {
            report.problems.push(format!("host `{}` is cut off", lab.fabric.label(index)));
        } else {
            report.notes.push(format!("`{}` is out of service", lab.fabric.label(index)));
        }
    }
    if outside > 0 {
        report.notes.push(format!("{outside} nodes are not cabled to this piece of the fabric"));
    }
    // The same port in the fabric as it was read.
    let read = |port: PortRef| {
        let node = live.fabric.by_guid(lab.fabric.node(port.node).guid)?;
        Some(PortRef::new(node, port.port))
    };
    for cable in lab.fabric.cables().filter(|cable| piece(cable.a.node) == piece(sm)) {
        let (Some(a), Some(b)) = (read(cable.a), read(cable.b)) else {
            report.cables_out_of_service += 1; // With its node, which is named above.
            continue;
        };
        if live.fabric.peer(a) != Some(b) {
            report.cables_out_of_service += 1;
            let (a, b) = (lab.fabric.port_name(cable.a), lab.fabric.port_name(cable.b));
            report.notes.push(format!("the cable {a} - {b} is out of service"));
        }
    }
}

/// Whom the survey asked in vain.
fn unanswered(lab: &Lab, live: &Surveyed, report: &mut Report) {
    for port in &live.silent {
        report.problems.push(silence(lab, live, *port));
    }
    if live.unanswered > 0 && live.silent.is_empty() {
        report.problems.push(format!("{} SMPs were not answered", live.unanswered));
    }
}

/// What is known of a port with a link behind which nobody answers.
fn silence(lab: &Lab, live: &Surveyed, port: PortRef) -> String {
    let node = live.fabric.node(port.node);
    let here = format!("`{}` port {} has a link", lab.label(node.guid, &node.description), port.port);
    let cabled =
        lab.fabric.by_guid(node.guid).and_then(|index| lab.fabric.peer(PortRef::new(index, port.port)));
    let Some(peer) = cabled else { return format!("{here}, but no cable leads from there") };
    let silent = lab.fabric.node(peer.node);
    let there = format!("`{}` port {} behind it does not answer", lab.fabric.label(peer.node), peer.port);
    let Some((agent, _)) = lab.record.device(silent.guid) else { return format!("{here}, but {there}") };
    let agent = &agent.name;
    let why = match Holder::of(&lab.folder.agent_lock(agent)) {
        Ok(None) => format!("its agent {agent} is not running and the link has not noticed yet"),
        Ok(Some(_)) => format!("its agent {agent} runs, so it is stopped, overloaded or wants another M_Key"),
        Err(error) => format!("nobody can tell whether its agent {agent} runs: {error:#}"),
    };
    format!("{here}, but {there}: {why}")
}

/// Of the definition of SUBNET UP: every cabled port Active, every end port a LID of its own.
fn subnet_up(live: &Surveyed, report: &mut Report) {
    let counts = live.fabric.counts();
    (report.switches, report.hosts, report.cables) = (counts.switches, counts.hosts, counts.cables);
    let mut owners: BTreeMap<u16, String> = BTreeMap::new();
    for (index, node) in live.fabric.iter() {
        let name = live.fabric.label(index);
        for (port, _) in node.cabled_ports() {
            match live.port_info(PortRef::new(index, port)).map(|info| info.port_state) {
                Some(PortState::Active) => report.ports_active += 1,
                Some(state) => report.problems.push(format!("`{name}` port {port} is {state}")),
                None => report.problems.push(format!("`{name}` port {port} does not answer")),
            }
        }
        for (port, end) in node.end_ports().filter(|(_, end)| node.is_switch() || end.peer.is_some()) {
            let owner = format!("`{name}` port {port}");
            if !end.lid.is_unicast() {
                report.problems.push(format!("{owner} has no LID"));
                continue;
            }
            let last = end.lid.0.saturating_add((1 << end.lmc) - 1);
            for lid in end.lid.0..=last {
                if let Some(first) = owners.insert(lid, owner.clone()) {
                    report.problems.push(format!("LID {lid} belongs to both {first} and {owner}"));
                }
            }
        }
    }
    report.lids = owners.len();
}

/// What weft's own subnet manager says of its routing; `None` without one, and before it has routed.
fn routed_by_weft(lab: &Lab) -> anyhow::Result<Option<EngineReport>> {
    if lab.record.sm.is_none() {
        return Ok(None);
    }
    let name = in_charge(&lab.folder, &lab.record);
    Ok(SmStatus::load(&lab.folder.sm_files(&name).status)?.and_then(|status| status.routing))
}

/// Whether ways between switches may be left out: unless weft's own subnet manager has routed by an engine that
/// leaves out none.
fn leaves_out_switches(lab: &Lab, routing: Option<&EngineReport>) -> bool {
    lab.record.sm.is_none() || routing.is_some_and(|routing| routing.engine != "minhop")
}

/// LIDs of switches that some switch has no way to, told as a note. Up/down routing leaves them out where the way
/// would go down and up again; traffic of hosts never needs them.
fn between_switches(live: &Surveyed, report: &mut Report) -> BTreeSet<Lid> {
    let Ok(lids) = &live.lids else { return BTreeSet::new() };
    let of_switches = lids.iter().filter(|lids| live.fabric.node(lids.port.node).is_switch());
    let lacking =
        |lid: Lid| live.fabric.switches().any(|(node, _)| live.routes.port(node, lid) == PortNum::NONE);
    let spared: BTreeSet<Lid> = of_switches.flat_map(PortLids::iter).filter(|lid| lacking(*lid)).collect();
    if !spared.is_empty() {
        let count = spared.len();
        report.notes.push(format!("{count} LIDs of switches are out of reach for some other switch"));
    }
    spared
}

/// Every switch knows the way to every LID.
fn complete_tables(live: &Surveyed, spared: &BTreeSet<Lid>, report: &mut Report) {
    let Ok(lids) = &live.lids else { return };
    for (index, _) in live.fabric.switches() {
        let all = lids.iter().flat_map(|lids| lids.iter().map(move |lid| (lid, lids.port)));
        let missing =
            all.filter(|(lid, _)| live.routes.port(index, *lid) == PortNum::NONE && !spared.contains(lid));
        let missing: Vec<(Lid, PortRef)> = missing.collect();
        if let Some((first, port)) = missing.first() {
            let (name, owner) = (live.fabric.label(index), live.fabric.label(port.node));
            report.problems.push(format!(
                "the table of `{name}` lacks {} LIDs, such as {first} (`{owner}` port {})",
                missing.len(),
                port.port,
            ));
        }
    }
}

/// The routing that weft's own subnet manager has in force, where it uses several lanes: its engine makes it once more
/// from what was read. `None` where that gives other tables than those in the switches.
fn in_force(lab: &Lab, live: &Surveyed, by_weft: Option<&EngineReport>) -> Option<Routing> {
    let by_weft = by_weft.filter(|routing| routing.lanes > 1)?;
    let config =
        SmConfig::load(&lab.folder.sm_files(&in_charge(&lab.folder, &lab.record)).config, None).ok()?;
    let lids = live.lids.as_ref().ok()?;
    let cabled = live
        .fabric
        .iter()
        .flat_map(|(index, node)| node.cabled_ports().map(move |(port, _)| PortRef::new(index, port)));
    let links =
        cabled.filter_map(|port| live.port_info(port)).map(|info| info.operational_vls.lanes()).min()?;
    // Management's own lane is not the routing's.
    let management = config.options.management_lane && links > 1;
    let mut options = config.options.routing;
    options.lanes = options.lanes.min(links - u8::from(management));
    let input = Input { fabric: &live.fabric, lids, options: &options };
    let routing = Engine::by_name(&by_weft.engine)?.route(&input).ok()?;
    let mut all = lids.iter().flat_map(PortLids::iter);
    let same = |lid: Lid| {
        let mut switches = live.fabric.switches();
        switches.all(|(node, _)| routing.routes.port(node, lid) == live.routes.port(node, lid))
    };
    all.all(same).then_some(routing)
}

/// Every way to every LID, by the tables, and what may deadlock.
fn tables(
    lab: &Lab,
    live: &Surveyed,
    spared: &BTreeSet<Lid>,
    by_weft: Option<&EngineReport>,
    report: &mut Report,
) {
    let lids = match &live.lids {
        Ok(lids) => lids,
        Err(error) => return report.problems.push(error.to_string()),
    };
    let mut followed = Lids::new();
    for lids in lids.iter().filter(|lids| !spared.contains(&lids.base)) {
        if let Err(error) = followed.insert(lids.port, lids.base, lids.lmc) {
            return report.problems.push(error.to_string());
        }
    }
    let known = in_force(lab, live, by_weft);
    let by_lane = known.is_some();
    let routing = known.unwrap_or_else(|| Routing::on_one_lane("as found", live.routes.clone()));
    let verdict = verify_routing(&live.fabric, &followed, &routing, &Expectations::default());
    deadlock(&verdict, by_weft, by_lane, report);
    let verified = verdict.reach;
    report.table_pairs = verified.pairs;
    report.detours = verified.detours;
    report.problems.extend(verified.counter_examples.iter().map(|example| format!("tables: {example}")));
    let unlisted = verified.failures.saturating_sub(verified.counter_examples.len() as u64);
    if unlisted > 0 {
        report.problems.push(format!("tables: {unlisted} more pairs of switch and LID do not arrive"));
    }
}

/// A circle is a problem only where it was promised that there is none.
fn deadlock(verdict: &Verdict, by_weft: Option<&EngineReport>, by_lane: bool, report: &mut Report) {
    if verdict.lanes.is_empty() {
        return;
    }
    let lanes = by_weft.map(|routing| routing.lanes);
    let cycle = verdict.cycles.first().cloned();
    if let Some(cycle) = &cycle {
        let engine = by_weft.and_then(|routing| Engine::by_name(&routing.engine));
        if (by_lane || lanes == Some(1)) && engine.is_some_and(|engine| engine.deadlock_free) {
            report.problems.push(format!("deadlock is possible: {cycle}"));
        } else {
            report.notes.push(format!("deadlock is possible if all packets take one lane: {cycle}"));
        }
    }
    let channels = verdict.lanes.iter().map(|lane| lane.channels).sum();
    let dependencies = verdict.lanes.iter().map(|lane| lane.dependencies).sum();
    report.deadlock = Some(Deadlock { channels, dependencies, lanes, by_lane, cycle });
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "read from `{}`: {} switches, {} hosts, {} cables, {} ports active, {} LIDs\n",
        report.attached_to, report.switches, report.hosts, report.cables, report.ports_active, report.lids
    );
    text += &format!(
        "tables: {} pairs of switch and LID followed, {} by more cables than needed\n",
        report.table_pairs, report.detours
    );
    if let Some(deadlock) = &report.deadlock {
        let Deadlock { channels, dependencies, lanes, by_lane, cycle } = deadlock;
        let verdict = match (cycle, lanes) {
            (None, Some(lanes)) if *by_lane => {
                format!("none possible on the {lanes} lanes that the subnet manager spreads packets over")
            }
            (Some(_), _) if *by_lane => "possible".to_owned(),
            (None, _) => "none possible even if all packets take one lane".to_owned(),
            (Some(_), Some(lanes)) if *lanes > 1 => {
                format!("possible on one lane, but the subnet manager spreads packets over {lanes}")
            }
            (Some(_), _) => "possible if all packets take one lane".to_owned(),
        };
        text += &format!("deadlock: {verdict} ({channels} channels, {dependencies} dependencies)\n");
    }
    text += &format!("packets: {} sent, ", report.packets);
    text += &match &report.sampled {
        None => "every pair of hosts".to_owned(),
        Some(Sample { of, seed }) => {
            format!("a sample of {of} pairs with seed {seed} (--all sends every one)")
        }
    };
    if report.packets_withheld > 0 {
        text +=
            &format!("; {} not sent, as the tables are broken between their hosts", report.packets_withheld);
    }
    text.push('\n');
    for note in &report.notes {
        text += &format!("note: {note}\n");
    }
    for problem in report.problems.iter().take(SHOWN_MAX) {
        text += &format!("problem: {problem}\n");
    }
    if report.problems.len() > SHOWN_MAX {
        text += &format!("and {} more problems\n", report.problems.len() - SHOWN_MAX);
    }
    text += if report.ok { "ok: every host reaches every other\n" } else { "not ok\n" };
    text += &match report.cables_out_of_service {
        0 if report.subnet_up => "SUBNET UP: every cabled port is Active\n".to_owned(),
        0 => String::new(),
        out => format!("not fully up: {out} cables out of service\n"),
    };
    text
}

fn name(lab: &Lab, guid: Guid) -> String {
    lab.label(guid, &guid.to_string())
}
