//! The subnet manager's machine, and what comes of its events.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use weft_control::event::ProcessEvent;
use weft_control::sm::{RoutingReport, SmStatus};
use weft_control::{Answer, Error, EventKind, Request};
use weft_machine::Time;
use weft_metrics::Page;
use weft_mgmt::Window;
use weft_process::{EventLog, Journal, Manned};
use weft_sm::{
    Activity, Event, GuidToLid, Input, Instructed, Instruction, Output, SubnetManager, Summary, SweepKind,
    SweepPhase,
};
use weft_umad::launch::{PhaseEnd, Progress, SubnetUp, ToLauncher};
use weft_wire::{AddressedMad, Guid, Registration};

use super::figures::{Counted, SmFigures};
use super::{SmConfig, status, translate};
use crate::lab::folder;
use crate::lab::names::SM;
use crate::manager::{LauncherLine, Manager, News, Reply, TurnEnd};

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
    events: EventLog,
    journal: Journal,
    status: SmStatus,
    counted: Counted,
    progress: Progress,
    reported: Instant,
    /// What it was started for is done.
    done: bool,
    /// Orders to other managers that have no outcome yet, oldest first.
    orders: VecDeque<(Guid, Instruction, Reply)>,
}

impl Manned for Driver {
    type Figures = SmFigures;

    fn render(figures: &SmFigures) -> Page {
        figures.page()
    }

    fn show(figures: &SmFigures, age: Duration, request: &Request) -> Option<Result<Answer, Error>> {
        let Request::SmStatus = request else { return None };
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        Some(Ok(Answer::SmStatus(Box::new(SmStatus { age_ms, ..figures.status.clone() }))))
    }

    fn takes(request: &Request) -> bool {
        matches!(request, Request::SmSweep | Request::SmInstruct { .. })
    }
}

impl Manager for Driver {
    const NAME: &'static str = SM;
    const NEEDS_REGISTRATIONS: bool = true;
    const STOP_PATIENCE: Duration = Duration::ZERO;
    type Machine = SubnetManager;

    fn registrations() -> Vec<Registration> {
        weft_sm::registrations()
    }

    fn machine(&mut self) -> &mut SubnetManager {
        &mut self.machine
    }

    fn note(&mut self, news: &News) {
        match news {
            News::Attached { node_guid, port_guid, .. } => {
                self.status.attached = true;
                let (node_guid, port_guid) = ((*node_guid).into(), (*port_guid).into());
                self.publish(EventKind::Process(ProcessEvent::Attached { node_guid, port_guid }));
            }
            News::Detached => {
                (self.status.attached, self.status.subnet_up) = (false, false);
                self.publish(EventKind::Process(ProcessEvent::Detached));
            }
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
            News::Stop => return None,
        })
    }

    fn order(&mut self, request: Request, reply: Reply) -> Option<Input> {
        match request {
            Request::SmSweep => {
                // Who asked may have gone.
                let _ = reply.send(Ok(Answer::Done));
                Some(Input::Resweep { heavy: true })
            }
            Request::SmInstruct { guid, instruction } => {
                let (guid, instruction) = (guid.0, translate::instruction(instruction));
                self.orders.push_back((guid, instruction, reply));
                Some(Input::Instruct { guid, instruction })
            }
            _ => None,
        }
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
        self.journal.flush();
        if self.reported.elapsed() >= REPORT_INTERVAL {
            self.reported = Instant::now();
            self.report(None, launcher);
        }
        TurnEnd { done: self.done, wake_at: None }
    }

    fn figures(&self, _now: Time) -> SmFigures {
        let status = SmStatus {
            events_lost: self.journal.lost(),
            limited: status::limited(&self.machine.sa_counts()),
            managers: self.machine.managers().iter().map(translate::manager).collect(),
            election: translate::election(self.machine.election_counts()),
            window: Some(translate::window(self.machine.window())),
            ..self.status.clone()
        };
        SmFigures {
            status,
            counted: self.counted.clone(),
            progress: self.machine.progress(),
            sa: self.machine.sa_counts(),
        }
    }
}

impl Driver {
    pub(super) fn new(config: SmConfig, known: &GuidToLid, events: EventLog) -> Self {
        let now = Instant::now();
        Self {
            machine: SubnetManager::new(options(&config), known),
            start: now,
            journal: Journal::open(config.seat.events.as_deref(), &config.name),
            status: SmStatus::default(),
            counted: Counted::default(),
            progress: Progress::default(),
            reported: now,
            done: false,
            orders: VecDeque::new(),
            events,
            config,
        }
    }

    fn tell(&mut self, event: &Event, launcher: &mut LauncherLine) {
        status::take(&mut self.status, event);
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
            self.publish(EventKind::Sm(translate::event(event)));
        }
        if let Event::Instructed { guid, instruction, outcome } = event {
            self.ordered((*guid, *instruction), *outcome);
        }
        if let Event::RouteFailed { message } = event {
            let progress = self.machine.progress();
            let reason = message.chars().take(REASON_CHARS_MAX).collect();
            launcher.send(&ToLauncher::NotRouted { reason, nodes: progress.switches + progress.hosts });
        }
        if let Event::SubnetUp(summary) | Event::SweepIncomplete(summary) = event {
            let written = summary.phases.iter().find(|time| time.phase == SweepPhase::Program);
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

    fn publish(&mut self, kind: EventKind) {
        self.journal.record_line(&self.events.publish(kind));
    }

    /// Tells whoever gave an order what became of it.
    fn ordered(&mut self, order: (Guid, Instruction), outcome: Instructed) {
        let is_it = |(guid, instruction, _): &(Guid, Instruction, Reply)| (*guid, *instruction) == order;
        // The one that came while another was under way is refused at once.
        let at = match outcome {
            Instructed::Busy => self.orders.iter().rposition(is_it),
            _ => self.orders.iter().position(is_it),
        };
        if let Some((.., reply)) = at.and_then(|at| self.orders.remove(at)) {
            // Who asked may have gone.
            let _ = reply.send(Ok(Answer::SmInstruct { outcome: translate::instructed(outcome) }));
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
            Activity::Sweeping(SweepPhase::Program) => news.tables = phase,
            Activity::Sweeping(SweepPhase::Activate) => news.ports_active = (progress.ports_active, phase.1),
            _ => news.ports_active = (progress.ports_active, progress.ports_active),
        }
        news.tables = tables.map_or(news.tables, |written| (written, written));
        if news != self.progress {
            self.progress = news;
            launcher.send(&ToLauncher::Progress(news));
        }
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

fn subnet_up(summary: &Summary, routing: Option<&RoutingReport>) -> SubnetUp {
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
        routing: routing
            .into_iter()
            .flat_map(RoutingReport::lines)
            .map(brief)
            .take(ROUTING_LINES_MAX)
            .collect(),
    }
}
