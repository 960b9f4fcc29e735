//! The tables as they were read: whether they bring every packet home, and what may deadlock.

use weft_bundle::names::SM;
use weft_control::p_keys_missing;
use weft_control::report::check::{Channel, Cycle, Pair};
use weft_routing::{
    Engine, EngineOptions, EngineReport, Expectations, Input, Lids, ManagementNodes, PortLids, Routing,
    Verdict, verify_routing,
};
use weft_sm::Surveyed;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{Lid, PortNum, count_of};

use crate::check::{Deadlock, Report, due};
use crate::managers::{RoutedWith, in_charge, routed_with, subnet_managers};
use crate::view::Lab;

/// What weft's own subnet manager says of itself; nothing where another manager is in charge.
#[derive(Default)]
struct ByWeft {
    /// Its routing, once it has routed.
    routing: Option<EngineReport>,
    options: Option<RoutedWith>,
    /// Whether the engine may leave out ways that no host's traffic takes.
    spares: bool,
    /// Which ports have no room for all their P_Keys.
    p_keys_missing: Option<String>,
}

impl ByWeft {
    fn of(lab: &Lab) -> anyhow::Result<Self> {
        if lab.record.sm.is_none() {
            return Ok(Self { spares: true, ..Self::default() });
        }
        let managers = subnet_managers(&lab.folder, &lab.record)?;
        let manager = in_charge(&managers);
        let name = manager.map_or(SM, |manager| &manager.name);
        let status = manager.and_then(|manager| manager.told.status());
        let p_keys_missing = status.and_then(|status| p_keys_missing(&status.p_keys_left_out));
        let routing = match status {
            Some(status) => status.routing.clone(),
            // The tables of a manager that has ended are in the switches still.
            None => due::last_routed(lab)?,
        };
        let options = routed_with(&lab.folder, name);
        let spares = routing.as_ref().is_some_and(EngineReport::spares_switches);
        Ok(Self { routing, options, spares, p_keys_missing })
    }
}

/// Follows every way to every LID by the tables, and says which hosts serve management alone.
pub(crate) fn judge(lab: &Lab, live: &Surveyed, report: &mut Report) -> anyhow::Result<ManagementNodes> {
    let by_weft = ByWeft::of(lab)?;
    report.notes.extend(by_weft.p_keys_missing.clone());
    let named = by_weft.options.as_ref().map_or(&[][..], |options| &options.engine.management_nodes);
    let management = ManagementNodes::new(&live.fabric, named);
    let lids = match &live.lids {
        Ok(lids) => lids,
        Err(error) => {
            report.problems.push(error.to_string());
            return Ok(management);
        }
    };
    let known = in_force(live, lids, &by_weft);
    let by_lane = known.is_some();
    let routing = known.unwrap_or_else(|| Routing::on_one_lane("as found", live.routes.clone()));
    let expected = Expectations { management_nodes: named, ..Expectations::default() };
    let verdict = verify_routing(&live.fabric, lids, &routing, &expected);
    deadlock(&verdict, by_weft.routing.as_ref(), by_lane, report);
    let needed = |switch: NodeIndex, owner: NodeIndex| {
        let is_host = |node: NodeIndex| !live.fabric.node(node).is_switch() && !management.contains(node);
        let has_hosts =
            |node: NodeIndex| live.fabric.node(node).cabled_ports().any(|(_, peer)| is_host(peer.node));
        !by_weft.spares || is_host(owner) || has_hosts(switch)
    };
    complete_tables(live, lids, needed, report);
    reach(&verdict, by_weft.spares, report);
    Ok(management)
}

/// Every switch knows the way to every LID that it is needed for.
fn complete_tables(
    live: &Surveyed,
    lids: &Lids,
    needed: impl Fn(NodeIndex, NodeIndex) -> bool,
    report: &mut Report,
) {
    for (index, _) in live.fabric.switches() {
        let all = lids.iter().flat_map(|lids| lids.iter().map(move |lid| (lid, lids.port)));
        let lacks = |lid: Lid| live.routes.port(index, lid) == PortNum::NONE;
        let missing = all.filter(|(lid, port)| lacks(*lid) && needed(index, port.node));
        let missing: Vec<(Lid, PortRef)> = missing.collect();
        if let Some((first, port)) = missing.first() {
            let (name, owner) = (live.fabric.label(index), live.fabric.label(port.node));
            report.problems.push(format!(
                "the table of `{name}` lacks {}, such as {first} (`{owner}` port {})",
                count_of(missing.len(), "LID"),
                port.port,
            ));
        }
    }
}

