//! Tenants of a laboratory of processes: traffic flows within a partition, and nothing is delivered across; programs of libibumad keep
//! their places of P_Keys while others come and go.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weft_judges::{Lab, opensm, output_of};
use weft_routing::Lids;
use weft_topology::generate::{self, GenerateOptions};
use weft_topology::{Fabric, Node, PortRef};
use weft_wire::{Lid, PortNum};

/// Nothing here takes longer, or it hangs.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Packets that a stranger sends at least.
const SENT: u64 = 20;
/// The flow of a stranger.
const STRANGER: u32 = 7001;

/// Two leaves with three hosts each. The first host has the subnet manager.
struct Tenants {
    lab: Lab,
    fabric: Fabric,
    lids: Lids,
}

impl Tenants {
    /// Hosts 1 and 4 are one tenant, hosts 2 and 5 the other.
    fn start(enforcement: &str) -> Self {
        let fabric = generate::xgft(&[3, 2], &[1, 2], &GenerateOptions::default()).unwrap();
        let guid = |host: usize| fabric.hosts().nth(host).unwrap().1.ports[1].guid;
        let tenants = [("one", 0x10, 1, 4), ("two", 0x20, 2, 5)];
        let rule = |(name, key, from, to): (&str, u16, usize, usize)| {
            format!("{name}={key:#06x} : {}=full, {}=full ;\n", guid(from), guid(to))
        };
        let text = format!("Default=0x7fff : ALL=limited, SELF=full ;\n{}", tenants.map(rule).concat());
        let lab = Lab::start_with(&fabric, |folder| {
            let path = folder.join("partitions.conf");
            std::fs::write(&path, text).unwrap();
            ["--part-enforce", enforcement, "--partitions", path.to_str().unwrap()]
                .map(str::to_owned)
                .to_vec()
        });
        let lids = opensm::lids_of(&fabric, &lab.guid2lid());
        Self { lab, fabric, lids }
    }

    fn node(&self, host: usize) -> &Node {
        self.fabric.hosts().nth(host).unwrap().1
    }

    fn name(&self, host: usize) -> String {
        self.node(host).guid.to_string()
    }

    fn lid(&self, host: usize) -> Lid {
        let (node, _) = self.fabric.hosts().nth(host).unwrap();
        self.lids.of(PortRef::new(node, PortNum(1))).unwrap().base
    }

    fn says(&self, arguments: &[&str]) -> String {
        output_of(&mut self.lab.weft(arguments))
    }

    /// Has the host behind an adapter do something.
    fn tell(&self, host: usize, command: &Value) {
        let node = self.node(host);
        let end = json!({ "node": node.guid.to_string(), "port": 1 });
        let request = json!({ "type": "host", "end": end, "command": command });
        self.lab.ask(&self.lab.agent_of(node.guid), &request);
    }

    /// Datagrams with the sender's own key, to a host that is in no partition with it: software that asks no one where it may send.
    fn stray(&self, from: usize, to: usize, p_key: u16) {
        let port = |host: usize| self.node(host).ports[1].guid.to_string();
        let shape = json!({ "transport": "unreliable-datagram", "work": "stream", "message_bytes": 256 });
        let with = |mut own: Value| {
            own.as_object_mut().unwrap().extend(shape.as_object().unwrap().clone());
            own
        };
        self.tell(to, &json!({ "expect": with(json!({ "flow": STRANGER, "from": port(from) })) }));
        let path =
            json!({ "to": port(to), "dlid": self.lid(to), "service_level": 0, "p_key": p_key, "rate": 0 });
        self.tell(from, &json!({ "learn-paths": [path] }));
        let own = json!({
            "flow": STRANGER, "to": { "one": port(to) }, "packet_bytes": 256, "bytes_per_second": 256_000,
            "bytes_max": null, "paths": "path-record", "move_by": "drain"
        });
        self.tell(from, &json!({ "open": with(own) }));
    }

    /// Packets of the stranger's flow: sent at one end, arrived at the other.
    fn strays(&self, host: usize) -> u64 {
        let answer = self.lab.ask(&self.lab.agent_of(self.node(host).guid), &json!({ "type": "flows" }));
        let hosts = answer["hosts"].as_array().unwrap();
        let flows = hosts.iter().flat_map(|host| host["flows"].as_array().unwrap());
        let of = flows.filter(|flow| flow["flow"] == STRANGER);
        of.map(|flow| flow["packets"].as_u64().unwrap()).sum()
    }

    /// P_KeyViolations of a host's port, as smpquery prints them.
    fn violations(&self, host: usize) -> u64 {
        let text = self.lab.says(self.node(0), &format!("smpquery portinfo {} 1", self.lid(host)));
        let line =
            text.lines().find(|line| line.starts_with("PkeyViolations:")).unwrap_or_else(|| panic!("{text}"));
        line.trim_start_matches("PkeyViolations:").trim_matches('.').parse().unwrap()
    }

    /// What the switch port in front of a host has not sent to it, as perfquery prints it.
    fn filtered(&self, host: usize) -> u64 {
        let (_, leaf) = self.node(host).cabled_ports().next().unwrap();
        let lid = self.lids.of(PortRef::new(leaf.node, PortNum::ZERO)).unwrap().base;
        let text = self.lab.says(self.node(0), &format!("perfquery {lid} {}", leaf.port));
        let name = "PortXmitConstraintErrors:";
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        line.trim_start_matches(name).trim_matches('.').parse().unwrap()
    }

