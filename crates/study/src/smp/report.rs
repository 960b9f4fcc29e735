//! The report: a page, figure 7, tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use weft_experiment::{FidelityRow, Paper, Table, fidelity_table};
use weft_picture::chart::{Line, Lines, Look};

use super::costs::Costs;
use super::measured::{Burst, Kind, Measured, PAPER_CHIP_US, Route, SWITCHES, Series};
use crate::Source;

/// What docs/fidelity.md calls the measurement.
const FILE: &str = "bench smp --lft";

/// Where the paper's numbers are printed.
const SOURCE: &str = "Tasoulas, Gran, Zahid et al., journal paper on vSwitches of 2017, section 7.1, figure 7; equations of Tasoulas, Gran, Johnsen et al. 2015, section VI";

/// What the paper prints of figure 7: LFT updates, and milliseconds.
const PAPER: [(u32, f64); 2] = [(3240, 210.0), (4608, 300.0)];

/// Rows of table 2: nodes, n·m of a full reconfiguration, and the most of a swap.
const TABLE_2: [(u32, u32, u32); 4] =
    [(324, 216, 72), (648, 594, 108), (5832, 104_004, 1944), (11_664, 336_960, 3240)];

/// The report of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    file: &'static str,
    experiment: Source,
    /// The paper's figure 7 beside ours, on devices as slow as the paper's.
    pub fidelity: Vec<FidelityRow>,
    /// The constants of the equations, where enough was measured.
    pub costs: Option<Costs>,
    /// What was measured.
    pub measured: Measured,
}

impl Report {
    /// A report of a measurement.
    pub fn new(measured: Measured) -> Self {
        let costs = Costs::of(&measured);
        let fidelity = fidelity(&measured);
        let experiment = Source { title: "What an SMP costs", source: SOURCE };
        Self { file: FILE, experiment, fidelity, costs, measured }
    }

    /// The report's files by name: `report.md` and the figures and tables in it.
    pub fn files(&self) -> BTreeMap<String, String> {
        // Nothing in a result can fail to be written: keys are texts.
        let json =
            serde_json::to_string_pretty(self).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
        let files = [
            ("report.md", self.page()),
            ("report.json", json),
            ("series.csv", self.series_csv()),
            ("figure-7.csv", self.bursts_csv()),
            ("figure-7.svg", self.figure()),
        ];
        files.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
    }

    fn series_csv(&self) -> String {
        let mut csv = String::from("target,hops,kind,route,window,smps,seconds,us_each,per_second\n");
        for series in &self.measured.series {
            let Series { target, hops, route, kind, window, smps, seconds } = series;
            // A name of a node may have commas in it.
            let target = target.as_deref().unwrap_or("all in turns").replace(['"', ',', '\n', '\r'], " ");
            let (each, rate) = (series.each_us(), series.per_second());
            let _ = writeln!(
                csv,
                "{target},{hops:.2},{kind},{route},{window},{smps},{seconds:.6},{each:.2},{rate:.0}"
            );
        }
        csv
    }

    fn bursts_csv(&self) -> String {
        let mut csv = String::from("source,smps,route,window,time,ms\n");
        for burst in &self.measured.bursts {
            for (nth, seconds) in (1..).zip(&burst.seconds) {
                let Burst { smps, route, window, .. } = burst;
                let _ = writeln!(csv, "weft,{smps},{route},{window},{nth},{:.4}", seconds * 1e3);
            }
        }
        for (smps, ms) in PAPER {
            let _ = writeln!(csv, "paper,{smps},,,,{ms}");
        }
        csv
    }

    /// The windows of bursts, ascending.
    fn windows(&self) -> BTreeSet<u32> {
        self.measured.bursts.iter().map(|burst| burst.window).collect()
    }

