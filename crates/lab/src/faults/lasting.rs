//! Faults that have a name and last until they are cleared. The agents keep them; nothing of them is kept here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::Bundle;
use weft_control::agent::PortEnd;
use weft_control::fault::{BadIdentity, Damage, FaultId, Impairment, LastingFault, Word};
use weft_control::{Answer, ErrorCode, HexGuid, Request, Utc};
use weft_fault::{Impaired, Nodes, Presented, Process, Way};
use weft_process::{ClientError, utc_now};
use weft_topology::PortRef;
use weft_wire::PortNum;

use crate::agents::{PATIENCE, ask_agents, connect};
use crate::faults::planned::issue_bad;
use crate::faults::record;
use crate::site;
use crate::site::frozen::{Frozen, for_how_long};
use crate::view::Lab;

/// One agent's answer about a fault, or that it does not run.
enum Told {
    Done,
    NotThere,
    NotRunning,
}

/// Pulls the cable of a port out at both ends.
pub fn unplug(lab: &Lab, port: &str, lasts: Option<Duration>) -> anyhow::Result<()> {
    let (end, peer) = lab.cable(port)?;
    let (id, _) = site::of(&lab.folder)?.next_fault()?;
    record(lab, Word::LinkDown, port);
    set(lab, &id, [end, peer].map(weft_fault::Damage::Unplugged), lasts)?;
    let name = |end: PortRef| lab.fabric.port_label(end);
    lab.folder.say(&format!("unplugged {} - {} (fault {id}{})", name(end), name(peer), for_how_long(lasts)));
    Ok(())
}

/// Where an impairment is, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    /// The port at one end of the cable, as the user names it.
    pub port: &'a str,
    /// Which of its packets suffer.
    pub way: Way,
    /// How long; until it is cleared without it.
    pub lasts: Option<Duration>,
    /// What chance follows from; a number that no fault has had without it.
    pub seed: Option<u32>,
}

/// Impairs the cable of a port.
pub fn impair(lab: &Lab, how: weft_fault::Impairment, placed: Placed<'_>) -> anyhow::Result<()> {
    let Placed { port, way, lasts, seed } = placed;
    let (end, peer) = lab.cable(port)?;
    if let weft_fault::Impairment::Flap { every, down } = how
        && down >= every
    {
        let failure = Failure::bad_input(format!("a link that is down for {down} every {every} is never up"));
        return Err(failure.hint("give a shorter --down or a longer --every"));
    }
    if matches!(how, weft_fault::Impairment::SlowDrain(_)) && lab.fabric.node(end.node).is_switch() {
        let failure = Failure::bad_input(format!("`{port}` is a port of a switch, which drains to no host"));
        return Err(failure.hint("name the port of a host"));
    }
    let (id, number) = site::of(&lab.folder)?.next_fault()?;
    let impaired = Impaired { at: end, way, how, seed: seed.unwrap_or(number) };
    record(lab, how.word(), port);
    set(lab, &id, impaired.damage(peer), lasts)?;
    let name = |end: PortRef| lab.fabric.port_label(end);
    let (a, b) = (name(end), name(peer));
    if how.is_of_port() {
        lab.folder.say(&format!("{how} at {a} (fault {id}{})", for_how_long(lasts)));
        return Ok(());
    }
    let arrow = match way {
        Way::Both => "-",
        Way::In => "<-",
        Way::Out => "->",
    };
    lab.folder.say(&format!(
        "{how} on {a} {arrow} {b} (fault {id}, seed {}{})",
        impaired.seed,
        for_how_long(lasts)
    ));
    Ok(())
}

/// Freezes a node.
pub fn freeze(lab: &Lab, node: &str, lasts: Option<Duration>) -> anyhow::Result<()> {
    let at = PortRef::new(lab.find(node)?, PortNum::ZERO);
    let (id, _) = site::of(&lab.folder)?.next_fault()?;
    record(lab, Word::Freeze, node);
    set(lab, &id, [weft_fault::Damage::Frozen(at)], lasts)?;
    lab.folder.say(&format!("froze {} (fault {id}{})", lab.fabric.label(at.node), for_how_long(lasts)));
    Ok(())
}

