//! From a DOT graph to a fabric and its tables.

use std::collections::{BTreeMap, BTreeSet};

use weft_topology::{Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PORTS_PER_NODE_MAX, PortRef};
use weft_wire::{Guid, Lid, NodeType, PortNum};

use super::scan::{Kind, Scanner, Token};
use crate::files::{FileError, FileProblem};
use crate::lids::Lids;
use crate::sorted;
use crate::tables::{ForwardingTable, Routes};

/// What a DOT graph says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotNetwork {
    /// Nodes and cables. A name of 16 hexadecimal digits, behind `H`, `H-` or `S-` if any, is the GUID; other nodes
    /// are given the lowest GUIDs that are left, by their place in the file. Cables have no rate.
    pub fabric: Fabric,
    /// One LID for each, in the order of GUIDs: a DOT graph has none.
    pub lids: Lids,
    /// The tables.
    pub routes: Routes,
}

/// Reads a DOT graph. `file` is what errors call it.
///
/// Where several edges of a switch serve a destination, it is sent by the first, as in ORCS. Ports are those that the
/// keys say; edges without one take the lowest ports that are left. The edges between two nodes make cables in the
/// order of their ports, and one that has no counterpart is a cable too, with nothing sent back.
///
/// # Errors
///
/// With line and column: what is no DOT, what is an undirected graph or has subgraphs, destinations that are no nodes,
/// and cables that cannot be.
pub fn parse_dot(file: &str, text: &str) -> Result<DotNetwork, FileError> {
    let mut reader = Reader { file, scanner: Scanner::new(file, text), ahead: None, graph: Graph::default() };
    reader.graph()?;
    reader.graph.build(file)
}

/// An edge, as written.
#[derive(Debug)]
struct Edge {
    from: usize,
    to: usize,
    /// The token that names its end, for errors.
    at: Token,
    key: Option<Token>,
    comment: Option<Token>,
}

#[derive(Debug, Default)]
struct Graph {
    names: Vec<String>,
    numbers: BTreeMap<String, usize>,
    edges: Vec<Edge>,
    /// The attributes that edges have from `edge [...]` on.
    defaults: BTreeMap<String, Token>,
}

struct Reader<'a> {
    file: &'a str,
    scanner: Scanner<'a>,
    ahead: Option<Token>,
    graph: Graph,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<Token, FileError> {
        match self.ahead.take() {
            Some(token) => Ok(token),
            None => self.scanner.next(),
        }
    }

    /// The next token when it is this sign.
    fn sign(&mut self, sign: &str) -> Result<bool, FileError> {
        let token = self.next()?;
        let is = token.is_sign(sign);
        if !is {
            self.ahead = Some(token);
        }
        Ok(is)
    }

    fn expect(&mut self, sign: &str, expected: &'static str) -> Result<(), FileError> {
        let token = self.next()?;
        if token.is_sign(sign) { Ok(()) } else { Err(self.expected(&token, expected)) }
    }

    fn expected(&self, token: &Token, expected: &'static str) -> FileError {
        token.error(self.file, FileProblem::Expected(expected))
    }

    fn name(&mut self, expected: &'static str) -> Result<Token, FileError> {
        let token = self.next()?;
        if token.is_name() { Ok(token) } else { Err(self.expected(&token, expected)) }
    }

    fn graph(&mut self) -> Result<(), FileError> {
        let mut token = self.next()?;
        if token.is_keyword("strict") {
            token = self.next()?;
        }
        if !token.is_keyword("digraph") {
            return Err(self.expected(&token, "`digraph`"));
        }
        let token = self.next()?;
        if !token.is_name() {
            self.ahead = Some(token);
        }
        self.expect("{", "`{`")?;
        loop {
            let token = self.next()?;
            if token.is_sign("}") {
                break;
            }
            if !token.is_sign(";") {
                self.statement(&token)?;
            }
        }
        let token = self.next()?;
        if token.kind == Kind::End { Ok(()) } else { Err(token.error(self.file, FileProblem::Surplus)) }
    }

    fn statement(&mut self, first: &Token) -> Result<(), FileError> {
        if first.is_keyword("subgraph") || !first.is_name() {
            return Err(self.expected(first, "a node, an edge or `}`"));
        }
        for keyword in ["graph", "node", "edge"] {
            if first.is_keyword(keyword) {
                let attributes = self.attributes()?;
                if keyword == "edge" {
                    self.graph.defaults.extend(attributes);
                }
                return Ok(());
            }
        }
        if self.sign("=")? {
            return self.name("a value").map(drop);
        }
        let mut ends = vec![(self.graph.number(&first.text), first.clone())];
        while self.sign("->")? {
            let end = self.name("the node that the edge leads to")?;
            ends.push((self.graph.number(&end.text), end));
        }
        let attributes = self.attributes()?;
        for pair in ends.windows(2) {
            let attribute = |name: &str| attributes.get(name).or(self.graph.defaults.get(name)).cloned();
            let (from, to, at) = (pair[0].0, pair[1].0, pair[1].1.clone());
            let edge = Edge { from, to, at, key: attribute("key"), comment: attribute("comment") };
            self.graph.edges.push(edge);
        }
        Ok(())
    }

    /// Any number of lists like `[ a=b, c=d ]`.
    fn attributes(&mut self) -> Result<BTreeMap<String, Token>, FileError> {
        let mut attributes = BTreeMap::new();
        while self.sign("[")? {
            while !self.sign("]")? {
                let name = self.name("an attribute or `]`")?;
                self.expect("=", "`=` and a value")?;
                let value = self.name("a value")?;
                attributes.insert(name.text, value);
                // Either may stand between two attributes.
                let _ = self.sign(",")? || self.sign(";")?;
            }
        }
        Ok(attributes)
    }
}