    fn figure(&self) -> String {
        let mut lines = Vec::new();
        for (nth, window) in self.windows().into_iter().enumerate() {
            for (dashes, route) in [(0, Route::LidRouted), (1, Route::Directed)] {
                let of_line = self
                    .measured
                    .bursts
                    .iter()
                    .filter(|burst| (burst.window, burst.route) == (window, route));
                let points: Vec<(f64, f64)> =
                    of_line.map(|burst| (f64::from(burst.smps), burst.median_ms())).collect();
                if !points.is_empty() {
                    let name = format!("{route}, window {window}");
                    lines.push(Line {
                        name,
                        points,
                        look: Some(Look { colour: nth, dashes }),
                        ..Line::default()
                    });
                }
            }
        }
        let points = PAPER.map(|(smps, ms)| (f64::from(smps), ms)).to_vec();
        let name = "paper, six switches".to_owned();
        lines.push(Line { name, points, look: Some(Look { colour: 6, dashes: 0 }), is_scatter: true });
        let figure = Lines {
            title: format!(
                "LFT updates on {} switches (figure 7; {})",
                self.measured.switches.len(),
                profile(&self.measured)
            ),
            unit: "ms".to_owned(),
            seconds: f64::from(PAPER[1].0),
            across: "LFT updates".to_owned(),
            lines,
            ..Lines::default()
        };
        figure.svg()
    }

    fn page(&self) -> String {
        let measured = &self.measured;
        let mut text = format!(
            "# What an SMP costs\n\n{SOURCE}.\n\n{}; {}; attached to `{}`; everything else used {:.1} % of a core meanwhile.\n\n",
            measured.machine,
            profile(measured),
            measured.attached_to,
            measured.others_used * 100.0
        );
        let _ = writeln!(
            text,
            "Each switch gets the blocks of its forwarding table that it holds, so nothing changes; the tables were read before and \
             after, and are the same. Switches: {}.\n",
            measured.switches.join(", ")
        );
        if measured.switches.len() < SWITCHES {
            let _ = writeln!(
                text,
                "**The fabric has {} switches; the paper's figure 7 has {SWITCHES}.**\n",
                measured.switches.len()
            );
        }
        text += &self.figure_section();
        text += &self.equations_section();
        text += &self.hops_section();
        text + &self.rates_section()
    }

    fn figure_section(&self) -> String {
        let mut text = String::from("## Figure 7\n\n![LFT updates](figure-7.svg)\n\n");
        let windows = self.windows();
        let mut heads = vec!["LFT updates".to_owned(), "paper, ms".to_owned()];
        let columns: Vec<(Route, u32)> = Route::ALL
            .into_iter()
            .flat_map(|route| windows.iter().map(move |window| (route, *window)))
            .collect();
        heads.extend(columns.iter().map(|(route, window)| format!("{route}, window {window}, ms")));
        let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        let counts: BTreeSet<u32> = self.measured.bursts.iter().map(|burst| burst.smps).collect();
        for count in counts {
            let printed = PAPER
                .iter()
                .find(|(smps, _)| *smps == count)
                .map_or("", |(_, ms)| if *ms > 250.0 { "300" } else { "210" });
            let mut cells = vec![count.to_string(), printed.to_owned()];
            for (route, window) in &columns {
                let burst = self
                    .measured
                    .bursts
                    .iter()
                    .find(|burst| (burst.smps, burst.route, burst.window) == (count, *route, *window));
                cells.push(burst.map_or("–".to_owned(), |burst| format!("{:.2}", burst.median_ms())));
            }
            table.row(&cells);
        }
        text += &table.finish();
        text + &fidelity_table(&self.fidelity)
    }

    fn equations_section(&self) -> String {
        let Some(costs) = &self.costs else { return String::new() };
        let mut text = String::from(
            "## Equations 1 to 5\n\nOne SMP outstanding, all switches in turns. Lines by least squares through the time of bursts over the number of \
             SMPs; intervals of 95 %.\n\n",
        );
        let mut table = Table::headed("constant | µs | ± µs | points | residuals' deviation, µs | R²");
        let (lid, directed) = (&costs.lid_routed, &costs.directed);
        for (name, fit) in [("k (equation 5)", lid), ("k + r (equations 2 to 4)", directed)] {
            table.row(&[
                name.to_owned(),
                format!("{:.2}", fit.slope),
                format!("{:.2}", fit.slope_interval),
                fit.points.to_string(),
                format!("{:.0}", fit.residual_deviation),
                format!("{:.5}", fit.r_squared),
            ]);
        }
        table.row(&["r".to_owned(), format!("{:.2}", costs.r), format!("{:.2}", costs.r_interval)]);
        text += &table.finish();
        if let Some(doubt) = costs.doubt_of_r() {
            let _ = writeln!(
                text,
                "{doubt}: these measurements do not tell equations 2 and 4 from equation 5.\n"
            );
        }
        text += "Without pipelining, the SMPs of table 2 would take so many milliseconds; equations 1 and 3 add the time that routing takes:\n\n";
        let mut table = Table::headed(
            "hosts | SMPs, full | equation 2: directed | SMPs, swap at most | equation 4: directed | \
             equation 5: LID-routed",
        );
        for (hosts, full, swap) in TABLE_2 {
            let ms = |value: f64| format!("{value:.1}");
            let [full_ms, _] = costs.takes_ms(f64::from(full));
            let [swap_ms, swap_lid_ms] = costs.takes_ms(f64::from(swap));
            table.row(&[
                hosts.to_string(),
                full.to_string(),
                ms(full_ms),
                swap.to_string(),
                ms(swap_ms),
                ms(swap_lid_ms),
            ]);
        }
        text + &table.finish()
    }

