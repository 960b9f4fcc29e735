//! The legend below a picture: its colours, its marks, and what was found.

use std::fmt::Write as _;

use super::Look;
use crate::paint::{Paint, STEPS};
use crate::words::{escaped, wrapped};

/// The height of a row.
const ROW: f64 = 18.0;
/// The width of a letter of the legend, and of a title, in the widest of the usual fonts.
const LETTER: f64 = 6.9;
const TITLE_LETTER: f64 = 9.4;
/// The room at both sides.
const SIDE: f64 = 16.0;
/// A step of the scale.
const STEP: f64 = 22.0;
/// Outlines that differ; further groups repeat them.
pub(super) const OUTLINES: usize = 4;

/// What stands in front of words.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sign {
    Scale,
    Line(&'static str),
    Outline(usize),
    Nothing,
}

impl Sign {
    fn width(self) -> f64 {
        match self {
            Self::Scale => STEPS as f64 * STEP + 8.0,
            Self::Line(_) | Self::Outline(_) => 28.0,
            Self::Nothing => 0.0,
        }
    }
}

/// Words with their sign, at their place.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    sign: Sign,
    words: String,
    x: f64,
    row: usize,
}

/// The rows below a picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Legend {
    items: Vec<Item>,
    rows: usize,
}

impl Legend {
    pub(super) fn new(look: &Look, width: f64) -> Self {
        let mut legend = Self::default();
        let mut x = SIDE;
        for (sign, words) in signs(look) {
            let wide = sign.width() + LETTER * words.chars().count() as f64 + 14.0;
            if x > SIDE && x + wide > width {
                (x, legend.rows) = (SIDE, legend.rows + 1);
            }
            // Words that are too long for a row go on in the next.
            let room = ((width - x - sign.width() - SIDE) / LETTER) as usize;
            for (nth, line) in wrapped(&words, room).into_iter().enumerate() {
                let row = legend.rows + nth;
                let (sign, x) = if nth == 0 { (sign, x) } else { (Sign::Nothing, x + sign.width()) };
                legend.items.push(Item { sign, words: line, x, row });
            }
            legend.rows = legend.items.last().map_or(0, |item| item.row);
            x += wide;
        }
        let mut row = if legend.items.is_empty() { 0 } else { legend.rows + 1 };
        for sentence in &look.words {
            for line in wrapped(sentence, ((width - 2.0 * SIDE) / LETTER) as usize) {
                legend.items.push(Item { sign: Sign::Nothing, words: line, x: SIDE, row });
                row += 1;
            }
        }
        legend.rows = row;
        legend
    }

    pub(super) fn height(&self) -> f64 {
        self.rows as f64 * ROW
    }

    /// Draws it below `top`.
    pub(super) fn draw(&self, out: &mut String, top: f64) {
        for Item { sign, words, x, row } in &self.items {
            let y = top + ROW * (*row as f64 + 0.7);
            draw(out, *sign, *x, y);
            let _ =
                writeln!(out, r#"<text x="{:.1}" y="{y:.1}">{}</text>"#, x + sign.width(), escaped(words));
        }
    }
}

fn signs(look: &Look) -> Vec<(Sign, String)> {
    let mut signs = Vec::new();
    if let Some(scale) = &look.scale {
        signs.push((Sign::Scale, format!("{scale}, 0 to {}", look.scale_end)));
    }
    if look.cables.values().any(|paint| *paint == Paint::Down) {
        signs.push((Sign::Line("down"), "down".to_owned()));
    }
    if !look.route.is_empty() {
        signs.push((Sign::Line("route"), look.route_words.clone().unwrap_or_else(|| "route".to_owned())));
    }
    if !look.circle.is_empty() {
        signs.push((Sign::Line("circle"), "may wait for each other in a circle".to_owned()));
    }
    let groups = look.groups.iter().enumerate().filter(|(_, group)| !group.nodes.is_empty());
    signs.extend(groups.map(|(nth, group)| (Sign::Outline(nth % OUTLINES), group.words.clone())));
    signs
}

fn draw(out: &mut String, sign: Sign, x: f64, y: f64) {
    match sign {
        Sign::Nothing => {}
        Sign::Scale => {
            for step in 0..STEPS {
                let class = Paint::Share((step as f64 + 0.5) / STEPS as f64).class();
                let (x, y) = (x + STEP * step as f64, y - 8.0);
                let _ = writeln!(
                    out,
                    r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{STEP}" height="8"/>"#
                );
            }
        }
        Sign::Line(class) => {
            let line = format!(r#"x1="{x:.1}" y1="{0:.1}" x2="{1:.1}" y2="{0:.1}""#, y - 4.0, x + 22.0);
            let _ = writeln!(out, r#"<line class="{class}" stroke-width="2.4" {line}/>"#);
        }
        Sign::Outline(nth) => {
            let (x, y) = (x + 1.0, y - 11.0);
            let _ = writeln!(
                out,
                r#"<rect class="g{nth}" x="{x:.1}" y="{y:.1}" width="20" height="13" rx="4"/>"#
            );
        }
    }
}

/// The lines of a title.
pub(super) fn title_lines(title: &str, width: f64) -> Vec<String> {
    wrapped(title, ((width - 2.0 * SIDE) / TITLE_LETTER) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_within_the_width() {
        let scale = Some("pairs of hosts in the busier direction".to_owned());
        let words = vec!["a sentence that says what was found, and where".to_owned(); 3];
        let route = Vec::new();
        let look = Look { scale, scale_end: "324 pairs".to_owned(), words, route, ..Look::default() };
        for width in [300.0, 420.0, 900.0] {
            let legend = Legend::new(&look, width);
            let ends = legend
                .items
                .iter()
                .map(|item| item.x + item.sign.width() + LETTER * item.words.chars().count() as f64);
            assert!(ends.clone().all(|end| end <= width), "{width}: {:?}", ends.collect::<Vec<_>>());
            let last = legend.items.last().unwrap();
            assert_eq!(last.row + 1, legend.rows);
        }
    }
}
