//! The launcher's loop: starts the processes, listens to what they report, ends when the fabric is up.

mod stuck;

use std::collections::BTreeMap;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::epoll;
use weft_umad::launch::{SubnetUp, ToLauncher};

use super::admission::Admission;
use super::folder::{LabFolder, Place};
use super::names::{IBSIM, PM, SM};
use super::progress::{Count, Goal, Phase, Phases};
use super::reporters::{Caller, Reporters};
use super::run::RunOptions;
use super::signals::{Interrupted, Signals};
use super::{process, record::LabRecord, restart, teardown};
use crate::failure::{self, Failure};

const LISTENER: u64 = 0;
const INTERRUPT: u64 = 1;
const CHILD_ENDED: u64 = 2;
const FIRST_CONNECTION: u64 = 3;

/// When nothing has come of those that dial for so long, others may.
const STALL: Duration = Duration::from_millis(500);

/// As many as taking a laboratory down opens at once, with room to spare.
const SPARE_DESCRIPTORS: usize = 8;

/// A laboratory while it starts.
#[derive(Debug)]
pub(crate) struct Launcher<'a> {
    lab: &'a LabFolder,
    record: &'a LabRecord,
    goal: Goal,
    epoll: std::os::fd::OwnedFd,
    reporters: Reporters,
    interrupt: Signals,
    child_ended: Signals,
    children: Vec<(String, Child)>,
    ready: BTreeMap<String, u64>,
    admission: Admission,
    links: BTreeMap<String, Count>,
    /// Whether the server of ibsim's protocol serves, or none is wanted.
    ibsim_ready: bool,
    /// The same of the performance manager.
    pm_ready: bool,
    sm_token: Option<u64>,
    sm_started: Option<Duration>,
    subnet_up: Option<(Duration, SubnetUp)>,
    phases: Phases,
    /// The goal was reached once. What happens to the laboratory afterwards is the user's doing.
    came_up: bool,
    /// All runs, but the goal is out of reach.
    gave_up: bool,
    released: bool,
    /// Descriptors that clearing up will need: a limit of open files may be what ends the start.
    spare: Vec<std::os::fd::OwnedFd>,
}

impl<'a> Launcher<'a> {
    /// Listens, starts nothing yet. The signals must have been taken over before.
    pub(crate) fn new(
        lab: &'a LabFolder,
        record: &'a LabRecord,
        goal: Goal,
        interrupt: Signals,
        phases: Phases,
    ) -> anyhow::Result<Self> {
        let reporters = Reporters::listen(&lab.place(Place::Launch), FIRST_CONNECTION)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot make an epoll")?;
        let child_ended = Signals::watch(&[signal_hook::consts::SIGCHLD])?;
        let spare = (0..SPARE_DESCRIPTORS).map(|_| epoll.try_clone()).collect::<std::io::Result<_>>();
        let spare = spare.context("too few files can be open")?;
        let launcher = Self {
            lab,
            record,
            goal,
            epoll,
            reporters,
            interrupt,
            child_ended,
            children: Vec::new(),
            ready: BTreeMap::new(),
            admission: Admission::new(std::thread::available_parallelism().map_or(1, usize::from)),
            links: BTreeMap::new(),
            ibsim_ready: record.ibsim.is_none(),
            pm_ready: record.pm.is_none(),
            sm_token: None,
            sm_started: None,
            subnet_up: None,
            phases,
            came_up: false,
            gave_up: false,
            released: false,
            spare,
        };
        launcher.watch(launcher.reporters.listener(), LISTENER)?;
        launcher.watch(&launcher.interrupt, INTERRUPT)?;
        launcher.watch(&launcher.child_ended, CHILD_ENDED)?;
        Ok(launcher)
    }

