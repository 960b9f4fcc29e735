//! The same verbs on four kinds of laboratory: processes of this machine, of machines that ssh reaches, in containers of Compose, and on a
//! Swarm. Their `--json` has one shape, and they end with the same exit codes.
//!
//! Long tier: `cargo nextest run --profile long -p weft-judges kinds::`, as root and with a Docker engine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use weft_judges::{
    Containers, Image, Lab, SshSite, Stack, differences, has_engine, is_root, output_of, shape_of,
    wait_for_success, wait_within, weft_program,
};
use weft_lab::site::table::{self, Kind};

mod verbs;

use verbs::{EVENTS, NEEDS_NO_LAB, OTHERS, Prints, SCHEDULE, STEPS, Step, Then};

/// Nothing that is waited for takes longer, or it does not come.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);
/// What all laboratories are planned with.
const OPTIONS: [&str; 7] = ["--pack", "leaf", "--pm", "--vfs", "2", "--standby", "1"];

/// A laboratory of one kind.
struct Told<'a> {
    name: &'static str,
    /// A verb on it.
    weft: &'a dyn Fn(&[&str]) -> Command,
    /// What says where the authority's key is, where that is not the laboratory's own folder.
    authority: &'static str,
    /// Where its processes run.
    kind: Kind,
}

impl Told<'_> {
    fn command(&self, line: &str, scratch: &Path) -> Command {
        let topology = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies/ring-4.topo");
        let line = line.replace("{in}", self.authority).replace("{scratch}", scratch.to_str().unwrap());
        let line = line.replace("{topo}", topology.to_str().unwrap());
        (self.weft)(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// What all verbs say of it.
    fn said(&self) -> BTreeMap<String, Value> {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("schedule.toml"), SCHEDULE).unwrap();
        let mut said = BTreeMap::new();
        for step in STEPS.iter().filter(|step| step.acts_on(self.kind)) {
            let mut command = self.command(step.line, scratch.path());
            let Output { status, stdout, stderr } = command.output().unwrap();
            let stderr = String::from_utf8_lossy(&stderr);
            let lines = stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let lines = || lines.map(serde_json::from_slice::<Value>).collect::<Result<Vec<_>, _>>();
            let printed = match step.prints {
                Prints::Json => serde_json::from_slice(&stdout),
                Prints::Packets => lines().map(by_routing),
                // Those of each kind are compared on their own.
                Prints::Events => lines().map(|_| json!("events")),
                Prints::Words => Ok(json!(stderr)),
                Prints::Files => Ok(files_in(scratch.path())),
            };
            let printed =
                printed.unwrap_or_else(|error| panic!("{}: {command:?}: {error}: {stderr}", self.name));
            let said_so = || format!("{}: {command:?}: {printed}\n{stderr}", self.name);
            assert_eq!(status.code(), Some(step.code), "{}", said_so());
            said.insert(step.line.to_owned(), printed);
            if matches!(step.then, Then::Heals) {
                wait_for_success(&format!("{}: after `{}`", self.name, step.line), || {
                    (self.weft)(&["check"])
                });
            }
        }
        self.refuses(scratch.path());
        said.extend(self.events());
        said
    }

    /// All events, by their kinds.
    fn events(&self) -> BTreeMap<String, Value> {
        let mut by_kind = BTreeMap::new();
        let is_told = |told: &BTreeMap<String, Value>, kind: &str| told.keys().any(|what| is_of(what, kind));
        wait_within(PATIENCE, &format!("{}: all of {EVENTS:?} are told", self.name), || {
            by_kind.clear();
            for line in output_of(&mut (self.weft)(&["events", "--json"])).lines() {
                let event: Value = serde_json::from_str(line).unwrap();
                let alike = by_kind.entry(kind_of(&event)).or_insert_with(|| json!([]));
                alike.as_array_mut().unwrap().push(event);
            }
            EVENTS.iter().all(|kind| is_told(&by_kind, kind))
        });
        by_kind
    }

    /// Verbs that need more than the hub passes on say so in one line, with a hint.
    fn refuses(&self, scratch: &Path) {
        let steps = STEPS.iter().filter(|step| !step.acts_on(self.kind)).map(|step| step.line);
        let others = OTHERS.into_iter().filter(|line| table::of(line, self.kind).is_err());
        for line in steps.chain(others) {
            let output = self.command(line, scratch).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{}: `{line}` succeeds: {told}", self.name);
            for label in ["error: ", "hint: "] {
                let lines = told.lines().filter(|line| line.starts_with(label)).count();
                assert_eq!(lines, 1, "{}: `{line}`: {told}", self.name);
            }
        }
    }
}

/// What all verbs say of a kind of laboratory. Behind a hub's door the authority's key is in `lab`.
fn said_by(name: &'static str, kind: Kind, weft: &dyn Fn(&[&str]) -> Command) -> BTreeMap<String, Value> {
    let authority = if kind == Kind::Door { "--in lab" } else { "" };
    Told { name, weft, authority, kind }.said()
}

/// Packets by how they are routed, which gives them other fields; what was not seen says nothing.
fn by_routing(packets: Vec<Value>) -> Value {
    let (directed, by_lid): (Vec<_>, Vec<_>) =
        packets.into_iter().partition(|packet| packet["directed"].is_object());
    let seen = |packets: Vec<Value>| if packets.is_empty() { Value::Null } else { Value::Array(packets) };
    json!({ "directed": seen(directed), "by LID": seen(by_lid) })
}

