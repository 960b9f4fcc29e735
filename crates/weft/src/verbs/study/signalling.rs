//! `weft study signalling`

use std::process::ExitCode;

use serde::Serialize;
use weft_study::signalling::{FIGURE_9, MESHES, Row, spread, study};

use crate::cli::study::SignallingArgs;
use crate::output::{self, Table};

/// The rows, and what else is shown beside them.
#[derive(Serialize)]
struct Found {
    rows: Vec<Row>,
    /// 400 switches with the number of changes that the paper prints.
    printed: Row,
    /// Changes for each cable of the 6x6 mesh.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spread: Vec<u64>,
}

pub(super) fn run(args: &SignallingArgs) -> anyhow::Result<ExitCode> {
    let sizes = MESHES.into_iter().filter(|[a, b]| a * b <= args.most);
    let rows = sizes.map(study).collect::<Result<_, _>>()?;
    let spread = if args.spread { spread([6, 6])? } else { Vec::new() };
    // How many lanes OpenSM took is not printed.
    let found = Found { rows, printed: Row::of(400, [0, 0], FIGURE_9), spread };
    output::show(&found, args.json, text)?;
    Ok(ExitCode::SUCCESS)
}

fn text(found: &Found) -> String {
    let mut table =
        Table::headed("switches | changes | method | MADs | MB | paper's MB | ratio | latency ms");
    let mut add = |row: &Row, mark: &str| {
        for one in &row.methods {
            let megabytes = |bytes: u64| format!("{:.3}", bytes as f64 / 1e6);
            let is_paper = one.paper_bytes > 0;
            let ratio = one.bytes as f64 / one.paper_bytes.max(1) as f64;
            table.row(&[
                &format!("{}{mark}", row.switches),
                &row.changes,
                &one.method,
                &one.mads,
                &megabytes(one.bytes),
                &megabytes(one.paper_bytes),
                &if is_paper { format!("{ratio:.2}") } else { "-".to_owned() },
                &format!("{:.1}", one.latency_ms),
            ]);
        }
    };
    found.rows.iter().for_each(|row| add(row, ""));
    add(&found.printed, "*");
    let mut text = format!(
        "{table}\n* with the {FIGURE_9} changes that the paper prints for OpenSM's LASH; the other rows are of weft's\n\
         MADs: those that agents receive. Paper: its equations 4 to 9 with the same switches and changes; its times t1 to t5 are given\n"
    );
    if let (Some(least), Some(most)) = (found.spread.iter().min(), found.spread.iter().max()) {
        let mean = found.spread.iter().sum::<u64>() as f64 / found.spread.len() as f64;
        let cables = found.spread.len();
        text += &format!("6x6, over all {cables} cables: {least} to {most} changes, {mean:.0} in the mean\n");
    }
    text
}
