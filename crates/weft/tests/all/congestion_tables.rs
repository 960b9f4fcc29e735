//! The tables of docs/congestion-control.md are those that its experiments give today.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::run::{repository, simulated};

/// What the victim and the hot spot get in each run, by its choices, in the order of the file.
fn cells(report: &Value) -> Vec<(Vec<String>, String)> {
    let cell = |run: &Value| {
        let choices = run["run"]["choices"].as_array().unwrap();
        let choices = choices.iter().map(|choice| choice[1].as_str().unwrap().to_owned()).collect();
        let findings = run["verdict"]["findings"].as_array().unwrap();
        let measured = |name: &str| {
            let found = findings.iter().find(|finding| finding["name"] == name).unwrap();
            found["measured"].as_f64().unwrap()
        };
        let (victim, hot_spot) = (measured("1-5, steady"), measured("the hot spot receives"));
        (choices, format!("{victim:.1} / {hot_spot:.1}"))
    };
    report["runs"].as_array().unwrap().iter().map(cell).collect()
}

/// A row for each first choice, with a cell for each second one.
fn rows(report: &Value, label: impl Fn(&str) -> String) -> Vec<String> {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (choices, cell) in cells(report) {
        let first = label(&choices[0]);
        match rows.last_mut().filter(|(known, _)| *known == first) {
            Some((_, cells)) => cells.push(cell),
            None => rows.push((first, vec![cell])),
        }
    }
    rows.into_iter().map(|(first, cells)| format!("| {first} | {} |", cells.join(" | "))).collect()
}

fn are_in_the_page(rows: &[String]) {
    let page = std::fs::read_to_string(repository().join("docs/congestion-control.md")).unwrap();
    let table = rows.join("\n");
    assert!(rows.len() > 2 && page.contains(&table), "docs/congestion-control.md has not:\n{table}");
}

#[test]
fn buffers_and_contributors() {
    let report = simulated("congestion-control");
    are_in_the_page(&rows(&report, |packets| format!("{packets} packets")));
}

#[test]
fn settings() {
    let report = simulated("congestion-settings");
    are_in_the_page(&rows(&report, |setting| setting.replace(", ", " | ")));
}

#[test]
fn vftrees_figure_3() {
    let printed = BTreeMap::from([("none", "4.5"), ("congestion control", "about 13"), ("lane", "13")]);
    let rows = cells(&simulated("vftree-3")).into_iter().map(|(choices, cell)| {
        let cure = choices[0].as_str();
        format!("| {cure} | {} | {} |", cell.replace(" / ", " | "), printed[cure])
    });
    are_in_the_page(&rows.collect::<Vec<_>>());
}
