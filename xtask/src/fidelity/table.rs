//! docs/fidelity.toml: printed values that no report has, and where each figure and table of the papers has its rows.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::row::{Parts, Printed, Row, Verdict};
use super::section::Section;

/// Stands before the names of sections that this file makes.
pub(super) const NO_REPORT: &str = "No report, ";

/// The file.
#[derive(Default)]
pub(super) struct Table {
    /// Its sections, in order.
    pub(super) sections: Vec<Section>,
    /// The papers' figures and tables.
    figures: Vec<Figure>,
    /// What the papers propose without a value: what, its state, why. Written as rows.
    ideas: String,
    /// The tests and pages that rows have their values from.
    pub(super) witnesses: Vec<String>,
}

/// A figure or table, or several, and which sections have its rows.
struct Figure {
    paper: String,
    figure: String,
    sections: Vec<String>,
    /// Why it has none.
    why: String,
}

impl Table {
    pub(super) fn load(root: &Path) -> Result<Self> {
        let path = root.join("docs/fidelity.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("in {}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let file: Value = toml::from_str(text).context("invalid TOML")?;
        known(&file, &["section", "figure", "idea"])?;
        let mut table = Self::default();
        for section in list(&file["section"]) {
            known(section, &["name", "source", "row"])?;
            let name = text_of(section, "name")?;
            let rows = list(&section["row"]).iter().map(|row| table.row(row));
            let rows = rows.collect::<Result<Vec<_>>>().with_context(|| format!("section {name:?}"))?;
            let (name, source) = (format!("{NO_REPORT}{name}"), text_of(section, "source")?);
            table.sections.push(Section { name, source, rows });
        }
        for figure in list(&file["figure"]) {
            known(figure, &["paper", "figure", "sections", "why"])?;
            let sections = list(&figure["sections"]).iter().filter_map(Value::as_str).map(str::to_owned);
            let figure = Figure {
                paper: text_of(figure, "paper")?,
                figure: text_of(figure, "figure")?,
                sections: sections.collect(),
                why: optional(figure, "why"),
            };
            if figure.sections.is_empty() == figure.why.is_empty() {
                bail!(
                    "{}, {}: `sections` has its rows, or `why` says why there are none",
                    figure.paper,
                    figure.figure
                );
            }
            table.figures.push(figure);
        }
        for idea in list(&file["idea"]) {
            known(idea, &["what", "state", "why"])?;
            let [what, state, why] = ["what", "state", "why"].map(|key| text_of(idea, key));
            table.ideas += &format!("| {} | {} | {} |\n", what?, state?, why?);
        }
        Ok(table)
    }

    fn row(&mut self, row: &Value) -> Result<Row> {
        known(
            row,
            &["what", "place", "printed", "is_limit", "unit", "ours", "by", "given", "verdict", "why"],
        )?;
        let what = text_of(row, "what")?;
        let printed = match &row["printed"] {
            Value::String(text) => Printed::Text(text.clone()),
            value => Printed::Number(value.as_f64().with_context(|| format!("{what}: no `printed`"))?),
        };
        let (ours, by, why) = (row["ours"].as_f64(), optional(row, "by"), optional(row, "why"));
        if ours.is_some() == by.is_empty() {
            bail!("{what}: `by` names the test or the page that has `ours`, and both stand or none");
        }
        if !by.is_empty() {
            self.witnesses.push(by.clone());
        }
        let without = match row["verdict"].as_str() {
            None | Some("not built") => Verdict::NotBuilt,
            Some("not measured") => Verdict::NotMeasured,
            Some(word) => {
                bail!("{what}: `verdict` is not built or not measured, and not {word:?}: others are computed")
            }
        };
        let why = match (by.is_empty(), why.is_empty()) {
            (true, _) => why,
            (false, true) => format!("by {by}"),
            (false, false) => format!("{why}; by {by}"),
        };
        if why.is_empty() {
            bail!("{what}: `why` says what is missing, or names an issue");
        }
        let (place, unit, given) = (text_of(row, "place")?, optional(row, "unit"), optional(row, "given"));
        let is_limit = row["is_limit"].as_bool().unwrap_or_default();
        Ok(Parts { what, place, printed, is_limit, unit, ours, given, without, why }.row())
    }

    /// What the papers propose and print no value for.
    pub(super) fn ideas(&self) -> String {
        format!("\n## Ideas without a value\n\n| what | state | why |\n|---|---|---|\n{}", self.ideas)
    }

    /// Where each figure and table has its rows. Fails when it is no section of the page.
    pub(super) fn index(&self, sections: &[Section]) -> Result<String> {
        let mut text = String::from(
            "\n## Every figure and table\n\n| paper | figure or table | rows |\n|---|---|---|\n",
        );
        for Figure { paper, figure, sections: named, why } in &self.figures {
            let known = |name: &&String| {
                sections.iter().any(|section| {
                    section.name == **name || section.name.strip_prefix(NO_REPORT) == Some(*name)
                })
            };
            if let Some(unknown) = named.iter().find(|name| !known(name)) {
                bail!("docs/fidelity.toml: {paper}, {figure}: the page has no section {unknown:?}");
            }
            let rows = if why.is_empty() { named.join(", ") } else { format!("none: {why}") };
            text += &format!("| {paper} | {figure} | {rows} |\n");
        }
        Ok(text)
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn optional(of: &Value, key: &str) -> String {
    of[key].as_str().unwrap_or_default().to_owned()
}

fn text_of(of: &Value, key: &str) -> Result<String> {
    let text = of[key].as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).with_context(|| format!("no `{key}` in {of}"))
}

fn known(of: &Value, keys: &[&str]) -> Result<()> {
    let unknown = of.as_object().and_then(|object| object.keys().find(|key| !keys.contains(&key.as_str())));
    match unknown {
        Some(key) => bail!("unknown key `{key}`; there are {}", keys.join(", ")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(row: &str) -> String {
        let text = format!("[[section]]\nname = \"a\"\nsource = \"b\"\n[[section.row]]\n{row}");
        let error = Table::parse(&text).err().expect("it is wrong");
        format!("{error:#}")
    }

    #[test]
    fn a_row_says_why_or_where_it_is_measured() {
        let row = "what = \"w\"\nplace = \"figure 1\"\nprinted = 3\n";
        assert!(error(row).ends_with("w: `why` says what is missing, or names an issue"));
        assert!(error(&format!("{row}ours = 3")).contains("w: `by` names the test or the page"));
        assert!(error(&format!("{row}why = \"x\"\nverdict = \"agrees\"")).contains("others are computed"));
        assert!(error(&format!("{row}wy = \"x\"")).contains("unknown key `wy`"));
        assert!(error("what = \"w\"\nplace = \"p\"").contains("w: no `printed`"));
        assert!(Table::parse("[[figure]]\npaper = \"p\"\nfigure = \"1\"").is_err());
        let good = format!(
            "[[section]]\nname = \"a\"\nsource = \"b\"\n[[section.row]]\n{row}ours = 3\nby = \"a_test\"\n[[figure]]\npaper = \"p\"\nfigure = \"1\"\nsections = [\"a\"]"
        );
        let table = Table::parse(&good).unwrap();
        assert_eq!(table.witnesses, ["a_test"]);
        assert_eq!(table.sections[0].rows[0].line, "| w | 3 (figure 1) | 3 | 1.00 | agrees | by a_test |\n");
        assert!(table.index(&table.sections).unwrap().ends_with("| p | 1 | a |\n"));
        assert!(table.index(&[]).unwrap_err().to_string().contains("the page has no section \"a\""));
    }
}
