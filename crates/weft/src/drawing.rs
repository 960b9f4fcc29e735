//! Pictures that verbs write of what they find (`--picture FILE`).

use std::path::Path;

use weft_bundle::failure::Failure;
use weft_bundle::folder::write_shared;
use weft_lab::loads::{self, Loads};
use weft_picture::layout::layout;
use weft_picture::{Group, Look, View, cable_at, dot, html, mermaid, svg};
use weft_routing::{Cycle, Path as Way, Verdict};
use weft_topology::{Cable, Fabric, NodeIndex, PortRef};
use weft_wire::{PortNum, count_of};

use crate::cli::graph::GraphFormat;
use crate::output::say;

/// Above this number of nodes hosts are folded.
const FOLD_ABOVE: usize = 64;
/// Sentences below a picture; the verb itself prints all.
const WORDS_MAX: usize = 4;
/// Letters of such a sentence.
const WORDS_CHARS: usize = 240;

/// The text of a picture. `fold`: whether hosts are folded into their switches, where that is said.
pub(crate) fn text(
    fabric: &Fabric,
    look: &Look,
    format: GraphFormat,
    fold: Option<bool>,
) -> anyhow::Result<(String, View)> {
    let view = View::new(fabric, fold.unwrap_or(fabric.nodes().len() > FOLD_ABOVE));
    if view.marks.is_empty() {
        return Err(Failure::bad_input("there is no node to draw").into());
    }
    let text = match format {
        GraphFormat::Svg => svg(&view, &layout(&view), look),
        GraphFormat::Html => html(&view, &layout(&view), look),
        GraphFormat::Mermaid => mermaid(&view, look),
        GraphFormat::Dot => dot(&view, look),
    };
    Ok((text, view))
}

/// The format that a file's name has.
pub(crate) fn format_of(path: &Path) -> anyhow::Result<GraphFormat> {
    GraphFormat::of(path).ok_or_else(|| {
        Failure::bad_input("the file's name does not say which format to write")
            .hint("end it in .svg, .html, .mmd or .dot")
    })
}

/// Writes a picture in the format that the file's name has.
pub(crate) fn write(path: &Path, fabric: &Fabric, look: &Look) -> anyhow::Result<()> {
    let (text, view) = text(fabric, look, format_of(path)?, None)?;
    wrote(path, &text, &view)
}

/// Writes the text of a picture, and says so.
pub(crate) fn wrote(path: &Path, text: &str, view: &View) -> anyhow::Result<()> {
    write_shared(path, text.as_bytes())?;
    let folded: u32 = view.marks.iter().map(|mark| mark.folded).sum();
    let hosts = if folded > 0 { format!(", {folded} hosts folded into switches") } else { String::new() };
    say(&format!("wrote {}: {} nodes{hosts}", path.display(), view.marks.len()));
    Ok(())
}

/// Some sentences, as a picture has room for.
pub(crate) fn sentences<'a>(all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let short = |text: &str| match text.chars().count() > WORDS_CHARS {
        true => text.chars().take(WORDS_CHARS - 1).chain(['…']).collect(),
        false => text.to_owned(),
    };
    all.take(WORDS_MAX).map(short).collect()
}

/// A picture of tables: cables by load up to `end` pairs, and what the verifier found.
pub(crate) fn of_tables(
    title: String,
    fabric: &Fabric,
    loads: &Loads,
    end: u64,
    verdict: Option<&Verdict>,
) -> Look {
    let mut look = Look { title, ..Look::default() };
    loads::paint(&mut look, fabric, loads, end);
    let Some(verdict) = verdict else { return look };
    if let Some(lost) = verdict.reach.counter_examples.first() {
        look.route = cables_of(fabric, &lost.path);
        look.route_words = Some("the way of a packet that does not arrive".to_owned());
        look.words = sentences([lost.to_string().as_str()].into_iter());
    }
    if let Some(cycle) = verdict.cycles.first() {
        put_circle(&mut look, fabric, cycle);
    }
    look
}

