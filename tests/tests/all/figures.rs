//! Figures of docs/, rendered by resvg: no text lies over another one or outside of the picture.

use std::path::{Path, PathBuf};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Group, Node, Options, Rect, TextChunk, Tree};

/// How far boxes may reach into each other: letters have room around them.
const SLACK: f32 = 1.0;

/// The figures of a folder and those below it.
fn figures(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(figures(&path));
        } else if path.extension().is_some_and(|end| end == "svg") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A text with the box that its letters fill.
struct Text {
    words: String,
    place: Rect,
}

fn texts(group: &Group, found: &mut Vec<Text>) {
    for node in group.children() {
        match node {
            Node::Group(group) => texts(group, found),
            Node::Text(text) => found.push(Text {
                words: text.chunks().iter().map(TextChunk::text).collect(),
                place: text.abs_bounding_box(),
            }),
            _ => {}
        }
    }
}

/// Whether two boxes share more than their edges.
fn overlap(a: Rect, b: Rect) -> bool {
    let inside = |low: f32, high: f32| high - low > SLACK;
    inside(a.left().max(b.left()), a.right().min(b.right()))
        && inside(a.top().max(b.top()), a.bottom().min(b.bottom()))
}

fn options() -> Options<'static> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    fonts.set_sans_serif_family("DejaVu Sans");
    assert!(!fonts.is_empty(), "no font is installed; Debian has one in fonts-dejavu-core");
    options
}

/// What is wrong with a figure.
fn faults(text: &str, options: &Options<'_>) -> Vec<String> {
    let tree = Tree::from_str(text, options).unwrap();
    let (size, mut all, mut faults) = (tree.size(), Vec::new(), Vec::new());
    texts(tree.root(), &mut all);
    all.retain(|text| !text.words.trim().is_empty());
    if all.is_empty() {
        faults.push("it has no text".to_owned());
    }
    for (nth, Text { words, place }) in all.iter().enumerate() {
        let is_inside = place.left() >= 0.0 && place.top() >= 0.0;
        if !is_inside || place.right() > size.width() || place.bottom() > size.height() {
            faults.push(format!("`{words}` reaches out of the picture"));
        }
        let others = all[nth + 1..].iter().filter(|other| overlap(*place, other.place));
        faults.extend(others.map(|other| format!("`{words}` lies over `{}`", other.words)));
    }
    for part in ["<title>", "<desc>", "prefers-color-scheme:dark"] {
        if !text.contains(part) {
            faults.push(format!("it has no {part}"));
        }
    }
    let size = size.to_int_size();
    let mut paper = Pixmap::new(size.width(), size.height()).unwrap();
    resvg::render(&tree, Transform::identity(), &mut paper.as_mut());
    let first = paper.pixel(0, 0);
    if paper.pixels().iter().all(|pixel| Some(*pixel) == first) {
        faults.push("nothing is drawn".to_owned());
    }
    faults
}

#[test]
fn no_text_of_a_figure_lies_over_another() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let (all, options) = (figures(&docs), options());
    assert!(all.len() >= 8, "{all:?}");
    let mut wrong = Vec::new();
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        wrong.extend(faults(&text, &options).into_iter().map(|fault| format!("{name}: {fault}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faults_of_a_figure_are_found() {
    let figure = |body: &str| {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 200 100\"><title>t</title><desc>d</desc>\
             <style>text{{font:12px sans-serif}}@media(prefers-color-scheme:dark){{text{{fill:#ddd}}}}</style>{body}</svg>"
        )
    };
    let text = |x: u32, words: &str| format!("<text x=\"{x}\" y=\"50\">{words}</text>");
    let options = options();
    assert_eq!(faults(&figure(&(text(10, "one") + &text(100, "two"))), &options), Vec::<String>::new());
    assert_eq!(faults(&figure(&(text(10, "one") + &text(20, "two"))), &options), ["`one` lies over `two`"]);
    assert_eq!(faults(&figure(&text(190, "wide")), &options), ["`wide` reaches out of the picture"]);
    assert_eq!(faults(&figure(""), &options), ["it has no text", "nothing is drawn"]);
    let plain = figure(&text(10, "one")).replace("<desc>d</desc>", "");
    assert_eq!(faults(&plain, &options), ["it has no <desc>"]);
}