/// What arrives. Up/down routing leaves out ways that would go down and up again; where `spares` holds, those that no
/// host's traffic takes are noted and no problem.
fn reach(verdict: &Verdict, spares: bool, report: &mut Report) {
    let reach = &verdict.reach;
    let spared = if spares { reach.between_switches } else { 0 };
    report.table_pairs = reach.pairs - spared;
    report.detours = reach.detours;
    if spared > 0 {
        report.notes.push(format!(
            "{spared} pairs of a switch without hosts and the LID of a switch or a management node have no route; \
             no host's traffic needs one"
        ));
    }
    // Failures that hosts notice come first among the examples.
    let failures = reach.failures - spared;
    let shown = reach.counter_examples.iter().take(usize::try_from(failures).unwrap_or(usize::MAX));
    report.problems.extend(shown.map(|example| format!("tables: {example}")));
    let unlisted = failures.saturating_sub(reach.counter_examples.len() as u64);
    if unlisted > 0 {
        report.problems.push(format!("tables: {unlisted} more pairs of switch and LID do not arrive"));
    }
}

/// The routing that weft's own subnet manager has in force, where it uses several lanes: its engine makes it once more
/// from what was read. `None` where that gives other tables than those in the switches.
fn in_force(live: &Surveyed, lids: &Lids, by_weft: &ByWeft) -> Option<Routing> {
    let engine = by_weft.routing.as_ref().filter(|routing| routing.lanes > 1)?;
    let given = by_weft.options.as_ref()?;
    let cabled = live
        .fabric
        .iter()
        .flat_map(|(index, node)| node.cabled_ports().map(move |(port, _)| PortRef::new(index, port)));
    let links =
        cabled.filter_map(|port| live.port_info(port)).map(|info| info.operational_vls.lanes()).min()?;
    // Management's own lane is not the routing's.
    let management = given.management_lane && links > 1;
    let mut options = given.engine.clone();
    options.lanes = options.lanes.min(links - u8::from(management));
    let input = Input { fabric: &live.fabric, lids, options: &options };
    let routing = Engine::by_name(&engine.engine)?.route(&input).ok()?;
    let mut all = lids.iter().flat_map(PortLids::iter);
    let same = |lid: Lid| {
        let mut switches = live.fabric.switches();
        switches.all(|(node, _)| routing.routes.port(node, lid) == live.routes.port(node, lid))
    };
    all.all(same).then_some(routing)
}

/// The routing in force as far as it can be known, and the options of its engine. Of several lanes nothing is known where the tables are
/// others than the engine would make.
pub(crate) fn routing(lab: &Lab, live: &Surveyed, lids: &Lids) -> anyhow::Result<(Routing, EngineOptions)> {
    let by_weft = ByWeft::of(lab)?;
    let engine = by_weft.routing.as_ref().map_or("as found", |routing| routing.engine.as_str());
    let routing =
        in_force(live, lids, &by_weft).unwrap_or_else(|| Routing::on_one_lane(engine, live.routes.clone()));
    let options = by_weft.options.map(|options| options.engine).unwrap_or_default();
    let lanes = routing.report.lanes;
    Ok((routing, EngineOptions { lanes, ..options }))
}

/// A circle is a problem only where it was promised that there is none.
fn deadlock(verdict: &Verdict, by_weft: Option<&EngineReport>, by_lane: bool, report: &mut Report) {
    if verdict.lanes.is_empty() {
        return;
    }
    let lanes = by_weft.map(|routing| routing.lanes);
    let cycle = verdict.cycles.first();
    if let Some(cycle) = cycle {
        let engine = by_weft.and_then(|routing| Engine::by_name(&routing.engine));
        if (by_lane || lanes == Some(1)) && engine.is_some_and(|engine| engine.deadlock_free) {
            report.problems.push(format!("deadlock is possible: {cycle}"));
        } else {
            report.notes.push(format!("deadlock is possible if all packets take one lane: {cycle}"));
        }
    }
    let channels = verdict.lanes.iter().map(|lane| lane.channels).sum();
    let dependencies = verdict.lanes.iter().map(|lane| lane.dependencies).sum();
    let cycle = cycle.map(reported);
    report.deadlock = Some(Deadlock { channels, dependencies, lanes, by_lane, cycle });
}

/// A circle as reports have it.
fn reported(cycle: &weft_routing::Cycle) -> Cycle {
    let channel = |channel: &weft_routing::Channel| Channel {
        from: channel.from.clone(),
        exit: channel.exit,
        to: channel.to.clone(),
        entry: channel.entry,
        lane: channel.lane,
        pair: channel.pair.map(|pair| Pair { source: pair.source, destination: pair.destination }),
    };
    Cycle { channels: cycle.channels.iter().map(channel).collect() }
}
