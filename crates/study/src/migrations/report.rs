//! The report of the study: a page, figures, tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rayon::prelude::*;
use serde::Serialize;
use weft_experiment::{FidelityRow, Table, fidelity_table};
use weft_picture::chart::{BarGroup, Bars, Line, Lines, Look};

use super::case::{Case, TREES, Tree};
use super::claims::{PANELS, Panel, Repeated, bandwidth_rows, failures, random_means, sentences};
use super::walk::{CaseResult, StudyError, StudyOptions, flows, last_loss, run};
use crate::Source;
use crate::fit::mean_with_interval;

/// What docs/fidelity.md calls the study.
const FILE: &str = "study migrations --table4";

/// Where the claims are printed.
const SOURCE: &str =
    "Tasoulas, Gran, Zahid et al., journal paper on vSwitches of 2017, section 7.2, table 4, figure 8";

/// The combinations to be studied, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The combinations.
    pub cases: Vec<Case>,
    /// How.
    pub options: StudyOptions,
}

/// What a study comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    file: &'static str,
    experiment: Source,
    /// How it was made.
    pub options: StudyOptions,
    /// What the paper prints as numbers.
    pub fidelity: Vec<FidelityRow>,
    /// What does not fit what the paper says, a line each. Empty is a success.
    pub failures: Vec<String>,
    /// Losses over seeds, of the combinations of figures 8b and 8e.
    pub repeated: Vec<Repeated>,
    /// The combinations, in the order of table 4.
    pub cases: Vec<CaseResult>,
}

impl Study {
    /// How many flows all of it follows.
    pub fn flows(&self) -> u64 {
        self.cases.iter().map(|case| flows(case, &self.options, self.further_seeds(case))).sum()
    }

    /// Studies all combinations, in the current rayon pool. `tell` hears of flows as they are done.
    ///
    /// # Errors
    ///
    /// With the combination that failed, the first in their order.
    pub fn run(&self, tell: &(dyn Fn(u64) + Sync)) -> Result<Report, (Case, Box<StudyError>)> {
        let one = |case: &Case| run(case, &self.options, tell).map_err(|error| (*case, Box::new(error)));
        let results: Vec<Result<CaseResult, _>> = self.cases.par_iter().with_max_len(1).map(one).collect();
        let cases = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let repeated = self.repeat(&cases, tell)?;
        Ok(Report::new(self.options, cases, repeated))
    }

    /// How many seeds beside the first one a combination is studied with.
    fn further_seeds(&self, case: &Case) -> u32 {
        let is_repeated = PANELS.iter().any(|panel| panel.is_repeated() && panel.shows(case));
        if is_repeated { self.options.seeds.saturating_sub(1) } else { 0 }
    }

    /// Studies the combinations of figures 8b and 8e with further seeds.
    fn repeat(
        &self,
        cases: &[CaseResult],
        tell: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<Repeated>, (Case, Box<StudyError>)> {
        let meant: Vec<&CaseResult> =
            cases.iter().filter(|result| self.further_seeds(&result.case) > 0).collect();
        let seeds = 1..u64::from(self.options.seeds);
        let walks: Vec<(Case, u64)> = meant
            .iter()
            .flat_map(|result| {
                seeds.clone().map(move |later| (result.case, self.options.seed.wrapping_add(later)))
            })
            .collect();
        let one = |(case, seed): &(Case, u64)| {
            last_loss(case, &self.options, *seed, tell).map_err(|error| (*case, Box::new(error)))
        };
        let losses: Vec<Result<f64, _>> = walks.par_iter().with_max_len(1).map(one).collect();
        let losses = losses.into_iter().collect::<Result<Vec<_>, _>>()?;
        let of_case = losses.chunks(self.options.seeds.saturating_sub(1).max(1) as usize);
        let repeated = meant.iter().zip(of_case).map(|(result, further)| Repeated {
            case: result.case,
            losses: [&[result.last_loss_percent()][..], further].concat(),
        });
        Ok(repeated.collect())
    }
}

impl Report {
    fn new(options: StudyOptions, cases: Vec<CaseResult>, repeated: Vec<Repeated>) -> Self {
        let experiment = Source { title: "Migrations of virtual machines on paper", source: SOURCE };
        Self {
            file: FILE,
            experiment,
            options,
            fidelity: bandwidth_rows(&cases, &repeated),
            failures: failures(&cases),
            repeated,
            cases,
        }
    }

