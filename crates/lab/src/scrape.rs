//! Prometheus's configuration for scraping a laboratory.

use weft_bundle::folder::bundle::{AUTHORITY, HTTP_TOKEN};
use weft_bundle::record::LabRecord;
use weft_link::PAGES;

/// A job for each kind of process.
const JOBS: [&str; 4] = ["weft-sm", "weft-pm", "weft-vmm", "weft-agent"];

/// The job of a process.
pub fn job_of(record: &LabRecord, process: &str) -> Option<&'static str> {
    jobs(record).into_iter().find(|(_, name)| name == process).map(|(job, _)| job)
}

/// The processes that serve metrics and where: job, process, `host:port`.
pub fn targets(record: &LabRecord) -> Vec<(&'static str, String, String)> {
    let targets = jobs(record).into_iter().filter_map(|(job, process)| {
        let address = address_of(record, &process)?;
        Some((job, process, address))
    });
    targets.collect()
}

/// Where a process serves metrics: on a host of its own under that host's name.
fn address_of(record: &LabRecord, process: &str) -> Option<String> {
    let address = record.metrics_of(process)?;
    if !record.is_apart() {
        return Some(address.to_string());
    }
    let agent = record.agents.iter().find(|agent| agent.name == process).map(|agent| &agent.address);
    let host = agent.or_else(|| record.doors.get(process))?.host();
    Some(format!("{host}:{}", address.port()))
}

/// The processes that can serve metrics, each with its job.
fn jobs(record: &LabRecord) -> Vec<(&'static str, String)> {
    let managers = record.subnet_managers().map(|(name, _)| ("weft-sm", name));
    let managers = managers.chain(record.pms.iter().map(|place| ("weft-pm", place.name.clone())));
    let managers = managers.chain(record.vmms.iter().map(|place| ("weft-vmm", place.name.clone())));
    let agents = record.agents.iter().map(|agent| ("weft-agent", agent.name.clone()));
    managers.chain(agents).collect()
}

/// The scrape file: a job for each kind of process, a target with the name of each.
pub fn prometheus_yml(lab: &str, record: &LabRecord) -> String {
    let mut text = format!(
        "# The laboratory `{lab}`: prometheus --config.file=THIS-FILE\n\
         global:\n  scrape_interval: 2s\n  scrape_timeout: 2s\n\
         scrape_configs:\n"
    );
    let targets = targets(record);
    for job in JOBS {
        let mut members = targets.iter().filter(|(of, ..)| *of == job).peekable();
        if members.peek().is_none() {
            continue;
        }
        text += &format!("  - job_name: {job}\n");
        if record.is_apart() {
            // Paths are relative to this file.
            text += &format!(
                "    scheme: https\n    tls_config: {{ca_file: {AUTHORITY}, server_name: {PAGES}}}\n    \
                 authorization: {{credentials_file: {HTTP_TOKEN}}}\n"
            );
        }
        text += "    static_configs:\n";
        for (_, process, address) in members {
            text += &format!(
                "      - targets: [\"{address}\"]\n        labels: {{lab: \"{lab}\", process: \"{process}\"}}\n"
            );
        }
    }
    text
}