/// Clears whatever keeps a node frozen.
pub fn thaw(lab: &Lab, node: &str) -> anyhow::Result<()> {
    let at = PortRef::new(lab.find(node)?, PortNum::ZERO);
    record(lab, Word::Thaw, node);
    let damage = Damage::Frozen(place(lab, at));
    clear_at(lab, at, |kept| kept == damage)?;
    lab.folder.say(&format!("{} goes on", lab.fabric.label(at.node)));
    Ok(())
}

/// Has a node's agent prove itself with a bad identity.
pub fn misidentify(
    lab: &Lab,
    presented: &Presented<String>,
    lasts: Option<Duration>,
    authority: Option<&Path>,
) -> anyhow::Result<()> {
    let Presented { node, identity } = presented;
    let at = PortRef::new(lab.find(node)?, PortNum::ZERO);
    let bundle = authority.map_or_else(|| lab.folder.bundle(), Bundle::at);
    issue_bad(lab, at.node, *identity, &bundle)?;
    let (id, _) = site::of(&lab.folder)?.next_fault()?;
    record(lab, Word::BadIdentity, node);
    set(lab, &id, [weft_fault::Damage::BadIdentity { at, identity: *identity }], lasts)?;
    let label = lab.fabric.label(at.node);
    lab.folder.say(&format!("{label} has a bad identity: {identity} (fault {id}{})", for_how_long(lasts)));
    Ok(())
}

/// Clears whatever keeps a node's agent from its own identity.
pub fn identify(lab: &Lab, node: &str) -> anyhow::Result<()> {
    let at = PortRef::new(lab.find(node)?, PortNum::ZERO);
    record(lab, Word::GoodIdentity, node);
    clear_at(lab, at, |kept| matches!(kept, Damage::BadIdentity { .. }))?;
    lab.folder.say(&format!("{} has its own identity again", lab.fabric.label(at.node)));
    Ok(())
}

/// Clears faults of one kind that a node's agent keeps.
fn clear_at(lab: &Lab, at: PortRef, is_it: impl Fn(Damage) -> bool) -> anyhow::Result<()> {
    let Some(faults) = faults_of(lab, at)? else { return Err(no_agent()) };
    for fault in faults.into_iter().filter(|fault| is_it(fault.damage)) {
        tell(lab, at, Request::ClearFault { id: fault.id })?;
    }
    Ok(())
}

/// The ends of all cables between some nodes and the others.
fn between(lab: &Lab, nodes: &Nodes<String>) -> anyhow::Result<Vec<PortRef>> {
    let parted = nodes.0.iter().map(|node| lab.find(node)).collect::<anyhow::Result<BTreeSet<_>>>()?;
    let within = |end: PortRef| parted.contains(&end.node);
    let cables = lab.fabric.cables().filter(|cable| within(cable.a) != within(cable.b));
    let ends: Vec<PortRef> = cables.flat_map(|cable| [cable.a, cable.b]).collect();
    if ends.is_empty() {
        let failure = Failure::bad_input(format!("no cable leads from `{nodes}` to any other node"));
        return Err(failure.hint("name the nodes of one side, and leave some for the other"));
    }
    Ok(ends)
}

/// Unplugs all cables between some nodes and the others.
pub fn part(lab: &Lab, nodes: &Nodes<String>, lasts: Option<Duration>) -> anyhow::Result<()> {
    let ends = between(lab, nodes)?;
    let (id, _) = site::of(&lab.folder)?.next_fault()?;
    record(lab, Word::Partition, &nodes.to_string());
    let cables = weft_wire::count_of(ends.len() / 2, "cable");
    set(lab, &id, ends.into_iter().map(weft_fault::Damage::Parted), lasts)?;
    lab.folder.say(&format!("isolated {nodes}: {cables} unplugged (fault {id}{})", for_how_long(lasts)));
    Ok(())
}

