//! The addresses at which a laboratory's processes serve metrics, and the file that has Prometheus scrape them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use weft_bundle::config::hub::HubConfig;
use weft_bundle::folder::bundle::{AUTHORITY, HTTP_TOKEN};
use weft_bundle::folder::{self, LabFile, LabFolder};
use weft_bundle::names::HUB;
use weft_bundle::place::hosts::is_local;
use weft_bundle::record::{LabRecord, Metrics};
use weft_control::process::ProcessKind;
use weft_link::PAGES;

use crate::site::host_of;

/// Kinds of processes that serve metrics, in the order of their jobs in the scrape file.
const KINDS: [ProcessKind; 5] =
    [ProcessKind::Hub, ProcessKind::Sm, ProcessKind::Pm, ProcessKind::Vmm, ProcessKind::Agent];

/// A process that serves metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its kind, which has a job.
    pub kind: ProcessKind,
    /// Its name.
    pub process: String,
    /// Where: `host:port`.
    pub address: String,
    /// `http`, or to other machines `https`, for who shows the laboratory's token.
    pub scheme: &'static str,
    /// The description of the device that it runs, if it runs exactly one.
    pub node: Option<String>,
}

/// Whether metrics are served to other machines: over TLS, to who shows the token.
fn are_guarded(record: &LabRecord) -> bool {
    match record.metrics {
        Some(Metrics::Port(_)) => true,
        Some(Metrics::UdpPort) => record.hosts().iter().any(|host| !is_local(host)),
        Some(Metrics::Ports(_)) | None => false,
    }
}

/// The processes that serve metrics, each under its host's name where that is another machine; `hub`: where the hub does.
pub fn targets(record: &LabRecord, hub: Option<SocketAddr>) -> Vec<Target> {
    let are_guarded = are_guarded(record);
    let scheme = if are_guarded { "https" } else { "http" };
    let target = |(process, kind): (String, _)| {
        let address = record.metrics_of(&process)?;
        let address = match are_guarded {
            true => format!("{}:{}", host_of(record, &process)?, address.port()),
            false => address.to_string(),
        };
        let node = only_device(record, &process);
        Some(Target { kind, process, address, scheme, node })
    };
    hub.and_then(|at| hub_target(record, at)).into_iter().chain(scraped(record).filter_map(target)).collect()
}

/// The hub as Prometheus on its machine reaches it; none where the system chooses its port.
fn hub_target(record: &LabRecord, at: SocketAddr) -> Option<Target> {
    let ip = if at.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { at.ip() };
    let scheme = if at.ip().is_loopback() { "http" } else { "https" };
    // In a container of its own others find it by its name.
    let door = record.doors.get(HUB).filter(|_| record.metrics_port().is_some());
    let address = door.map_or_else(
        || SocketAddr::new(ip, at.port()).to_string(),
        |door| format!("{}:{}", door.host(), at.port()),
    );
    let process = HUB.to_owned();
    (at.port() != 0).then_some(Target { kind: ProcessKind::Hub, process, address, scheme, node: None })
}

/// The description of an agent's device, if it has exactly one; slots of virtual machines are parts of their host. The counters that a
/// manager shows are those of many nodes, so it has none.
fn only_device(record: &LabRecord, process: &str) -> Option<String> {
    let agent = record.agents.iter().find(|agent| agent.name == process)?;
    let mut devices = agent.devices.iter().filter(|device| !device.slot);
    let first = devices.next()?;
    devices.next().is_none().then(|| first.description.clone())
}

/// The targets of the hub's service discovery. The hub adds itself.
pub(crate) fn discovered(record: &LabRecord) -> Arc<[weft_hub::Target]> {
    let found = targets(record, None).into_iter().map(|target| {
        let Target { kind, process, address, scheme, node } = target;
        weft_hub::Target { process, kind, address, is_guarded: scheme == "https", node }
    });
    found.collect()
}

/// The processes that can serve metrics: managers, then agents.
fn scraped(record: &LabRecord) -> impl Iterator<Item = (String, ProcessKind)> {
    let agents = record.agents.iter().map(|agent| (agent.name.clone(), ProcessKind::Agent));
    record.others().chain(agents).filter(|(_, kind)| kind.job().is_some())
}

/// The scrape file: a job for each kind of process, a target with the name of each.
pub fn prometheus_yml(lab: &str, record: &LabRecord, hub: Option<SocketAddr>) -> String {
    let mut text = format!(
        "# The laboratory `{lab}`: prometheus --config.file=THIS-FILE\n\
         global:\n  scrape_interval: 2s\n  scrape_timeout: 2s\n  evaluation_interval: 2s\n\
         scrape_configs:\n"
    );
    let targets = targets(record, hub);
    for (kind, job) in KINDS.iter().filter_map(|kind| Some((kind, kind.job()?))) {
        let mut members = targets.iter().filter(|target| target.kind == *kind).peekable();
        let Some(first) = members.peek() else { continue };
        text += &format!("  - job_name: {job}\n");
        if first.scheme == "https" {
            // Paths are relative to this file.
            text += &format!(
                "    scheme: https\n    tls_config: {{ca_file: {AUTHORITY}, server_name: {PAGES}}}\n    \
                 authorization: {{credentials_file: {HTTP_TOKEN}}}\n"
            );
        }
        text += "    static_configs:\n";
        for Target { process, address, .. } in members {
            text += &format!(
                "      - targets: [\"{address}\"]\n        labels: {{lab: \"{lab}\", process: \"{process}\"}}\n"
            );
        }
    }
    text
}

/// Writes the scrape file of a laboratory that serves metrics into its folder.
pub(crate) fn write_scrape_file(lab: &LabFolder, record: &LabRecord) -> anyhow::Result<()> {
    match record.metrics {
        Some(Metrics::Ports(_) | Metrics::UdpPort) => {
            let text = prometheus_yml(lab.name(), record, HubConfig::load(lab)?.http);
            folder::replace(&lab.place(LabFile::Prometheus), text.as_bytes())
        }
        // Its folder is a hub's alone, and the bundle has the file.
        Some(Metrics::Port(_)) | None => Ok(()),
    }
}
