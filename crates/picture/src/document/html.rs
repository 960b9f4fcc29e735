//! A page with the picture and a table that says the same. It asks nothing of any server.

use std::fmt::Write as _;

use super::{Look, svg};
use crate::layout::Layout;
use crate::view::View;
use crate::words::escaped;

const STYLE: &str = "body{font:14px system-ui,sans-serif;margin:1rem;background:#fff;color:#222}\
svg{width:100%;max-height:80vh}table{border-collapse:collapse}td,th{padding:.15rem .8rem .15rem 0;text-align:left;white-space:pre-line}\
@media(prefers-color-scheme:dark){body{background:#161b22;color:#ddd}}";

/// The picture as a page.
pub fn html(view: &View, layout: &Layout, look: &Look) -> String {
    let title = escaped(&look.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <style>{STYLE}</style></head>\n<body>\n{}\n<details><summary>The same as a table</summary>\n\
         <table><thead><tr><th>from</th><th>to</th><th>cables</th><th>details</th></tr></thead><tbody>\n",
        svg(view, layout, look)
    );
    for bundle in &view.bundles {
        let [a, b] = bundle.ends.map(|end| escaped(&view.marks[end.index()].label));
        let notes = bundle.cables.iter().filter_map(|cable| look.notes.get(&cable.a));
        let notes = escaped(&notes.map(String::as_str).collect::<Vec<_>>().join("\n"));
        let _ = writeln!(
            out,
            "<tr><td>{a}</td><td>{b}</td><td>{}</td><td>{notes}</td></tr>",
            bundle.cables.len()
        );
    }
    out += "</tbody></table></details>\n";
    for group in &look.groups {
        let names = group.nodes.iter().map(|node| view.marks[view.mark(*node).index()].label.as_str());
        let names = escaped(&names.collect::<Vec<_>>().join(", "));
        let _ = writeln!(out, "<p>{}: {names}</p>", escaped(&group.words));
    }
    out + "</body></html>\n"
}
