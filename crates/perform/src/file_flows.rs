//! The flows of an experiment's file, for a laboratory that runs.

use std::path::Path;

use weft_bundle::failure::Failure;
use weft_control::flow::FlowShape;
use weft_experiment::{ExperimentFile, FlowEntry, FlowOptions};

/// A flow of a file, whose hosts are not looked up yet.
#[derive(Clone, Debug, PartialEq)]
pub struct FileFlow {
    /// Its name in the file.
    pub name: String,
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// What it does. It has no rate.
    pub shape: FlowShape,
    /// Gb/s of fabric time at most, whole packets counted.
    pub rate_gbps: Option<f64>,
}

/// The flows between two hosts that a file has without its variants, and whether it has other traffic: patterns, mixes and tests.
///
/// # Errors
/// When the file is no experiment, or has no such flow.
pub fn read(path: &Path) -> anyhow::Result<(Vec<FileFlow>, bool)> {
    let name = path.display().to_string();
    let text = weft_bundle::input::given(path)?;
    let file = ExperimentFile::parse(&name, &text).map_err(|error| Failure::bad_input(error.to_string()))?;
    let plain = file.plain();
    if plain.flows.is_empty() {
        return Err(Failure::bad_input(format!("{name} has no flow between two hosts"))
            .hint("name an experiment with [flow.NAME]; patterns are `weft traffic start PATTERN`"));
    }
    let has_others = !(plain.patterns.is_empty() && plain.mixes.is_empty() && plain.beffs.is_empty());
    Ok((plain.flows.iter().map(of).collect(), has_others))
}

fn of(entry: &FlowEntry) -> FileFlow {
    let &FlowEntry { work, bytes_max, .. } = entry;
    let FlowOptions { transport, message_bytes, packet_bytes, rate_gbps, .. } = entry.options;
    let shape = FlowShape { transport, work, message_bytes, packet_bytes, bytes_max, ..FlowShape::default() };
    let (name, from, to) = (entry.name.clone(), entry.from.clone(), entry.to.clone());
    FileFlow { name, from, to, shape, rate_gbps }
}
