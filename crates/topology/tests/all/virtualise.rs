//! Virtualised adapters: who is where, what they are called, and what is refused.

use std::collections::BTreeSet;

use weft_topology::generate::{
    AGGREGATION_NODE, GenerateOptions, described_as_linux, with_node_at_every_switch, xgft,
};
use weft_topology::{
    Adapter, Fabric, FabricBuilder, LinkRate, LinkSpeed, LinkWidth, Node, NodeType, PortRef, UPLINK, VFS_MAX,
    VirtualiseError, Virtualised, derived_guid, parse,
};
use weft_wire::{Guid, PortNum};

fn tree() -> Fabric {
    let rate = LinkRate::new(LinkWidth::X4, LinkSpeed::Edr);
    xgft(&[2, 2], &[1, 2], &GenerateOptions { rate, ..GenerateOptions::default() }).unwrap()
}

fn guids(fabric: &Fabric) -> Vec<Guid> {
    let of_node = |node: &Node| -> Vec<Guid> {
        let ends = node.end_ports().map(|(_, port)| port.guid).filter(|guid| *guid != node.guid);
        ends.chain([node.guid]).collect()
    };
    fabric.nodes().iter().flat_map(of_node).collect()
}

#[test]
fn every_host_gets_a_vswitch_with_its_functions() {
    let physical = tree();
    let Virtualised { fabric, adapters } = physical.virtualised(3).unwrap();
    let (before, after) = (physical.counts(), fabric.counts());
    assert_eq!(adapters.len(), before.hosts);
    assert_eq!(after.switches, before.switches + before.hosts);
    assert_eq!((after.hosts, after.components), (before.hosts * 4, 1));
    assert_eq!(after.cables, before.cables + before.hosts * 4);
    for (index, node) in physical.iter() {
        assert_eq!(fabric.node(index).guid, node.guid, "nodes keep their places");
    }
    for adapter in &adapters {
        let (vswitch, pf) = (fabric.node(adapter.vswitch), fabric.node(adapter.pf));
        let physical_port = PortRef::new(adapter.pf, PortNum(1));
        assert_eq!(fabric.peer(PortRef::new(adapter.vswitch, UPLINK)), physical.peer(physical_port));
        assert_eq!(fabric.peer(physical_port), Some(PortRef::new(adapter.vswitch, PortNum(2))));
        assert_eq!((vswitch.is_switch(), vswitch.port_count()), (true, 5));
        for (number, vf) in (1u8..).zip(&adapter.vfs) {
            let node = fabric.node(*vf);
            let port = PortRef::new(adapter.vswitch, PortNum(2 + number));
            assert_eq!(fabric.peer(port), Some(PortRef::new(*vf, PortNum(1))));
            assert_eq!(node.description, format!("{} vf{number}", pf.description));
            assert_eq!(fabric.find(&node.id), Ok(*vf));
            assert_eq!(node.guid, derived_guid(pf.guid, u16::from(number) + 1));
            assert_eq!(node.system_image_guid, pf.system_image_guid);
        }
        assert_eq!(vswitch.system_image_guid, pf.system_image_guid);
        assert_eq!(vswitch.description, format!("{} vSwitch", pf.description));
    }
    let rates: BTreeSet<String> = fabric.cables().map(|cable| cable.rate.to_string()).collect();
    assert_eq!(rates.into_iter().collect::<Vec<_>>(), ["4xEDR"]);
    assert_eq!(parse("net.topo", &fabric.write_ibnetdiscover()).unwrap(), fabric);
}

#[test]
fn function_guids_are_unique_and_independent_of_their_count() {
    for fabric in [tree(), parse("x5", include_str!("../../../../topologies/psmn-x5.topo")).unwrap()] {
        let (few, many) = (fabric.virtualised(2).unwrap(), fabric.virtualised(5).unwrap());
        let all = guids(&many.fabric);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(!all.contains(&Guid(0)));
        let all: BTreeSet<Guid> = all.into_iter().collect();
        assert!(guids(&few.fabric).iter().all(|guid| all.contains(guid)));
    }
}

