//! Mermaid and DOT: texts that other programs lay out.

use std::fmt::Write as _;

use super::Look;
use crate::paint::Paint;
use crate::view::{Mark, MarkId, View};

/// The colours of groups, as in the SVG's style.
const OUTLINES: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#e69f00"];

/// A label in quotes: what would end it is replaced.
fn quoted(text: &str) -> String {
    let safe: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    safe.replace('\\', "\\\\").replace('"', "\\\"")
}

fn label(mark: &Mark) -> String {
    match mark.folded {
        0 => mark.label.clone(),
        hosts => format!("{} ({hosts} hosts)", mark.label),
    }
}

/// A Mermaid flowchart, as documents on forges show it.
pub fn mermaid(view: &View, look: &Look) -> String {
    let mut out = format!("---\ntitle: \"{}\"\n---\nflowchart BT\n", quoted(&look.title));
    for (nth, mark) in view.marks.iter().enumerate() {
        // Mermaid reads entities with `#`, and no backslashes.
        let text = label(mark)
            .replace(|letter: char| letter.is_control(), " ")
            .replace('"', "#quot;")
            .replace('<', "#lt;");
        let _ = match mark.is_switch {
            true => writeln!(out, r#"  n{nth}["{text}"]"#),
            false => writeln!(out, r#"  n{nth}(["{text}"])"#),
        };
        if let Some(group) = look.groups_of(view, MarkId(nth as u32)).next() {
            let _ =
                writeln!(out, "  style n{nth} stroke:{},stroke-width:3px", OUTLINES[group % OUTLINES.len()]);
        }
    }
    for bundle in &view.bundles {
        let [a, b] = bundle.ends.map(MarkId::index);
        let (a, b) = if view.marks[a].rank > view.marks[b].rank { (b, a) } else { (a, b) };
        let arrow = match (look.paint(bundle), look.is_on_route(bundle)) {
            _ if look.is_on_circle(bundle) => "<==>",
            (Paint::Down, _) => "-.-",
            (_, true) => "===",
            _ => "---",
        };
        let count =
            if bundle.cables.len() > 1 { format!("|{}|", bundle.cables.len()) } else { String::new() };
        let _ = writeln!(out, "  n{a} {arrow}{count} n{b}");
    }
    out
}

/// A graph for Graphviz.
pub fn dot(view: &View, look: &Look) -> String {
    let mut out = format!(
        "graph fabric {{\n  label=\"{}\"; rankdir=BT; node [fontname=\"sans-serif\"];\n",
        quoted(&look.title)
    );
    for (nth, mark) in view.marks.iter().enumerate() {
        let shape = if mark.is_switch { "box" } else { "ellipse" };
        let outlined =
            look.groups_of(view, MarkId(nth as u32)).next().map(|group| OUTLINES[group % OUTLINES.len()]);
        let outline = outlined.map(|color| format!(r#", color="{color}", penwidth=2"#)).unwrap_or_default();
        let _ = writeln!(out, r#"  n{nth} [label="{}", shape={shape}{outline}];"#, quoted(&label(mark)));
    }
    for bundle in &view.bundles {
        let [a, b] = bundle.ends.map(MarkId::index);
        let (a, b) = if view.marks[a].rank > view.marks[b].rank { (b, a) } else { (a, b) };
        let mut style = Vec::new();
        if bundle.cables.len() > 1 {
            style.push(format!(r#"label="{}""#, bundle.cables.len()));
        }
        if look.is_on_circle(bundle) {
            style.push(r##"color="#cc79a7", penwidth=5"##.to_owned());
        }
        match (look.paint(bundle), look.is_on_route(bundle)) {
            (Paint::Down, _) => style.push(r##"style=dashed, color="#d55e00""##.to_owned()),
            (_, true) => style.push(r##"color="#e69f00", penwidth=3"##.to_owned()),
            _ => {}
        }
        let style = if style.is_empty() { String::new() } else { format!(" [{}]", style.join(", ")) };
        let _ = writeln!(out, "  n{a} -- n{b}{style};");
    }
    out + "}\n"
}
