//! Values as YAML: blocks, and in flow style what fits in a line.
//!
//! A string is written as in JSON, in ASCII, so that every version of YAML reads it alike.

use std::fmt::Write as _;

use serde_json::Value;

/// Names that some version of YAML takes for something else.
const NO_NAMES: [&str; 9] = ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];
/// A line is no longer than this, unless a single string is.
const WIDTH: usize = 120;

/// A document.
pub(crate) fn document(value: &Value) -> String {
    let mut text = String::new();
    block(&mut text, value, 0);
    text
}

/// One value, at the beginning of a line that is indented so far.
fn block(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                put(text, format_args!("{:indent$}{}:", "", key(name)));
                member(text, value, indent, name.len() + 2);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut lines = String::new();
                match fits(item, indent + 2) {
                    Some(line) => put(&mut lines, format_args!("{:1$}{line}\n", "", indent + 2)),
                    None => block(&mut lines, item, indent + 2),
                }
                // The dash takes the place of the first line's indentation.
                put(text, format_args!("{:indent$}- {}", "", lines.trim_start()));
            }
        }
        _ => put(text, format_args!("{:indent$}{}\n", "", flow(value))),
    }
}

/// What stands behind a name.
fn member(text: &mut String, value: &Value, indent: usize, used: usize) {
    let is_scalar = !matches!(value, Value::Object(_) | Value::Array(_));
    match fits(value, indent + used) {
        Some(line) => put(text, format_args!(" {line}\n")),
        None if is_scalar => put(text, format_args!(" {}\n", flow(value))),
        None => {
            text.push('\n');
            block(text, value, indent + 2);
        }
    }
}

/// A value in flow style, if the rest of a line has room for it.
fn fits(value: &Value, used: usize) -> Option<String> {
    Some(flow(value)).filter(|line| used + line.len() <= WIDTH)
}

fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}: {}", key(name), flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::String(string) => quoted(string),
        other => other.to_string(),
    }
}

/// A name is plain where that cannot be taken for anything else.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    match begins && !NO_NAMES.contains(&name) && name.chars().all(plain) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

fn quoted(string: &str) -> String {
    let mut text = String::with_capacity(string.len() + 2);
    text.push('"');
    for c in string.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            ' '..='~' => text.push(c),
            c if u32::from(c) > 0xffff => put(&mut text, format_args!("\\U{:08x}", u32::from(c))),
            c => put(&mut text, format_args!("\\u{:04x}", u32::from(c))),
        }
    }
    text.push('"');
    text
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes all that is written");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_yaml_values_stay_on_one_line() {
        let long = "x".repeat(WIDTH);
        let value = json!({
            "kind": "List",
            "none": [],
            "items": [{ "name": "a", "uid": 3 }, { "long": long, "more": [true, null] }],
        });
        let expected = format!(
            "items:\n  - {{name: \"a\", uid: 3}}\n  - long: \"{long}\"\n    more: [true, null]\n\
             kind: \"List\"\nnone: []\n"
        );
        assert_eq!(document(&value), expected);
    }

    #[test]
    fn strings_are_ascii() {
        assert_eq!(quoted("a\"\\\n\t\u{2028}ü😀"), r#""a\"\\\n\u0009\u2028\u00fc\U0001f600""#);
        assert_eq!(
            (key("on"), key("app.kubernetes.io/name")),
            ("\"on\"".into(), "app.kubernetes.io/name".into())
        );
    }
}