/// Marks a circle of channels.
pub(crate) fn put_circle(look: &mut Look, fabric: &Fabric, cycle: &Cycle) {
    let port = |id: &str, port: PortNum| Some(PortRef::new(fabric.by_id(id)?, port));
    let cables =
        cycle.channels.iter().filter_map(|channel| cable_at(fabric, port(&channel.from, channel.exit)?));
    look.circle = cables.collect();
    let name = |id: &str| fabric.by_id(id).map_or_else(|| id.to_owned(), |node| fabric.label(node));
    let names: Vec<String> = cycle.channels.iter().map(|channel| name(&channel.from)).collect();
    let lane = cycle.channels.first().map_or(0, |channel| channel.lane);
    let count = count_of(cycle.channels.len(), "channel");
    let circle = format!("deadlock is possible: {count} of lane {lane} in a circle, {}", names.join(" → "));
    look.words.extend(sentences([circle.as_str()].into_iter()));
}

/// The cables of a path.
fn cables_of(fabric: &Fabric, way: &Way) -> Vec<Cable> {
    let ports = way.hops.iter().map(|hop| PortRef::new(hop.node, hop.exit));
    ports.filter_map(|port| cable_at(fabric, port)).collect()
}

/// Marks the nodes that sentences name, and the first path among them.
pub(crate) fn put_problems(look: &mut Look, fabric: &Fabric, problems: &[String]) {
    let mut nodes: Vec<NodeIndex> = Vec::new();
    for problem in problems {
        // Names stand between backticks.
        let names = problem.split('`').skip(1).step_by(2);
        nodes.extend(names.filter_map(|name| fabric.find(name).ok().or_else(|| fabric.by_id(name))));
        let way = path_in(fabric, problem);
        if look.route.is_empty() && !way.is_empty() {
            look.route = way;
            look.route_words = Some("the way of a packet that does not arrive".to_owned());
        }
    }
    nodes.sort();
    nodes.dedup();
    look.groups.push(Group { words: "named in a problem".to_owned(), nodes });
    look.words.extend(sentences(problems.iter().map(String::as_str)));
}

/// The cables of a path that a sentence ends with: `H-a[1] -> [4]S-b[7] -> [1]H-c`.
fn path_in(fabric: &Fabric, text: &str) -> Vec<Cable> {
    let hops = text.split(" -> ").filter_map(|hop| {
        let hop = hop.split_whitespace().last()?;
        let hop = hop.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(hop, |(_, rest)| rest);
        let (id, exit) = hop.split_once('[')?;
        let exit: u8 = exit.split_once(']')?.0.parse().ok()?;
        Some(PortRef::new(fabric.by_id(id)?, PortNum(exit)))
    });
    hops.filter_map(|port| cable_at(fabric, port)).collect()
}

#[cfg(test)]
mod tests {
    use weft_topology::generate::{GenerateOptions, ring};

    use super::*;

    #[test]
    fn a_sentence_gives_its_path_and_its_nodes() {
        let fabric = ring(4, 1, &GenerateOptions::default()).unwrap();
        let (index, switch) = fabric.switches().next().unwrap();
        let (port, peer) = switch.cabled_ports().next().unwrap();
        let far = &fabric.node(peer.node).id;
        let text =
            format!("tables: from x to LID 3: lost: {}[{port}] -> [{}]{far}[no route]", switch.id, peer.port);
        let cable = cable_at(&fabric, PortRef::new(index, port)).unwrap();
        assert_eq!(path_in(&fabric, &text), [cable]);
        assert_eq!(path_in(&fabric, "the table of `x` lacks 3 LIDs"), []);
        let mut look = Look::default();
        put_problems(&mut look, &fabric, &[text, format!("`{}` is silent", fabric.label(index))]);
        assert_eq!((look.route, look.groups[0].nodes.clone()), (vec![cable], vec![index]));
        assert_eq!(look.words.len(), 2);
    }
}
