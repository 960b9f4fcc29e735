//! A check of a laboratory that runs: whether every host reaches every other, by the tables that are read from switches and by packets that are
//! sent, and what is out of service. While a sweep is due or virtual machines are under way it waits, and looks again.

mod cuts;
mod degraded;
mod due;
mod machines;
mod packets;
mod pieces;
mod tables;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use weft_bundle::failure::Failure;
use weft_bundle::folder::front::Work;
pub use weft_control::report::check::{Deadlock, Report, Sample};
use weft_routing::ManagementNodes;
use weft_sm::Surveyed;
use weft_topology::{NodeIndex, NodeType, PortRef};
use weft_wire::{Guid, Lid, PortState, count_of, is_or_are};

use crate::process::Holder;
use crate::survey::read_tables;
use crate::view::Lab;
pub(crate) use due::Ears;
use machines::Machines;

pub use cuts::{Cut, if_cut};
pub use pieces::text;

/// Seconds that a check may take, and one with `--all`.
const LIMITS: (u32, u32) = (60, 600);

/// The part of the limit that the last look has, after waiting.
const LAST_LOOK: u32 = 4;

/// Counter-examples printed; the rest is counted.
const SHOWN_MAX: usize = 20;

/// How thorough a check is, and how long it may take.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether a packet is sent along every path, even on large fabrics.
    pub all: bool,
    /// How many paths are tried on large fabrics otherwise.
    pub sample: u32,
    /// The seed that chooses those.
    pub seed: u64,
    /// Seconds until it ends with what it knows [default: `wait` plus 60, or plus 600 with `all`].
    pub limit: Option<u32>,
    /// How many seconds to wait for a sweep that is due.
    pub wait: u32,
    /// A node to look from, or NODE:PORT: only its piece of the fabric is judged. Without it where most is seen.
    pub from: Option<String>,
}

/// How long to wait for a sweep, in seconds.
pub const WAIT: u32 = 10;

impl Default for Options {
    fn default() -> Self {
        Self { all: false, sample: 4096, seed: 1, limit: None, wait: WAIT, from: None }
    }
}

/// The fabric as it was read, and which of its hosts serve management alone.
struct Read {
    live: Surveyed,
    management: ManagementNodes,
}

/// When a check has to end, and who hears how it gets on.
struct Clock {
    until: Instant,
    limit: u32,
    work: Box<dyn Work>,
}

