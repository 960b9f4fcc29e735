//! The subnet manager's machine, and what comes of its events.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weft_agent::Journal;
use weft_machine::Time;
use weft_metrics::Page;
use weft_mgmt::Window;
use weft_routing::EngineReport;
use weft_sm::{Activity, Event, GuidToLid, Input, Output, Phase, SubnetManager, Summary, SweepKind};
use weft_umad::launch::{PhaseEnd, Progress, SubnetUp, ToLauncher};
use weft_wire::{AddressedMad, Registration};

use super::figures::{Counted, SmFigures};
use super::status::{Limited, routing_lines};
use super::{ManagerLine, SmConfig, SmStatus};
use crate::lab::folder;
use crate::lab::journal::record_event;
use crate::lab::launch::SM;
use crate::manager::orders::tell_outcome;
use crate::manager::status_file::bytes;
use crate::manager::{LauncherLine, Manager, News, Order, StatusFile, TurnEnd};

/// How often a launcher is told at most.
const REPORT_INTERVAL: Duration = Duration::from_millis(20);

/// The most characters of a sentence that the launcher is told, and the most sentences: a message to it is one line of
/// limited length.
const REASON_CHARS_MAX: usize = 2000;
const ROUTING_LINES_MAX: usize = 6;

/// The subnet manager with what its events change.
pub(super) struct Driver {
    config: SmConfig,
    machine: SubnetManager,
    start: Instant,
    journal: Journal,
    status: SmStatus,
    status_changed: bool,
    status_file: StatusFile,
    counted: Counted,
    progress: Progress,
    reported: Instant,
    /// What it was started for is done.
    done: bool,
    /// Who gave the last order.
    asker: Option<PathBuf>,
}

impl Manager for Driver {
    const NAME: &'static str = SM;
    const NEEDS_REGISTRATIONS: bool = true;
    const STOP_PATIENCE: Duration = Duration::ZERO;
    type Machine = SubnetManager;
    type Figures = SmFigures;

    fn registrations() -> Vec<Registration> {
        weft_sm::registrations()
    }

    fn machine(&mut self) -> &mut SubnetManager {
        &mut self.machine
    }

    fn note(&mut self, news: &News) {
        match news {
            News::Attached { .. } => (self.status.attached, self.status_changed) = (true, true),
            News::Detached => {
                (self.status.attached, self.status.subnet_up, self.status_changed) = (false, false, true);
                self.journal.record("detached", &[]);
            }
            News::Order(_, from) => self.asker = Some(from.clone()),
            _ => {}
        }
    }

    fn input(news: News) -> Option<Input> {
        Some(match news {
            News::Attached { node_guid, port_guid, port } => Input::Attached { node_guid, port_guid, port },
            News::Detached => Input::Detached,
            News::Mad(mad) => Input::Receive(mad),
            News::PortChanged { up } => Input::PortChanged { up },
            News::Hangup => Input::Resweep { heavy: true },
            News::Order(Order { guid, instruction }, _) => Input::Instruct { guid, instruction },
            News::Stop => return None,
        })
    }

    fn take(&mut self, output: Output, launcher: &mut LauncherLine) -> Option<AddressedMad> {
        match output {
            Output::Send(mad) => return Some(mad),
            Output::Event(event) => self.tell(&event, launcher),
            Output::Persist(known) => {
                if let Some(path) = &self.config.guid2lid {
                    persist(path, &known);
                }
            }
        }
        None
    }

    fn end_turn(&mut self, _now: Time, launcher: &mut LauncherLine) -> TurnEnd {
        self.write_down();
        if self.reported.elapsed() >= REPORT_INTERVAL {
            self.reported = Instant::now();
            self.report(None, launcher);
        }
        TurnEnd { done: self.done, wake_at: self.status_file.wake_at() }
    }

    fn figures(&self, _now: Time) -> SmFigures {
        SmFigures {
            status: self.status.clone(),
            counted: self.counted.clone(),
            progress: self.machine.progress(),
            sa: self.machine.sa_counts(),
        }
    }

