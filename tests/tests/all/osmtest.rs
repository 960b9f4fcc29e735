//! osmtest, which OpenSM's makers check its subnet administration with, asks that of weft-sm over a living laboratory.

use weft_judges::Lab;
use weft_topology::Fabric;

/// The production cluster, and osmtest at its last host.
struct Judge {
    lab: Lab,
    fabric: Fabric,
}

impl Judge {
    fn new() -> Self {
        let fabric = weft_judges::x5();
        let lab = Lab::start(&fabric, &["--pack", "all"]);
        Self { lab, fabric }
    }

    /// Runs one of osmtest's flows, which says by its exit code whether it is content, and gives its log.
    fn flow(&self, flow: &str) -> String {
        let host = self.fabric.hosts().last().unwrap().1;
        let mut command = self.lab.command("osmtest", host, &[]);
        command.args(["-f", flow, "-i", "inventory", "-l", flow]);
        let output = command.output().unwrap();
        let log = std::fs::read_to_string(self.lab.folder().join(flow)).unwrap_or_default();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(" PASS"), "osmtest -f {flow}: {said}\n{log}");
        log
    }
}

/// All nodes, ports and paths, asked for in tables and one by one.
#[test]
fn osmtest_takes_an_inventory() {
    let judge = Judge::new();
    let log = judge.flow("c");
    assert!(!log.contains("ERR"), "{log}");
    let inventory = std::fs::read_to_string(judge.lab.folder().join("inventory")).unwrap();
    let count = |what: &str| inventory.lines().filter(|line| *line == what).count();
    let ends: usize =
        judge.fabric.nodes().iter().filter(|node| node.is_switch()).map(|node| node.ports.len()).sum();
    assert_eq!(count("DEFINE_NODE"), 100);
    assert_eq!(count("DEFINE_PORT"), ends + 89);
    assert_eq!(count("DEFINE_PATH"), 100 * 100);
}

/// Services registered, found by name and by id, changed, expired and deleted.
#[test]
fn osmtest_finds_services_as_it_expects_them() {
    let log = Judge::new().flow("s");
    assert!(log.contains("ALL TESTS PASS"), "{log}");
}
