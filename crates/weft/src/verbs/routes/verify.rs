//! `weft routes verify`

use std::collections::BTreeSet;
use std::fmt;
use std::process::ExitCode;

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::topology_file;
use weft_lab::loads;
use weft_routing::{
    Expectations, Lids, Report, Routing, TransitionVerdict, Verdict, verify, verify_routing,
    verify_transition,
};
use weft_topology::{Fabric, PortRef};
use weft_wire::count_of;

use super::folder::{self, Saved};
use super::{in_pool, while_saying};
use crate::cli::routes::VerifyArgs;
use crate::drawing;
use crate::engine_options::{load_partitions, management_nodes};
use crate::output::{print, print_json};

/// What was found, for programs.
#[derive(Serialize)]
struct Found<'a> {
    /// The engine, where the folder tells.
    engine: &'a str,
    sound: bool,
    /// Nothing where that depends on service levels which are unknown.
    deadlock_free: Option<bool>,
    minimal: bool,
    /// What the engine says of paths of hosts that go up after they went down: then they are no failure.
    turns_told: Option<&'a str>,
    /// How many ports of hosts have a cable and no LID.
    without_lid: usize,
    #[serde(flatten)]
    verdict: &'a Verdict,
    transition: Option<&'a TransitionVerdict>,
}

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    args.picture.as_deref().map(drawing::format_of).transpose()?;
    let fabric = folder::covered(&args.folder, topology_file::load(&args.file)?)?;
    let Saved { lids, routing, mut levels_known } = folder::read(&args.folder, &fabric)?;
    let old = args.from.as_ref().map(|folder| folder::read(folder, &fabric)).transpose()?;
    levels_known &= old.as_ref().is_none_or(|old| old.levels_known);
    if old.as_ref().is_some_and(|old| old.lids != lids) {
        return Err(Failure::bad_input("the two routings are for different LIDs")
            .hint("compute the new one with --lids and the old one's guid2lid"));
    }
    let partitions = args.partitions.as_ref().map(|path| load_partitions(path, &fabric)).transpose()?;
    // Who tells ranks claims to go up and then down.
    let tree = routing.ranks.is_some();
    let named = args.management_nodes.as_ref().map(|list| management_nodes(list, Some(&fabric)));
    let named = named.transpose()?.unwrap_or_default();
    let partitions = partitions.as_ref();
    let (lanes, management_nodes) = (args.lanes, &named[..]);
    let expectations = Expectations { partitions, tree, lanes, management_nodes, levels_known };
    let found = while_saying("verifying", || {
        in_pool(args.threads, || {
            Verified::new(&fabric, &lids, old.map(|old| old.routing), &routing, &expectations)
        })
    })?;
    if let Some(path) = &args.picture {
        let (file, saved) = (args.file.display(), args.folder.display());
        let loads = loads::loads(&fabric, &lids, &routing.routes);
        let end = loads::most(&fabric, &loads);
        let title = format!("{file}: load by the tables of {saved}");
        drawing::write(
            path,
            &fabric,
            &drawing::of_tables(title, &fabric, &loads, end, Some(&found.verdict)),
        )?;
    }
    if args.json {
        print_json(&Found {
            engine: &routing.report.engine,
            sound: found.is_sound(),
            deadlock_free: (!found.verdict.levels_unknown).then(|| found.is_deadlock_free()),
            minimal: found.verdict.reach.is_minimal(),
            turns_told: found.turns_told.as_deref(),
            without_lid: found.without_lid.len(),
            verdict: &found.verdict,
            transition: found.transition.as_ref().map(|(_, transition)| transition),
        })?;
    } else {
        print(&found.to_string())?;
    }
    Ok(if found.is_sound() && found.is_deadlock_free() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A routing that has been looked at, and the way to it from another one, whose reach is known too.
struct Verified {
    verdict: Verdict,
    /// What the engine says of paths of hosts that go up after they went down.
    turns_told: Option<String>,
    /// The ports of hosts that have a cable and no LID, by name: nothing is proved of them.
    without_lid: Vec<String>,
    transition: Option<(Report, TransitionVerdict)>,
}

impl Verified {
    fn new(
        fabric: &Fabric,
        lids: &Lids,
        old: Option<Routing>,
        new: &Routing,
        expectations: &Expectations<'_>,
    ) -> Self {
        let transition = |old: Routing| {
            let reach = verify(fabric, lids, &old.routes, expectations.management_nodes);
            (reach, verify_transition(fabric, lids, &old, new, expectations.lanes))
        };
        Self {
            verdict: verify_routing(fabric, lids, new, expectations),
            turns_told: new.report.turns().map(str::to_owned),
            without_lid: without_lid(fabric, lids),
            transition: old.map(transition),
        }
    }

    /// Whether every host has a LID, every packet of hosts arrives, none is dropped, and what is expected holds. Ways
    /// between switches where no host is may be missing, as up/down routing has none that would go up after down. Hosts'
    /// ways may go up after down where the engine tells of that and no packets can wait for each other for ever.
    fn is_sound(&self) -> bool {
        let Verdict { reach, drops, turns, isolation, .. } = &self.verdict;
        let arrives = self.without_lid.is_empty() && reach.serves_hosts() && drops.pairs == 0;
        let keeps = turns.as_ref().is_none_or(|turns| turns.is_legal() || self.turns_are_harmless())
            && isolation.as_ref().is_none_or(|isolation| isolation.breaches == 0);
        let transition = self.transition.as_ref();
        let changes =
            transition.is_none_or(|(old, transition)| old.serves_hosts() && transition.serves_hosts());
        arrives && keeps && changes
    }

    /// Whether the engine tells of paths that go up after they went down, and they close no circle.
    fn turns_are_harmless(&self) -> bool {
        self.turns_told.is_some() && self.verdict.is_deadlock_free()
    }

    fn is_deadlock_free(&self) -> bool {
        let transition = self.transition.as_ref();
        self.verdict.is_deadlock_free()
            && transition.is_none_or(|(_, transition)| transition.is_deadlock_free())
    }
}

/// The ports of hosts and routers that have a cable and no LID, by name.
fn without_lid(fabric: &Fabric, lids: &Lids) -> Vec<String> {
    let served: BTreeSet<PortRef> = lids.iter().map(|lids| lids.port).collect();
    let mut names = Vec::new();
    for (index, node) in fabric.iter().filter(|(_, node)| !node.is_switch()) {
        let cabled = node.end_ports().filter(|(_, port)| port.peer.is_some());
        let ports = cabled.map(|(number, _)| PortRef::new(index, number));
        names.extend(
            ports.filter(|port| !served.contains(port)).map(|port| fabric.port_name(port).to_string()),
        );
    }
    names
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict)?;
        let between = self.verdict.reach.between_switches;
        if between > 0 {
            writeln!(
                f,
                "{between} of the failures are ways between switches that no packet of a host takes"
            )?;
        }
        let has_turns = self.verdict.turns.as_ref().is_some_and(|turns| turns.hosts > 0);
        if let Some(sentence) = self.turns_told.as_ref().filter(|_| has_turns && self.turns_are_harmless()) {
            writeln!(f, "that is what the engine says, and it deadlocks no lane: {sentence}")?;
        }
        if let Some(first) = self.without_lid.first() {
            let count = count_of(self.without_lid.len(), "cabled host port");
            writeln!(f, "NOT PROVED: {count} without a LID, the first is {first}")?;
        }
        if self.verdict.levels_unknown {
            writeln!(
                f,
                "hint: OpenSM writes no levels; write those of its path records into ibdmchk.psl in this folder"
            )?;
        }
        let unattached = self.verdict.reach.unattached;
        if unattached > 0 {
            let count = count_of(unattached as usize, "LID");
            writeln!(f, "{count} of ports that no switch is cabled to, so that nothing is known of them")?;
        }
        match &self.transition {
            Some((_, transition)) => writeln!(f, "while switches change, in any order:\n{transition}"),
            None => Ok(()),
        }
    }
}
