//! Model of a laboratory: nodes, their agents, and pairs of ports.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use rand_pcg::Pcg64;
use weft_bundle::record::LabRecord;
use weft_link::CableEnd;
use weft_topology::{Fabric, FabricBuilder, Node, NodeType, PortRef};
use weft_wire::{Guid, PortNum};

/// What a new switch has.
const NEW_PORTS: u8 = 5;

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) kind: NodeType,
    pub(super) ports: u8,
    pub(super) agent: String,
}

/// A change of the cabling, for a simulated fabric.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    TakenOut(CableEnd),
    PutIn([CableEnd; 2]),
    Removed(Guid),
}

/// A verb with its arguments.
#[derive(Clone, Debug)]
pub(super) enum Drawn {
    Connect(CableEnd, CableEnd),
    Disconnect(CableEnd),
    Move(CableEnd, CableEnd),
    AddHost(String, CableEnd),
    AddSwitch(String, Vec<(u8, CableEnd)>),
    Remove(Guid),
}

impl Drawn {
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Connect(..) => "connect",
            Self::Disconnect(_) => "disconnect",
            Self::Move(..) => "move",
            Self::AddHost(..) => "add-host",
            Self::AddSwitch(..) => "add-switch",
            Self::Remove(_) => "remove",
        }
    }
}

/// A laboratory as it is to be.
pub(super) struct Model {
    pub(super) nodes: BTreeMap<Guid, Known>,
    /// Each cable once, the lower end first, with its delay.
    pub(super) cables: BTreeMap<[CableEnd; 2], u64>,
    /// The port of the subnet manager, whose cable stays: without it a simulated fabric would be without a manager.
    pub(super) seat: CableEnd,
    /// Every name that an agent has had.
    pub(super) agents: BTreeSet<String>,
    /// Nodes that have come, also those that have gone again.
    pub(super) come: BTreeMap<Guid, Known>,
    /// What has become of cables and nodes since the beginning.
    pub(super) steps: Vec<Step>,
    /// Whether a switch has been without a way to the subnet manager after some verb. Its tables are then as they were.
    pub(super) was_cut: bool,
}

fn pair(a: CableEnd, b: CableEnd) -> [CableEnd; 2] {
    if a < b { [a, b] } else { [b, a] }
}

impl Model {
    /// As a laboratory was planned.
    pub(super) fn of(record: &LabRecord, fabric: &Fabric, delay_ns: u64) -> Self {
        let end = |port: PortRef| CableEnd { guid: fabric.node(port.node).guid, port: port.port };
        let nodes = record.agents.iter().flat_map(|agent| {
            agent.devices.iter().map(move |device| {
                let node = fabric.node(fabric.by_guid(device.guid).expect("a device is a node"));
                let (name, ports) = (node.description.clone(), node.port_count());
                (node.guid, Known { name, kind: node.kind, ports, agent: agent.name.clone() })
            })
        });
        let sm = record.sm.as_ref().expect("a subnet manager was planned");
        Self {
            nodes: nodes.collect(),
            cables: fabric.cables().map(|cable| (pair(end(cable.a), end(cable.b)), delay_ns)).collect(),
            seat: CableEnd { guid: sm.node, port: sm.port },
            agents: record.agents.iter().map(|agent| agent.name.clone()).collect(),
            come: BTreeMap::new(),
            steps: Vec::new(),
            was_cut: false,
        }
    }

    /// The other end of the cable in a port, and its delay.
    pub(super) fn peer(&self, end: CableEnd) -> Option<(CableEnd, u64)> {
        self.cables.iter().find_map(|([a, b], delay_ns)| match end {
            _ if end == *a => Some((*b, *delay_ns)),
            _ if end == *b => Some((*a, *delay_ns)),
            _ => None,
        })
    }

    /// The cables of an agent as it is to list them: from each end at it, with the agent of the other end and the delay.
    pub(super) fn cables_of(&self, agent: &str) -> Vec<(CableEnd, CableEnd, &str, u64)> {
        let ends = self.cables.iter().flat_map(|([a, b], delay_ns)| [(*a, *b, delay_ns), (*b, *a, delay_ns)]);
        let told = ends.map(|(here, there, delay_ns)| {
            (
                self.nodes[&here.guid].agent.as_str(),
                (here, there, self.nodes[&there.guid].agent.as_str(), *delay_ns),
            )
        });
        let mut own: Vec<_> = told.filter(|(at, _)| *at == agent).map(|(_, cable)| cable).collect();
        own.sort_unstable();
        own
    }

