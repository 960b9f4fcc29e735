//! A hub of remote processes, as in containers: it reaches them over the network, and starts none.

use std::path::Path;
use std::process::Child;
use std::sync::Arc;

use anyhow::Context;
use weft_bundle::config::hub::HubConfig;
use weft_bundle::failure::{Failure, in_words};
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::folder::{self, LabFile, LabFolder};
use weft_bundle::identity::issue;
use weft_bundle::identity::papers::Papers;
use weft_bundle::names::HUB;
use weft_bundle::record::LabRecord;
use weft_control::agent::{PlacedCable, PortEnd};
use weft_control::process::ProcessKind;
use weft_control::{Answer, HexGuid, PastPlace};
use weft_hub::{Lab, LabError, Target};
use weft_link::{Credentials, IdentityError};
use weft_managers::door::reach::Far;
use weft_managers::door::serve::{self, Door};
use weft_process::lock::ProcessLock;
use weft_process::raise_file_limit;
use weft_topology::Fabric;

use crate::hub::before::last_beat;
use crate::hub::devices::Devices;
use crate::hub::past::Past;
use crate::hub::targets::Targets;
use crate::hub::{Begin, keeps_in_folder, watch as watch_processes};
use crate::recabling::Learner;
use crate::site::remotes;

/// The file with the cabling that agents begin with.
const PLANNED: &str = "topology.planned";

/// Runs one until a signal or a client asks it to end.
pub fn run(bundle: &Bundle, run: &Path, identity: Option<&Path>, config: HubConfig) -> anyhow::Result<()> {
    let record = LabRecord::of_bundle(bundle)?;
    let own = bundle.identity(HUB);
    let papers = Papers::load(bundle, identity.map_or(own, Path::to_owned), None)?;
    let lab = LabFolder::of_run(run, &record.lab)?;
    lab.prepare_for(HUB)?;
    let before = last_beat(&lab);
    let lock = ProcessLock::take(&lab.place(LabFile::HubLock))?;
    weft_process::log::log_to_stderr();
    raise_file_limit();
    recall(&lab, papers.credentials())?;
    let topology = weft_bundle::input::read(&bundle.topology());
    let topology = topology.with_context(|| format!("cannot read {}", bundle.topology().display()))?;
    let planned = weft_bundle::topology_file::load(&bundle.topology())?;
    // A life before may have written down how the same plan's laboratory was recabled.
    let (kept, begun) = (lab.bundle().topology(), lab.path().join(PLANNED));
    if !kept.exists() || std::fs::read(&begun).ok().as_ref() != Some(&topology) {
        folder::replace(&kept, &topology)?;
        folder::replace(&begun, &topology)?;
    }
    // What clients read of it.
    record.store(&lab.bundle())?;
    for manager in &record.vmms {
        let hosts = weft_bundle::input::text(&bundle.manager(&manager.name))?;
        folder::private_folder(&lab.path().join("managers"))?;
        folder::write(&lab.bundle().manager(&manager.name), hosts.as_bytes())?;
    }
    let revoked = papers.credentials().revoked().map(|list| list.as_ref().clone());
    let begin = Begin { config, papers: Ok(papers), revoked, before, start: None, door: None };
    watch(&lab, &record, Some(planned), begin, || ())?;
    lock.note_stop();
    Ok(())
}

/// Watches remote processes, in the folder of their laboratory here.
pub(crate) fn watch(
    lab: &LabFolder,
    record: &LabRecord,
    planned: Option<Fabric>,
    mut begin: Begin,
    ready: impl FnOnce(),
) -> anyhow::Result<()> {
    let papers = begin.papers.as_ref().map_err(|unusable| Failure::new(unusable.0.clone()))?;
    let door = begin.config.door.map(|address| Door::of(address, papers, lab, HUB));
    let counts = door.as_ref().map(|door| door.counts.clone()).unwrap_or_default();
    let far = Far { counts: counts.clone(), ..Far::of(lab, papers, remotes(record)?) };
    begin.door = Some(counts);
    serve::open(door, Some(far))?;
    let (folder, devices) = (lab.clone(), Devices::of(&record.agents));
    let learner = Learner::begin(lab, record, planned)?;
    let past = Past::default();
    past.begin(lab);
    let targets = Targets::default();
    let remote = Remote { folder, devices, dilation: record.dilation, learner, targets, past };
    watch_processes(lab, record.kinds().collect(), begin, Arc::new(remote), ready)
}

/// Takes the list of revoked identities that a life before kept, unless the bundle has a newer one.
fn recall(lab: &LabFolder, credentials: &Credentials) -> anyhow::Result<()> {
    let Some(kept) = issue::revoked(&lab.bundle())? else { return Ok(()) };
    let shown = lab.bundle().revoked();
    match credentials.revoke(&kept) {
        Ok(_) => Ok(()),
        // Another laboratory has run in this folder.
        Err(IdentityError::Tls(error)) => {
            tracing::warn!(%error, "{} is another authority's, and is not used", shown.display());
            Ok(())
        }
        Err(error) => Err(Failure::new(format!("cannot use {}: {error}", shown.display()))
            .hint("revoke again what both lists have, then remove the file")),
    }
}

/// Processes that others start, and that only the network tells of; with the folder that their hub runs in.
struct Remote {
    folder: LabFolder,
    devices: Devices,
    dilation: Option<u32>,
    learner: Learner,
    targets: Targets,
    past: Past,
}

impl Lab for Remote {
    fn dilation(&self) -> Option<u32> {
        self.dilation
    }

    keeps_in_folder!();

    fn plan(&self) -> Result<Vec<(String, ProcessKind)>, LabError> {
        Err("its processes are planned where they are started".into())
    }

    fn write_cables(&self, taken_out: &[[PortEnd; 2]], put_in: &[PlacedCable]) -> Result<(), LabError> {
        self.learner.write(taken_out, put_in).map_err(|error| in_words(&error).into())
    }

    fn may_tell_of(&self, agent: &str, node: Option<HexGuid>, description: Option<&str>) -> bool {
        self.devices.may_tell_of(agent, node.map(Into::into), description)
    }

    fn met(&self, process: &str) {
        self.learner.met(process);
    }

    fn start(&self, _: &str) -> Result<Child, LabError> {
        Err("it is remote, and is started where it runs".into())
    }
}
