//! `weft metrics`

use std::net::SocketAddr;

use serde::Serialize;
use weft_bundle::config::hub::HubConfig;
use weft_bundle::failure::Failure;
use weft_bundle::folder::{self, LabFolder};
use weft_bundle::record::LabRecord;
use weft_lab::site::metrics::{Target, prometheus_yml, targets};

use crate::cli::pm::MetricsArgs;
use crate::output::{Table, print, print_json};

/// A process that serves metrics.
#[derive(Serialize)]
struct Row {
    process: String,
    job: &'static str,
    url: String,
}

pub(super) fn run(lab: &LabFolder, args: &MetricsArgs) -> anyhow::Result<()> {
    let record = LabRecord::load(lab)?;
    let hub = HubConfig::load(lab)?.http;
    if record.metrics.is_none() && hub.is_none() {
        return Err(Failure::new(format!("the laboratory `{}` serves no metrics", lab.name()))
            .hint("start it with `weft up --metrics`"));
    }
    if args.list {
        return list(&record, hub, args.json);
    }
    let text = prometheus_yml(lab.name(), &record, hub);
    match &args.output {
        Some(path) => folder::write(path, text.as_bytes()),
        None => print(&text),
    }
}

fn list(record: &LabRecord, hub: Option<SocketAddr>, json: bool) -> anyhow::Result<()> {
    let rows = targets(record, hub).into_iter().map(|Target { kind, process, address, scheme, .. }| {
        let url = format!("{scheme}://{address}/metrics");
        Row { process, job: kind.job().unwrap_or_default(), url }
    });
    if json {
        return print_json(&rows.collect::<Vec<_>>());
    }
    let mut table = Table::headed("process | job | url");
    for row in rows {
        table.row(&[&row.process, &row.job, &row.url]);
    }
    print(&table.to_string())
}
