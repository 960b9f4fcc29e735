//! The machine's wake-up times, measured before a live run that would be invalid at its end.

use std::time::{Duration, Instant};

use weft_bundle::failure::{Failure, Interrupted};
use weft_experiment::Late;
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_machine::Time;
use weft_process::readable;

/// A look sleeps this often on every core, each time this long.
const SLEEPS: u32 = 200;
const SLEEP: Duration = Duration::from_millis(1);
/// How long to look for a quiet moment.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits for a moment in which a live run would be valid.
///
/// # Errors
/// When there is none, and when the user wants no run any more.
pub(super) fn wait_until_quiet(say: impl Fn(&str)) -> anyhow::Result<()> {
    let stop = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let began = Instant::now();
    loop {
        let Some(late) = look(&stop)? else { return Err(Interrupted::NOTHING_RUNS.into()) };
        match judge(&late) {
            Ok(()) => return Ok(()),
            Err(failure) if began.elapsed() >= PATIENCE => return Err(failure),
            Err(_) => say("waiting for a quiet machine"),
        }
    }
}

/// The same bound as at the end of the run.
fn judge(late: &Late) -> anyhow::Result<()> {
    if late.p99 <= Late::VALID_MAX {
        return Ok(());
    }
    Err(Failure::invalid(late.too_busy()).hint(
        "stop other programs, or use --virtual, which needs no quiet machine; --allow-busy runs all the same",
    ))
}

/// How late sleepers wake up on all cores; none after a signal.
fn look(stop: &Signals) -> anyhow::Result<Option<Late>> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let sleepers = std::thread::scope(|scope| {
        let sleepers: Vec<_> = (0..cores).map(|_| scope.spawn(|| sleep(stop))).collect();
        let ended = sleepers.into_iter().map(|sleeper| sleeper.join().unwrap_or_else(|_| Ok(None)));
        ended.collect::<anyhow::Result<Option<Vec<_>>>>()
    })?;
    Ok(sleepers.map(|delays| late(delays.into_iter().flatten().collect())))
}

fn sleep(stop: &Signals) -> anyhow::Result<Option<Vec<Duration>>> {
    let mut delays = Vec::new();
    for _ in 0..SLEEPS {
        let began = Instant::now();
        if readable(stop, Some(SLEEP))? {
            return Ok(None);
        }
        delays.push(began.elapsed().saturating_sub(SLEEP));
    }
    Ok(Some(delays))
}

fn late(mut delays: Vec<Duration>) -> Late {
    delays.sort_unstable();
    let at = |percent: usize| {
        let delay = delays.get((delays.len() * percent / 100).min(delays.len().saturating_sub(1)));
        Time::from_nanos(delay.map_or(0, |delay| u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX)))
    };
    Late { count: delays.len() as u64, p50: at(50), p99: at(99), max: at(100) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_lab::signals::SIGWINCH;

    #[test]
    fn a_busy_machine_is_refused_by_its_latest_sleepers() {
        let delays = |late_ms: u64, many: usize| {
            let quick = (0..1000 - many).map(|_| Duration::from_micros(80));
            late(quick.chain((0..many).map(|_| Duration::from_millis(late_ms))).collect())
        };
        assert!(judge(&delays(46, 9)).is_ok(), "fewer than one of 100");
        assert!(judge(&delays(5, 20)).is_ok());
        let refused = judge(&delays(46, 20)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "machine too busy (99th percentile of wake-up delays 46 ms, limit 5 ms)"
        );
        assert_eq!(delays(46, 20).p50, Time::from_micros(80));
        assert_eq!(late(Vec::new()).count, 0);
    }

    #[test]
    fn a_look_counts_every_sleep_of_every_core() {
        let stop = Signals::watch(&[SIGWINCH]).unwrap();
        let cores = std::thread::available_parallelism().unwrap().get() as u64;
        assert_eq!(look(&stop).unwrap().unwrap().count, cores * u64::from(SLEEPS));
    }
}