    /// The report's files by name: `report.md` and the figures and tables in it.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        if let Some(svg) = self.switches_figure() {
            files.insert("figure-8a.svg".to_owned(), svg);
        }
        for panel in &PANELS {
            let shown = panel.results(&self.cases);
            if !shown.is_empty() {
                files.insert(figure(panel, "bandwidth"), bandwidths(panel, &shown));
                files.insert(figure(panel, "loss"), losses(panel, &shown));
            }
        }
        for tree in self.trees() {
            files.insert(format!("migrations-{tree}.csv"), self.migrations_csv(tree));
        }
        files.insert("combinations.csv".to_owned(), self.combinations_csv());
        files.insert("report.md".to_owned(), self.page());
        // Nothing in a result can fail to be written: keys are texts.
        let json =
            serde_json::to_string_pretty(self).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
        files.insert("report.json".to_owned(), json);
        files
    }

    fn trees(&self) -> impl Iterator<Item = Tree> {
        TREES.into_iter().filter(|tree| self.cases.iter().any(|result| result.case.topology == *tree))
    }

    /// Means over all migrations of a topology: by FTreeMinRC and by ItRC, and the greatest of each.
    fn switches(&self, tree: Tree) -> [f64; 4] {
        let of_tree = || self.cases.iter().filter(move |result| result.case.topology == tree);
        let count: usize = of_tree().map(|result| result.migrations.len()).sum();
        let sum = |pick: fn(&CaseResult) -> f64| {
            of_tree().map(|result| pick(result) * result.migrations.len() as f64).sum::<f64>()
        };
        let most = |pick: fn(&CaseResult) -> f64| of_tree().map(pick).fold(0.0, f64::max);
        [
            sum(|result| result.ftreeminrc.mean) / count.max(1) as f64,
            sum(|result| result.itrc.mean) / count.max(1) as f64,
            most(|result| result.ftreeminrc.max),
            most(|result| result.itrc.max),
        ]
    }

    fn switches_figure(&self) -> Option<String> {
        let group = |tree: Tree| {
            let [ftreeminrc, itrc, ..] = self.switches(tree);
            BarGroup { name: tree.name.to_owned(), values: vec![Some(ftreeminrc), Some(itrc)] }
        };
        let bars = Bars {
            title: "Switches updated in a migration, mean over all migrations (figure 8a)".to_owned(),
            unit: "switches".to_owned(),
            names: vec!["FTreeMinRC".to_owned(), "ItRC".to_owned()],
            groups: self.trees().map(group).collect(),
        };
        (!bars.groups.is_empty()).then(|| bars.svg())
    }

    fn combinations_csv(&self) -> String {
        let mut csv = String::from(
            "topology,start,pattern,occupancy_percent,machines,percent,migrations,ftreeminrc_switches_mean,itrc_switches_mean,ftreeminrc_bandwidth,ftreeminrc_interval,fresh_bandwidth,fresh_interval,loss_percent\n",
        );
        for result in &self.cases {
            let Case { topology, start, pattern, occupancy } = result.case;
            for tenth in &result.tenths {
                let _ = writeln!(
                    csv,
                    "{topology},{start},{pattern},{occupancy},{},{},{},{:.3},{:.3},{:.6},{:.6},{:.6},{:.6},{:.3}",
                    result.machines,
                    tenth.percent,
                    tenth.migrations,
                    result.ftreeminrc.mean,
                    result.itrc.mean,
                    tenth.ftreeminrc.mean,
                    tenth.ftreeminrc.interval,
                    tenth.fresh.mean,
                    tenth.fresh.interval,
                    tenth.loss_percent(),
                );
            }
        }
        csv
    }

    fn migrations_csv(&self, tree: Tree) -> String {
        let mut csv = String::from(
            "start,pattern,occupancy_percent,migration,machine,from_host,to_host,ftreeminrc_switches,ftreeminrc_active,itrc_switches\n",
        );
        for result in self.cases.iter().filter(|result| result.case.topology == tree) {
            let Case { start, pattern, occupancy, .. } = result.case;
            for (nth, one) in (1..).zip(&result.migrations) {
                let moved = one.migration;
                let _ = writeln!(
                    csv,
                    "{start},{pattern},{occupancy},{nth},{},{},{},{},{},{}",
                    moved.machine, moved.from, moved.to, one.ftreeminrc, one.active, one.itrc
                );
            }
        }
        csv
    }

    fn page(&self) -> String {
        let StudyOptions { seed, bisections, .. } = self.options;
        let migrations: usize = self.cases.iter().map(|result| result.migrations.len()).sum();
        let mut text = format!(
            "# Migrations of virtual machines on paper\n\n{SOURCE}. {} of its 126 combinations, {migrations} migrations, {bisections} bisections for each bandwidth, seed {seed}.\n\n",
            self.cases.len()
        );
        text += "Virtual machines have dynamic LIDs; a migration takes over the rows of the physical function where it arrives. A bandwidth is \
                 the share of a link that a flow between two machines of a random bisection gets on average. *Fresh* is \
                 vswitch-ftree, run again for the placement of that moment. The loss is how much less bandwidth the tables deliver that \
                 FTreeMinRC has left.\n\n## Beside the paper\n\n";
        text += &fidelity_table(&self.fidelity);
        text += &self.sentences_table();
        for failure in &self.failures {
            let _ = writeln!(text, "**Not as expected**: {failure}.\n");
        }
        text += &self.switches_section();
        for panel in &PANELS {
            text += &self.panel_section(panel);
        }
        text + &self.all_section()
    }

    fn sentences_table(&self) -> String {
        let mut table = Table::headed("the paper says | holds | of");
        for (what, holds, of) in sentences(&self.cases) {
            table.row(&[what.to_owned(), holds.to_string(), of.to_string()]);
        }
        table.finish()
    }

    fn switches_section(&self) -> String {
        let mut text = String::from(
            "## Switches updated (figure 8a)\n\nThe paper prints no numbers. Means and greatest values over all migrations:\n\n",
        );
        let mut table =
            Table::headed("topology | switches | FTreeMinRC | ItRC | FTreeMinRC, most | ItRC, most");
        for tree in self.trees() {
            let [ftreeminrc, itrc, most, itrc_most] = self.switches(tree);
            let cells =
                [format!("{ftreeminrc:.1}"), format!("{itrc:.1}"), format!("{most}"), format!("{itrc_most}")];
            let cells = [tree.name.to_owned(), tree.switches.to_string()].into_iter().chain(cells);
            table.row(&cells.collect::<Vec<_>>());
        }
        text += &table.finish();
        text += "![Switches updated in a migration](figure-8a.svg)\n\n";
        let means = random_means(&self.cases);
        if means.is_empty() {
            return text;
        }
        text += "Random migrations alone, beside what follows from the shape of the tree if each goes to any other host alike:\n\n";
        let mut table = Table::headed("topology | FTreeMinRC | from the shape | ItRC");
        for (name, mean, expected, itrc) in means {
            table.row(&[
                name.to_owned(),
                format!("{mean:.2}"),
                format!("{expected:.2}"),
                format!("{itrc:.1}"),
            ]);
        }
        text + &table.finish()
    }

    fn panel_section(&self, panel: &Panel) -> String {
        let shown = panel.results(&self.cases);
        if shown.is_empty() {
            return String::new();
        }
        let claim = if panel.is_equal { "about 1 % at most" } else { "almost 10 % in some cases" };
        let mut text = format!("## Figure 8{}: {}\n\nThe paper: {claim}.\n\n", panel.letter, panel.title());
        let mut table = Table::headed(
            "topology | migrations | bandwidth at first | at the end | fresh | loss at the end, % | \
             greatest, %",
        );
        for result in shown {
            let (Some(first), Some(last)) = (result.tenths.first(), result.tenths.last()) else { continue };
            table.row(&[
                result.case.topology.name.to_owned(),
                result.migrations.len().to_string(),
                format!("{:.4}", first.fresh.mean),
                format!("{:.4}", last.ftreeminrc.mean),
                format!("{:.4}", last.fresh.mean),
                format!("{:.2}", result.last_loss_percent()),
                format!("{:.2}", result.greatest_loss_percent()),
            ]);
        }
        text += &table.finish();
        text += &self.seeds_section(panel);
        let [bandwidth, loss] = ["bandwidth", "loss"].map(|what| figure(panel, what));
        text + &format!("![Bandwidth]({bandwidth})\n\n![Loss]({loss})\n\n")
    }

    /// The losses over seeds, where a panel has them.
    fn seeds_section(&self, panel: &Panel) -> String {
        let mut table = Table::headed("topology | loss at the end by seed, % | mean | 95 % interval");
        let mut any = false;
        for one in self.repeated.iter().filter(|one| panel.shows(&one.case)) {
            let Some((mean, interval)) = mean_with_interval(&one.losses) else { continue };
            let losses: Vec<String> = one.losses.iter().map(|loss| format!("{loss:.2}")).collect();
            let between = format!("{:.2} to {:.2}", mean - interval, mean + interval);
            table.row(&[one.case.topology.name.to_owned(), losses.join(", "), format!("{mean:.2}"), between]);
            any = true;
        }
        if any { table.finish() } else { String::new() }
    }

    fn all_section(&self) -> String {
        let mut text = String::from("## All combinations\n\n");
        let mut table = Table::headed(
            "topology | start | pattern | % | machines | migrations | FTreeMinRC | ItRC | \
             loss at the end, % | greatest, %",
        );
        for result in &self.cases {
            let Case { topology, start, pattern, occupancy } = result.case;
            table.row(&[
                topology.to_string(),
                start.to_string(),
                pattern.to_string(),
                occupancy.to_string(),
                result.machines.to_string(),
                result.migrations.len().to_string(),
                format!("{:.1}", result.ftreeminrc.mean),
                format!("{:.1}", result.itrc.mean),
                format!("{:.2}", result.last_loss_percent()),
                format!("{:.2}", result.greatest_loss_percent()),
            ]);
        }
        text += &table.finish();
        text + "`combinations.csv` has every tenth with its intervals, `migrations-TOPOLOGY.csv` every migration.\n"
    }
}

