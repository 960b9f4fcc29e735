use weft_wire::{Guid, NodeInfo, NodeType, SwitchInfo};

use super::*;
use crate::knowledge::{FoundNode, Mappings, Routed};
use crate::{LaneOptions, VlWeight};
use weft_routing::files::LidRange;

fn node(kind: NodeType, guid: u64, ports: u8) -> FoundNode {
    let guid = Guid(guid);
    let info = NodeInfo {
        node_type: kind,
        num_ports: ports,
        node_guid: guid,
        port_guid: guid,
        ..NodeInfo::default()
    };
    let switch = (kind == NodeType::Switch).then(SwitchInfo::default);
    let port = || FoundPort { info: Some(link(VlCap::Vl0To7, Mtu::Bytes4096)), ..FoundPort::default() };
    let ports = (0..=ports).map(|_| port()).collect();
    let (description, path, silent) = (String::new(), Default::default(), false);
    FoundNode { info, description, switch, path, ports, silent }
}

fn link(vl_cap: VlCap, mtu_cap: Mtu) -> PortInfo {
    PortInfo {
        vl_cap,
        mtu_cap,
        port_state: PortState::Initialize,
        port_physical_state: PhysState::LinkUp,
        capability_mask: capability::IS_SL_MAPPING_SUPPORTED,
        vl_arbitration_low_cap: 8,
        vl_arbitration_high_cap: 8,
        link_width_enabled: 2,
        ..PortInfo::default()
    }
}

const fn at(node: u32, port: u8) -> PortAt {
    PortAt { node, port: PortNum(port) }
}

const SWITCH_PORT: PortAt = at(0, 1);
const HOST_PORT: PortAt = at(1, 1);

/// Switch 0 with a host at port 1 and nothing at port 2.
fn subnet(switch_end: PortInfo, host_end: PortInfo) -> Subnet {
    let mut nodes = vec![node(NodeType::Switch, 1, 2), node(NodeType::Hca, 2, 1)];
    for (here, there, info) in [(SWITCH_PORT, HOST_PORT, switch_end), (HOST_PORT, SWITCH_PORT, host_end)] {
        let port = nodes[here.node as usize].port_mut(here.port).unwrap();
        (port.peer, port.info) = (Some(there), Some(info));
    }
    nodes[1].ports[1].guid = Guid(3);
    nodes[1].ports[1].path = Some(Default::default());
    nodes[0].ports[0].info =
        Some(PortInfo { port_state: PortState::Active, ..link(VlCap::Vl0, Mtu::Bytes256) });
    Subnet::new(nodes, Some(HOST_PORT))
}

fn wanted(subnet: &Subnet, options: &Options, at: PortAt) -> Option<PortInfo> {
    Wanted { subnet, options, sm_lid: Lid(5) }.port_info(at)
}

#[test]
fn both_ends_take_the_lesser_of_what_they_can() {
    let caps = [VlCap::Vl0, VlCap::Vl0To1, VlCap::Vl0To3, VlCap::Vl0To7, VlCap::Vl0To14];
    let mtus = [Mtu::Bytes256, Mtu::Bytes512, Mtu::Bytes1024, Mtu::Bytes2048, Mtu::Bytes4096];
    for a in 0..5 {
        for b in 0..5 {
            for most in 0..5 {
                let subnet = subnet(link(caps[a], mtus[a]), link(caps[b], mtus[b]));
                let options = Options::from(LaneOptions {
                    max_op_vls: caps[most],
                    mtu_max: mtus[most],
                    ..LaneOptions::default()
                });
                let least = a.min(b).min(most);
                for port in [SWITCH_PORT, HOST_PORT] {
                    let info = wanted(&subnet, &options, port).unwrap();
                    assert_eq!((info.operational_vls, info.neighbor_mtu), (caps[least], mtus[least]));
                }
            }
        }
    }
}

#[test]
fn codes_that_mean_nothing_become_the_least() {
    for code in [0, 6, 15] {
        let odd = link(VlCap::from_code(code), Mtu::from_code(code));
        let subnet = subnet(odd, link(VlCap::Vl0To14, Mtu::Bytes4096));
        let info = wanted(&subnet, &Options::default(), HOST_PORT).unwrap();
        assert!((1..=5).contains(&info.operational_vls.code()), "{code}");
        assert!((1..=5).contains(&info.neighbor_mtu.code()), "{code}");
    }
}

#[test]
fn each_kind_of_port_gets_what_is_its_own() {
    let mut subnet = subnet(link(VlCap::Vl0To7, Mtu::Bytes4096), link(VlCap::Vl0To7, Mtu::Bytes4096));
    let lids = LidRange { min: Lid(8), max: Lid(9) };
    subnet.port_mut(HOST_PORT).unwrap().lid = Some(lids);
    let options = Options::default();
    let host = wanted(&subnet, &options, HOST_PORT).unwrap();
    assert_eq!((host.lid, host.lmc, host.master_sm_lid), (Lid(8), 1, Lid(5)));
    assert_eq!((host.gid_prefix, host.subnet_timeout), (options.sa.subnet_prefix, 0x12));
    assert_eq!((host.port_state, host.hoq_life), (PortState::Armed, 0));
    let leaf = wanted(&subnet, &options, SWITCH_PORT).unwrap();
    assert_eq!((leaf.lid, leaf.master_sm_lid, leaf.hoq_life), (Lid(0), Lid(0), options.lanes.leaf_hoq_life));
    assert_eq!((leaf.port_state, leaf.vl_stall_count), (PortState::Armed, 7));
    let zero = wanted(&subnet, &options, at(0, 0)).unwrap();
    assert_eq!((zero.master_sm_lid, zero.port_state), (Lid(5), PortState::NoChange));
    assert_eq!(wanted(&subnet, &options, at(0, 2)), None, "nothing is behind it");
    assert_eq!(wanted(&subnet, &options, at(7, 7)), None, "nobody");
}

