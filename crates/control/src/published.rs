//! Published schemas: of the control protocol, of what verbs print with `--json`, and of the documents of `exec:` engines. Each has a version, which changes with it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::report::check::Report;
use crate::report::engine::{EngineFabric, EngineTables};
use crate::report::ps::Process;
use crate::report::status::Status;
use crate::{Event, schema};

/// The versions. The minor number rises when something is added that a reader of the version before ignores, the major one with every
/// other change.
const CONTROL: &str = "1.9";
const STATUS: &str = "1.5";
const PS: &str = "1.0";
const EVENTS: &str = "1.7";
const CHECK: &str = "1.0";
const ENGINE: &str = "1.0";

/// A schema, and where it is published.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The file, in `docs`.
    pub file: &'static str,
    /// JSON Schema 2020-12, with its `version`.
    pub schema: Value,
}

/// All schemas.
pub fn published() -> [Published; 7] {
    let mut control = schema::schema();
    control["version"] = CONTROL.into();
    [
        Published { file: "control.schema.json", schema: control },
        of_verb::<Status>("schemas/status.schema.json", "weft status --json", STATUS),
        of_verb::<Vec<Process>>("schemas/ps.schema.json", "weft ps --json", PS),
        of_verb::<Event>("schemas/events.schema.json", "each line of weft events --json", EVENTS),
        of_verb::<Report>("schemas/check.schema.json", "weft check --json", CHECK),
        of_verb::<EngineFabric>(
            "schemas/engine-fabric.schema.json",
            "what a routing engine reads that is a program (exec:)",
            ENGINE,
        ),
        of_verb::<EngineTables>(
            "schemas/engine-tables.schema.json",
            "what a routing engine writes that is a program (exec:)",
            ENGINE,
        ),
    ]
}

fn of_verb<T: JsonSchema>(file: &'static str, what: &str, version: &str) -> Published {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("{what}, version {version}"),
        "version": version,
    });
    let root = generator.subschema_for::<T>().to_value();
    for (keyword, value) in root.as_object().into_iter().flatten() {
        schema[keyword] = value.clone();
    }
    schema["$defs"] = generator.take_definitions(true).into();
    Published { file, schema }
}
