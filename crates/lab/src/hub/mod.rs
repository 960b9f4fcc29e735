//! The process of a laboratory's hub: what [`weft_hub`] cannot know of a laboratory.

mod before;
mod devices;
mod past;
mod remote;
mod targets;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::{Builder, LocalOptions};
use weft_control::agent::{PlacedCable, PortEnd};
use weft_control::hub::EndKind;
use weft_control::process::ProcessKind;
use weft_control::{Answer, HexGuid, PastPlace, Utc};
use weft_hub::{Lab, LabError, Options, StartOptions, Target, Trace};
use weft_link::RevocationList;
use weft_process::lock::{LastWord, LockError, ProcessLock, holder, last_word};
use weft_process::{Clock, DoorCounts};

pub use remote::run as run_for_remote;

use devices::Devices;
use past::Past;
use targets::Targets;

use crate::process::spawn;
use crate::{recabling, restart, site};
use weft_bundle::config::hub::{HubConfig, has_started, note_start};
use weft_bundle::config::run::RunOptions;
use weft_bundle::failure::{Failure, in_words};
use weft_bundle::folder::{self, LabFile, LabFolder};
use weft_bundle::identity::issue;
use weft_bundle::identity::papers::{Papers, Unusable};
use weft_bundle::names::HUB;
use weft_bundle::ports::{Transport, keep_units};
use weft_bundle::record::LabRecord;
use weft_managers::door::http;
use weft_managers::door::serve;
use weft_managers::door::serve::Door;
use weft_process::raise_file_limit;

/// How long a step of the start may take in which nothing moves, where `up` did not say.
const PATIENCE: Duration = Duration::from_secs(30);
/// `up` is to give up first, while the step is as it was.
const LONGER_THAN_UP: Duration = Duration::from_secs(2);

/// Runs a hub until a signal or a client asks it to end, or the laboratory is gone. It starts the laboratory if no hub has
/// done that. `ready` is called when it serves.
pub fn run(lab: &LabFolder, config: HubConfig, ready: impl FnOnce()) -> anyhow::Result<()> {
    let before = before::last_beat(lab);
    let lock = take_lock(lab)?;
    weft_process::log::log_to_stderr();
    raise_file_limit();
    start_and_watch(lab, config, before, ready)?;
    lock.note_stop();
    Ok(())
}

/// An error where the laboratory has a hub.
pub fn refuse_second(lab: &LabFolder) -> anyhow::Result<()> {
    let path = lab.place(LabFile::HubLock);
    let holder = holder(&path).with_context(|| format!("cannot ask who locks {}", path.display()))?;
    let Some(pid) = holder else { return Ok(()) };
    let message = format!("a hub of `{}` runs already as process {}", lab.name(), pid.as_raw_nonzero());
    Err(Failure::new(message).hint("one is enough; end it with `kill` to start another"))
}

fn take_lock(lab: &LabFolder) -> anyhow::Result<ProcessLock> {
    let name = lab.name();
    match ProcessLock::take(&lab.place(LabFile::HubLock)) {
        Ok(lock) => Ok(lock),
        Err(LockError::Held { .. }) => {
            refuse_second(lab)?;
            Err(Failure::new(format!("a hub of `{name}` has just ended; try again")).into())
        }
        Err(LockError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::new(format!("`{name}` was started by a version of weft without hubs")).into())
        }
        Err(error) => Err(error.into()),
    }
}