    /// Starts every process and returns when the goal is reached.
    pub(crate) fn bring_up(&mut self) -> anyhow::Result<()> {
        let launch = self.lab.place(Place::Launch);
        let run = RunOptions::load(self.lab)?;
        let total = self.record.agents.len() as u64;
        self.phases.set(Phase::AgentsStarted, Count { done: 0, total });
        for agent in &self.record.agents {
            let child = process::spawn(self.lab, &run, (crate::AGENT, &agent.name), &launch)?;
            self.children.push((agent.name.clone(), child));
            self.turn(Some(Duration::ZERO))?; // Else those that report fill the listener's queue.
        }
        if self.record.sm.is_some() {
            let child = process::spawn(self.lab, &run, (SM, SM), &launch)?;
            self.children.push((SM.to_owned(), child));
        }
        if self.record.pm.is_some() {
            let child = process::spawn(self.lab, &run, (PM, PM), &launch)?;
            self.children.push((PM.to_owned(), child));
        }
        if self.record.ibsim.is_some() {
            let child = process::spawn(self.lab, &run, (IBSIM, IBSIM), &launch)?;
            self.children.push((IBSIM.to_owned(), child));
        }
        while !self.reached() {
            let left = self.goal.patience.saturating_sub(self.phases.moved().elapsed());
            if left.is_zero() {
                return Err(self.give_up(self.stuck()));
            }
            let moved = self.phases.moved();
            self.turn(Some(if self.admission.is_waiting() { left.min(STALL) } else { left }))?;
            if self.admission.is_waiting() && moved.elapsed() >= STALL && moved == self.phases.moved() {
                self.admission.stalled();
                self.admit();
            }
        }
        self.came_up = true;
        Ok(())
    }

    /// Gives the word to those whose turn it is.
    fn admit(&mut self) {
        while let Some(token) = self.admission.next() {
            self.reporters.go(token);
        }
    }

    /// Starts the subnet managers that stand by. The first one is in charge already. Where the laboratory is to be kept, one
    /// that does not start is reported and is no error: it may be what is looked into.
    pub(crate) fn start_standbys(&mut self) -> anyhow::Result<()> {
        match self.start_all_standbys() {
            Err(error) if self.goal.keep == Some(true) => {
                failure::report(&error);
                Ok(())
            }
            started => started,
        }
    }

    fn start_all_standbys(&mut self) -> anyhow::Result<()> {
        for (name, _) in self.record.subnet_managers().skip(1) {
            let started = restart::start(self.lab, SM, &name)?;
            self.children.push((name, started.child));
        }
        Ok(())
    }

    /// Serves reports until an interrupt.
    pub(crate) fn stay(&mut self) -> anyhow::Result<()> {
        loop {
            match self.turn(None) {
                Err(error) if error.is::<Interrupted>() => return Ok(()),
                turned => turned?,
            }
        }
    }

    /// Serves reports until a moment; an interrupt is an error.
    pub(crate) fn serve_until(&mut self, until: Instant) -> anyhow::Result<()> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            self.turn(Some(left))?;
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    /// Leaves the laboratory to itself: it goes on without a launcher.
    pub(crate) fn release(mut self) {
        self.released = true;
        // Agents that find the socket gone go on alone.
        let _ = std::fs::remove_file(self.lab.place(Place::Launch));
    }

    /// Kills what was started and waits for it.
    fn kill_children(&mut self) {
        self.phases.end();
        for (_, child) in &mut self.children {
            // One that has ended already is what we want.
            let _ = child.kill();
        }
        for (_, child) in &mut self.children {
            let _ = child.wait();
        }
        self.children.clear();
    }

    /// The phases and their times.
    pub(crate) fn phases(&self) -> &Phases {
        &self.phases
    }

    /// When the subnet manager reported, and what.
    pub(crate) fn subnet_up(&self) -> Option<&(Duration, SubnetUp)> {
        self.subnet_up.as_ref()
    }

    fn reached(&self) -> bool {
        let links = self.phases.finished(Phase::LinksUp).is_some();
        links && self.ibsim_ready && self.pm_ready && (self.goal.nodes.is_none() || self.subnet_up.is_some())
    }