/// Clears the partitions between some nodes and the others.
pub fn heal(lab: &Lab, nodes: &Nodes<String>) -> anyhow::Result<()> {
    let ends: BTreeSet<PortEnd> = between(lab, nodes)?.into_iter().map(|end| place(lab, end)).collect();
    let (faults, _) = read(lab)?;
    let is_this = |(_, at): &(FaultId, Vec<(String, LastingFault)>)| {
        // An agent that does not run keeps its end to itself.
        at.iter().all(|(_, fault)| matches!(fault.damage, Damage::Parted(end) if ends.contains(&end)))
    };
    let ids: Vec<FaultId> = faults.into_iter().filter(is_this).map(|(id, _)| id).collect();
    if ids.is_empty() {
        let failure = Failure::new(format!("no partition lasts between `{nodes}` and the others"));
        return Err(failure.hint("`weft fault ls` lists all faults"));
    }
    clear(lab, &ids, false)
}

/// Has the agents at the ends of a cable break something.
fn set(
    lab: &Lab,
    id: &FaultId,
    damage: impl IntoIterator<Item = weft_fault::Damage<PortRef>>,
    lasts: Option<Duration>,
) -> anyhow::Result<()> {
    let for_ms = lasts.map(|lasts| u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX));
    let mut reached = 0;
    for damage in damage {
        let (end, damage) = (damage.end(), damage.map(|end| place(lab, end)));
        let told = tell(lab, end, Request::SetFault { id: id.clone(), damage, for_ms })?;
        reached += usize::from(!matches!(told, Told::NotRunning));
    }
    if reached == 0 { Err(no_agent()) } else { Ok(()) }
}

/// Clears whatever keeps the cable of a port unplugged, at both ends.
pub fn plug(lab: &Lab, port: &str) -> anyhow::Result<()> {
    let (end, peer) = lab.cable(port)?;
    record(lab, Word::LinkUp, port);
    let mut reached = 0;
    for end in [end, peer] {
        let damage = Damage::Unplugged(place(lab, end));
        let Some(faults) = faults_of(lab, end)? else {
            lab.folder.say(&format!("the agent of `{}` is not running", lab.fabric.label(end.node)));
            continue;
        };
        reached += 1;
        for fault in faults.into_iter().filter(|fault| fault.damage == damage) {
            // One whose time is over meanwhile has ended.
            tell(lab, end, Request::ClearFault { id: fault.id })?;
        }
    }
    if reached == 0 {
        return Err(no_agent());
    }
    let name = |end: PortRef| lab.fabric.port_label(end);
    lab.folder.say(&format!("plugged {} - {}", name(end), name(peer)));
    Ok(())
}

/// What a process is that does nothing; a node is the same.
const FROZEN: &str = "frozen";

/// A fault as it is listed.
#[derive(Serialize)]
pub struct Listed {
    /// Its name.
    pub id: FaultId,
    /// What is broken.
    pub damage: &'static str,
    /// What happens to packets; none where a cable is unplugged.
    pub impairment: Option<Impairment>,
    /// What an agent presents instead of its identity.
    pub identity: Option<BadIdentity>,
    /// Where, as the user names ports: both ends of an unplugged cable, or where packets arrive impaired.
    pub at: BTreeSet<String>,
    /// What chance follows from, of each place.
    pub seeds: BTreeMap<String, u32>,
    /// When it began.
    pub since: Utc,
    /// When it ends by itself.
    pub until: Option<Utc>,
    /// From its beginning until a device or the subnet manager noticed, in nanoseconds.
    pub detected_after_ns: Option<u64>,
    /// From its beginning until the subnet manager had routed what is left.
    pub rerouted_after_ns: Option<u64>,
}

