//! Schedules on the laboratory that runs. Nothing but its own processes is touched.

use std::collections::BTreeSet;
use std::process::Child;
use std::time::{Duration, Instant};

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::folder::front::Work;
use weft_bundle::record::LabRecord;
use weft_chaos::{Laboratory, Scope, draw, ends_at, steps};
use weft_control::fault::FaultId;
use weft_experiment::Beside;
use weft_fault::{Fault, FaultCost, Nodes, Presented, Process};
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_lab::view::Lab;
use weft_lab::{check, faults, site};
use weft_machine::Time;
use weft_process::{readable, utc_now};
use weft_topology::{Fabric, NodeIndex, PortRef};

use super::leaks::{Holdings, Soak};
use super::{Options, Outcome, Place, Replay, Step, Violation, found};

/// How long a fabric may take to be whole again after the last fault of a schedule.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// How long a fault of a replayed schedule lasts that says nothing of it.
const LASTS: Time = Time::from_secs(1);
/// Smaller schedules that are tried: each takes seconds.
const TRIES: u32 = 24;

/// The schedule of a seed, of what was planned: whatever sits in slots of virtual machines now.
pub(super) fn drawn(folder: &LabFolder, seed: u64) -> anyhow::Result<(Fabric, Vec<Step>)> {
    let Lab { record, fabric, .. } = Lab::load(folder)?;
    let Beside { pm, standbys, .. } = beside(&record);
    let laboratory = Laboratory { standbys, pm, vmm: !record.vmms.is_empty() };
    let slots = record.slots().filter(|_| record.empty_slots);
    let slots: Vec<NodeIndex> = slots.filter_map(|(_, slot)| fabric.by_guid(slot.guid)).collect();
    let schedule = draw(&fabric, seed, &Scope::of(laboratory, &slots));
    Ok((fabric, schedule))
}

/// What a laboratory has, to be replayed in virtual time. Its cabling has its vSwitches already.
fn beside(record: &LabRecord) -> Beside {
    let standbys = record.subnet_managers().count().saturating_sub(1);
    Beside {
        pm: !record.pms.is_empty(),
        standbys: u8::try_from(standbys).unwrap_or(u8::MAX),
        vfs: None,
        is_dynamic: record.empty_slots,
        vmm: !record.vmms.is_empty(),
    }
}

fn place<'a>(fabric: &'a Fabric, beside: Beside, options: &'a Options) -> Place<'a> {
    Place { fabric, cabling: fabric, beside, report: options.report.as_deref() }
}

pub(super) fn run(
    folder: &LabFolder,
    options: &Options,
    replay: Option<&Replay>,
    work: Box<dyn Work>,
) -> anyhow::Result<Outcome> {
    let lab = Lab::load_live(folder)?;
    if lab.record.sm.is_none() {
        return Err(Failure::new("this laboratory has no subnet manager, so nothing heals")
            .hint("start one without --no-sm"));
    }
    let mut chaos = Chaos::begin(lab, work)?;
    let seed = replay.map_or(options.seed, |replay| replay.file.seed);
    let mut outcome = Outcome { seed, ok: true, ..Outcome::default() };
    let (began, until) = (utc_now().as_nanos(), Instant::now() + options.lasts);
    let cost = |lab: &Lab| -> anyhow::Result<FaultCost> {
        let mut times = faults::times::of(lab)?;
        times.retain(|times| times.began_ns >= began);
        Ok(FaultCost::of(&times))
    };
    loop {
        let seed = seed + outcome.schedules;
        let schedule = match replay {
            Some(replay) => replay.in_fabric(&chaos.lab.fabric)?,
            None => drawn(folder, seed)?.1,
        };
        let left = until.saturating_duration_since(Instant::now()).as_secs();
        chaos.work.is_at(&|| format!("schedule {}, seed {seed}, {left} s left", outcome.schedules + 1));
        outcome.schedules += 1;
        outcome.faults += schedule.len() as u64;
        let violation = chaos.judge(&schedule)?;
        if chaos.interrupted {
            outcome.interrupted = true;
            return Ok(outcome);
        }
        if let Some(what) = violation {
            outcome.ok = false;
            outcome.violation = Some(chaos.shrink(options, Violation { seed, schedule, what })?);
            return Ok(outcome);
        }
        if let Some(what) = chaos.grown()? {
            outcome.ok = false;
            // Many schedules have done that, and no part of this one alone.
            let planned = Lab::load(folder)?;
            let place = place(&planned.fabric, beside(&planned.record), options);
            outcome.violation = Some(found(place, Violation { seed, schedule, what }, 0, |_| None)?);
            return Ok(outcome);
        }
        // The hub remembers what was lately; the worst of all is kept.
        outcome.cost = outcome.cost.later(cost(&chaos.lab)?);
        if replay.is_some() || Instant::now() >= until {
            return Ok(outcome);
        }
    }
}

