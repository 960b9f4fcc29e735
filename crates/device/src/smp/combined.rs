//! LID-routed and directed parts together, over a small fabric: what `ibportstate` and `smpquery -c` send.

use crate::testing::*;
use crate::{ClientId, Input};
use weft_wire::{
    AddressedMad, AttributeId, DirectedSmp, Lid, Mad, Method, NodeInfo, PortInfo, PortNum, status,
};

/// HCA 1 at port 1 of switch 5, whose port 2 leads to port 1 of switch 6, whose port 2 leads to HCA 9.
///
/// The machines' places: 0 is HCA 1, 1 is switch 5, 2 is switch 6, 3 is HCA 9.
fn fabric() -> Network {
    let mut network = Network::new(vec![hca(1), switch(3), switch(3), hca(1)]);
    let end = |device, port| End { device, port };
    network.cable([end(0, 1), end(1, 1)]);
    network.cable([end(1, 2), end(2, 1)]);
    network.cable([end(2, 2), end(3, 1)]);
    for (place, lid) in [(0, 1), (1, 5), (2, 6), (3, 9)] {
        network.benches[place].assign(lid);
    }
    network.benches[1].routes(&[(1, 1), (5, 0), (6, 2), (9, 2)]);
    network.benches[2].routes(&[(1, 1), (5, 1), (6, 0), (9, 2)]);
    network
}

/// A request by LID to `via` and from there by `path`, as a program with LID `own` sends it.
fn combined(own: u16, via: u16, path: &[u8], attribute: AttributeId, modifier: u32) -> AddressedMad {
    let mut mad = direct(smp(Method::Get, attribute, modifier, &[]), path);
    DirectedSmp::dr_slid.set(&mut mad.0, Lid(own));
    AddressedMad::smp(Lid(via), mad)
}

fn attach(network: &mut Network, place: usize, port: u8) {
    network.input(place, Input::Attach { client: CLIENT, port: PortNum(port), registrations: Vec::new() });
}

/// What comes back to the program at `place`.
fn ask(network: &mut Network, place: usize, mad: AddressedMad) -> Option<Mad> {
    let before = network.delivered.len();
    network.input(place, Input::Send { client: CLIENT, mad: Box::new(mad) });
    let (found, client, answer) = *network.delivered.get(before)?;
    assert_eq!((found, client, network.delivered.len()), (place, CLIENT, before + 1));
    assert_eq!((answer.mad.method(), answer.mad.status()), (Method::GetResp, status::OK));
    assert_eq!(answer.mad.transaction_id(), mad.mad.transaction_id());
    assert_eq!(DirectedSmp::hop_pointer.get(&answer.mad.0), 0);
    Some(answer.mad)
}

fn port_of(answer: &Mad) -> (weft_wire::Guid, PortNum) {
    let info = NodeInfo::decode(answer.smp_attribute());
    (info.port_guid, info.local_port_num)
}

#[test]
fn a_host_asks_for_the_peers_of_switches() {
    let mut network = fabric();
    attach(&mut network, 0, 1);
    let mut peer = |via, port| {
        let asked = combined(1, via, &[port], AttributeId::NodeInfo, 0);
        ask(&mut network, 0, asked).map(|answer| port_of(&answer).1)
    };
    // The far switch, the host behind it, the near switch from the far one, and the asking host itself.
    assert_eq!(peer(5, 2), Some(PortNum(1)));
    assert_eq!(peer(6, 2), Some(PortNum(1)));
    assert_eq!(peer(6, 1), Some(PortNum(2)));
    assert_eq!(peer(5, 1), Some(PortNum(1)));
    assert_eq!(peer(5, 3), None, "there is no cable");
    let two_hops = combined(1, 5, &[2, 2], AttributeId::NodeInfo, 0);
    assert!(ask(&mut network, 0, two_hops).is_some());
    // Of no hops at all: the switch itself.
    let here = combined(1, 6, &[], AttributeId::NodeInfo, 0);
    assert!(ask(&mut network, 0, here).is_some());
}

#[test]
fn a_switchs_own_program_asks_for_peers() {
    let mut network = fabric();
    attach(&mut network, 1, 0);
    let mut peer = |via, port| {
        let asked = combined(5, via, &[port], AttributeId::NodeInfo, 0);
        ask(&mut network, 1, asked).map(|answer| port_of(&answer).1)
    };
    assert_eq!(peer(5, 1), Some(PortNum(1)), "its own LID, and out at port 1");
    assert_eq!(peer(5, 2), Some(PortNum(1)));
    assert_eq!(peer(6, 2), Some(PortNum(1)));
    assert_eq!(peer(6, 1), Some(PortNum(2)), "the switch itself, from outside");
}

#[test]
fn port_info_of_the_peer() {
    let mut network = fabric();
    attach(&mut network, 0, 1);
    let answer = ask(&mut network, 0, combined(1, 5, &[2], AttributeId::PortInfo, 2)).unwrap();
    let info = PortInfo::decode(answer.smp_attribute());
    assert_eq!((info.local_port_num, info.link_width_active), (PortNum(1), 2));
}

/// The directed part first, then by LID: DrDLID is the destination.
#[test]
fn a_directed_head_and_a_lid_routed_tail() {
    let mut network = fabric();
    for (place, port) in [(0, 1), (1, 0)] {
        attach(&mut network, place, port);
    }
    let tail = |path: &[u8], dlid| {
        let mut mad = direct(smp(Method::Get, AttributeId::NodeInfo, 0, &[]), path);
        DirectedSmp::dr_dlid.set(&mut mad.0, Lid(dlid));
        AddressedMad::smp(Lid::PERMISSIVE, mad)
    };
    for (place, path, dlid) in [(0, &[1][..], 9), (0, &[1, 2], 9), (0, &[1], 6), (1, &[2], 9), (1, &[], 9)] {
        let answer = ask(&mut network, place, tail(path, dlid));
        let Some(answer) = answer else { panic!("{place} {path:?} {dlid}") };
        let want = if dlid == 9 { weft_wire::NodeType::Hca } else { weft_wire::NodeType::Switch };
        assert_eq!(NodeInfo::decode(answer.smp_attribute()).node_type, want);
    }
}

/// LID-routed, then directed, then LID-routed again.
#[test]
fn all_three_parts() {
    let mut network = fabric();
    attach(&mut network, 0, 1);
    let mut mad = combined(1, 5, &[2], AttributeId::NodeInfo, 0);
    DirectedSmp::dr_dlid.set(&mut mad.mad.0, Lid(9));
    let answer = ask(&mut network, 0, mad).unwrap();
    assert_eq!(NodeInfo::decode(answer.smp_attribute()).node_type, weft_wire::NodeType::Hca);
}

#[test]
fn other_programs_answers_are_not_ones_own() {
    let mut network = fabric();
    for client in [CLIENT, ClientId(8)] {
        network.input(0, Input::Attach { client, port: ONE, registrations: Vec::new() });
    }
    let mad = combined(1, 5, &[2], AttributeId::NodeInfo, 0);
    network.input(0, Input::Send { client: ClientId(8), mad: Box::new(mad) });
    assert_eq!(network.delivered.iter().map(|(_, client, _)| *client).collect::<Vec<_>>(), [ClientId(8)]);
}
