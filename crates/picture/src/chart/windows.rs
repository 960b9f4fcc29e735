//! Gains over the length of the window in which they are measured, with the interval in which the mean lies.

use super::canvas::{BOTTOM, Canvas, HEIGHT, LEFT, Look, RIGHT, at, height_of, plain, step};

/// Gains over the length of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows {
    /// What it shows.
    pub title: String,
    /// The unit of the horizontal axis.
    pub across: String,
    /// The lines.
    pub lines: Vec<WindowLine>,
    /// What the paper prints, in percent, and how the legend calls it.
    pub paper: Option<(f64, String)>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowLine {
    /// What the legend says.
    pub name: String,
    /// In order of length.
    pub points: Vec<WindowPoint>,
}

/// A gain in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowPoint {
    /// How long the window is.
    pub length: f64,
    /// The mean gain, in percent.
    pub mean: f64,
    /// The ends of the interval; both the mean where there is one run alone.
    pub interval: (f64, f64),
}

impl Windows {
    /// Draws them.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.title, HEIGHT);
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let paper = self.paper.iter().map(|(value, _)| *value);
        let greatest = points().map(|point| point.interval.1).chain(paper).fold(0.0, f64::max);
        let most = if greatest > 0.0 { greatest * 1.08 } else { 1.0 };
        let longest = points().map(|point| point.length).fold(0.0, f64::max);
        let end = if longest > 0.0 { longest } else { 1.0 };
        let across = |length: f64| LEFT + (RIGHT - LEFT) * (length / end).clamp(0.0, 1.0);
        canvas.upright(most, "%");
        let each = step(end, 12);
        for n in 0..=(end / each + 1e-9).floor() as u32 {
            let length = each * f64::from(n);
            canvas.line(at(across(length), BOTTOM), at(across(length), BOTTOM + 4.0), "axis");
            canvas.text(across(length), BOTTOM + 18.0, "middle", "", &plain(length, each));
        }
        canvas.text((LEFT + RIGHT) / 2.0, BOTTOM + 38.0, "middle", "", &self.across);
        for (nth, line) in self.lines.iter().enumerate() {
            let place = |value: f64, point: &WindowPoint| (across(point.length), height_of(value, most));
            let upper = line.points.iter().map(|point| place(point.interval.1, point));
            let lower = line.points.iter().rev().map(|point| place(point.interval.0, point));
            canvas.band(&upper.chain(lower).collect::<Vec<_>>(), nth);
            let mean: Vec<_> = line.points.iter().map(|point| place(point.mean, point)).collect();
            canvas.curve(&mean, Look::nth(nth));
            canvas.legend_line(nth, Look::nth(nth), &line.name);
        }
        if let Some((value, name)) = &self.paper {
            let y = height_of(*value, most);
            canvas.line(at(LEFT, y), at(RIGHT, y), "fault");
            canvas.text(RIGHT + 6.0, y + 4.0, "start", "", name);
        }
        canvas.finish()
    }
}
