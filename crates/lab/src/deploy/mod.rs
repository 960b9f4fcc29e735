//! A laboratory's bundle as files for programs that start containers.

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
