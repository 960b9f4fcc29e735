//! Workloads of a simulated fabric, which can be mixed: faults, changes, traffic, machines, and judgments of what is left.
//!
//! ```text
//!   set_up of all ──▶ start of all ──▶ check of all, in the same order each
//! ```

#![allow(dead_code, reason = "not every test uses all of it")]

use weft_machine::Time;
use weft_sim::{Change, Fault, Process, Schedule, Simulation, Violation};
use weft_topology::PortRef;

use super::counts::Counts;

/// One of the things that happen in a run.
pub(crate) trait Workload {
    /// Before anything has happened.
    fn set_up(&mut self, _: &mut Simulation) -> Result<(), String> {
        Ok(())
    }

    /// Begins. It may let time pass, in which what has begun before it goes on.
    fn start(&mut self, _: &mut Simulation) -> Result<(), String> {
        Ok(())
    }

    /// After all have begun: waits for what it needs, judges and counts.
    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String>;
}

/// Carries out all of them in one run. The error is what is wrong first.
pub(crate) fn carry_out(
    simulation: &mut Simulation,
    workloads: &mut [&mut dyn Workload],
) -> Result<Counts, String> {
    let mut counts = Counts::default();
    workloads.iter_mut().try_for_each(|workload| workload.set_up(simulation))?;
    workloads.iter_mut().try_for_each(|workload| workload.start(simulation))?;
    workloads.iter_mut().try_for_each(|workload| workload.check(simulation, &mut counts))?;
    Ok(counts)
}

/// Violations in words.
pub(crate) fn all(violations: Vec<Violation>) -> String {
    violations.into_iter().map(|violation| violation.to_string()).collect::<Vec<_>>().join("\n  ")
}

/// The fabric comes to rest by some time.
pub(crate) struct Rest(pub(crate) Time);

impl Workload for Rest {
    fn check(&mut self, simulation: &mut Simulation, _: &mut Counts) -> Result<(), String> {
        simulation.run_until_quiet(self.0).map(drop).map_err(|error| error.to_string())
    }
}

/// The faults and changes of a schedule. Ends count lost links, and switches tell their manager.
pub(crate) struct Faults<'a>(pub(crate) &'a Schedule);

impl Faults<'_> {
    fn count(&self, counts: &mut Counts) {
        let mut add = |name, wanted: &dyn Fn(&Fault) -> bool| {
            counts.add(name, self.0.faults.iter().filter(|(_, fault)| wanted(fault)).count() as u64);
        };
        let is_cut = |port| self.0.faults.iter().any(|(_, fault)| *fault == Fault::LinkDown(port));
        add("kills", &|fault| matches!(fault, Fault::Kill(Process::Agent(_))));
        add("restarts", &|fault| matches!(fault, Fault::Restart(Process::Agent(_))));
        add("flaps", &|fault| matches!(fault, Fault::LinkUp(port) if is_cut(*port)));
        add("manager deaths", &|fault| *fault == Fault::Kill(Process::Sm));
    }
}

impl Workload for Faults<'_> {
    fn set_up(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        self.0.begin(simulation);
        Ok(())
    }

    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
        let (pending, statistics) = (simulation.link_losses_pending(), simulation.statistics());
        if pending > 0 || statistics.link_losses_unnoticed > 0 {
            return Err(format!(
                "a lost link was not counted or not told: {pending} pending, {statistics:?}"
            ));
        }
        self.count(counts);
        counts.add("losses", statistics.lost);
        counts.add("late", statistics.delayed);
        counts.add("brief", statistics.link_losses_brief);
        Ok(())
    }
}

/// What the devices hold is right: tables lead everywhere.
pub(crate) struct Tables;

impl Workload for Tables {
    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
        counts.add("nodes", simulation.check().map_err(all)?.nodes as u64);
        let at_switch = simulation.fabric().node(simulation.sm_port().node).is_switch();
        counts.add("at switch", at_switch.into());
        counts.add("overflows", simulation.vl15_dropped());
        Ok(())
    }
}

/// The master knows exactly what is there.
pub(crate) struct Picture;

impl Workload for Picture {
    fn check(&mut self, simulation: &mut Simulation, _: &mut Counts) -> Result<(), String> {
        simulation.check_picture().map_err(all)
    }
}

/// LIDs are those of a fresh start of the fabric that is left, which may take some time.
pub(crate) struct FreshStart {
    pub(crate) seed: u64,
    pub(crate) patience: Time,
}

impl Workload for FreshStart {
    fn check(&mut self, simulation: &mut Simulation, _: &mut Counts) -> Result<(), String> {
        let now = simulation.snapshot();
        let fresh = simulation.fresh_snapshot(self.seed, self.patience);
        let fresh = fresh.map_err(|error| format!("a fresh start: {error}"))?;
        if now.lids == fresh.lids {
            return Ok(());
        }
        Err(format!("LIDs are not a fresh start's: {:?}\n  {:?}", now.lids, fresh.lids))
    }
}

/// All pairs exchange packets.
pub(crate) struct Pairs;

impl Workload for Pairs {
    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
        counts.add("pairs", simulation.probe().map_err(all)?);
        Ok(())
    }
}

/// All managers die, the one that was in charge begins again, and writes nothing: tables depend on history, and a new manager leaves
/// those alone that hold. It may take some time to come to rest.
pub(crate) struct NewManager(pub(crate) Time);

impl Workload for NewManager {
    fn check(&mut self, simulation: &mut Simulation, _: &mut Counts) -> Result<(), String> {
        let place = simulation.sm_port();
        let standbys: Vec<PortRef> =
            simulation.options().standbys.iter().map(|standby| standby.port).collect();
        let writes = simulation.lft_writes();
        simulation.apply(Fault::Kill(Process::Sm));
        (0..standbys.len() as u8).for_each(|number| simulation.apply(Fault::Kill(Process::Standby(number))));
        simulation.run_until(simulation.now() + Time::from_secs(1));
        simulation.apply(Fault::Restart(match standbys.iter().position(|standby| *standby == place) {
            Some(number) => Process::Standby(number as u8),
            None => Process::Sm,
        }));
        let patience = simulation.now() + self.0;
        simulation.run_until_quiet(patience).map_err(|error| format!("a new manager: {error}"))?;
        match simulation.lft_writes() - writes {
            0 => Ok(()),
            more => Err(format!("a new manager wrote {more} blocks")),
        }
    }
}

/// Every request to a node has one answer; where refusals count, none was refused.
pub(crate) struct Requests {
    pub(crate) refusals_count: bool,
}

impl Workload for Requests {
    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
        let requests = simulation.requests();
        let refused = self.refusals_count && requests.refused > 0;
        if requests.open() > 0 || requests.unasked > 0 || requests.lost > 0 || refused {
            return Err(format!("not one answer to each request: {requests:?}"));
        }
        counts.add("requests", requests.answered);
        Ok(())
    }
}

/// How often each kind of change was made.
pub(crate) fn count_change(counts: &mut Counts, change: Change) {
    counts.one(match change {
        Change::Remove(_) => "removed",
        Change::Add(_) => "added",
        Change::Connect(_) => "connected",
        Change::Disconnect(_) => "disconnected",
    });
}