#[test]
fn a_system_without_a_guid_takes_the_nodes() {
    let text = tree().write_ibnetdiscover();
    let text: Vec<&str> = text
        .lines()
        .map(|line| if line.starts_with("sysimgguid") { "sysimgguid=0x0" } else { line })
        .collect();
    let Virtualised { fabric, adapters } =
        parse("net.topo", &text.join("\n")).unwrap().virtualised(1).unwrap();
    for adapter in adapters {
        let pf = fabric.node(adapter.pf);
        for part in [adapter.vswitch, adapter.pf, adapter.vfs[0]] {
            assert_eq!(fabric.node(part).system_image_guid, pf.guid);
        }
    }
}

#[test]
fn aggregation_nodes_and_hosts_without_a_cable_stay_as_they_are() {
    let rate = LinkRate::default();
    let options = GenerateOptions { radix: Some(8), ..GenerateOptions::default() };
    let whole = xgft(&[2, 2], &[1, 2], &options).unwrap();
    let fabric = with_node_at_every_switch(&whole, AGGREGATION_NODE).unwrap();
    assert_eq!(fabric.virtualised(1).unwrap().adapters.len(), 4);
    let mut builder = FabricBuilder::new();
    let loose = builder.add_node(Node::new(NodeType::Hca, Guid(0x10), 1, rate)).unwrap();
    assert_eq!(loose.index(), 0);
    let Virtualised { fabric, adapters } = builder.build().virtualised(1).unwrap();
    assert_eq!((fabric.nodes().len(), adapters.len()), (1, 0));
}

#[test]
fn a_fabric_that_cannot_be_virtualised_says_why() {
    let fabric = tree();
    for count in [0, VFS_MAX + 1, u16::MAX] {
        assert_eq!(fabric.virtualised(count), Err(VirtualiseError::Count(count.into())));
    }
    assert_eq!(VFS_MAX, 252);
    assert_eq!(
        fabric.virtualised(VFS_MAX).unwrap().fabric.node(weft_topology::NodeIndex(8)).port_count(),
        254
    );
    let twice = fabric.virtualised(1).unwrap().fabric.virtualised(1).unwrap_err();
    assert!(matches!(twice, VirtualiseError::GuidTaken { .. }), "{twice}");
    assert!(twice.to_string().contains("derived for a function of `H-0200484300000000`"), "{twice}");
}

#[test]
fn each_cabled_port_of_an_adapter_has_a_vswitch_of_its_own() {
    let two_rails = xgft(&[2, 2], &[2, 2], &GenerateOptions::default()).unwrap();
    let whole = two_rails.virtualised(2).unwrap();
    let Virtualised { fabric, adapters } = &whole;
    assert_eq!(adapters.len(), 2 * two_rails.hosts().count());
    for (at, adapter) in adapters.iter().enumerate() {
        let port = PortNum(1 + (at % 2) as u8);
        let pf = PortRef::new(adapter.pf, port);
        assert_eq!(adapter.pf_port(fabric), Some(pf));
        // What the port was cabled to, its vSwitch is.
        let uplink = PortRef::new(adapter.vswitch, weft_topology::UPLINK);
        assert_eq!(fabric.peer(uplink), two_rails.peer(pf));
        assert_eq!(adapter.vfs.len(), 2);
    }
    let names: Vec<String> = adapters[..2].iter().map(|adapter| fabric.label(adapter.vfs[1])).collect();
    assert_eq!(names, ["host-0 p1 vf2", "host-0 p2 vf2"]);
    let ids: Vec<&str> = adapters[..2].iter().map(|one| fabric.node(one.vswitch).id.as_str()).collect();
    assert_eq!(ids, ["H-0200484300000000-p1-vswitch", "H-0200484300000000-p2-vswitch"]);
    let guids: Vec<Guid> = adapters[..2].iter().map(|one| fabric.node(one.vswitch).guid).collect();
    assert_eq!(guids[1].0 - guids[0].0, 256 << 32);
    // A file keeps the nodes of adapters and not which they are.
    let read = parse("x", &fabric.write_ibnetdiscover()).unwrap();
    let found = |fabric: &Fabric, adapters: &[Adapter]| -> Vec<Vec<Guid>> {
        let of = |one: &Adapter| {
            let parts = [one.vswitch, one.pf].into_iter().chain(one.vfs.iter().copied());
            parts.map(|part| fabric.node(part).guid).collect()
        };
        adapters.iter().map(of).collect()
    };
    let (mut there, mut here) = (found(&read, &read.virtualised_adapters()), found(fabric, adapters));
    there.sort();
    here.sort();
    assert_eq!(there, here);
}

