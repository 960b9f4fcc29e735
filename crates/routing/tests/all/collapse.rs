//! vSwitches are recognised, engines route the cabling without them, and the expanded tables bring every packet home.

use weft_routing::{
    ENGINES, Engine, EngineOptions, Expectations, Input, Lids, Proven, Routing, verify_routing, vswitches,
};
use weft_topology::generate::{GenerateOptions, ring, torus, xgft};
use weft_topology::{
    Fabric, FabricBuilder, LinkRate, Node, NodeIndex, NodeType, PortRef, Virtualised, parse,
};
use weft_wire::{Guid, Lid, PortNum};

fn tree() -> Fabric {
    xgft(&[2, 3], &[1, 2], &GenerateOptions::default()).unwrap()
}

/// The LIDs of the whole fabric, at the ports of the physical one that stand for their owners.
fn physical_lids(whole: &Virtualised, lids: &Lids) -> Lids {
    let mut physical = Lids::new();
    for range in lids.iter() {
        let node = range.port.node;
        let part = |adapter: &&weft_topology::Adapter| {
            [adapter.vswitch, adapter.pf].contains(&node) || adapter.vfs.contains(&node)
        };
        let adapter = whole.adapters.iter().find(part);
        let port = adapter.map_or(range.port, |adapter| PortRef::new(adapter.pf, PortNum(1)));
        physical.insert(port, range.base, range.lmc).unwrap();
        if adapter.is_some_and(|adapter| !adapter.vfs.contains(&node)) {
            physical.mark_own(range.base);
        }
    }
    physical
}

fn route(engine: &Engine, fabric: &Fabric, lids: &Lids) -> Result<Routing, weft_routing::Refusal> {
    engine.route(&Input { fabric, lids, options: &EngineOptions::default() })
}

#[test]
fn every_engine_routes_vswitches_as_their_hosts() {
    let options = GenerateOptions::default();
    let x5 = parse("x5", include_str!("../../../../topologies/psmn-x5.topo")).unwrap();
    let mut routed = Vec::new();
    for (name, physical) in [
        ("tree", tree()),
        ("torus", torus(&[3, 3], 1, &options).unwrap()),
        ("x5", x5),
        ("ring", ring(5, 1, &options).unwrap()),
    ] {
        let whole = physical.virtualised(2).unwrap();
        let fabric = &whole.fabric;
        let lids = Lids::in_guid_order(fabric, 0).unwrap();
        let few = physical_lids(&whole, &lids);
        for engine in &ENGINES {
            let plain = route(engine, &physical, &few);
            let Ok(plain) = plain else {
                assert!(route(engine, fabric, &lids).is_err(), "{name}: {}", engine.name);
                continue;
            };
            let expanded = route(engine, fabric, &lids).unwrap();
            let expected = Expectations { tree: plain.ranks.is_some(), ..Expectations::default() };
            let (before, after) = (
                verify_routing(&physical, &few, &plain, &expected),
                verify_routing(fabric, &lids, &expanded, &expected),
            );
            assert_eq!(after.is_sound(), before.is_sound(), "{name}: {}\n{after}", engine.name);
            assert!(after.is_sound() || name != "tree", "{name}: {}\n{after}", engine.name);
            assert_eq!(
                after.is_deadlock_free(),
                before.is_deadlock_free(),
                "{name}: {}\n{after}",
                engine.name
            );
            for (index, node) in physical.switches() {
                let (table, wanted) = (expanded.routes.table(index), plain.routes.table(index));
                assert_eq!(table, wanted, "{name}: {} at {}", engine.name, node.id);
            }
            routed.push((name, engine.name));
        }
    }
    for wanted in
        [("tree", "ftree"), ("tree", "vswitch-ftree"), ("tree", "updn"), ("torus", "dor"), ("x5", "lash")]
    {
        assert!(routed.contains(&wanted), "{wanted:?} is not among {routed:?}");
    }
}

#[test]
fn a_vswitch_sends_to_its_functions_and_else_up() {
    let whole = tree().virtualised(2).unwrap();
    let lids = Lids::in_guid_order(&whole.fabric, 0).unwrap();
    let routing = route(Engine::by_name("ftree").unwrap(), &whole.fabric, &lids).unwrap();
    let adapter = &whole.adapters[3];
    let lid = |node, port| lids.of(PortRef::new(node, PortNum(port))).unwrap().base;
    let port = |lid: Lid| routing.routes.port(adapter.vswitch, lid);
    let own = [
        (lid(adapter.vswitch, 0), 0),
        (lid(adapter.pf, 1), 2),
        (lid(adapter.vfs[0], 1), 3),
        (lid(adapter.vfs[1], 1), 4),
    ];
    for range in lids.iter() {
        let wanted = own.iter().find(|(own, _)| *own == range.base).map_or(1, |(_, port)| *port);
        assert_eq!(port(range.base), PortNum(wanted), "LID {}", range.base);
    }
    assert_eq!(routing.report.notes, ["6 vSwitches are routed as part of the host that each is in"]);
}

