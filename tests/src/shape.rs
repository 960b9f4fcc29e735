//! The shape of a JSON value: names of fields and kinds of values, without the values.

use std::collections::BTreeMap;

use serde_json::Value;

/// A shape. Null stands for anything: where a field may be absent, it says nothing of what it would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing is known of it.
    Any,
    /// A value without parts, by its kind.
    Plain(&'static str),
    /// Values that are all alike.
    List(Box<Shape>),
    /// Fields by their names.
    Fields(BTreeMap<String, Shape>),
    /// Values of several kinds at one place.
    Mixed,
}

/// The shape of a value; elements of a list have what all of them have together.
pub fn shape_of(value: &Value) -> Shape {
    match value {
        Value::Null => Shape::Any,
        Value::Bool(_) => Shape::Plain("true or false"),
        Value::Number(_) => Shape::Plain("a number"),
        Value::String(_) => Shape::Plain("a text"),
        Value::Array(items) => Shape::List(Box::new(items.iter().map(shape_of).fold(Shape::Any, both))),
        Value::Object(fields) => {
            Shape::Fields(fields.iter().map(|(name, value)| (name.clone(), field(name, value))).collect())
        }
    }
}

/// Names of what was counted, and of nodes, are no fields: each is there once it was counted, or is cut off.
fn field(name: &str, value: &Value) -> Shape {
    match value {
        Value::Object(counted) if ["counts", "cut_off"].contains(&name) => {
            Shape::List(Box::new(counted.values().map(shape_of).fold(Shape::Any, both)))
        }
        value => shape_of(value),
    }
}

/// What two shapes have together.
fn both(one: Shape, other: Shape) -> Shape {
    match (one, other) {
        (Shape::Any, known) | (known, Shape::Any) => known,
        (Shape::List(one), Shape::List(other)) => Shape::List(Box::new(both(*one, *other))),
        (Shape::Fields(mut one), Shape::Fields(other)) => {
            for (name, shape) in other {
                let known = one.remove(&name).unwrap_or(Shape::Any);
                one.insert(name, both(known, shape));
            }
            Shape::Fields(one)
        }
        (one, other) if one == other => one,
        _ => Shape::Mixed,
    }
}

/// Where two shapes differ, as paths.
pub fn differences(one: &Shape, other: &Shape) -> Vec<String> {
    let mut found = Vec::new();
    compare("", one, other, &mut found);
    found
}

fn compare(at: &str, one: &Shape, other: &Shape, found: &mut Vec<String>) {
    match (one, other) {
        (Shape::Any, _) | (_, Shape::Any) => {}
        (Shape::List(one), Shape::List(other)) => compare(&format!("{at}[]"), one, other, found),
        (Shape::Fields(one), Shape::Fields(other)) => {
            for name in one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))) {
                let at = format!("{at}.{name}");
                match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => compare(&at, one, other, found),
                    (one, _) => found.push(format!(
                        "{at} is only in the {}",
                        if one.is_some() { "first" } else { "second" }
                    )),
                }
            }
        }
        (one, other) if one == other => {}
        _ => found.push(format!("{at} is {one:?} in the first, and {other:?} in the second")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_do_not_matter_and_fields_do() {
        let between = |one: Value, other: Value| differences(&shape_of(&one), &shape_of(&other));
        assert_eq!(
            between(json!([{"a": 1, "b": null}]), json!([{"a": 2, "b": "x"}, {"a": 3, "b": null}])),
            [""; 0]
        );
        assert_eq!(between(json!({"a": 1}), json!({"a": "1"})).len(), 1);
        assert_eq!(between(json!({"a": [1]}), json!({"a": []})), [""; 0]);
        assert_eq!(between(json!({"a": {"x": 1}}), json!({"a": {"y": 1}})).len(), 2);
        assert_eq!(between(json!([1, "x"]), json!([1])).len(), 1);
        assert_eq!(between(json!({"counts": {"x": 1}}), json!({"counts": {"y": 1}})), [""; 0]);
        assert_eq!(between(json!({"cut_off": {}}), json!({"cut_off": {"0x1": "host-1"}})), [""; 0]);
    }
}
