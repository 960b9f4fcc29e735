//! `weft routes verify`

use std::process::ExitCode;

use serde::Serialize;
use weft_routing::{Expectations, TransitionVerdict, Verdict, verify_routing, verify_transition};

use super::{folder, in_pool, while_saying};
use crate::cli::VerifyArgs;
use crate::engine_options::load_partitions;
use crate::failure::Failure;
use crate::output::{print, print_json};
use crate::topology_file;

/// What was found, for programs.
#[derive(Serialize)]
struct Found<'a> {
    /// The engine, where the folder tells.
    engine: &'a str,
    sound: bool,
    deadlock_free: bool,
    minimal: bool,
    #[serde(flatten)]
    verdict: &'a Verdict,
    transition: Option<&'a TransitionVerdict>,
}

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let fabric = topology_file::load(&args.file)?;
    let (lids, routing) = folder::read(&args.folder, &fabric)?;
    let old = args.from.as_ref().map(|folder| folder::read(folder, &fabric)).transpose()?;
    if old.as_ref().is_some_and(|(old, _)| *old != lids) {
        return Err(Failure::bad_input("the two routings are for different LIDs")
            .hint("compute the new one with --lids and the old one's guid2lid")
            .into());
    }
    let partitions = args.partitions.as_ref().map(|path| load_partitions(path, &fabric)).transpose()?;
    // Who tells ranks claims to go up and then down.
    let tree = routing.ranks.is_some();
    let expectations = Expectations { partitions: partitions.as_ref(), tree, lanes: args.lanes };
    let (verdict, transition) = while_saying("verifying", || {
        in_pool(args.threads, || {
            let verdict = verify_routing(&fabric, &lids, &routing, &expectations);
            let transition =
                old.as_ref().map(|(_, old)| verify_transition(&fabric, &lids, old, &routing, args.lanes));
            (verdict, transition)
        })
    })?;
    let sound = verdict.is_sound() && transition.as_ref().is_none_or(TransitionVerdict::is_sound);
    let deadlock_free =
        verdict.is_deadlock_free() && transition.as_ref().is_none_or(TransitionVerdict::is_deadlock_free);
    if args.json {
        print_json(&Found {
            engine: &routing.report.engine,
            sound,
            deadlock_free,
            minimal: verdict.reach.is_minimal(),
            verdict: &verdict,
            transition: transition.as_ref(),
        })?;
    } else {
        let mut text = format!("{verdict}\n");
        if let Some(transition) = &transition {
            text.push_str(&format!("while switches change, in any order:\n{transition}\n"));
        }
        print(&text)?;
    }
    Ok(if sound && deadlock_free { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
