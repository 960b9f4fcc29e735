//! The subnet manager's machine, and what comes of its events.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use weft_bundle::folder;
use weft_control::sm::SmStatus;
use weft_control::{Answer, Error, ErrorCode, EventKind, PartitionsTaken, Request};
use weft_machine::Time;
use weft_metrics::Page;
use weft_mgmt::Window;
use weft_process::{EventLog, Manned};
use weft_sm::{
    Activity, Event, GuidToLid, Input, Instructed, Instruction, Output, SubnetManager, Summary, SweepPhase,
};
use weft_wire::{AddressedMad, Guid, Registration, count_of};

use crate::manager::{Manager, News, Reply, TurnEnd};
use crate::sm::figures::{Counted, SmFigures};
use crate::sm::history::HistoryFile;
use crate::sm::{SmConfig, status};

/// The shortest time between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(20);

/// How long a client's order may take.
const ORDER_PATIENCE: Duration = Duration::from_secs(30);
/// The same of other partitions: of three sweeps one may route everything.
const PARTITIONS_PATIENCE: Duration = Duration::from_secs(60);

/// How far a sweep is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    nodes: u32,
    lids: u32,
    tables_done: u32,
    tables: u32,
    ports_active: u32,
    ports: u32,
}

impl From<Progress> for Event {
    fn from(progress: Progress) -> Self {
        let Progress { nodes, lids, tables_done, tables, ports_active, ports } = progress;
        Self::Progress { nodes, lids, tables_done, tables, ports_active, ports }
    }
}

/// The subnet manager with what its events change.
pub(crate) struct Driver {
    pub(super) config: SmConfig,
    pub(super) machine: SubnetManager,
    history: Option<HistoryFile>,
    start: Instant,
    events: EventLog,
    status: SmStatus,
    counted: Counted,
    progress: Progress,
    reported: Instant,
    /// What it was started for is done.
    done: bool,
    /// Who waits until ports have their keys.
    pub(super) wait_for_partitions: Vec<Reply>,
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
        matches!(
            request,
            Request::SmSweep
                | Request::SmInstruct { .. }
                | Request::ReadPartitions
                | Request::PlanPartitions { .. }
                | Request::RoutingOptions
        )
    }

    fn patience(request: &Request) -> Duration {
        if matches!(request, Request::ReadPartitions) { PARTITIONS_PATIENCE } else { ORDER_PATIENCE }
    }
}

impl Manager for Driver {
    const NEEDS_REGISTRATIONS: bool = true;
    const STOP_PATIENCE: Duration = Duration::ZERO;
    type Machine = SubnetManager;

    fn registrations() -> Vec<Registration> {
        weft_sm::registrations()
    }

    fn machine(&mut self) -> &mut SubnetManager {
        &mut self.machine
    }

    fn detached(&mut self) {
        self.status.subnet_up = false;
        let gone = Error::new(ErrorCode::Conflict, "the subnet manager has lost its agent");
        self.wait_for_partitions.drain(..).for_each(|reply| drop(reply.send(Err(gone.clone()))));
    }

    fn input(&mut self, news: News) -> Option<Input> {
        Some(match news {
            News::Attached { node_guid, port_guid, port } => Input::Attached { node_guid, port_guid, port },
            News::Detached => Input::Detached,
            News::Mad(mad) => Input::Receive(mad),
            News::PortChanged { up } => Input::PortChanged { up },
            News::Hangup => return self.hangup(),
            News::Stop => return None,
        })
    }

    fn order(&mut self, request: Request, reply: Reply) -> Option<Input> {
        match request {
            Request::SmSweep => {
                // The client may have gone.
                let _ = reply.send(Ok(Answer::Done));
                Some(Input::Resweep { heavy: true })
            }
            Request::SmInstruct { guid, instruction } => {
                let guid = guid.0;
                self.orders.push_back((guid, instruction, reply));
                Some(Input::Instruct { guid, instruction })
            }
            Request::ReadPartitions => self.read_partitions(reply),
            Request::PlanPartitions { text } => {
                let planned = self.plan_partitions(&text);
                let _ = reply.send(planned);
                None
            }
            Request::RoutingOptions => {
                let _ = reply.send(self.routing_options());
                None
            }
            _ => None,
        }
    }

    fn take(&mut self, output: Output) -> Option<AddressedMad> {
        // Before what follows from it is sent.
        self.write_history();
        match output {
            Output::Send(mad) => return Some(mad),
            Output::Event(event) => self.tell(&event),
            Output::Persist(known) => {
                if let Some(path) = &self.config.guid2lid {
                    persist(path, &known);
                }
            }
        }
        None
    }

    fn end_turn(&mut self, _now: Time, _is_stopping: bool) -> TurnEnd {
        self.write_history();
        if self.reported.elapsed() >= REPORT_INTERVAL {
            self.reported = Instant::now();
            self.report(None);
        }
        TurnEnd { done: self.done, wake_at: None }
    }

    fn figures(&self, _now: Time, attached: bool) -> SmFigures {
        let progress = self.machine.progress();
        let status = SmStatus {
            attached,
            limited: self.machine.sa_counts().limited,
            signalled: self.machine.sa_counts().signalled(),
            managers: self.machine.managers(),
            election: self.machine.election_counts(),
            window: Some(self.machine.window()),
            in_flight: self.machine.in_flight(),
            vm_lids: progress.vm_lids,
            learning: progress.learning,
            ..self.status.clone()
        };
        SmFigures { status, counted: self.counted.clone(), progress, sa: self.machine.sa_counts() }
    }
}

