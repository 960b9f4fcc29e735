//! The shortest experiment that measures something: two hosts send to a third.

use std::path::Path;

/// Its file, with this many seconds, these seeds, and the bound of 1-5 in the steady window.
pub(crate) fn two_into_one(duration: u32, seeds: impl IntoIterator<Item = u32>, bound: &str) -> String {
    let topology = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies/dftree-1.topo");
    let seeds: Vec<String> = seeds.into_iter().map(|seed| seed.to_string()).collect();
    format!(
        r#"
title = "Two into one"
source = "a test"
duration = {duration}
seeds = [{}]

[fabric]
topology = "{}"

[rates]
lanes = 2

[engine]
chain = "ftree,no_fallback"

[flow.1-5]
from = "host-1"
to = "host-5"

[flow.6-5]
from = "host-6"
to = "host-5"

[window]
steady = [2, {duration}]

[record]
ports = ["C/1"]

[[expect]]
flow = "1-5"
window = "steady"
{bound}
"#,
        seeds.join(", "),
        topology.display()
    )
}
