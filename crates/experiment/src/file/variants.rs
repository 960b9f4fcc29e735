//! Variants: the axes of a file, and their combinations.
//!
//! `[variants]` gives one key several values: `pm.mode = ["off", "on"]` is an axis `pm.mode` with two choices.
//! `[choices.AXIS.LABEL]` gives several keys at once a value under one label.

use super::error::{At, Wrong};
use super::reader::as_table;
use super::tree::{Entry, Kind, Value};

/// The most axes and the most choices of one.
const AXES_MAX: usize = 8;
const CHOICES_MAX: usize = 64;

/// One axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) choices: Vec<AxisChoice>,
}

/// One choice on it: what is laid upon the document.
#[derive(Clone, Debug)]
pub(crate) struct AxisChoice {
    pub(crate) label: String,
    pub(crate) entries: Vec<Entry>,
}

/// Takes the axes out of a document, in the order of the file.
pub(crate) fn take(document: &mut Vec<Entry>) -> Result<Vec<Axis>, Wrong> {
    let mut axes: Vec<(At, Axis)> = Vec::new();
    for entry in take_entry(document, "variants")? {
        let mut path = vec![(entry.key.clone(), entry.at)];
        keys(&entry.value, &mut path, &mut axes)?;
    }
    for entry in take_entry(document, "choices")? {
        let mut choices = Vec::new();
        for choice in as_table(&entry.value, &format!("[choices.{}]", entry.key))? {
            let entries = as_table(&choice.value, &format!("[choices.{}.{}]", entry.key, choice.key))?;
            choices.push(AxisChoice { label: choice.key.clone(), entries: entries.to_vec() });
        }
        axes.push((entry.at, Axis { name: entry.key.clone(), choices }));
    }
    axes.sort_by_key(|(at, _)| *at);
    check(&axes)?;
    Ok(axes.into_iter().map(|(_, axis)| axis).collect())
}

fn take_entry(document: &mut Vec<Entry>, key: &str) -> Result<Vec<Entry>, Wrong> {
    let Some(found) = document.iter().position(|entry| entry.key == key) else { return Ok(Vec::new()) };
    let entry = document.remove(found);
    as_table(&entry.value, &format!("[{key}]")).map(<[Entry]>::to_vec)
}

/// Walks down to the lists: each is an axis, called by its path.
fn keys(value: &Value, path: &mut Vec<(String, At)>, axes: &mut Vec<(At, Axis)>) -> Result<(), Wrong> {
    match &value.kind {
        Kind::Table(entries) => {
            for entry in entries {
                path.push((entry.key.clone(), entry.at));
                keys(&entry.value, path, axes)?;
                path.pop();
            }
            Ok(())
        }
        Kind::Array(items) => {
            let names: Vec<&str> = path.iter().map(|(name, _)| name.as_str()).collect();
            let name = names.join(".");
            let choice = |item: &Value| {
                let label = item.label().ok_or_else(|| {
                    let message = format!("a choice of `{name}` cannot be {}", item.described());
                    Wrong::new(item.at, message).allowed("tables are chosen by [choices.AXIS.LABEL]")
                })?;
                Ok(AxisChoice { label, entries: wrapped(path, item) })
            };
            let choices = items.iter().map(choice).collect::<Result<_, Wrong>>()?;
            axes.push((path.first().map_or(At::default(), |(_, at)| *at), Axis { name, choices }));
            Ok(())
        }
        _ => {
            let message = format!("a variant takes a list of values, not {}", value.described());
            Err(Wrong::new(value.at, message).allowed("as in `pm.mode = [\"off\", \"on\"]`"))
        }
    }
}

/// The value under its path, as tables within tables.
fn wrapped(path: &[(String, At)], value: &Value) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut inner = value.clone();
    for (key, at) in path.iter().rev() {
        entries = vec![Entry { key: key.clone(), at: *at, value: inner }];
        inner = Value { at: *at, kind: Kind::Table(entries.clone()) };
    }
    entries
}

fn check(axes: &[(At, Axis)]) -> Result<(), Wrong> {
    if let Some((at, _)) = axes.get(AXES_MAX) {
        return Err(Wrong::new(*at, format!("more than {AXES_MAX} axes of variants")));
    }
    for (place, (at, axis)) in axes.iter().enumerate() {
        let name = &axis.name;
        if axes[..place].iter().any(|(_, other)| other.name == *name) {
            return Err(Wrong::new(*at, format!("the axis `{name}` stands twice")));
        }
        if axis.choices.is_empty() || axis.choices.len() > CHOICES_MAX {
            return Err(Wrong::new(*at, format!("the axis `{name}` must have 1 to {CHOICES_MAX} choices")));
        }
        for (nth, choice) in axis.choices.iter().enumerate() {
            if axis.choices[..nth].iter().any(|other| other.label == choice.label) {
                return Err(Wrong::new(*at, format!("the axis `{name}` has two choices `{}`", choice.label)));
            }
        }
    }
    Ok(())
}

/// Every combination of choices; the last axis changes fastest.
pub(crate) fn combinations(axes: &[Axis], max: usize) -> Result<Vec<Vec<(String, String)>>, Wrong> {
    let mut all = vec![Vec::new()];
    for axis in axes {
        if all.len() * axis.choices.len() > max {
            return Err(Wrong::new(
                At::default(),
                format!("the variants come to more than {max} combinations"),
            ));
        }
        let with = |chosen: &Vec<(String, String)>| {
            let chosen = chosen.clone();
            let each = move |choice: &AxisChoice| {
                [chosen.as_slice(), &[(axis.name.clone(), choice.label.clone())]].concat()
            };
            axis.choices.iter().map(each).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    Ok(all)
}
