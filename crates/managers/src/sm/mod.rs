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
mod partitions;
mod status;

use std::path::{Path, PathBuf};

use weft_control::process::ProcessKind;
use weft_sm::{GuidToLid, Options};

pub use history::HistoryFile;

use crate::manager::{AttachPoint, Process, Seat, loopback};
use crate::post::Post;
use crate::start::Start;
use weft_bundle::config::managers::SmPart;
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle;
use weft_bundle::names::SM;
use weft_bundle::partitions::PartitionsSource;

/// Files of the subnet manager, and the port where it serves metrics on loopback.
#[derive(Clone, Debug, Default)]
pub struct SmFiles {
    /// Where LIDs are kept, if not in the folder to run in.
    pub guid2lid: Option<PathBuf>,
    /// Where it writes down what tables are computed from, if it does.
    pub history: Option<PathBuf>,
    /// The port, if it is not the bundle's.
    pub metrics_port: Option<u16>,
}

/// What the subnet manager's process goes by.
#[derive(Clone, Debug)]
pub struct SmConfig {
    /// Where it sits.
    pub seat: Seat,
    /// Its name among the processes.
    pub name: String,
    /// Where LIDs are kept.
    pub guid2lid: Option<PathBuf>,
    /// Where it writes down what tables are computed from.
    pub history: Option<PathBuf>,
    /// Who is to read a line about the subnet when it is up.
    pub announce: Option<fn(&str)>,
    /// Whether it ends then.
    pub once: bool,
    /// Options of the machine.
    pub options: Options,
    /// Where its partitions are read from, when it begins and on SIGHUP.
    pub partitions: Option<PartitionsSource>,
}

impl SmConfig {
    /// A manager of a laboratory, from its bundle.
    pub fn of_bundle(start: &Start, files: SmFiles) -> anyhow::Result<Self> {
        let SmPart { seat, options } = bundle::load(&start.bundle.manager(&start.name))?;
        let own = start.run_folder(&seat.lab)?.guid2lid(&start.name);
        let partitions = PartitionsSource::of(&start.bundle);
        let mut options = start.keys()?.put_into(options);
        let planned = options.routing.engine.partitions.take();
        options.routing.engine.partitions = partitions.read()?.or(planned);
        Ok(Self {
            seat: Seat::new(seat, start, files.metrics_port)?,
            name: start.name.clone(),
            guid2lid: Some(files.guid2lid.unwrap_or(own)),
            history: files.history,
            announce: None,
            once: false,
            options,
            partitions: Some(partitions),
        })
    }

    /// A manager of its own, without a laboratory, at a node of a fabric that ibsim emulates. It says by `announce` when the subnet is up.
    pub fn alone(attach: AttachPoint, files: SmFiles, options: Options, announce: fn(&str)) -> Self {
        let post = Post { metrics: files.metrics_port.map(loopback), ..Post::default() };
        Self {
            seat: Seat { attach, waits: false, post },
            name: SM.to_owned(),
            guid2lid: files.guid2lid,
            history: files.history,
            announce: Some(announce),
            once: false,
            options,
            partitions: None,
        }
    }
}

/// Runs until a signal asks it to end.
pub fn run(config: SmConfig) -> anyhow::Result<()> {
    let process = Process::begin(config.seat.clone(), &config.name, ProcessKind::Sm)?;
    let known = config.guid2lid.as_deref().map(load_guid2lid).transpose()?.unwrap_or_default();
    let history = config.history.as_deref().map(HistoryFile::open).transpose()?;
    let driver = driver::Driver::new(config, &known, history, process.events());
    process.run(driver)
}

/// LIDs kept from an earlier run. A file that makes no sense is an error: guessing would renumber a fabric.
pub fn load_guid2lid(path: &Path) -> anyhow::Result<GuidToLid> {
    match weft_bundle::input::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(GuidToLid::default()),
        Err(error) => Err(Failure::bad_input(format!("cannot read {}: {error}", path.display())).into()),
        Ok(text) => GuidToLid::parse(&path.display().to_string(), &text).map_err(|error| {
            Failure::bad_input(error.to_string()).hint("remove the file to have LIDs assigned afresh")
        }),
    }
}
