//! The cost of writing forwarding tables, as text.

use weft_perform::bench::WINDOWS;
use weft_study::smp::{Kind, Report, Route};

use crate::output::{Table, or_dash};

pub(super) fn text(report: &Report) -> String {
    let measured = &report.measured;
    let held = match measured.processing_us {
        0 => "not held back".to_owned(),
        us => format!("{us} us for an SMP"),
    };
    let mut text =
        format!("{}\nattached to `{}`, devices {held}\n\n", measured.machine, measured.attached_to);
    let mut table =
        Table::headed("window | Gets/s, directed | LID-routed | LFT Sets/s, directed | LID-routed");
    for window in WINDOWS {
        let rate = |kind, route| {
            let found = measured.to_all(kind, route).find(|series| series.window == window);
            or_dash(found.map(|series| format!("{:.0}", series.per_second())))
        };
        let rates = Kind::ALL.into_iter().flat_map(|kind| Route::ALL.map(|route| rate(kind, route)));
        table.cells([window.to_string()].into_iter().chain(rates));
    }
    text += &format!("acknowledged by {} switches in turns\n{table}\n", measured.switches.len());
    if let Some(costs) = &report.costs {
        text += &format!(
            "without pipelining: k {:.2} +- {:.2} us, r {:.2} +- {:.2} us for an LFT Set\n",
            costs.k(),
            costs.lid_routed.slope_interval,
            costs.r,
            costs.r_interval
        );
        if let Some(doubt) = costs.doubt_of_r() {
            text += &format!("{}\n", doubt.replace('±', "+-").replace('µ', "u"));
        }
    }
    for burst in measured.bursts.iter().filter(|burst| burst.smps == 4608) {
        text += &format!(
            "4608 LFT updates, {}, window {}: {:.1} ms; the paper 300 ms\n",
            burst.route,
            burst.window,
            burst.median_ms()
        );
    }
    text + &format!("everything else used {:.1} % of a core meanwhile\n", measured.others_used * 100.0)
}
