//! Shared parts of all figures: paper, axes, legend, numbers.

use std::fmt::Write as _;

use crate::words::{escaped, shortened, wrapped};

pub(super) const WIDTH: f64 = 860.0;
pub(super) const HEIGHT: f64 = 400.0;
/// Where the drawing is, within the figure.
pub(super) const LEFT: f64 = 58.0;
pub(super) const RIGHT: f64 = 660.0;
pub(super) const TOP: f64 = 44.0;
pub(super) const BOTTOM: f64 = 352.0;

/// The letters of a title that fit into a line, its lines, and their height.
const TITLE_LETTERS: usize = 94;
const TITLE_LINES: usize = 3;
const TITLE_LINE: f64 = 18.0;
/// How many markers a curve has at most.
const MARKERS_MAX: usize = 8;

/// Colours of lines and bars, by Okabe and Ito: distinct also for people who confuse red and green.
/// The first is replaced in the dark, see the style.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b8a900"];
/// How lines differ for those who see no colours.
const DASHES: [&str; 6] = ["none", "8 4", "2 3", "10 3 2 3", "5 2", "12 4 2 4 2 4"];

/// Corners of markers: square, triangle, diamond, triangle upside down, bar.
const SHAPES: [&[(f64, f64)]; 5] = [
    &[(-2.8, -2.8), (2.8, -2.8), (2.8, 2.8), (-2.8, 2.8)],
    &[(0.0, -3.8), (3.6, 2.8), (-3.6, 2.8)],
    &[(0.0, -4.0), (4.0, 0.0), (0.0, 4.0), (-4.0, 0.0)],
    &[(0.0, 3.8), (3.6, -2.8), (-3.6, -2.8)],
    &[(-1.4, -4.0), (1.4, -4.0), (1.4, 4.0), (-1.4, 4.0)],
];

const STYLE: &str = "<style>\
text{font:12px system-ui,sans-serif;fill:#222}\
.title{font-size:14px;font-weight:600}\
.paper{fill:#fff}.axis{stroke:#222;fill:none}.grid{stroke:#ddd;fill:none}\
.fault{stroke:#b00020}.event{stroke:#6a3d9a;stroke-dasharray:4 3}\
.fault-number{fill:#b00020}.event-number{fill:#6a3d9a}.number{fill:#fff;font-size:10px;font-weight:600}\
@media(prefers-color-scheme:dark){\
text{fill:#ddd}.paper{fill:#161b22}.axis{stroke:#ddd}.grid{stroke:#333}\
.fault{stroke:#ff7b7b}.event{stroke:#c9a6ff}.fault-number{fill:#ff7b7b}.event-number{fill:#c9a6ff}.number{fill:#161b22}}\
</style>";

/// A figure being drawn.
pub(super) struct Canvas {
    body: String,
    height: f64,
    /// Room above for the further lines of a title.
    above: f64,
    title: String,
    /// What screen readers say of it: the unit, and the legend.
    unit: String,
    names: Vec<String>,
}