impl Clock {
    fn begin(lab: &Lab, options: &Options) -> Self {
        // What is waited for takes nothing from the looks.
        let usual = options.wait.saturating_add(if options.all { LIMITS.1 } else { LIMITS.0 });
        let limit = options.limit.unwrap_or(usual);
        let until = Instant::now() + Duration::from_secs(limit.into());
        Self { until, limit, work: lab.folder.front().listener.work() }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Tells how far a reading is, and ends one that takes too long.
    fn watch(&mut self, what: &str, smps: u64) -> anyhow::Result<()> {
        self.work.is_at(&|| format!("reading {what}: {smps} SMPs"));
        if Instant::now() >= self.until {
            let limit = self.limit;
            return Err(Failure::new(format!("reading {what} took more than {limit} s, {smps} SMPs"))
                .hint("`weft ps` shows which agents run; --limit allows more time"));
        }
        Ok(())
    }
}

/// Checks a laboratory: tables, packets, and what is out of service. Each piece of the fabric by itself, where there are several.
///
/// # Errors
/// When nothing can be read from anywhere, or reading takes longer than the limit.
pub fn check(lab: &Lab, options: &Options) -> anyhow::Result<Report> {
    pieces::judge(lab, options, &mut Clock::begin(lab, options))
}

/// The first thing that is wrong with a laboratory, or out of service.
///
/// # Errors
/// As [`check`].
pub fn first_problem(lab: &Lab) -> anyhow::Result<Option<String>> {
    let report = check(lab, &Options::default())?;
    let out_of_service = (!report.subnet_up).then(|| report.notes.first().cloned());
    Ok(report.problems.first().cloned().or_else(|| out_of_service.flatten()))
}

/// Looks again after a sweep as long as something is wrong and one is due.
fn settled(lab: &Lab, options: &Options, clock: &mut Clock) -> anyhow::Result<Report> {
    // Time for a last look is left.
    let patience = Duration::from_secs(options.wait.into()).min(clock.left() - clock.left() / LAST_LOOK);
    let patience = Instant::now() + patience;
    loop {
        // What is swept while the fabric is read may be read as it was before.
        let before = due::Moment::of(lab)?;
        let mut machines = Machines::begin(lab);
        // Machines that have moved before are looked for at their new places.
        let renewed = pieces::renewed(lab)?;
        let lab = renewed.as_ref().unwrap_or(lab);
        let (mut report, read) = look(lab, options.from.as_deref(), clock, &mut machines)?;
        let due = || due::due(lab, before.as_ref(), &read.live);
        let is_sound = report.problems.is_empty();
        let mut why = if is_sound { None } else { due()? };
        let mut moving = machines.why().filter(|_| !is_sound && why.is_none());
        // While a sweep is due packets would only find what is known.
        if why.is_none() && moving.is_none() || Instant::now() >= patience {
            packets::packets(lab, &read, options, clock, &mut machines, &mut report)?;
        }
        if why.is_none() && !report.problems.is_empty() {
            why = due()?;
        }
        if why.is_none() && (!report.problems.is_empty() || report.packets_under_way > 0) {
            moving = moving.or_else(|| machines.why());
        }
        if moving.is_some() || report.packets_under_way > 0 {
            if why.is_none() && Instant::now() < patience {
                clock
                    .work
                    .is_at(&|| moving.clone().unwrap_or_else(|| "virtual machines have moved".to_owned()));
                machines.wait(patience);
                continue;
            }
            report.notes.push(machines.note(report.packets_under_way));
        }
        if let Some(why) = why {
            clock.work.is_at(&|| format!("waiting for a sweep: {why}"));
            if Instant::now() < patience {
                // After the last moment it looks once more: a sweep that began before may have been enough.
                due::wait_for_sweep(lab, before.as_ref().map(|before| before.sweeps), patience)?;
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
fn look(
    lab: &Lab,
    from: Option<&str>,
    clock: &mut Clock,
    machines: &mut Machines<'_>,
) -> anyhow::Result<(Report, Read)> {
    let mut report = Report::default();
    let (mut session, mut live) = view::take(lab, from, clock)?;
    let attached = session.attached();
    report.attached_to = name(lab, attached.node);
    let seat = lab.fabric.by_guid(attached.node).map(|node| PortRef::new(node, attached.port));
    let until = clock.until;
    read_tables(lab, &mut session, &mut live, until, |answered| {
        clock.watch("the forwarding tables", answered)
    })?;
    drop(session);
    unanswered(lab, &live, &mut report);
    machines.look();
    against_cabling(lab, seat, &live, machines, &mut report);
    subnet_up(&live, &machines.nodes(lab, &live.fabric), &mut report);
    degraded::note(lab, &live, &mut report);
    let management = tables::judge(lab, &live, &mut report)?;
    Ok((report, Read { live, management }))
}

/// What the cabling has and the fabric has not, as seen from `seat`.
fn against_cabling(
    lab: &Lab,
    seat: Option<PortRef>,
    live: &Surveyed,
    machines: &Machines<'_>,
    report: &mut Report,
) {
    let pieces = lab.fabric.pieces();
    let Some(piece) = seat.and_then(|seat| pieces.of_seat(seat)) else { return };
    let sm = lab.record.sm.as_ref().and_then(|sm| lab.fabric.by_guid(sm.node));
    let under_way = machines.nodes(lab, &lab.fabric);
    let mut outside = 0;
    // What is not plugged in is so on purpose.
    let empty = |index: &NodeIndex| lab.slots.get(index).is_some_and(|slot| !slot.plugged);
    for (index, node) in lab.fabric.iter().filter(|(index, _)| !empty(index)) {
        if live.fabric.by_guid(node.guid).is_some() {
            continue;
        }
        if !pieces.has(piece, index) {
            outside += 1;
            if sm == Some(index) {
                let name = lab.fabric.label(index);
                report.notes.push(format!(
                    "the subnet manager at `{name}` is not cabled to this piece of the fabric"
                ));
            }
        } else if under_way.contains(&node.guid) {
            report.notes.push(format!("virtual machine `{}` is under way", lab.fabric.label(index)));
        } else if node.kind == NodeType::Hca && node.cabled_ports().next().is_some() {
            let too = if sm == Some(index) { ", and the subnet manager with it" } else { "" };
            report.problems.push(format!("host `{}` is cut off{too}", lab.fabric.label(index)));
        } else {
            report.notes.push(format!("`{}` is out of service", lab.fabric.label(index)));
        }
    }
    let empty = lab.slots.keys().filter(|index| empty(index)).count();
    if empty > 0 {
        report.notes.push(format!(
            "{} of virtual machines {} empty",
            count_of(empty, "slot"),
            is_or_are(empty)
        ));
    }
    if outside > 0 {
        let (nodes, are) = (count_of(outside, "node"), is_or_are(outside));
        report.notes.push(format!("{nodes} {are} not cabled to this piece of the fabric"));
    }
    let comes_or_goes = |port: PortRef| under_way.contains(&lab.fabric.node(port.node).guid);
    // The same port in the fabric as it was read.
    let read = |port: PortRef| {
        let node = live.fabric.by_guid(lab.fabric.node(port.node).guid)?;
        Some(PortRef::new(node, port.port))
    };
    let cables = lab.fabric.cables().filter(|cable| pieces.has_cable(piece, cable));
    for cable in cables.filter(|cable| ![cable.a, cable.b].into_iter().any(comes_or_goes)) {
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

/// Ports that did not answer the survey.
fn unanswered(lab: &Lab, live: &Surveyed, report: &mut Report) {
    for port in &live.silent {
        report.problems.push(silence(lab, live, *port));
    }
    if live.unanswered > 0 && live.silent.is_empty() {
        report.problems.push(format!("not answered: {}", count_of(live.unanswered as usize, "SMP")));
    }
}

/// Why the port behind a link may not answer.
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
        Err(error) => format!("whether its agent {agent} runs is unknown: {error:#}"),
    };
    format!("{here}, but {there}: {why}")
}

/// Of the definition of SUBNET UP: every cabled port Active, every end port a LID of its own; a vSwitch may share its physical
/// function's.
fn subnet_up(live: &Surveyed, under_way: &BTreeSet<Guid>, report: &mut Report) {
    let counts = live.fabric.counts();
    (report.switches, report.hosts, report.cables) = (counts.switches, counts.hosts, counts.cables);
    let mut owners: BTreeMap<u16, String> = BTreeMap::new();
    for (index, node) in live.fabric.iter() {
        let name = live.fabric.label(index);
        for (port, peer) in node.cabled_ports() {
            let ends = [node.guid, live.fabric.node(peer.node).guid];
            if ends.iter().any(|end| under_way.contains(end)) {
                continue; // It comes or goes.
            }
            match live.port_info(PortRef::new(index, port)).map(|info| info.port_state) {
                Some(PortState::Active) => report.ports_active += 1,
                Some(state) => report.problems.push(format!("`{name}` port {port} is {state}")),
                None => report.problems.push(format!("`{name}` port {port} does not answer")),
            }
        }
        let shares = weft_routing::shares_lid(&live.fabric, index, |port| {
            live.fabric.port(port).map_or(Lid(0), |port| port.lid)
        });
        let ends = node.end_ports().filter(|(_, end)| node.is_switch() || end.peer.is_some());
        for (port, end) in ends.filter(|_| !shares) {
            let owner = format!("`{name}` port {port}");
            if !end.lid.is_unicast() && under_way.contains(&node.guid) {
                continue;
            }
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

/// What was found in one piece of the fabric, for people.
fn text_of_piece(report: &Report) -> String {
    let mut text = format!(
        "read from `{}`: {}, {}, {}, {} active, {}\n",
        report.attached_to,
        count_of(report.switches, "switch"),
        count_of(report.hosts, "host"),
        count_of(report.cables, "cable"),
        count_of(report.ports_active, "port"),
        count_of(report.lids, "LID")
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
    text += match report.ok {
        true if report.packets_under_way > 0 => {
            "ok: every host reaches every other, virtual machines under way aside\n"
        }
        true => "ok: every host reaches every other\n",
        false => "not ok\n",
    };
    text += &match report.cables_out_of_service {
        0 if report.subnet_up => "SUBNET UP: every cabled port is Active\n".to_owned(),
        0 => String::new(),
        out => format!("not fully up: {} out of service\n", count_of(out, "cable")),
    };
    text
}

fn name(lab: &Lab, guid: Guid) -> String {
    lab.label(guid, &guid.to_string())
}