impl Listed {
    /// A process that is frozen.
    fn new(id: FaultId, damage: &'static str, at: BTreeSet<String>, since: Utc, until: Option<Utc>) -> Self {
        let (impairment, identity, seeds) = (None, None, BTreeMap::new());
        let (detected_after_ns, rerouted_after_ns) = (None, None);
        Self {
            id,
            damage,
            impairment,
            identity,
            at,
            seeds,
            since,
            until,
            detected_after_ns,
            rerouted_after_ns,
        }
    }
}

/// All faults that last, and how many agents do not run, whose faults are not among them.
///
/// # Errors
/// When agents cannot be waited for, or a file of a frozen process cannot be read.
pub fn list(lab: &Lab) -> anyhow::Result<(Vec<Listed>, usize)> {
    let (faults, silent) = read(lab)?;
    let mut listed: Vec<Listed> = faults.into_values().map(|at| listed(lab, at)).collect();
    for (name, Frozen { id, since, until, .. }) in super::frozen::all(lab)? {
        listed.push(Listed::new(id, FROZEN, BTreeSet::from([name]), since, until));
    }
    if !listed.is_empty() {
        let times = super::times::of(lab)?;
        for fault in &mut listed {
            let id = fault.id.to_string();
            let Some(times) = times.iter().rev().find(|times| times.fault == id) else { continue };
            fault.detected_after_ns = times.detected_after_ns;
            fault.rerouted_after_ns = times.rerouted_after_ns;
        }
    }
    Ok((listed, silent))
}

/// A fault that lasts, at an agent that runs or of another process.
pub fn any(lab: &Lab) -> anyhow::Result<Option<FaultId>> {
    let frozen = super::frozen::all(lab)?.into_iter().map(|(_, frozen)| frozen.id);
    Ok(read(lab)?.0.into_keys().chain(frozen).next())
}

fn listed(lab: &Lab, faults: Vec<(String, LastingFault)>) -> Listed {
    let name = |PortEnd { node, port }| match (lab.label(node.0, &node.to_string()), port) {
        (node, PortNum::ZERO) => node,
        (node, port) => format!("{node}:{port}"),
    };
    let at = faults.iter().map(|(_, fault)| name(fault.damage.end())).collect();
    let seed = |damage| match damage {
        Damage::Impaired { at, seed, .. } => Some((name(at), seed)),
        _ => None,
    };
    let seeds = faults.iter().filter_map(|(_, fault)| seed(fault.damage)).collect();
    let first = faults.into_iter().map(|(_, fault)| fault).min_by_key(|fault| fault.since);
    let LastingFault { id, damage, since, until } = first.expect("a name comes with a fault");
    let (impairment, identity) = match damage {
        Damage::Impaired { how, .. } => (Some(how), None),
        Damage::BadIdentity { identity, .. } => (None, Some(identity)),
        Damage::Unplugged(_) | Damage::Parted(_) | Damage::Frozen(_) => (None, None),
    };
    Listed { impairment, identity, seeds, ..Listed::new(id, damage.name(), at, since, until) }
}

/// The process of a name: one that is no manager's is a node's.
pub(crate) fn process_of(name: &str) -> Process<String> {
    let Ok(process) = name.parse();
    process
}

