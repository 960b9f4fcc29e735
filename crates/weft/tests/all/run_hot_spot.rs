//! A performance manager beside virtual machines, on processes: it finds a machine that is a hot spot, and contributors before and after
//! their moves.

use crate::run::{Run, repository};

/// Two senders fill VM5. Another machine moves to host 2 and then sends to it, too. Bounds are those of `vm-hot-spot.toml` with sweeps of a second.
const SHORT: &str = r#"
title = "a contributor arrives"
duration = 24

[fabric]
topology = "TOPOLOGY"

[rates]
lanes = 2

[engine]
chain = "ftree,no_fallback"

[sm]
at = "host-4"

[pm]
mode = "on"
interval = 1
at = "host-4"

[vms]
vfs = 2
lids = "dynamic"

[vm.VM1]
host = "host-1"

[vm.VM5]
host = "host-5"

[vm.VMn]
host = "host-4"

[flow.1-5]
from = "vm:VM1"
to = "vm:VM5"
start = 2

[flow.6-5]
from = "host-6"
to = "vm:VM5"
start = 2

[flow.n-5]
from = "vm:VMn"
to = "vm:VM5"
start = 12

[[migrate]]
at = 9
vm = "VMn"
to = "host-2"

[[expect]]
what = "moved"
flow = "1-5"
between = [2, 9]
model = "closed form: 2 s, and three sweeps a second apart; the rest is for a busy machine"

[[expect]]
what = "moved"
flow = "n-5"
between = [12, 19]
model = "closed form: 12 s, and three sweeps a second apart; the rest is for a busy machine"

[[expect]]
what = "hot_spots"
except = ["vm:VM5"]
at_most = 0
model = "closed form: no other function is sent more than it takes"

[[expect]]
what = "broken"
at_most = 0
model = "closed form: queue pairs move with their machine"
"#;

#[test]
fn a_machine_that_arrives_is_a_contributor_on_processes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("arrives.toml");
    let topology = repository().join("topologies/dftree-1.topo");
    std::fs::write(&file, SHORT.replace("TOPOLOGY", topology.to_str().unwrap())).unwrap();
    let run = Run::of(&file, &["--both", "--allow-busy"]);
    let said = run.said();
    // Live and virtual time are compared by shares of time, which a busy machine moves.
    let is_wrong = |line: &&str| line.starts_with("not as expected:") && !line.ends_with(" in virtual time");
    assert_eq!(said.lines().find(is_wrong), None, "{said}");
    let report = run.json("arrives");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{said}");
    for run in runs {
        let marks = run["marks"].as_array().unwrap();
        let says = |text: &str| marks.iter().any(|mark| mark["text"] == text);
        assert!(says("hot spot: vm:VM5"), "{marks:?}");
        for end in ["vm:VM1", "vm:VMn"] {
            assert!(says(&format!("take the slow lane to vm:VM5: {end}")), "{marks:?}");
        }
    }
}
