//! Random schedules by their seeds, in four parts that run beside each other.

#![allow(dead_code, unused_imports, unused_macros, reason = "not every test uses all of it")]

use std::fmt::Debug;
use std::io::Write;

use weft_sim::TraceMode;

/// After how many schedules of a part a line says so.
const PROGRESS_EVERY: u64 = 10;

/// A number that the environment gives.
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is to be a number, not `{text}`")))
}

/// Runs the seeds of one part, `WEFT_SCHEDULES` or `schedules` in all, the first `twice` of them two times with a trace; or
/// `WEFT_SEED` alone. What `add` has summed up, and the number of seeds; `None` for the seed alone.
pub(crate) fn run_part<T: Copy + Debug + Default + PartialEq>(
    part: u64,
    (schedules, twice): (u64, u64),
    run: impl Fn(u64, TraceMode) -> Result<(T, u64), String>,
    add: impl Fn(&mut T, T),
) -> Option<(T, u64)> {
    if let Some(seed) = number("WEFT_SEED") {
        if part == 0 {
            run(seed, TraceMode::Lines).unwrap_or_else(|error| panic!("{error}"));
        }
        return None;
    }
    let count = number("WEFT_SCHEDULES").unwrap_or(schedules);
    let (mut totals, mut failures, mut seeds) = (T::default(), Vec::new(), 0);
    for seed in (0..count).filter(|seed| seed % 4 == part) {
        if seeds > 0 && seeds % PROGRESS_EVERY == 0 {
            say(&format!("part {part}: {seeds} of {} schedules\n", count / 4));
        }
        seeds += 1;
        let is_twice = seed / 4 < twice;
        let trace = if is_twice { TraceMode::Hash } else { TraceMode::Off };
        match run(seed, trace) {
            Ok((found, hash)) => {
                add(&mut totals, found);
                if is_twice && run(seed, trace) != Ok((found, hash)) {
                    failures.push(format!("seed {seed}: another trace the second time"));
                }
            }
            Err(failure) => {
                // At once, since a thousand take a while.
                say(&failure);
                failures.push(format!("seed {seed}"));
            }
        }
    }
    say(&format!("{seeds} schedules: {totals:?}\n"));
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    Some((totals, seeds))
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