    fn hops_section(&self) -> String {
        let mut text = String::from("## By hops, one SMP outstanding\n\n");
        let mut table = Table::headed(
            "switch | hops | Get, directed, µs | Get, LID-routed, µs | LFT Set, directed, µs | \
             LFT Set, LID-routed, µs",
        );
        let single =
            || self.measured.series.iter().filter(|series| series.target.is_some() && series.window == 1);
        let hops: BTreeSet<(u64, &str)> =
            single().map(|series| (series.hops as u64, series.target.as_deref().unwrap_or(""))).collect();
        for (distance, target) in hops {
            let cell = |kind, route| {
                let mut fitting = single().filter(|series| {
                    series.hops as u64 == distance && (series.kind, series.route) == (kind, route)
                });
                fitting.next().map_or("–".to_owned(), |series| format!("{:.1}", series.each_us()))
            };
            let cells = Kind::ALL.into_iter().flat_map(|kind| Route::ALL.map(|route| cell(kind, route)));
            table
                .row(&[target.to_owned(), distance.to_string()].into_iter().chain(cells).collect::<Vec<_>>());
        }
        text += &table.finish();
        let fits = self
            .costs
            .iter()
            .flat_map(|costs| [("LID-routed", costs.hops_lid_routed), ("directed", costs.hops_directed)]);
        for (route, fit) in fits {
            if let Some(fit) = fit {
                let (slope, interval) = (fit.slope, fit.slope_interval);
                let doubt = if fit.is_sloped() { "" } else { ", which is not distinguishable from 0" };
                let _ = writeln!(
                    text,
                    "A hop more takes an LFT Set {slope:.1} ± {interval:.1} µs longer, {route}{doubt}.\n"
                );
            }
        }
        text
    }

    fn rates_section(&self) -> String {
        let mut text = String::from("## Acknowledged per second, by window\n\n");
        for to_all in [true, false] {
            let fitting =
                || self.measured.series.iter().filter(move |series| series.target.is_none() == to_all);
            let farthest = fitting().map(|series| series.hops).fold(0.0, f64::max);
            let of = move |series: &&Series| to_all || series.hops >= farthest;
            let what = if to_all { "all switches in turns" } else { "the farthest switch" };
            let mut table = Table::headed(
                "window | Get, directed | Get, LID-routed | LFT Set, directed | LFT Set, LID-routed",
            );
            let windows: BTreeSet<u32> = fitting().map(|series| series.window).collect();
            for window in windows {
                let cell = |kind, route| {
                    let mut found = fitting()
                        .filter(of)
                        .filter(|series| (series.window, series.kind, series.route) == (window, kind, route));
                    found.next().map_or("–".to_owned(), |series| format!("{:.0}", series.per_second()))
                };
                let cells = Kind::ALL.into_iter().flat_map(|kind| Route::ALL.map(|route| cell(kind, route)));
                table.row(&[window.to_string()].into_iter().chain(cells).collect::<Vec<_>>());
            }
            text += &format!("To {what}:\n\n{}", table.finish());
        }
        for kind in Kind::ALL {
            if let Some(best) = self.measured.best(kind) {
                let _ = writeln!(
                    text,
                    "Most {kind}s acknowledged by {} switches: {:.0} per second, {}, window {}.\n",
                    self.measured.switches.len(),
                    best.per_second(),
                    best.route,
                    best.window
                );
            }
        }
        text
    }
}

