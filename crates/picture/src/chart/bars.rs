//! Groups of bars.

use super::canvas::{BOTTOM, Canvas, HEIGHT, LEFT, RIGHT, height_of, plain};
use crate::words::shortened;

/// The widest bar.
const WIDTH_MAX: f64 = 64.0;
/// The width of a digit in a figure.
const LETTER: f64 = 7.2;

/// Groups of bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// What it shows.
    pub title: String,
    /// The unit of the vertical axis.
    pub unit: String,
    /// What the bars of a group stand for, in order.
    pub names: Vec<String>,
    /// The groups.
    pub groups: Vec<BarGroup>,
}

/// A group of bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarGroup {
    /// What stands below it.
    pub name: String,
    /// Its bars, along the names; none leaves a gap.
    pub values: Vec<Option<f64>>,
}

impl Bars {
    /// Draws them.
    pub fn svg(&self) -> String {
        let mut canvas = Canvas::new(&self.title, HEIGHT);
        let values = self.groups.iter().flat_map(|group| &group.values).flatten();
        let greatest = values.copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let most = if greatest > 0.0 { greatest * 1.12 } else { 1.0 };
        canvas.upright(most, &self.unit);
        let room = (RIGHT - LEFT) / self.groups.len().max(1) as f64;
        let width = (room * 0.84 / self.names.len().max(1) as f64).min(WIDTH_MAX);
        let inset = (room - width * self.names.len() as f64) / 2.0;
        for (nth, group) in self.groups.iter().enumerate() {
            let left = LEFT + room * nth as f64 + inset;
            canvas.text(
                LEFT + room * (nth as f64 + 0.5),
                BOTTOM + 18.0,
                "middle",
                "",
                &shortened(&group.name, 30),
            );
            for (place, value) in group.values.iter().enumerate() {
                let Some(value) = value.filter(|value| value.is_finite()) else { continue };
                let name = self.names.get(place).map_or("", String::as_str);
                let of = if group.name.is_empty() { String::new() } else { format!("{}, ", group.name) };
                let says = format!("{of}{name}: {} {}", plain(value, 0.1), self.unit);
                let (x, top) = (left + width * place as f64, height_of(value, most));
                canvas.bar(x + width * 0.06, width * 0.88, top, place, &says);
                // Three digits; where they would touch the next bar's, pointing at the bar shows them.
                let text = if value < 9.995 { plain(value, 0.1) } else { format!("{value:.1}") };
                if text.len() as f64 * LETTER <= width {
                    canvas.text(x + width / 2.0, top - 4.0, "middle", "", &text);
                }
            }
        }
        for (nth, name) in self.names.iter().enumerate() {
            canvas.legend_bar(nth, name);
        }
        canvas.finish()
    }
}
