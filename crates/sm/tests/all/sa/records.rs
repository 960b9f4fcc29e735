//! Every record of every type against the devices.

use std::collections::BTreeSet;

use super::client::*;
use super::fake::World;
use weft_sm::{Options, RoutingOptions};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::*;

/// The end ports with their LIDs, in order of those.
fn ends(world: &World) -> Vec<(Lid, PortRef)> {
    let fabric = &world.fake.fabric;
    let all = fabric.iter().flat_map(|(index, node)| {
        let ports = node.end_ports().map(|(number, _)| PortRef::new(index, number)).collect::<Vec<_>>();
        ports.into_iter()
    });
    let mut ends: Vec<_> = all.map(|end| (lid_of(world, end.node, end.port), end)).collect();
    ends.retain(|(lid, _)| lid.is_unicast());
    ends.sort();
    ends
}

fn is_switch(world: &World, node: NodeIndex) -> bool {
    world.fake.fabric.node(node).is_switch()
}

#[test]
fn nodes() {
    let mut world = tree();
    let found: Vec<NodeRecord> = table(&mut world, &Asked::all::<NodeRecord>()).unwrap();
    let ends = ends(&world);
    assert_eq!((found.len(), ends.len()), (8, 8));
    for (record, (lid, end)) in found.iter().zip(ends) {
        let node = world.fake.fabric.node(end.node);
        assert_eq!(record.lid, lid);
        assert_eq!(record.node_info.node_guid, node.guid);
        assert_eq!(record.node_info.port_guid, node.port(end.port).unwrap().guid);
        assert_eq!(record.node_info.node_type, node.kind);
        assert_eq!(record.node_info.local_port_num, end.port);
        assert_eq!(record.node_info.num_ports, node.port_count());
        assert_eq!(record.node_description.to_text(), node.description);
    }
}

#[test]
fn ports() {
    let mut world = tree();
    let found: Vec<PortInfoRecord> = table(&mut world, &Asked::all::<PortInfoRecord>()).unwrap();
    let mut wanted = Vec::new();
    for (lid, end) in ends(&world) {
        let device = &world.fake.devices[end.node.index()];
        for (number, info) in device.ports.iter().enumerate() {
            if is_switch(&world, end.node) || number == usize::from(end.port.0) {
                wanted.push(PortInfoRecord {
                    lid,
                    port_num: PortNum(number as u8),
                    options: 0,
                    port_info: *info,
                });
            }
        }
    }
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(&wanted) {
        assert_eq!(found, wanted);
    }
}

#[test]
fn switches_and_their_tables() {
    let mut world = tree();
    let found: Vec<SwitchInfoRecord> = table(&mut world, &Asked::all::<SwitchInfoRecord>()).unwrap();
    let lfts: Vec<LinearForwardingTableRecord> =
        table(&mut world, &Asked::all::<LinearForwardingTableRecord>()).unwrap();
    let switches: Vec<_> = ends(&world).into_iter().filter(|(_, end)| is_switch(&world, end.node)).collect();
    assert_eq!((found.len(), lfts.len(), switches.len()), (4, 4, 4));
    for ((record, lft), (lid, end)) in found.iter().zip(&lfts).zip(switches) {
        let device = &world.fake.devices[end.node.index()];
        assert_eq!((record.lid, lft.lid, lft.block_num), (lid, lid, 0));
        assert_eq!(record.switch_info.linear_fdb_top, device.switch.linear_fdb_top);
        assert_eq!(record.switch_info.life_time_value, device.switch.life_time_value);
        assert_eq!(lft.table.ports[..], device.lft[..64]);
    }
}

#[test]
fn cables_from_both_ends() {
    let mut world = tree();
    let found: Vec<LinkRecord> = table(&mut world, &Asked::all::<LinkRecord>()).unwrap();
    let fabric = &world.fake.fabric;
    let mut wanted: Vec<LinkRecord> = Vec::new();
    for cable in fabric.cables() {
        let (a, b) = (cable.a, cable.b);
        for (from, to) in [(a, b), (b, a)] {
            wanted.push(LinkRecord {
                from_lid: lid_of(&world, from.node, from.port),
                from_port: from.port,
                to_port: to.port,
                to_lid: lid_of(&world, to.node, to.port),
            });
        }
    }
    wanted.sort_by_key(|link| (link.from_lid, link.from_port));
    assert_eq!(wanted.len(), 16);
    assert_eq!(found, wanted);
}

#[test]
fn the_manager() {
    let mut world = tree();
    let found: Vec<SmInfoRecord> = table(&mut world, &Asked::all::<SmInfoRecord>()).unwrap();
    let own = world.fake.own;
    let guid = world.fake.fabric.port(own).unwrap().guid;
    let [record] = found[..] else { panic!("{found:?}") };
    assert_eq!(record.lid, lid_of(&world, own.node, own.port));
    assert_eq!((record.sm_info.guid, record.sm_info.sm_state), (guid, SmState::Master));
    assert_eq!((record.sm_info.sm_key, record.sm_info.priority), (SmKey(1), 0));
    assert!(record.sm_info.act_count > 0);
    let untrusted = Asked { key: SmKey(0), ..Asked::all::<SmInfoRecord>() };
    assert_eq!(one::<SmInfoRecord>(&mut world, &untrusted).unwrap().sm_info.sm_key, SmKey(0));
}

