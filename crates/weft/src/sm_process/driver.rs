//! The loop around the machine.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use weft_agent::Journal;
use weft_machine::{Machine, Time};
use weft_sm::{Activity, Event, GuidToLid, Input, Output, Phase, SubnetManager, Summary, SweepKind};
use weft_umad::launch::{PhaseEnd, Progress, SubnetUp, ToLauncher};

use super::attachment::Attachment;
use super::eager::Eagerness;
use super::launcher::LauncherLine;
use super::{SmConfig, SmStatus};
use crate::lab::folder;
use crate::lab::journal::record_event;
use crate::lab::signals::Signals;

/// The pause after a failed attachment, doubled each time.
const BACK_OFF: std::ops::Range<Duration> = Duration::from_millis(20)..Duration::from_secs(2);

/// How often a launcher is told at most.
const REPORT_INTERVAL: Duration = Duration::from_millis(20);

/// The subnet manager with all that surrounds it.
pub(super) struct Driver {
    config: SmConfig,
    machine: SubnetManager,
    start: Instant,
    client: Option<Attachment>,
    back_off: Duration,
    attach_at: Instant,
    launcher: LauncherLine,
    stop: Signals,
    resweep: Signals,
    journal: Journal,
    status: SmStatus,
    status_changed: bool,
    progress: Progress,
    reported: Instant,
    eagerness: Eagerness,
    /// The last thing that happened was an answer.
    conversing: bool,
    /// What it was started for is done.
    done: bool,
}

impl Driver {
    pub(super) fn new(
        config: SmConfig,
        known: &GuidToLid,
        launcher: LauncherLine,
        stop: Signals,
        resweep: Signals,
    ) -> Self {
        let now = Instant::now();
        Self {
            machine: SubnetManager::new(options(&config), known),
            start: now,
            client: None,
            back_off: BACK_OFF.start,
            attach_at: now,
            launcher,
            stop,
            resweep,
            journal: Journal::open(config.events.as_deref(), "sm"),
            status: SmStatus::default(),
            status_changed: true,
            progress: Progress::default(),
            reported: now,
            eagerness: Eagerness::default(),
            conversing: false,
            done: false,
            config,
        }
    }

    /// Runs until told to stop.
    pub(super) fn run(&mut self) -> anyhow::Result<()> {
        loop {
            if self.client.is_none() && self.attach_at <= Instant::now() {
                self.attach();
            }
            self.drain();
            self.write_down();
            if self.done {
                return Ok(());
            }
            if self.reported.elapsed() >= REPORT_INTERVAL {
                self.reported = Instant::now();
                self.report(None);
            }
            let ready = self.wait()?;
            self.conversing = ready.client;
            if ready.stop {
                tracing::info!("stopping");
                return Ok(());
            }
            if ready.resweep && self.resweep.arrived() {
                self.machine.handle_input(self.now(), Input::Resweep { heavy: true });
            }
            if ready.launcher {
                self.launcher.read_ready();
            }
            if ready.client
                && let Err(error) = self.receive()
            {
                self.detach(&error);
            }
            let now = self.now();
            if self.machine.poll_timeout().is_some_and(|due| due <= now) {
                self.machine.handle_timeout(now);
            }
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn attach(&mut self) {
        match Attachment::open(&self.config.attach) {
            Ok((client, input)) => {
                tracing::info!(?input, "attached");
                self.client = Some(client);
                self.back_off = BACK_OFF.start;
                (self.status.attached, self.status_changed) = (true, true);
                self.machine.handle_input(self.now(), input);
            }
            Err(error) => {
                if self.back_off == BACK_OFF.start {
                    tracing::warn!(error = format!("{error:#}"), "cannot attach; trying on");
                }
                self.attach_at = Instant::now() + self.back_off;
                self.back_off = (self.back_off * 2).min(BACK_OFF.end);
            }
        }
    }

    fn detach(&mut self, error: &anyhow::Error) {
        tracing::warn!(error = format!("{error:#}"), "the attachment is gone");
        self.client = None;
        self.attach_at = Instant::now();
        (self.status.attached, self.status.subnet_up, self.status_changed) = (false, false, true);
        self.journal.record("detached", &[]);
        self.machine.handle_input(self.now(), Input::Detached);
    }

    /// Takes everything that one read brings.
    fn receive(&mut self) -> anyhow::Result<()> {
        if let Some(client) = &mut self.client {
            client.read_ready()?;
        }
        while let Some(client) = &mut self.client
            && let Some(input) = client.next()?
        {
            self.machine.handle_input(self.now(), input);
            self.drain_machine();
        }
        Ok(())
    }

    /// Does all that the machine wants, and writes what it sends.
    fn drain(&mut self) {
        self.drain_machine();
        if let Some(client) = &mut self.client
            && let Err(error) = client.flush()
        {
            self.detach(&error);
            self.drain_machine();
        }
    }

    fn drain_machine(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Send(mad) => {
                    // Without an attachment the machine's own timeout says that nobody answers.
                    let sent = self.client.as_mut().map(|client| client.send(&mad));
                    if let Some(Err(error)) = sent {
                        tracing::error!(error = format!("{error:#}"), "cannot send");
                    }
                }
                Output::Event(event) => self.tell(&event),
                Output::Persist(known) => {
                    if let Some(path) = &self.config.guid2lid {
                        persist(path, &known);
                    }
                }
            }
        }
    }

