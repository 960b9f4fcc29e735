//! Figures: lines over time and bars, as SVG that light and dark viewers show alike well.

mod bars;
mod canvas;
mod lines;
mod windows;

pub use bars::{BarGroup, Bars};
pub use canvas::Look;
pub use lines::{Line, Lines, Tick};
pub use windows::{WindowLine, WindowPoint, Windows};
