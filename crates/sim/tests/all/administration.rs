//! Subnet administration asked through the fabric: over the data lanes, from nodes other than the manager's.

use std::collections::{BTreeMap, BTreeSet};

use rand_pcg::Pcg64;
use weft_machine::Time;
use weft_sim::{Fault, Process, RandomLoss, Rule, SaAnswer, SimOptions, Simulation, Verdict};
use weft_topology::generate::{GenerateOptions, ring};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::*;

const LIMIT: Time = Time::from_secs(300);

fn x5() -> Fabric {
    let text = include_str!("../../../../topologies/psmn-x5.topo");
    weft_topology::parse("psmn-x5.topo", text).expect("a topology")
}

fn up(fabric: &Fabric, seed: u64) -> Simulation {
    let mut simulation = Simulation::new(fabric, SimOptions::default(), seed);
    simulation.run_until_quiet(LIMIT).unwrap_or_else(|error| panic!("{error}"));
    simulation
}

fn request(method: Method, attribute: AttributeId, mask: u64, data: &[u8]) -> Mad {
    let mut mad = Mad::default();
    SaMad::method.set(&mut mad.0, method);
    SaMad::attribute_id.set(&mut mad.0, attribute);
    SaMad::sm_key.set(&mut mad.0, SmKey(1));
    SaMad::component_mask.set(&mut mad.0, mask);
    mad.0[56..56 + data.len()].copy_from_slice(data);
    mad
}

fn all<R: SaRecord>(simulation: &mut Simulation, node: NodeIndex) -> Vec<R> {
    let answer = simulation.ask_sa(node, &request(Method::GetTable, R::ATTRIBUTE, 0, &[]));
    records(&answer.expect("an answer"))
}

fn records<R: SaRecord>(answer: &SaAnswer) -> Vec<R> {
    assert_eq!(answer.head.status(), status::OK);
    assert_eq!(SaMad::attribute_offset.get(&answer.head.0), R::OFFSET);
    let stride = usize::from(R::OFFSET) * 8;
    answer.records.chunks_exact(stride).map(R::from_bytes).collect()
}

/// The LID of each end port, as the devices have it.
fn lids(simulation: &Simulation) -> BTreeMap<PortRef, Lid> {
    let mut lids = BTreeMap::new();
    for (index, node) in simulation.fabric().iter() {
        let Some(device) = simulation.device(index) else { continue };
        for (port, _) in node.end_ports() {
            let lid = device.port_snapshot(port).map_or(Lid(0), |port| port.lid);
            if lid.is_unicast() {
                lids.insert(PortRef::new(index, port), lid);
            }
        }
    }
    lids
}

/// Every cable that has a link, from both of its ends, by LIDs.
fn cables(simulation: &Simulation) -> BTreeSet<(Lid, PortNum, PortNum, Lid)> {
    let (fabric, lids) = (simulation.fabric(), lids(simulation));
    let lid = |port: PortRef| {
        let end = if fabric.node(port.node).is_switch() { PortNum(0) } else { port.port };
        lids[&PortRef::new(port.node, end)]
    };
    let mut found = BTreeSet::new();
    for cable in fabric.cables().filter(|cable| simulation.is_link_up(cable.a)) {
        for (from, to) in [(cable.a, cable.b), (cable.b, cable.a)] {
            found.insert((lid(from), from.port, to.port, lid(to)));
        }
    }
    found
}

fn links(records: &[LinkRecord]) -> BTreeSet<(Lid, PortNum, PortNum, Lid)> {
    records.iter().map(|link| (link.from_lid, link.from_port, link.to_port, link.to_lid)).collect()
}

