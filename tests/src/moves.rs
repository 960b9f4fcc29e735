//! Cost of a virtual machine's move under a subnet manager: MADs, and how long a peer hears nothing of the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weft_mgmt::perf;
use weft_topology::{Fabric, Node, NodeIndex};
use weft_umad::{Client, ServerMessage};
use weft_wire::{AttributeId, Guid, Lid, Method, PerfMad, ServiceLevel, TransactionId};

use crate::seen::diags_see;
use crate::{Lab, OpenSm, output_of};

/// How often a peer asks the machine whether it is there.
const ASKS_EVERY: Duration = Duration::from_millis(2);

/// How long the last answers may take.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// From one light sweep to the next, at least.
const INTERVAL: Duration = Duration::from_secs(10);

/// The VM manager asks each second whether another subnet manager has come into charge, which answers.
const IDLE_PER_SECOND: u64 = 2;
/// How long a manager may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(120);

/// The manager of the subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// weft's own subnet manager.
    Weft,
    /// OpenSM as Debian has it.
    OpenSm,
}

/// When virtual functions get LIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lids {
    /// When a machine boots on them: all others are unplugged.
    Dynamic,
    /// At the start: all are plugged in.
    Prepopulated,
}

/// Virtual functions of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Functions {
    /// How many each host has.
    pub each: u8,
    /// When they get LIDs.
    pub lids: Lids,
}

/// What the SMAs of all agents have received, or did meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Requests: Gets and Sets.
    pub smps: u64,
    /// Those that were Sets.
    pub sets: u64,
    /// Blocks of linear forwarding tables.
    pub lft_blocks: u64,
    /// Switches of the file, vSwitches not among them, that had a block written.
    pub switches: u64,
}

/// What a move came to.
#[derive(Clone, Debug)]
pub struct Moved {
    /// What agents received from the request until the manager was at rest again.
    pub received: Received,
    /// Packets that left the ports of the subnet manager and, where it is asked for the move, of the VM manager.
    pub sent: u64,
    /// From the request until a peer on another leaf heard the machine at its new place.
    pub answered: Duration,
    /// From the last answer at the old place to the first one at the new.
    pub silent: Duration,
    /// What `weft vm migrate` says of it.
    pub report: Value,
}

/// The hosts with a cable, each with the switch at its other end.
pub fn cabled_hosts(fabric: &Fabric) -> impl Iterator<Item = (NodeIndex, NodeIndex)> {
    let cabled = |(index, host): (NodeIndex, &Node)| Some((index, host.cabled_ports().next()?.1.node));
    fabric.hosts().filter_map(cabled)
}

/// Where a host is, seen from one that a machine leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whence {
    /// The host that it leaves.
    OldHost,
    /// Another one of its leaf.
    OldLeaf,
    /// One of a leaf with a switch above it that the old leaf has above it, too: of the same pod.
    OldPod,
    /// One of any other leaf, but for the one that it goes to.
    Elsewhere,
}

/// One host for each place that there is, drawn, when a machine moves.
pub fn askers(
    fabric: &Fabric,
    (from, to): (NodeIndex, NodeIndex),
    mut draw: impl FnMut(usize) -> usize,
) -> Vec<(Whence, NodeIndex)> {
    let all: Vec<(NodeIndex, NodeIndex)> = cabled_hosts(fabric).collect();
    let leaf_of = |host: NodeIndex| all.iter().find(|(other, _)| *other == host).map(|(_, leaf)| *leaf);
    let above = |leaf: NodeIndex| -> BTreeSet<NodeIndex> {
        let peers = fabric.node(leaf).cabled_ports().map(|(_, peer)| peer.node);
        peers.filter(|node| fabric.node(*node).is_switch()).collect()
    };
    let (Some(own), Some(goal)) = (leaf_of(from), leaf_of(to)) else { return Vec::new() };
    let whence = |host: NodeIndex, leaf: NodeIndex| match leaf {
        _ if host == from => Some(Whence::OldHost),
        _ if host == to => None,
        leaf if leaf == own => Some(Whence::OldLeaf),
        leaf if leaf == goal => None,
        leaf if !above(leaf).is_disjoint(&above(own)) => Some(Whence::OldPod),
        _ => Some(Whence::Elsewhere),
    };
    let mut found: BTreeMap<Whence, Vec<NodeIndex>> = BTreeMap::new();
    for (host, leaf) in &all {
        whence(*host, *leaf).into_iter().for_each(|whence| found.entry(whence).or_default().push(*host));
    }
    found.into_iter().map(|(whence, hosts)| (whence, hosts[draw(hosts.len())])).collect()
}

