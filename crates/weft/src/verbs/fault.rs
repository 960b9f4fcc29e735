//! `weft fault`

use std::cell::RefCell;

use serde::Serialize;
use weft_bundle::folder::LabFolder;
use weft_control::Utc;
use weft_fault::{Fault, FaultTimes};
use weft_lab::faults::{self, lasting, times};
use weft_lab::view::Lab;
use weft_process::utc_now;
use weft_wire::count_of;

use crate::cli::fault::FaultVerb;
use crate::output::{Table, or_dash, print, print_json, say};

pub(super) fn run(folder: &LabFolder, verb: &FaultVerb) -> anyhow::Result<()> {
    let targets = RefCell::new(Vec::new());
    let note = |name: String| targets.borrow_mut().push(name);
    match verb {
        FaultVerb::CarryOut(args) => drop(args.fault().0.map(note, note)),
        FaultVerb::Add(args) => note(args.parts().1.port.to_owned()),
        FaultVerb::Ls { .. } | FaultVerb::Times { .. } | FaultVerb::Clear { .. } => {}
    }
    let lab = Lab::load_for(folder, targets.borrow().iter().map(String::as_str))?;
    match verb {
        FaultVerb::CarryOut(args) => match args.fault() {
            (Fault::Kill(process), _) => faults::kill(&lab, &process),
            (Fault::Restart(process), _) => faults::restart(&lab, &process).map(drop),
            (Fault::LinkDown(port), lasts) => lasting::unplug(&lab, &port, lasts),
            (Fault::LinkUp(port), _) => lasting::plug(&lab, &port),
            (Fault::Freeze(process), lasts) => faults::freeze(&lab, &process, lasts).map(drop),
            (Fault::Thaw(process), _) => faults::thaw(&lab, &process),
            (Fault::Partition(nodes), lasts) => lasting::part(&lab, &nodes, lasts),
            (Fault::Heal(nodes), _) => lasting::heal(&lab, &nodes),
            (Fault::BadIdentity(presented), lasts) => {
                lasting::misidentify(&lab, &presented, lasts, args.authority())
            }
            (Fault::GoodIdentity(node), _) => lasting::identify(&lab, &node),
            // No argument says either.
            (Fault::Impair(_) | Fault::Clear(_), _) => Ok(()),
        },
        FaultVerb::Add(args) => {
            let (how, placed) = args.parts();
            lasting::impair(&lab, how, placed)
        }
        FaultVerb::Ls { json } => list(&lab, *json),
        FaultVerb::Times { json } => list_times(&lab, *json),
        FaultVerb::Clear { ids, all } => lasting::clear(&lab, ids, *all),
    }
}

/// Lists all faults.
fn list(lab: &Lab, json: bool) -> anyhow::Result<()> {
    let (listed, silent) = lasting::list(lab)?;
    if silent > 0 {
        say(&format!("{} not running: faults there are not listed", count_of(silent, "agent")));
    }
    if json {
        return print_json(&listed);
    }
    if listed.is_empty() {
        return print("no fault lasts\n");
    }
    let mut table = Table::headed("fault | what | where | seed | since | ends in | detected s | rerouted s");
    for fault in listed {
        let left = or_dash(fault.until.map(left));
        let what = match (fault.impairment, fault.identity) {
            (Some(how), _) => how.to_string(),
            (None, Some(identity)) => format!("{} {identity}", fault.damage),
            (None, None) => fault.damage.to_owned(),
        };
        let at: Vec<String> = match fault.impairment {
            None => fault.at.into_iter().collect(),
            Some(how) if how.is_of_port() => fault.at.into_iter().collect(),
            Some(_) => fault.at.into_iter().map(|at| format!("into {at}")).collect(),
        };
        let at = at.join(if fault.impairment.is_some() { ", " } else { " - " });
        let seeds: Vec<String> = fault.seeds.into_values().map(|seed| seed.to_string()).collect();
        let seeds = if seeds.is_empty() { "-".to_owned() } else { seeds.join(", ") };
        let [detected, rerouted] = [fault.detected_after_ns, fault.rerouted_after_ns].map(seconds);
        table.row(&[&fault.id, &what, &at, &seeds, &fault.since.rfc3339(0), &left, &detected, &rerouted]);
    }
    print(&table.to_string())
}

fn left(until: Utc) -> String {
    format!("{} s", until.as_nanos().saturating_sub(utc_now().as_nanos()).div_ceil(1_000_000_000))
}

/// A fault's times as they are listed.
#[derive(Serialize)]
struct ListedTimes {
    #[serde(flatten)]
    times: FaultTimes<String>,
    /// How long ago it began, in nanoseconds.
    age_ns: u64,
}

/// Lists them.
fn list_times(lab: &Lab, json: bool) -> anyhow::Result<()> {
    let now = utc_now().as_nanos();
    let listed = times::of(lab)?
        .into_iter()
        .map(|times| ListedTimes { age_ns: now.saturating_sub(times.began_ns), times });
    let listed: Vec<ListedTimes> = listed.collect();
    if json {
        return print_json(&listed);
    }
    if listed.is_empty() {
        return print("no fault is remembered\n");
    }
    let mut table =
        Table::headed("fault | ago s | lasted s | detected s | rerouted s | restored s | pairs lost");
    for ListedTimes { times, age_ns } in listed {
        table.row(&[
            &times.fault,
            &(age_ns / 1_000_000_000),
            &seconds(times.lasted_ns),
            &seconds(times.detected_after_ns),
            &seconds(times.rerouted_after_ns),
            &seconds(times.restored_after_ns),
            &or_dash(times.pairs_lost),
        ]);
    }
    print(&table.to_string())
}

/// Seconds to the millisecond; a dash where there are none.
fn seconds(nanos: Option<u64>) -> String {
    or_dash(nanos.map(std::time::Duration::from_nanos).map(super::seconds))
}
