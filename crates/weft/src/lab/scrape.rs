//! What Prometheus must be told to scrape a laboratory.

use super::LabRecord;
use super::names::{PM, VMM};

/// The processes that serve metrics and where: job, process, address.
pub(crate) fn targets(record: &LabRecord) -> Vec<(&'static str, String, std::net::SocketAddr)> {
    let managers = record.subnet_managers().map(|(name, _)| ("weft-sm", name));
    let managers = managers.chain(record.pm.iter().map(|_| ("weft-pm", PM.to_owned())));
    let managers = managers.chain(record.vmm.iter().map(|_| ("weft-vmm", VMM.to_owned())));
    let agents = record.agents.iter().map(|agent| ("weft-agent", agent.name.clone()));
    managers
        .chain(agents)
        .filter_map(|(job, process)| {
            let address = record.metrics_of(&process)?;
            Some((job, process, address))
        })
        .collect()
}

/// The scrape file: a job for each kind of process, a target with the name of each.
pub(crate) fn prometheus_yml(lab: &str, record: &LabRecord) -> String {
    let mut text = format!(
        "# The laboratory `{lab}`: prometheus --config.file=THIS-FILE\n\
         global:\n  scrape_interval: 2s\n  scrape_timeout: 2s\n\
         scrape_configs:\n"
    );
    let targets = targets(record);
    for job in ["weft-sm", "weft-pm", "weft-agent"] {
        let mut members = targets.iter().filter(|(of, ..)| *of == job).peekable();
        if members.peek().is_none() {
            continue;
        }
        text += &format!("  - job_name: {job}\n    static_configs:\n");
        for (_, process, address) in members {
            text += &format!(
                "      - targets: [\"{address}\"]\n        labels: {{lab: \"{lab}\", process: \"{process}\"}}\n"
            );
        }
    }
    text
}
