//! Scalable vector graphics, with a title and a description for screen readers and colours for light and dark.

use std::fmt::Write as _;

use super::Look;
use super::legend::{Legend, OUTLINES, title_lines};
use crate::layout::{Arrangement, Layout, Place};
use crate::paint::{Paint, STYLE};
use crate::view::{Mark, MarkId, View};
use crate::words::escaped;

/// A mark's width in the picture.
const UNIT: f64 = 46.0;
/// Room above a picture with a title of one line, and for each more.
const HEAD: f64 = 40.0;
const TITLE_LINE: f64 = 20.0;
/// Room below it for labels, before the legend.
const LABELS: f64 = 78.0;
/// Labels stand at marks as long as a row has room for them.
const LABELS_MAX: usize = 60;
/// The letters of a label that fit.
const LABEL_MAX: usize = 20;
/// Room for the label of the mark on the right.
const LABEL_ROOM: f64 = 80.0;
/// Above this number of lines they are drawn lighter.
const DENSE: usize = 150;
/// The least width of a picture, for its title and legend.
const WIDTH_MIN: f64 = 420.0;

/// The picture as SVG.
pub fn svg(view: &View, layout: &Layout, look: &Look) -> String {
    let width = (layout.size.x * UNIT + LABEL_ROOM).max(WIDTH_MIN);
    let (title, legend) = (title_lines(&look.title, width), Legend::new(look, width));
    let head = HEAD + TITLE_LINE * (title.len() as f64 - 1.0);
    let below = head + layout.size.y * UNIT + LABELS;
    let height = below + legend.height() + 8.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-labelledby=\"picture-title picture-words\">\n<title id=\"picture-title\">{}</title>\n\
         <desc id=\"picture-words\">{}</desc>\n{STYLE}\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
        escaped(&look.title),
        escaped(&description(view, layout, look)),
    );
    for (nth, line) in title.iter().enumerate() {
        let y = 25.0 + TITLE_LINE * nth as f64;
        let _ = writeln!(out, r#"<text class="title" x="16" y="{y:.0}">{}</text>"#, escaped(line));
    }
    let left = (width - LABEL_ROOM / 2.0 - layout.size.x * UNIT) / 2.0;
    let at = |place: &Place| Place { x: place.x * UNIT + left, y: place.y * UNIT + head };
    let is_dense = view.bundles.len() > DENSE;
    out += if is_dense { "<g class=\"many\">\n" } else { "<g>\n" };
    lines(&mut out, view, look, &layout.places.iter().map(at).collect::<Vec<_>>());
    out += "</g>\n";
    let lowest = view.marks.iter().map(|mark| mark.rank).min().unwrap_or(0);
    for ((nth, mark), place) in (0..).zip(&view.marks).zip(&layout.places) {
        draw(&mut out, mark, at(place));
        outline(&mut out, look.groups_of(view, MarkId(nth)), at(place));
        if view.marks.len() <= LABELS_MAX {
            let is_below = mark.rank == lowest && layout.arrangement == Arrangement::Tiers;
            name(&mut out, mark, at(place), is_below || !mark.is_switch);
        }
    }
    legend.draw(&mut out, below);
    out + "</svg>\n"
}

fn description(view: &View, layout: &Layout, look: &Look) -> String {
    let switches = view.marks.iter().filter(|mark| mark.is_switch).count();
    let folded: u32 = view.marks.iter().map(|mark| mark.folded).sum();
    let hosts = view.marks.len() - switches + folded as usize;
    let cables: usize = view.bundles.iter().map(|bundle| bundle.cables.len()).sum();
    let how = match layout.arrangement {
        Arrangement::Tiers => "in tiers, hosts at the bottom",
        Arrangement::Ring => "in a ring",
        Arrangement::Grid => "in rows and columns",
        Arrangement::Springs => "by their cables",
    };
    let mut words =
        format!("{switches} switches, {hosts} hosts, {} cables, {how}.", cables + folded as usize);
    if folded > 0 {
        words += " A number at a switch is that of its hosts.";
    }
    let down = view.bundles.iter().filter(|bundle| look.paint(bundle) == Paint::Down).count();
    if down > 0 {
        words += &format!(" Lines with a cable that is down: {down}.");
    }
    for group in look.groups.iter().filter(|group| !group.nodes.is_empty()) {
        words += &format!(" {}: {}.", group.words, group.nodes.len());
    }
    for sentence in &look.words {
        words += &format!(" {}.", sentence.trim_end_matches('.'));
    }
    words
}

