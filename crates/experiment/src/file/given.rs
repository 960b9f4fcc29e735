//! `given`: the keys of the file that a printed value repeats. What goes in says nothing when it comes out again.

use super::error::{At, Wrong};
use super::reader::{Table, as_quantity, as_text};
use super::tree::{Entry, Kind};
use crate::{Paper, Rates};

/// Tables that say what comes out.
const RESULTS: [&str; 3] = ["expect", "gain", "figure"];
/// The greatest input.
const INPUT_MAX: f64 = 1e12;

/// What goes into a run.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) document: &'a [Entry],
    pub(crate) rates: &'a Rates,
}

impl<'a> Inputs<'a> {
    /// With those of `[inputs]`: numbers that other files bring, such as the rate of a topology's cables. Only `given` reads them.
    pub(crate) fn new<'d: 'a>(top: &mut Table<'d>, rates: &'a Rates) -> Result<Self, Wrong> {
        let mut table = top.table("inputs")?;
        for entry in table.all() {
            as_quantity(&entry.value, &entry.key, "the unit in the key's name", INPUT_MAX)?;
        }
        Ok(Self { document: top.document(), rates })
    }

    /// The text of `given`, if its value is as near to the printed one as agreement asks for.
    pub(crate) fn given(&self, table: &mut Table<'_>, printed: f64) -> Result<String, Wrong> {
        let Some(value) = table.get("given") else { return Ok(String::new()) };
        let text = as_text(value, "given")?;
        let input = self.value(&text, value.at)?;
        let percent = Paper::AGREEMENT_PERCENT;
        if (input - printed).abs() > printed.abs() * percent / 100.0 {
            // With hardware of another generation, which the command line names, the paper's value is no input.
            if self.has_other_hardware() {
                return Ok(String::new());
            }
            let message = format!("`given` comes to {input:.4}, and the paper prints {printed}");
            return Err(Wrong::new(value.at, message)
                .allowed(format!("a printed value is given where an input is within {percent} % of it")));
        }
        Ok(text)
    }

    /// Whether the profile stands in no file.
    fn has_other_hardware(&self) -> bool {
        let rates = self.document.iter().find(|entry| entry.key == "rates");
        let Some(Kind::Table(rates)) = rates.map(|entry| &entry.value.kind) else { return false };
        rates.iter().any(|entry| entry.key == "profile" && entry.at == At::default())
    }

    /// `KEY`, or keys and numbers with + - * / between spaces; * and / first.
    fn value(&self, text: &str, at: At) -> Result<f64, Wrong> {
        let mut sum = 0.0;
        let (mut product, mut operator, mut names) = (0.0, "+", 0);
        for (nth, word) in text.split_whitespace().enumerate() {
            if nth % 2 == 1 {
                operator = word;
                continue;
            }
            let factor = match word.parse::<f64>() {
                Ok(number) => number,
                Err(_) => {
                    names += 1;
                    self.input(word, at)?
                }
            };
            match operator {
                "+" => (sum, product) = (sum + product, factor),
                "-" => (sum, product) = (sum + product, -factor),
                "*" => product *= factor,
                "/" => product /= factor,
                _ => {
                    let message =
                        format!("`{operator}` in `given` is no sum, difference, product or quotient");
                    return Err(Wrong::new(at, message).allowed("write spaces round +, -, * and /"));
                }
            }
        }
        if names == 0 || text.split_whitespace().count().is_multiple_of(2) {
            let wrong = Wrong::new(at, "`given` names the keys of this file whose value the paper's repeats");
            return Err(wrong.allowed("as in `given = \"host_limit_gbps / 3\"`"));
        }
        Ok(sum + product)
    }

    /// A number of the file by its key, alone or behind those of its tables; or what the rates have where the file is silent.
    fn input(&self, name: &str, at: At) -> Result<f64, Wrong> {
        let mut found = Vec::new();
        for entry in self.document.iter().filter(|entry| !RESULTS.contains(&entry.key.as_str())) {
            numbers(&entry.key, &entry.value.kind, name, &mut found);
        }
        let first = found.first().copied();
        if found.iter().any(|value| Some(*value) != first) {
            let wrong = Wrong::new(at, format!("`{name}` has several values in this file"));
            return Err(wrong.allowed("name its tables too, as in `vm.VMa.stop_copy`"));
        }
        let rates = self.rates;
        let usual = match name {
            "host_limit_gbps" => Some(f64::from(rates.host_limit_mbps) / 1000.0),
            "host_bus_gbps" => Some(f64::from(rates.host_bus_mbps) / 1000.0),
            "message_overhead_ns" => Some(f64::from(rates.message_overhead_ns)),
            "switch_latency_ns" => Some(f64::from(rates.crossbar.latency_ns)),
            "cable_m" => Some(f64::from(rates.cable_m)),
            _ => None,
        };
        first.or(usual).ok_or_else(|| {
            Wrong::new(at, format!("`given` names `{name}`, which is no number of this file"))
                .allowed("name a key of this file; what another file brings stands in [inputs]")
        })
    }
}

/// The numbers of all keys that are called so, with or without the tables before them.
fn numbers(path: &str, kind: &Kind, name: &str, found: &mut Vec<f64>) {
    let is_it = || path == name || path.strip_suffix(name).is_some_and(|before| before.ends_with('.'));
    match kind {
        Kind::Integer(number) if is_it() => found.push(*number as f64),
        Kind::Float(number) if is_it() => found.push(*number),
        Kind::Array(items) => items.iter().for_each(|item| numbers(path, &item.kind, name, found)),
        Kind::Table(entries) => {
            for entry in entries {
                numbers(&format!("{path}.{}", entry.key), &entry.value.kind, name, found);
            }
        }
        _ => {}
    }
}