fn start_and_watch(
    lab: &LabFolder,
    config: HubConfig,
    before: Option<Utc>,
    ready: impl FnOnce(),
) -> anyhow::Result<()> {
    let record = LabRecord::load(lab)?;
    let bundle = lab.bundle();
    let papers = Papers::load(&bundle, bundle.identity(HUB), None);
    let starts_processes = site::of(lab)?.starts_processes();
    // Without a door they only tell which lists of revoked identities are the authority's.
    let papers = if config.door.is_some() || !starts_processes {
        Ok(papers?)
    } else {
        papers.map_err(|error| Unusable(in_words(&error)))
    };
    let revoked = issue::revoked(&bundle)?;
    let mut begin = Begin { config, papers, revoked, before, start: None, door: None };
    if !starts_processes {
        return remote::watch(lab, &record, None, begin, ready);
    }
    if let (Some(address), Ok(papers)) = (begin.config.door, &begin.papers) {
        let door = Door::of(address, papers, lab, HUB);
        begin.door = Some(door.counts.clone());
        serve::open(Some(door), None)?;
    }
    if !has_started(lab) {
        begin.start = Some(StartOptions {
            patience: begin.config.patience_ms.map_or(PATIENCE, Duration::from_millis) + LONGER_THAN_UP,
            nodes: begin.config.nodes,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            has_first_sm: record.sm.is_some(),
        });
    }
    let laboratory = Laboratory {
        folder: lab.clone(),
        planned: Mutex::new(Planned::of(&record)),
        targets: Targets::default(),
        run: RunOptions::load(lab)?,
        _kept: kept(&record)?,
        past: Past::default(),
    };
    // Of a laboratory that is to be started they begin when it has.
    if has_started(lab) {
        laboratory.past.begin(lab);
    }
    watch(lab, record.kinds().collect(), begin, Arc::new(laboratory), ready)
}

/// Keeps the ports of a laboratory from others, also while none of its agents lives.
fn kept(record: &LabRecord) -> anyhow::Result<Vec<UnixDatagram>> {
    let blocks = [(Transport::Udp, record.udp_ports), (Transport::Tcp, record.metrics_ports())];
    let of_block = |(transport, block): (_, Option<_>)| Some(keep_units(transport, block?));
    let kept: Vec<_> = blocks.into_iter().filter_map(of_block).collect::<Result<_, _>>()?;
    Ok(kept.into_iter().flatten().collect())
}

/// What a hub begins with.
struct Begin {
    config: HubConfig,
    /// Its own papers, or why they cannot be used.
    papers: Result<Papers, Unusable>,
    revoked: Option<RevocationList>,
    /// When the hub before it lived still, if that has ended without a word.
    before: Option<Utc>,
    /// How it starts the laboratory, if that is still to be done.
    start: Option<StartOptions>,
    /// What its door counts, where it has one.
    door: Option<DoorCounts>,
}

/// Runs the hub itself.
fn watch(
    lab: &LabFolder,
    expected: Vec<(String, ProcessKind)>,
    begin: Begin,
    laboratory: Arc<dyn Lab>,
    ready: impl FnOnce(),
) -> anyhow::Result<()> {
    let Begin { config, papers, revoked, before, start, door } = begin;
    let token = LabRecord::read(&lab.bundle().record())?.http_token;
    let shown_by = papers.as_ref().ok().map(Papers::credentials);
    let http = |address| anyhow::Ok((listen(address)?, http::guard(address, shown_by, token.as_deref())?));
    let http = config.http.map(http).transpose()?;
    let clock = Clock::start();
    let options = Options {
        identity: weft_process::identity(lab.name(), HUB, ProcessKind::Hub, clock),
        clock,
        folder: lab.control_folder(),
        expected,
        start,
        restart: config.restart,
        http,
        papers: match papers {
            Ok(papers) => Arc::new(papers),
            Err(unusable) => Arc::new(unusable),
        },
        door,
        revoked: revoked.map(|list| list.pem().to_owned()),
        before,
    };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .context("cannot start the hub's runtime")?;
    let ran = runtime.block_on(weft_hub::run(options, laboratory, ready));
    runtime.shutdown_background();
    ran.context("the hub cannot go on")
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        Failure::new(format!("cannot serve the hub's HTTP on {address}: {error}"))
            .hint("end the program that has the port, or choose another")
    })
}

/// Methods of [`Lab`] for all that is kept in a folder.
macro_rules! keeps_in_folder {
    () => {
        fn beat(&self) {
            $crate::hub::before::beat(&self.folder);
        }

        fn keep_revoked(&self, list: &str) -> Result<(), LabError> {
            issue::keep(&self.folder.bundle(), list).map_err(|error| in_words(&error).into())
        }

        fn keep_flows(&self, json: &str) -> Result<(), LabError> {
            let written = folder::replace(&self.folder.place(LabFile::Flows), json.as_bytes());
            written.map_err(|error| in_words(&error).into())
        }

        fn kept_flows(&self) -> Option<String> {
            std::fs::read_to_string(self.folder.place(LabFile::Flows)).ok()
        }

        fn past(&self, from: PastPlace) -> Answer {
            self.past.piece(from)
        }

        fn targets(&self) -> Result<Arc<[Target]>, LabError> {
            self.targets.of(&self.folder)
        }
    };
}

