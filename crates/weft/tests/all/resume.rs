//! `weft run`: what is there after an interrupt, and how a series goes on.

use std::path::Path;

use common::two_into_one::two_into_one;
use common::{Home, Running, text, wait_until};
use rustix::process::Signal;

use crate::common;

/// Many runs of two hosts that send to a third.
fn experiment(home: &Home, runs: u32, duration: u32) -> std::path::PathBuf {
    let bound = "at_least = 1\nmodel = \"closed form: two flows share 12.9\"";
    home.write("two.toml", &two_into_one(duration, 1..=runs, bound))
}

/// How many recordings are whole in the folder of reports.
fn recordings(report: &Path) -> usize {
    let runs = std::fs::read_dir(report.join("two/runs")).into_iter().flatten();
    runs.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|ext| ext == "json")).count()
}

/// The report's files: names and contents.
fn files(report: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(report.join("two")).unwrap().map(Result::unwrap);
    let entries = entries.filter(|entry| entry.file_name() != "runs");
    let read = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap())
    };
    let mut files: Vec<(String, String)> = entries.map(read).collect();
    files.sort();
    files
}

#[test]
fn an_interrupted_series_keeps_what_has_ended_and_goes_on() {
    let home = Home::new();
    let file = experiment(&home, 40, 6);
    let report = file.with_file_name("out");
    let arguments = ["run", text(&file), "--virtual", "--jobs", "1", "--report", text(&report)];
    let run = Running::start(&home, &arguments);
    wait_until("a run ends", || recordings(&report) >= 2);
    // Written as its run ended, not when all have.
    wait_until("its report is there", || report.join("two/report.md").exists());
    run.signal(Signal::INT);
    assert_eq!(run.end().code(), Some(130));
    let ended = recordings(&report);
    let page = std::fs::read_to_string(report.join("two/report.md")).unwrap();
    assert!(ended < 40 && page.contains(" of 40 runs have ended.**"), "{page}");
    let resumed = home.weft(&[&arguments[..], &["--resume"]].concat());
    resumed.succeeds();
    assert_eq!(resumed.stderr.matches(", as before").count(), ended, "{}", resumed.stderr);
    let page = std::fs::read_to_string(report.join("two/report.md")).unwrap();
    assert!(!page.contains("Incomplete"), "{page}");
    // No one can tell it from a series that was made in one go.
    let whole = file.with_file_name("whole");
    home.weft(&["run", text(&file), "--virtual", "--report", text(&whole)]).succeeds();
    assert_eq!(files(&report), files(&whole));
    // A run of one seed made again leaves the recordings of the others.
    home.weft(&[&arguments[..], &["--seed", "1"]].concat()).succeeds();
    assert_eq!(recordings(&report), 40);
    // Another experiment of the same name is another: nothing is taken from before.
    experiment(&home, 40, 5);
    let changed = home.weft(&[&arguments[..], &["--resume", "--seed", "1", "--seed", "2"]].concat());
    assert!(!changed.succeeds().stderr.contains("as before"), "{}", changed.stderr);
}

#[test]
fn a_folder_that_cannot_be_written_is_told_before_anything_runs() {
    let home = Home::new();
    let file = experiment(&home, 1, 600);
    let report = home.write("report", "a file").join("out");
    home.weft(&["run", text(&file), "--virtual", "--report", text(&report)])
        .fails(2, "error: cannot write reports to ")
        .fails(2, "hint: choose another folder with --report");
}

#[test]
fn an_interrupted_live_run_leaves_no_laboratory() {
    let home = Home::new();
    let file = experiment(&home, 1, 600);
    let run = Running::start(&home, &["run", text(&file), "--allow-busy", "--lab", "mine"]);
    wait_until("its laboratory is there", || home.lab("mine").exists());
    run.signal(Signal::TERM);
    assert_eq!(run.end().code(), Some(130));
    assert!(home.is_empty(), "a folder is left");
}
