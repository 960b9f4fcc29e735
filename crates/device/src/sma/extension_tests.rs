//! PortInfo's capabilities, PortInfoExtended, MlnxExtPortInfo, NodeDescription and GUIDInfo as they are set.

use crate::testing::*;
use crate::{Frame, Input, Output};
use weft_wire::{
    AttributeId, Guid, GuidInfo, Lid, LinkParameters, LinkSpeedExt2, Method, MlnxExtPortInfo,
    NodeDescription, NodeType, PhysState, PortInfo, PortInfoExtended, PortState, capability, capability2,
    status,
};

const FDR10_LINK: LinkParameters =
    LinkParameters { width: 3, speed: 7 | LinkParameters::FDR10, speed_ext: 0 };

fn node(kind: NodeType, vendor_id: u32, device_id: u16, link: LinkParameters) -> Bench {
    let mut config = config(kind, 2);
    (config.vendor_id, config.device_id) = (vendor_id, device_id);
    config.ports.iter_mut().for_each(|port| port.link = link);
    Bench::new(&config)
}

fn mlnx(bench: &mut Bench, method: Method, port: u32, info: &MlnxExtPortInfo) -> (u16, MlnxExtPortInfo) {
    let answer = bench.ask(method, AttributeId::MlnxExtPortInfo, port, &info.encode());
    (answer.status(), MlnxExtPortInfo::decode(answer.smp_attribute()))
}

fn speeds(bench: &mut Bench, port: u32) -> [u8; 3] {
    let (status, info) = mlnx(bench, Method::Get, port, &MlnxExtPortInfo::default());
    assert_eq!(status, status::OK);
    [info.link_speed_supported, info.link_speed_enabled, info.link_speed_active]
}

#[test]
fn capabilities_agree_with_what_is_there() {
    let fast = LinkParameters { width: 0b1_0011, speed: 7, speed_ext: 0b1_1111 };
    for kind in [NodeType::Switch, NodeType::Hca] {
        for (link, more) in [
            (fast, capability2::IS_LINK_WIDTH_2X_SUPPORTED | capability2::IS_LINK_SPEED_HDR_SUPPORTED),
            (LINK, 0),
        ] {
            let mut bench = node(kind, 0, 0, link);
            bench.input(Input::LinkUp { port: ONE, peer: link });
            let info = bench.port_info(0);
            let has = |bit| info.capability_mask & bit != 0;
            assert!(has(capability::IS_CAPABILITY_MASK2_SUPPORTED));
            assert!(has(capability::IS_EXTENDED_SPEEDS_SUPPORTED), "port 0 speaks for the switch");
            assert_eq!(has(capability::IS_VENDOR_CLASS_SUPPORTED), kind == NodeType::Hca);
            let mask2 = info.capability_mask2;
            assert_eq!(mask2 & more, more);
            assert_eq!(mask2 & capability2::IS_LINK_SPEED_NDR_SUPPORTED != 0, link.speed_ext & 8 != 0);
            let second =
                capability2::IS_EXTENDED_SPEEDS2_SUPPORTED | capability2::IS_LINK_SPEED_XDR_SUPPORTED;
            assert_eq!(mask2 & second, if link == fast { second } else { 0 });
            assert!(mask2 & capability2::IS_SET_NODE_DESCRIPTION_SUPPORTED != 0);
            assert!(mask2 & capability2::IS_PORT_INFO_EXTENDED_SUPPORTED != 0);
        }
    }
}

#[test]
fn there_is_no_error_correction() {
    for mut bench in [switch(2), hca(2)] {
        bench.link_up(ONE);
        let answer = bench.ask(Method::Get, AttributeId::PortInfoExtended, 1, &[]);
        assert_eq!(answer.status(), status::OK);
        assert_eq!(PortInfoExtended::decode(answer.smp_attribute()), PortInfoExtended::default());
        assert_eq!(bench.ask(Method::Get, AttributeId::PortInfoExtended, 3, &[]).status(), status::BAD_VALUE);
    }
}

#[test]
fn the_speed_that_port_info_cannot_say() {
    let mut bench = node(NodeType::Switch, 0x2c9, 0xc738, FDR10_LINK);
    bench.input(Input::LinkUp { port: ONE, peer: FDR10_LINK });
    bench.input(Input::LinkUp { port: TWO, peer: LINK });
    assert_eq!(
        (speeds(&mut bench, 0), speeds(&mut bench, 1), speeds(&mut bench, 2)),
        ([0; 3], [1; 3], [1, 1, 0])
    );
    let info = bench.port_info(1);
    assert_eq!((info.link_speed_supported, info.link_speed_active, info.link_speed_ext_active), (7, 4, 0));
    let set = |change, enabled| MlnxExtPortInfo {
        state_change_enable: change,
        link_speed_enabled: enabled,
        ..MlnxExtPortInfo::default()
    };
    assert_eq!(mlnx(&mut bench, Method::Set, 1, &set(1, 2)).0, status::BAD_VALUE);
    assert_eq!(mlnx(&mut bench, Method::Set, 0, &set(1, 1)).0, status::BAD_VALUE, "port 0 has no link");
    assert_eq!(mlnx(&mut bench, Method::Set, 1, &set(0, 0)).1.link_speed_enabled, 1, "nothing was to change");
    assert_eq!(
        mlnx(&mut bench, Method::Set, 1, &set(1, 0)).1.link_speed_active,
        1,
        "until it is trained again"
    );
    assert_eq!(bench.device.ports[1].parameters().speed, 7);
    bench.input(Input::LinkUp { port: ONE, peer: FDR10_LINK });
    assert_eq!(speeds(&mut bench, 1), [1, 0, 0]);
    bench.input(Input::LinkDown { port: TWO });
    assert_eq!(speeds(&mut bench, 2), [1, 1, 0]);
}

