//! The command line: a verb takes its arguments, calls the laboratory's library once, and prints a table or JSON.
//!
//! One program does everything. `weft up` starts the hub, and the hub the agents and the managers, by running itself again
//! with the verbs `hub`, `agent`, `sm`, `pm` and `vmm`; `weft-agent`, `weft-sm`, `weft-pm` and `weft-vmm` are the same for containers.
//!
//! ```text
//!   weft up ──starts──▶ weft hub ──starts──▶ weft agent ×N ◀──attach── weft sm
//!      ▲                 │    ▲                   │                      │
//!      └─ control: events┘    └── control: ready, links, progress, SUBNET UP
//! ```
//!
//! `weft_bundle` plans a laboratory, `weft_managers` has its processes, `weft_lab` starts, breaks and watches it. `front` shows people what
//! these do, and `verbs` has one file for each verb.

mod cli;
mod drawing;
mod engine_options;
mod failure;
mod front;
mod interrupt;
mod learning;
mod output;
mod progress;
mod sm_options;
mod terminal;
mod verbs;
mod vm_lid_options;
mod wanted;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

/// The verbs that are other processes of a laboratory, configured by options.
const PROCESSES: [&str; 4] = ["hub", "sm", "pm", "vmm"];

/// Where that cannot be had, signals have their usual effect.
fn end_when_told() {
    let _ = weft_process::early::end_when_told();
}

/// `weft`
pub fn main() -> ExitCode {
    if let Some(ended) = weft_lab::child::child_main(front::front()) {
        return ended.map_or_else(|error| failure::report(&error), |()| ExitCode::SUCCESS);
    }
    // There are thousands of agents, and none needs to hold the help of all verbs.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == weft_bundle::names::AGENT) {
        return process_main(std::env::args_os().skip(1), verbs::agent);
    }
    let [verb, next] = [1, 2].map(|nth| std::env::args_os().nth(nth).unwrap_or_default());
    // A verb of one of these, as of `weft sm sweep`, is a client.
    if PROCESSES.iter().any(|process| verb == *process) && next.as_encoded_bytes().starts_with(b"--") {
        end_when_told();
    }
    match verbs::run(cli::Cli::told()) {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}

/// `weft-agent`
pub fn agent_main() -> ExitCode {
    process_main(std::env::args_os(), verbs::agent)
}

/// `weft-pm`
pub fn pm_main() -> ExitCode {
    process_main(std::env::args_os(), verbs::pm)
}

/// `weft-vmm`
pub fn vmm_main() -> ExitCode {
    process_main(std::env::args_os(), verbs::vmm)
}

/// `weft-sm`
pub fn sm_main() -> ExitCode {
    process_main(std::env::args_os(), verbs::run_sm)
}

fn process_main<A: clap::Args>(
    arguments: impl Iterator<Item = OsString>,
    run: fn(&A) -> anyhow::Result<()>,
) -> ExitCode {
    end_when_told();
    let process = cli::ProcessCli::parse_from(arguments);
    match run(&process.args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
