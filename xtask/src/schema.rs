//! The published schemas and the tables of docs/control.md, from the types of `weft-control`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use weft_control::published::{Published, published};

/// The tables stand behind this line, up to the end of the page.
const MARK: &str = "<!-- Made by `cargo xtask schema`; nothing below is written by hand. -->\n";

const PAGE: &str = "docs/control.md";

/// What says nothing of the values that fit.
const WORDS: [&str; 3] = ["description", "title", "version"];

/// Writes all files. A schema that has changed needs another version.
pub(crate) fn write(root: &Path) -> Result<()> {
    for Published { file, schema } in published() {
        let place = root.join("docs").join(file);
        if let Ok(before) = fs::read_to_string(&place) {
            let before = serde_json::from_str(&before).with_context(|| format!("{file} is no JSON"))?;
            check_version(file, &before, &schema)?;
        }
    }
    for (name, text) in files(root)? {
        let place = root.join(name);
        fs::create_dir_all(place.parent().unwrap_or(root))?;
        fs::write(&place, text).with_context(|| format!("cannot write {}", place.display()))?;
    }
    Ok(())
}

/// All files as they have to be.
fn files(root: &Path) -> Result<Vec<(String, String)>> {
    let text = |schema: &Value| serde_json::to_string_pretty(schema).map(|text| text + "\n");
    let mut files = Vec::new();
    for Published { file, schema } in published() {
        files.push((format!("docs/{file}"), text(&schema)?));
    }
    let place = root.join(PAGE);
    let page = fs::read_to_string(&place).with_context(|| format!("cannot read {}", place.display()))?;
    let (written, _) = page.split_once(MARK).with_context(|| format!("{PAGE} has no line {MARK}"))?;
    files.push((PAGE.to_owned(), format!("{written}{MARK}\n{}", weft_control::schema::tables())));
    Ok(files)
}

/// An error where a schema differs from the published one and its version does not say so.
fn check_version(file: &str, before: &Value, now: &Value) -> Result<()> {
    let [shape, shape_now] = [before, now].map(shape_of);
    if shape == shape_now {
        return Ok(());
    }
    // One from before there were versions.
    let Some(version) = before["version"].as_str() else { return Ok(()) };
    let [(major, minor), (major_now, minor_now)] = [numbers(version)?, version_of(now)?];
    if (major_now, minor_now) <= (major, minor) {
        bail!(
            "{file} changes and is still version {version}\nhint: raise its minor number in crates/control/src/published.rs if \
             readers of {version} can ignore what is new, else its major number"
        );
    }
    if major_now == major && !is_within(&shape, &shape_now) {
        bail!("{file} changes or loses something that {version} has\nhint: raise the major number");
    }
    Ok(())
}

fn version_of(schema: &Value) -> Result<(u32, u32)> {
    numbers(schema["version"].as_str().context("a schema has no version")?)
}

fn numbers(version: &str) -> Result<(u32, u32)> {
    let (major, minor) = version.split_once('.').with_context(|| format!("{version} is no version"))?;
    Ok((major.parse()?, minor.parse()?))
}

/// The schema without words for people. A field may be called `description`: then it is no text.
fn shape_of(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept =
                fields.iter().filter(|(name, value)| !(value.is_string() && WORDS.contains(&name.as_str())));
            Value::Object(kept.map(|(name, value)| (name.clone(), shape_of(value))).collect())
        }
        Value::Array(items) => items.iter().map(shape_of).collect(),
        plain => plain.clone(),
    }
}

/// Whether all of one schema is in another, which may have more.
fn is_within(less: &Value, more: &Value) -> bool {
    match (less, more) {
        (Value::Object(less), Value::Object(more)) => {
            less.iter().all(|(name, value)| more.get(name).is_some_and(|other| is_within(value, other)))
        }
        (Value::Array(less), Value::Array(more)) => {
            less.iter().all(|item| more.iter().any(|other| is_within(item, other)))
        }
        (less, more) => less == more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schemas_match_the_types() {
        let root = crate::root();
        for (name, text) in files(&root).unwrap() {
            let found = fs::read_to_string(root.join(&name)).unwrap();
            assert!(found == text, "{name} is out of date\nhint: cargo xtask schema");
        }
    }

    #[test]
    fn a_changed_schema_needs_another_version() {
        for Published { file, schema } in published() {
            let changed = |version: &str, change: fn(&mut serde_json::Map<String, Value>)| {
                let mut now = schema.clone();
                now["version"] = version.into();
                let definitions = now["$defs"].as_object_mut().unwrap();
                let fields =
                    definitions.values_mut().find_map(|kind| kind.get_mut("properties")?.as_object_mut());
                change(fields.unwrap());
                check_version(file, &schema, &now).map_err(|error| error.to_string())
            };
            let version = schema["version"].as_str().unwrap();
            let (major, minor) = numbers(version).unwrap();
            let [minor, major] = [format!("{major}.{}", minor + 1), format!("{}.0", major + 1)];
            assert_eq!(changed(version, |_| {}), Ok(()), "{file}");
            let add = |fields: &mut serde_json::Map<String, Value>| {
                fields.insert("new_ms".into(), serde_json::json!({ "type": "integer" }));
            };
            assert!(changed(version, add).unwrap_err().contains("is still version"), "{file}");
            assert_eq!((changed(&minor, add), changed(&major, add)), (Ok(()), Ok(())), "{file}");
            let lose = |fields: &mut serde_json::Map<String, Value>| {
                let first = fields.keys().next().unwrap().clone();
                fields.remove(&first);
            };
            let retype = |fields: &mut serde_json::Map<String, Value>| {
                let first = fields.values_mut().next().unwrap();
                *first = serde_json::json!({ "const": "another" });
            };
            for change in [lose, retype] {
                assert!(changed(version, change).is_err(), "{file}");
                assert!(changed(&minor, change).unwrap_err().contains("major"), "{file}");
                assert_eq!(changed(&major, change), Ok(()), "{file}");
            }
            let reword = |fields: &mut serde_json::Map<String, Value>| {
                fields.values_mut().next().unwrap()["description"] = "other words".into();
            };
            assert_eq!(changed(version, reword), Ok(()), "{file}");
        }
    }
}