/// A fabric of virtualised adapters with one virtual machine, under a subnet manager that makes no periodic sweep meanwhile:
/// OpenSM has none at all, and weft's has just made one. So all that it sends is for the move.
pub struct Machines<'a> {
    fabric: &'a Fabric,
    manager: Manager,
    functions: Functions,
    rest: Duration,
    // Before the laboratory, so that it ends first.
    _opensm: Option<OpenSm>,
    lab: Lab,
}

impl<'a> Machines<'a> {
    /// Brings `fabric` up with these virtual functions, and starts `web1` on a host. A manager that sends nothing for as long as
    /// `rest` is at rest.
    ///
    /// # Panics
    /// When something does not come up.
    pub fn start(
        fabric: &'a Fabric,
        manager: Manager,
        functions: Functions,
        options: &[&str],
        on: NodeIndex,
        rest: Duration,
    ) -> Self {
        let mut hosts = cabled_hosts(fabric).map(|(host, _)| fabric.node(host));
        let (at, vmm) = (hosts.next().expect("a host"), hosts.next().expect("two hosts"));
        let (vfs, vmm) = (functions.each.to_string(), vmm.guid.to_string());
        let lids = match functions.lids {
            Lids::Dynamic => "dynamic",
            Lids::Prepopulated => "prepopulated",
        };
        let mut all = vec!["--vfs", &vfs, "--lids", lids, "--vmm-at", &vmm];
        all.extend(options);
        // Longer than a move and what follows it.
        let interval = rest.saturating_mul(4).max(INTERVAL).as_millis().to_string();
        match manager {
            Manager::Weft => all.extend(["--sweep-interval-ms", &interval]),
            Manager::OpenSm => all.push("--no-sm"),
        }
        let lab = Lab::start(fabric, &all);
        let opensm = (manager == Manager::OpenSm).then(|| {
            let command = lab.command("opensm", at, &[]);
            OpenSm::start_with(command, lab.folder(), "sweep_interval 0\n")
        });
        let machines = Self { fabric, manager, functions, rest, _opensm: opensm, lab };
        let on = machines.guid(on);
        output_of(&mut machines.lab.weft(&["vm", "create", "web1", "--host", &on]));
        machines.wait_until_up();
        machines.wait_for_rest();
        machines
    }

    fn guid(&self, host: NodeIndex) -> String {
        self.fabric.node(host).guid.to_string()
    }

    /// The laboratory.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The machine's LID.
    ///
    /// # Panics
    /// When `weft vm ls` says something else than it should.
    pub fn lid(&self) -> Lid {
        let text = output_of(&mut self.lab.weft(&["vm", "ls", "--json"]));
        let list: Value = serde_json::from_str(&text).expect("--json prints JSON");
        let lid = list[0]["virtual_port_lid"].as_u64().and_then(|lid| u16::try_from(lid).ok());
        Lid(lid.unwrap_or_else(|| panic!("no LID in {list}")))
    }

    /// That infiniband-diags at a host see what is there while the machine is at another: the nodes of the path to it.
    ///
    /// # Panics
    /// When they see something else than what is there.
    pub fn see(&self, from: NodeIndex, host: NodeIndex) -> Vec<String> {
        diags_see(&self.lab, self.fabric, self.functions, from, host)
    }

