//! Subnet managers that die while virtual machines move, on processes: whoever takes over, a machine keeps its LID, and infiniband-diags
//! see it where it is. `WEFT_ROUNDS` says how many rounds (1 if not said; `cargo xtask long` makes 20), `WEFT_SEED` makes one again. A seed draws hosts;
//! what the manager is at when it dies depends on the machine.

use std::collections::BTreeMap;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use weft_judges::moves::cabled_hosts;
use weft_judges::{Lab, OpenSm, broken_three_levels, output_of, wait_within, x5};
use weft_machine::Random;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, Node, NodeIndex};
use weft_wire::Guid;

/// Machines, and how many of them move at once.
const MACHINES: usize = 8;
const MOVES: usize = 4;

/// When the manager dies after moves were asked for.
const DIES_AFTER: Duration = Duration::from_millis(50);

/// How long a takeover by OpenSM, and its sweeps, may take.
const OPENSM_TIME: Duration = Duration::from_secs(60);

/// Managers that poll as quickly as a laboratory does that is made for takeovers.
const QUICK: [&str; 8] = ["--vfs", "2", "--lids", "dynamic", "--polling-ms", "500", "--polling-retries", "2"];

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is to be a number, not `{text}`")))
}

/// Each round with its seed, which is said first.
fn rounds(what: &str, round: impl Fn(u64)) {
    if let Some(seed) = number("WEFT_SEED") {
        return round(seed);
    }
    for seed in 0..number("WEFT_ROUNDS").unwrap_or(1) {
        eprintln!("{what}: WEFT_SEED={seed}");
        round(seed);
    }
}

/// A machine as the VM manager lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    state: String,
    host: String,
    lid: u64,
    guid: Guid,
}

/// A laboratory with machines, some of which are on their way.
struct Round<'a> {
    fabric: &'a Fabric,
    lab: Lab,
    random: Random,
    /// Hosts with a cable, without those of managers, each with its leaf.
    hosts: Vec<(NodeIndex, NodeIndex)>,
    before: BTreeMap<String, Listed>,
    moves: Vec<(String, String, Child)>,
}

impl<'a> Round<'a> {
    fn start(fabric: &'a Fabric, seed: u64, options: &[&str]) -> Self {
        let mut random = Random::of_purpose(seed, "takeovers");
        let lab = Lab::start(fabric, &[&QUICK[..], options].concat());
        // The managers sit at the first ones.
        let mut hosts: Vec<_> = cabled_hosts(fabric).skip(4).collect();
        random.shuffle(&mut hosts);
        let mut round = Self { fabric, lab, random, hosts, before: BTreeMap::new(), moves: Vec::new() };
        for machine in 0..MACHINES {
            let host = round.guid(machine);
            output_of(&mut round.lab.weft(&["vm", "create", &format!("m-{machine}"), "--host", &host]));
        }
        round.wait_for_lids();
        round.before = round.listed();
        round
    }

    fn guid(&self, at: usize) -> String {
        self.fabric.node(self.hosts[at].0).guid.to_string()
    }

    fn listed(&self) -> BTreeMap<String, Listed> {
        let text = output_of(&mut self.lab.weft(&["vm", "ls", "--json"]));
        let list: Value = serde_json::from_str(&text).expect("--json prints JSON");
        let field = |port: &Value, name: &str| port[name].as_str().unwrap().to_owned();
        let of = |port: &Value| {
            let guid = field(port, "virtual_port_guid");
            let guid = u64::from_str_radix(guid.trim_start_matches("0x"), 16).unwrap();
            let listed = Listed {
                state: field(port, "vm_state"),
                host: field(port, "system_name"),
                lid: port["virtual_port_lid"].as_u64().unwrap(),
                guid: Guid(guid),
            };
            (field(port, "vm"), listed)
        };
        list.as_array().unwrap().iter().map(of).collect()
    }

    fn wait_for_lids(&self) {
        let have_lids = || self.listed().values().all(|one| one.lid != 0 && one.state == "running");
        wait_within(OPENSM_TIME, "machines have LIDs", have_lids);
    }

    /// Begins some moves, each to a host that has no machine.
    fn begin_moves(&mut self) {
        let mut all: Vec<usize> = (0..MACHINES).collect();
        self.random.shuffle(&mut all);
        for (at, machine) in all.into_iter().take(MOVES).enumerate() {
            let (name, to) = (format!("m-{machine}"), self.guid(MACHINES + at));
            let mut command = self.lab.weft(&["vm", "migrate", &name, &to]);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            self.moves.push((name, to, child.expect("weft can be started")));
        }
    }

    fn kill(&self, process: &str) {
        // It is no event that could be waited for: whatever a move is at then.
        let (_keep, never) = std::sync::mpsc::channel::<()>();
        let _ = never.recv_timeout(DIES_AFTER);
        output_of(&mut self.lab.weft(&["fault", "kill", process]));
    }

