//! The terminal as a front end of laboratories: lines on standard error, bars where they can be
//! drawn, otherwise a line for each phase that takes long.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{MultiProgress, ProgressBar};
use weft_bundle::folder::Base;
use weft_bundle::folder::front::{Front, Listener, Phases, Work};

use crate::failure;
use crate::output::say;
use crate::progress::{Ticker, bar_width, is_drawn, style, target};

/// Columns beside a bar: the phase, counts of four digits and the time.
const TEXT: usize = 17 + 1 + 1 + 9 + 1 + 7;

/// Without bars a start that takes longer than this has a line for each phase as it ends.
const LONG: Duration = Duration::from_secs(10);

/// The folder of all laboratories, of which people see what is done.
pub(crate) fn base() -> Base {
    Base::locate().with_front(front())
}

/// The command line as a front end.
pub(crate) fn front() -> Front {
    Front { program: None, listener: Arc::new(Terminal) }
}

/// The program itself: it runs itself again for its other processes, and finds its libraries beside itself.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    front().program().context("cannot tell which program this is")
}

/// Standard error.
#[derive(Debug)]
struct Terminal;

impl Listener for Terminal {
    fn line(&self, line: &str) {
        say(line);
    }

    fn problem(&self, error: &anyhow::Error) {
        failure::report(error);
    }

    fn work(&self) -> Box<dyn Work> {
        Box::new(Ticker::begin())
    }

    fn start(&self, phases: &[&'static str]) -> Box<dyn Phases> {
        Box::new(Bars::begin(phases))
    }
}

impl Work for Ticker {
    fn is_at(&mut self, text: &dyn Fn() -> String) {
        self.tell(text);
    }
}

/// One phase.
#[derive(Debug)]
struct Line {
    name: &'static str,
    count: (u64, u64),
    bar: Option<ProgressBar>,
}

/// A bar for each phase of a start.
#[derive(Debug)]
struct Bars {
    lines: Vec<Line>,
    terminal: bool,
    _display: MultiProgress,
}

impl Bars {
    fn begin(phases: &[&'static str]) -> Self {
        let terminal = is_drawn();
        let display = MultiProgress::with_draw_target(target());
        let style =
            style(&format!("{{prefix:>17}} {{bar:{}.cyan}} {{pos}}/{{len}} {{msg}}", bar_width(TEXT)));
        let lines = phases.iter().map(|name| {
            let bar = terminal
                .then(|| display.add(ProgressBar::new(0).with_style(style.clone()).with_prefix(*name)));
            Line { name, count: (0, 0), bar }
        });
        Self { lines: lines.collect(), terminal, _display: display }
    }
}

impl Phases for Bars {
    fn is_at(&mut self, phase: usize, done: u64, total: u64) {
        let Some(line) = self.lines.get_mut(phase) else { return };
        line.count = (done, total);
        if let Some(bar) = &line.bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    }

    fn has_ended(&mut self, phase: usize, at: Duration) {
        let Some(line) = self.lines.get(phase) else { return };
        let seconds = format!("{:.2} s", at.as_secs_f64());
        match &line.bar {
            Some(bar) => bar.finish_with_message(seconds),
            // What is over at once stands in the summary alone.
            None if at < LONG => {}
            None => {
                let (done, total) = line.count;
                say(&format!("{:>17} {done}/{total} {seconds}", line.name));
            }
        }
    }

    fn end(&mut self) {
        if self.terminal {
            self.lines.iter().filter_map(|line| line.bar.as_ref()).for_each(ProgressBar::abandon);
            say(""); // The bars end without a line end.
        }
    }
}
