//! Isolation and weights: gains and costs on the topologies of the paper on pFTree-Ext and pFTree-Wt (Zahid
//! 2016).
//!
//! ```text
//! cargo run --release -p weft-routing --example pftree_report -- [--seed N] [--draws N] [--runs N]
//! ```
//!
//! Victims are drawn again `--draws` (5) times, as many on every leaf; patterns run `--runs` (20) times for each
//! draw. The seed (2016) decides both. Prints Markdown: the paper's table 4 beside ours, delays on all nine
//! topologies, and figures 11 and 13 to 15.

#![allow(clippy::disallowed_macros, reason = "an example prints what it finds")]

mod isolation;
mod setting;
mod weights;

use std::process::ExitCode;

use setting::Setting;

fn main() -> ExitCode {
    let mut setting = Setting { seed: 2016, draws: 5, runs: 20 };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse::<u32>().ok());
        match (name.as_str(), value) {
            ("--seed", Some(value)) => setting.seed = u64::from(value),
            ("--draws", Some(value @ 1..)) => setting.draws = value,
            ("--runs", Some(value @ 1..)) => setting.runs = value,
            _ => {
                eprintln!(
                    "{name} is no option with a number of 1 or more; there are --seed, --draws and --runs"
                );
                return ExitCode::from(2);
            }
        }
    }
    let Setting { seed, draws, runs } = setting;
    println!("Seed {seed}, {draws} draws of victims, {runs} runs of every pattern for each draw.\n");
    isolation::table_4(&setting);
    isolation::delays(&setting);
    isolation::price(&setting);
    weights::figures(&setting);
    ExitCode::SUCCESS
}