impl Canvas {
    pub(super) fn new(title: &str, height: f64) -> Self {
        let mut lines = wrapped(title, TITLE_LETTERS);
        let rest: Vec<String> = lines.drain(lines.len().min(TITLE_LINES)..).collect();
        if let Some(last) = lines.last_mut().filter(|_| !rest.is_empty()) {
            *last = shortened(&format!("{last} {}", rest.join(" ")), TITLE_LETTERS);
        }
        let above = TITLE_LINE * (lines.len() as f64 - 1.0);
        let mut canvas = Self {
            body: String::new(),
            height,
            above,
            title: title.to_owned(),
            unit: String::new(),
            names: Vec::new(),
        };
        for (nth, line) in lines.iter().enumerate() {
            canvas.text(LEFT, 22.0 - above + TITLE_LINE * nth as f64, "start", "title", line);
        }
        canvas
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="{class}">{text}</text>"#
        );
    }

    pub(super) fn line(&mut self, from: Point, to: Point, class: &str) {
        let (Point { x: x1, y: y1 }, Point { x: x2, y: y2 }) = (from, to);
        let _ = writeln!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" class="{class}"/>"#
        );
    }

    /// A line in a colour and with dashes, by their numbers.
    pub(super) fn curve(&mut self, points: &[(f64, f64)], look: Look) {
        let mut path = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
        }
        let (colour, dash) = (look.colour(), look.dash());
        let _ = writeln!(
            self.body,
            r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"/>"#
        );
        // Lines that run together have their markers at different points.
        let each = points.len().div_ceil(MARKERS_MAX).max(1);
        for point in points.iter().skip(look.dashes % each).step_by(each) {
            self.marker(at(point.0, point.1), look);
        }
    }

    /// A point's shape, which differs with the dashes.
    fn marker(&mut self, Point { x, y }: Point, look: Look) {
        let colour = look.colour();
        let _ = match look.dashes % DASHES.len() {
            0 => writeln!(self.body, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"/>"#),
            shape => {
                let corners = SHAPES[shape - 1].iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy));
                let corners = corners.collect::<Vec<_>>().join(" ");
                writeln!(self.body, r#"<polygon points="{corners}" fill="{colour}"/>"#)
            }
        };
    }

    /// An area in the colour of the nth line, through which others can be seen.
    pub(super) fn band(&mut self, corners: &[(f64, f64)], nth: usize) {
        let corners: Vec<String> = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let colour = Look::nth(nth).colour();
        let _ = writeln!(
            self.body,
            r#"<polygon points="{}" fill="{colour}" fill-opacity="0.18"/>"#,
            corners.join(" ")
        );
    }

    /// A bar with what it stands for, which a viewer shows when it is pointed at.
    pub(super) fn bar(&mut self, x: f64, width: f64, top: f64, nth: usize, says: &str) {
        let colour = Look::nth(nth).colour();
        let (height, says) = ((BOTTOM - top).max(0.0), escaped(says));
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"><title>{says}</title></rect>"#
        );
    }

    /// A number in a disc, explained by a text outside. The class is that of its line.
    pub(super) fn number(&mut self, Point { x, y }: Point, number: usize, class: &str) {
        let _ = writeln!(self.body, r#"<circle cx="{x:.1}" cy="{y:.1}" r="8.5" class="{class}-number"/>"#);
        self.text(x, y + 3.5, "middle", "number", &number.to_string());
    }

    /// Points without a line.
    pub(super) fn dots(&mut self, points: &[(f64, f64)], colour: usize) {
        let colour = Look::nth(colour).colour();
        for (x, y) in points {
            let _ = writeln!(self.body, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.2" fill="{colour}"/>"#);
        }
    }

    /// The legend of points, at the nth place.
    pub(super) fn legend_dot(&mut self, nth: usize, colour: usize, name: &str) {
        let y = TOP + 8.0 + 18.0 * nth as f64;
        self.names.push(name.to_owned());
        self.dots(&[(690.0, y)], colour);
        self.text(714.0, y + 4.0, "start", "", &shortened(name, 23));
    }

    /// The legend of a line, at the nth place.
    pub(super) fn legend_line(&mut self, nth: usize, look: Look, name: &str) {
        let y = TOP + 8.0 + 18.0 * nth as f64;
        let (colour, dash) = (look.colour(), look.dash());
        let _ = writeln!(
            self.body,
            r#"<line x1="672" y1="{y:.1}" x2="708" y2="{y:.1}" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"/>"#
        );
        self.marker(at(690.0, y), look);
        self.names.push(name.to_owned());
        self.text(714.0, y + 4.0, "start", "", &shortened(name, 23));
    }

    /// The legend of the nth bars.
    pub(super) fn legend_bar(&mut self, nth: usize, name: &str) {
        let (y, colour) = (TOP + 2.0 + 18.0 * nth as f64, Look::nth(nth).colour());
        let _ = writeln!(self.body, r#"<rect x="676" y="{y:.1}" width="24" height="12" fill="{colour}"/>"#);
        self.names.push(name.to_owned());
        self.text(706.0, y + 10.0, "start", "", &shortened(name, 22));
    }

    /// The vertical axis from 0 to `most`, and its name.
    pub(super) fn upright(&mut self, most: f64, name: &str) {
        let step = step(most, 6);
        for n in 0..=(most / step).floor() as u32 {
            let value = step * f64::from(n);
            let y = height_of(value, most);
            self.line(at(LEFT, y), at(RIGHT, y), "grid");
            self.text(LEFT - 8.0, y + 4.0, "end", "", &plain(value, step));
        }
        self.line(at(LEFT, TOP), at(LEFT, BOTTOM), "axis");
        self.line(at(LEFT, BOTTOM), at(RIGHT, BOTTOM), "axis");
        // A long name begins at the edge rather than beyond it.
        let (x, anchor) = if name.chars().count() > 14 { (8.0, "start") } else { (LEFT, "middle") };
        self.text(x, TOP - 6.0, anchor, "", name);
        name.clone_into(&mut self.unit);
    }

    pub(super) fn finish(self) -> String {
        let Self { body, above, title, unit, names, .. } = self;
        let (top, height) = (0.0 - above, self.height + above);
        let (title, words) = (escaped(&title), escaped(&format!("{unit}: {}", names.join(", "))));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {top} {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
             <title>{title}</title>\n<desc>{words}</desc>\n{STYLE}\n\
             <rect class=\"paper\" y=\"{top}\" width=\"{WIDTH}\" height=\"{height}\"/>\n{body}</svg>\n"
        )
    }
}

/// A place on the paper, from its upper left corner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    x: f64,
    y: f64,
}

/// The point at these coordinates.
pub(super) const fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

/// A line's colour and dashes, each by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Lines of one colour belong together.
    pub colour: usize,
    /// How lines of one colour differ.
    pub dashes: usize,
}

impl Look {
    /// The look of the nth of many lines that differ in all.
    pub const fn nth(nth: usize) -> Self {
        Self { colour: nth, dashes: nth }
    }

    const fn colour(self) -> &'static str {
        COLOURS[self.colour % COLOURS.len()]
    }

    const fn dash(self) -> &'static str {
        DASHES[self.dashes % DASHES.len()]
    }
}

/// Where a value stands on the vertical axis.
pub(super) fn height_of(value: f64, most: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * (value / most).clamp(0.0, 1.0)
}

/// A round step that divides a range into at most `parts` parts.
pub(super) fn step(range: f64, parts: u32) -> f64 {
    let rough = (range / f64::from(parts)).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough)
}

/// A number with the digits that its step needs.
pub(super) fn plain(value: f64, step: f64) -> String {
    let digits = if step >= 1.0 && step.fract() == 0.0 {
        0
    } else {
        (1.0 - step.log10().floor()).clamp(1.0, 9.0) as usize
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