/// A fault, or the nearest to it that can be done: without the authority's key no identity is issued, nor is one for a remote agent,
/// and an agent that no peer takes is apart from the others.
fn possible(lab: &Lab, fault: Fault<NodeIndex, PortRef>) -> Fault<NodeIndex, PortRef> {
    let issues = site::of(&lab.folder).is_ok_and(|site| site.allows("fault bad-identity").is_ok())
        && lab.folder.bundle().authority_key().exists();
    match fault {
        Fault::BadIdentity(Presented { node, .. }) if !issues => {
            let of_agent = lab.record.device(lab.fabric.node(node).guid);
            let devices = of_agent.map(|(agent, _)| agent.devices.as_slice()).unwrap_or_default();
            let nodes = devices.iter().filter_map(|device| lab.fabric.by_guid(device.guid));
            Fault::Partition(Nodes(nodes.collect()))
        }
        fault => fault,
    }
}

/// How long a fault of a schedule lasts.
fn lasts_of(schedule: &[Step], at: Time, fault: &Fault<NodeIndex, PortRef>) -> Duration {
    let planned = schedule.iter().find(|planned| planned.at == at && planned.fault == *fault);
    Duration::from_nanos(planned.and_then(|planned| planned.lasts).unwrap_or(LASTS).as_nanos())
}

struct Chaos {
    lab: Lab,
    first: Holdings,
    soak: Soak,
    signals: Signals,
    work: Box<dyn Work>,
    /// Counts faults, for their ids.
    faults: u64,
    /// Nothing was wrong with the laboratory before the first fault.
    was_whole: bool,
    interrupted: bool,
    /// What was killed and has not been started again.
    dead: BTreeSet<Process<NodeIndex>>,
    /// What was started, to be waited for when it ends.
    children: Vec<Child>,
}

impl Chaos {
    /// On a laboratory that is whole.
    fn begin(lab: Lab, work: Box<dyn Work>) -> anyhow::Result<Self> {
        let first = Holdings::of(&lab)?;
        let signals = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
        let (dead, children) = (BTreeSet::new(), Vec::new());
        let (faults, was_whole, interrupted) = (0, false, false);
        let soak = Soak::default();
        let mut chaos =
            Self { lab, first, soak, signals, work, faults, was_whole, interrupted, dead, children };
        if let Some(what) = chaos.heals(Instant::now() + PATIENCE)? {
            return Err(Failure::new(format!(
                "the laboratory is broken before anything is done to it: {what}"
            ))
            .hint("`weft check` tells more, and `weft fault ls` which faults last"));
        }
        chaos.was_whole = true;
        Ok(chaos)
    }

    /// A process whose memory has grown from schedule to schedule, now that all have healed.
    fn grown(&mut self) -> anyhow::Result<Option<String>> {
        self.soak.note(&Holdings::of(&self.lab)?);
        Ok(self.soak.leak())
    }

