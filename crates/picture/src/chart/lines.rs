//! Lines over time, with marks for what happened; or over another quantity.

use super::canvas::{BOTTOM, Canvas, HEIGHT, LEFT, Look, RIGHT, TOP, WIDTH, at, height_of, plain, step};
use crate::words::shortened;

/// The most lines that a figure shows; the rest is said in words.
const LINES_MAX: usize = 16;
/// The most numbers of events; the rest is said in words.
const NUMBERS_MAX: usize = 24;
/// How far apart on paper two numbers must be not to lie over each other.
const NUMBER_WIDTH: f64 = 19.0;
/// Where numbers stand below the axis, and where their legend begins.
const NUMBERS: f64 = BOTTOM + 36.0;
const LEGEND: f64 = BOTTOM + 68.0;
/// The height of a row of the legend, and the letters that fit into one.
const ROW: f64 = 17.0;
const LETTERS_MAX: usize = 122;

/// Lines over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// What it shows.
    pub title: String,
    /// The unit of the vertical axis.
    pub unit: String,
    /// The end of the horizontal axis.
    pub seconds: f64,
    /// The quantity of the horizontal axis; time in seconds where this is empty.
    pub across: String,
    /// The lines.
    pub lines: Vec<Line>,
    /// What happened, in order of time.
    pub marks: Vec<Tick>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// What the legend says.
    pub name: String,
    /// Seconds and values, in order of time.
    pub points: Vec<(f64, f64)>,
    /// Its look, where lines belong together; else that of its place.
    pub look: Option<Look>,
    /// Whether its points are drawn one by one, without a line between.
    pub is_scatter: bool,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tick {
    /// When, in seconds.
    pub at: f64,
    /// What, or `what: to whom`. Ticks of one time and one `what` share a label.
    pub text: String,
    /// Whether it is a fault rather than an answer to one.
    pub fault: bool,
}

/// Ticks that one number stands for.
struct Event<'a> {
    ticks: Vec<&'a Tick>,
    x: f64,
}

impl Lines {
    /// Draws them.
    pub fn svg(&self) -> String {
        let end = if self.seconds > 0.0 { self.seconds } else { 1.0 };
        let across = |seconds: f64| LEFT + (RIGHT - LEFT) * (seconds / end).clamp(0.0, 1.0);
        let events = events(&self.marks, across);
        let shown = events.len().min(NUMBERS_MAX);
        let rows = shown + usize::from(shown < events.len());
        let height = if rows == 0 { HEIGHT } else { LEGEND + ROW * rows as f64 };
        let mut canvas = Canvas::new(&self.title, height);
        let values = self.lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
        let greatest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let most = if greatest > 0.0 { greatest * 1.08 } else { 1.0 };
        canvas.upright(most, &self.unit);
        let each = step(end, 12);
        for n in 0..=(end / each).floor() as u32 {
            let seconds = each * f64::from(n);
            canvas.line(at(across(seconds), BOTTOM), at(across(seconds), BOTTOM + 4.0), "axis");
            canvas.text(across(seconds), BOTTOM + 18.0, "middle", "", &plain(seconds, each));
        }
        if self.across.is_empty() {
            canvas.text(RIGHT + 16.0, BOTTOM + 18.0, "start", "", "seconds");
        } else {
            canvas.text(f64::midpoint(LEFT, RIGHT), BOTTOM + 38.0, "middle", "", &self.across);
        }
        // Below the curves, which stay whole.
        for (nth, event) in events.iter().take(NUMBERS_MAX).enumerate() {
            let class = if event.is_fault() { "fault" } else { "event" };
            // Not through the axis' labels.
            canvas.line(at(event.x, TOP), at(event.x, BOTTOM + 5.0), class);
            canvas.line(at(event.x, BOTTOM + 22.0), at(event.x, NUMBERS - 9.0), class);
            canvas.number(at(event.x, NUMBERS), nth + 1, class);
            let y = LEGEND + ROW * nth as f64;
            canvas.number(at(LEFT, y - 4.0), nth + 1, class);
            canvas.text(LEFT + 16.0, y, "start", "", &shortened(&event.text(), LETTERS_MAX));
        }
        if shown < events.len() {
            let text = format!("and at {} more times, not drawn", events.len() - shown);
            canvas.text(LEFT + 16.0, LEGEND + ROW * shown as f64, "start", "", &text);
        }
        for (nth, line) in self.lines.iter().take(LINES_MAX).enumerate() {
            let drawn = line.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
            let points: Vec<(f64, f64)> = drawn.map(|(x, y)| (across(*x), height_of(*y, most))).collect();
            let look = line.look.unwrap_or(Look::nth(nth));
            if line.is_scatter {
                canvas.dots(&points, look.colour);
                canvas.legend_dot(nth, look.colour, &line.name);
            } else {
                canvas.curve(&points, look);
                canvas.legend_line(nth, look, &line.name);
            }
        }
        if self.lines.len() > LINES_MAX {
            let rest = self.lines.len() - LINES_MAX;
            canvas.text(WIDTH - 184.0, BOTTOM, "start", "", &format!("and {rest} more, not drawn"));
        }
        canvas.finish()
    }
}