    /// All moves end, and each machine is where its move says. How many have moved.
    fn moves_end(&mut self) -> usize {
        let ended: Vec<(String, String, Output)> = std::mem::take(&mut self.moves)
            .into_iter()
            .map(|(name, to, child)| (name, to, child.wait_with_output().expect("it was started")))
            .collect();
        let now = self.listed();
        let host = |guid: &str| {
            let (_, node) = self.fabric.iter().find(|(_, node)| node.guid.to_string() == guid).unwrap();
            node
        };
        for (name, to, output) in &ended {
            let said = String::from_utf8_lossy(&output.stderr);
            let (at, before) = (&now[name], &self.before[name]);
            assert_eq!(at.state, "running", "{name}: {said}");
            if output.status.success() {
                assert!(is_at(&self.lab, at, host(to)), "{name} says that it moved to {to}: {at:?}");
            } else {
                assert!(said.contains("error"), "{name} does not say why it did not move: {said}");
                assert_eq!(at.host, before.host, "{name} is undone: {said}");
            }
        }
        ended.iter().filter(|(.., output)| output.status.success()).count()
    }

    /// Machines have the LIDs of before, ports say the same, and tools at a host of another leaf find them by them.
    fn lids_are_as_before(&self) {
        let now = self.listed();
        for (name, before) in &self.before {
            assert_eq!((now[name].lid, now[name].guid), (before.lid, before.guid), "{name} as vm ls has it");
            let status =
                output_of(&mut self.lab.weft(&["shell", "--at", &format!("vm:{name}"), "--", "ibstat"]));
            let own = field(&status, "Base lid");
            assert_eq!(own, before.lid.to_string(), "{name} as its own port has it");
        }
        // It has no machine, and hosts were drawn.
        let (from, _) = self.hosts[MACHINES + MOVES];
        let from = self.fabric.node(from);
        for (name, machine) in &now {
            let record = self.lab.says(from, &format!("saquery NR {}", machine.lid));
            let guid = field(&record, "port_guid");
            assert_eq!(guid, machine.guid.to_string(), "{name}: whose LID {} is by saquery", machine.lid);
            // It answers under its LID, by the tables as they are.
            let counters = self.lab.says(from, &format!("perfquery {} 1", machine.lid));
            assert!(counters.contains(&format!("Lid {}", machine.lid)), "{name}: {counters}");
        }
    }

    fn is_right(&self) {
        output_of(&mut self.lab.weft(&["check", "--wait", "60"]));
    }
}

/// Whether a machine is at a host: its function is in that host's adapter.
fn is_at(lab: &Lab, machine: &Listed, host: &Node) -> bool {
    let agent = lab.agent_of(host.guid);
    let answer = lab.ask(&agent, &serde_json::json!({ "type": "slots" }));
    answer.to_string().contains(&machine.guid.to_string())
}

/// The value of a line of a tool's: `name: value`, or `name....value`.
fn field(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.trim_start().starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
    let value = line.trim_start().trim_start_matches(name);
    value.trim_start_matches(['.', ':', ' ']).trim().to_owned()
}

fn weft_takes_over(fabric: &Fabric, seed: u64) {
    let mut round = Round::start(fabric, seed, &["--standby", "1", "--pack", "leaf"]);
    round.begin_moves();
    round.kill("sm");
    let moved = round.moves_end();
    eprintln!("WEFT_SEED={seed}: {moved} of {MOVES} machines moved");
    round.is_right();
    round.lids_are_as_before();
}

fn tree() -> Fabric {
    xgft(&[6, 4], &[1, 2], &GenerateOptions::default()).unwrap()
}

#[test]
fn machines_keep_their_lids_on_a_tree() {
    rounds("a tree", |seed| weft_takes_over(&tree(), seed));
}

#[test]
fn machines_keep_their_lids_on_x5() {
    rounds("X5", |seed| weft_takes_over(&x5(), seed));
}

#[test]
fn machines_keep_their_lids_on_three_damaged_levels() {
    rounds("three levels", |seed| weft_takes_over(&broken_three_levels(seed), seed));
}

/// OpenSM stands by, and takes over from weft's subnet manager. It knows nothing of moves: one that was held is taken back or waits, and
/// ports keep the LIDs that they are found with.
#[test]
fn machines_keep_their_lids_under_opensm() {
    rounds("OpenSM", |seed| {
        let fabric = tree();
        let mut round = Round::start(&fabric, seed, &[]);
        let at = fabric.hosts().nth(3).unwrap().1;
        let command = round.lab.command("opensm", at, &[]);
        let quick = "sminfo_polling_timeout 500\npolling_retry_number 2\nsm_priority 0\n";
        let mut opensm = OpenSm::start_until(command, round.lab.folder(), quick, "STANDBY");
        round.begin_moves();
        round.kill("sm");
        opensm.wait_for("SUBNET UP");
        let moved = round.moves_end();
        eprintln!("WEFT_SEED={seed}: {moved} of {MOVES} machines moved");
        round.wait_for_lids();
        round.is_right();
        round.lids_are_as_before();
    });
}
