//! A laboratory's bundle as files for others' programs: Compose and Kubernetes, which start its processes, and Prometheus and Grafana,
//! which watch them.

pub mod compose;
pub mod kubernetes;
mod services;
pub mod watch;
mod yaml;

use weft_bundle::names::HUB;
use weft_bundle::record::LabRecord;

/// Whether a laboratory was planned for containers: its hub has one, too.
pub fn is_for_containers(record: &LabRecord) -> bool {
    record.doors.contains_key(HUB)
}
