//! The performance manager's machine, and what comes of its events.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use weft_control::{Answer, Error, EventKind, Request, Utc};
use weft_machine::Time;
use weft_metrics::Page;
use weft_pm::{Event, Input, Options, Output, PerformanceManager};
use weft_process::{EventLog, Manned, utc_now};
use weft_wire::{AddressedMad, Registration};

use crate::manager::{Manager, News, Reply, TurnEnd};
use crate::pm::figures::PmFigures;
use crate::pm::page::page;
use crate::pm::translate;

/// The performance manager with what its events change.
pub(crate) struct Driver {
    options: Options,
    machine: PerformanceManager,
    events: EventLog,
    /// When the last sweep ended.
    swept_at: Option<Utc>,
    /// Counts sweeps and events.
    editions: watch::Sender<u64>,
}

impl Manned for Driver {
    // An `Arc`, because whoever looks may look at a large fabric.
    type Figures = Arc<PmFigures>;

    fn render(figures: &Arc<PmFigures>) -> Page {
        page(figures)
    }

    fn editions(figures: &Arc<PmFigures>) -> Option<watch::Receiver<u64>> {
        Some(figures.editions.clone())
    }

    fn show(figures: &Arc<PmFigures>, age: Duration, request: &Request) -> Option<Result<Answer, Error>> {
        match request {
            Request::PmStatus => Some(Ok(Answer::PmStatus(Box::new(translate::status(figures, age))))),
            Request::PmPorts(page) => {
                let (ports, more) = translate::ports(&figures.snapshot, page);
                Some(Ok(Answer::PmPorts { ports, more }))
            }
            _ => None,
        }
    }

    fn takes(request: &Request) -> bool {
        matches!(request, Request::PmRefresh)
    }
}

impl Manager for Driver {
    // Hosts that were moved are asked to move back; `down` waits somewhat longer.
    const STOP_PATIENCE: Duration = Duration::from_secs(1);
    type Machine = PerformanceManager;

    fn registrations() -> Vec<Registration> {
        weft_pm::registrations()
    }

    fn machine(&mut self) -> &mut PerformanceManager {
        &mut self.machine
    }

    fn input(&mut self, news: News) -> Option<Input> {
        Some(match news {
            News::Attached { node_guid, port_guid, port } => Input::Attached { node_guid, port_guid, port },
            News::Detached => Input::Detached,
            News::Mad(mad) => Input::Receive(mad),
            News::PortChanged { up } => Input::PortChanged { up },
            News::Hangup => Input::Refresh,
            News::Stop => Input::Withdraw,
        })
    }

    fn order(&mut self, request: Request, reply: Reply) -> Option<Input> {
        if request != Request::PmRefresh {
            return None;
        }
        // Who asked may have gone.
        let _ = reply.send(Ok(Answer::Done));
        Some(Input::Refresh)
    }

    fn take(&mut self, output: Output) -> Option<AddressedMad> {
        match output {
            Output::Send(mad) => return Some(mad),
            Output::Event(event) => self.tell(event),
        }
        None
    }

    fn end_turn(&mut self, now: Time, is_stopping: bool) -> TurnEnd {
        TurnEnd { done: is_stopping && self.machine.snapshot(now).moves == 0, wake_at: None }
    }

    fn figures(&self, now: Time, attached: bool) -> Arc<PmFigures> {
        let (swept_at, snapshot) = (self.swept_at, self.machine.snapshot(now));
        let (options, editions) = (self.options.clone(), self.editions.subscribe());
        Arc::new(PmFigures { attached, options, swept_at, editions, snapshot })
    }
}

impl Driver {
    pub(crate) fn new(options: Options, events: EventLog) -> Self {
        let (machine, editions) = (PerformanceManager::new(options.clone()), watch::Sender::new(0));
        Self { machine, events, options, swept_at: None, editions }
    }

    fn tell(&mut self, event: Event) {
        let is_routine = matches!(event, Event::Swept { .. });
        let said = EventKind::Pm(event);
        self.editions.send_modify(|edition| *edition += 1);
        if is_routine {
            self.swept_at = Some(utc_now());
            tracing::debug!("{said}");
            return;
        }
        tracing::info!("{said}");
        self.events.publish(said);
    }
}