use keeps_in_folder;

/// A laboratory on this machine.
struct Laboratory {
    folder: LabFolder,
    planned: Mutex<Planned>,
    /// Those of the newest plan, once somebody has asked.
    targets: Targets,
    run: RunOptions,
    /// Its ports, for as long as it has a hub.
    _kept: Vec<UnixDatagram>,
    past: Past,
}

/// What a laboratory consists of.
struct Planned {
    /// The processes by name.
    kinds: BTreeMap<String, ProcessKind>,
    devices: Devices,
    dilation: Option<u32>,
}

impl Planned {
    fn of(record: &LabRecord) -> Self {
        let (kinds, devices) = (record.kinds().collect(), Devices::of(&record.agents));
        Self { kinds, devices, dilation: record.dilation }
    }
}

impl Lab for Laboratory {
    fn trace(&self, process: &str) -> Trace {
        let lock = self.folder.locks().join(process);
        // What cannot be asked now is asked again as long as the process may live.
        let lives = || holder(&lock).map_or(true, |holder| holder.is_some());
        if lives() {
            return Trace::Alive;
        }
        match last_word(&lock) {
            Err(_) | Ok(LastWord::Nothing) => Trace::NeverStarted,
            // One that has just begun says that it runs, too.
            Ok(LastWord::Runs) if lives() => Trace::Alive,
            Ok(LastWord::Runs) => Trace::Ended(EndKind::Failed),
            Ok(LastWord::Stopped) => Trace::Ended(EndKind::InOrder),
            Ok(LastWord::Killed) => Trace::Ended(EndKind::KilledOnPurpose),
        }
    }

    fn is_going_down(&self) -> bool {
        let down = self.folder.place(LabFile::DownLock);
        !down.exists() || holder(&down).map_or(true, |holder| holder.is_some())
    }

    fn spawn(&self, process: &str) -> Result<Child, LabError> {
        let verb = self.how_to_start(process)?;
        spawn(&self.folder, &self.run, verb, process, Stdio::null()).map_err(|error| in_words(&error).into())
    }

    fn dilation(&self) -> Option<u32> {
        self.planned().dilation
    }

    fn note_start(&self) {
        // Without the note the next hub looks at each process, and finds that nothing is left to do.
        if let Err(error) = note_start(&self.folder) {
            tracing::warn!(error = format!("{error:#}"), "cannot note that the laboratory has started");
        }
        self.past.begin(&self.folder);
    }

    keeps_in_folder!();

    fn plan(&self) -> Result<Vec<(String, ProcessKind)>, LabError> {
        let record = LabRecord::load(&self.folder).map_err(|error| LabError::from(in_words(&error)))?;
        *self.planned() = Planned::of(&record);
        self.targets.forget();
        Ok(record.kinds().collect())
    }

    fn may_tell_of(&self, agent: &str, node: Option<HexGuid>, description: Option<&str>) -> bool {
        self.planned().devices.may_tell_of(agent, node.map(Into::into), description)
    }

    fn write_cables(&self, taken_out: &[[PortEnd; 2]], put_in: &[PlacedCable]) -> Result<(), LabError> {
        recabling::note(&self.folder, taken_out, put_in).map_err(|error| in_words(&error).into())
    }

    fn starts_processes(&self) -> bool {
        true
    }

    fn start(&self, process: &str) -> Result<Child, LabError> {
        let verb = self.how_to_start(process)?;
        restart::start(&self.folder, verb, process).map_err(|error| in_words(&error).into())
    }
}

impl Laboratory {
    fn planned(&self) -> MutexGuard<'_, Planned> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hidden verb that runs a process.
    fn how_to_start(&self, process: &str) -> Result<&'static str, LabError> {
        let kind = self.planned().kinds.get(process).copied();
        kind.map(ProcessKind::name).ok_or_else(|| "the laboratory was not planned with it".into())
    }
}