/// Each adapter has its own number, and those without one stay HCAs, at the places and with the GUIDs that they would have anyway.
#[test]
fn adapters_may_have_numbers_of_their_own() {
    let physical = tree();
    let hcas: Vec<_> = physical.hosts().map(|(hca, _)| hca).collect();
    let number =
        |hca| [Some(3), None, Some(1), Some(2)][hcas.iter().position(|other| *other == hca).unwrap()];
    let Virtualised { fabric, adapters } = physical.virtualised_by(number).unwrap();
    let found: Vec<_> = adapters.iter().map(|adapter| (adapter.pf, adapter.vfs.len())).collect();
    assert_eq!(found, [(hcas[0], 3), (hcas[2], 1), (hcas[3], 2)]);
    let port = PortRef::new(hcas[1], PortNum(1));
    assert_eq!(fabric.peer(port), physical.peer(port), "it has its own cable");
    assert_eq!(fabric.nodes().len(), physical.nodes().len() + 3 + 3 + 1 + 2);
    assert_eq!(fabric.virtualised_adapters(), adapters);
    let alike = physical.virtualised(3).unwrap();
    for (of_own, adapter) in adapters.iter().flat_map(|one| alike.adapters.iter().map(move |all| (one, all)))
    {
        if of_own.pf == adapter.pf {
            let guids = |fabric: &Fabric, adapter: &Adapter| -> Vec<Guid> {
                adapter.vfs.iter().map(|vf| fabric.node(*vf).guid).collect()
            };
            let all = guids(&alike.fabric, adapter);
            assert_eq!(guids(&fabric, of_own), all[..of_own.vfs.len()]);
        }
    }
    for wrong in [0, VFS_MAX + 1] {
        let number = |hca| Some(if hca == hcas[2] { wrong } else { 1 });
        assert_eq!(physical.virtualised_by(number), Err(VirtualiseError::Count(wrong.into())));
    }
}

/// A file keeps the nodes of adapters and not which they are.
#[test]
fn adapters_are_found_again_in_a_file() {
    let physical = xgft(&[2, 3], &[1, 2], &GenerateOptions::default()).unwrap();
    assert_eq!(physical.virtualised_adapters(), []);
    for vfs in [1, 2, 5] {
        let whole = physical.virtualised(vfs).unwrap();
        assert_eq!(whole.fabric.virtualised_adapters(), whole.adapters);
        let unplugged = whole.clone().unplugged();
        assert_eq!(unplugged.fabric.virtualised_adapters(), whole.adapters);
        let read = parse("x", &whole.fabric.write_ibnetdiscover()).unwrap();
        let guids = |fabric: &Fabric, adapters: &[Adapter]| -> BTreeSet<Vec<Guid>> {
            let of = |one: &Adapter| {
                [one.vswitch, one.pf].into_iter().chain(one.vfs.iter().copied()).collect::<Vec<_>>()
            };
            adapters
                .iter()
                .map(|one| of(one).into_iter().map(|node| fabric.node(node).guid).collect())
                .collect()
        };
        let found = guids(&read, &read.virtualised_adapters());
        assert_eq!(found, guids(&whole.fabric, &whole.adapters));
        assert_eq!(found.len(), 6);
    }
}

#[test]
fn functions_are_named_after_the_host_of_an_adapter() {
    let plain = xgft(&[2, 2], &[1, 1], &GenerateOptions::default()).unwrap();
    let whole = described_as_linux(&plain).unwrap().virtualised(1).unwrap();
    let name = |node| whole.fabric.label(node);
    let names = whole.adapters.iter().map(|adapter| [adapter.pf, adapter.vswitch, adapter.vfs[0]].map(name));
    let first = names.into_iter().next().unwrap();
    assert_eq!(first, ["host-0", "host-0 vSwitch", "host-0 vf1"]);
    assert_eq!(whole.fabric.find("host-0"), Ok(whole.adapters[0].pf));
}
