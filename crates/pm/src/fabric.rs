//! The fabric as subnet administration tells it: nodes, the ports that carry traffic, who is at the other end.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_topology::LinkRate;
use weft_wire::{Guid, Lid, LinkRecord, NodeRecord, NodeType, PortInfoRecord, PortNum, PortState};

use crate::totals::{Counters, ErrorCounters, LaneWaits};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) guid: Guid,
    pub(crate) kind: NodeType,
    pub(crate) name: String,
    /// Where its performance agent is asked whether it is there: its lowest LID.
    pub(crate) lid: Lid,
    /// Whether it does not answer.
    pub(crate) silent: bool,
    /// Whether it has said that it has no PortCountersExtended.
    pub(crate) no_extended: bool,
    /// Whether it has said that it does not count by lane.
    pub(crate) no_lanes: bool,
    /// Whether it has said that it does not know what errors are made of.
    pub(crate) no_errors: bool,
}

/// A port that carries traffic.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) node: u32,
    pub(crate) num: PortNum,
    /// The GUID that its LID belongs to; a switch's ports share one.
    pub(crate) guid: Guid,
    /// Where its counters are asked for.
    pub(crate) lid: Lid,
    pub(crate) rate: LinkRate,
    /// The port at the other end, when it carries traffic too.
    pub(crate) peer: Option<u32>,
    pub(crate) state: State,
}

/// What readings have shown of a port.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) counters: Counters,
    pub(crate) lanes: LaneWaits,
    pub(crate) errors: ErrorCounters,
    /// When PortCounters, PortCountersExtended, the lanes' and the errors' were read last.
    pub(crate) basic_at: Option<Time>,
    pub(crate) extended_at: Option<Time>,
    pub(crate) lanes_at: Option<Time>,
    pub(crate) errors_at: Option<Time>,
    /// Which of these the port answered with an error when it was last asked, a bit each.
    pub(crate) refused: u8,
    /// Ticks per second of fabric time, in which sweep that was found, and whether it is not only the least.
    pub(crate) congestion: Rate,
    /// The same of the slow lane alone, where lanes are read.
    pub(crate) slow_wait: Rate,
    /// It leads to a hot spot, so lanes are read in any case.
    pub(crate) is_hot: bool,
    /// Bytes sent per second of fabric time.
    pub(crate) xmit: Rate,
    /// Bytes received per second of fabric time.
    pub(crate) rcv: Rate,
}

/// A rate that a sweep found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) value: u64,
    /// Whether that is all, rather than the least.
    pub(crate) exact: bool,
    /// The number of the sweep; 0 is none.
    pub(crate) sweep: u64,
}

/// Nodes and ports, in order of LIDs and port numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fabric {
    pub(crate) nodes: Vec<Node>,
    pub(crate) ports: Vec<Port>,
    /// The ports in the order in which they are swept: the first of every node, then the second of every node, so that
    /// no device is asked more than its share at once.
    pub(crate) order: Vec<u32>,
}

/// The records as they come; those that say nothing useful are left out at once.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) nodes: Vec<NodeRecord>,
    pub(crate) ports: BTreeMap<(Lid, PortNum), LinkRate>,
    pub(crate) links: BTreeMap<(Lid, PortNum), (Lid, PortNum)>,
}

impl Records {
    pub(crate) fn add_node(&mut self, record: NodeRecord) {
        if record.lid.is_unicast() {
            self.nodes.push(record);
        }
    }

    pub(crate) fn add_port(&mut self, record: &PortInfoRecord) {
        let is_in_use = record.port_info.port_state == PortState::Active && record.port_num != PortNum::ZERO;
        if is_in_use && record.lid.is_unicast() {
            self.ports.insert((record.lid, record.port_num), LinkRate::active(&record.port_info));
        }
    }

    pub(crate) fn add_link(&mut self, record: &LinkRecord) {
        self.links.insert((record.from_lid, record.from_port), (record.to_lid, record.to_port));
    }

    /// The fabric that they describe.
    pub(crate) fn into_fabric(mut self) -> Fabric {
        self.nodes.sort_by_key(|record| record.lid);
        let mut by_guid: BTreeMap<Guid, u32> = BTreeMap::new();
        let mut by_lid: BTreeMap<Lid, (u32, Guid)> = BTreeMap::new();
        let mut nodes = Vec::new();
        for record in &self.nodes {
            let info = &record.node_info;
            let node = *by_guid.entry(info.node_guid).or_insert_with(|| {
                nodes.push(Node {
                    guid: info.node_guid,
                    kind: info.node_type,
                    name: record.node_description.to_text(),
                    lid: record.lid,
                    silent: false,
                    no_extended: false,
                    no_lanes: false,
                    no_errors: false,
                });
                nodes.len() as u32 - 1
            });
            by_lid.insert(record.lid, (node, info.port_guid));
        }
        let mut ports = Vec::with_capacity(self.ports.len());
        let mut places = BTreeMap::new();
        for (&(lid, num), &rate) in &self.ports {
            let Some(&(node, guid)) = by_lid.get(&lid) else { continue };
            places.insert((lid, num), ports.len() as u32);
            ports.push(Port { node, num, guid, lid, rate, peer: None, state: State::default() });
        }
        for (from, to) in &self.links {
            if let (Some(&from), Some(&to)) = (places.get(from), places.get(to)) {
                ports[from as usize].peer = Some(to);
            }
        }
        let order = spread(&ports, nodes.len());
        Fabric { nodes, ports, order }
    }
}