/// How fast devices are.
fn profile(measured: &Measured) -> String {
    match measured.processing_us {
        0 => "agents not held back".to_owned(),
        us => format!("each device takes {us} µs for an SMP"),
    }
}

/// The paper's numbers beside ours: the best window's, LID-routed. Only devices as slow as the paper's compare.
fn fidelity(measured: &Measured) -> Vec<FidelityRow> {
    if measured.processing_us != PAPER_CHIP_US || measured.switches.len() != SWITCHES {
        return Vec::new();
    }
    let row = |(smps, ms): (u32, f64)| {
        let of = measured.bursts.iter().filter(|burst| (burst.smps, burst.route) == (smps, Route::LidRouted));
        let ours = of.map(Burst::median_ms).reduce(f64::min)?;
        let paper = Paper {
            value: ms,
            is_limit: false,
            source: "section 7.1 and figure 7".to_owned(),
            why: format!(
                "a device's {PAPER_CHIP_US} µs follow from the 300 ms; the line, and that a window suffices, do not"
            ),
            given: "--smp-processing-us".to_owned(),
        };
        Some(FidelityRow::beside(format!("{smps} LFT updates on six switches"), "ms", paper, Some(ours)))
    };
    PAPER.into_iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use weft_experiment::FidelityVerdict;

    use super::*;

    /// As a laboratory with devices of that speed would be: six switches work at the same time if the window lets them.
    fn measured(processing_us: u64) -> Measured {
        let names: Vec<String> = (0..SWITCHES).map(|nth| format!("switch-{nth}")).collect();
        let mut measured = Measured { processing_us, switches: names, ..Measured::default() };
        for route in Route::ALL {
            for window in [1, 16] {
                for smps in [6, 600, 3240, 4608] {
                    let each = processing_us as f64 / 1e6 / f64::from(window.min(6u32));
                    let seconds = vec![each * f64::from(smps); 3];
                    measured.bursts.push(Burst { smps, route, window, seconds });
                }
            }
            for (kind, hops) in Kind::ALL.into_iter().flat_map(|kind| [1, 2, 3].map(|hops| (kind, hops))) {
                for (target, window) in [(Some("a, b".to_owned()), 1), (None, 16)] {
                    let (hops, smps, seconds) = (f64::from(hops), 100, 0.01);
                    measured.series.push(Series { target, hops, route, kind, window, smps, seconds });
                }
            }
        }
        measured
    }

    #[test]
    fn the_papers_300_ms_are_compared_only_at_its_chip_speed() {
        let report = Report::new(measured(PAPER_CHIP_US));
        let found: Vec<(FidelityVerdict, f64)> =
            report.fidelity.iter().map(|row| (row.verdict, row.ours.unwrap().round())).collect();
        // 768 SMPs of 390 µs at each switch, and 540.
        let given = FidelityVerdict::Given;
        assert_eq!(found, [(given, 211.0), (given, 300.0)], "the chip's speed follows from the 300 ms");
        assert!(Report::new(measured(100)).fidelity.is_empty());
    }

    #[test]
    fn the_report_has_figure_7_and_the_constants() {
        let report = Report::new(measured(PAPER_CHIP_US));
        let files = report.files();
        let page = &files["report.md"];
        assert!(page.contains("| k (equation 5) | 390.00 |"), "{page}");
        // Directed routes took as long as LIDs here.
        assert!(page.contains("is not distinguishable from 0"), "{page}");
        assert!(page.contains("| 4608 | 300 | 1797.12 | 299.52 |"), "{page}");
        assert!(page.contains("Most LFT Sets acknowledged by 6 switches: 10000 per second"), "{page}");
        assert_eq!(files["figure-7.csv"].lines().count(), 1 + 2 * 2 * 4 * 3 + 2);
        assert_eq!(files["series.csv"].lines().count(), 1 + 24);
        assert!(
            files["series.csv"].lines().all(|line| line.split(',').count() == 9),
            "{}",
            files["series.csv"]
        );
        assert!(files["figure-7.svg"].contains("paper, six switches"));
        let json: serde_json::Value = serde_json::from_str(&files["report.json"]).unwrap();
        assert_eq!(json["fidelity"].as_array().unwrap().len(), 2);
    }
}