fn figure(panel: &Panel, what: &str) -> String {
    format!("figure-8{}-{what}.svg", panel.letter)
}

fn over_migrations(title: String, unit: &str, lines: Vec<Line>) -> String {
    let across = "migrations carried out, %".to_owned();
    Lines { title, unit: unit.to_owned(), seconds: 100.0, across, lines, ..Lines::default() }.svg()
}

/// Both routings of every topology: whole lines are fresh routings, dashed ones FTreeMinRC's tables.
fn bandwidths(panel: &Panel, shown: &[&CaseResult]) -> String {
    let mut lines = Vec::new();
    for (nth, result) in shown.iter().enumerate() {
        let name = result.case.topology.name;
        for (dashes, which) in [(0, "fresh"), (2, "FTreeMinRC")] {
            let point = |tenth: &super::Tenth| {
                let bandwidth = if dashes == 0 { tenth.fresh } else { tenth.ftreeminrc };
                (f64::from(tenth.percent), bandwidth.mean)
            };
            let points = result.tenths.iter().map(point).collect();
            let name = if dashes == 0 { format!("{name}, {which}") } else { which.to_owned() };
            lines.push(Line { name, points, look: Some(Look { colour: nth, dashes }), ..Line::default() });
        }
    }
    over_migrations(
        format!("Bisection bandwidth, {} (figure 8{})", panel.title(), panel.letter),
        "of a link",
        lines,
    )
}

fn losses(panel: &Panel, shown: &[&CaseResult]) -> String {
    let line = |result: &&CaseResult| {
        let point = |tenth: &super::Tenth| (f64::from(tenth.percent), tenth.loss_percent());
        let points = result.tenths.iter().map(point).collect();
        Line { name: result.case.topology.name.to_owned(), points, ..Line::default() }
    };
    let title = format!("Loss beside a fresh routing, {} (figure 8{})", panel.title(), panel.letter);
    over_migrations(title, "%", shown.iter().map(line).collect())
}