    fn render(figures: &SmFigures) -> Page {
        figures.page()
    }
}

impl Driver {
    pub(super) fn new(config: SmConfig, known: &GuidToLid) -> Self {
        let now = Instant::now();
        Self {
            machine: SubnetManager::new(options(&config), known),
            start: now,
            journal: Journal::open(config.seat.events.as_deref(), &config.name),
            status: SmStatus::default(),
            status_changed: true,
            status_file: StatusFile::new(config.seat.status.clone()),
            counted: Counted::default(),
            progress: Progress::default(),
            reported: now,
            done: false,
            asker: None,
            config,
        }
    }

    fn tell(&mut self, event: &Event, launcher: &mut LauncherLine) {
        self.status_changed |= self.status.take(event);
        self.counted.take(event);
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
        if let Event::Instructed { outcome, .. } = event
            && let Some(asker) = self.asker.take()
        {
            tell_outcome(&asker, *outcome);
        }
        if let Event::RouteFailed { message } = event {
            let progress = self.machine.progress();
            let reason = message.chars().take(REASON_CHARS_MAX).collect();
            launcher.send(&ToLauncher::NotRouted { reason, nodes: progress.switches + progress.hosts });
        }
        if let Event::SubnetUp(summary) | Event::SweepIncomplete(summary) = event {
            let written = summary.phases.iter().find(|time| time.phase == Phase::Program);
            let written = written.map_or(0, |time| clamp(time.smps));
            self.report(Some(written), launcher);
            if summary.complete {
                let routing = self.status.routing.as_ref();
                launcher.send(&ToLauncher::SubnetUp(subnet_up(summary, routing)));
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
    fn report(&mut self, tables: Option<u32>, launcher: &mut LauncherLine) {
        if !launcher.is_open() {
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
            launcher.send(&ToLauncher::Progress(news));
        }
    }

    /// Writes what changed since last time.
    pub(super) fn write_down(&mut self) {
        self.journal.flush();
        if self.journal.lost() != self.status.events_lost {
            (self.status.events_lost, self.status_changed) = (self.journal.lost(), true);
        }
        let limits = Limited::of(&self.machine.sa_counts());
        if limits != self.status.limited {
            (self.status.limited, self.status_changed) = (limits, true);
        }
        if self.status_changed {
            self.status.managers = self.machine.managers().iter().map(ManagerLine::of).collect();
            self.status.election = self.machine.election_counts();
            self.status.window = Some(self.machine.window());
        }
        let status = &self.status;
        let written = self.status_file.write(self.status_changed, || bytes(status));
        self.status_changed &= !written;
    }
}

/// What the machine is told: a window that the attachment bears.
fn options(config: &SmConfig) -> weft_sm::Options {
    let mut options = config.options.clone();
    if let Some(max) = config.seat.attach.window_max() {
        let narrowed = options.max_wire_smps.narrowed(max);
        if matches!(options.max_wire_smps, Window::Fixed(wanted) if wanted > max) {
            tracing::warn!(wanted = %options.max_wire_smps, max, "the window is narrowed: more answers would get lost");
        }
        options.max_wire_smps = narrowed;
    }
    options
}

fn clamp(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn persist(path: &Path, known: &GuidToLid) {
    if let Err(error) = folder::replace(path, known.to_string().as_bytes()) {
        tracing::error!("LIDs are not kept: {error:#}");
    }
}

fn subnet_up(summary: &Summary, routing: Option<&EngineReport>) -> SubnetUp {
    // Of a circle of channels the first line will do here; `weft status` has the others.
    let brief = |line: String| -> String {
        let first = line.lines().next().unwrap_or_default().trim_end_matches(':');
        first.chars().take(REASON_CHARS_MAX).collect()
    };
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
        routing: routing.into_iter().flat_map(routing_lines).map(brief).take(ROUTING_LINES_MAX).collect(),
    }
}
