//! From a laboratory that is wanted to one that runs: the same steps wherever its processes run, but for starting these.

mod hosts;

use std::time::{Duration, Instant};

use weft_bundle::config::hub::HubConfig;
use weft_bundle::config::run::RunOptions;
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::folder::{Base, LabFile, LabFolder};
use weft_bundle::names::SM;
use weft_bundle::part::Part;
use weft_bundle::place::groups::Groups;
use weft_bundle::plan;
use weft_bundle::plan::places::Places;
use weft_bundle::plan::wanted::Wanted;
use weft_bundle::ports::Search;
use weft_bundle::record::LabRecord;
use weft_process::lock::ProcessLock;
use weft_topology::{Fabric, PortRef};

use crate::launch::Launcher;
use crate::progress::{Goal, Phases, StartPhase};
use crate::scene::{TapeTo, taping};
use crate::signals::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, Signals};
use crate::site::{self, metrics};
use crate::teardown::clear_unfinished;

pub use hosts::{OnHosts, on_hosts};

/// A laboratory that has its name and its bundle, and of which nothing runs yet.
struct Planned {
    lab: LabFolder,
    record: LabRecord,
    /// From here on an interrupt must not end this process before it has cleared up.
    interrupt: Signals,
    /// Keeps the ports of this machine that it is planned with.
    claims: Box<dyn std::any::Any>,
    _lock: ProcessLock,
}

/// Makes a laboratory, of whatever and wherever its processes are to run. `prepare`: writes into its folder what only this start needs.
fn planned(
    base: &Base,
    name: &str,
    from: &From<'_>,
    prepare: impl FnOnce(&LabFolder, &LabRecord) -> anyhow::Result<()>,
) -> anyhow::Result<Planned> {
    clear_unfinished(base)?;
    refuse_running(base, name)?;
    let interrupt = Signals::watch(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])?;
    let unfinished = Folder::begin(base, name)?;
    let _lock = ProcessLock::take(&unfinished.folder().place(LabFile::UpLock))?;
    let (record, claims) = write_bundle(base, unfinished.folder(), from)?;
    prepare(unfinished.folder(), &record)?;
    metrics::write_scrape_file(unfinished.folder(), &record)?;
    let lab = unfinished.settle(base)?.ok_or_else(|| already_running(name))?;
    Ok(Planned { lab, record, interrupt, claims, _lock })
}

/// How the processes run, and their hub.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Options of the processes.
    pub options: &'a RunOptions,
    /// The hub's configuration.
    pub hub: HubConfig,
    /// Where the laboratory is taped to, from its start to its end.
    pub tape: Option<TapeTo>,
}

