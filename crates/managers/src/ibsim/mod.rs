//! The process that serves ibsim's client protocol for a laboratory: a client of the agents' sockets.
//!
//! ```text
//!   program ─control, MADs─▶ weft_ibsim::Server ─attach, MADs─▶ agent of the program's node
//!   clock ──────────────────▶      (machine)          ─answers, MADs, status 110─▶ program
//!   desk ── signals, requests ──▶ figures, events
//! ```

mod driver;
mod figures;
mod nodes;

use std::path::PathBuf;

use anyhow::Context;
use weft_bundle::config::managers::IbsimPart;
use weft_bundle::folder::bundle;
use weft_bundle::record::LabRecord;
use weft_control::EventKind;
use weft_control::event::ProcessEvent;
use weft_control::process::ProcessKind;
use weft_process::lock::{LockFolder, ProcessLock};
use weft_process::{Clock, Desk, DeskOptions, EventLog, open_desk};

use crate::start::Start;
use figures::{Figures, Shown};

/// What the server's process goes by.
#[derive(Clone, Debug)]
pub struct IbsimConfig {
    /// Its name in the laboratory.
    pub name: String,
    /// The laboratory's.
    pub lab: String,
    /// The lock that it holds while it lives.
    pub lock: PathBuf,
    /// Its control socket. One that serves a single program has none: it is no part of the laboratory, and a hub would
    /// start it again without its program.
    pub control: Option<PathBuf>,
    /// What it is told.
    pub part: IbsimPart,
    /// The laboratory's record: which agent runs which node.
    pub record: PathBuf,
    /// The laboratory's cabling: what nodes are called.
    pub topology: PathBuf,
    /// The folder of the agents' sockets.
    pub sockets: PathBuf,
}

impl IbsimConfig {
    fn of_bundle(args: &Start) -> anyhow::Result<Self> {
        let bundle = &args.bundle;
        let lab = LabRecord::read(&bundle.record())?.lab;
        let run = args.run_folder(&lab)?;
        let part: IbsimPart = bundle::load(&bundle.manager(&args.name))?;
        Ok(Self {
            name: args.name.clone(),
            lock: run.locks().join(&args.name),
            control: (!part.bound).then(|| run.control(&args.name)),
            lab,
            part,
            record: bundle.record(),
            topology: bundle.topology(),
            sockets: run.sockets(),
        })
    }
}

/// Runs until a signal or a client asks it to end, or until its starter is gone if it is bound to that.
pub fn run(args: &Start) -> anyhow::Result<()> {
    let config = IbsimConfig::of_bundle(args)?;
    let lock = ProcessLock::take(&config.lock)?;
    weft_process::log::log_to_stderr();
    let (desk, events, mut driver) = prepare(&config)?;
    events.publish(EventKind::Process(ProcessEvent::Ready));
    driver.run(desk, config.part.bound.then(std::io::stdin))?;
    lock.note_stop();
    events.publish(EventKind::Process(ProcessEvent::Stopping));
    Ok(())
}

/// Takes the control socket, the signals, and the sockets for programs.
fn prepare(config: &IbsimConfig) -> anyhow::Result<(Desk<Figures>, EventLog, driver::Driver)> {
    let clock = Clock::start();
    let identity = weft_process::identity(&config.lab, &config.name, ProcessKind::Ibsim, clock);
    let events = EventLog::new(&config.name, clock);
    events.publish(EventKind::Process(weft_process::started(&identity)));
    let driver = driver::Driver::new(config, events.clone())?;
    let control = config.control.clone();
    let folder = Some(LockFolder::of(&config.lock).context("cannot open the folder of the lock")?);
    let events_too = events.clone();
    let options = DeskOptions {
        identity,
        clock,
        events: events_too,
        control,
        metrics: None,
        papers: None,
        door: None,
        folder,
    };
    let desk = open_desk::<Shown>(options).context("cannot serve the control socket")?;
    Ok((desk, events, driver))
}
