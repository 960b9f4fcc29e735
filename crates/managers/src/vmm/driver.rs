//! The VM manager's machine, and what comes of what it wants.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weft_bundle::partitions::{PartitionsSource, by_port};
use weft_control::vmm::VPort;
use weft_control::{Answer, Error, ErrorCode, EventKind, Request};
use weft_machine::{Machine as _, Time};
use weft_metrics::Page;
use weft_process::{EventLog, Manned};
use weft_vm::station::{Input, Output, Station};
use weft_vm::{Event, RequestId};
use weft_wire::{AddressedMad, Guid};

use crate::manager::{Manager, News, Reply, TurnEnd};
use crate::vmm::agents::Agents;
use crate::vmm::figures::VmmFigures;
use crate::vmm::journal::JournalFile;
use crate::vmm::news::News as AgentNews;
use crate::vmm::page::page;
use crate::vmm::translate;

/// A client's request takes this long at most: the machine gives up after 120 s, or 130 s where standbys poll slowly.
const ORDER_PATIENCE: Duration = Duration::from_secs(150);
/// Requests of clients that wait for an answer at most.
const REPLIES_MAX: usize = 4096;

/// The machine with what surrounds it.
pub(crate) struct Driver {
    station: Station,
    journal: JournalFile,
    agents: Agents,
    events: EventLog,
    /// What people call nodes.
    names: BTreeMap<Guid, String>,
    replies: BTreeMap<RequestId, Reply>,
    next_id: u64,
    requests_refused: u64,
    partitions: PartitionsSource,
    stopped: Option<String>,
}

impl Driver {
    pub(crate) fn new(
        station: Station,
        journal: JournalFile,
        agents: Agents,
        events: EventLog,
        names: BTreeMap<Guid, String>,
        partitions: PartitionsSource,
    ) -> Self {
        Self {
            station,
            journal,
            agents,
            events,
            names,
            replies: BTreeMap::new(),
            next_id: 0,
            requests_refused: 0,
            partitions,
            stopped: None,
        }
    }

    fn tell(&mut self, event: Event) {
        if let Event::ManagerStopped { reason } = &event {
            self.stopped = Some(reason.clone());
        }
        let said = EventKind::Vm(event);
        tracing::info!("{said}");
        self.events.publish(said);
    }

    fn hear(&mut self, now: Time, news: AgentNews) {
        match news {
            AgentNews::Input(input) => {
                if let weft_vm::Input::HostUp(host) = &input {
                    self.events.publish(EventKind::Vm(Event::HostReady { host: host.to_string() }));
                }
                self.station.handle_input(now, Input::Vm(input));
            }
            AgentNews::Away(host, reason) => {
                let host = host.to_string();
                self.events.publish(EventKind::Vm(Event::HostAway { host, reason }));
            }
        }
    }

    /// The partitions as their file has them now.
    fn read_partitions(&self) -> Result<Option<Input>, Error> {
        let read =
            self.partitions.read().map_err(|error| Error::new(ErrorCode::Failed, format!("{error:#}")))?;
        Ok(read.map(|partitions| Input::Vm(weft_vm::Input::Partitions(by_port(&partitions)))))
    }

    /// Writes what waits for the disk; whether there was something.
    fn sync(&mut self, now: Time) -> bool {
        let input = match self.journal.sync() {
            Ok(None) => return false,
            Ok(Some(number)) => weft_vm::Input::Synced(number),
            Err(error) => {
                tracing::error!(%error, "the journal cannot be written");
                weft_vm::Input::DiskFailed(error.to_string())
            }
        };
        self.station.handle_input(now, Input::Vm(input));
        true
    }
}

impl Manned for Driver {
    // An `Arc`, because there may be thousands of virtual machines.
    type Figures = Arc<VmmFigures>;

    fn render(figures: &Arc<VmmFigures>) -> Page {
        page(figures)
    }