    /// The same cabling, built from nothing.
    pub(super) fn fabric(&self) -> anyhow::Result<Fabric> {
        let mut builder = FabricBuilder::new();
        let mut places = BTreeMap::new();
        for (guid, known) in &self.nodes {
            places.insert(*guid, builder.add_node(known.node(*guid))?);
        }
        for ends in self.cables.keys() {
            let [a, b] = ends.map(|end| PortRef::new(places[&end.guid], end.port));
            builder.connect(a, b)?;
        }
        Ok(builder.build())
    }

    /// Draws a verb. It may be one that is to be refused.
    pub(super) fn draw(&self, random: &mut Pcg64) -> Drawn {
        match random.random_range(0..12u32) {
            0..3 => Drawn::Connect(self.end(random, false), self.end(random, false)),
            3..5 => Drawn::Disconnect(self.end(random, true)),
            5..8 => Drawn::Move(self.end(random, true), self.end(random, false)),
            8 => Drawn::AddHost(self.name(random), self.end(random, false)),
            9 => {
                let cables = (0..random.random_range(0..3u8)).map(|nth| {
                    // One time of twelve there is no such port.
                    let port = if random.random_ratio(1, 12) { NEW_PORTS + 1 } else { 1 + nth };
                    (port, self.end(random, false))
                });
                let cables = cables.collect();
                Drawn::AddSwitch(self.name(random), cables)
            }
            _ => {
                let near = self.peer(self.seat).map(|(peer, _)| peer.guid);
                let is_new = |guid: &Guid| self.come.contains_key(guid);
                let old = random.random_bool(0.3);
                let nodes = self.nodes.keys().filter(|guid| Some(**guid) != near && (old || is_new(guid)));
                let nodes: Vec<Guid> = nodes.copied().collect();
                Drawn::Remove(pick(random, &nodes).unwrap_or(self.seat.guid))
            }
        }
    }

    /// A port with a cable or without one; one time of eight any. Not one of the manager's cable.
    fn end(&self, random: &mut Pcg64, cabled: bool) -> CableEnd {
        let near = self.peer(self.seat).map(|(peer, _)| peer);
        let ports = self.nodes.iter().flat_map(|(guid, known)| {
            (1..=known.ports).map(move |port| CableEnd { guid: *guid, port: PortNum(port) })
        });
        let ports: Vec<CableEnd> = ports.filter(|end| *end != self.seat && Some(*end) != near).collect();
        let wanted: Vec<CableEnd> =
            ports.iter().copied().filter(|end| self.peer(*end).is_some() == cabled).collect();
        let any = random.random_ratio(1, 8);
        let found = if any { None } else { pick(random, &wanted) };
        found.or_else(|| pick(random, &ports)).expect("there are ports")
    }

    /// A new name; one time of eight one that a node has.
    fn name(&self, random: &mut Pcg64) -> String {
        let names: Vec<String> = self.nodes.values().map(|known| known.name.clone()).collect();
        let taken = if random.random_ratio(1, 8) { pick(random, &names) } else { None };
        taken.unwrap_or_else(|| format!("new {}", self.come.len()))
    }

    /// How a user says it.
    pub(super) fn words(&self, drawn: &Drawn) -> Vec<String> {
        let port = |end: &CableEnd| format!("{}:{}", self.nodes[&end.guid].name, end.port);
        let mut words = vec![drawn.verb().to_owned()];
        match drawn {
            Drawn::Connect(a, b) | Drawn::Move(a, b) => words.extend([port(a), port(b)]),
            Drawn::Disconnect(end) => words.push(port(end)),
            Drawn::AddHost(name, at) => words.extend([name.clone(), "--at".to_owned(), port(at)]),
            Drawn::AddSwitch(name, cables) => {
                words.extend([name.clone(), "--ports".to_owned(), NEW_PORTS.to_string()]);
                for (own, peer) in cables {
                    words.extend(["--connect".to_owned(), format!("{own}={}", port(peer))]);
                }
            }
            Drawn::Remove(guid) => words.push(self.nodes[guid].name.clone()),
        }
        words
    }

