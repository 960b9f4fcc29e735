//! `weft routes compute`

use std::time::Instant;

use anyhow::Context;
use serde::Serialize;
use weft_routing::files::write_dot;
use weft_routing::{EngineReport, Refusal};

use super::inputs::Inputs;
use super::{folder, while_saying, while_writing};
use crate::cli::ComputeArgs;
use crate::failure::Failure;
use crate::output::{print, print_json, say_labelled};
use crate::verbs::{count_of, seconds};

/// Any engine that serves.
const AUTO: &str = "auto";

/// What came of it.
#[derive(Serialize)]
struct Computed<'a> {
    switches: usize,
    hosts: usize,
    lids: usize,
    took_seconds: f64,
    #[serde(flatten)]
    report: &'a EngineReport,
}

pub(super) fn run(args: &ComputeArgs) -> anyhow::Result<()> {
    let inputs = Inputs::load(&args.file, &args.routing)?;
    let chain = inputs.told.chain(&args.engine)?;
    let (fabric, lids) = (&inputs.fabric, &inputs.lids);
    let begin = Instant::now();
    let routed = while_saying("computing tables", || chain.route(fabric, lids, &inputs.told.options));
    let took = begin.elapsed();
    let hint = "`--engine auto` tries minhop, updn, dfsssp and lash, as any list without `no_fallback` does";
    let routing = routed.map_err(|refusals| refused(&refusals).hint(hint))?;
    if let Some(path) = &args.dump {
        while_writing(|| folder::write(path, fabric, lids, &routing))?;
    }
    if let Some(path) = &args.dot {
        let graph = write_dot(fabric, lids, &routing.routes);
        while_writing(|| std::fs::write(path, graph))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let counts = fabric.counts();
    let computed = Computed {
        switches: counts.switches,
        hosts: counts.hosts,
        lids: lids.iter().map(|lids| lids.iter().count()).sum(),
        took_seconds: took.as_secs_f64(),
        report: &routing.report,
    };
    let report = computed.report;
    // Whoever named an engine gets no other's tables without a word.
    let is_other = tell_of_fallback(&args.engine, report);
    if args.json {
        return print_json(&computed);
    }
    let mut text = format!(
        "{}: switches: {}, hosts: {}, LIDs: {}, computed in {} s, {}\n",
        report.engine,
        computed.switches,
        computed.hosts,
        computed.lids,
        seconds(took),
        count_of(usize::from(report.lanes), "data lane"),
    );
    if let Some(ranks) = report.ranks {
        text.push_str(&format!("{}, roots: {}\n", count_of(ranks, "rank"), shortened(&report.roots)));
    }
    let fallbacks = report.fallbacks.iter().filter(|_| !is_other);
    for sentence in fallbacks.chain(&report.unsatisfied).chain(&report.notes) {
        text.push_str(&format!("{sentence}\n"));
    }
    print(&text)
}

/// Warns where none of the engines that the user named serves the fabric; whether that is so.
fn tell_of_fallback(named: &str, report: &EngineReport) -> bool {
    let is_other = !named.split(',').any(|engine| engine == report.engine || engine == AUTO);
    if is_other {
        let why = report.fallbacks.join("; ");
        let hint = format!("`--engine {named},no_fallback` fails instead");
        say_labelled("warning:", "33", &format!("{} took over: {why}", report.engine));
        say_labelled("hint:", "36", &hint);
    }
    is_other
}

/// Some of many names.
fn shortened(names: &[String]) -> String {
    const SHOWN_MAX: usize = 8;
    match names.len() {
        0 => "none".into(),
        count if count <= SHOWN_MAX => names.join(", "),
        count => format!("{} and {} more", names[..SHOWN_MAX].join(", "), count - SHOWN_MAX),
    }
}

/// No engine serves the fabric: exit code 1, with what each says.
pub(super) fn refused(refusals: &[Refusal]) -> Failure {
    let reasons: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    Failure::new(reasons.join("; "))
}
