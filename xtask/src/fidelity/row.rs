//! One printed value beside ours.

use serde_json::Value;

/// Ours agrees with a printed value within this many percent of it, as in the reports of experiments.
pub(super) const AGREEMENT_PERCENT: f64 = 15.0;

/// How a printed value and ours stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Agrees,
    Differs,
    /// It goes into the run, so that it says nothing when it comes out.
    Given,
    NotBuilt,
    /// What it is about is built, and no report has the value.
    NotMeasured,
}

impl Verdict {
    pub(super) const ALL: [Self; 5] =
        [Self::Agrees, Self::Differs, Self::Given, Self::NotBuilt, Self::NotMeasured];

    /// The word in a row.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Given => "given",
            Self::NotBuilt => "not built",
            Self::NotMeasured => "not measured",
        }
    }

    /// The words behind a number of rows.
    fn counted(self) -> &'static str {
        match self {
            Self::Agrees => "agree",
            Self::Differs => "differ",
            Self::Given | Self::NotBuilt | Self::NotMeasured => self.word(),
        }
    }

    fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }
}

/// `35 agree, 49 differ, 16 given`
pub(super) fn counted(rows: &[&Row]) -> String {
    let parts = Verdict::ALL.into_iter().filter_map(|verdict| {
        let count = rows.iter().filter(|row| row.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {}", verdict.counted()))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// A line of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) line: String,
    pub(super) verdict: Verdict,
}

impl Row {
    /// A line as a page has it.
    pub(super) fn read(line: &str) -> Option<Self> {
        let verdict = Verdict::named(line.rsplit('|').nth(2)?.trim())?;
        Some(Self { line: format!("{}\n", line.trim_end()), verdict })
    }

    /// A row of a report. Those of experiments are written already.
    pub(super) fn of(row: &Value) -> Option<Self> {
        match row["markdown"].as_str() {
            Some(line) => Self::read(line),
            None => {
                let paper = &row["paper"];
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                Some(
                    Parts {
                        what: text(&row["what"]),
                        place: text(&paper["source"]),
                        printed: Printed::Number(paper["value"].as_f64()?),
                        is_limit: paper["is_limit"].as_bool().unwrap_or_default(),
                        unit: text(&row["unit"]),
                        ours: row["ours"].as_f64(),
                        given: text(&paper["given"]),
                        without: Verdict::NotMeasured,
                        why: text(&paper["why"]),
                    }
                    .row(),
                )
            }
        }
    }
}

/// What a paper prints.
#[derive(Clone, Debug)]
pub(super) enum Printed {
    Number(f64),
    Text(String),
}

/// What a row is made of.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) what: String,
    pub(super) place: String,
    pub(super) printed: Printed,
    pub(super) is_limit: bool,
    pub(super) unit: String,
    pub(super) ours: Option<f64>,
    /// The input that it repeats; may be empty.
    pub(super) given: String,
    /// The verdict where there is nothing of ours.
    pub(super) without: Verdict,
    pub(super) why: String,
}

impl Parts {
    pub(super) fn row(self) -> Row {
        let verdict = self.verdict();
        let with_unit = |value: f64| format!("{} {}", number(value), self.unit).trim_end().to_owned();
        let printed = match &self.printed {
            Printed::Number(value) => with_unit(*value),
            Printed::Text(text) => text.clone(),
        };
        let printed = if self.is_limit { format!("less than {printed}") } else { printed };
        let ratio = match (&self.printed, self.ours) {
            (Printed::Number(printed), Some(ours)) if *printed != 0.0 => format!("{:.2}", ours / printed),
            _ => "–".to_owned(),
        };
        let why = match verdict {
            Verdict::Agrees if self.why == "not known" => String::new(),
            Verdict::Given if self.why.is_empty() => format!("an input: {}", self.given),
            Verdict::Given => format!("an input: {}; {}", self.given, self.why),
            _ => self.why,
        };
        let ours = self.ours.map_or("–".to_owned(), with_unit);
        let cells =
            [self.what, format!("{printed} ({})", self.place), ours, ratio, verdict.word().to_owned(), why];
        Row { line: format!("| {} |\n", cells.join(" | ")), verdict }
    }

    fn verdict(&self) -> Verdict {
        match (&self.printed, self.ours) {
            (Printed::Number(printed), Some(ours)) => {
                let near = (ours - printed).abs() <= printed.abs() * AGREEMENT_PERCENT / 100.0;
                match (near || self.is_limit && ours <= *printed, self.given.is_empty()) {
                    (true, true) => Verdict::Agrees,
                    (true, false) => Verdict::Given,
                    (false, _) => Verdict::Differs,
                }
            }
            _ => self.without,
        }
    }
}

/// A number with at most four digits, or all of a whole one.
fn number(value: f64) -> String {
    if value == value.round() {
        return format!("{value:.0}");
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(printed: f64, ours: Option<f64>) -> Parts {
        Parts {
            what: "a rate".to_owned(),
            place: "figure 1".to_owned(),
            printed: Printed::Number(printed),
            is_limit: false,
            unit: "Gb/s".to_owned(),
            ours,
            given: String::new(),
            without: Verdict::NotBuilt,
            why: "not known".to_owned(),
        }
    }

    #[test]
    fn a_row_has_one_of_five_verdicts() {
        let row = |parts: Parts| parts.row();
        let agrees = row(parts(12.9, Some(12.0)));
        assert_eq!(agrees.line, "| a rate | 12.9 Gb/s (figure 1) | 12 Gb/s | 0.93 | agrees |  |\n");
        assert_eq!(row(parts(12.9, Some(10.9))).verdict, Verdict::Differs);
        assert!(row(parts(12.9, Some(10.9))).line.ends_with("| differs | not known |\n"));
        let given = Parts { given: "the limit".to_owned(), ..parts(12.9, Some(12.9)) };
        assert!(row(given.clone()).line.ends_with("| given | an input: the limit; not known |\n"));
        assert_eq!(row(Parts { ours: Some(3.0), ..given }).verdict, Verdict::Differs, "it does not come out");
        let missing = row(parts(0.05, None));
        assert_eq!(missing.line, "| a rate | 0.05 Gb/s (figure 1) | – | – | not built | not known |\n");
        let unmeasured = Parts { without: Verdict::NotMeasured, ..parts(3.0, None) };
        assert_eq!(row(unmeasured).verdict, Verdict::NotMeasured);
        let limit = |ours| Parts { is_limit: true, ..parts(1.0, Some(ours)) }.row();
        assert_eq!((limit(0.0).verdict, limit(1.2).verdict), (Verdict::Agrees, Verdict::Differs));
        assert!(limit(0.0).line.contains("| less than 1 Gb/s (figure 1) |"));
        // Nothing but 0 is near 0.
        assert_eq!(row(parts(0.0, Some(0.001))).verdict, Verdict::Differs);
        let text = Parts { printed: Printed::Text("equal".to_owned()), ..parts(0.0, Some(1.0)) };
        assert_eq!(row(text).verdict, Verdict::NotBuilt);
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        for verdict in Verdict::ALL {
            let line = format!("| a | 3 (figure 1) | 4 | 1.33 | {} | why |\n", verdict.word());
            assert_eq!(Row::read(&line), Some(Row { line: line.clone(), verdict }));
        }
        assert_eq!(Row::read("| a | 3 | 4 | 1.33 | yes |  |"), None);
        let numbers = [0.000_04, 0.7642, 99.9, 509.25, 336_960.0, 2450.13, 68.0].map(number);
        assert_eq!(numbers, ["0.00004", "0.7642", "99.9", "509.2", "336960", "2450", "68"]);
    }
}
