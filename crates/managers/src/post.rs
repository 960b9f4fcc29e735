//! The post of a process in its laboratory: the lock that it holds, and where it answers clients.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use weft_bundle::config::managers::SeatPart;
use weft_bundle::failure::Failure;
use weft_bundle::identity::papers::Papers;
use weft_control::EventKind;
use weft_control::event::ProcessEvent;
use weft_control::process::ProcessKind;
use weft_metrics::Guard;
use weft_process::lock::{LockFolder, ProcessLock};
use weft_process::{Clock, Desk, DeskOptions, EventLog, Manned, open_desk, raise_file_limit};

use crate::door::http;
use crate::door::serve::{self, Door};
use crate::start::Start;

/// Where a process answers. The default is that of a process without a laboratory.
#[derive(Clone, Debug, Default)]
pub struct Post {
    /// Its laboratory; empty without one.
    pub lab: String,
    /// The lock that it holds while it lives.
    pub lock: Option<PathBuf>,
    /// Its control socket.
    pub control: Option<PathBuf>,
    /// Where it serves `/metrics`, and to whom.
    pub metrics: Option<(SocketAddr, Guard)>,
    /// Where it lets clients in over QUIC.
    pub door: Option<Door>,
    /// What it proves itself with, where it talks to others over QUIC.
    pub papers: Option<Papers>,
}

/// What a process holds while it lives.
#[derive(Debug)]
pub(crate) struct Held<F> {
    lock: Option<ProcessLock>,
    /// What happens to it, and who wants to hear of it.
    pub(crate) events: EventLog,
    /// Its clients' requests, and the signals that it takes.
    pub(crate) desk: Desk<F>,
}

impl Post {
    /// The post of a process that the bundle describes so.
    pub fn new(part: &SeatPart, start: &Start) -> anyhow::Result<Self> {
        let run = start.run_folder(&part.lab)?;
        let shows = part.metrics.is_some_and(|address| !address.ip().is_loopback());
        let talks = part.quic.is_some() || start.door.is_some() || shows;
        let papers = talks.then(|| start.papers(None)).transpose()?;
        let (shown_by, token) = (papers.as_ref().map(Papers::credentials), part.http_token.as_deref());
        let guard = |address| anyhow::Ok((address, http::guard(address, shown_by, token)?));
        Ok(Self {
            lab: part.lab.clone(),
            lock: Some(run.locks().join(&start.name)),
            control: Some(run.control(&start.name)),
            metrics: part.metrics.map(guard).transpose()?,
            door: start.door.zip(papers.as_ref()).map(|(at, papers)| Door::of(at, papers, &run, &start.name)),
            papers,
        })
    }

    /// Takes the lock, the signals, the control socket, the port for metrics and the door.
    pub(crate) fn take<M: Manned>(&self, name: &str, kind: ProcessKind) -> anyhow::Result<Held<M::Figures>> {
        let lock = self.lock.as_deref().map(ProcessLock::take).transpose()?;
        weft_process::log::log_to_stderr();
        raise_file_limit();
        let clock = Clock::start();
        let identity = weft_process::identity(&self.lab, name, kind, clock);
        let events = EventLog::new(name, clock);
        events.publish(EventKind::Process(weft_process::started(&identity)));
        let metrics = self.metrics.clone().map(|(address, guard)| anyhow::Ok((listen(address)?, guard)));
        let folder = self.lock.as_deref().map(LockFolder::of).transpose();
        let desk = open_desk::<M>(DeskOptions {
            identity,
            clock,
            events: events.clone(),
            control: self.control.clone(),
            metrics: metrics.transpose()?,
            papers: self.papers.clone().map(|papers| Arc::new(papers) as Arc<dyn weft_process::Papers>),
            door: self.door.as_ref().map(|door| door.counts.clone()),
            folder: folder.context("cannot open the folder of the lock")?,
        })
        .context("cannot serve the control socket")?;
        if let Some(door) = &self.door {
            serve::open(Some(door.clone()), None)?;
        }
        Ok(Held { lock, events, desk })
    }
}

impl<F> Held<F> {
    /// Publishes what happened to the process itself.
    pub(crate) fn publish(&self, event: ProcessEvent) {
        self.events.publish(EventKind::Process(event));
    }

    /// Notes that the process ends in order: what watches it leaves it so.
    pub(crate) fn note_stop(&self) {
        self.lock.iter().for_each(ProcessLock::note_stop);
    }
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        Failure::new(format!("cannot serve metrics on {address}: {error}"))
            .hint("end the program that has the port, or choose other ports with --metrics")
    })
}
