//! Taking keys out of tables, with errors that say where, what, and what is allowed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use weft_machine::Time;

use super::error::{At, Wrong, choices};
use super::tree::{Entry, Kind, Value};

/// The longest time that a file may state, in seconds.
const SECONDS_MAX: f64 = 1e6;

/// What a text names; its place is kept for what is found out later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Topology,
    Host,
    Node,
    Port,
    Flow,
    Vm,
    Migration,
}

/// Where each name stands first.
pub(crate) type NamePositions = RefCell<BTreeMap<(Role, String), At>>;

/// A table from which keys are taken; what is left at the end is unknown.
pub(crate) struct Table<'a> {
    /// What it is called, for errors: `[flow.1-5]`.
    pub(crate) name: String,
    pub(crate) at: At,
    entries: &'a [Entry],
    known: Vec<&'static str>,
    places: &'a NamePositions,
}

impl<'a> Table<'a> {
    pub(crate) fn new(
        name: impl Into<String>,
        at: At,
        entries: &'a [Entry],
        places: &'a NamePositions,
    ) -> Self {
        Self { name: name.into(), at, entries, known: Vec::new(), places }
    }

    /// Where in the file it is, behind what errors say; nothing for the file itself.
    fn within(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!(" in {}", self.name) }
    }

    /// Notes where a name stands.
    pub(crate) fn place(&self, role: Role, name: &str, at: At) {
        self.places.borrow_mut().entry((role, name.to_owned())).or_insert(at);
    }

    /// The value of a key that the schema knows.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The value of a key that must be there.
    pub(crate) fn need(&mut self, key: &'static str, about: &str) -> Result<&'a Value, Wrong> {
        let (at, place) = (self.at, self.within());
        self.get(key).ok_or_else(|| Wrong::new(at, format!("missing key `{key}`{place} ({about})")))
    }

    /// A table within; an empty one where it is absent.
    pub(crate) fn table(&mut self, key: &'static str) -> Result<Table<'a>, Wrong> {
        let name = if self.name.is_empty() { format!("[{key}]") } else { format!("{}.{key}", self.name) };
        let (at, places) = (self.at, self.places);
        match self.get(key) {
            None => Ok(Table::new(name, at, &[], places)),
            Some(value) => as_table(value, &name).map(|entries| Table::new(name, value.at, entries, places)),
        }
    }

    /// Tables by name within: `[flow.1-5]`.
    pub(crate) fn named(&mut self, key: &'static str) -> Result<Vec<(String, Table<'a>)>, Wrong> {
        let places = self.places;
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let table = |entry: &'a Entry| {
            let name = format!("[{key}.{}]", entry.key);
            let entries = as_table(&entry.value, &name)?;
            Ok((entry.key.clone(), Table::new(name, entry.at, entries, places)))
        };
        as_table(value, &format!("[{key}]"))?.iter().map(table).collect()
    }

    /// A list of tables within: `[[fault]]`.
    pub(crate) fn list(&mut self, key: &'static str) -> Result<Vec<Table<'a>>, Wrong> {
        let places = self.places;
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let name = format!("[[{key}]]");
        let Kind::Array(items) = &value.kind else {
            return Err(wrong_kind(value, key, &format!("a list of tables, each begun by `{name}`")));
        };
        let table = |item: &'a Value| Ok(Table::new(name.clone(), item.at, as_table(item, &name)?, places));
        items.iter().map(table).collect()
    }

    /// All keys with their values, whatever they are called.
    pub(crate) fn all(&mut self) -> &'a [Entry] {
        self.known.extend([""]);
        self.entries
    }

    /// All keys with their values, of which none becomes known.
    pub(crate) fn document(&self) -> &'a [Entry] {
        self.entries
    }

    /// Gives what was made of its keys; fails at the first unknown key.
    pub(crate) fn finish<T>(self, made: T) -> Result<T, Wrong> {
        match self.entries.iter().find(|entry| !self.known.contains(&entry.key.as_str())) {
            None => Ok(made),
            Some(entry) => {
                let key: String = entry.key.chars().take(60).collect();
                let message = format!("unknown key `{key}`{}", self.within());
                Err(Wrong::new(entry.at, message).allowed(choices(&entry.key, &self.known)))
            }
        }
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Result<Option<String>, Wrong> {
        self.get(key).map(|value| as_text(value, key)).transpose()
    }

    /// A name of something; its place is kept.
    pub(crate) fn name_of(&mut self, key: &'static str, role: Role) -> Result<Option<String>, Wrong> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = as_text(value, key)?;
        self.place(role, &text, value.at);
        Ok(Some(text))
    }

    /// A name that must be there; its place is kept.
    pub(crate) fn need_name(&mut self, key: &'static str, role: Role, about: &str) -> Result<String, Wrong> {
        let value = self.need(key, about)?;
        let name = as_text(value, key)?;
        self.place(role, &name, value.at);
        Ok(name)
    }

    /// A name that must be there and be one of some; `unknown` says that it is none.
    pub(crate) fn known(
        &mut self,
        key: &'static str,
        about: &str,
        names: &[&str],
        unknown: impl FnOnce(&str) -> String,
    ) -> Result<String, Wrong> {
        let value = self.need(key, about)?;
        let name = as_text(value, key)?;
        if names.contains(&name.as_str()) {
            return Ok(name);
        }
        Err(Wrong::new(value.at, unknown(&name)).allowed(choices(&name, names)))
    }

    /// One of several values by its name.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Result<Option<T>, Wrong> {
        let words: Vec<&str> = all.iter().map(|one| name(*one)).collect();
        Ok(self.word(key, &words)?.map(|nth| all[nth]))
    }

    /// Names of things: one text or a list of them. Their places are kept.
    pub(crate) fn names_of(&mut self, key: &'static str, role: Role) -> Result<Vec<String>, Wrong> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let named = texts(value, key)?;
        for (text, at) in &named {
            self.place(role, text, *at);
        }
        Ok(named.into_iter().map(|(text, _)| text).collect())
    }

    pub(crate) fn flag(&mut self, key: &'static str, default: bool) -> Result<bool, Wrong> {
        match self.get(key) {
            None => Ok(default),
            Some(Value { kind: Kind::Boolean(value), .. }) => Ok(*value),
            Some(value) => Err(wrong_kind(value, key, "`true` or `false`")),
        }
    }

    /// A whole number within bounds.
    pub(crate) fn number<N: TryFrom<i64>>(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<i64>,
    ) -> Result<Option<N>, Wrong> {
        self.get(key).map(|value| as_number(value, key, bounds)).transpose()
    }

    /// A number within bounds, in a unit.
    pub(crate) fn quantity(&mut self, key: &'static str, unit: &str, max: f64) -> Result<Option<f64>, Wrong> {
        self.get(key).map(|value| as_quantity(value, key, unit, max)).transpose()
    }

    /// A time in wall-clock seconds.
    pub(crate) fn seconds(&mut self, key: &'static str) -> Result<Option<Time>, Wrong> {
        self.get(key).map(|value| as_seconds(value, key)).transpose()
    }

    /// One of several words, as its place among them.
    pub(crate) fn word(&mut self, key: &'static str, words: &[&str]) -> Result<Option<usize>, Wrong> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = as_text(value, key).map_err(|wrong| wrong.allowed(choices("", words)))?;
        match words.iter().position(|word| *word == text) {
            Some(found) => Ok(Some(found)),
            None => {
                let message = format!("`{key}` cannot be `{}`", text.chars().take(60).collect::<String>());
                Err(Wrong::new(value.at, message).allowed(choices(&text, words)))
            }
        }
    }

    /// What another crate parses.
    pub(crate) fn parsed<T: FromStr<Err: std::fmt::Display>>(
        &mut self,
        key: &'static str,
    ) -> Result<Option<T>, Wrong> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = as_text(value, key)?;
        text.parse().map(Some).map_err(|error: T::Err| Wrong::new(value.at, format!("`{key}`: {error}")))
    }

    /// Whole numbers within bounds: one or a list.
    pub(crate) fn numbers<N: TryFrom<i64>>(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<i64>,
    ) -> Result<Vec<N>, Wrong> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value { kind: Kind::Array(items), .. }) => {
                items.iter().map(|item| as_number(item, key, bounds.clone())).collect()
            }
            Some(value) => Ok(vec![as_number(value, key, bounds)?]),
        }
    }
}