    /// Moves the machine while `peer` asks it again and again.
    ///
    /// # Panics
    /// When it does not move, or is not heard at its new place.
    pub fn migrate(&self, to: NodeIndex, peer: NodeIndex) -> Moved {
        self.wait_for_light_sweep();
        let peer = Peer::begin(&self.lab, self.fabric.node(peer), self.lid());
        let (received, sent) = (self.received(), self.sent());
        let requested = Instant::now();
        let to = self.guid(to);
        let report = output_of(&mut self.lab.weft(&["vm", "migrate", "web1", &to, "--json"]));
        self.wait_for_rest();
        let (answered, silent) = peer.heard(requested);
        let (later, sent) = (self.received(), self.sent() - sent);
        let received = self.since(&received, &later);
        self.wait_until_up();
        let report = serde_json::from_str(&report).expect("--json prints JSON");
        Moved { received, sent, answered, silent, report }
    }

    /// Moves the machine while hosts ask it again and again: the report, and by host for how long it heard nothing at most, from the
    /// request until it is served again as far as `after` says that this may take.
    ///
    /// # Panics
    /// When it does not move, or is not heard at its new place.
    pub fn migrate_seen(
        &self,
        to: NodeIndex,
        hosts: &[NodeIndex],
        options: &[&str],
        after: impl Fn(&Value) -> Duration,
    ) -> (Value, Vec<Duration>) {
        let peers: Vec<Peer> =
            hosts.iter().map(|host| Peer::begin(&self.lab, self.fabric.node(*host), self.lid())).collect();
        peers.iter().for_each(Peer::wait_for_answer);
        let requested = Instant::now();
        let to = self.guid(to);
        let migrate = [&["vm", "migrate", "web1", &to, "--json"], options].concat();
        let report = output_of(&mut self.lab.weft(&migrate));
        let report: Value = serde_json::from_str(&report).expect("--json prints JSON");
        let end = Instant::now() + after(&report);
        let silent = peers.into_iter().map(|peer| peer.longest(requested, end)).collect();
        (report, silent)
    }

    /// Waits until the managers' ports send nothing more than what they ask each other each second.
    fn wait_for_rest(&self) {
        let begun = Instant::now();
        let (mut before, mut since) = (self.sent(), Instant::now());
        while since.elapsed() < self.rest {
            assert!(begun.elapsed() < PATIENCE, "{:?} does not come to rest", self.manager);
            std::thread::yield_now();
            let now = self.sent();
            if now > before + IDLE_PER_SECOND * (since.elapsed().as_secs() + 1) {
                (before, since) = (now, Instant::now());
            }
        }
    }

    /// Waits until every packet finds its way. It asks agents by SMPs.
    ///
    /// # Panics
    /// When that takes too long.
    pub fn wait_until_up(&self) {
        let begun = Instant::now();
        let check = || self.lab.weft(&["check"]).output().expect("weft can be started");
        let (mut found, manager) = (check(), self.manager);
        while !found.status.success() {
            let said = String::from_utf8_lossy(&found.stdout);
            assert!(
                begun.elapsed() < PATIENCE,
                "`weft check` never finds all well under {manager:?}: {said}"
            );
            found = check();
        }
    }

    /// Waits until weft's manager has made a light sweep, so that there is time until the next.
    fn wait_for_light_sweep(&self) {
        if self.manager == Manager::OpenSm {
            return;
        }
        let begun = Instant::now();
        let status = || self.lab.ask("sm", &json!({ "type": "sm-status" }));
        let before = status()["light_sweeps"].clone();
        let is_over = |now: Value| now["light_sweeps"] != before && now["phase"].is_null();
        while !is_over(status()) {
            assert!(begun.elapsed() < PATIENCE, "weft's manager makes no light sweep");
            std::thread::yield_now();
        }
        self.wait_for_rest();
    }

    /// Packets that the managers' ports have sent.
    fn sent(&self) -> u64 {
        let hosts = cabled_hosts(self.fabric).map(|(host, _)| self.fabric.node(host));
        let seats = match self.manager {
            Manager::Weft => 2,
            // The VM manager finds out that OpenSM knows no moves: that is none of OpenSM's cost.
            Manager::OpenSm => 1,
        };
        hosts.take(seats).map(|host| self.sent_by(host)).sum()
    }

