//! Requests to the managers of a laboratory, and their answers.

use std::time::Duration;

use weft_bundle::config::managers::SmPart;
use weft_bundle::folder::{LabFolder, bundle};
use weft_bundle::partitions::PartitionsSource;
use weft_bundle::record::LabRecord;
use weft_control::agent::PortEnd;
use weft_control::pm::{PmPort, PmStatus};
use weft_control::sm::{SmState, SmStatus};
use weft_control::vmm::{VPort, VmmStatus};
use weft_control::{Answer, EventFilter, NamePage, Page, Request, Since};
use weft_process::{Client, ClientError, all_pages, unexpected};
use weft_routing::EngineOptions;

use crate::site;
use crate::site::frozen::Frozen;

/// Longer than a manager's own server waits for a manager that is busy.
const PATIENCE: Duration = Duration::from_secs(4);

/// What a manager says of itself.
#[derive(Clone, Debug)]
pub enum Told<T> {
    /// Its process does not run.
    NotRunning,
    /// It runs and does not answer: why.
    Silent(String),
    /// How it is.
    Status(T),
}

impl<T> Told<T> {
    /// How it is, if it says so.
    pub fn status(&self) -> Option<&T> {
        match self {
            Self::Status(status) => Some(status),
            Self::NotRunning | Self::Silent(_) => None,
        }
    }

    /// Whether its process runs.
    pub fn is_running(&self) -> bool {
        !matches!(self, Self::NotRunning)
    }
}

/// What a subnet manager routes with.
#[derive(Clone, Debug)]
pub struct RoutedWith {
    /// Options of the engines, and the partitions.
    pub engine: EngineOptions,
    /// Whether a data lane is management's alone where links have two.
    pub management_lane: bool,
}

/// A subnet manager of the laboratory.
#[derive(Clone, Debug)]
pub struct SubnetManager {
    /// Its name among the processes.
    pub name: String,
    /// What it says.
    pub told: Told<SmStatus>,
}

/// Asks every subnet manager of the laboratory how it is.
pub fn subnet_managers(folder: &LabFolder, record: &LabRecord) -> anyhow::Result<Vec<SubnetManager>> {
    let managers = record.subnet_managers().map(|(name, _)| {
        let told = ask(folder, &name, Request::SmStatus, |answer| match answer {
            Answer::SmStatus(status) => Some(*status),
            _ => None,
        })?;
        Ok(SubnetManager { name, told })
    });
    managers.collect()
}

/// The subnet manager in charge, or else the first one; `None` where there is none.
pub fn in_charge(managers: &[SubnetManager]) -> Option<&SubnetManager> {
    let is_master = |manager: &&SubnetManager| {
        manager.told.status().is_some_and(|status| status.state() == Some(SmState::Master))
    };
    managers.iter().find(is_master).or_else(|| managers.first())
}

/// The options and partitions that a subnet manager routes with: as it says itself. One that says nothing left what its configuration
/// and the partitions file have; where these cannot be read, as behind a door, nothing is known.
pub fn routed_with(folder: &LabFolder, name: &str) -> Option<RoutedWith> {
    let told = ask(folder, name, Request::RoutingOptions, |answer| match answer {
        Answer::RoutingOptions { engine, management_lane } => {
            let engine = serde_json::from_str(&engine).ok()?;
            Some(RoutedWith { engine, management_lane })
        }
        _ => None,
    });
    told.ok().and_then(|told| told.status().cloned()).or_else(|| configured(folder, name))
}

fn configured(folder: &LabFolder, name: &str) -> Option<RoutedWith> {
    let bundle = folder.bundle();
    let SmPart { options, .. } = bundle::load(&bundle.manager(name)).ok()?;
    let mut engine = options.routing.engine;
    if let Ok(Some(partitions)) = PartitionsSource::of(&bundle).read() {
        engine.partitions = Some(partitions);
    }
    Some(RoutedWith { engine, management_lane: options.lanes.management_lane })
}

/// Asks a performance manager how it is.
pub fn performance_manager(folder: &LabFolder, name: &str) -> anyhow::Result<Told<PmStatus>> {
    ask(folder, name, Request::PmStatus, |answer| match answer {
        Answer::PmStatus(status) => Some(*status),
        _ => None,
    })
}

/// Asks a VM manager how it is.
pub fn vm_manager(folder: &LabFolder, name: &str) -> anyhow::Result<Told<VmmStatus>> {
    ask(folder, name, Request::VmmStatus, |answer| match answer {
        Answer::VmmStatus(status) => Some(*status),
        _ => None,
    })
}

/// Asks a VM manager for all its virtual machines.
pub fn all_vports(folder: &LabFolder, name: &str) -> Result<Vec<VPort>, ClientError> {
    let mut client = Client::connect(&folder.control(name))?;
    all_pages(|last: Option<&VPort>| {
        let page = NamePage { after: last.map(|port| port.vm.clone()), limit: None };
        let Answer::Vms { vports, more } = client.ask(Request::Vms(page), PATIENCE)? else {
            return unexpected("vms");
        };
        Ok((vports, more))
    })
}

/// Asks a performance manager for all its ports.
pub fn performance_ports(folder: &LabFolder, name: &str) -> anyhow::Result<Vec<PmPort>> {
    let mut client = Client::connect(&folder.control(name))?;
    all_pages(|last: Option<&PmPort>| {
        let page = Page { after: last.map(PortEnd::from), limit: None };
        let Answer::PmPorts { ports, more } = client.ask(Request::PmPorts(page), PATIENCE)? else {
            return unexpected("pm-ports");
        };
        Ok((ports, more))
    })
}

/// Has a process tell of these kinds of events from now on.
pub fn listen(folder: &LabFolder, process: &str, from: Since, kinds: &[&str]) -> Result<Client, ClientError> {
    let mut client = Client::connect(&folder.control(process))?;
    let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    client.ask(Request::Events(EventFilter { from, kinds, ..EventFilter::default() }), PATIENCE)?;
    Ok(client)
}

/// Asks a process if it lives.
fn ask<T>(
    folder: &LabFolder,
    process: &str,
    request: Request,
    pick: impl FnOnce(Answer) -> Option<T>,
) -> anyhow::Result<Told<T>> {
    if site::pid(folder, process)?.is_none() {
        return Ok(Told::NotRunning);
    }
    if let Some(frozen) = Frozen::of_process(folder, process) {
        return Ok(Told::Silent(frozen.why(process)));
    }
    let name = request.name();
    let answered =
        Client::connect(&folder.control(process)).and_then(|mut client| client.ask(request, PATIENCE));
    let told = answered.and_then(|answer| pick(answer).ok_or(ClientError::Unexpected(name)));
    Ok(match told {
        Ok(status) => Told::Status(status),
        Err(error) => Told::Silent(format!("{:#}", anyhow::Error::from(error))),
    })
}
