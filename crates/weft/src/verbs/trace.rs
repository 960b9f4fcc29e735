//! `weft trace`

use serde::Serialize;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_lab::trace::{Way, through};
use weft_lab::view::Lab;
use weft_topology::NodeIndex;
use weft_wire::Guid;

use crate::cli::TraceArgs;
use crate::output::{Table, print, print_json};

#[derive(Serialize)]
struct Trace {
    from: String,
    from_guid: Guid,
    to: String,
    to_guid: Guid,
    #[serde(flatten)]
    way: Way,
}

pub(super) fn run(folder: &LabFolder, args: &TraceArgs) -> anyhow::Result<()> {
    let lab = Lab::load_live(folder)?;
    let (from, to) = (lab.find(&args.from)?, lab.find(&args.to)?);
    if lab.record.denies_qp0(lab.fabric.node(from).guid) {
        return Err(Failure::bad_input(format!("`{}` may send no SMPs (--vf-qp0 deny)", args.from))
            .hint("trace the way back: swap the two nodes"));
    }
    let way = through(&lab, from, to)?;
    let name = |node: NodeIndex| lab.fabric.label(node);
    let guid = |node: NodeIndex| lab.fabric.node(node).guid;
    let (from_guid, to_guid) = (guid(from), guid(to));
    let trace = Trace { from: name(from), from_guid, to: name(to), to_guid, way };
    if args.json {
        return print_json(&trace);
    }
    let mut table = Table::headed("hop | node | out | in | next");
    let Way { lid, hops } = trace.way;
    for (index, hop) in hops.into_iter().enumerate() {
        table.row(&[&(index + 1), &hop.node, &hop.out_port, &hop.in_port, &hop.peer]);
    }
    print(&format!("{} -> {} (LID {lid})\n{table}", trace.from, trace.to))
}
