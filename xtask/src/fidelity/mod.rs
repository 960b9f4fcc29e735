//! docs/fidelity.md: every figure that a paper prints, beside what was measured, from the reports of runs and from docs/fidelity.toml.

mod row;
mod section;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use row::{Row, counted};
use section::Section;
use table::{NO_REPORT, Table};

const HEAD: &str = "# Fidelity: what the papers print, and what weft measures

Made by `weft run experiments/ --all --virtual --report OUT`, `weft study migrations --table4 --report OUT/migrations`, `weft bench smp --lft --report OUT/smp` where `weft up` was told `--smp-processing-us 390`,
`cargo run --profile dist -p weft-routing --example pftree_report -- --report OUT/pftree`, and `cargo xtask fidelity OUT`, which leaves the sections alone that OUT has no report for; nothing here is written by hand. Each row is
a value that a paper prints, and ours is the mean over the seeds. It

* **agrees** when ours is within 15 % of the printed one, and **differs** otherwise; no row has another tolerance. The verdict says nothing of what a
  credit-based model gives: each report holds its lines against closed forms as well, in a table of its own;
* is **given** when it goes into the run, so that it says nothing when it comes out: it counts neither way. The experiment's file says by `given` which input it repeats;
* is **not built**, with the reason or the issue, or **not measured** where weft has what it is about and no report has the value. Both come from [fidelity.toml](fidelity.toml), and so do rows that a
  test or another page measures: they name it.

";