impl Driver {
    pub(crate) fn new(
        config: SmConfig,
        known: &GuidToLid,
        history: Option<HistoryFile>,
        events: EventLog,
    ) -> Self {
        let now = Instant::now();
        let mut machine = SubnetManager::new(options(&config), known);
        if history.is_some() {
            machine.keep_history();
        }
        Self {
            machine,
            history,
            start: now,
            status: SmStatus::default(),
            counted: Counted::default(),
            progress: Progress::default(),
            reported: now,
            done: false,
            wait_for_partitions: Vec::new(),
            orders: VecDeque::new(),
            events,
            config,
        }
    }

    fn write_history(&mut self) {
        if let Some(file) = &mut self.history {
            file.append(&self.machine.take_history());
        }
    }

    pub(super) fn tell(&mut self, event: &Event) {
        status::take(&mut self.status, event);
        match event {
            // How far it is comes before what it is.
            Event::SubnetUp(summary) | Event::SweepIncomplete(summary) => {
                let written = summary.phases.iter().find(|time| time.phase == SweepPhase::Program);
                self.report(Some(written.map_or(0, |time| clamp(time.smps))));
            }
            Event::RouteFailed { .. } => self.report(None),
            _ => {}
        }
        self.counted.take(event);
        if event.is_routine() {
            tracing::debug!("{event}");
        } else {
            tracing::info!("{event}");
            self.events.publish(EventKind::Sm(event.clone()));
        }
        if let Event::Instructed { guid, instruction, outcome } = event {
            self.ordered(guid.0, *instruction, *outcome);
        }
        if let Event::PartitionsTaken { in_charge, smps, waiting, kept, left_out } = *event {
            let taken = PartitionsTaken { in_charge, smps, waiting, kept, left_out };
            let taken = Answer::ReadPartitions(taken);
            // The client may have gone.
            self.wait_for_partitions.drain(..).for_each(|reply| drop(reply.send(Ok(taken.clone()))));
        }
        if let Event::SubnetUp(summary) | Event::SweepIncomplete(summary) = event {
            self.done |= summary.complete && self.config.once;
            if let Some(announce) = self.config.announce {
                self.announce(announce, summary);
            }
        }
    }

    /// Tells whoever gave an order what became of it.
    fn ordered(&mut self, guid: Guid, instruction: Instruction, outcome: Instructed) {
        let is_it = |order: &(Guid, Instruction, Reply)| (order.0, order.1) == (guid, instruction);
        // The one that came while another was under way is refused at once.
        let at = match outcome {
            Instructed::Busy => self.orders.iter().rposition(is_it),
            _ => self.orders.iter().position(is_it),
        };
        if let Some((.., reply)) = at.and_then(|at| self.orders.remove(at)) {
            // The client may have gone.
            let _ = reply.send(Ok(Answer::SmInstruct { outcome }));
        }
    }

    /// Says that the subnet is up.
    fn announce(&self, announce: fn(&str), summary: &Summary) {
        let phases: Vec<String> = summary
            .phases
            .iter()
            .map(|time| {
                format!("{} {:.3}", format!("{:?}", time.phase).to_lowercase(), time.took.as_secs_f64())
            })
            .collect();
        let state = if summary.complete { "SUBNET UP" } else { "NOT COMPLETE" };
        announce(&format!(
            "{state} after {:.3} s: {}, {}, {}, {} active, {}, {}; {}\n",
            self.start.elapsed().as_secs_f64(),
            count_of(summary.switches as usize, "switch"),
            count_of(summary.hosts as usize, "host"),
            count_of(summary.lids as usize, "LID"),
            count_of(summary.ports_active as usize, "port"),
            count_of(summary.smps.total as usize, "SMP"),
            count_of(summary.retries as usize, "retry"),
            phases.join(", "),
        ));
    }

    /// Tells how far the machine is, if that is news. `tables`: all that were to be written.
    fn report(&mut self, tables: Option<u32>) {
        let progress = self.machine.progress();
        let mut news = self.progress;
        (news.nodes, news.lids) = (progress.switches + progress.hosts, progress.lids);
        let (done, total) = (clamp(progress.done), clamp(progress.total));
        (news.ports_active, news.ports) = match progress.activity {
            Activity::Sweeping(SweepPhase::Program) => {
                (news.tables_done, news.tables) = (done, total);
                (news.ports_active, news.ports)
            }
            Activity::Sweeping(SweepPhase::Activate) => (progress.ports_active, total),
            _ => (progress.ports_active, progress.ports_active),
        };
        if let Some(written) = tables {
            (news.tables_done, news.tables) = (written, written);
        }
        if news != self.progress {
            self.progress = news;
            // Only for those who listen: what comes of it is in the file of events.
            self.events.publish(EventKind::Sm(news.into()));
        }
    }
}

/// Options of the machine: a window that the attachment bears.
fn options(config: &SmConfig) -> weft_sm::Options {
    let mut options = config.options.clone();
    if let Some(max) = config.seat.attach.window_max() {
        let narrowed = options.smps.max_wire_smps.narrowed(max);
        if matches!(options.smps.max_wire_smps, Window::Fixed(wanted) if wanted > max) {
            tracing::warn!(wanted = %options.smps.max_wire_smps, max, "the window is narrowed: more answers would get lost");
        }
        options.smps.max_wire_smps = narrowed;
    }
    options.routing.chain.set_outside(weft_exec::programs(|program, line| tracing::info!(program, "{line}")));
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
