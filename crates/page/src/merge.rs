//! Merge patches of JSON (RFC 7386): applied, and found.

use serde_json::{Map, Value};

/// Applies a patch. A member that is `null` in it goes.
pub fn apply(to: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *to = patch.clone();
        return;
    };
    if !to.is_object() {
        *to = Value::Object(Map::new());
    }
    let Value::Object(members) = to else { return };
    for (name, change) in changes {
        match change {
            Value::Null => drop(members.remove(name)),
            change => apply(members.entry(name.clone()).or_insert(Value::Null), change),
        }
    }
}

/// The patch that makes `new` of `old`; `None` where they are the same. No patch can say that a member is `null`: neither value may have
/// such a member.
pub fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (old, new) else { return Some(new.clone()) };
    let mut changes = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        changes.insert(name.clone(), Value::Null);
    }
    for (name, value) in after {
        let change = match before.get(name) {
            Some(own) => difference(own, value),
            None => Some(value.clone()),
        };
        if let Some(change) = change {
            changes.insert(name.clone(), change);
        }
    }
    Some(Value::Object(changes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The examples of RFC 7386, appendix A.
    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (original, patch, result) in [
            (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
            (json!({"a":"b"}), json!({"a":null}), json!({})),
            (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
            (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
            (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
            (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a":"b"}), json!(["c"]), json!(["c"])),
            (json!({"a":"foo"}), json!(null), json!(null)),
            (json!({"a":"foo"}), json!("bar"), json!("bar")),
            (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
            (json!([1, 2]), json!({"a":"b","c":null}), json!({"a":"b"})),
            (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
        ] {
            let mut own = original.clone();
            apply(&mut own, &patch);
            assert_eq!(own, result, "{original} with {patch}");
        }
    }
}
