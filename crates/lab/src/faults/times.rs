//! Costs of faults, by the events that the laboratory remembers.

use weft_control::event::{FAULT_SIGNS, fault_sign};
use weft_fault::{FaultTimes, Sign, fault_times};

use crate::events::{Told, remembered};
use crate::view::Lab;

/// What each fault cost that the laboratory remembers. A fault that lasts is named by its id, another by its command.
pub fn of(lab: &Lab) -> anyhow::Result<Vec<FaultTimes<String>>> {
    Ok(fault_times(signs(lab)?))
}

/// All that the laboratory remembers that says anything of faults, in the order of its moments, which are in nanoseconds since
/// 1970 by this machine's clock.
pub fn signs(lab: &Lab) -> anyhow::Result<Vec<(u64, Sign<String>)>> {
    let (past, _) = remembered(&lab.folder, &FAULT_SIGNS)?;
    let sign = |told: &Told| Some((told.moment.as_nanos(), fault_sign(&told.head.source, &told.kind()?)?));
    Ok(past.told.iter().filter_map(sign).collect())
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