/// Writes the page to docs/fidelity.md from all `report.json` in these folders and in the folders right below them. What was not run
/// again stays as the page has it.
pub(crate) fn write(root: &Path, folders: &[String]) -> Result<()> {
    let mut reports = Vec::new();
    for folder in folders {
        reports.extend(found(Path::new(folder))?);
    }
    if reports.is_empty() && !folders.is_empty() {
        bail!(
            "no report.json in {folders:?}\nhint: weft run experiments/ --all --virtual --report OUT, then cargo xtask fidelity OUT"
        );
    }
    let mut sections = Vec::new();
    for path in reports {
        sections
            .push(Section::of(&read(&path)?).with_context(|| format!("{} is no report", path.display()))?);
    }
    let place = root.join("docs/fidelity.md");
    let before = fs::read_to_string(&place).unwrap_or_default();
    let page = page(root, with_others(sections, kept(&before)))?;
    fs::write(&place, page).with_context(|| format!("cannot write {}", place.display()))
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

/// The experiments that have lines with printed values and no report.
fn unrun(folder: &Path, run: &[&str]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file: Value =
            toml::from_str(&text).with_context(|| format!("invalid TOML: {}", path.display()))?;
        let mut lines = ["expect", "gain"].into_iter().filter_map(|key| file[key].as_array()).flatten();
        if lines.any(|line| !line["paper"].is_null()) && !run.contains(&name.as_str()) {
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

/// The sections of a page that reports have made.
fn kept(page: &str) -> Vec<Section> {
    let sections = page.split("\n## ").skip(1).filter_map(Section::read);
    sections.filter(|section| !section.name.starts_with(NO_REPORT)).collect()
}

/// New sections, and those of the others that are of other reports.
fn with_others(mut new: Vec<Section>, others: Vec<Section>) -> Vec<Section> {
    let others: Vec<Section> =
        others.into_iter().filter(|old| new.iter().all(|section| section.name != old.name)).collect();
    new.extend(others);
    new
}

/// The whole page: the reports' sections in the order of their names, and then those of docs/fidelity.toml.
fn page(root: &Path, mut sections: Vec<Section>) -> Result<String> {
    let table = Table::load(root)?;
    sections.retain(|section| !section.rows.is_empty());
    sections.sort();
    let run: Vec<&str> = sections.iter().map(|section| section.name.as_str()).collect();
    let missing = unrun(&root.join("experiments"), &run)?;
    sections.extend(table.sections.iter().cloned());
    let mut text = format!("{HEAD}{}\n", summary(&sections));
    if !missing.is_empty() {
        text += &format!("\nNot run: {}.\n", missing.join(", "));
    }
    text += &table.index(&sections)?;
    sections.iter().for_each(|section| text += &section.text());
    text += &table.ideas();
    Ok(text)
}

/// `300 printed values: 100 agree, 90 differ, 30 given, 80 not built.`
fn summary(sections: &[Section]) -> String {
    let rows: Vec<&Row> = sections.iter().flat_map(|section| &section.rows).collect();
    format!("**{} printed values: {}.**", rows.len(), counted(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use row::Verdict;

    fn committed(name: &str) -> String {
        fs::read_to_string(crate::root().join(name)).unwrap()
    }

    fn all_sections(page: &str) -> Vec<Section> {
        page.split("\n## ").skip(1).filter_map(Section::read).collect()
    }

    /// The page is what its own reports' sections and docs/fidelity.toml come to, to the letter.
    #[test]
    fn the_page_is_what_is_written_today() {
        let before = committed("docs/fidelity.md");
        let page = page(&crate::root(), kept(&before)).unwrap();
        assert!(page == before, "run `cargo xtask fidelity` again");
    }

    /// The words beside the ratios are those of the one rule, as far as two digits of a ratio tell.
    #[test]
    fn verdicts_follow_from_the_ratios() {
        let sections = all_sections(&committed("docs/fidelity.md"));
        assert!(sections.len() > 20);
        for row in sections.iter().flat_map(|section| &section.rows) {
            let cells: Vec<&str> = row.line.split('|').map(str::trim).collect();
            let Ok(ratio) = cells[4].parse::<f64>() else { continue };
            let off = (ratio - 1.0).abs();
            match row.verdict {
                Verdict::Differs => assert!(off > 0.145, "{}", row.line),
                _ => {
                    assert!(off < 0.155 || cells[2].starts_with("less than") && ratio <= 1.0, "{}", row.line);
                }
            }
        }
        let rule = committed("crates/experiment/src/spec/expect.rs");
        assert!(rule.contains(&format!("AGREEMENT_PERCENT: f64 = {:.1};", row::AGREEMENT_PERCENT)));
    }

    /// What README says of the page is what the page says.
    #[test]
    fn readme_has_the_pages_numbers() {
        let page = committed("docs/fidelity.md");
        let summary = summary(&all_sections(&page));
        assert!(page.contains(&summary));
        let words = summary.trim_matches('*').trim_end_matches('.');
        assert!(committed("README.md").contains(words), "README.md does not say: {words}");
    }

    /// Values without a report name a test of this repository or a page that has them.
    #[test]
    fn witnesses_are_there() {
        let sources: String = crate::files::rust_files(&crate::root().join("crates"))
            .unwrap()
            .iter()
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        for witness in Table::load(&crate::root()).unwrap().witnesses {
            let is_page = witness.starts_with("docs/") && crate::root().join(&witness).exists();
            assert!(
                is_page || sources.contains(&format!("fn {witness}(")),
                "no test and no page is {witness}"
            );
        }
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
    fn reports_become_sections_with_their_counts() {
        let line = |word: &str| format!("| a | 3 % (figure 1) | 4 % | 1.33 | {word} |  |\n");
        let report = serde_json::json!({
            "file": "x/a.toml",
            "experiment": { "source": "A paper" },
            "fidelity": [
                { "markdown": line("agrees") },
                { "markdown": line("given") },
                { "what": "b", "unit": "", "ours": 86.0, "paper": { "value": 99.9, "is_limit": false, "source": "table 4", "why": "w", "given": "" } },
            ],
        });
        let section = Section::of(&report).unwrap();
        let text = section.text();
        assert!(text.starts_with("\n## a.toml: 2 agree, 1 given\n\nA paper.\n\n| what |"), "{text}");
        assert!(text.ends_with("| b | 99.9 (table 4) | 86 | 0.86 | agrees | w |\n"), "{text}");
        assert_eq!(Section::of(&serde_json::json!({ "file": "x" })), None);
        assert_eq!(summary(&[section]), "**3 printed values: 2 agree, 1 given.**");
    }

    #[test]
    fn sections_that_were_not_rerun_stay() {
        let section = |name: &str, verdict: Verdict| {
            let line = format!("| a rate | 3 % (figure 1) | 4 % | 1.33 | {} |  |\n", verdict.word());
            let rows = vec![Row { line, verdict }];
            Section { name: name.to_owned(), source: "A paper, section 7.2".to_owned(), rows }
        };
        let [a, study] = [section("a.toml", Verdict::Agrees), section("study x: y", Verdict::Differs)];
        let table = section(&format!("{NO_REPORT}z"), Verdict::NotBuilt);
        let text = [&a, &study, &table].map(Section::text).concat();
        assert_eq!(kept(&text), [a, study.clone()], "what is not of a report is made anew");
        let new = section("a.toml", Verdict::Differs);
        assert_eq!(with_others(vec![new.clone()], kept(&text)), [new, study]);
    }
}