#[test]
fn lanes() {
    let mut world = tree();
    let found: Vec<SlToVlTableRecord> = table(&mut world, &Asked::all::<SlToVlTableRecord>()).unwrap();
    let mut wanted = Vec::new();
    for (lid, end) in ends(&world) {
        let (node, device) = (world.fake.fabric.node(end.node), &world.fake.devices[end.node.index()]);
        let inputs = if node.is_switch() { node.port_count() } else { 0 };
        for input in 0..=inputs {
            let outputs = if node.is_switch() { 0..=inputs } else { end.port.0..=end.port.0 };
            for output in outputs.map(PortNum) {
                // An HCA is set without naming a port, a switch at all ports at once.
                let key = if node.is_switch() { (input, output.0) } else { (0, 0) };
                let table = SlToVlTable::decode(device.sl_to_vl[&key].first_chunk().unwrap());
                let (input_port, reserved_32) = (PortNum(input), 0);
                wanted.push(SlToVlTableRecord { lid, input_port, output_port: output, reserved_32, table });
            }
        }
    }
    assert_eq!(found, wanted);
}

/// These are read when somebody asks, and only then.
#[test]
fn tables_that_sweeps_leave_alone() {
    let mut world = tree();
    let before = world.sent;
    let keys: Vec<PKeyTableRecord> = table(&mut world, &Asked::all::<PKeyTableRecord>()).unwrap();
    let ends = ends(&world);
    assert_eq!(world.sent - before, ends.len() as u64, "one block of one port each");
    assert_eq!(keys.len(), ends.len());
    for (record, (lid, end)) in keys.iter().zip(&ends) {
        let port_num = if is_switch(&world, end.node) { PortNum(0) } else { end.port };
        assert_eq!((record.lid, record.block_num, record.port_num), (*lid, 0, port_num));
        assert_eq!(record.table.p_keys[..3], [PKey::DEFAULT_FULL, PKey(0x1000), PKey(0)]);
    }
    let again = Asked { id: 2, ..Asked::all::<PKeyTableRecord>() };
    let before = world.sent;
    assert_eq!(table::<PKeyTableRecord>(&mut world, &again).unwrap(), keys);
    assert_eq!(world.sent, before, "what was read is kept");

    let guids: Vec<GuidInfoRecord> = table(&mut world, &Asked::all::<GuidInfoRecord>()).unwrap();
    assert_eq!(guids.len(), ends.len());
    for (record, (lid, end)) in guids.iter().zip(&ends) {
        let guid = world.fake.fabric.port(*end).unwrap().guid;
        assert_eq!((record.lid, record.block_num), (*lid, 0));
        assert_eq!(record.guid_info.guids[..2], [guid, Guid(0)]);
    }

    let found: Vec<VlArbitrationRecord> = table(&mut world, &Asked::all::<VlArbitrationRecord>()).unwrap();
    let blocks: BTreeSet<u8> = found.iter().map(|record| record.block_num).collect();
    assert_eq!(blocks, BTreeSet::from([1, 3]), "eight entries fit into the first half of each table");
    for record in &found {
        let (_, end) = ends.iter().find(|(lid, _)| *lid == record.lid).unwrap();
        let modifier = u32::from(record.block_num) << 16 | u32::from(record.output_port.0);
        let held = world.fake.devices[end.node.index()].arbitration[&modifier];
        assert_eq!(record.table.encode(), held);
    }
    let ports: usize = ends
        .iter()
        .map(|(_, end)| {
            let node = world.fake.fabric.node(end.node);
            if node.is_switch() { node.ports.len() } else { 1 }
        })
        .sum();
    assert_eq!(found.len(), 2 * ports);
}

/// A table that no one answers for is left out, and the others come.
#[test]
fn a_device_that_does_not_answer_costs_its_own_records_alone() {
    let mut world = tree();
    let mut refused = false;
    world.lie = Some(Box::new(move |answer| {
        if answer.mad.attribute_id() == AttributeId::PKeyTable && !std::mem::replace(&mut refused, true) {
            Smp::status.set(&mut answer.mad.0, status::BAD_METHOD_ATTRIBUTE);
        }
    }));
    let found: Vec<PKeyTableRecord> = table(&mut world, &Asked::all::<PKeyTableRecord>()).unwrap();
    assert_eq!(found.len(), 7);
}

#[test]
fn a_lid_within_a_range_stands_for_its_port() {
    let fabric = weft_topology::generate::xgft(&[2, 2], &[1, 2], &Default::default()).unwrap();
    let mut world = up(fabric, Options::from(RoutingOptions { lmc: 2, ..RoutingOptions::default() }));
    let hosts: Vec<_> = ends(&world).into_iter().filter(|(_, end)| !is_switch(&world, end.node)).collect();
    let (base, _) = hosts[1];
    assert!(base.0.is_multiple_of(4));
    let lid = Lid(base.0 + 3);
    let asked = Asked::all::<NodeRecord>().with(1, &NodeRecord { lid, ..NodeRecord::default() });
    assert_eq!(one::<NodeRecord>(&mut world, &asked).unwrap().lid, base);
    let asked = Asked::all::<LinkRecord>().with(0b1000, &LinkRecord { to_lid: lid, ..LinkRecord::default() });
    assert_eq!(table::<LinkRecord>(&mut world, &asked).unwrap()[0].to_lid, base);
}
