//! What faults cost, by the events that the laboratory remembers.

use serde::Serialize;
use weft_control::event::{FAULT_SIGNS, fault_sign};
use weft_fault::{FaultTimes, Sign, fault_times};
use weft_lab::events::{Told, remembered};
use weft_process::utc_now;

use super::super::Lab;
use crate::output::{Table, print, print_json};

/// A fault's times as they are listed.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    times: FaultTimes<String>,
    /// How long ago it began, in nanoseconds.
    age_ns: u64,
}

/// What each fault cost that the laboratory remembers. A fault that lasts is named by its id, another by its command.
pub(in crate::verbs) fn of(lab: &Lab) -> anyhow::Result<Vec<FaultTimes<String>>> {
    Ok(fault_times(signs(lab)?))
}

/// All that the laboratory remembers that says anything of faults, in the order of its moments, which are in nanoseconds since
/// 1970 by this machine's clock.
pub(in crate::verbs) fn signs(lab: &Lab) -> anyhow::Result<Vec<(u64, Sign<String>)>> {
    let (past, _) = remembered(&lab.folder, &FAULT_SIGNS)?;
    let sign = |told: &Told| Some((told.moment.as_nanos(), fault_sign(&told.head.source, &told.kind()?)?));
    Ok(past.told.iter().filter_map(sign).collect())
}

/// Lists them.
pub(super) fn list(lab: &Lab, json: bool) -> anyhow::Result<()> {
    let now = utc_now().as_nanos();
    let listed =
        of(lab)?.into_iter().map(|times| Listed { age_ns: now.saturating_sub(times.began_ns), times });
    let listed: Vec<Listed> = listed.collect();
    if json {
        return print_json(&listed);
    }
    if listed.is_empty() {
        return print("no fault is remembered\n");
    }
    let headings = ["fault", "ago s", "lasted s", "detected s", "rerouted s", "restored s", "pairs lost"];
    let mut table = Table::new(&headings);
    for Listed { times, age_ns } in listed {
        table.row([
            times.fault,
            format!("{}", age_ns / 1_000_000_000),
            seconds(times.lasted_ns),
            seconds(times.detected_after_ns),
            seconds(times.rerouted_after_ns),
            seconds(times.restored_after_ns),
            times.pairs_lost.map_or_else(|| "-".to_owned(), |pairs| pairs.to_string()),
        ]);
    }
    print(&table.to_string())
}

/// Seconds to the millisecond; a dash where there are none.
pub(super) fn seconds(nanos: Option<u64>) -> String {
    nanos.map_or_else(
        || "-".to_owned(),
        |nanos| format!("{:.3}", std::time::Duration::from_nanos(nanos).as_secs_f64()),
    )
}

#[cfg(test)]
mod tests {
    use weft_control::event::{EventKind, LabEvent, ProcessEvent, SmEvent, SweepReason};
    use weft_control::hub::EndKind;
    use weft_control::sm::{Summary, SweepKind};
    use weft_fault::Word;

    use super::*;

    #[test]
    fn events_say_what_a_killed_process_cost() {
        let fault = |fault| EventKind::Lab(LabEvent::Fault { fault, target: "a0007".into() });
        let up =
            |hosts, cables| EventKind::Sm(SmEvent::SubnetUp(Summary { hosts, cables, ..Summary::default() }));
        let sweep = |kind| EventKind::Sm(SmEvent::SweepStarted { kind, reason: SweepReason::Start });
        let events = [
            (1, up(4, 8)),
            (10, fault(Word::Kill)),
            (11, sweep(SweepKind::Light)),
            (14, sweep(SweepKind::Heavy)),
            (20, up(3, 7)),
            (30, fault(Word::Restart)),
            (45, up(4, 8)),
        ];
        let times =
            fault_times(events.iter().filter_map(|(at, event)| Some((*at, fault_sign("sm", event)?))));
        let [times] = times.as_slice() else { panic!("{times:?}") };
        let after = (times.detected_after_ns, times.rerouted_after_ns, times.restored_after_ns);
        assert_eq!(
            (times.fault.as_str(), after, times.pairs_lost),
            ("kill a0007", (Some(4), Some(10), Some(15)), Some(6))
        );
    }

    #[test]
    fn a_manager_that_ended_without_an_order_is_a_fault() {
        let ended = |process: &str, how| {
            let (process, code, signal) = (process.to_owned(), None, Some(9));
            ("hub", EventKind::Lab(LabEvent::ProcessEnded { process, how, code, signal }))
        };
        let ready = |source| (source, EventKind::Process(ProcessEvent::Ready));
        let events = [
            (
                1,
                (
                    "sm",
                    EventKind::Sm(SmEvent::SubnetUp(Summary { hosts: 4, cables: 8, ..Summary::default() })),
                ),
            ),
            (10, ended("sm", EndKind::Failed)),
            (11, ended("pm", EndKind::Failed)),
            (12, ended("a0003", EndKind::Failed)),
            (13, ended("vmm", EndKind::KilledOnPurpose)),
            (20, ready("pm")),
            (21, ready("sm")),
            (
                30,
                (
                    "sm",
                    EventKind::Sm(SmEvent::SubnetUp(Summary { hosts: 4, cables: 8, ..Summary::default() })),
                ),
            ),
        ];
        let signs = events.iter().filter_map(|(at, (source, event))| Some((*at, fault_sign(source, event)?)));
        let times = fault_times(signs);
        let part = |one: &FaultTimes<String>| (one.fault.clone(), one.lasted_ns);
        let wanted = [("end of sm".to_owned(), Some(11)), ("end of pm".to_owned(), Some(9))];
        assert_eq!(times.iter().map(part).collect::<Vec<_>>(), wanted);
    }
}
