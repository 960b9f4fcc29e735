//! `weft graph`: a picture of a fabric, running or from a file.

use std::path::Path;

use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::topology_file;
use weft_lab::loads::{self, Loads};
use weft_lab::paints::{self, Colour};
use weft_lab::trace;
use weft_lab::view::Lab;
use weft_picture::{Look, cable_at};
use weft_routing::{Expectations, Lids, Routing, verify_routing};
use weft_topology::{Fabric, PortRef};

use super::{routes, vm};
use crate::cli::graph::GraphArgs;
use crate::drawing;
use crate::output::print;

/// `lab`: the running laboratory, where no file is named.
pub(super) fn run(lab: impl Fn() -> anyhow::Result<LabFolder>, args: &GraphArgs) -> anyhow::Result<()> {
    let format = args.format().ok_or_else(|| {
        Failure::bad_input("the file's name does not say which format to write")
            .hint("end it in .svg, .html, .mmd or .dot, or use --format")
    })?;
    let (fabric, look) = match &args.file {
        Some(file) => from_file(file, args)?,
        None => running(&lab()?, args)?,
    };
    let fold = match (args.fold, args.unfold) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let (text, view) = drawing::text(&fabric, &look, format, fold)?;
    match &args.output {
        Some(path) => drawing::wrote(path, &text, &view),
        None => print(&text),
    }
}

/// A fabric of a file, and the load of tables, which are saved or are computed.
fn from_file(file: &Path, args: &GraphArgs) -> anyhow::Result<(Fabric, Look)> {
    if matches!(args.colour, Colour::Data | Colour::Wait) {
        return Err(Failure::bad_input(
            "a file cannot be used with --colour data or wait, which are counters",
        )
        .hint("`--colour load` draws the load of tables; leave the file out to draw a running laboratory"));
    }
    let title = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let fabric = topology_file::load(file)?;
    let has_tables = args.tables.is_some() || args.engine.is_some() || args.colour == Colour::Load;
    if !has_tables {
        return Ok((fabric, Look { title, ..Look::default() }));
    }
    let (lids, routing) = match &args.tables {
        Some(folder) => routes::saved(folder, &fabric)?,
        None => routes::computed(&fabric, args.engine.as_deref().unwrap_or("auto"))?,
    };
    let title = format!("{title}: load by the tables of {}", routing.report.engine);
    let look = of_routing(title, &fabric, &lids, &routing);
    Ok((fabric, look))
}

fn of_routing(title: String, fabric: &Fabric, lids: &Lids, routing: &Routing) -> Look {
    let loads = loads::loads(fabric, lids, &routing.routes);
    let verdict = verify_routing(fabric, lids, routing, &Expectations::default());
    drawing::of_tables(title, fabric, &loads, loads::most(fabric, &loads), Some(&verdict))
}

fn running(folder: &LabFolder, args: &GraphArgs) -> anyhow::Result<(Fabric, Look)> {
    let lab = Lab::load_live(folder)?;
    let mut look = paints::look(&lab, args.colour, args.over)?;
    if args.colour == Colour::Load {
        load(&lab, &mut look)?;
    }
    if let [from, to] = args.route.as_slice() {
        let hops = trace::through(&lab, lab.find(from)?, lab.find(to)?)?.hops;
        let cable = |hop: &trace::Hop| {
            cable_at(&lab.fabric, PortRef::new(lab.fabric.by_guid(hop.guid)?, hop.out_port))
        };
        look.route = hops.iter().filter_map(cable).collect();
        look.title = format!("{}, route from {from} to {to}", look.title);
    }
    if let [machine, host] = args.machine.as_slice() {
        vm::draw_move(folder, machine, host, &mut look)?;
    }
    Ok((lab.fabric, look))
}

/// The load by the tables in the switches, read from the subnet manager's node.
fn load(lab: &Lab, look: &mut Look) -> anyhow::Result<()> {
    let (_session, live) = trace::look(lab, lab.node_or_seat(None)?)?;
    let lids = live.lids.as_ref().map_err(Clone::clone)?;
    let here = |port: &PortRef| {
        let node = lab.fabric.by_guid(live.fabric.node(port.node).guid)?;
        Some(PortRef::new(node, port.port))
    };
    let found = loads::loads(&live.fabric, lids, &live.routes);
    let found: Loads = found.iter().filter_map(|(port, pairs)| Some((here(port)?, *pairs))).collect();
    loads::paint(look, &lab.fabric, &found, loads::most(&lab.fabric, &found));
    let routing = Routing::on_one_lane("live", live.routes.clone());
    let verdict = verify_routing(&live.fabric, lids, &routing, &Expectations::default());
    if let Some(cycle) = verdict.cycles.first() {
        drawing::put_circle(look, &lab.fabric, cycle);
        look.words.push(
            "The circle is that of all packets on one lane; `weft check` judges the lanes in force"
                .to_owned(),
        );
    }
    Ok(())
}
