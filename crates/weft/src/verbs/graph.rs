//! `weft graph`: a picture of a fabric, running or from a file.

use weft_bundle::failure::Failure;
use weft_bundle::folder::{LabFolder, write_shared};
use weft_bundle::topology_file;
use weft_lab::view::Lab;
use weft_lab::{paints, trace};
use weft_picture::layout::layout;
use weft_picture::{Look, View, dot, html, mermaid, svg};
use weft_topology::{Cable, Fabric, PortRef};

use crate::cli::graph::{GraphArgs, GraphFormat};
use crate::output::{print, say};

/// Above this number of nodes hosts are folded.
const FOLD_ABOVE: usize = 64;

/// `lab`: the running laboratory, where no file is named.
pub(super) fn run(lab: impl Fn() -> anyhow::Result<LabFolder>, args: &GraphArgs) -> anyhow::Result<()> {
    let format = args.format().ok_or_else(|| {
        Failure::bad_input("the file's name does not say which format to write")
            .hint("end it in .svg, .html, .mmd or .dot, or use --format")
    })?;
    let (fabric, look) = match &args.file {
        Some(file) => {
            let title = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            (topology_file::load(file)?, Look { title, ..Look::default() })
        }
        None => running(&lab()?, args)?,
    };
    let is_folded = args.fold || (!args.unfold && fabric.nodes().len() > FOLD_ABOVE);
    let view = View::new(&fabric, is_folded);
    if view.marks.is_empty() {
        return Err(Failure::bad_input("there is no node to draw").into());
    }
    let text = match format {
        GraphFormat::Svg => svg(&view, &layout(&view), &look),
        GraphFormat::Html => html(&view, &layout(&view), &look),
        GraphFormat::Mermaid => mermaid(&view, &look),
        GraphFormat::Dot => dot(&view, &look),
    };
    let Some(path) = &args.output else { return print(&text) };
    write_shared(path, text.as_bytes())?;
    let folded: u32 = view.marks.iter().map(|mark| mark.folded).sum();
    let hosts = if folded > 0 { format!(", {folded} hosts folded into switches") } else { String::new() };
    say(&format!("wrote {}: {} nodes{hosts}", path.display(), view.marks.len()));
    Ok(())
}

fn running(folder: &LabFolder, args: &GraphArgs) -> anyhow::Result<(Fabric, Look)> {
    let lab = Lab::load_live(folder)?;
    let mut look = paints::look(&lab, args.colour, args.over)?;
    if let [from, to] = args.route.as_slice() {
        let hops = trace::through(&lab, lab.find(from)?, lab.find(to)?)?.hops;
        let cable = |hop: &trace::Hop| {
            let out = PortRef::new(lab.fabric.by_guid(hop.guid)?, hop.out_port);
            lab.fabric.cables().find(|cable: &Cable| cable.a == out || cable.b == out)
        };
        look.route = hops.iter().filter_map(cable).collect();
        look.title = format!("{}, route from {from} to {to}", look.title);
    }
    Ok((lab.fabric, look))
}
