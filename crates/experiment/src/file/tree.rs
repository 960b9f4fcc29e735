//! A TOML document with the place of everything in it, in the order of the file.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{At, Wrong};

/// The largest file that is read, in bytes.
const SIZE_MAX: usize = 1 << 20;

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: At,
    pub(crate) value: Value,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) at: At,
    pub(crate) kind: Kind,
}

/// What it is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date,
    Array(Vec<Value>),
    Table(Vec<Entry>),
}

impl Value {
    /// "the text `x`": what it is, for errors.
    pub(crate) fn described(&self) -> String {
        match &self.kind {
            Kind::Text(text) => format!("the text `{}`", text.chars().take(60).collect::<String>()),
            Kind::Integer(number) => format!("{number}"),
            Kind::Float(number) => format!("{number:?}"),
            Kind::Boolean(value) => format!("{value}"),
            Kind::Date => "a date".to_owned(),
            Kind::Array(_) => "a list".to_owned(),
            Kind::Table(_) => "a table".to_owned(),
        }
    }

    /// What a choice of variants is called after this value.
    pub(crate) fn label(&self) -> Option<String> {
        match &self.kind {
            Kind::Text(text) => Some(text.clone()),
            Kind::Integer(_) | Kind::Float(_) | Kind::Boolean(_) => Some(self.described()),
            Kind::Array(items) => {
                let labels: Option<Vec<String>> = items.iter().map(Value::label).collect();
                labels.map(|labels| labels.join("+"))
            }
            Kind::Date | Kind::Table(_) => None,
        }
    }
}

/// Parses a document.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, Wrong> {
    if text.len() > SIZE_MAX {
        let message = format!("the file has {} bytes, more than the {SIZE_MAX} that are read", text.len());
        return Err(Wrong::new(At::default(), message));
    }
    let parsed = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(At::default(), At::from);
        Wrong::new(at, format!("invalid TOML: {}", error.message()))
    })?;
    table(parsed.into_inner())
}

fn table(table: DeTable<'_>) -> Result<Vec<Entry>, Wrong> {
    let mut entries = Vec::new();
    for (key, spanned) in table {
        let at = At::from(key.span());
        entries.push(Entry { key: key.into_inner().into_owned(), at, value: value(spanned)? });
    }
    entries.sort_by_key(|entry: &Entry| entry.at);
    Ok(entries)
}

/// A table of texts that stands in no file.
pub(crate) fn texts(name: &str, texts: &[(&str, &str)]) -> Vec<Entry> {
    let at = At::default();
    let entry = |key: &str, kind| Entry { key: key.to_owned(), at, value: Value { at, kind } };
    let texts = texts.iter().map(|(key, text)| entry(key, Kind::Text((*text).to_owned())));
    vec![entry(name, Kind::Table(texts.collect()))]
}

/// A table that stands in no file, of `key=value,key=value`: a value that is no number and no boolean is a text.
pub(crate) fn words(name: &str, line: &str) -> Result<Vec<Entry>, Wrong> {
    let at = At::default();
    let mut entries: Vec<Entry> = Vec::new();
    for word in line.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let (key, text) = word.split_once('=').unwrap_or((word, ""));
        let (key, text) = (key.trim(), text.trim());
        if text.is_empty() {
            let wrong = Wrong::new(at, format!("`{key}` has no value"));
            return Err(wrong.allowed("write `key=value,key=value`"));
        }
        if entries.iter().any(|entry| entry.key == key) {
            return Err(Wrong::new(at, format!("the line names `{key}` twice")));
        }
        let kind = match (text.parse(), text.parse::<f64>(), text.parse()) {
            (Ok(number), ..) => Kind::Integer(number),
            (_, Ok(number), _) if number.is_finite() => Kind::Float(number),
            (.., Ok(value)) => Kind::Boolean(value),
            _ => Kind::Text(text.to_owned()),
        };
        entries.push(Entry { key: key.to_owned(), at, value: Value { at, kind } });
    }
    if entries.is_empty() {
        return Err(Wrong::new(at, "there is no key").allowed("write `key=value,key=value`"));
    }
    Ok(vec![Entry { key: name.to_owned(), at, value: Value { at, kind: Kind::Table(entries) } }])
}

fn value(spanned: Spanned<DeValue<'_>>) -> Result<Value, Wrong> {
    let at = At::from(spanned.span());
    let kind = match spanned.into_inner() {
        DeValue::String(text) => Kind::Text(text.into_owned()),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            let large = |_| Wrong::new(at, format!("the number {number} is too large"));
            Kind::Integer(parsed.map_err(large)?)
        }
        DeValue::Float(number) => {
            let parsed: f64 = number.as_str().parse().unwrap_or(f64::NAN);
            if !parsed.is_finite() {
                return Err(Wrong::new(at, format!("{number} is no finite number")));
            }
            Kind::Float(parsed)
        }
        DeValue::Boolean(value) => Kind::Boolean(value),
        DeValue::Datetime(_) => Kind::Date,
        DeValue::Array(items) => Kind::Array(items.into_iter().map(value).collect::<Result<_, _>>()?),
        DeValue::Table(entries) => Kind::Table(table(entries)?),
    };
    Ok(Value { at, kind })
}

/// Lays `over` upon `under`: tables are merged, everything else is replaced. A replaced value stays at its place in the
/// order.
pub(crate) fn lay(under: &mut Vec<Entry>, over: &[Entry]) {
    for entry in over {
        match under.iter_mut().find(|old| old.key == entry.key) {
            None => under.push(entry.clone()),
            Some(old) => match (&mut old.value.kind, &entry.value.kind) {
                (Kind::Table(below), Kind::Table(above)) => lay(below, above),
                _ => *old = entry.clone(),
            },
        }
    }
}