/// An event's kind; of a fault with what is damaged, which has fields of its own.
fn kind_of(event: &Value) -> String {
    let damage = event["damage"].as_object().and_then(|damage| damage.keys().next());
    let damage = damage.map_or_else(String::new, |damage| format!(" {damage}"));
    format!("event {}{damage}", event["event"].as_str().unwrap())
}

/// Whether these are events of a kind.
fn is_of(what: &str, kind: &str) -> bool {
    what.strip_prefix("event ").is_some_and(|event| event.split(' ').next() == Some(kind))
}

/// The files in a folder, by their paths.
fn files_in(folder: &Path) -> Value {
    let mut found = serde_json::Map::new();
    let mut next = vec![folder.to_owned()];
    while let Some(within) = next.pop() {
        for entry in std::fs::read_dir(&within).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                next.push(entry);
            } else {
                let name = entry.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, json!("a file"));
            }
        }
    }
    Value::Object(found)
}

#[test]
fn four_kinds_of_laboratory_say_the_same_in_one_shape() {
    if !has_engine() || !is_root() {
        return;
    }
    let ring =
        weft_topology::parse("ring-4.topo", include_str!("../../../../topologies/ring-4.topo")).unwrap();
    let here = Lab::start(&ring, &OPTIONS);
    let local = said_by("this machine", Kind::Machine, &|verb| here.weft(verb));
    drop(here);

    let mut others = Vec::new();
    let site = SshSite::make();
    output_of(&mut site.up(&site.all(), &OPTIONS));
    others.push(("ssh", said_by("ssh", Kind::Hosts, &|verb| site.weft(verb))));
    drop(site);
    let image = Image::make();
    let containers = Containers::up(&image, "kinds", "ring-4.topo", &OPTIONS);
    others.push(("Compose", said_by("Compose", Kind::Door, &|verb| containers.verb(verb))));
    drop(containers);
    let stack = Stack::deploy(&image, "ring-4.topo", &OPTIONS);
    // The engine starts services in any order, and the fabric comes up without the managers that look at it.
    let answered: [&[&str]; 3] = [&["check"], &["ask", "pm", "pm-status"], &["ask", "vmm", "vms"]];
    stack.wait_until("`check` finds nothing, and managers answer", || {
        answered.iter().all(|verb| stack.verb(verb).output().unwrap().status.success())
    });
    others.push(("a Swarm", said_by("a Swarm", Kind::Door, &|verb| stack.verb(verb))));
    drop(stack);

    let mut wrong = Vec::new();
    for (kind, said) in &others {
        for (what, one) in &local {
            let is_everywhere = |step: &&Step| step.line == what.as_str() && step.acts_on(Kind::Door);
            let is_sure = STEPS.iter().any(|step| is_everywhere(&step))
                || EVENTS.iter().any(|kind| *what == format!("event {kind}"));
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

/// The commands that help lists after these words: all verbs under headings of their own, others' commands under one.
fn commands_of(words: &[&str]) -> Vec<String> {
    let help = output_of(Command::new(weft_program()).args(words).arg("-h"));
    let (head, end) = if words.is_empty() { ("Usage:", "Options:") } else { ("Commands:\n", "\n\n") };
    let Some((_, commands)) = help.split_once(head) else { return Vec::new() };
    let lines = commands.split(end).next().unwrap_or_default().lines();
    let first =
        lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|word| !word.is_empty()));
    first.filter(|word| *word != "help").map(str::to_owned).collect()
}

/// All verbs that help knows, with the words before them.
fn verbs_of(words: &[&str], found: &mut BTreeSet<String>) {
    let commands = commands_of(words);
    if commands.is_empty() {
        found.insert(words.join(" "));
    }
    for command in &commands {
        verbs_of(&[words, &[command.as_str()]].concat(), found);
    }
}

#[test]
fn every_verb_is_compared_or_refused_or_needs_no_laboratory() {
    let mut verbs = BTreeSet::new();
    verbs_of(&[], &mut verbs);
    assert!(verbs.len() > 40, "{verbs:?}");
    let starts = |longer: &str, with: &str| longer == with || longer.starts_with(&format!("{with} "));
    let acting: Vec<&str> = STEPS.iter().map(|step| step.line).chain(OTHERS).collect();
    let is_known = |verb: &String| {
        acting.iter().any(|line| starts(line, verb)) || NEEDS_NO_LAB.iter().any(|group| starts(verb, group))
    };
    let forgotten: Vec<&String> = verbs.iter().filter(|verb| !is_known(verb)).collect();
    assert!(forgotten.is_empty(), "not compared: {forgotten:?}");
    let without_row =
        verbs.iter().filter(|verb| table::verbs().all(|row| !starts(row, verb) && !starts(verb, row)));
    let unsettled: Vec<&String> =
        without_row.filter(|verb| NEEDS_NO_LAB.iter().all(|group| !starts(verb, group))).collect();
    assert!(unsettled.is_empty(), "in no row of the table of sites: {unsettled:?}");
    let unknown: Vec<&&str> =
        acting.iter().filter(|line| !verbs.iter().any(|verb| starts(line, verb))).collect();
    assert!(unknown.is_empty(), "no verbs: {unknown:?}");
}
