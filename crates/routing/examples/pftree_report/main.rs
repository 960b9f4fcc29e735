//! Isolation and weights: gains and costs on the topologies of the paper on pFTree-Ext and pFTree-Wt (Zahid
//! 2016).
//!
//! ```text
//! cargo run --release -p weft-routing --example pftree_report -- [--seed N] [--draws N] [--runs N] [--report FOLDER]
//! ```
//!
//! Victims are drawn again `--draws` (5) times, as many on every leaf; patterns run `--runs` (20) times for each
//! draw. The seed (2016) decides both. Prints Markdown: the paper's table 4 beside ours, delays on all nine
//! topologies, and figures 11 and 13 to 15. `--report` writes every printed value beside ours to `report.json` there.

#![allow(clippy::disallowed_macros, reason = "an example prints what it finds")]

mod isolation;
mod paper;
mod rows;
mod setting;
mod weights;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rows::Rows;
use setting::Setting;

fn main() -> ExitCode {
    let mut setting = Setting { seed: 2016, draws: 5, runs: 20 };
    let mut report: Option<PathBuf> = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let text = arguments.next().unwrap_or_default();
        match (name.as_str(), text.parse::<u32>()) {
            ("--report", _) if !text.is_empty() => report = Some(PathBuf::from(text)),
            ("--seed", Ok(value)) => setting.seed = u64::from(value),
            ("--draws", Ok(value @ 1..)) => setting.draws = value,
            ("--runs", Ok(value @ 1..)) => setting.runs = value,
            _ => {
                eprintln!(
                    "{name} is no option with a number of 1 or more; there are --seed, --draws, --runs and --report FOLDER"
                );
                return ExitCode::from(2);
            }
        }
    }
    let Setting { seed, draws, runs } = setting;
    println!("Seed {seed}, {draws} draws of victims, {runs} runs of every pattern for each draw.\n");
    let mut rows = Rows::default();
    isolation::table_4(&setting, &mut rows);
    isolation::delays(&setting, &mut rows);
    isolation::price(&setting, &mut rows);
    weights::figures(&setting, &mut rows);
    match report.map(|folder| write(&folder, rows)) {
        Some(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn write(folder: &Path, rows: Rows) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("report.json"), rows.report())
}
