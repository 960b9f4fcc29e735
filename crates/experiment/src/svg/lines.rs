//! Lines over time, with marks for what happened.

use super::canvas::{BOTTOM, Canvas, HEIGHT, LEFT, RIGHT, TOP, height_of, plain, shortened, step};

/// The most lines that a figure shows; the rest is said in words.
const LINES_MAX: usize = 16;
/// The most marks with a text.
const MARKS_MAX: usize = 12;

/// Lines over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// What it shows.
    pub title: String,
    /// The unit of the vertical axis.
    pub unit: String,
    /// The end of time, in seconds.
    pub seconds: f64,
    /// The lines.
    pub lines: Vec<Line>,
    /// What happened.
    pub marks: Vec<Tick>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// What the legend says.
    pub name: String,
    /// Seconds and values, in order of time.
    pub points: Vec<(f64, f64)>,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tick {
    /// When, in seconds.
    pub at: f64,
    /// What.
    pub text: String,
    /// Whether it is a fault rather than an answer to one.
    pub fault: bool,
}

impl Lines {
    /// Draws them.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.title, HEIGHT);
        let values = self.lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
        let greatest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let most = if greatest > 0.0 { greatest * 1.08 } else { 1.0 };
        canvas.upright(most, &self.unit);
        let end = if self.seconds > 0.0 { self.seconds } else { 1.0 };
        let across = |seconds: f64| LEFT + (RIGHT - LEFT) * (seconds / end).clamp(0.0, 1.0);
        let each = step(end, 12);
        for n in 0..=(end / each).floor() as u32 {
            let seconds = each * f64::from(n);
            canvas.line((across(seconds), BOTTOM), (across(seconds), BOTTOM + 4.0), "axis");
            canvas.text(across(seconds), BOTTOM + 18.0, "middle", "", &plain(seconds, each));
        }
        canvas.text(RIGHT, BOTTOM + 36.0, "end", "", "seconds");
        for (nth, mark) in self.marks.iter().enumerate() {
            let (line, text) = if mark.fault { ("fault", "fault-text") } else { ("event", "event-text") };
            let x = across(mark.at);
            canvas.line((x, TOP), (x, BOTTOM), line);
            if nth < MARKS_MAX {
                let row = TOP + 12.0 + 13.0 * (nth % 6) as f64;
                let (x, anchor) = if mark.at > end * 0.6 { (x - 4.0, "end") } else { (x + 4.0, "start") };
                canvas.text(x, row, anchor, text, &shortened(&mark.text, 44));
            }
        }
        for (nth, line) in self.lines.iter().take(LINES_MAX).enumerate() {
            let drawn = line.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
            let points: Vec<(f64, f64)> = drawn.map(|(x, y)| (across(*x), height_of(*y, most))).collect();
            canvas.curve(&points, nth);
            canvas.legend(nth, nth, &line.name);
        }
        if self.lines.len() > LINES_MAX {
            let rest = self.lines.len() - LINES_MAX;
            canvas.text(676.0, BOTTOM, "start", "", &format!("and {rest} more, not drawn"));
        }
        canvas.finish()
    }
}
