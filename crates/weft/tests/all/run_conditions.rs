//! `weft run --conditions`: for which buffers, packets and rate scales a verdict holds.

use std::path::Path;

use crate::common::two_into_one::two_into_one;
use crate::run::Run;

/// A run under each of the seven conditions with three seeds, and a page of them. The bound holds for all, as it does not depend on buffers.
#[test]
fn a_file_runs_under_further_conditions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    let run = |bound: &str, more: &[&str]| {
        std::fs::write(&file, two_into_one(4, [1], bound)).unwrap();
        Run::of(Path::new(&file), more)
    };
    let bound = "value = 6.45\nmodel = \"closed form: 12.9 / 2\"";
    let report = run(bound, &["--virtual", "--conditions"]).json("two");
    assert_eq!(report["runs"].as_array().unwrap().len(), 7 * 3);
    let rows = report["conditions"].as_array().unwrap();
    let held: Vec<bool> = rows.iter().map(|row| row["kept"] == row["judged"]).collect();
    assert_eq!(held, [true; 7], "{rows:?}");
    let live = run(bound, &["--conditions"]);
    assert!(live.said().contains("--virtual"), "it takes virtual time: {}", live.said());
}
