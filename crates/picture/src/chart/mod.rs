//! Charts: lines over time, bars, gains by window, as SVG for light and dark.

mod bars;
mod canvas;
mod lines;
mod windows;

pub use bars::{BarGroup, Bars};
pub use canvas::Look;
pub use lines::{Line, Lines, Tick};
pub use windows::{WindowLine, WindowPoint, Windows};