#[test]
fn nodes_of_other_makers_do_not_know_it() {
    for (vendor_id, device_id, want) in [
        (0x2c9, 0x5a5a, status::OK),
        (0x119f, 0x1b02, status::OK),
        (0, 0x1011, status::OK),
        (0x66a, 0x1003, status::OK),
        (0x8f1, 0x5a5a, status::BAD_METHOD_ATTRIBUTE),
        (0, 0, status::BAD_METHOD_ATTRIBUTE),
    ] {
        let mut bench = node(NodeType::Hca, vendor_id, device_id, LINK);
        bench.link_up(ONE);
        for method in [Method::Get, Method::Set] {
            let (found, _) = mlnx(&mut bench, method, 1, &MlnxExtPortInfo::default());
            assert_eq!(found, want, "{vendor_id:#x} {device_id:#x}");
        }
    }
}

#[test]
fn a_description_is_set_and_told_of() {
    let mut bench = hca(1);
    bench.link_up(ONE);
    let wanted = NodeDescription::new("renamed");
    let answer = bench.ask(Method::Set, AttributeId::NodeDescription, 0, &wanted.encode());
    assert_eq!((answer.status(), answer.smp_data()), (status::OK, &wanted.encode()));
    assert_eq!(bench.device.snapshot().description, "renamed");

    // Trap 144 tells the manager, which is not the only one that can ask for it.
    bench.assign(7);
    let mut set = |text: &str| {
        let mad = smp(Method::Set, AttributeId::NodeDescription, 0, &NodeDescription::new(text).encode());
        let packet = weft_wire::Packet::from_mad(&weft_wire::MadRoute::smp(Lid(7), Lid(3)), &mad);
        let outputs = bench.receive(ONE, packet);
        outputs
            .iter()
            .filter(|output| matches!(output, Output::Transmit { frame: Frame::Packet(_), .. }))
            .count()
    };
    assert_eq!(set("once more"), 2, "the trap and the answer");
    assert_eq!(set("once more"), 1, "it says the same as before");
}

#[test]
fn guids_beyond_the_ports_room_are_not_kept() {
    let mut config = config(NodeType::Hca, 1);
    config.options.guid_cap = 10;
    let mut bench = Bench::new(&config);
    bench.link_up(ONE);
    let wanted = GuidInfo { guids: std::array::from_fn(|i| Guid(0x900 + i as u64)) };
    let mut set = |block| {
        let answer = bench.ask(Method::Set, AttributeId::GuidInfo, block, &wanted.encode());
        (answer.status(), GuidInfo::decode(answer.smp_attribute()).guids)
    };
    let own = Guid(0x101);
    let mut kept = wanted.guids;
    kept[0] = own;
    assert_eq!(set(0), (status::OK, kept));
    kept = [Guid(0); 8];
    kept[..2].copy_from_slice(&wanted.guids[..2]);
    assert_eq!(set(1), (status::OK, kept));
    assert_eq!(set(2).0, status::BAD_VALUE);
}

/// The answer leaves before the link by which it leaves goes down.
#[test]
fn a_port_is_switched_off_by_its_own_peer() {
    for state in [PhysState::Disabled, PhysState::Polling, PhysState::Sleep] {
        let mut bench = hca(1);
        bench.link_up(ONE);
        assert_eq!(bench.set_port_info(1, |info| info.port_physical_state = state), status::OK, "{state}");
        assert_eq!(bench.state(ONE), PortState::Down);
    }
    let mut bench = switch(2);
    bench.link_up(ONE);
    let mut info = bench.port_info(1);
    (info.port_state, info.port_physical_state) = (PortState::Down, PhysState::NoChange);
    let answer = bench.ask(Method::Set, AttributeId::PortInfo, 1, &info.encode());
    let after = PortInfo::decode(answer.smp_attribute());
    assert_eq!((after.port_state, after.port_physical_state), (PortState::Down, PhysState::Polling));
    assert_eq!((after.link_width_active, after.link_speed_active), (1, 1));
    assert_eq!(bench.device.port_snapshot(ONE).unwrap().physical, PhysState::Polling);
}

