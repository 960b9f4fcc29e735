//! Figures of the server, for whoever asks.

use weft_bundle::names::IBSIM;
use weft_ibsim::Counts;
use weft_metrics::Page;
use weft_process::Manned;

/// The server at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// What the machine has counted.
    pub(crate) counts: Counts,
    /// Programs that are attached.
    pub(crate) programs: u64,
    /// MADs dropped because a program did not read them.
    pub(crate) dropped: u64,
}

/// What the server shows at its control socket.
#[derive(Debug)]
pub(crate) struct Shown;

impl Manned for Shown {
    type Figures = Figures;

    fn render(figures: &Figures) -> Page {
        let Figures { counts, programs, dropped } = figures;
        let mut page = Page::of(IBSIM, env!("CARGO_PKG_VERSION"));
        page.gauge("weft_ibsim_programs", "Programs of ibsim attached now").count(&[], *programs);
        let mut events =
            page.counter("weft_ibsim_events_total", "What happened to programs of ibsim, by kind");
        for (event, count) in [
            ("connected", counts.connected),
            ("died", counts.died),
            ("refused_full", counts.refused_full),
            ("refused", counts.refused),
            ("malformed", counts.malformed),
            ("foreign", counts.foreign),
            ("unconnected", counts.unconnected),
            ("overflowed", counts.overflowed),
            ("retried", counts.retried),
            ("timed_out", counts.timed_out),
            ("unmatched", counts.unmatched),
            ("unwanted", counts.unwanted),
            ("dropped", *dropped),
        ] {
            events.count(&[("event", event)], count);
        }
        page
    }
}
