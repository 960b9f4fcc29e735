//! The Python client by its own tests, and what verbs print with `--json` by the published schemas.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use weft_judges::{Lab, judge, output_of, weft_program};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

#[test]
fn the_python_client_passes_its_tests() {
    let client = root().join("clients/python");
    let mut pytest = judge("pytest");
    pytest.args(["-q", "--color=no", "--durations=5", "-p", "no:cacheprovider"]).arg(client.join("tests"));
    // The checkout stays as it is.
    pytest.env("PYTHONPATH", client.join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
    pytest.env("WEFT_PROGRAM", weft_program()).env("NO_COLOR", "1").current_dir(&client);
    println!("{}", output_of(&mut pytest));
}

/// Whether check-jsonschema finds that a value fits, and what it says.
fn fits(schema: &Path, value: &Value) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("value.json");
    std::fs::write(&file, value.to_string()).unwrap();
    let output = judge("check-jsonschema").arg("--schemafile").args([schema, &file]).output().unwrap();
    let says = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&says).into_owned())
}

/// The schema of a list of what a published schema describes.
fn of_list(schema: &Path, folder: &Path) -> PathBuf {
    let mut one: Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    let definitions = one.as_object_mut().unwrap().remove("$defs");
    let list = json!({ "$schema": one["$schema"], "type": "array", "items": one, "$defs": definitions });
    let path = folder.join("list.json");
    std::fs::write(&path, list.to_string()).unwrap();
    path
}

fn told(command: &mut Command) -> Value {
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

/// Everything that a schema has: a virtual machine, a standby manager, a frozen one, a dead process, a fault, two pieces.
#[test]
fn what_verbs_print_fits_the_published_schemas() {
    let schema = |name: &str| root().join(format!("docs/schemas/{name}.schema.json"));
    let ring = weft_topology::parse("ring-4.topo", include_str!("../../../topologies/ring-4.topo")).unwrap();
    let lab = Lab::start(&ring, &["--pm", "--vfs", "2", "--standby", "1"]);
    for verb in [
        &["vm", "create", "web1", "--host", "H1"][..],
        &["fault", "freeze", "pm"],
        &["fault", "kill", "S3"],
        &["fault", "link-down", "S1:2"],
    ] {
        output_of(&mut lab.weft(verb));
    }
    for verb in ["status", "ps", "check"] {
        let options: &[&str] = if verb == "check" { &["--wait", "0"] } else { &[] };
        let mut value = told(lab.weft(&[verb, "--json"]).args(options));
        let (fit, says) = fits(&schema(verb), &value);
        assert!(fit, "{verb}: {says}\n{value:#}");
        // A judge that takes everything is none.
        let field = value.get_mut("running").is_some();
        let wrong = if value.is_array() {
            &mut value[0]["pid"]
        } else {
            &mut value[if field { "running" } else { "ok" }]
        };
        *wrong = "yes".into();
        assert!(!fits(&schema(verb), &value).0, "{verb}");
    }
    let lines = output_of(&mut lab.weft(&["events", "--json"]));
    let mut events: Value = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    assert!(events.as_array().unwrap().len() > 50, "{lines}");
    let folder = tempfile::tempdir().unwrap();
    let list = of_list(&schema("events"), folder.path());
    let (fit, says) = fits(&list, &events);
    assert!(fit, "{says}");
    events[0]["time"] = 7.into();
    assert!(!fits(&list, &events).0);
}
