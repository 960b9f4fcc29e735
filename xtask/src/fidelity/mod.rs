//! docs/fidelity.md, from the reports of runs: every figure that a paper prints, beside what was measured.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

const HEAD: &str = "# Fidelity: what the papers print, and what weft measures

Made by `weft run experiments/ --all --virtual --report OUT`, `weft study migrations --table4 --report OUT/migrations`, `weft bench smp --lft --report OUT/smp` where `weft up` was told `--smp-processing-us 390`, and
`cargo xtask fidelity OUT`, which leaves the sections alone that OUT has no report for; nothing here is written by hand. Each row is
a figure that a paper prints for a system that an experiment builds, with ours as the mean over the seeds. They agree when
ours is within 15 % of the printed one, and do not otherwise; no row has another tolerance. The verdict says nothing of what a
credit-based model gives: each report holds its lines against closed forms as well, in a table of its own.
Routing's figures, which need no run, are in [the routing report](routing-report.md).

";

/// Writes the page to docs/fidelity.md from all `report.json` in these folders and in the folders right below them. What was not run
/// again stays as the page has it.
pub(crate) fn write(root: &Path, folders: &[String]) -> Result<()> {
    let mut reports = Vec::new();
    for folder in folders {
        reports.extend(found(Path::new(folder))?);
    }
    if reports.is_empty() {
        bail!(
            "no report.json in {folders:?}\nhint: weft run experiments/ --all --virtual --report OUT, then cargo xtask fidelity OUT"
        );
    }
    let mut pages = Vec::new();
    for path in reports {
        pages.push(Section::of(&read(&path)?).with_context(|| format!("{} is no report", path.display()))?);
    }
    let place = root.join("docs/fidelity.md");
    let before = fs::read_to_string(&place).unwrap_or_default();
    pages = with_others(pages, before.split("\n## ").skip(1).filter_map(Section::read));
    let run: Vec<&str> = pages.iter().map(|section| section.file.as_str()).collect();
    let missing = unrun(&root.join("experiments"), &run)?;
    fs::write(&place, page(pages, &missing)).with_context(|| format!("cannot write {}", place.display()))
}

/// Fails unless a figure of a report is within this share of what the paper prints.
pub(crate) fn is_near(folder: &str, what: &str, share: f64) -> Result<()> {
    let path = Path::new(folder).join("report.json");
    near(&read(&path)?, what, share).with_context(|| format!("in {}", path.display()))
}

fn read(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("invalid JSON: {}", path.display()))
}

fn near(report: &Value, what: &str, share: f64) -> Result<()> {
    let rows = report["fidelity"].as_array().map_or(&[][..], Vec::as_slice);
    let row = rows.iter().find(|row| row["what"].as_str().is_some_and(|text| text.starts_with(what)));
    let ratio = row.and_then(|row| row["ratio"].as_f64());
    let ratio = ratio.with_context(|| format!("no figure of {what}"))?;
    if (ratio - 1.0).abs() > share {
        bail!("{what}: {ratio:.3} times what the paper prints, more than {share} off");
    }
    Ok(())
}

/// The experiments that have printed figures and no report.
fn unrun(folder: &Path, run: &[&str]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if text.contains("\npaper = ") && !run.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn found(folder: &Path) -> Result<Vec<PathBuf>> {
    let own = folder.join("report.json");
    if own.exists() {
        return Ok(vec![own]);
    }
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut below = Vec::new();
    for entry in entries {
        below.push(entry?.path().join("report.json"));
    }
    below.retain(|path| path.exists());
    Ok(below)
}

/// One experiment's rows.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Section {
    file: String,
    source: String,
    rows: Vec<(String, bool)>,
}

impl Section {
    fn of(report: &Value) -> Option<Self> {
        let file = report["file"].as_str()?.rsplit('/').next()?.to_owned();
        let source = report["experiment"]["source"].as_str()?.to_owned();
        let row = |row: &Value| Some((row["markdown"].as_str()?.to_owned(), row["agrees"].as_bool()?));
        let rows = report["fidelity"].as_array()?.iter().map(row).collect::<Option<_>>()?;
        Some(Self { file, source, rows })
    }

