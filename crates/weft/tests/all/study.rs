//! `weft study`: combinations are chosen, studied and reported, and what is wrong is said.

use common::{Home, text};

use crate::common;

#[test]
fn a_part_of_table_4_is_studied_and_reported() {
    let home = Home::new();
    let chosen = [
        "study",
        "migrations",
        "--topology",
        "4-ary-2-full",
        "--occupancy",
        "25%",
        "--scenario",
        "consolidate",
    ];
    let rest = ["--bisections", "100", "--report", "out", "--json"];
    let found = home.json(&[&chosen[..], &rest].concat());
    let cases = found["cases"].as_array().unwrap();
    let starts: Vec<_> = cases.iter().map(|case| case["start"].as_str().unwrap()).collect();
    assert_eq!(starts, ["random", "uniform"]);
    for case in cases {
        assert_eq!((case["machines"].as_u64(), case["tenths"].as_array().unwrap().len()), (Some(32), 11));
        // Across the tree or within a leaf: table 4's smallest tree.
        assert!(
            case["ftreeminrc"]["max"] == 6.0 && case["ftreeminrc"]["min"].as_f64().unwrap() >= 1.0,
            "{case}"
        );
    }
    let report = home.base().with_file_name("out");
    for file in
        ["report.md", "report.json", "combinations.csv", "migrations-4-ary-2-full.csv", "figure-8a.svg"]
    {
        assert!(report.join(file).exists(), "{file}");
    }
    // Without --json there is a table, and the same seed says the same.
    let table = |seed: &str| {
        let done = home.weft(&[&chosen[..], &["--bisections", "20", "--seed", seed]].concat());
        done.succeeds();
        done.stdout
    };
    let once = table("3");
    assert!(once.contains("4-ary-2-full  uniform  consolidate"), "{once}");
    assert_eq!(once, table("3"));
    assert_ne!(once, table("4"));
}

#[test]
fn invalid_study_arguments_are_refused() {
    let home = Home::new();
    let study = |arguments: &[&str]| home.weft(&[&["study", "migrations"], arguments].concat());
    study(&[]).fails(2, "no combination is named");
    study(&["--start", "uniform", "--scenario", "to-uniform"]).fails(2, "table 4 has no such combination");
    study(&["--topology", "4-ary-9"])
        .fails(2, "table 4 has no topology `4-ary-9`; its topologies are 4-ary-2-full");
    study(&["--topology", "8-ary-2", "--occupancy", "30"]).fails(2, "must be 25, 50 or 75");
    let file = home.write("taken", "");
    study(&["--topology", "8-ary-2", "--report", text(&file)]).fails(2, "cannot write a report to");
}