    fn show(figures: &Arc<VmmFigures>, age: Duration, request: &Request) -> Option<Result<Answer, Error>> {
        match request {
            Request::VmmStatus => Some(Ok(Answer::VmmStatus(Box::new(figures.status(age))))),
            Request::Vms(page) => {
                let after = |port: &&VPort| page.after.as_ref().is_none_or(|after| port.vm > *after);
                let mut rest = figures.list.iter().filter(after).peekable();
                let vports = rest.by_ref().take(page.items_max()).cloned().collect();
                Some(Ok(Answer::Vms { vports, more: rest.peek().is_some() }))
            }
            _ => None,
        }
    }

    fn takes(request: &Request) -> bool {
        matches!(
            request,
            Request::VmCreate(_)
                | Request::VmDestroy { .. }
                | Request::VmMigrate(_)
                | Request::VmPlan(_)
                | Request::VmForget { .. }
                | Request::ReadPartitions
        )
    }

    fn patience(_: &Request) -> Duration {
        ORDER_PATIENCE
    }
}

impl Manager for Driver {
    const STOP_PATIENCE: Duration = Duration::from_secs(1);
    type Machine = Station;

    fn machine(&mut self) -> &mut Station {
        &mut self.station
    }

    fn input(&mut self, news: News) -> Option<Input> {
        Some(match news {
            News::Attached { port, .. } => Input::Attached(port),
            News::Detached => Input::Detached,
            News::Mad(mad) => Input::Mad(mad),
            News::PortChanged { .. } => Input::PortChanged,
            News::Hangup => {
                return self.read_partitions().unwrap_or_else(|error| {
                    tracing::error!("the partitions stay as they are: {error}");
                    None
                });
            }
            News::Stop => return None,
        })
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.agents.as_fd())
    }

    fn rung(&mut self, now: Time) {
        for news in self.agents.take() {
            self.hear(now, news);
        }
    }

    fn order(&mut self, request: Request, reply: Reply) -> Option<Input> {
        if let Request::ReadPartitions = request {
            let read = self.read_partitions();
            // The client may have gone.
            let _ = reply.send(read.as_ref().map(|_| Answer::Done).map_err(Clone::clone));
            return read.ok().flatten();
        }
        let request = match translate::request(request) {
            Some(Ok(request)) => request,
            refused => {
                let odd = || Error::new(ErrorCode::NotHere, "the request is for another kind of process");
                let error = refused.and_then(Result::err).unwrap_or_else(odd);
                // The client may have gone.
                let _ = reply.send(Err(error));
                return None;
            }
        };
        if self.replies.len() >= REPLIES_MAX {
            self.requests_refused += 1;
            let message = format!("{REPLIES_MAX} requests wait for answers already");
            let _ = reply.send(Err(Error::new(ErrorCode::TooMany, message).hint("try again later")));
            return None;
        }
        let id = RequestId(self.next_id);
        self.next_id += 1;
        self.replies.insert(id, reply);
        Some(Input::Vm(weft_vm::Input::Request { id, request }))
    }

    fn take(&mut self, output: Output) -> Option<AddressedMad> {
        match output {
            Output::Send(mad) => return Some(mad),
            Output::Vm(weft_vm::Output::Journal(write)) => self.journal.push(write),
            Output::Vm(weft_vm::Output::Command { host, command }) => self.agents.send(&host, command),
            Output::Vm(weft_vm::Output::Reply { id, result }) => {
                if let Some(reply) = self.replies.remove(&id) {
                    // The client may have gone.
                    let _ = reply.send(translate::reply(result, &self.names));
                }
            }
            Output::Vm(weft_vm::Output::Event(event)) => self.tell(event),
            // The station asks the subnet manager itself.
            Output::Vm(weft_vm::Output::AskSm(_)) => {}
        }
        None
    }

    fn end_turn(&mut self, now: Time, is_stopping: bool) -> TurnEnd {
        let goes_on = self.sync(now);
        TurnEnd { done: is_stopping && !goes_on, wake_at: goes_on.then(Instant::now) }
    }

    fn figures(&self, _: Time, attached: bool) -> Arc<VmmFigures> {
        let manager = &self.station.manager;
        Arc::new(VmmFigures {
            attached,
            stopped: self.stopped.clone(),
            census: manager.census(),
            counts: manager.counts(),
            journal_bytes: self.journal.bytes(),
            commands_dropped: self.agents.dropped,
            requests_refused: self.requests_refused,
            list: manager.list(),
        })
    }
}