/// Clears faults by their names.
pub fn clear(lab: &Lab, ids: &[FaultId], all: bool) -> anyhow::Result<()> {
    let (faults, silent) = read(lab)?;
    let processes = crate::faults::frozen::all(lab)?;
    let is_known =
        |id: &FaultId| faults.contains_key(id) || processes.iter().any(|(_, frozen)| frozen.id == *id);
    let unknown = ids.iter().find(|id| !is_known(id));
    if let Some(id) = unknown {
        let failure = Failure::new(format!(
            "no agent that runs knows a fault {id}, and no other process is frozen by it"
        ));
        return Err(failure.hint("`weft fault ls` lists them"));
    }
    let wanted = faults.into_iter().filter(|(id, _)| all || ids.contains(id));
    let mut cleared = 0;
    for (id, at) in wanted {
        record(lab, Word::Clear, &id.to_string());
        for (agent, _) in at {
            tell_agent(lab, &agent, Request::ClearFault { id: id.clone() })?;
        }
        cleared += 1;
    }
    for (name, frozen) in processes.into_iter().filter(|(_, frozen)| all || ids.contains(&frozen.id)) {
        record(lab, Word::Clear, &frozen.id.to_string());
        crate::faults::thaw(lab, &process_of(&name))?;
        cleared += 1;
    }
    if silent > 0 {
        lab.folder.say(&format!("{} not running: faults there last", weft_wire::count_of(silent, "agent")));
    }
    lab.folder.say(&format!("cleared {}", weft_wire::count_of(cleared, "fault")));
    Ok(())
}

/// What lasts, by its name, with the agents that keep it.
type Known = BTreeMap<FaultId, Vec<(String, LastingFault)>>;

/// Asks all agents; also tells how many do not answer. Times are by the clock of this machine.
fn read(lab: &Lab) -> anyhow::Result<(Known, usize)> {
    let (mut known, asked) = (Known::new(), utc_now());
    let agents = lab.record.agents.iter().map(|agent| agent.name.as_str());
    let silent = ask_agents(&lab.folder, agents, &Request::Faults, |agent, answer| {
        if let Answer::Faults { faults, now } = answer {
            let ahead_ns = now.ahead_of(asked, utc_now());
            for fault in faults.into_iter().map(|fault| fault.less(ahead_ns)) {
                known.entry(fault.id.clone()).or_default().push((agent.to_owned(), fault));
            }
        }
        None
    })?;
    Ok((known, silent.len()))
}

/// What one agent keeps; `None` when it does not run.
fn faults_of(lab: &Lab, end: PortRef) -> anyhow::Result<Option<Vec<LastingFault>>> {
    let Some(mut client) = connect(&lab.folder, &agent_of(lab, end)?)? else { return Ok(None) };
    match client.ask(Request::Faults, PATIENCE)? {
        Answer::Faults { faults, .. } => Ok(Some(faults)),
        _ => Err(ClientError::Unexpected("faults").into()),
    }
}

/// Tells the agent at an end of a cable; says so when it does not run.
fn tell(lab: &Lab, end: PortRef, request: Request) -> anyhow::Result<Told> {
    let told = tell_agent(lab, &agent_of(lab, end)?, request)?;
    if matches!(told, Told::NotRunning) {
        lab.folder.say(&format!("the agent of `{}` is not running", lab.fabric.label(end.node)));
    }
    Ok(told)
}

fn tell_agent(lab: &Lab, agent: &str, request: Request) -> anyhow::Result<Told> {
    let Some(mut client) = connect(&lab.folder, agent)? else { return Ok(Told::NotRunning) };
    match client.ask(request, PATIENCE) {
        Ok(_) => Ok(Told::Done),
        Err(ClientError::Refused(error)) if error.code == ErrorCode::NotFound => Ok(Told::NotThere),
        Err(error) => Err(error).with_context(|| format!("agent {agent}")),
    }
}

fn agent_of(lab: &Lab, end: PortRef) -> anyhow::Result<String> {
    let (agent, _) =
        lab.record.device(lab.fabric.node(end.node).guid).context("the laboratory has no such node")?;
    Ok(agent.name.clone())
}

fn place(lab: &Lab, end: PortRef) -> PortEnd {
    PortEnd { node: HexGuid(lab.fabric.node(end.node).guid), port: end.port }
}

fn no_agent() -> anyhow::Error {
    Failure::new("the agents at both ends are not running").hint("start them with `weft fault restart NODE`")
}