    /// Waits; false once somebody interrupts.
    fn wait_until(&mut self, at: Instant) -> anyhow::Result<bool> {
        while !self.interrupted {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(true);
            }
            self.interrupted = readable(&self.signals, Some(left))? && self.signals.arrived();
        }
        Ok(false)
    }

    /// Carries out a schedule, and says what is wrong when it has ended.
    fn judge(&mut self, schedule: &[Step]) -> anyhow::Result<Option<String>> {
        let began = Instant::now();
        let done = self.carry_out(schedule, began);
        // Whatever went wrong, nothing stays dead.
        let started = self.start_the_dead();
        if let Some(what) = done?.or_else(|| started.err().map(|error| format!("{error:#}"))) {
            return Ok(Some(what));
        }
        let ends = began + Duration::from_nanos(ends_at(schedule).as_nanos());
        if !self.wait_until(ends)? {
            return Ok(None);
        }
        self.heals(Instant::now() + PATIENCE)
    }

    /// Carries out all steps. What goes wrong after the first is the schedule's doing, so it is a finding.
    fn carry_out(&mut self, schedule: &[Step], began: Instant) -> anyhow::Result<Option<String>> {
        for (nth, (at, fault)) in steps(schedule).into_iter().enumerate() {
            if !self.wait_until(began + Duration::from_nanos(at.as_nanos()))? {
                return Ok(None);
            }
            let lasts = lasts_of(schedule, at, &fault);
            match self.step(fault, lasts) {
                Err(error) if nth > 0 => return Ok(Some(format!("{error:#}"))),
                done => done?,
            }
        }
        Ok(None)
    }

    fn step(&mut self, fault: Fault<NodeIndex, PortRef>, lasts: Duration) -> anyhow::Result<()> {
        let lab = &self.lab;
        let goes_by_hub = site::of(&lab.folder)?.goes_by_hub();
        let name = |process: Process<NodeIndex>| process.map(|node| lab.fabric.node(node).id.clone());
        match fault {
            // Without it nothing else could be done, so it is started again at once.
            Fault::Kill(Process::Hub) if goes_by_hub => {
                self.children.extend(faults::restart(lab, &Process::Hub)?);
            }
            Fault::Restart(Process::Hub) if goes_by_hub => {}
            Fault::Kill(process) => {
                self.dead.insert(process);
                faults::kill(lab, &name(process))?;
            }
            Fault::Restart(process) => {
                let process_name = name(process);
                let again = if self.dead.contains(&process) {
                    faults::revive(lab, &process_name)?
                } else {
                    faults::restart(lab, &process_name)?
                };
                self.children.extend(again);
                self.dead.remove(&process);
            }
            Fault::Freeze(process) if !matches!(process, Process::Agent(_)) => {
                self.children.extend(faults::freeze_if_running(lab, &name(process), lasts)?);
            }
            // Agents end by themselves what lasts.
            fault if fault.end().is_some() => {
                let fault = possible(lab, fault);
                if let Fault::BadIdentity(Presented { node, identity }) = &fault {
                    faults::planned::issue_bad(lab, *node, *identity, &lab.folder.bundle())?;
                }
                self.faults += 1;
                let id: FaultId = format!("chaos-{}-{}", std::process::id(), self.faults).parse()?;
                faults::planned::set(lab, &id, &fault, lasts)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Starts all that was killed. The first that cannot be started keeps none of the others dead.
    fn start_the_dead(&mut self) -> anyhow::Result<()> {
        let mut first = Ok(());
        for process in std::mem::take(&mut self.dead) {
            let name = process.map(|node| self.lab.fabric.node(node).id.clone());
            match faults::revive(&self.lab, &name) {
                Ok(child) => self.children.extend(child),
                Err(error) => {
                    self.dead.insert(process);
                    first = first.and(Err(error));
                }
            }
        }
        first
    }

    /// Looks until nothing is wrong; what is wrong still at a deadline.
    fn heals(&mut self, deadline: Instant) -> anyhow::Result<Option<String>> {
        loop {
            let wrong = match self.wrong() {
                // Of a laboratory that was whole it says something that it cannot be looked at.
                Err(error) if self.was_whole => Some(format!("{error:#}")),
                wrong => wrong?,
            };
            if wrong.is_none() || Instant::now() >= deadline {
                return Ok(wrong);
            }
            if !self.wait_until(Instant::now() + LOOK)? {
                return Ok(None);
            }
        }
    }

    /// The first thing that is wrong now.
    fn wrong(&mut self) -> anyhow::Result<Option<String>> {
        self.children.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
        let now = Holdings::of(&self.lab)?;
        if let Some(name) = now.missing(&self.first) {
            return Ok(Some(format!("process {name} does not run")));
        }
        if let Some(id) = faults::lasting::any(&self.lab)? {
            return Ok(Some(format!("fault {id} lasts still")));
        }
        if let Some(what) = check::first_problem(&self.lab)? {
            return Ok(Some(what));
        }
        if let Some(node) = faults::planned::unsound_account(&self.lab)? {
            return Ok(Some(format!("the packets of {node} are not all accounted for")));
        }
        Ok(now.leak(&self.first).or_else(|| now.stray(&self.lab)))
    }

    /// Makes a schedule smaller on a laboratory that heals between the tries; one that does not is left as it is.
    fn shrink(&mut self, options: &Options, violation: Violation) -> anyhow::Result<super::Found> {
        // Whatever machines sit in its slots: they follow from no file.
        let Lab { fabric, record, .. } = Lab::load(&self.lab.folder)?;
        let beside = beside(&record);
        let (mut broken, drawn) = (None, violation.schedule.len());
        let fails = |smaller: &[Step]| {
            if broken.is_some() || self.interrupted {
                return None;
            }
            let (faults, drawn) = (smaller.len(), drawn);
            self.work.is_at(&|| format!("shrinking: {faults} of {drawn} faults"));
            // What cannot be started again stays dead, so nothing heals.
            let healed = self.start_the_dead().and_then(|()| self.heals(Instant::now() + PATIENCE));
            match healed.and_then(|wrong| match wrong {
                Some(what) => anyhow::bail!("it does not heal: {what}"),
                None => self.judge(smaller),
            }) {
                Ok(wrong) => wrong,
                Err(error) => {
                    broken = Some(error);
                    None
                }
            }
        };
        let place = place(&fabric, beside, options);
        let found = found(place, violation, TRIES, fails)?;
        if let Some(error) = broken {
            self.lab.folder.say(&format!("no smaller schedule was tried after this: {error:#}"));
        }
        Ok(found)
    }
}