/// The ports, the first of every node first.
fn spread(ports: &[Port], nodes: usize) -> Vec<u32> {
    let mut seen = vec![0u32; nodes];
    let mut order: Vec<(u32, u32)> = (0..)
        .zip(ports)
        .map(|(at, port)| {
            let rank = &mut seen[port.node as usize];
            *rank += 1;
            (*rank, at)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

impl Fabric {
    /// Takes over what is known of the ports and nodes of an earlier one.
    pub(crate) fn inherit(&mut self, earlier: Self) {
        let nodes: BTreeMap<Guid, &Node> = earlier.nodes.iter().map(|node| (node.guid, node)).collect();
        for node in &mut self.nodes {
            if let Some(known) = nodes.get(&node.guid) {
                node.silent = known.silent;
                node.no_extended = known.no_extended;
                (node.no_lanes, node.no_errors) = (known.no_lanes, known.no_errors);
            }
        }
        let key = |nodes: &[Node], port: &Port| (nodes.get(port.node as usize).map(|n| n.guid), port.num);
        let mut states: BTreeMap<_, State> = BTreeMap::new();
        for port in earlier.ports {
            states.insert(key(&earlier.nodes, &port), port.state);
        }
        for port in &mut self.ports {
            if let Some(state) = states.remove(&key(&self.nodes, port)) {
                port.state = state;
            }
        }
    }

    pub(crate) fn node_of(&self, port: &Port) -> Option<&Node> {
        self.nodes.get(port.node as usize)
    }

    pub(crate) fn is_hca(&self, port: &Port) -> bool {
        self.node_of(port).is_some_and(|node| node.kind == NodeType::Hca)
    }

    /// The port at the other end.
    pub(crate) fn peer(&self, port: &Port) -> Option<&Port> {
        self.ports.get(port.peer? as usize)
    }

    /// The host's port that a switch's port leads to.
    pub(crate) fn host_behind(&self, port: &Port) -> Option<&Port> {
        let is_switch = self.node_of(port).is_some_and(|node| node.kind == NodeType::Switch);
        self.peer(port).filter(|peer| is_switch && self.is_hca(peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_wire::{NodeDescription, NodeInfo, PortInfo};

    fn node(lid: u16, node_type: NodeType) -> NodeRecord {
        let node_guid = Guid(u64::from(lid) << 8);
        NodeRecord {
            lid: Lid(lid),
            node_info: NodeInfo {
                node_type,
                node_guid,
                port_guid: Guid(node_guid.0 + 1),
                ..NodeInfo::default()
            },
            node_description: NodeDescription::new(&format!("n{lid}")),
            ..NodeRecord::default()
        }
    }

    fn port(lid: u16, num: u8, speeds: (u8, u8)) -> PortInfoRecord {
        let port_info = PortInfo {
            port_state: PortState::Active,
            link_width_active: 2,
            link_speed_active: speeds.0,
            link_speed_ext_active: speeds.1,
            ..PortInfo::default()
        };
        PortInfoRecord { lid: Lid(lid), port_num: PortNum(num), port_info, ..PortInfoRecord::default() }
    }

    fn link(from: (u16, u8), to: (u16, u8)) -> LinkRecord {
        LinkRecord {
            from_lid: Lid(from.0),
            from_port: PortNum(from.1),
            to_lid: Lid(to.0),
            to_port: PortNum(to.1),
        }
    }

    #[test]
    fn records_become_ports_with_peers_and_rates() {
        let mut records = Records::default();
        records.add_node(node(2, NodeType::Hca));
        records.add_node(node(1, NodeType::Switch));
        records.add_node(node(0, NodeType::Hca));
        for record in [port(1, 0, (1, 0)), port(1, 3, (2, 0)), port(1, 4, (4, 2)), port(2, 1, (2, 0))] {
            records.add_port(&record);
        }
        records.add_port(&PortInfoRecord { port_info: PortInfo::default(), ..port(1, 5, (1, 0)) });
        records.add_port(&port(9, 1, (1, 0)));
        records.add_link(&link((1, 3), (2, 1)));
        records.add_link(&link((2, 1), (1, 3)));
        records.add_link(&link((1, 4), (9, 1)));
        let fabric = records.into_fabric();
        let shown: Vec<_> = fabric.ports.iter().map(|p| (p.lid.0, p.num.0, p.rate.to_string())).collect();
        let rate = |rate: &str| rate.to_owned();
        assert_eq!(shown, [(1, 3, rate("4xDDR")), (1, 4, rate("4xEDR")), (2, 1, rate("4xDDR"))]);
        assert_eq!(fabric.host_behind(&fabric.ports[0]).map(|port| port.guid), Some(Guid(0x201)));
        assert!(fabric.host_behind(&fabric.ports[1]).is_none());
        assert!(fabric.host_behind(&fabric.ports[2]).is_none(), "a switch is behind an HCA's port, no host");
        assert_eq!(fabric.order, [0, 2, 1], "the first port of every node, then the second");
    }

    #[test]
    fn port_history_follows_the_node_not_the_lid() {
        let build = |lid: u16| {
            let mut records = Records::default();
            records.add_node(NodeRecord { lid: Lid(lid), ..node(1, NodeType::Hca) });
            records.add_port(&port(lid, 1, (4, 0)));
            records.into_fabric()
        };
        let mut earlier = build(1);
        earlier.ports[0].state.basic_at = Some(Time::from_secs(7));
        earlier.nodes[0].no_extended = true;
        let mut later = build(5);
        later.inherit(earlier);
        assert_eq!(later.ports[0].state.basic_at, Some(Time::from_secs(7)));
        assert!(later.nodes[0].no_extended);
    }
}