/// From an HCA and from a switch, everything about the X5 cluster and not one record too few.
#[test]
fn the_x5_cluster_is_told_in_full() {
    let fabric = x5();
    let mut simulation = up(&fabric, 1);
    let host = fabric.hosts().last().expect("hosts").0;
    let switch = fabric.switches().last().expect("switches").0;
    assert_ne!(host, simulation.sm_port().node);
    let lids = lids(&simulation);
    for node in [host, switch] {
        let nodes: Vec<NodeRecord> = all(&mut simulation, node);
        assert_eq!(nodes.len(), 100);
        let guids: BTreeSet<Guid> = nodes.iter().map(|record| record.node_info.node_guid).collect();
        assert_eq!(guids, fabric.nodes().iter().map(|node| node.guid).collect());
        let found: Vec<LinkRecord> = all(&mut simulation, node);
        assert_eq!(found.len(), 2 * fabric.counts().cables);
        assert_eq!(links(&found), cables(&simulation));
    }
    let ports: Vec<PortInfoRecord> = all(&mut simulation, host);
    let of_switches: usize = fabric.switches().map(|(_, node)| node.ports.len()).sum();
    assert_eq!(ports.len(), of_switches + 89);
    for record in &ports {
        let (end, _) = lids.iter().find(|(_, lid)| **lid == record.lid).expect("an end port");
        let device = simulation.device(end.node).expect("it is on");
        let held = device.port_snapshot(record.port_num).expect("a port");
        assert_eq!(
            (held.state, held.physical),
            (record.port_info.port_state, record.port_info.port_physical_state)
        );
    }
    assert_eq!(all::<SwitchInfoRecord>(&mut simulation, host).len(), 11);
    for record in all::<LinearForwardingTableRecord>(&mut simulation, host) {
        let (end, _) = lids.iter().find(|(_, lid)| **lid == record.lid).expect("an end port");
        let held = simulation.device(end.node).expect("it is on").forwarding_table();
        for (offset, port) in record.table.ports.iter().enumerate() {
            let lid = usize::from(record.block_num) * 64 + offset;
            assert_eq!(held.get(lid).copied().unwrap_or(PortNum::NONE), *port, "LID {lid}");
        }
    }
    assert_eq!(all::<SmInfoRecord>(&mut simulation, host).len(), 1);
    let keys: Vec<PKeyTableRecord> = all(&mut simulation, host);
    let owners: BTreeSet<Lid> = keys.iter().map(|record| record.lid).collect();
    assert_eq!(owners, lids.values().copied().collect());
    assert!(
        keys.iter().filter(|record| record.block_num == 0).all(|r| r.table.p_keys[0] == PKey::DEFAULT_FULL)
    );
    assert_eq!(all::<GuidInfoRecord>(&mut simulation, host).len() % lids.len(), 0);
    assert!(!all::<VlArbitrationRecord>(&mut simulation, host).is_empty());
    assert!(!all::<SlToVlTableRecord>(&mut simulation, host).is_empty());
    let paths: Vec<PathRecord> = all(&mut simulation, host);
    assert_eq!(paths.len(), lids.len() * lids.len());
    assert!(paths.iter().all(|path| path.reversible));
}

/// Loses packets of the data lanes.
struct DataLoss(RandomLoss);

impl Rule for DataLoss {
    fn judges_data(&self) -> bool {
        true
    }

    fn judge(&mut self, now: Time, from: PortRef, packet: &Packet, random: &mut Pcg64) -> Verdict {
        if packet.vl() == VirtualLane::MANAGEMENT {
            Verdict::Pass
        } else {
            self.0.judge(now, from, packet, random)
        }
    }
}

/// Tables of many segments arrive whole though segments and acknowledgements are lost.
#[test]
fn tables_arrive_over_links_that_lose_packets() {
    let fabric = x5();
    let mut simulation = up(&fabric, 2);
    let host = fabric.hosts().last().expect("hosts").0;
    let before: Vec<NodeRecord> = all(&mut simulation, host);
    let rule = RandomLoss {
        until: Time::from_nanos(u64::MAX),
        lost_per_mille: 20,
        late_per_mille: 20,
        delay_max: Time::from_millis(5),
    };
    simulation.set_rule(DataLoss(rule));
    for _ in 0..3 {
        let after: Vec<NodeRecord> = all(&mut simulation, host);
        assert!(after == before);
        let links: Vec<LinkRecord> = all(&mut simulation, host);
        assert_eq!(links.len(), 2 * fabric.counts().cables);
    }
    assert!(simulation.statistics().lost > 0);
}

/// Records follow what happens: a cable that is cut is in none, and paths lead around it.
#[test]
fn records_follow_the_fabric() {
    let fabric = ring(4, 1, &GenerateOptions::default()).expect("a ring");
    let mut simulation = up(&fabric, 3);
    let asker = fabric.hosts().last().expect("hosts").0;
    let cable = fabric.cables().find(|cable| fabric.node(cable.b.node).is_switch()).expect("a cable");
    assert_eq!(all::<LinkRecord>(&mut simulation, asker).len(), 2 * fabric.counts().cables);
    simulation.apply(Fault::LinkDown(cable.a));
    simulation.run_until_quiet(simulation.now() + LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let found: Vec<LinkRecord> = all(&mut simulation, asker);
    assert_eq!(found.len(), 2 * fabric.counts().cables - 2);
    assert_eq!(links(&found), cables(&simulation));
    assert_eq!(all::<PathRecord>(&mut simulation, asker).len(), 8 * 8);
    let host = fabric.hosts().next().expect("hosts").0;
    let lost = fabric.hosts().nth(2).expect("hosts").0;
    assert_ne!((host, lost), (simulation.sm_port().node, asker));
    simulation.apply(Fault::Kill(Process::Agent(lost)));
    simulation.run_until_quiet(simulation.now() + LIMIT).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(all::<NodeRecord>(&mut simulation, asker).len(), 7);
    assert_eq!(all::<PathRecord>(&mut simulation, asker).len(), 7 * 7);
}

/// The same seed asks and answers the same.
#[test]
fn questions_are_as_deterministic_as_all_else() {
    let run = || {
        let fabric = ring(3, 1, &GenerateOptions::default()).expect("a ring");
        let mut simulation = up(&fabric, 4);
        let asker = fabric.hosts().last().expect("hosts").0;
        simulation.ask_sa(asker, &request(Method::GetTable, PathRecord::ATTRIBUTE, 0, &[]));
        simulation.ask_sa(asker, &request(Method::GetTable, PKeyTableRecord::ATTRIBUTE, 0, &[]))
    };
    assert!(run() == run());
}
