//! `weft chaos`

use std::process::ExitCode;
use std::time::Duration;

use weft_bundle::failure::EXIT_INTERRUPTED;
use weft_bundle::folder::LabFolder;
use weft_fault::FaultCost;
use weft_perform::chaos::{BesideOptions, Options, Outcome, drawn, run as carry_out};

use crate::cli::chaos::ChaosArgs;
use crate::output::{or_dash, print, show};

pub(super) fn run(
    lab: impl FnOnce() -> anyhow::Result<LabFolder>,
    args: &ChaosArgs,
) -> anyhow::Result<ExitCode> {
    let lab = (!args.simulated).then(lab).transpose()?;
    if args.draw {
        print(&drawn(lab.as_ref(), &options(args))?.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = carry_out(&crate::front::front(), lab.as_ref(), &options(args))?;
    show(&outcome, args.json, |outcome| text(outcome, args.simulated))?;
    Ok(match (outcome.ok, outcome.interrupted) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(EXIT_INTERRUPTED),
        (true, false) => ExitCode::SUCCESS,
    })
}

fn options(args: &ChaosArgs) -> Options {
    let minutes = args.hours.map_or(args.minutes, |hours| 60 * hours);
    Options {
        file: args.file.clone(),
        seed: args.seed,
        schedules: args.schedules,
        lasts: Duration::from_secs(60 * minutes),
        replay: args.replay.clone(),
        report: args.report.clone(),
        beside: BesideOptions { pm: args.pm, standbys: args.standby, vfs: args.vfs, lids: args.lids },
        seeded_bug: args.seeded_bug,
    }
}

/// What faults cost at worst; a dash where no process remembers.
fn costs(cost: &FaultCost) -> String {
    if cost.detected == 0 {
        return String::new();
    }
    let seconds = |nanos: Option<u64>| or_dash(nanos.map(|nanos| format!("{:.3} s", nanos as f64 / 1e9)));
    format!(
        "{} cut links; worst case: detected after {}, rerouted after {}, restored after {}, {} pairs of hosts disconnected\n",
        weft_wire::count_of(cost.detected as usize, "fault"),
        seconds(cost.detected_after_ns_max),
        seconds(cost.rerouted_after_ns_max),
        seconds(cost.restored_after_ns_max),
        or_dash(cost.pairs_lost_max),
    )
}

fn text(outcome: &Outcome, simulated: bool) -> String {
    let count = weft_wire::count_of;
    let (schedules, faults) = (outcome.schedules as usize, outcome.faults as usize);
    let mut text = format!("{}, {}: ", count(schedules, "schedule"), count(faults, "fault"));
    let Some(found) = &outcome.violation else {
        text += if outcome.interrupted { "interrupted, no violation until then\n" } else { "no violation\n" };
        return text + &costs(&outcome.cost);
    };
    text += &format!("violation with seed {}\n{}\n", found.seed, found.what);
    text +=
        &format!("{} of {} are left after {} tries:\n", found.left, count(found.drawn, "fault"), found.tries);
    for fault in &found.faults {
        text += &format!("  {fault}\n");
    }
    text += &match &found.file {
        Some(file) => {
            let where_to = if simulated { " --virtual" } else { "" };
            format!("replay: weft chaos{where_to} --replay {}\n", file.display())
        }
        None => "--report FOLDER writes a schedule that replays it\n".to_owned(),
    };
    text
}
