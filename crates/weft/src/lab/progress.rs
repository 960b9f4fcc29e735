//! Progress of a laboratory that comes up: bars on a terminal, elsewhere a line for each phase that takes long.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar};

use crate::progress::{bar_width, is_drawn, style, target};

/// Columns beside a bar: the phase, counts of four digits and the time.
const TEXT: usize = 17 + 1 + 1 + 9 + 1 + 7;

/// Without bars a start that takes longer than this tells each phase as it ends.
const LONG: Duration = Duration::from_secs(10);

/// What the launcher waits for.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    /// The subnet managers that bring up their pieces of the fabric, and how many nodes each piece has.
    pub(crate) subnets: Vec<(String, u64)>,
    /// Ends of cables in all.
    pub(crate) cable_ends: u64,
    /// Give up when nothing has moved for this long.
    pub(crate) patience: Duration,
    /// Whether a laboratory that does not come up runs on; `None` where the verb has no such option.
    pub(crate) keep: Option<bool>,
}

impl Goal {
    /// Nodes that subnet managers are to find.
    pub(crate) fn nodes(&self) -> u64 {
        self.subnets.iter().map(|(_, nodes)| nodes).sum()
    }

    /// Nodes of a manager's piece; `None` if nothing of its is awaited.
    pub(crate) fn nodes_of(&self, manager: &str) -> Option<u64> {
        self.subnets.iter().find(|(name, _)| name == manager).map(|(_, nodes)| *nodes)
    }
}

/// The phases of coming up, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StartPhase {
    AgentsStarted,
    LinksUp,
    NodesDiscovered,
    Lids,
    Tables,
    PortsActive,
}

impl StartPhase {
    pub(crate) const ALL: [Self; 6] = [
        Self::AgentsStarted,
        Self::LinksUp,
        Self::NodesDiscovered,
        Self::Lids,
        Self::Tables,
        Self::PortsActive,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AgentsStarted => "agents started",
            Self::LinksUp => "links up",
            Self::NodesDiscovered => "nodes discovered",
            Self::Lids => "LIDs assigned",
            Self::Tables => "tables written",
            Self::PortsActive => "ports active",
        }
    }
}

/// How far one phase is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) done: u64,
    pub(crate) total: u64,
}

#[derive(Debug)]
struct Line {
    count: Count,
    finished: Option<Duration>,
    bar: Option<ProgressBar>,
}

/// The phases of one start.
#[derive(Debug)]
pub(crate) struct Phases {
    start: Instant,
    moved: Instant,
    lines: Vec<Line>,
    terminal: bool,
    ended: Cell<bool>,
    _display: MultiProgress,
}

impl Phases {
    /// The clock starts now. `phases` are those that this start will have.
    pub(crate) fn begin(start: Instant, phases: &[StartPhase]) -> Self {
        let terminal = is_drawn();
        let display = MultiProgress::with_draw_target(target());
        let style =
            style(&format!("{{prefix:>17}} {{bar:{}.cyan}} {{pos}}/{{len}} {{msg}}", bar_width(TEXT)));
        let lines = phases.iter().map(|phase| {
            let bar = terminal.then(|| {
                display.add(ProgressBar::new(0).with_style(style.clone()).with_prefix(phase.name()))
            });
            Line { count: Count::default(), finished: None, bar }
        });
        Self {
            start,
            moved: start,
            lines: lines.collect(),
            terminal,
            ended: Cell::new(false),
            _display: display,
        }
    }

    /// Takes what is known of a phase.
    pub(crate) fn set(&mut self, phase: StartPhase, count: Count) {
        let Some(line) = self.lines.get_mut(phase as usize) else { return };
        if line.count == count {
            return;
        }
        self.moved = Instant::now();
        line.count = count;
        if count.done < count.total {
            line.finished = None;
        }
        if let Some(bar) = &line.bar {
            bar.set_length(count.total);
            bar.set_position(count.done);
        }
    }

    /// Says that a phase has ended, `at` since the start.
    pub(crate) fn finish(&mut self, phase: StartPhase, at: Duration) {
        let Some(line) = self.lines.get_mut(phase as usize) else { return };
        if line.finished.replace(at).is_some() {
            return;
        }
        let seconds = format!("{:.2} s", at.as_secs_f64());
        match &line.bar {
            Some(bar) => bar.finish_with_message(seconds),
            // What is over at once stands in the summary alone.
            None if at < LONG => {}
            None => {
                let Count { done, total } = line.count;
                crate::output::say(&format!("{:>17} {done}/{total} {seconds}", phase.name()));
            }
        }
    }

    /// How far a phase is.
    pub(crate) fn count(&self, phase: StartPhase) -> Count {
        self.lines.get(phase as usize).map_or_else(Count::default, |line| line.count)
    }

    /// When a phase ended, since the start.
    pub(crate) fn finished(&self, phase: StartPhase) -> Option<Duration> {
        self.lines.get(phase as usize).and_then(|line| line.finished)
    }

    /// When something last moved.
    pub(crate) fn moved(&self) -> Instant {
        self.moved
    }

    /// The time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Leaves the bars as they are and the terminal in order.
    pub(crate) fn end(&self) {
        if !self.terminal || self.ended.replace(true) {
            return;
        }
        for line in &self.lines {
            if let Some(bar) = &line.bar {
                bar.abandon();
            }
        }
        crate::output::say(""); // The bars end without a line end.
    }
}
