//! The subnet manager's process: the loop of [`crate::manager`] around its machine, and what comes of its events.
//!
//! ```text
//!   SubnetManager ──LIDs──▶ guid2lid
//!    (machine)    ─events─▶ control, /metrics
//!                 ──past──▶ --history
//! ```

mod driver;
mod figures;
mod history;
mod status;
mod translate;

use std::path::{Path, PathBuf};

use weft_control::process::ProcessKind;
use weft_sm::{GuidToLid, LidScheme};

pub(crate) use history::HistoryFile;
pub(crate) use translate::{engine_report, event as said, routing as routing_report};

use crate::cli::{ProcessArgs, SmProcessArgs};
use crate::manager::{AttachPoint, Process, Seat, loopback};
use weft_bundle::config::managers::SmPart;
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle;
use weft_bundle::names::SM;

/// What the subnet manager's process goes by.
#[derive(Clone, Debug)]
pub(crate) struct SmConfig {
    /// Where it sits.
    pub(crate) seat: Seat,
    /// Its name among the processes.
    pub(crate) name: String,
    /// Where LIDs are kept.
    pub(crate) guid2lid: Option<PathBuf>,
    /// Where it writes down what tables are computed from.
    pub(crate) history: Option<PathBuf>,
    /// Whether it says on standard output when the subnet is up.
    pub(crate) announce: bool,
    /// Whether it ends then.
    pub(crate) once: bool,
    /// What the machine is told.
    pub(crate) options: weft_sm::Options,
}

impl SmConfig {
    /// A manager of a laboratory, from its bundle.
    pub(crate) fn of_bundle(process: &ProcessArgs, args: &SmProcessArgs) -> anyhow::Result<Self> {
        let SmPart { seat, options } = bundle::load(&process.bundle().manager(&process.name))?;
        let own = process.run_folder(&seat.lab)?.guid2lid(&process.name);
        let mut seat = Seat::new(seat, process)?;
        seat.metrics = args.metrics_port.map(loopback).or(seat.metrics);
        Ok(Self {
            seat,
            name: process.name.clone(),
            guid2lid: Some(args.guid2lid.clone().unwrap_or(own)),
            history: args.history.clone(),
            announce: false,
            once: false,
            options: process.keys()?.put_into(options),
        })
    }

    /// A manager of its own, without a laboratory, for a fabric that ibsim emulates.
    pub(crate) fn on_ibsim(server: &str, args: &SmProcessArgs) -> anyhow::Result<Self> {
        let node = args.at.clone().unwrap_or_default();
        Ok(Self {
            seat: Seat {
                lock: None,
                attach: AttachPoint::Ibsim { server: server.to_owned(), node },
                waits: false,
                lab: String::new(),
                control: None,
                metrics: args.metrics_port.map(loopback),
                door: None,
                papers: None,
            },
            name: SM.to_owned(),
            guid2lid: args.guid2lid.clone(),
            history: args.history.clone(),
            announce: true,
            once: args.once,
            // As OpenSM does.
            options: crate::sm_options::sm_options(&args.sm, None, (false, LidScheme::Prepopulated))?,
        })
    }
}

/// Runs until a signal asks it to end.
pub(crate) fn run(config: SmConfig) -> anyhow::Result<()> {
    let process = Process::begin(&config.seat, &config.name, ProcessKind::Sm)?;
    let known = config.guid2lid.as_deref().map(load_guid2lid).transpose()?.unwrap_or_default();
    let history = config.history.as_deref().map(HistoryFile::open).transpose()?;
    let driver = driver::Driver::new(config, &known, history, process.events());
    process.run(driver)
}

/// LIDs kept from an earlier run. A file that makes no sense is an error: guessing would renumber a fabric.
pub(crate) fn load_guid2lid(path: &Path) -> anyhow::Result<GuidToLid> {
    match weft_bundle::input::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(GuidToLid::default()),
        Err(error) => Err(Failure::bad_input(format!("cannot read {}: {error}", path.display())).into()),
        Ok(text) => GuidToLid::parse(&path.display().to_string(), &text).map_err(|error| {
            Failure::bad_input(error.to_string()).hint("remove the file to have LIDs assigned afresh").into()
        }),
    }
}
