//! `weft routes verify`

use std::fmt;
use std::process::ExitCode;

use serde::Serialize;
use weft_routing::{
    Expectations, Lids, Report, Routing, TransitionVerdict, Turns, Verdict, verify, verify_routing,
    verify_transition,
};
use weft_topology::Fabric;

use super::{folder, in_pool, while_saying};
use crate::cli::VerifyArgs;
use crate::engine_options::load_partitions;
use crate::failure::Failure;
use crate::output::{print, print_json};
use crate::topology_file;

/// What was found, for programs.
#[derive(Serialize)]
struct Found<'a> {
    /// The engine, where the folder tells.
    engine: &'a str,
    sound: bool,
    deadlock_free: bool,
    minimal: bool,
    #[serde(flatten)]
    verdict: &'a Verdict,
    transition: Option<&'a TransitionVerdict>,
}

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let fabric = topology_file::load(&args.file)?;
    let (lids, routing) = folder::read(&args.folder, &fabric)?;
    let old = args.from.as_ref().map(|folder| folder::read(folder, &fabric)).transpose()?;
    if old.as_ref().is_some_and(|(old, _)| *old != lids) {
        return Err(Failure::bad_input("the two routings are for different LIDs")
            .hint("compute the new one with --lids and the old one's guid2lid")
            .into());
    }
    let partitions = args.partitions.as_ref().map(|path| load_partitions(path, &fabric)).transpose()?;
    // Who tells ranks claims to go up and then down.
    let tree = routing.ranks.is_some();
    let expectations = Expectations { partitions: partitions.as_ref(), tree, lanes: args.lanes };
    let found = while_saying("verifying", || {
        in_pool(args.threads, || {
            Verified::new(&fabric, &lids, old.map(|(_, old)| old), &routing, &expectations)
        })
    })?;
    if args.json {
        print_json(&Found {
            engine: &routing.report.engine,
            sound: found.is_sound(),
            deadlock_free: found.is_deadlock_free(),
            minimal: found.verdict.reach.is_minimal(),
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
            let reach = verify(fabric, lids, &old.routes);
            (reach, verify_transition(fabric, lids, &old, new, expectations.lanes))
        };
        Self { verdict: verify_routing(fabric, lids, new, expectations), transition: old.map(transition) }
    }

    /// Whether every packet of hosts arrives, none is dropped, and what is expected holds. Ways between switches where
    /// no host is may be missing, as up/down routing has none that would go up after down.
    fn is_sound(&self) -> bool {
        let Verdict { reach, drops, turns, isolation, .. } = &self.verdict;
        let arrives = reach.serves_hosts() && drops.pairs == 0;
        let keeps = turns.as_ref().is_none_or(Turns::is_legal)
            && isolation.as_ref().is_none_or(|isolation| isolation.breaches == 0);
        let transition = self.transition.as_ref();
        let changes =
            transition.is_none_or(|(old, transition)| old.serves_hosts() && transition.serves_hosts());
        arrives && keeps && changes
    }

    fn is_deadlock_free(&self) -> bool {
        let transition = self.transition.as_ref();
        self.verdict.is_deadlock_free()
            && transition.is_none_or(|(_, transition)| transition.is_deadlock_free())
    }
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
        match &self.transition {
            Some((_, transition)) => writeln!(f, "while switches change, in any order:\n{transition}"),
            None => Ok(()),
        }
    }
}
