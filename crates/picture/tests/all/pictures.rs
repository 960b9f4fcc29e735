//! Views, layouts and documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weft_picture::layout::{Arrangement, layout};
use weft_picture::{Look, MarkId, Paint, View, dot, html, mermaid, svg};
use weft_topology::{Fabric, parse};

fn file(name: &str) -> Fabric {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topologies").join(name);
    parse(name, &std::fs::read_to_string(path).unwrap()).unwrap()
}

/// No two marks are nearer than the least distance of a layout.
fn nothing_overlaps(fabric: &Fabric, fold: bool, least: f64) -> Arrangement {
    let view = View::new(fabric, fold);
    let layout = layout(&view);
    assert_eq!(layout.places.len(), view.marks.len());
    for (a, one) in layout.places.iter().enumerate() {
        assert!((0.5..=layout.size.x).contains(&one.x) && (0.5..=layout.size.y).contains(&one.y));
        for (b, other) in layout.places.iter().enumerate().skip(a + 1) {
            let apart = (one.x - other.x).hypot(one.y - other.y);
            assert!(apart >= least, "{} and {} are {apart} apart", view.marks[a].label, view.marks[b].label);
        }
    }
    layout.arrangement
}

#[test]
fn every_fabric_has_the_arrangement_of_its_cabling() {
    for (name, wanted) in [
        ("ring-4.topo", Arrangement::Ring),
        ("lash-mesh.topo", Arrangement::Grid),
        ("fattree-324.topo", Arrangement::Tiers),
        ("psmn-x5.topo", Arrangement::Tiers),
        ("dftree-1.topo", Arrangement::Tiers),
    ] {
        for fold in [false, true] {
            assert_eq!(nothing_overlaps(&file(name), fold, 0.3), wanted, "{name}");
        }
    }
}

#[test]
fn folded_hosts_are_counted_at_their_switch() {
    let fabric = file("psmn-x5.topo");
    let whole = View::new(&fabric, false);
    let cables = |view: &View| view.bundles.iter().map(|bundle| bundle.cables.len()).sum::<usize>();
    assert_eq!((whole.marks.len(), cables(&whole)), (fabric.nodes().len(), fabric.cables().count()));
    let folded = View::new(&fabric, true);
    let hosts: u32 = folded.marks.iter().map(|mark| mark.folded).sum();
    let counts = fabric.counts();
    assert_eq!(hosts as usize + folded.marks.len(), fabric.nodes().len());
    assert_eq!(cables(&folded) + hosts as usize, fabric.cables().count());
    assert!(folded.marks.iter().all(|mark| mark.is_switch), "{counts:?}");
    // A folded host is shown by its switch.
    for (index, node) in fabric.iter().filter(|(_, node)| !node.is_switch()) {
        let (_, peer) = node.cabled_ports().next().unwrap();
        assert_eq!(folded.mark(index), folded.mark(peer.node));
    }
}

#[test]
fn tiers_have_hosts_at_the_bottom_and_roots_at_the_top() {
    let fabric = file("fattree-324.topo");
    let view = View::new(&fabric, false);
    let layout = layout(&view);
    let rows: BTreeMap<u32, BTreeSet<u64>> = view.marks.iter().zip(&layout.places).fold(
        BTreeMap::new(),
        |mut rows: BTreeMap<u32, BTreeSet<u64>>, (mark, place)| {
            rows.entry(mark.rank).or_default().insert((place.y * 1e6) as u64);
            rows
        },
    );
    assert_eq!(rows.len(), 3);
    let heights: Vec<u64> = rows.values().map(|row| *row.iter().next().unwrap()).collect();
    assert!(rows.values().all(|row| row.len() == 1), "a row has one height");
    assert!(heights.is_sorted_by(|lower, upper| lower > upper), "{heights:?}");
    assert_eq!(
        view.neighbours(MarkId(0)).len(),
        view.neighbours(MarkId(0)).iter().collect::<BTreeSet<_>>().len()
    );
}

#[test]
fn the_same_fabric_gives_the_same_picture() {
    for name in ["psmn-x5.topo", "lash-mesh.topo", "dftree-3.topo"] {
        let draw = || {
            let view = View::new(&file(name), false);
            svg(&view, &layout(&view), &Look::default())
        };
        assert_eq!(draw(), draw(), "{name}");
    }
}

#[test]
fn names_are_text_and_never_markup() {
    let text = include_str!("../../../../topologies/ring-4.topo").replace("# \"S1\"", "# \"<b>S1</b>&\"");
    let fabric = parse("ring-4.topo", &text).unwrap();
    let view = View::new(&fabric, false);
    let look = Look { title: "<script>alert(1)</script> & \"x\"\u{7}".into(), ..Look::default() };
    let layout = layout(&view);
    for document in [svg(&view, &layout, &look), html(&view, &layout, &look)] {
        assert!(!document.contains("<script") && document.contains("&lt;script&gt;"), "{document}");
        assert!(!document.contains("<b>") && document.contains("&lt;b&gt;S1&lt;/b&gt;&amp;"), "{document}");
        assert!(!document.contains('\u{7}'));
    }
    let diagram = mermaid(&view, &look);
    assert!(
        diagram.starts_with("---\ntitle: \"<script>alert(1)</script> & \\\"x\\\" \"\n---\nflowchart BT\n"),
        "{diagram}"
    );
    assert!(dot(&view, &look).contains("label=\"<script>alert(1)</script> & \\\"x\\\" \""));
}

#[test]
fn paints_and_routes_are_drawn_at_their_cables() {
    let fabric = file("fattree-324.topo");
    let view = View::new(&fabric, true);
    let between: Vec<_> = view.bundles.iter().flat_map(|bundle| bundle.cables.iter().copied()).collect();
    let mut look = Look { scale: Some("data".into()), scale_end: "2 MB/s".into(), ..Look::default() };
    look.cables.insert(between[0].a, Paint::Down);
    look.cables.insert(between[1].a, Paint::Share(1.0));
    look.notes.insert(between[1].a, "2.000 MB/s".into());
    look.route = vec![between[2]];
    let drawn = svg(&view, &layout(&view), &look);
    let count = |what: &str| drawn.matches(what).count();
    // One at the cable, one in the legend.
    assert_eq!((count("<line class=\"down\""), count("<line class=\"route\"")), (2, 2));
    assert_eq!((count("class=\"s4\""), count("2.000 MB/s"), count("data, 0 to 2 MB/s")), (2, 1, 1));
    assert_eq!(Paint::Share(0.2).more(Paint::Down), Paint::Down);
    assert_eq!(Paint::Plain.more(Paint::Share(0.2)).more(Paint::Share(0.7)), Paint::Share(0.7));
}