    fn sent_by(&self, host: &Node) -> u64 {
        let agent = self.lab.agent_of(host.guid);
        let mut after = Value::Null;
        loop {
            let answer = self.lab.ask(&agent, &json!({ "type": "ports", "after": after }));
            let ports = answer["ports"].as_array().expect("ports");
            let of_host = |port: &&Value| port["end"]["node"] == host.guid.to_string();
            if let Some(port) = ports.iter().find(of_host) {
                return port["totals"]["xmit_packets"].as_u64().expect("a counter");
            }
            assert!(answer["more"] == true, "{agent} does not tell of {}", host.guid);
            after = ports.last().expect("a page has ports")["end"].clone();
        }
    }

    /// What the SMAs of all agents have received, by device.
    fn received(&self) -> BTreeMap<Guid, Received> {
        let mut devices: BTreeMap<Guid, Received> = BTreeMap::new();
        for (agent, _) in self.lab.agents() {
            let answer = self.lab.ask(&agent, &json!({ "type": "metrics" }));
            let page = answer["text"].as_str().expect("a page of metrics");
            for (guid, count) in counts(page, "smps_answered") {
                devices.entry(guid).or_default().smps += count;
            }
            for (guid, count) in counts(page, "smp_sets") {
                devices.entry(guid).or_default().sets += count;
            }
            for (guid, count) in counts(page, "lft_blocks_written") {
                devices.entry(guid).or_default().lft_blocks += count;
            }
        }
        devices
    }

    /// What was received between two looks. A function that a machine has moved to is another device than the one that
    /// it has left, so all that it received is of the move.
    fn since(&self, before: &BTreeMap<Guid, Received>, after: &BTreeMap<Guid, Received>) -> Received {
        let mut sum = Received::default();
        let known: BTreeSet<Guid> = self.lab.agents().into_iter().flat_map(|(_, devices)| devices).collect();
        for (guid, after) in after {
            let nothing = Received::default();
            let before = before.get(guid).filter(|_| known.contains(guid)).unwrap_or(&nothing);
            let blocks = after.lft_blocks - before.lft_blocks;
            sum.smps += after.smps.saturating_sub(before.smps);
            sum.sets += after.sets.saturating_sub(before.sets);
            sum.lft_blocks += blocks;
            sum.switches += u64::from(blocks > 0 && self.fabric.by_guid(*guid).is_some());
        }
        sum
    }
}

/// A counter of every device of a page of metrics.
fn counts(page: &str, name: &str) -> Vec<(Guid, u64)> {
    let begin = format!("weft_agent_{name}_total{{guid=\"");
    let lines = page.lines().filter_map(|line| line.strip_prefix(&begin));
    let count = |line: &str| {
        let (guid, count) = line.split_once("\"} ")?;
        Some((guid.parse().ok()?, count.parse().ok()?))
    };
    lines.map(|line| count(line).unwrap_or_else(|| panic!("no count of a device: {line}"))).collect()
}

/// A request for ClassPortInfo of the machine's performance agent, which answers only while the machine is not suspended.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Instant,
    heard: Option<Instant>,
}

/// A program at a host that asks a LID again and again.
struct Peer {
    /// Until when it asks; until now if that is dropped.
    stop: Sender<Instant>,
    /// That an answer has come.
    first: Receiver<()>,
    thread: JoinHandle<Vec<Asked>>,
}

impl Peer {
    fn begin(lab: &Lab, host: &Node, lid: Lid) -> Self {
        let mut client = Client::connect(&lab.socket_of(host.guid)).expect("an agent takes programs");
        let (port, _) = host.cabled_ports().next().expect("the peer has a cable");
        let attached = client.attach(host.guid, port, Vec::new(), Duration::from_secs(10));
        attached.expect("the agent attaches a program");
        let (stop, stopped) = mpsc::channel();
        let (told, first) = mpsc::channel();
        let thread = std::thread::spawn(move || ask(client, lid, &stopped, told));
        Self { stop, first, thread }
    }