#[test]
fn link_width_speed_and_state_are_left_alone() {
    let subnet = subnet(link(VlCap::Vl0, Mtu::Bytes256), link(VlCap::Vl0, Mtu::Bytes256));
    for port in [SWITCH_PORT, HOST_PORT] {
        let info = wanted(&subnet, &Options::default(), port).unwrap();
        assert_eq!(
            (info.link_width_enabled, info.link_speed_enabled, info.link_speed_ext_enabled),
            (0, 0, 0)
        );
        assert_eq!(info.port_physical_state, PhysState::NoChange);
        assert_eq!(info.link_down_default_state, PhysState::NoChange);
    }
}

#[test]
fn a_configured_port_is_set_only_from_initialize() {
    for (state, then) in [
        (PortState::Initialize, Some(PortState::Armed)),
        (PortState::Armed, None),
        (PortState::Active, None),
        (PortState::Down, None),
        (PortState::from_code(9), None),
    ] {
        let fresh = PortInfo { port_state: state, ..link(VlCap::Vl0, Mtu::Bytes256) };
        let first = subnet(fresh, fresh);
        let options = Options::default();
        let told = wanted(&first, &options, SWITCH_PORT).unwrap();
        assert_eq!(told.port_state, then.unwrap_or(PortState::NoChange), "{state}");
        // The device takes over everything but the state.
        let holds = PortInfo {
            port_state: state,
            port_physical_state: PhysState::LinkUp,
            link_width_enabled: 2,
            ..told
        };
        let second = subnet(holds, fresh);
        let again = wanted(&second, &options, SWITCH_PORT).map(|info| info.port_state);
        assert_eq!(again, then, "{state}");
    }
}

#[test]
fn lanes_that_a_link_lacks_fold_onto_those_it_has() {
    let of = |vl_cap, options: &Options| {
        let info = link(vl_cap, Mtu::Bytes256);
        Lanes::of(&subnet(info, info), SWITCH_PORT, options).sl_to_vl().map(|lane| lane.0)
    };
    let options = Options::default();
    assert_eq!(of(VlCap::Vl0To14, &options), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7]);
    assert_eq!(of(VlCap::Vl0To3, &options), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(of(VlCap::Vl0, &options), [0; 16]);
    let dropping = Options::from(LaneOptions { sl2vl: [15; 16], ..LaneOptions::default() });
    assert_eq!(of(VlCap::Vl0To1, &dropping), [15; 16]);
    let info = link(VlCap::Vl0To3, Mtu::Bytes256);
    let mut routed = subnet(info, info);
    let guid = routed.node(SWITCH_PORT.node).unwrap().guid();
    let of_ports = [((guid, SWITCH_PORT.port), [6; 16])].into();
    routed.routed = Routed::with_lanes(Mappings { everywhere: Some([1; 16]), of_ports });
    let lanes = |at| Lanes::of(&routed, at, &options).sl_to_vl();
    assert_eq!(lanes(SWITCH_PORT), [VirtualLane(2); 16], "a port may have a mapping of its own");
    assert_eq!(lanes(HOST_PORT), [VirtualLane(1); 16], "the routing's mapping stands before the operator's");
}

#[test]
fn arbitration_is_written_where_there_is_something_to_arbitrate() {
    let all = |count| (0..count).map(|vl| VlWeight { vl, weight: 1 }).collect::<Vec<_>>();
    let blocks = |vl_cap, room, low: Vec<VlWeight>, high: Vec<VlWeight>| {
        let info = PortInfo {
            vl_arbitration_low_cap: room,
            vl_arbitration_high_cap: room,
            ..link(vl_cap, Mtu::Bytes256)
        };
        let subnet = subnet(info, info);
        let options =
            Options::from(LaneOptions { vl_arb_low: low, vl_arb_high: high, ..LaneOptions::default() });
        let lanes = Lanes::of(&subnet, SWITCH_PORT, &options);
        let port = subnet.port(SWITCH_PORT).unwrap();
        lanes
            .arbitration(port, &options)
            .into_iter()
            .map(|(block, bytes)| (block, bytes[..6].to_vec()))
            .collect::<Vec<_>>()
    };
    assert_eq!(blocks(VlCap::Vl0, 8, all(15), all(15)), []);
    assert_eq!(blocks(VlCap::Vl0To1, 0, all(15), all(15)), []);
    assert_eq!(blocks(VlCap::Vl0To1, 8, all(15), vec![]), [(VlBlock::LowFirst, vec![0, 1, 1, 1, 0, 0])]);
    let numbers: Vec<_> = blocks(VlCap::Vl0To1, 64, all(15), all(15)).into_iter().map(|b| b.0).collect();
    assert_eq!(numbers, [VlBlock::LowFirst, VlBlock::LowSecond, VlBlock::HighFirst, VlBlock::HighSecond]);
    assert_eq!(vl_arbitration_modifier(SWITCH_PORT, VlBlock::HighFirst), 0x3_0001);
    let LaneOptions { vl_arb_low, vl_arb_high, .. } = LaneOptions::default();
    let both = [(VlBlock::LowFirst, vec![0, 0, 1, 4, 2, 4]), (VlBlock::HighFirst, vec![0, 4, 1, 0, 2, 0])];
    assert_eq!(blocks(VlCap::Vl0To7, 8, vl_arb_low, vl_arb_high), both, "what OpenSM would write");
}
