//! Events of the subnet manager in the laboratory's file of events.

use serde::Serialize;
use serde_json::{Map, Value};
use weft_agent::Journal;

use crate::output;

/// Notes one event whose own form is an object with the name `event` in it, GUIDs as people write them.
pub(crate) fn record_event(journal: &mut Journal, event: &impl Serialize) {
    let Ok(mut value) = serde_json::to_value(event) else { return };
    output::name_guids(&mut value);
    let name = value.get("event").and_then(Value::as_str).unwrap_or("unknown").replace('_', "-");
    let fields = if let Value::Object(fields) = value { fields } else { Map::new() };
    journal.record_object(&name, fields);
}