    fn wait_for_answer(&self) {
        self.first.recv_timeout(PATIENCE).expect("the machine answers");
    }

    /// For how long it heard nothing at most between two moments: from its last answer before the first one on.
    fn longest(self, from: Instant, end: Instant) -> Duration {
        self.stop.send(end).expect("the peer goes on to the end");
        let asked = self.thread.join().expect("the peer goes on to the end");
        let mut heard: Vec<Instant> = asked.iter().filter_map(|asked| asked.heard).collect();
        heard.push(end);
        heard.sort_unstable();
        let gaps = heard.windows(2).map(|pair| (pair[0], pair[1]));
        let gaps = gaps.filter(|(last, again)| *again >= from && *last < end);
        gaps.map(|(last, again)| again - last).max().expect("it was asked before the request")
    }

    /// When it heard the machine at its new place, from `requested` on, and how long it had not.
    fn heard(self, requested: Instant) -> (Duration, Duration) {
        drop(self.stop);
        let asked = self.thread.join().expect("the peer goes on to the end");
        let before = |asked: &&Asked| asked.at < requested;
        assert!(asked.iter().find(before).is_some_and(|asked| asked.heard.is_some()), "no answer before");
        let lost = asked.iter().position(|asked| asked.at >= requested && asked.heard.is_none());
        let heard = |asked: &[Asked]| asked.iter().filter_map(|asked| asked.heard).collect::<Vec<_>>();
        let (last, again) = if let Some(lost) = lost {
            let again = heard(&asked[lost..]).into_iter().min().expect("it is heard again");
            (heard(&asked[..lost]).into_iter().max().expect("an answer before"), again)
        } else {
            // It asked nothing meanwhile, as it was not on a processor: the longest time without an answer.
            let mut all = heard(&asked);
            all.sort_unstable();
            let gaps = all.windows(2).map(|pair| (pair[0], pair[1])).filter(|(_, again)| *again >= requested);
            gaps.max_by_key(|(last, again)| *again - *last).expect("it is heard again")
        };
        (again - requested, again - last)
    }
}

/// Asks until it is stopped, then waits for the last answers.
fn ask(mut client: Client, lid: Lid, stopped: &Receiver<Instant>, first: Sender<()>) -> Vec<Asked> {
    let (mut asked, mut end, mut first) = (Vec::<Asked>::new(), None, Some(first));
    loop {
        end = end.or_else(|| match stopped.try_recv() {
            Ok(end) => Some(end),
            Err(TryRecvError::Disconnected) => Some(Instant::now()),
            Err(TryRecvError::Empty) => None,
        });
        if end.is_some_and(|end| Instant::now() >= end + LAST_ANSWERS) {
            return asked;
        }
        if end.is_none_or(|end| Instant::now() < end) {
            let mut request = perf(lid, ServiceLevel(0), Method::Get, AttributeId::ClassPortInfo, &[]);
            PerfMad::transaction_id.set(&mut request.mad.0, TransactionId(asked.len() as u64));
            client.send(&request).and_then(|()| client.flush()).expect("the agent takes MADs");
            asked.push(Asked { at: Instant::now(), heard: None });
        }
        let next = Instant::now() + ASKS_EVERY;
        while let Some(left) = next.checked_duration_since(Instant::now()) {
            let Some(message) = client.recv(left).expect("the agent lives") else { break };
            let ServerMessage::Receive(answer) = message else { continue };
            let number = PerfMad::transaction_id.get(&answer.mad.0).0 & u64::from(u32::MAX);
            let asked = &mut asked[number as usize];
            asked.heard = asked.heard.or_else(|| Some(Instant::now()));
            // No one waits for it any more where `migrate` does not.
            first.take().into_iter().for_each(|first| _ = first.send(()));
        }
    }
}