    fn tell(&mut self, event: &Event) {
        self.status_changed |= self.status.take(event);
        let routine = matches!(
            event,
            Event::Quiet
                | Event::PhaseStarted { .. }
                | Event::SweepStarted { kind: SweepKind::Light, reason: weft_sm::Reason::Interval }
        );
        if routine {
            tracing::debug!(?event, "routine");
        } else {
            tracing::info!(?event, "event");
            record_event(&mut self.journal, event);
        }
        if let Event::SubnetUp(summary) = event {
            let written = summary.phases.iter().find(|time| time.phase == Phase::Program);
            let written = written.map_or(0, |time| clamp(time.smps));
            self.report(Some(written));
            if summary.complete {
                self.launcher.send(&ToLauncher::SubnetUp(subnet_up(summary)));
                self.done = self.config.once;
            }
            if self.config.announce {
                self.announce(summary);
            }
        }
    }

    /// Says on standard output that the subnet is up. Nobody may be reading; that is no fault.
    fn announce(&self, summary: &Summary) {
        let phases: Vec<String> = summary
            .phases
            .iter()
            .map(|time| {
                format!("{} {:.3}", format!("{:?}", time.phase).to_lowercase(), time.took.as_secs_f64())
            })
            .collect();
        let state = if summary.complete { "SUBNET UP" } else { "NOT COMPLETE" };
        let _ = crate::output::print(&format!(
            "{state} after {:.3} s: {} switches, {} hosts, {} LIDs, {} ports active, {} SMPs, {} retries; {}\n",
            self.start.elapsed().as_secs_f64(),
            summary.switches,
            summary.hosts,
            summary.lids,
            summary.ports_active,
            summary.smps.total(),
            summary.retries,
            phases.join(", "),
        ));
    }

    /// Tells the launcher how far the machine is, if that is news. `tables`: all that were to be written.
    fn report(&mut self, tables: Option<u32>) {
        if !self.launcher.is_open() {
            return;
        }
        let progress = self.machine.progress();
        let mut news = self.progress;
        news.nodes = progress.switches + progress.hosts;
        news.lids = (progress.lids, progress.lids);
        let phase = (clamp(progress.done), clamp(progress.total));
        match progress.activity {
            Activity::Sweeping(Phase::Program) => news.tables = phase,
            Activity::Sweeping(Phase::Activate) => news.ports_active = (progress.ports_active, phase.1),
            _ => news.ports_active = (progress.ports_active, progress.ports_active),
        }
        news.tables = tables.map_or(news.tables, |written| (written, written));
        if news != self.progress {
            self.progress = news;
            self.launcher.send(&ToLauncher::Progress(news));
        }
    }

    /// Writes what changed since last time.
    fn write_down(&mut self) {
        self.journal.flush();
        if std::mem::take(&mut self.status_changed)
            && let Some(path) = &self.config.status
        {
            let written = serde_json::to_vec_pretty(&self.status)
                .map_err(anyhow::Error::from)
                .and_then(|text| folder::replace(path, &text));
            if let Err(error) = written {
                tracing::error!(error = %error, "cannot write the status");
            }
        }
    }

    /// Waits for the first of everything that can happen.
    fn wait(&mut self) -> anyhow::Result<Ready> {
        let machine = self
            .machine
            .poll_timeout()
            .map(|due| Duration::from_nanos(due.saturating_sub(self.now()).as_nanos()));
        let attach = self.client.is_none().then(|| self.attach_at.saturating_duration_since(Instant::now()));
        let timeout = machine.into_iter().chain(attach).min();
        let mut fds = vec![PollFd::new(&self.stop, PollFlags::IN), PollFd::new(&self.resweep, PollFlags::IN)];
        let launcher = self.launcher.fd();
        let (mut launcher_at, mut client_at) = (usize::MAX, usize::MAX);
        if let Some(launcher) = &launcher {
            launcher_at = fds.len();
            fds.push(PollFd::new(launcher, PollFlags::IN));
        }
        if let Some(client) = &self.client {
            client_at = fds.len();
            fds.push(PollFd::new(client, client.interest()));
        }
        self.eagerness.poll(&mut fds, timeout, self.conversing)?;
        let ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Ready {
            stop: ready(0),
            resweep: ready(1),
            launcher: ready(launcher_at),
            client: ready(client_at),
        })
    }
}

/// What the machine is told: a window that the attachment bears.
fn options(config: &SmConfig) -> weft_sm::Options {
    let mut options = config.options.clone();
    if let Some(max) = config.attach.window_max().filter(|max| *max < options.max_wire_smps) {
        tracing::warn!(
            wanted = options.max_wire_smps,
            max,
            "the window is narrowed: more answers would get lost"
        );
        options.max_wire_smps = max;
    }
    options
}

/// What is there to handle.
struct Ready {
    stop: bool,
    resweep: bool,
    launcher: bool,
    client: bool,
}

fn clamp(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn persist(path: &Path, known: &GuidToLid) {
    if let Err(error) = folder::replace(path, known.to_string().as_bytes()) {
        tracing::error!(error = %error, "cannot keep the LIDs");
    }
}

fn subnet_up(summary: &Summary) -> SubnetUp {
    let mut end = Time::ZERO;
    let phases = summary.phases.iter().map(|time| {
        end += time.took;
        PhaseEnd { phase: format!("{:?}", time.phase).to_lowercase(), end_us: end.as_nanos() / 1000 }
    });
    SubnetUp {
        phases: phases.collect(),
        switches: summary.switches,
        hcas: summary.hosts,
        ports_active: summary.ports_active,
        smps: summary.smps.total() + summary.retries,
    }
}
