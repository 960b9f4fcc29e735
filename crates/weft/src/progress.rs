//! Progress of long verbs, on standard error: bars and spinners on a terminal, otherwise lines.

use std::io::IsTerminal as _;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};

use crate::output::say;
use crate::terminal::{columns, is_dumb, shows_utf8};

/// How often a [`Ticker`] says a line where no terminal shows it.
const TICKER_SAYS: Duration = Duration::from_secs(5);

/// Columns of a bar where there is room, and at least.
const BAR: (usize, usize) = (30, 5);

/// Whether standard error is a terminal that can be drawn on. Without colour it can be, too.
pub(crate) fn is_drawn() -> bool {
    std::io::stderr().is_terminal() && !is_dumb()
}

/// Where bars are drawn.
pub(crate) fn target() -> ProgressDrawTarget {
    if is_drawn() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

/// A style from a template, which is a constant of the program, in characters that the terminal shows.
pub(crate) fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    match shows_utf8() {
        true => style.progress_chars("━╸ "),
        false => style.progress_chars("=> ").tick_chars("|/-\\ "),
    }
}

/// Columns of a bar beside this many columns of text.
pub(crate) fn bar_width(text: usize) -> usize {
    columns(std::io::stderr()).unwrap_or(80).saturating_sub(text + 1).clamp(BAR.1, BAR.0)
}

/// Something that turns for as long as work goes on, beside a message.
pub(crate) fn spinner(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target()).with_style(style(template));
    if let Ok(mut spinner) = SPINNER.lock() {
        *spinner = bar.downgrade();
    }
    bar
}

/// The latest spinner, which [`clear`] wipes out.
static SPINNER: LazyLock<Mutex<WeakProgressBar>> = LazyLock::new(Mutex::default);

/// Wipes out the spinner, for the last words of a program that ends in another place.
pub(crate) fn clear() {
    if let Some(bar) = SPINNER.lock().ok().and_then(|spinner| spinner.upgrade()) {
        bar.finish_and_clear();
    }
}

/// One line that changes on a terminal, else a line every few seconds.
#[derive(Debug)]
pub(crate) struct Ticker {
    bar: ProgressBar,
    said: Instant,
}

impl Ticker {
    /// Says nothing yet.
    pub(crate) fn begin() -> Self {
        Self { bar: spinner("{spinner} {msg} {elapsed}"), said: Instant::now() }
    }

    /// Says what is done now.
    pub(crate) fn tell(&mut self, text: impl FnOnce() -> String) {
        if !self.bar.is_hidden() {
            self.bar.set_message(text());
            self.bar.tick();
        } else if self.said.elapsed() >= TICKER_SAYS {
            self.said = Instant::now();
            say(&text());
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
