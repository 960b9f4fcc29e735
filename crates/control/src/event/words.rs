//! Words of sentences: names, values and routes as people read them.

use weft_wire::Printable;

/// A directed route as tools write it, with the manager's own node as 0.
pub(super) fn route(ports: &[u8]) -> String {
    std::iter::once(&0).chain(ports).map(u8::to_string).collect::<Vec<_>>().join(",")
}

/// A name in quotes.
pub(super) fn name(text: &str) -> String {
    format!("`{}`", Printable(text))
}

/// A value's name as JSON has it, with its fields behind it.
pub(super) fn lower(value: &impl serde::Serialize) -> String {
    fn shown(value: &serde_json::Value) -> String {
        match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Object(fields) => {
                let field = |(name, value): (&String, &serde_json::Value)| format!("{name} {}", shown(value));
                fields.iter().map(field).collect::<Vec<_>>().join(" ")
            }
            other => other.to_string(),
        }
    }
    serde_json::to_value(value).map(|value| shown(&value)).unwrap_or_default()
}