    /// Whether it can be done.
    pub(super) fn allows(&self, drawn: &Drawn) -> bool {
        let free = |end: &CableEnd| self.peer(*end).is_none();
        let new = |name: &String| self.nodes.values().all(|known| known.name != *name);
        match drawn {
            Drawn::Connect(a, b) => a != b && free(a) && free(b),
            Drawn::Disconnect(end) => !free(end),
            Drawn::Move(stays, to) => !free(stays) && free(to),
            Drawn::AddHost(name, at) => new(name) && free(at),
            Drawn::AddSwitch(name, cables) => {
                let peers: BTreeSet<&CableEnd> = cables.iter().map(|(_, peer)| peer).collect();
                let own: BTreeSet<u8> = cables.iter().map(|(own, _)| *own).collect();
                let once = peers.len() == cables.len() && own.len() == cables.len();
                new(name) && once && own.iter().all(|own| *own <= NEW_PORTS) && peers.into_iter().all(free)
            }
            Drawn::Remove(guid) => {
                let agent = &self.nodes[guid].agent;
                let sits = self.nodes[&self.seat.guid].agent == *agent;
                !sits && self.nodes.values().filter(|other| other.agent == *agent).count() == 1
            }
        }
    }

    /// Does it; `new` is the GUID of a node that comes and its agent's name.
    pub(super) fn apply(&mut self, drawn: &Drawn, new: Option<(Guid, String)>) {
        match (drawn.clone(), new) {
            (Drawn::Connect(a, b), _) => self.put_in(a, b, 0),
            (Drawn::Disconnect(end), _) => {
                self.take_out(end);
            }
            (Drawn::Move(stays, to), _) => {
                let delay_ns = self.take_out(stays);
                self.put_in(stays, to, delay_ns);
            }
            (Drawn::AddHost(name, at), Some((guid, agent))) => {
                self.come(guid, Known { name, kind: NodeType::Hca, ports: 1, agent });
                self.put_in(CableEnd { guid, port: PortNum(1) }, at, 0);
            }
            (Drawn::AddSwitch(name, cables), Some((guid, agent))) => {
                self.come(guid, Known { name, kind: NodeType::Switch, ports: NEW_PORTS, agent });
                for (own, peer) in cables {
                    self.put_in(CableEnd { guid, port: PortNum(own) }, peer, 0);
                }
            }
            (Drawn::Remove(guid), _) => {
                self.cables.retain(|ends, _| ends.iter().all(|end| end.guid != guid));
                self.nodes.remove(&guid);
                self.steps.push(Step::Removed(guid));
            }
            (Drawn::AddHost(..) | Drawn::AddSwitch(..), None) => unreachable!("a node that comes has a GUID"),
        }
        let reached = self.reached();
        self.was_cut |= self.nodes.keys().any(|guid| self.is_switch(guid) && !reached.contains(guid));
    }

    /// The nodes that cables lead to from the subnet manager. Hosts pass nothing on.
    pub(super) fn reached(&self) -> BTreeSet<Guid> {
        let (mut reached, mut todo) = (BTreeSet::new(), vec![self.seat.guid]);
        while let Some(from) = todo.pop() {
            if reached.insert(from) && (from == self.seat.guid || self.is_switch(&from)) {
                for ends in self.cables.keys().map(|ends| ends.map(|end| end.guid)) {
                    todo.extend(ends.iter().filter(|_| ends.contains(&from)));
                }
            }
        }
        reached
    }

    fn is_switch(&self, guid: &Guid) -> bool {
        self.nodes[guid].kind == NodeType::Switch
    }

    fn put_in(&mut self, a: CableEnd, b: CableEnd, delay_ns: u64) {
        self.cables.insert(pair(a, b), delay_ns);
        self.steps.push(Step::PutIn([a, b]));
    }

    fn take_out(&mut self, end: CableEnd) -> u64 {
        let (peer, delay_ns) = self.peer(end).expect("a cable is in the port");
        self.cables.remove(&pair(end, peer));
        self.steps.push(Step::TakenOut(end));
        delay_ns
    }

    fn come(&mut self, guid: Guid, known: Known) {
        self.agents.insert(known.agent.clone());
        self.come.insert(guid, known.clone());
        self.nodes.insert(guid, known);
    }
}

impl Known {
    /// It without cables.
    pub(super) fn node(&self, guid: Guid) -> Node {
        let node = Node::new(self.kind, guid, self.ports, weft_topology::LinkRate::default());
        Node { description: self.name.clone(), ..node }
    }
}

fn pick<T: Clone>(random: &mut Pcg64, from: &[T]) -> Option<T> {
    if from.is_empty() { None } else { from.get(random.random_range(0..from.len())).cloned() }
}
