//! Random schedules by their seeds, in four parts that run beside each other.

#![allow(dead_code, unused_imports, unused_macros, reason = "not every test uses all of it")]

use std::fmt::Debug;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use weft_sim::TraceMode;

/// After how many schedules of a part a line says so.
const PROGRESS_EVERY: u64 = 10;

/// A number that the environment gives.
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is to be a number, not `{text}`")))
}

/// Runs the seeds of one part, `WEFT_SCHEDULES` or `schedules` in all, the first `twice` of them two times with a trace; or
/// `WEFT_SEED` alone. `WEFT_AT_ONCE` says how many of a part at the same time, which is worth it where processes wait. What `add`
/// has summed up, and the number of seeds; `None` for the seed alone.
pub(crate) fn run_part<T: Clone + Debug + Default + PartialEq + Send>(
    part: u64,
    (schedules, twice): (u64, u64),
    run: impl Fn(u64, TraceMode) -> Result<(T, u64), String> + Sync,
    add: impl Fn(&mut T, T) + Sync,
) -> Option<(T, u64)> {
    if let Some(seed) = number("WEFT_SEED") {
        if part == 0 {
            run(seed, TraceMode::Lines).unwrap_or_else(|error| panic!("{error}"));
        }
        return None;
    }
    let count = number("WEFT_SCHEDULES").unwrap_or(schedules);
    let next = AtomicU64::new(part);
    let found = Mutex::new(Found::default());
    let work = || {
        loop {
            let seed = next.fetch_add(4, Ordering::Relaxed);
            if seed >= count {
                return;
            }
            let outcome = run_seed(seed, seed / 4 < twice, &run);
            found.lock().expect("no run panics here").take(seed, outcome, &add);
            if seed / 4 % PROGRESS_EVERY == PROGRESS_EVERY - 1 {
                say(&format!("part {part}: {} of {} schedules\n", seed / 4 + 1, count / 4));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..number("WEFT_AT_ONCE").unwrap_or(1) {
            scope.spawn(work);
        }
    });
    let Found { totals, seeds, failures } = found.into_inner().expect("no run has panicked");
    say(&format!("{seeds} schedules: {totals:?}\n"));
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    Some((totals, seeds))
}

/// What the seeds of a part have brought.
#[derive(Default)]
struct Found<T> {
    totals: T,
    seeds: u64,
    failures: Vec<String>,
}

impl<T> Found<T> {
    fn take(&mut self, seed: u64, outcome: Result<T, String>, add: impl Fn(&mut T, T)) {
        self.seeds += 1;
        match outcome {
            Ok(found) => add(&mut self.totals, found),
            Err(failure) => {
                // At once, since a thousand take a while.
                say(&format!("{failure}\n"));
                self.failures.push(format!("seed {seed}"));
            }
        }
    }
}

/// Runs a seed, perhaps a second time to see whether it leaves the same trace.
fn run_seed<T: Clone + PartialEq>(
    seed: u64,
    is_twice: bool,
    run: impl Fn(u64, TraceMode) -> Result<(T, u64), String>,
) -> Result<T, String> {
    let trace = if is_twice { TraceMode::Hash } else { TraceMode::Off };
    // A panic has to name its seed too, and the seeds after it have to run.
    let run = |seed, trace| {
        catch_unwind(AssertUnwindSafe(|| run(seed, trace)))
            .unwrap_or_else(|_| Err(format!("WEFT_SEED={seed}: it panicked, see above\n")))
    };
    let first = run(seed, trace)?;
    if is_twice && run(seed, trace) != Ok(first.clone()) {
        return Err(format!("seed {seed}: another trace the second time"));
    }
    Ok(first.0)
}

fn say(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).expect("what is wrong can be said");
}

/// The tests of the four parts, each of which calls a function with its number.
macro_rules! four_parts {
    ($part:path) => {
        #[test]
        fn part_0() {
            $part(0);
        }

        #[test]
        fn part_1() {
            $part(1);
        }

        #[test]
        fn part_2() {
            $part(2);
        }

        #[test]
        fn part_3() {
            $part(3);
        }
    };
}

pub(crate) use four_parts;