/// One number for all that happened at a time, and for what would lie over it.
fn events(marks: &[Tick], across: impl Fn(f64) -> f64) -> Vec<Event<'_>> {
    let mut events: Vec<Event<'_>> = Vec::new();
    for mark in marks {
        let x = across(mark.at);
        match events.last_mut().filter(|event| x - event.x < NUMBER_WIDTH) {
            Some(event) => event.ticks.push(mark),
            None => events.push(Event { ticks: vec![mark], x }),
        }
    }
    events
}

impl Event<'_> {
    fn is_fault(&self) -> bool {
        self.ticks.iter().any(|tick| tick.fault)
    }

    /// When and what: `14.2 s: hot spot: host-5; slow lane to host-5: host-0, host-2`.
    fn text(&self) -> String {
        let time = |at: f64| format!("{at:.1}");
        let mut text = String::new();
        let (mut last_time, mut last_what) = (String::new(), "");
        for tick in &self.ticks {
            let (what, whom) = tick.text.split_once(": ").unwrap_or((&tick.text, ""));
            let at = time(tick.at);
            if at != last_time {
                text += if text.is_empty() { "" } else { "; " };
                text += &format!("{at} s: {}", tick.text);
            } else if what == last_what && !whom.is_empty() {
                text += &format!(", {whom}");
            } else {
                text += &format!("; {}", tick.text);
            }
            (last_time, last_what) = (at, what);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(at: f64, text: &str) -> Tick {
        Tick { at, text: text.to_owned(), fault: false }
    }

    #[test]
    fn simultaneous_events_share_one_label() {
        let marks = [
            tick(14.2, "hot spot: host-5"),
            tick(14.2, "slow lane to host-5: host-0"),
            tick(14.2, "slow lane to host-5: host-2"),
            tick(14.6, "the subnet manager has swept"),
            tick(40.0, "hot spot no more: host-5"),
        ];
        let found = events(&marks, |at| at * 12.0);
        let texts: Vec<String> = found.iter().map(Event::text).collect();
        assert_eq!(
            texts,
            [
                "14.2 s: hot spot: host-5; slow lane to host-5: host-0, host-2; 14.6 s: the subnet manager has swept",
                "40.0 s: hot spot no more: host-5",
            ]
        );
    }

    /// No text lies over another one or over the drawing, however many events there are and however close.
    #[test]
    fn numbers_and_legend_lie_apart() {
        for gap in [0.01, 0.3, 1.0, 5.0] {
            let marks: Vec<Tick> = (0..60).map(|n| tick(f64::from(n) * gap, "slow lane: a")).collect();
            let across = |seconds: f64| LEFT + (RIGHT - LEFT) * (seconds / (60.0 * gap)).clamp(0.0, 1.0);
            let found = events(&marks, across);
            assert!(found.windows(2).all(|pair| pair[1].x - pair[0].x >= NUMBER_WIDTH), "{gap}");
            assert_eq!(found.iter().map(|event| event.ticks.len()).sum::<usize>(), 60);
            let figure = Lines { seconds: 60.0 * gap, marks: marks.clone(), ..Lines::default() }.svg();
            let mut rows: Vec<&str> =
                figure.lines().filter(|line| line.contains(" s: ") && line.contains("<text")).collect();
            let count = rows.len();
            rows.dedup_by_key(|row| row.split(" y=").nth(1).and_then(|rest| rest.split('"').nth(1)));
            assert_eq!((rows.len(), count), (count, found.len().min(NUMBERS_MAX)), "{gap}");
        }
    }

    #[test]
    fn every_line_differs_from_every_other_without_colours_too() {
        let line = |name: &str| Line {
            name: name.to_owned(),
            points: vec![(0.0, 1.0), (1.0, 2.0)],
            ..Line::default()
        };
        let figure =
            Lines { seconds: 1.0, lines: vec![line("a"), line("b"), line("c")], ..Lines::default() }.svg();
        let mut dashes: Vec<&str> = figure
            .lines()
            .filter(|line| line.starts_with("<path"))
            .filter_map(|line| line.split("stroke-dasharray=\"").nth(1)?.split('"').next())
            .collect();
        dashes.sort_unstable();
        dashes.dedup();
        assert_eq!(dashes.len(), 3, "{figure}");
    }
}