    /// Whether the subnet manager has had such a trap from a LID.
    fn trapped(&self, number: u16, lid: Lid) -> bool {
        let text = self.says(&["events", "--json", "--kind", "trap-received"]);
        let mut events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.any(|event| event["number"] == number && event["lid"] == lid.0)
    }
}

#[track_caller]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIME_MAX;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

fn flow(tenants: &Tenants, name: &str) -> Value {
    let flows: Value = serde_json::from_str(&tenants.says(&["flow", "ls", "--json"])).unwrap();
    let found = flows.as_array().unwrap().iter().find(|flow| flow["name"] == name).cloned();
    found.unwrap_or_else(|| panic!("no flow {name}: {flows}"))
}

/// Traffic within both partitions flows, and a stranger's packets end at the switch in front of the host that they are for, or in its
/// adapter where switches do not look.
#[test]
fn traffic_stays_in_its_partition() {
    for (enforcement, number) in [("both", 259), ("out", 259), ("in", 257), ("off", 257)] {
        let tenants = Tenants::start(enforcement);
        for (name, from, to) in [("in-one", 1, 4), ("in-two", 2, 5)] {
            let (from, to) = (tenants.name(from), tenants.name(to));
            tenants.says(&["flow", "start", &from, &to, "--name", name, "--rate", "0.2"]);
        }
        tenants.says(&[
            "flow",
            "start",
            &tenants.name(4),
            &tenants.name(2),
            "--name",
            "across",
            "--rate",
            "0.2",
        ]);
        tenants.stray(1, 5, 0x8010);
        wait_until("the stranger sends", || tenants.strays(1) >= SENT);
        for name in ["in-one", "in-two"] {
            let delivered = || flow(&tenants, name)["receiver"]["bytes"].as_u64().unwrap_or(0);
            let before = delivered();
            wait_until(name, || delivered() > before);
        }
        let is_at_switch = number == 259;
        let dropped = || if is_at_switch { tenants.filtered(5) } else { tenants.violations(5) };
        wait_until("the stranger's packets are counted", || dropped() >= SENT);
        let (_, leaf) = tenants.node(5).cabled_ports().next().unwrap();
        let switch = tenants.lids.of(PortRef::new(leaf.node, PortNum::ZERO)).unwrap().base;
        let from = if is_at_switch { switch } else { tenants.lid(5) };
        wait_until("the manager hears of it", || tenants.trapped(number, from));
        assert_eq!(tenants.strays(5), 0, "--part-enforce {enforcement}: a stranger's packet was delivered");
        let other = if is_at_switch { tenants.violations(5) } else { tenants.filtered(5) };
        assert_eq!(other, 0, "--part-enforce {enforcement}: dropped at one place alone");
        let dropped = dropped();
        assert!(tenants.strays(1) >= dropped, "no more are dropped than are sent");
        // Software that asks gets no path.
        let across = flow(&tenants, "across");
        assert_eq!(across["receiver"]["bytes"].as_u64().unwrap_or(0), 0, "{across}");
        assert_eq!(across["sender"]["packets"].as_u64().unwrap_or(0), 0, "{across}");
    }
}

/// `tests/clients/umad.c` with one port open, at a host.
struct Program {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Program {
    fn start(tenants: &Tenants, host: usize) -> Self {
        let program = tenants.lab.folder().join("umad-client");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/umad.c");
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&program).arg(source);
        output_of(cc.arg("-l:libibumad.so.3"));
        let mut command = tenants.lab.command(program.to_str().unwrap(), tenants.node(host), &[]);
        let mut child = command.arg("keys").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (asks, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, asks, answers }
    }

    /// Whether an adapter answers what the program sends by a place of its port's P_Key table.
    fn reaches(&mut self, lid: Lid, place: u16) -> bool {
        writeln!(self.asks, "{lid} {place}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        match line.trim() {
            "yes" => true,
            "no" => false,
            other => panic!("the program has ended: {other:?}"),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn programs_of_libibumad_keep_their_pkey_index() {
    let tenants = Tenants::start("both");
    let mut program = Program::start(&tenants, 1);
    let (own, other) = (tenants.lid(4), tenants.lid(5));
    let partition = |words: &str, host: usize| {
        let name = tenants.name(host);
        let words: Vec<&str> = words.split(' ').chain((host > 0).then_some(&*name)).collect();
        tenants.says(&[&["partition"], &words[..]].concat());
    };
    let mut seen = |places: [(Lid, u16, bool); 3], what: &str| {
        for (lid, place, reaches) in places {
            assert_eq!(program.reaches(lid, place), reaches, "{what}: LID {lid} by place {place}");
        }
    };
    seen([(own, 1, true), (other, 1, false), (other, 2, false)], "in one");
    partition("add low=0x0005", 0);
    partition("join low", 5);
    partition("join low", 1);
    seen([(own, 1, true), (other, 1, false), (other, 2, true)], "a lower key comes behind");
    partition("leave one", 1);
    seen([(own, 1, false), (other, 1, false), (other, 2, true)], "the first one goes, and its place rests");
    partition("join two", 1);
    seen([(own, 1, false), (other, 1, false), (other, 3, true)], "another tenant's key has another place");
    partition("join one", 1);
    seen([(own, 1, true), (other, 1, false), (other, 3, true)], "the first one is back in its place");
}