/// Starts a laboratory on this machine and gives its launcher to `then` when it is up. The laboratory ends with the launcher, unless
/// it is released.
///
/// # Errors
/// When there is one of that name, when its bundle cannot be made, or when it does not come up.
pub fn with<T>(
    base: &Base,
    name: &str,
    from: &From<'_>,
    run: Run<'_>,
    goal: Goal,
    begun: Instant,
    then: impl FnOnce(Launcher<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let tape = run.tape.clone();
    let prepare = |lab: &LabFolder, record: &LabRecord| prepare_run(lab, record, run, &goal);
    let Planned { lab, record, interrupt, claims, _lock } = planned(base, name, from, prepare)?;
    let phases: &[StartPhase] =
        if goal.subnets.is_empty() { &StartPhase::ALL[..2] } else { &StartPhase::ALL };
    let phases = Phases::begin(begun, phases, lab.front());
    let mut launcher = match Launcher::new(&lab, &record, goal, interrupt, phases) {
        Ok(launcher) => launcher,
        Err(error) => {
            lab.remove()?;
            return Err(error);
        }
    };
    // What goes wrong from here on, the launcher's end clears up.
    if let Some(to) = &tape {
        taping::start(&lab, to)?;
    }
    if let Err(error) = launcher.bring_up() {
        if launcher.is_kept() {
            launcher.phases.end();
            launcher.release();
        }
        return Err(error);
    }
    launcher.phases.end();
    // The agents keep their ports themselves by now.
    drop(claims);
    then(launcher)
}

/// Adds to the bundle what belongs to a run on this machine.
fn prepare_run(
    lab: &LabFolder,
    record: &LabRecord,
    Run { options, hub, tape: _ }: Run<'_>,
    goal: &Goal,
) -> anyhow::Result<()> {
    lab.make_locks(record.processes())?;
    if *options != RunOptions::default() {
        options.store(lab)?;
    }
    for place in &record.vmms {
        // An empty journal is that of a new laboratory; without one the VM manager takes it for lost.
        weft_bundle::folder::write(&lab.vm_journal(&place.name), b"")?;
    }
    // The hub starts the other managers when the first one has brought up its piece.
    let first = goal.subnets.iter().find(|(name, _)| name == SM);
    let nodes = first.map(|(_, nodes)| u32::try_from(*nodes).unwrap_or(u32::MAX));
    let patience_ms = Some(u64::try_from(goal.patience.as_millis()).unwrap_or(u64::MAX));
    HubConfig { nodes, patience_ms, ..hub }.store(lab)
}

/// What a laboratory is started from.
pub enum From<'a> {
    /// A plan that is to be made.
    Plan(&'a Wanted<'a>),
    /// A bundle that was written before.
    Bundle(&'a Bundle),
    /// This host's share of one.
    Part(&'a Part),
}

/// Writes the bundle into the laboratory's folder, or copies it. The ports of this machine stay claimed until the second part is
/// dropped.
fn write_bundle(
    base: &Base,
    folder: &LabFolder,
    from: &From<'_>,
) -> anyhow::Result<(LabRecord, Box<dyn std::any::Any>)> {
    match from {
        From::Plan(wanted) => {
            let groups = Groups::new(wanted.fabric, wanted.adapters, wanted.pack);
            let places = Places::choose(base, wanted, &groups, Search::NOW)?;
            let record = plan::write(&folder.bundle(), folder.name(), wanted, &groups, &places)?;
            Ok((record, Box::new(places)))
        }
        From::Bundle(bundle) => {
            let record = LabRecord::read(&bundle.record())?;
            let claims = Places::claim_again(base, &record)?;
            bundle.copy_to(&folder.bundle())?;
            Ok((record, Box::new(claims)))
        }
        From::Part(part) => {
            part.write_to(&folder.bundle())?;
            Ok((part.record.clone(), Box::new(())))
        }
    }
}

/// A folder of a laboratory that is not finished: it goes when this does.
struct Folder(Option<LabFolder>);

impl Folder {
    fn begin(base: &Base, name: &str) -> anyhow::Result<Self> {
        Ok(Self(Some(base.begin(name)?)))
    }

    fn folder(&self) -> &LabFolder {
        self.0.as_ref().expect("it is there until it is settled")
    }

    fn settle(mut self, base: &Base) -> anyhow::Result<Option<LabFolder>> {
        let settled = self.folder().clone().settle(base)?;
        if settled.is_some() {
            self.0 = None;
        }
        Ok(settled)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            // Whatever made us give up has been reported; a folder that stays is found by `down --all`.
            let _ = folder.remove();
        }
    }
}

/// A laboratory of that name that is alive is an error; the leftovers of a dead one are cleared.
fn refuse_running(base: &Base, name: &str) -> anyhow::Result<()> {
    let lab = base.lab(name)?;
    if !lab.exists()? {
        return Ok(());
    }
    if !site::of(&lab)?.clear_dead()? {
        return Err(already_running(name));
    }
    lab.say(&format!("cleared what a crashed laboratory `{name}` left behind"));
    Ok(())
}

fn already_running(name: &str) -> anyhow::Error {
    Failure::new(format!("a laboratory `{name}` is already running"))
        .hint(format!("take it down with `weft down --lab {name}`, or give this one a name with --lab"))
}

/// What the launcher of a laboratory waits for.
///
/// `managers`: those that begin their subnets, by name.
pub fn goal(
    fabric: &Fabric,
    managers: impl IntoIterator<Item = (String, PortRef)>,
    patience: Duration,
) -> Goal {
    let pieces = fabric.pieces();
    let nodes = |seat| pieces.of_seat(seat).map_or(0, |piece| pieces.nodes(piece) as u64);
    let subnets = managers.into_iter().map(|(name, seat)| (name, nodes(seat))).collect();
    let cable_ends = fabric.cables().count() as u64 * 2;
    Goal { subnets, cable_ends, patience, keep: None }
}
