//! The choice of processes to start again, and when. It knows no clock: the caller gives the time.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_control::hub::{EndKind, RestartPolicy};

/// The pause before the first start; each further one is twice as long.
pub const DELAY_MIN: Duration = Duration::from_millis(100);
/// The longest pause.
pub const DELAY_MAX: Duration = Duration::from_secs(30);
/// A process that has lived for this long is forgiven what was before.
pub const GOOD_WHILE: Duration = Duration::from_secs(60);

/// The starts that are due. Times are since any fixed moment.
#[derive(Debug)]
pub struct Restarts {
    policy: RestartPolicy,
    processes: BTreeMap<String, Attempts>,
}

#[derive(Debug, Default)]
struct Attempts {
    /// How often it has failed without living for a good while in between.
    failures: u32,
    alive_since: Option<Duration>,
    due: Option<Duration>,
}

impl Restarts {
    /// Nothing has failed yet.
    pub fn new(policy: RestartPolicy) -> Self {
        Self { policy, processes: BTreeMap::new() }
    }

    /// The policy.
    pub fn policy(&self) -> RestartPolicy {
        self.policy
    }

    /// A process runs.
    pub fn alive(&mut self, process: &str, now: Duration) {
        if self.policy == RestartPolicy::Never {
            return;
        }
        let attempts = self.processes.entry(process.to_owned()).or_default();
        attempts.due = None;
        attempts.alive_since.get_or_insert(now);
    }

    /// A process has ended. The pause until it is started again, if it is.
    pub fn ended(&mut self, process: &str, how: EndKind, now: Duration) -> Option<Duration> {
        if self.policy == RestartPolicy::Never || how != EndKind::Failed {
            self.processes.remove(process);
            return None;
        }
        let attempts = self.processes.entry(process.to_owned()).or_default();
        let lived = attempts.alive_since.take().map(|since| now.saturating_sub(since));
        if lived.is_some_and(|lived| lived >= GOOD_WHILE) {
            attempts.failures = 0;
        }
        let delay = DELAY_MIN.saturating_mul(1 << attempts.failures.min(20)).min(DELAY_MAX);
        attempts.failures = attempts.failures.saturating_add(1);
        attempts.due = Some(now.saturating_add(delay));
        Some(delay)
    }

    /// A process is not started again after all.
    pub fn cancel(&mut self, process: &str) {
        if let Some(attempts) = self.processes.get_mut(process) {
            attempts.due = None;
        }
    }

    /// The next process that is to be started now. It is due no more: [`Restarts::alive`] or
    /// [`Restarts::ended`] reports what becomes of it.
    pub fn take_due(&mut self, now: Duration) -> Option<String> {
        let due = |(_, attempts): &(&String, &mut Attempts)| attempts.due.is_some_and(|due| due <= now);
        let (process, attempts) =
            self.processes.iter_mut().filter(due).min_by_key(|(_, attempts)| attempts.due)?;
        attempts.due = None;
        Some(process.clone())
    }

    /// When the next one is due.
    pub fn next_due(&self) -> Option<Duration> {
        self.processes.values().filter_map(|attempts| attempts.due).min()
    }

    /// When a process is due.
    pub fn due(&self, process: &str) -> Option<Duration> {
        self.processes.get(process)?.due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn on_failure() -> Restarts {
        Restarts::new(RestartPolicy::OnFailure)
    }

    #[test]
    fn only_failures_are_started_again_and_only_if_wanted() {
        let mut never = Restarts::new(RestartPolicy::Never);
        never.alive("sm", SECOND);
        assert_eq!(never.ended("sm", EndKind::Failed, SECOND), None);
        let mut restarts = on_failure();
        for how in [EndKind::InOrder, EndKind::KilledOnPurpose] {
            restarts.alive("sm", SECOND);
            assert_eq!(restarts.ended("sm", how, SECOND), None);
            assert_eq!(restarts.next_due(), None);
        }
        assert_eq!(restarts.ended("sm", EndKind::Failed, SECOND), Some(DELAY_MIN));
        assert_eq!(restarts.take_due(SECOND), None, "not before its time");
        assert_eq!(restarts.next_due(), Some(SECOND + DELAY_MIN));
        assert_eq!(restarts.take_due(2 * SECOND).as_deref(), Some("sm"));
        assert_eq!((restarts.take_due(9 * SECOND), restarts.next_due()), (None, None), "once");
    }

    #[test]
    fn pauses_grow_to_a_bound_and_a_good_while_forgives() {
        let mut restarts = on_failure();
        let mut now = Duration::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..40 {
            restarts.alive("a0", now);
            now += SECOND;
            pauses.extend(restarts.ended("a0", EndKind::Failed, now));
        }
        let doubled: Vec<_> = (0..9).map(|nth| DELAY_MIN * (1 << nth)).collect();
        assert_eq!(pauses[..9], doubled);
        assert!(pauses[9..].iter().all(|pause| *pause == DELAY_MAX), "{pauses:?}");
        restarts.alive("a0", now);
        let almost = now + GOOD_WHILE - Duration::from_nanos(1);
        assert_eq!(restarts.ended("a0", EndKind::Failed, almost), Some(DELAY_MAX));
        restarts.alive("a0", now);
        assert_eq!(restarts.ended("a0", EndKind::Failed, now + GOOD_WHILE), Some(DELAY_MIN));
    }

    #[test]
    fn a_running_or_killed_process_is_not_due_for_restart() {
        let mut restarts = on_failure();
        for what in 0..3 {
            restarts.ended("pm", EndKind::Failed, SECOND);
            assert!(restarts.due("pm").is_some());
            match what {
                0 => restarts.alive("pm", SECOND),
                1 => restarts.cancel("pm"),
                _ => assert_eq!(restarts.ended("pm", EndKind::KilledOnPurpose, SECOND), None),
            }
            assert_eq!((restarts.due("pm"), restarts.take_due(100 * SECOND)), (None, None));
        }
    }

    proptest! {
        /// Whatever happens to several processes: no pause is outside of its bounds, and nothing is started that did not fail.
        #[test]
        fn nothing_is_started_early_or_without_reason(steps in proptest::collection::vec((0_u8..4, 0_u8..3, 0_u64..90_000), 1..200)) {
            let mut restarts = on_failure();
            let mut now = Duration::ZERO;
            let mut owed: BTreeMap<String, Duration> = BTreeMap::new();
            for (action, process, ms) in steps {
                now += Duration::from_millis(ms);
                let name = format!("a{process}");
                match action {
                    0 => {
                        restarts.alive(&name, now);
                        owed.remove(&name);
                    }
                    1 => {
                        let pause = restarts.ended(&name, EndKind::Failed, now).unwrap();
                        prop_assert!((DELAY_MIN..=DELAY_MAX).contains(&pause));
                        owed.insert(name, now + pause);
                    }
                    2 => {
                        restarts.ended(&name, EndKind::InOrder, now);
                        owed.remove(&name);
                    }
                    _ => while let Some(started) = restarts.take_due(now) {
                        let due = owed.remove(&started);
                        prop_assert!(due.is_some_and(|due| due <= now), "{started} is not due");
                    },
                }
                prop_assert_eq!(restarts.next_due(), owed.values().min().copied());
            }
        }
    }
}
