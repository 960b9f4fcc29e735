//! `weft routes`

mod compare;
mod compute;
mod folder;
mod inputs;
mod verify;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use serde::Serialize;
use weft_routing::ENGINES;

use crate::cli::RoutesVerb;
use crate::output::{Table, print, print_json};

pub(super) fn run(verb: &RoutesVerb) -> anyhow::Result<ExitCode> {
    match verb {
        RoutesVerb::Engines(args) => engines(args.json)?,
        RoutesVerb::Compute(args) => compute::run(args)?,
        RoutesVerb::Verify(args) => return verify::run(args),
        RoutesVerb::Compare(args) => compare::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// An engine, for people and programs.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    about: &'static str,
    deadlock_free: bool,
    options: Vec<String>,
}

fn engines(json: bool) -> anyhow::Result<()> {
    let listed: Vec<Listed> = ENGINES
        .iter()
        .map(|engine| Listed {
            name: engine.name,
            about: engine.about,
            deadlock_free: engine.deadlock_free,
            options: engine.options.iter().map(|option| format!("--{}", option.replace('_', "-"))).collect(),
        })
        .collect();
    if json {
        return print_json(&listed);
    }
    let mut table = Table::new(&["engine", "what it does", "deadlock-free", "options"]);
    for engine in listed {
        let free = if engine.deadlock_free { "yes" } else { "no" };
        table.row([engine.name.into(), engine.about.into(), free.into(), engine.options.join(" ")]);
    }
    print(&table.to_string())
}

/// Says on a terminal that something goes on, until it is done.
fn while_saying<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let bar = match crate::output::color_on_stderr() {
        true => ProgressBar::new_spinner().with_message(what.to_owned()),
        false => ProgressBar::hidden(),
    };
    bar.enable_steady_tick(Duration::from_millis(200));
    let result = work();
    bar.finish_and_clear();
    result
}

/// Works with so many threads; 0 is one for every core.
fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(pool.context("cannot start threads")?.install(work))
}