    /// A section of the page, behind `## `.
    fn read(text: &str) -> Option<Self> {
        let (head, rest) = text.split_once("\n\n")?;
        let (source, table) = rest.split_once(".\n\n")?;
        let agrees = |row: &str| Some(row.rsplit('|').nth(2)?.trim() == "yes");
        let row = |row: &str| Some((format!("{row}\n"), agrees(row)?));
        let rows = table.lines().skip(2).map(row).collect::<Option<_>>()?;
        Some(Self { file: head.rsplit_once(": ")?.0.to_owned(), source: source.to_owned(), rows })
    }
}

/// New sections, and those of the others that are of other files.
fn with_others(mut new: Vec<Section>, others: impl Iterator<Item = Section>) -> Vec<Section> {
    let others: Vec<Section> =
        others.filter(|old| new.iter().all(|section| section.file != old.file)).collect();
    new.extend(others);
    new
}

/// The whole page, in the order of the files' names.
fn page(mut sections: Vec<Section>, missing: &[String]) -> String {
    sections.sort();
    let rows = || sections.iter().flat_map(|section| &section.rows);
    let (all, agree) = (rows().count(), rows().filter(|(_, agrees)| *agrees).count());
    let mut text = format!("{HEAD}{agree} of {all} agree.\n");
    if !missing.is_empty() {
        text += &format!("\nNot run: {}.\n", missing.join(", "));
    }
    for Section { file, source, rows } in sections.iter().filter(|section| !section.rows.is_empty()) {
        let agree = rows.iter().filter(|(_, agrees)| *agrees).count();
        text += &format!("\n## {file}: {agree} of {}\n\n{source}.\n\n", rows.len());
        text += "| what | paper | ours | ratio | agrees | why they differ |\n|---|---|---|---|---|---|\n";
        rows.iter().for_each(|(row, _)| text += row);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_begins_as_it_is_written() {
        let page = std::fs::read_to_string(crate::root().join("docs/fidelity.md")).unwrap();
        assert!(page.starts_with(HEAD), "run `cargo xtask fidelity` again");
    }

    #[test]
    fn a_figure_is_near_or_not() {
        let report = serde_json::json!({"fidelity": [{"what": "4608 of them", "ratio": 1.04}]});
        let near = |what, share| super::near(&report, what, share);
        near("4608", 0.05).unwrap();
        assert!(near("4608", 0.03).unwrap_err().to_string().contains("1.040 times"));
        near("3240", 0.05).unwrap_err();
    }

    #[test]
    fn rows_are_taken_over_and_counted() {
        let report = |file: &str, agrees: [bool; 2]| {
            let row = |agrees: bool| format!(r#"{{"markdown": "| {agrees} |\n", "agrees": {agrees}}}"#);
            let rows = agrees.map(row).join(",");
            let text = format!(
                r#"{{"file": "x/{file}", "experiment": {{"source": "a paper"}}, "fidelity": [{rows}]}}"#
            );
            Section::of(&serde_json::from_str(&text).unwrap()).unwrap()
        };
        let text = page(
            vec![report("b.toml", [true, true]), report("a.toml", [true, false])],
            &["c.toml".to_owned()],
        );
        assert!(text.contains("\n3 of 4 agree.\n\nNot run: c.toml.\n"), "{text}");
        let [a, b] = ["## a.toml: 1 of 2", "## b.toml: 2 of 2"].map(|head| text.find(head).unwrap());
        assert!(a < b);
        assert!(text.ends_with("|---|---|---|---|---|---|\n| true |\n| true |\n"), "{text}");
        assert_eq!(Section::of(&serde_json::json!({ "file": "x" })), None);
    }

    #[test]
    fn sections_that_were_not_rerun_stay() {
        let section = |file: &str, agrees: bool| {
            let word = if agrees { "yes" } else { "no" };
            let rows = vec![(format!("| a rate | 3 % (figure 1) | 4 % | 1.33 | {word} |  |\n"), agrees)];
            Section { file: file.to_owned(), source: "A paper, section 7.2".to_owned(), rows }
        };
        let old = vec![section("a.toml", true), section("study x: y", false)];
        let text = page(old, &[]);
        let read = || text.split("\n## ").skip(1).filter_map(Section::read);
        assert_eq!(page(read().collect(), &[]), text);
        let merged = with_others(vec![section("a.toml", false)], read());
        assert_eq!(merged, [section("a.toml", false), section("study x: y", false)]);
    }
}
