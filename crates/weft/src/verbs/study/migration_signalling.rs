//! `weft study migration-signalling`

use std::process::ExitCode;

use weft_study::migration_signalling::{Row, rows};

use crate::cli::study::MigrationSignallingArgs;
use crate::output::{self, Table};

pub(super) fn run(args: &MigrationSignallingArgs) -> anyhow::Result<ExitCode> {
    output::show(&rows(&args.servers, &args.machines), args.json, text)?;
    Ok(ExitCode::SUCCESS)
}

#[allow(clippy::ptr_arg, reason = "what is shown is a list")]
fn text(rows: &Vec<Row>) -> String {
    let mut table = Table::headed(
        "servers | machines each | subscribed | at first | paper's | a move | notices | paper's | ratio | \
         handed on",
    );
    for row in rows {
        table.row(&[
            &row.servers,
            &row.machines,
            &row.subscribers,
            &row.start,
            &row.paper_start,
            &row.a_move,
            &row.notices,
            &row.paper_notices,
            &format!("{:.2}", row.notices as f64 / row.paper_notices.max(1) as f64),
            &row.handed_on,
        ]);
    }
    format!(
        "{table}\nMADs that agents receive. Paper: its equations 1 to 4, which count machines alone where each subscribes, and no answer to a \
         notice\n"
    )
}
