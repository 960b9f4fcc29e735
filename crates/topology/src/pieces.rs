//! The subnets that a cabling consists of: what switches and cables join.
//!
//! Packets pass switches alone. An adapter or a router ends a piece, and one with several ports may be in several.

use weft_wire::PortNum;

use crate::{Cable, Fabric, Node, NodeIndex, PortRef};

/// Which ports are in which piece of a fabric. Pieces are numbered by their first nodes and ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// By node: its pieces, each with the first of its ports there. A node without a cable has a piece of its own.
    of_node: Vec<Vec<(u32, PortNum)>>,
    /// By node and port: the piece that the port's cable is in. Empty for switches, which are in one piece whole.
    of_port: Vec<Vec<Option<u32>>>,
    count: u32,
}

impl Pieces {
    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none, as in a fabric without nodes.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The numbers of all pieces.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.count
    }

    /// The pieces that a node is in, in the order of its ports there.
    pub fn of_node(&self, node: NodeIndex) -> impl Iterator<Item = u32> {
        self.of_node.get(node.index()).into_iter().flatten().map(|(piece, _)| *piece)
    }

    /// The piece that a port is in: a switch's, whichever port it is, or that of another node's cable. `None` for other ports
    /// without a cable.
    pub fn of_port(&self, port: PortRef) -> Option<u32> {
        match self.of_port.get(port.node.index())?.get(usize::from(port.port.0)) {
            Some(piece) => *piece,
            None if self.is_switch(port.node) => self.of_node(port.node).next(),
            None => None,
        }
    }

    /// The piece of a program at this port; that of its node where no cable is in the port.
    pub fn of_seat(&self, seat: PortRef) -> Option<u32> {
        self.of_port(seat).or_else(|| self.of_node(seat.node).next())
    }

    /// Whether a node is in a piece.
    pub fn has(&self, piece: u32, node: NodeIndex) -> bool {
        self.of_node(node).any(|of| of == piece)
    }

    /// Whether a cable is in a piece.
    pub fn has_cable(&self, piece: u32, cable: &Cable) -> bool {
        self.of_port(cable.a) == Some(piece)
    }

    /// How many nodes a piece has.
    pub fn nodes(&self, piece: u32) -> usize {
        self.of_node.iter().filter(|of| of.iter().any(|(of, _)| *of == piece)).count()
    }

    /// The first piece that two nodes are both in.
    pub fn shared(&self, a: NodeIndex, b: NodeIndex) -> Option<u32> {
        self.of_node(a).find(|piece| self.has(*piece, b))
    }

    /// The first port of a node in a piece: port 0 of a switch. `None` where the node is not in it, or has no cable.
    pub fn port_in(&self, piece: u32, node: NodeIndex) -> Option<PortNum> {
        let (_, port) = self.of_node.get(node.index())?.iter().find(|(of, _)| *of == piece)?;
        (*port != PortNum::ZERO || self.is_switch(node)).then_some(*port)
    }

    fn is_switch(&self, node: NodeIndex) -> bool {
        self.of_port.get(node.index()).is_some_and(Vec::is_empty)
    }
}

impl Fabric {
    /// The pieces that switches and cables join.
    pub fn pieces(&self) -> Pieces {
        let ports = |node: &Node| if node.is_switch() { 0 } else { node.ports.len() };
        let mut pieces = Pieces {
            of_node: vec![Vec::new(); self.nodes.len()],
            of_port: self.nodes.iter().map(|node| vec![None; ports(node)]).collect(),
            count: 0,
        };
        for (index, node) in self.iter() {
            let starts = node.cabled_ports().map(|(port, _)| PortRef::new(index, port));
            for start in starts.filter(|_| !node.is_switch()) {
                self.fill(&mut pieces, start);
            }
            if pieces.of_node[index.index()].is_empty() {
                self.fill(&mut pieces, PortRef::new(index, PortNum::ZERO));
            }
        }
        pieces
    }

    /// Puts all that a port is joined with into a piece, if it is in none.
    fn fill(&self, pieces: &mut Pieces, start: PortRef) {
        if pieces.of_port(start).is_some() {
            return;
        }
        let piece = pieces.count;
        pieces.count += 1;
        let mut todo = vec![start];
        while let Some(at) = todo.pop() {
            let is_switch = self.node(at.node).is_switch();
            if let Some(port) = pieces.of_port[at.node.index()].get_mut(usize::from(at.port.0)) {
                if port.is_some() {
                    continue;
                }
                // Port 0 stands for a node without a cable.
                *port = (at.port != PortNum::ZERO).then_some(piece);
            }
            let of_node = &mut pieces.of_node[at.node.index()];
            if is_switch && !of_node.is_empty() {
                continue;
            }
            if of_node.iter().all(|(of, _)| *of != piece) {
                of_node.push((piece, if is_switch { PortNum::ZERO } else { at.port }));
            }
            match is_switch {
                true => todo.extend(self.node(at.node).cabled_ports().map(|(_, peer)| peer)),
                false => todo.extend(self.peer(at)),
            }
        }
    }

    /// A piece by itself: its nodes, and of those with ports in other pieces the cables in this one alone.
    pub fn piece(&self, pieces: &Pieces, piece: u32) -> Self {
        let cables = self.cables().filter(|cable| pieces.has_cable(piece, cable));
        let part = self.part(|node| pieces.has(piece, node), cables);
        let mut part = part.expect("a part of a fabric is one");
        for node in part.nodes.iter_mut().filter(|node| !node.is_switch()) {
            for port in node.ports.iter_mut().filter(|port| port.peer.is_none()) {
                // What it has, it has in another subnet.
                (port.lid, port.lmc) = (weft_wire::Lid(0), 0);
            }
        }
        part
    }

    /// What a piece is called by people: its first switch, or else its first node.
    pub fn piece_label(&self, pieces: &Pieces, piece: u32) -> String {
        let is_in = |(index, _): &(NodeIndex, &Node)| pieces.has(piece, *index);
        let switch = self.switches().find(is_in);
        switch.or_else(|| self.iter().find(is_in)).map_or_else(String::new, |(index, _)| self.label(index))
    }
}
