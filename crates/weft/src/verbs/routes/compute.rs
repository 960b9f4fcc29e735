//! `weft routes compute`

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::{with_suffix, write_shared};
use weft_routing::files::write_dot;
use weft_routing::{EngineReport, Refusal};
use weft_wire::count_of;

use super::inputs::Inputs;
use super::{folder, while_saying, while_writing};
use crate::cli::routes::ComputeArgs;
use crate::engine_options::warn_of_fallback;
use crate::output::{print, print_json};
use crate::verbs::seconds;

/// What came of it.
#[derive(Serialize)]
struct Computed {
    /// A node of the piece of the fabric, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    piece: Option<String>,
    switches: usize,
    hosts: usize,
    lids: usize,
    took_seconds: f64,
    /// Whether none of the engines that were named serves it.
    #[serde(skip)]
    is_other: bool,
    #[serde(flatten)]
    report: EngineReport,
}

pub(super) fn run(args: &ComputeArgs) -> anyhow::Result<()> {
    let all = Inputs::load(&args.file, &args.routing)?;
    let several = all.len() > 1;
    let computed = (1..).zip(all).map(|(number, inputs)| {
        let folder = args.dump.as_ref().map(|folder| match several {
            true => folder.join(format!("piece-{number}")),
            false => folder.clone(),
        });
        let dot = args.dot.as_ref().map(|path| match several {
            true => with_suffix(path, &format!("-{number}")),
            false => path.clone(),
        });
        compute(inputs, folder.as_deref(), dot.as_deref(), args)
    });
    let computed = computed.collect::<anyhow::Result<Vec<Computed>>>()?;
    match &computed[..] {
        [one] if args.json => print_json(one),
        all if args.json => print_json(&all),
        all => print(&all.iter().map(ToString::to_string).collect::<String>()),
    }
}

/// Computes one routing and writes it into the folder and the graph that are wanted.
fn compute(
    inputs: Inputs,
    folder: Option<&Path>,
    dot: Option<&Path>,
    args: &ComputeArgs,
) -> anyhow::Result<Computed> {
    let chain = inputs.told.chain(&args.engine)?;
    let (fabric, lids) = (&inputs.fabric, &inputs.lids);
    let begin = Instant::now();
    let routed = while_saying("computing tables", || chain.route(fabric, lids, &inputs.told.options));
    let took = begin.elapsed();
    let hint = "`--engine auto` tries minhop, updn, dfsssp and lash, as any list without `no_fallback` does";
    let routing = routed.map_err(|refusals| refused(&refusals).hint(hint))?;
    if let Some(path) = folder {
        while_writing(|| folder::write(path, fabric, lids, &routing))?;
    }
    if let Some(path) = dot {
        let graph = write_dot(fabric, lids, &routing.routes);
        while_writing(|| write_shared(path, graph.as_bytes()))?;
    }
    let counts = fabric.counts();
    Ok(Computed {
        piece: inputs.piece,
        switches: counts.switches,
        hosts: counts.hosts,
        lids: lids.iter().map(|lids| lids.iter().count()).sum(),
        took_seconds: took.as_secs_f64(),
        // Whoever named an engine gets no other's tables without a word.
        is_other: warn_of_fallback(&args.engine, &routing.report.engine, &routing.report.fallbacks),
        report: routing.report,
    })
}

impl fmt::Display for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.report;
        if let Some(piece) = &self.piece {
            writeln!(f, "piece of `{piece}`:")?;
        }
        writeln!(
            f,
            "{}: switches: {}, hosts: {}, LIDs: {}, computed in {} s, {}",
            report.engine,
            self.switches,
            self.hosts,
            self.lids,
            seconds(Duration::from_secs_f64(self.took_seconds)),
            count_of(usize::from(report.lanes), "data lane"),
        )?;
        if let Some(ranks) = report.ranks {
            writeln!(f, "{}, roots: {}", count_of(ranks, "rank"), shortened(&report.roots))?;
        }
        let fallbacks = report.fallbacks.iter().filter(|_| !self.is_other);
        let mut sentences = fallbacks.chain(&report.unsatisfied).chain(&report.notes);
        sentences.try_for_each(|sentence| writeln!(f, "{sentence}"))
    }
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