    /// Waits for one round of events and handles them.
    fn turn(&mut self, timeout: Option<Duration>) -> anyhow::Result<()> {
        let timeout = timeout.map(|timeout| rustix::event::Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let mut events = Vec::with_capacity(256);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the laboratory's processes"),
        }
        for token in events.iter().map(|event| event.data.u64()) {
            match token {
                LISTENER => self.accept()?,
                INTERRUPT if self.interrupt.arrived() => return Err(Interrupted.into()),
                INTERRUPT => {}
                CHILD_ENDED => self.reap()?,
                token => self.read(token)?,
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> anyhow::Result<()> {
        let children = &self.children;
        let name = |pid| {
            let child = children.iter().find(|(_, child)| child.id() == pid);
            child.map(|(name, _)| name.clone())
        };
        loop {
            match self.reporters.accept(name) {
                Ok(None) => return Ok(()),
                Ok(Some(Caller::Process(token))) => {
                    if let Some(stream) = self.reporters.stream(token) {
                        self.watch(stream, token)?;
                    }
                }
                Ok(Some(Caller::Stranger(pid))) => self.hung_up(pid),
                // The laboratory needs no more reports: better deaf than ended, or busy with what cannot be taken.
                Err(error) if self.came_up => {
                    crate::output::say(&format!("listening on launch.sock no more: {error}"));
                    return epoll::delete(&self.epoll, self.reporters.listener()).context("cannot unwatch");
                }
                Err(error) => return Err(error).context("cannot accept reports of the agents"),
            }
        }
    }

    /// Says once that a stranger called. While bars are drawn nothing is said.
    fn hung_up(&self, pid: u32) {
        if self.came_up && self.reporters.refused() == 1 {
            crate::output::say(&format!("refused a connection of process {pid} to launch.sock"));
        }
    }

    fn read(&mut self, token: u64) -> anyhow::Result<()> {
        let messages = self.reporters.read(token);
        messages.into_iter().try_for_each(|message| self.take(token, message))
    }

    fn take(&mut self, token: u64, message: ToLauncher) -> anyhow::Result<()> {
        match message {
            ToLauncher::Ready { agent, .. } if agent == SM => {
                self.sm_token = Some(token);
                if self.phases.finished(Phase::LinksUp).is_some() {
                    self.start_sm();
                }
            }
            ToLauncher::Ready { agent, .. } if agent == IBSIM => {
                self.ibsim_ready = true;
                self.reporters.go(token);
            }
            ToLauncher::Ready { agent, .. } if agent == PM => {
                self.pm_ready = true;
                self.reporters.go(token);
            }
            ToLauncher::Ready { agent, .. } => {
                self.ready.insert(agent, token);
                let total = self.record.agents.len() as u64;
                let done = self.ready.len() as u64;
                self.phases.set(Phase::AgentsStarted, Count { done, total });
                if done == total && self.phases.finished(Phase::AgentsStarted).is_none() {
                    self.phases.finish(Phase::AgentsStarted, self.phases.elapsed());
                    self.admission.line_up(self.ready.clone());
                    self.admit();
                    self.links_changed();
                }
            }
            ToLauncher::Links { agent, up, total, to_dial } => {
                if to_dial == 0 {
                    self.admission.done(&agent);
                    self.admit();
                }
                self.links.insert(agent, Count { done: up.into(), total: total.into() });
                self.links_changed();
            }
            ToLauncher::Progress(progress) => {
                let count = |(done, total): (u32, u32)| Count { done: done.into(), total: total.into() };
                let nodes = Count { done: progress.nodes.into(), total: self.goal.nodes.unwrap_or(0) };
                self.phases.set(Phase::NodesDiscovered, nodes);
                self.phases.set(Phase::Lids, count(progress.lids));
                self.phases.set(Phase::Tables, count(progress.tables));
                self.phases.set(Phase::PortsActive, count(progress.ports_active));
            }
            ToLauncher::SubnetUp(report) => self.take_subnet_up(report),
            ToLauncher::NotRouted { reason, nodes } => {
                // With more nodes to come, the next sweep may find what an engine can route.
                let all = self.goal.nodes.is_some_and(|expected| u64::from(nodes) >= expected);
                if all && !self.came_up {
                    let failure =
                        Failure::new(format!("the subnet manager cannot route this fabric: {reason}"));
                    return Err(self.give_up(failure));
                }
            }
            ToLauncher::Failed { .. } if self.came_up => {}
            ToLauncher::Failed { agent, reason } => {
                let who = self.who(&agent);
                return Err(Failure::new(format!("{who} failed: {reason}"))
                    .hint("nothing is left running")
                    .into());
            }
        }
        Ok(())
    }

    fn links_changed(&mut self) {
        let done = self.links.values().map(|count| count.done).sum();
        let count = Count { done, total: self.goal.cable_ends };
        self.phases.set(Phase::LinksUp, count);
        let all = done >= count.total && self.phases.finished(Phase::AgentsStarted).is_some();
        if all && self.phases.finished(Phase::LinksUp).is_none() {
            self.phases.finish(Phase::LinksUp, self.phases.elapsed());
            self.start_sm();
        }
    }

    fn start_sm(&mut self) {
        let Some(token) = self.sm_token else { return };
        if self.sm_started.is_none() {
            self.sm_started = Some(self.phases.elapsed());
            self.reporters.go(token);
        }
    }

    /// Says what becomes of the laboratory.
    fn give_up(&mut self, failure: Failure) -> anyhow::Error {
        self.gave_up = true;
        let hint = match self.goal.keep {
            Some(true) => "the laboratory runs on: `weft status` tells more, `weft down` ends it",
            Some(false) => "nothing is left running; --keep keeps the laboratory",
            None => "nothing is left running",
        };
        failure.hint(hint).into()
    }

    /// Whether the laboratory is to run on although the goal is out of reach.
    pub(crate) fn is_kept(&self) -> bool {
        self.goal.keep == Some(true) && self.gave_up
    }

    fn take_subnet_up(&mut self, report: SubnetUp) {
        let nodes = u64::from(report.switches) + u64::from(report.hcas);
        // What it can reach may still grow: then it will report again.
        if self.subnet_up.is_some() || self.goal.nodes.is_some_and(|expected| nodes < expected) {
            return;
        }
        let up = self.phases.elapsed();
        let began =
            up.saturating_sub(Duration::from_micros(report.phases.last().map_or(0, |phase| phase.end_us)));
        for phase in [Phase::NodesDiscovered, Phase::Lids, Phase::Tables, Phase::PortsActive] {
            let name = match phase {
                Phase::NodesDiscovered => "discover",
                Phase::Lids => "assign",
                Phase::Tables => "program",
                _ => "activate",
            };
            let end = report.phases.iter().find(|end| end.phase == name).map_or(0, |end| end.end_us);
            self.phases.finish(phase, began + Duration::from_micros(end));
        }
        self.subnet_up = Some((up, report));
    }

    /// A process that ends before the goal is reached is a failure; later it is the user's doing.
    fn reap(&mut self) -> anyhow::Result<()> {
        self.child_ended.arrived();
        let mut failed = None;
        self.children.retain_mut(|(name, child)| match child.try_wait() {
            Ok(Some(status)) => {
                failed.get_or_insert((name.clone(), status));
                false
            }
            _ => true,
        });
        match failed {
            Some((name, status)) if !self.came_up => {
                let last = process::last_words(&self.lab.log(&name));
                let who = self.who(&name);
                Err(Failure::new(format!("{who} ended with {status}: {last}"))
                    .hint("nothing is left running")
                    .into())
            }
            _ => Ok(()),
        }
    }

    fn watch(&self, fd: impl std::os::fd::AsFd, token: u64) -> anyhow::Result<()> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)
            .context("cannot watch a socket")
    }
}

impl Drop for Launcher<'_> {
    /// A laboratory that was not released goes with its launcher, whatever ended that.
    fn drop(&mut self) {
        if self.released {
            return;
        }
        self.kill_children();
        self.reporters.hang_up();
        self.spare.clear();
        if let Err(error) = teardown::take_down_held(self.lab) {
            crate::output::say(&format!("cannot clear up: {error:#}"));
        }
    }
}