pub(crate) fn wrong_kind(value: &Value, key: &str, wanted: &str) -> Wrong {
    Wrong::new(value.at, format!("`{key}` takes {wanted}, not {}", value.described()))
}

pub(crate) fn as_table<'a>(value: &'a Value, name: &str) -> Result<&'a [Entry], Wrong> {
    match &value.kind {
        Kind::Table(entries) => Ok(entries),
        _ => Err(Wrong::new(value.at, format!("{name} is a table, not {}", value.described()))),
    }
}

pub(crate) fn as_text(value: &Value, key: &str) -> Result<String, Wrong> {
    match &value.kind {
        Kind::Text(text) => Ok(text.clone()),
        _ => Err(wrong_kind(value, key, "a text in quotes")),
    }
}

/// One text or a list of them, with their places.
pub(crate) fn texts(value: &Value, key: &str) -> Result<Vec<(String, At)>, Wrong> {
    match &value.kind {
        Kind::Array(items) => items.iter().map(|item| Ok((as_text(item, key)?, item.at))).collect(),
        Kind::Text(text) => Ok(vec![(text.clone(), value.at)]),
        _ => Err(wrong_kind(value, key, "a text in quotes, or a list of them")),
    }
}

fn as_number<N: TryFrom<i64>>(value: &Value, key: &str, bounds: RangeInclusive<i64>) -> Result<N, Wrong> {
    let (least, most) = (*bounds.start(), *bounds.end());
    let wanted = format!("a whole number from {least} to {most}");
    let Kind::Integer(number) = value.kind else { return Err(wrong_kind(value, key, &wanted)) };
    let fits = bounds.contains(&number).then(|| N::try_from(number).ok()).flatten();
    fits.ok_or_else(|| wrong_kind(value, key, &wanted))
}

pub(crate) fn as_quantity(value: &Value, key: &str, unit: &str, max: f64) -> Result<f64, Wrong> {
    as_number_of(value, key, unit, 0.0..=max)
}

/// The same for a number that may be less than 0.
pub(crate) fn as_signed(value: &Value, key: &str, unit: &str, max: f64) -> Result<f64, Wrong> {
    as_number_of(value, key, unit, -max..=max)
}

fn as_number_of(value: &Value, key: &str, unit: &str, bounds: RangeInclusive<f64>) -> Result<f64, Wrong> {
    let wanted = format!("a number of {unit} without its unit, from {} to {}", bounds.start(), bounds.end());
    let number = match value.kind {
        Kind::Integer(number) => number as f64,
        Kind::Float(number) => number,
        _ => return Err(wrong_kind(value, key, &wanted)),
    };
    if !bounds.contains(&number) {
        return Err(wrong_kind(value, key, &wanted));
    }
    Ok(number)
}

pub(crate) fn as_seconds(value: &Value, key: &str) -> Result<Time, Wrong> {
    as_quantity(value, key, "seconds", SECONDS_MAX)
        .map(|seconds| Time::from_nanos((seconds * 1e9).round() as u64))
}