/// A leaf with one cable to a spine, and hosts.
fn small_leaf(systems: &[u64]) -> Fabric {
    let mut builder = FabricBuilder::new();
    let rate = LinkRate::default();
    let spine = builder.add_node(Node::new(NodeType::Switch, Guid(1), 4, rate)).unwrap();
    let mut leaf = Node::new(NodeType::Switch, Guid(2), 4, rate);
    leaf.system_image_guid = Guid(0x100);
    let leaf = builder.add_node(leaf).unwrap();
    builder.connect(PortRef::new(leaf, PortNum(1)), PortRef::new(spine, PortNum(1))).unwrap();
    for (number, system) in (0u8..).zip(systems) {
        let mut host = Node::new(NodeType::Hca, Guid(0x10 * (1 + u64::from(number))), 1, rate);
        host.system_image_guid = Guid(*system);
        let host = builder.add_node(host).unwrap();
        let port = PortRef::new(leaf, PortNum(2 + number));
        builder.connect(PortRef::new(host, PortNum(1)), port).unwrap();
    }
    builder.build()
}

#[test]
fn a_small_leaf_is_no_vswitch() {
    let count = |systems: &[u64]| vswitches(&small_leaf(systems), &[]).len();
    assert_eq!(count(&[0x100, 0x100]), 1);
    assert_eq!(count(&[0x100]), 1);
    assert_eq!(count(&[0x200, 0x200]), 0, "its hosts are other systems");
    assert_eq!(count(&[0x100, 0x200]), 0, "one of its hosts is another system");
    assert_eq!(count(&[]), 0, "nothing is behind it");
    assert_eq!(vswitches(&small_leaf(&[0x100]), &[Guid(0x10)]).len(), 0, "it serves management alone");
    assert_eq!(vswitches(&tree(), &[]).len(), 0);
}

#[test]
fn a_second_uplink_or_vswitch_peer_makes_a_plain_switch() {
    let rate = LinkRate::default();
    let mut two = small_leaf(&[0x100]);
    assert_eq!(vswitches(&two, &[])[0].uplink, PortNum(1));
    two.reconnect(PortRef::new(NodeIndex(0), PortNum(2)), PortRef::new(NodeIndex(1), PortNum(4)), rate);
    assert_eq!(vswitches(&two, &[]), []);
    // Two hosts without a switch between them.
    let mut builder = FabricBuilder::new();
    let hosts: Vec<NodeIndex> = [0x10, 0x20]
        .map(|guid| builder.add_node(Node::new(NodeType::Hca, Guid(guid), 1, rate)).unwrap())
        .to_vec();
    builder.connect(PortRef::new(hosts[0], PortNum(1)), PortRef::new(hosts[1], PortNum(1))).unwrap();
    let fabric = builder.build().virtualised(1).unwrap().fabric;
    assert_eq!(vswitches(&fabric, &[]), []);
    let lids = Lids::in_guid_order(&fabric, 0).unwrap();
    let routing = route(Engine::by_name("updn").unwrap(), &fabric, &lids).unwrap();
    assert!(verify_routing(&fabric, &lids, &routing, &Expectations::default()).is_sound());
}

#[test]
fn cuts_above_the_leaves_are_repaired_and_a_cut_uplink_is_not() {
    let whole = tree().virtualised(2).unwrap();
    let fabric = &whole.fabric;
    let lids = Lids::in_guid_order(fabric, 0).unwrap();
    let options = EngineOptions::default();
    for engine in ["minhop", "updn", "ftree"] {
        let routing = route(Engine::by_name(engine).unwrap(), fabric, &lids).unwrap();
        let mut proven = Proven::new(fabric.clone(), lids.clone(), routing, &options).unwrap();
        let before = proven.routing().clone();
        let (leaf, _) = fabric.switches().find(|(_, node)| node.description.starts_with("switch-1")).unwrap();
        let mut ups = fabric
            .node(leaf)
            .cabled_ports()
            .filter(|(_, peer)| fabric.node(peer.node).description.starts_with("switch-2"));
        let (port, spine) = ups.next().unwrap();
        let cable = (PortRef::new(leaf, port), spine);
        let rows = proven.cut(&[cable]).unwrap();
        assert!(
            !rows.is_empty() && rows.iter().all(|row| row.before.node.index() < 11),
            "{engine}: {rows:?}"
        );
        assert_eq!(proven.verify(), Ok(()));
        assert_eq!(proven.restore(&[cable]).unwrap().len(), rows.len());
        assert_eq!(proven.routing().routes, before.routes);
        let vswitch = &vswitches(fabric, &[])[0];
        let uplink = (PortRef::new(vswitch.node, vswitch.uplink), vswitch.far);
        assert!(proven.cut(&[uplink]).is_err(), "{engine}: nothing else leads to the adapter");
    }
}