/// The cables between nodes as far as they are known: the ends of each edge's port.
type Ports = Vec<PortNum>;

impl Graph {
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn build(mut self, file: &str) -> Result<DotNetwork, FileError> {
        let missing = self.missing();
        self.edges.extend(missing);
        let ports = self.ports(file)?;
        let mut builder = self.nodes(file, &ports)?;
        self.cables(file, &ports, &mut builder)?;
        let fabric = builder.build();
        let lids =
            Lids::in_guid_order(&fabric, 0).map_err(|error| FileError::of(file, FileProblem::Lids(error)))?;
        let mut lid_of = vec![Lid(0); self.names.len()];
        for port_lids in lids.iter() {
            let known = &mut lid_of[port_lids.port.node.index()];
            // Of a host with several cables the first port.
            if *known == Lid(0) {
                *known = port_lids.base;
            }
        }
        let routes = self.routes(file, &fabric, &lids, &lid_of, &ports)?;
        Ok(DotNetwork { fabric, lids, routes })
    }

    /// The ways back of edges that have none.
    fn missing(&self) -> Vec<Edge> {
        let mut surplus: BTreeMap<(usize, usize), i64> = BTreeMap::new();
        for Edge { from, to, .. } in &self.edges {
            let order = if from < to { 1 } else { -1 };
            *surplus.entry((*from.min(to), *from.max(to))).or_default() += order;
        }
        let mut missing = Vec::new();
        for edge in self.edges.iter().rev() {
            let order = if edge.from < edge.to { 1 } else { -1 };
            let Some(surplus) = surplus.get_mut(&(edge.from.min(edge.to), edge.from.max(edge.to))) else {
                continue;
            };
            if *surplus * order > 0 {
                *surplus -= order;
                missing.push(Edge {
                    from: edge.to,
                    to: edge.from,
                    at: edge.at.clone(),
                    key: None,
                    comment: None,
                });
            }
        }
        missing
    }

    /// By edge, the port that it leaves.
    fn ports(&self, file: &str) -> Result<Ports, FileError> {
        let mut taken = vec![[false; 256]; self.names.len()];
        let mut ports = vec![PortNum::ZERO; self.edges.len()];
        for (edge, port) in self.edges.iter().zip(&mut ports) {
            let Some(key) = &edge.key else { continue };
            let Some(digits) = port_of_key(&key.text) else { continue };
            let number = digits.parse().ok().filter(|number| (1..=PORTS_PER_NODE_MAX).contains(number));
            let range = FileProblem::Range { what: "a port", min: 1, max: PORTS_PER_NODE_MAX.into() };
            *port = PortNum(number.ok_or_else(|| key.error(file, range))?);
            if std::mem::replace(&mut taken[edge.from][usize::from(port.0)], true) {
                let what = format!("port {port} of {}", self.names[edge.from]);
                return Err(key.error(file, FileProblem::Twice(what)));
            }
        }
        for (edge, port) in self.edges.iter().zip(&mut ports) {
            if *port != PortNum::ZERO {
                continue;
            }
            let free = (1..=PORTS_PER_NODE_MAX).find(|port| !taken[edge.from][usize::from(*port)]);
            let full = FileProblem::Expected("a node with no more than 254 cables");
            *port = PortNum(free.ok_or_else(|| edge.at.error(file, full))?);
            taken[edge.from][usize::from(port.0)] = true;
        }
        Ok(ports)
    }

