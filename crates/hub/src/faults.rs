//! Costs of faults, reported when they are over: computed from all that the hub hears.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use weft_control::event::{FAULT_SIGNS, LabEvent, fault_sign};
use weft_control::hub::ProcessState;
use weft_control::{Event, EventFilter, EventKind, Since, Utc};
use weft_fault::{FaultClock, FaultTimes, Sign};
use weft_process::utc_now;

use crate::shared::Shared;

/// Faults whose cost is not known yet; the oldest are forgotten.
const FAULTS_MAX: usize = 1024;
/// Without another event from before the hub for this long, processes have sent all that they keep.
const QUIET: Duration = Duration::from_secs(1);
/// What it keeps meanwhile at most.
const WAITING_MAX: usize = 1 << 17;
/// A hub does not wait longer for processes that it does not hear.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// The pause between two looks at whether they have.
const LOOK: Duration = Duration::from_millis(100);

/// What the end of the hub before this one was: other processes took no note of it, and links stay up.
pub(crate) fn end_of_hub(name: &str, lived: Utc) -> EventKind {
    let began_ns = lived.as_nanos();
    EventKind::Lab(LabEvent::FaultCost(FaultTimes {
        fault: format!("end of {name}"),
        began_ns,
        lasted_ns: Some(utc_now().as_nanos().saturating_sub(began_ns)),
        ..FaultTimes::default()
    }))
}

/// Goes on for as long as the hub.
pub(crate) async fn watch(shared: Arc<Shared>, began: Utc) {
    let kinds = FAULT_SIGNS.map(str::to_owned).to_vec();
    let (mut reader, _) =
        shared.log.subscribe(&EventFilter { from: Since::Start, kinds, ..EventFilter::default() });
    let mut account = Account::new(began);
    let (started, mut quiet_since) = (Instant::now(), Instant::now());
    loop {
        let batch = match account.is_waiting() {
            true => timeout(LOOK, reader.next()).await.ok(),
            false => Some(reader.next().await),
        };
        let mut told = Vec::new();
        for json in batch.into_iter().flat_map(|batch| batch.events) {
            // One of another version has another meaning, if any.
            let Ok(event) = Event::parse(&json) else { continue };
            let Some(sign) = fault_sign(&event.source, &event.kind) else { continue };
            let moment = event.moment();
            if moment < began {
                quiet_since = Instant::now();
            }
            told.extend(account.hear(moment, sign));
        }
        if account.is_waiting() {
            let are_heard = shared.state().roster.in_state(ProcessState::Expected).is_empty();
            let is_over = started.elapsed() >= WAIT_MAX || account.is_full();
            if (are_heard && quiet_since.elapsed() >= QUIET) || is_over {
                told.extend(account.begin());
            }
        }
        told.into_iter().for_each(|times| shared.tell(EventKind::Lab(LabEvent::FaultCost(times))));
    }
}

/// Reckons in the order of moments. Processes tell a new hub what they remember one after the other, so it waits with all of it until
/// it knows the order.
struct Account {
    began: Utc,
    clock: FaultClock<String>,
    /// What was heard so far, while it waits.
    waiting: Option<Vec<(Utc, Sign<String>)>>,
}

impl Account {
    fn new(began: Utc) -> Self {
        Self { began, clock: FaultClock::default(), waiting: Some(Vec::new()) }
    }

    fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    fn is_full(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.len() >= WAITING_MAX)
    }

    /// Something was heard. Gives faults that are over by that.
    fn hear(&mut self, moment: Utc, sign: Sign<String>) -> Vec<FaultTimes<String>> {
        match &mut self.waiting {
            Some(waiting) => {
                waiting.push((moment, sign));
                Vec::new()
            }
            None => self.see(moment, sign),
        }
    }

    /// All that processes remember is heard.
    fn begin(&mut self) -> Vec<FaultTimes<String>> {
        let mut waiting = self.waiting.take().unwrap_or_default();
        waiting.sort_by_key(|(moment, _)| *moment);
        waiting.into_iter().flat_map(|(moment, sign)| self.see(moment, sign)).collect()
    }

    fn see(&mut self, moment: Utc, sign: Sign<String>) -> Vec<FaultTimes<String>> {
        self.clock.see(moment.as_nanos(), sign);
        let mut over = self.clock.take_over(FAULTS_MAX);
        // An earlier hub has reported those that ended before this one began.
        let ended = |times: &FaultTimes<String>| times.began_ns.saturating_add(times.lasted_ns.unwrap_or(0));
        over.retain(|times| ended(times) >= self.began.as_nanos());
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens: at first the subnet is up, a cable is pulled at 20, noticed at 22 and routed round at 25, and is back at 60.
    /// Another fault was over at 15.
    fn told_by_agent() -> Vec<(u64, Sign<String>)> {
        let begun = |key: &str| Sign::Begun { key: key.to_owned(), takes_links: true };
        vec![
            (10, begun("f1")),
            (13, Sign::Ended("f1".to_owned())),
            (20, begun("f2")),
            (22, Sign::Noticed),
            (60, Sign::Ended("f2".to_owned())),
        ]
    }

    fn told_by_manager() -> Vec<(u64, Sign<String>)> {
        let routed = |hosts| Sign::Routed { hosts, cables: 8 };
        vec![
            (5, routed(4)),
            (11, Sign::Noticed),
            (12, routed(3)),
            (15, routed(4)),
            (25, routed(3)),
            (63, routed(4)),
        ]
    }

    /// What a hub tells that began at 40, when it hears these in this order.
    fn told(remembered: impl IntoIterator<Item = (u64, Sign<String>)>) -> Vec<FaultTimes<String>> {
        let mut account = Account::new(Utc::from_nanos(40));
        let (past, mut live): (Vec<_>, Vec<_>) = remembered.into_iter().partition(|(at, _)| *at < 40);
        live.sort_by_key(|(at, _)| *at);
        let mut told = Vec::new();
        for (at, sign) in past {
            told.extend(account.hear(Utc::from_nanos(at), sign));
        }
        assert!(account.is_waiting() && told.is_empty(), "{told:?}");
        told.extend(account.begin());
        for (at, sign) in live {
            told.extend(account.hear(Utc::from_nanos(at), sign));
        }
        told
    }

    #[test]
    fn fault_times_do_not_depend_on_the_order_of_reports() {
        let agent_first = told(told_by_agent().into_iter().chain(told_by_manager()));
        let manager_first = told(told_by_manager().into_iter().chain(told_by_agent()));
        assert_eq!(agent_first, manager_first);
        let [times] = agent_first.as_slice() else { panic!("{agent_first:?}") };
        assert_eq!((times.fault.as_str(), times.began_ns, times.lasted_ns), ("f2", 20, Some(40)));
        let after = (times.detected_after_ns, times.rerouted_after_ns, times.restored_after_ns);
        assert_eq!((after, times.pairs_lost), ((Some(2), Some(5), Some(3)), Some(12 - 6)));
    }
}
