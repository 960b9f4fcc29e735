//! `weft routes`

mod compare;
mod compute;
mod folder;
mod inputs;
mod verify;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use weft_routing::{ENGINES, Engine, Lids, PROGRAM_OPTIONS, Routing};
use weft_topology::Fabric;

use crate::cli::engine::EngineArgs;
use crate::cli::routes::RoutesVerb;
use crate::engine_options::Told;
use crate::interrupt::break_off_when_interrupted;
use crate::output::{Table, print, print_json};
use crate::progress::spinner;

pub(super) fn run(verb: &RoutesVerb) -> anyhow::Result<ExitCode> {
    break_off_when_interrupted(kept)?;
    match verb {
        RoutesVerb::Engines(args) => engines(args.json)?,
        RoutesVerb::Compute(args) => compute::run(args)?,
        RoutesVerb::Verify(args) => return verify::run(args),
        RoutesVerb::Compare(args) => compare::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The LIDs and the routing of a folder.
pub(super) fn saved(folder: &Path, fabric: &Fabric) -> anyhow::Result<(Lids, Routing)> {
    let folder::Saved { lids, routing, .. } = folder::read(folder, fabric)?;
    Ok((lids, routing))
}

/// The LIDs of a file, and a routing of them by the first of these engines that serves.
pub(super) fn computed(fabric: &Fabric, engines: &str) -> anyhow::Result<(Lids, Routing)> {
    let told = Told::load(Some(fabric), &EngineArgs::default())?;
    let (chain, lids) = (told.chain(engines)?, inputs::from_fabric(fabric)?);
    let routed = while_saying("computing tables", || chain.route(fabric, &lids, &told.options));
    let routing = routed.map_err(|refusals| compute::refused(&refusals))?;
    Ok((lids, routing))
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
    let words =
        |options: &[&str]| options.iter().map(|option| format!("--{}", option.replace('_', "-"))).collect();
    let own = ENGINES.iter().map(|&Engine { name, about, options, deadlock_free, .. }| Listed {
        name,
        about,
        deadlock_free,
        options: words(options),
    });
    let program = Listed {
        name: "exec:PROGRAM",
        about: "a program of yours, in any language: the fabric as JSON in, tables as JSON out; they are proved like all others",
        deadlock_free: false,
        options: words(&PROGRAM_OPTIONS),
    };
    let listed: Vec<Listed> = own.chain([program]).collect();
    if json {
        return print_json(&listed);
    }
    let mut table = Table::headed("engine | what it does | deadlock-free | options");
    for engine in listed {
        let free = if engine.deadlock_free { "yes" } else { "no" };
        table.row(&[&engine.name, &engine.about, &free, &engine.options.join(" ")]);
    }
    print(&table.to_string())
}

/// Whether files are being written that no one can read yet.
static WRITING: AtomicBool = AtomicBool::new(false);

/// What is left of a verb that was broken off.
fn kept() -> &'static str {
    match WRITING.load(Ordering::Relaxed) {
        true => "the files that were being written are incomplete",
        false => "no file was written",
    }
}

/// Says on a terminal that files are being written, until they are.
fn while_writing<T>(work: impl FnOnce() -> T) -> T {
    WRITING.store(true, Ordering::Relaxed);
    while_saying("writing files", work)
}

/// Says on a terminal that something goes on, until it is done.
fn while_saying<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let bar = spinner("{spinner} {msg}").with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    let result = work();
    bar.finish_and_clear();
    result
}

/// Works with `threads` threads; 0 is one for every core.
fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(pool.context("cannot start threads")?.install(work))
}