    fn nodes(&self, file: &str, ports: &Ports) -> Result<FabricBuilder, FileError> {
        let mut counts = vec![1; self.names.len()];
        for (edge, port) in self.edges.iter().zip(ports) {
            counts[edge.from] = port.0.max(counts[edge.from]);
        }
        let known: Vec<Option<Guid>> = self.names.iter().map(|name| guid_of(name)).collect();
        let taken: BTreeSet<Guid> = known.iter().flatten().copied().collect();
        let mut free = (1..).map(Guid).filter(|guid| !taken.contains(guid));
        let mut builder = FabricBuilder::new();
        for (number, name) in self.names.iter().enumerate() {
            let kind = if is_host(name) { NodeType::Hca } else { NodeType::Switch };
            let guid = known[number].or_else(|| free.next()).unwrap_or_default();
            let mut node = Node::new(kind, guid, counts[number], LinkRate::default());
            node.id.clone_from(name);
            node.description.clone_from(name);
            if kind == NodeType::Hca {
                // Hosts are named by the GUID of their port.
                for (offset, port) in (0..).zip(node.ports.iter_mut().skip(1)) {
                    port.guid = Guid(guid.0.wrapping_add(offset));
                }
            }
            builder.add_node(node).map_err(|error| FileError::of(file, FileProblem::from(error)))?;
        }
        Ok(builder)
    }

    fn cables(&self, file: &str, ports: &Ports, builder: &mut FabricBuilder) -> Result<(), FileError> {
        let mut between: BTreeMap<(usize, usize), Vec<(PortNum, usize)>> = BTreeMap::new();
        for (place, (edge, port)) in self.edges.iter().zip(ports).enumerate() {
            between.entry((edge.from, edge.to)).or_default().push((*port, place));
        }
        for edges in between.values_mut() {
            sorted::by_key(edges, |item| *item);
        }
        for ((from, to), edges) in &between {
            // A node's cables to itself are pairs of its own edges, which may be odd in number.
            let back: Vec<_> = match from.cmp(to) {
                std::cmp::Ordering::Less => between.get(&(*to, *from)).cloned().unwrap_or_default(),
                std::cmp::Ordering::Equal => {
                    return Err(self.edges[edges[0].1].at.error(file, FileProblem::Expected("another node")));
                }
                std::cmp::Ordering::Greater => continue,
            };
            for ((port, place), (other, _)) in edges.iter().zip(back) {
                let end = |node: usize, port| PortRef::new(NodeIndex(node as u32), port);
                builder
                    .connect(end(*from, *port), end(*to, other))
                    .map_err(|error| self.edges[*place].at.error(file, error.into()))?;
            }
        }
        Ok(())
    }

    fn routes(
        &self,
        file: &str,
        fabric: &Fabric,
        lids: &Lids,
        lid_of: &[Lid],
        ports: &Ports,
    ) -> Result<Routes, FileError> {
        let mut routes = Routes { tables: vec![ForwardingTable::default(); self.names.len()] };
        for (index, _) in fabric.switches() {
            let table = &mut routes.tables[index.index()];
            *table = ForwardingTable::new(lids.top());
            table.set(lid_of[index.index()], PortNum::ZERO);
        }
        for (edge, port) in self.edges.iter().zip(ports) {
            let Some(comment) = &edge.comment else { continue };
            if is_host(&self.names[edge.from]) {
                continue;
            }
            let table = &mut routes.tables[edge.from];
            let mut serve = |number: usize| {
                let lid = lid_of[number];
                if lid != Lid(0) && table.port(lid) == PortNum::NONE {
                    table.set(lid, *port);
                }
            };
            if comment.text.trim() == "*" {
                (0..self.names.len()).filter(|number| is_host(&self.names[*number])).for_each(&mut serve);
                continue;
            }
            let names = comment.text.split([',', ' ', '\t', '\n']).filter(|name| !name.is_empty());
            for name in names {
                // Switches stand here as if they were hosts.
                let switch = || self.numbers.get(name.strip_prefix('H')?);
                let number = self.numbers.get(name).or_else(switch);
                let unknown = || comment.error(file, FileProblem::UnknownName(name.to_owned()));
                serve(*number.ok_or_else(unknown)?);
            }
        }
        Ok(routes)
    }
}

fn is_host(name: &str) -> bool {
    name.starts_with('H')
}

/// The GUID that a name is.
fn guid_of(name: &str) -> Option<Guid> {
    let digits = ["H-", "S-", "H"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let is_guid = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_guid).map(Guid)
}

/// The digits of the port in a key: all of it, or behind `port-`.
fn port_of_key(key: &str) -> Option<&str> {
    let digits = match key.split_once(":port-") {
        Some((_, rest)) => rest.split(' ').next()?,
        None => key,
    };
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then_some(digits)
}
