//! The same verbs on four kinds of laboratory: processes of this machine, of machines that ssh reaches, in containers of Compose, and on a
//! Swarm. Their `--json` has one shape.
//!
//! Long tier: `cargo nextest run --profile long -p weft-judges --test kinds`, as root and with a Docker engine.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use weft_judges::{
    Containers, Image, Lab, SshSite, Stack, differences, has_engine, is_root, output_of, shape_of,
};

/// Verbs that read, without what says where.
const VERBS: [&[&str]; 12] = [
    &["ps", "--json"],
    &["status", "--json"],
    &["links", "--json"],
    &["trace", "H1", "H2", "--json"],
    &["check", "--json"],
    &["fault", "ls", "--json"],
    &["fault", "times", "--json"],
    &["top", "--json"],
    &["ask", "sm", "sm-status"],
    &["ask", "pm", "pm-status"],
    &["ask", "hub", "lab-status"],
    &["ask", "S3", "agent-status"],
];
/// Kinds of events that every laboratory has told when it is up.
const EVENTS: [&str; 4] = ["process-started", "link-up", "subnet-up", "routed"];

/// What all verbs say of one kind of laboratory.
fn said_by(mut weft: impl FnMut(&[&str]) -> Command) -> BTreeMap<String, Value> {
    // A fault that lasts, so that its lists are not empty.
    let fault = ["fault", "link-down", "S3:1", "--for", "600s"];
    output_of(&mut weft(&fault));
    let mut said = BTreeMap::new();
    for verb in VERBS {
        let mut command = weft(verb);
        let output = command.output().unwrap();
        // `check` finds what the fault has broken, and says so in the same words.
        let parsed = serde_json::from_slice(&output.stdout);
        let parsed = parsed.unwrap_or_else(|error| {
            panic!("{command:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
        });
        said.insert(verb.join(" "), parsed);
    }
    for line in output_of(&mut weft(&["events", "--json"])).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let kind = format!("event {}", event["event"].as_str().unwrap());
        let alike = said.entry(kind).or_insert_with(|| Value::Array(Vec::new()));
        alike.as_array_mut().unwrap().push(event);
    }
    said
}

#[test]
fn four_kinds_of_laboratory_say_the_same_in_one_shape() {
    if !has_engine() || !is_root() {
        return;
    }
    let ring = weft_topology::parse("ring-4.topo", include_str!("../../topologies/ring-4.topo")).unwrap();
    let options = ["--pack", "leaf", "--pm"];
    let here = Lab::start(&ring, &options);
    let local = said_by(|verb| here.weft(verb));
    drop(here);
    let missing = EVENTS.iter().find(|kind| !local.contains_key(&format!("event {kind}")));
    assert_eq!(missing, None, "{:?}", local.keys());

    let mut others = Vec::new();
    let site = SshSite::make();
    output_of(&mut site.up(&site.all(), &options));
    others.push(("ssh", said_by(|verb| site.weft(verb))));
    drop(site);
    let image = Image::make();
    let containers = Containers::up(&image, "kinds", "ring-4.topo", &options);
    others.push(("Compose", said_by(|verb| containers.verb(verb))));
    drop(containers);
    let stack = Stack::deploy(&image, "ring-4.topo");
    stack.heals("after the stack was deployed");
    others.push(("a Swarm", said_by(|verb| stack.verb(verb))));
    drop(stack);

    let mut wrong = Vec::new();
    for (kind, said) in &others {
        for (what, one) in &local {
            let is_sure = !what.starts_with("event ") || EVENTS.contains(&&what["event ".len()..]);
            match said.get(what) {
                Some(other) => {
                    let found = differences(&shape_of(one), &shape_of(other));
                    wrong.extend(found.into_iter().map(|how| format!("{kind}, {what}: {how}")));
                }
                None if is_sure => wrong.push(format!("{kind} has no {what}")),
                // What happened in one and not in the other.
                None => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