fn lines(out: &mut String, view: &View, look: &Look, places: &[Place]) {
    for bundle in &view.bundles {
        let [a, b] = bundle.ends.map(|end| places[end.index()]);
        let names = bundle.ends.map(|end| view.marks[end.index()].label.as_str());
        let ends = format!(r#"x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}""#, a.x, a.y, b.x, b.y);
        if look.is_on_route(bundle) {
            let _ = writeln!(out, r#"<line class="route" {ends}/>"#);
        }
        if look.is_on_circle(bundle) {
            let _ = writeln!(out, r#"<line class="circle" {ends}/>"#);
        }
        let (class, thick) =
            (look.paint(bundle).class(), 1.2 + 0.6 * (bundle.cables.len() as f64 - 1.0).min(5.0));
        let words = escaped(&look.words(bundle, names));
        let _ = writeln!(
            out,
            r#"<line class="{class}" stroke-width="{thick:.1}" {ends}><title>{words}</title></line>"#
        );
    }
}

fn draw(out: &mut String, mark: &Mark, Place { x, y }: Place) {
    let label = escaped(&mark.label);
    let hosts = if mark.folded > 0 { format!(", {} hosts", mark.folded) } else { String::new() };
    let _ = if mark.is_switch {
        writeln!(
            out,
            r#"<rect class="switch" x="{:.1}" y="{:.1}" width="26" height="16" rx="3"><title>{label}{hosts}</title></rect>"#,
            x - 13.0,
            y - 8.0
        )
    } else {
        writeln!(out, r#"<circle class="host" cx="{x:.1}" cy="{y:.1}" r="6"><title>{label}</title></circle>"#)
    };
    if mark.folded > 0 {
        let _ = writeln!(
            out,
            r#"<text class="count" text-anchor="middle" x="{x:.1}" y="{:.1}">{}</text>"#,
            y + 3.0,
            mark.folded
        );
    }
}

/// An outline for each group, each outside of the one before.
fn outline(out: &mut String, groups: impl Iterator<Item = usize>, Place { x, y }: Place) {
    for (place, group) in groups.enumerate() {
        let gap = 3.5 + 3.5 * place as f64;
        let (width, height) = (26.0 + 2.0 * gap, 16.0 + 2.0 * gap);
        let _ = writeln!(
            out,
            r#"<rect class="g{}" x="{:.1}" y="{:.1}" width="{width:.1}" height="{height:.1}" rx="6"/>"#,
            group % OUTLINES,
            x - width / 2.0,
            y - height / 2.0
        );
    }
}

/// The label, aslant, so that neighbours' labels do not meet.
fn name(out: &mut String, mark: &Mark, Place { x, y }: Place, is_below: bool) {
    let short: String = match mark.label.chars().count() > LABEL_MAX {
        true => mark.label.chars().take(LABEL_MAX - 1).chain(['…']).collect(),
        false => mark.label.clone(),
    };
    let (dx, dy, turn) = if is_below { (x - 4.0, y + 19.0, 30) } else { (x - 10.0, y - 11.0, -22) };
    let _ = writeln!(
        out,
        r#"<text class="label" x="{dx:.1}" y="{dy:.1}" transform="rotate({turn} {dx:.1} {dy:.1})">{}</text>"#,
        escaped(&short)
    );
}
