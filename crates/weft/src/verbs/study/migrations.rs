//! `weft study migrations`

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_study::migrations::{Case, Report, Study, StudyOptions, cases};

use super::super::report;
use crate::cli::study::MigrationsArgs;
use crate::interrupt::break_off_when_interrupted;
use crate::output::{Table, say};
use crate::progress::Ticker;

/// How often progress is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// The share of the work that must be done before the rest is estimated.
const ESTIMABLE: f64 = 0.01;

pub(super) fn run(args: &MigrationsArgs) -> anyhow::Result<ExitCode> {
    let options = StudyOptions { seed: args.seed, bisections: args.bisections, seeds: args.seeds };
    let study = Study { cases: chosen(args)?, options };
    report::prepare(args.report.as_deref())?;
    break_off_when_interrupted(|| "nothing is kept of what was computed")?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads).build();
    let pool = pool.context("cannot start threads")?;
    let found = watched(&study, |tell| pool.install(|| study.run(tell)))
        .map_err(|(case, error)| anyhow::anyhow!("{case}: {error}"))?;
    let text = (!args.json).then(|| text(&found));
    report::publish(&found, args.report.as_deref(), Report::files, text.as_deref())?;
    found.failures.iter().for_each(|failure| say(failure));
    Ok(if found.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The combinations that are meant.
fn chosen(args: &MigrationsArgs) -> anyhow::Result<Vec<Case>> {
    let anything = !args.topologies.is_empty()
        || !args.scenarios.is_empty()
        || !args.starts.is_empty()
        || !args.occupancies.is_empty();
    if !args.table4 && !anything {
        return Err(Failure::bad_input("no combination is named")
            .hint("`--table4` studies all 126; `--topology 4-ary-2-full` those of one tree"));
    }
    let (patterns, starts) = (&args.scenarios, &args.starts);
    let fits = |case: &Case| {
        (args.topologies.is_empty() || args.topologies.contains(&case.topology))
            && (patterns.is_empty() || patterns.contains(&case.pattern))
            && (starts.is_empty() || starts.contains(&case.start))
            && (args.occupancies.is_empty() || args.occupancies.contains(&case.occupancy))
    };
    let cases: Vec<Case> = cases().filter(fits).collect();
    if cases.is_empty() {
        return Err(Failure::bad_input("table 4 has no such combination")
            .hint("from a uniform start nothing migrates to-uniform: choose `--start random`"));
    }
    Ok(cases)
}

/// Works, and says meanwhile how much of it is done and how long the rest will take.
fn watched<T: Send>(study: &Study, work: impl FnOnce(&(dyn Fn(u64) + Sync)) -> T + Send) -> T {
    let (done, ended, all) = (AtomicU64::new(0), AtomicBool::new(false), study.flows());
    let tell = |flows| {
        done.fetch_add(flows, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut ticker, begun) = (Ticker::begin(), Instant::now());
            while !ended.load(Ordering::Acquire) {
                std::thread::park_timeout(LOOK);
                let share = done.load(Ordering::Relaxed) as f64 / all.max(1) as f64;
                ticker.tell(|| progress(study.cases.len(), share, begun.elapsed()));
            }
        });
        // However the work ends, the watcher does too.
        let _end = End { ended: &ended, watcher: watcher.thread().clone() };
        work(&tell)
    })
}

/// Ends the watcher when it goes.
struct End<'a> {
    ended: &'a AtomicBool,
    watcher: Thread,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        self.watcher.unpark();
    }
}

/// `126 combinations, 40 % done, about 3 min left`
fn progress(cases: usize, share: f64, took: Duration) -> String {
    let text = format!("{cases} combinations, {:.0} % done", share * 100.0);
    if share < ESTIMABLE {
        return text;
    }
    let left = took.as_secs_f64() * (1.0 - share) / share;
    if left < 90.0 {
        format!("{text}, about {left:.0} s left")
    } else {
        format!("{text}, about {:.0} min left", left / 60.0)
    }
}

fn text(report: &Report) -> String {
    let mut table = Table::headed(
        "topology | start | scenario | in use | migrations | FTreeMinRC | ItRC | bandwidth | fresh | loss",
    );
    for result in &report.cases {
        let Some(last) = result.tenths.last() else { continue };
        table.row(&[
            &result.case.topology,
            &result.case.start,
            &result.case.pattern,
            &format!("{}%", result.case.occupancy),
            &last.migrations,
            &format!("{:.1}", result.ftreeminrc.mean),
            &format!("{:.1}", result.itrc.mean),
            &format!("{:.4}", last.ftreeminrc.mean),
            &format!("{:.4}", last.fresh.mean),
            &format!("{:.2}%", last.loss_percent()),
        ]);
    }
    let mut text = format!(
        "{table}\nFTreeMinRC, ItRC: switches updated in a migration, on average. Bandwidth: share of a link that a flow gets after all\nmigrations, by FTreeMinRC's tables and by a fresh routing; {} bisections, seed {}.\n",
        report.options.bisections, report.options.seed
    );
    for row in &report.fidelity {
        let ours = row.ours.map_or("-".to_owned(), |ours| format!("{ours:.2} {}", row.unit));
        let printed = if row.paper.is_limit { "at most" } else { "about" };
        text += &format!("{}: {ours}; the paper {printed} {} {}\n", row.what, row.paper.value, row.unit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_estimates_once_there_is_something_to_estimate_from() {
        let seconds = Duration::from_secs;
        assert_eq!(progress(126, 0.001, seconds(1)), "126 combinations, 0 % done");
        assert_eq!(progress(126, 0.25, seconds(10)), "126 combinations, 25 % done, about 30 s left");
        assert_eq!(progress(126, 0.25, seconds(100)), "126 combinations, 25 % done, about 5 min left");
    }
}