/// What ibportstate does to a switch's port: disable, enable, reset, width, speed, each as one Set of what it has read.
#[test]
fn a_port_as_ibportstate_drives_it() {
    let mut bench = switch(2);
    bench.link_up(ONE);
    bench.link_up(TWO);
    bench.activate(2);
    let set = |bench: &mut Bench, change: fn(&mut PortInfo)| {
        let mut info = bench.port_info(2);
        (info.port_state, info.port_physical_state) = (PortState::NoChange, PhysState::NoChange);
        (info.link_speed_enabled, info.link_width_enabled, info.link_speed_ext_enabled) = (0, 0, 0);
        change(&mut info);
        let request = smp(Method::Set, AttributeId::PortInfo, 2 | 1 << 31, &info.encode());
        let mut mad = direct(request, &[9]);
        weft_wire::DirectedSmp::hop_pointer.set(&mut mad.0, 1);
        let route = weft_wire::MadRoute::smp(weft_wire::Lid::PERMISSIVE, weft_wire::Lid::PERMISSIVE);
        let outputs = bench.receive(ONE, weft_wire::Packet::from_mad(&route, &mad));
        let answer = transmitted(&outputs).unwrap().1.mad().unwrap();
        assert_eq!(answer.status(), status::OK);
        let after = PortInfo::decode(answer.smp_attribute());
        let commands: Vec<bool> = outputs
            .iter()
            .filter_map(|output| match output {
                Output::SetLink { port, enabled, .. } if *port == TWO => Some(*enabled),
                _ => None,
            })
            .collect();
        ((after.port_state, after.port_physical_state), commands)
    };
    let (down, up) = (PortState::Down, PortState::Initialize);
    let disable = |info: &mut PortInfo| info.port_physical_state = PhysState::Disabled;
    let poll = |info: &mut PortInfo| info.port_physical_state = PhysState::Polling;
    assert_eq!(set(&mut bench, disable), ((down, PhysState::Disabled), vec![false]));
    assert_eq!(set(&mut bench, disable), ((down, PhysState::Disabled), vec![]));
    // A peer that finds its way all the same is not let in.
    bench.link_up(TWO);
    assert_eq!(bench.state(TWO), down);
    assert_eq!(set(&mut bench, poll), ((down, PhysState::Polling), vec![true]));
    bench.link_up(TWO);
    assert_eq!(bench.state(TWO), up);
    assert_eq!(set(&mut bench, poll), ((down, PhysState::Polling), vec![false, true]), "reset");
    bench.link_up(TWO);
    assert_eq!(
        set(&mut bench, |info| info.port_state = PortState::Down),
        ((down, PhysState::Polling), vec![false, true])
    );
    bench.link_up(TWO);
    // Width and speed are for the next training.
    let (states, commands) =
        set(&mut bench, |info| (info.link_width_enabled, info.link_speed_enabled) = (1, 1));
    assert_eq!((states, commands), ((up, PhysState::LinkUp), vec![true]));
    assert_eq!(bench.port_info(2).link_width_active, 2);
    set(&mut bench, |info| info.link_speed_ext_enabled = 30);
    set(&mut bench, poll);
    let info = bench.port_info(2);
    assert_eq!(
        (info.link_width_active, info.link_speed_active, info.link_speed_ext_active),
        (1, 1, 0),
        "down"
    );
    bench.link_up(TWO);
    let info = bench.port_info(2);
    assert_eq!((info.link_width_active, info.link_speed_active, info.link_speed_ext_active), (1, 1, 0));
    set(&mut bench, |info| (info.link_width_enabled, info.link_speed_enabled) = (255, 15));
    assert_eq!((bench.port_info(2).link_width_enabled, bench.port_info(2).link_speed_enabled), (3, 7));
}

#[test]
fn xdr_is_enabled_and_disabled_by_the_second_extended_speeds() {
    let link = LinkParameters { width: 0b10, speed: 7, speed_ext: 0b1_1111 };
    let mut bench = node(NodeType::Switch, 0, 0, link);
    bench.input(Input::LinkUp { port: ONE, peer: link });
    let speeds = |active, enabled| LinkSpeedExt2 { active, supported: 1, enabled };
    assert_eq!(bench.port_info(1).link_speed_ext2, speeds(1, 1));
    assert_eq!(bench.port_info(1).link_speed_ext_active, 8, "managers of yesterday read NDR");
    let mut set = |enabled| {
        let status = bench.set_port_info(1, |info| info.link_speed_ext2.enabled = enabled);
        (status, bench.port_info(1).link_speed_ext2.enabled)
    };
    assert_eq!(set(2), (status::BAD_VALUE, 1), "nothing but XDR is supported");
    assert_eq!([6, 0, 7, 1].map(&mut set), [(0, 0), (0, 0), (0, 1), (0, 1)]);
    assert_eq!(set(6), (0, 0));
    bench.input(Input::LinkDown { port: ONE });
    bench.input(Input::LinkUp { port: ONE, peer: link });
    assert_eq!(bench.port_info(1).link_speed_ext2, speeds(0, 0), "trained to NDR");
    assert_eq!(bench.port_info(1).link_speed_ext_active, 8);
}
