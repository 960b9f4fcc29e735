//! The verbs that are compared, in the order in which they are given.

use weft_lab::site::table::{self, Kind};

/// What a verb prints.
#[derive(Clone, Copy)]
pub(crate) enum Prints {
    /// A JSON value.
    Json,
    /// A packet in each line, as JSON.
    Packets,
    /// An event in each line.
    Events,
    /// Words for people: it has no `--json`.
    Words,
    /// Files, in the scratch folder.
    Files,
}

/// What comes after a verb.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    /// The next one.
    Next,
    /// `check` has to find nothing first.
    Heals,
}

/// A verb, and what is known of it beforehand.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// Its arguments. `{in}` says where the authority is, `{scratch}` is a folder, `{topo}` the topology file.
    pub(crate) line: &'static str,
    pub(crate) prints: Prints,
    /// Its exit code.
    pub(crate) code: i32,
    pub(crate) then: Then,
    /// The row of the table of verbs and sites that says which laboratories take it, where the line does not name it.
    row: Option<&'static str>,
}

impl Step {
    /// Whether laboratories of a kind of site take it; the others refuse it.
    pub(crate) fn acts_on(&self, kind: Kind) -> bool {
        table::of(self.row.unwrap_or(self.line), kind).is_ok()
    }
}

const fn json(line: &'static str) -> Step {
    Step { line, prints: Prints::Json, code: 0, then: Then::Next, row: None }
}

const fn words(line: &'static str) -> Step {
    Step { prints: Prints::Words, ..json(line) }
}

/// A verb that finds something.
const fn finds(line: &'static str) -> Step {
    Step { code: 1, ..json(line) }
}

const fn healing(step: Step) -> Step {
    Step { then: Then::Heals, ..step }
}

const fn in_row(row: &'static str, step: Step) -> Step {
    Step { row: Some(row), ..step }
}

/// Every verb that acts on a laboratory, wherever it runs. S3 and its host H3 have one agent; the managers have H1 and H2.
pub(crate) const STEPS: &[Step] = &[
    json("check --json"),
    json("ps --json"),
    json("trace H1 H4 --json"),
    Step { prints: Prints::Files, ..words("graph --route H1 H4 -o {scratch}/fabric.svg") },
    Step { prints: Prints::Files, ..words("tape --for 2s -o {scratch}/day.tape") },
    json("ask sm sm-status"),
    json("ask sm routing-options"),
    json("ask pm pm-status"),
    json("ask vmm vms"),
    json("ask hub lab-status"),
    json("ask S3 agent-status"),
    words("relay"),
    json("top --json"),
    Step { prints: Prints::Packets, ..json("capture S3:2 --count 1 --json") },
    words("shell --at H3 -- ibstat"),
    Step { prints: Prints::Files, ..words("sysfs --node H3 {scratch}") },
    // Virtual machines.
    json("vm create web1 --host H1 --json"),
    json("vm create web2 --host H4 --json"),
    json("vm ls --json"),
    json("vm plan web1 H3 --json"),
    json("vm migrate web1 H3 --json"),
    json("vm migrate web1 H4 --cold --json"),
    words("vm destroy web1"),
    // One whose host answers is not given up.
    Step { code: 1, ..words("vm forget web2 --force") },
    healing(words("vm destroy web2")),
    // Traffic.
    json("flow start H1 H4 --name web --json"),
    json("traffic start ring --rate 0.1 --json"),
    json("flow show web --json"),
    json("flow ls --json"),
    Step { prints: Prints::Events, ..json("flow observe --json") },
    healing(words("flow stop --all")),
    // Other managers.
    words("sm disable sm-2"),
    words("sm standby sm-2"),
    words("sm discover sm-2"),
    json("status --json"),
    // Cables.
    json("topo diff --json"),
    healing(json("topo disconnect S3:2 {in} --json")),
    finds("topo diff {topo} --json"),
    healing(json("topo move S4:3 S3:2 {in} --json")),
    healing(json("topo move S4:3 S3:3 {in} --json")),
    healing(json("topo connect S3:2 S2:3 {in} --json")),
    // Faults that last, all at once.
    words("fault link-down S3:2 --for 600s"),
    words("fault partition H4 --for 600s"),
    words("fault freeze H2 --for 600s"),
    words("fault bad-identity S3 --as expired --for 600s {in}"),
    words("fault add loss S1:2 --percent 1 --for 600s"),
    words("fault add delay S1:2 --by 1ms --for 600s"),
    words("fault add jitter S1:2 --by 1ms --for 600s"),
    words("fault add reorder S1:2 --percent 1 --for 600s"),
    words("fault add duplicate S1:2 --percent 1 --for 600s"),
    words("fault add bit-errors S1:2 --rate 1e-9 --for 600s"),
    words("fault add flap S1:2 --every 10s --for 600s"),
    words("fault add width S1:2 --to 1x --for 600s"),
    words("fault add speed S1:2 --to sdr --for 600s"),
    words("fault add slow-drain H1:1 --percent 50 --for 600s"),
    json("fault ls --json"),
    json("links --json"),
    finds("check --wait 0 --json"),
    words("fault link-up S3:2"),
    words("fault heal H4"),
    words("fault thaw H2"),
    words("fault good-identity S3"),
    healing(words("fault clear --all")),
    // Processes end and are started again.
    words("fault kill S3"),
    healing(words("fault restart S3")),
    words("fault kill pm"),
    healing(words("fault restart pm")),
    in_row("fault freeze MANAGER", words("fault freeze pm --for 600s")),
    in_row("fault thaw MANAGER", words("fault thaw pm")),
    healing(json("chaos --replay {scratch}/schedule.toml --json")),
    json("fault times --json"),
    // Identities.
    json("identity ls {in} --json"),
    words("identity renew viewer"),
    words("identity revoke viewer {in}"),
    Step { prints: Prints::Events, ..json("events --json") },
];

/// The schedule of `chaos`, which draws longer ones: a cable is out for half a second.
pub(crate) const SCHEDULE: &str = r#"title = ""
seed = 3

[[fault]]
at = 0.5
link-down = "S4/2"
for = 0.5
"#;

/// Further verbs of a laboratory, which one of the kinds refuses at least.
pub(crate) const OTHERS: [&str; 20] = [
    "ui --no-browser",
    "up {topo}",
    "down",
    "hub",
    "metrics",
    "record S3",
    "replay {topo}",
    "shell --ibsim -- true",
    "bench smp",
    "bench move",
    "bench sa",
    "topo add-host H9 --at S1:3",
    "topo add-switch S9 --ports 4",
    "topo remove H4",
    "partition ls",
    "partition add web",
    "partition rm web",
    "partition join web H4",
    "partition policy web vlane",
    "partition leave web H4",
];

/// Verbs on files, and those that make laboratories of their own.
pub(crate) const NEEDS_NO_LAB: [&str; 13] = [
    "plan",
    "compose",
    "k8s",
    "run",
    "sim",
    "completions",
    "bench door",
    "bench up",
    "topo gen",
    "topo check",
    "topo show",
    "routes",
    "study",
];

/// Kinds of events that every laboratory has reported by then.
pub(crate) const EVENTS: [&str; 20] = [
    "process-started",
    "process-ended",
    "link-up",
    "link-down",
    "subnet-up",
    "routed",
    "fault",
    "fault-set",
    "fault-cleared",
    "fault-cost",
    "cable-connected",
    "cable-disconnected",
    "flow-started",
    "flow-stopped",
    "vm-runs",
    "vm-move-step",
    "vm-gone",
    "other-sm",
    "instructed",
    "identities-revoked",
];
