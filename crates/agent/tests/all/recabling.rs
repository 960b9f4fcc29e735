//! Cables that are put in and taken out while agents run.

use common::{Fabric, HCA_A, HCA_B, HCA_C, Running, SWITCH, end, node_at, port_end};
use weft_control::fault::{Damage, Impairment, Word};
use weft_control::{Answer, ErrorCode, Request};
use weft_link::CableEnd;
use weft_wire::Guid;

use crate::common;

/// What tells an agent to put a cable in, whose other end's agent is this one if it is another.
fn connect(end: CableEnd, peer: CableEnd, other: Option<&Running>) -> Request {
    Request::ConnectCable {
        end: port_end(end),
        peer: port_end(peer),
        peer_address: other.map(|other| other.config.part.bind.to_string()),
        delay_ns: 0,
    }
}

fn disconnect(end: CableEnd, peer: CableEnd) -> Request {
    Request::DisconnectCable { end: port_end(end), peer: port_end(peer) }
}

#[test]
fn a_cable_between_agents_moves_and_carries_packets() {
    let fabric = Fabric::new(&[&[HCA_A], &[SWITCH], &[HCA_B], &[HCA_C]], 500);
    let agents = fabric.up();
    let [a, switch, b, c] = agents.as_slice() else { panic!() };
    let (here, there) = (end(SWITCH, 2), end(HCA_B, 1));
    assert_eq!(switch.ask(disconnect(here, there)), Answer::Done);
    assert_eq!(b.ask(disconnect(there, here)), Answer::Done);
    for (agent, at) in [(switch, here), (b, there)] {
        let port = agent.port(at);
        assert!(port.peer.is_none() && !port.link_up, "{port:?}");
    }
    // The other cables have noticed nothing.
    assert_eq!((switch.status().cable_ends, switch.status().links_up), (2, 2));
    assert_eq!(b.status().cable_ends, 0);
    let other = end(SWITCH, 4);
    for _ in 0..2 {
        // What is there already is not put in again.
        assert_eq!(switch.ask(connect(other, there, Some(b))), Answer::Done);
        assert_eq!(b.ask(connect(there, other, Some(switch))), Answer::Done);
    }
    switch.await_link(other, true);
    b.await_link(there, true);
    let mut client = a.attach(HCA_A, 1);
    assert_eq!(node_at(&mut client, &[1, 4]), HCA_B);
    assert_eq!(node_at(&mut client, &[1, 3]), HCA_C);
    // The port that it was in takes another cable; the two adapters change places.
    for (agent, at, peer) in [(switch, other, there), (b, there, other)] {
        assert_eq!(agent.ask(disconnect(at, peer)), Answer::Done);
    }
    let of_c = end(HCA_C, 1);
    for (agent, at, peer) in [(switch, end(SWITCH, 3), of_c), (c, of_c, end(SWITCH, 3))] {
        assert_eq!(agent.ask(disconnect(at, peer)), Answer::Done);
    }
    for (at, adapter, agent) in [(here, of_c, c), (end(SWITCH, 3), there, b)] {
        assert_eq!(switch.ask(connect(at, adapter, Some(agent))), Answer::Done);
        assert_eq!(agent.ask(connect(adapter, at, Some(switch))), Answer::Done);
        switch.await_link(at, true);
        agent.await_link(adapter, true);
    }
    assert_eq!(node_at(&mut client, &[1, 2]), HCA_C);
    assert_eq!(node_at(&mut client, &[1, 3]), HCA_B);
    drop(client);
    agents.into_iter().for_each(Running::stop);
    assert_eq!(fabric.events("cable-connected").len(), 6);
    assert_eq!(fabric.events("cable-disconnected").len(), 6);
}

#[test]
fn a_cable_within_an_agent_goes_to_another_port() {
    let fabric = Fabric::packed();
    let agents = fabric.up();
    let agent = &agents[0];
    let (old, new, adapter) = (end(SWITCH, 2), end(SWITCH, 4), end(HCA_B, 1));
    assert_eq!(agent.ask(disconnect(adapter, old)), Answer::Done);
    assert!(agent.port(old).peer.is_none() && !agent.port(adapter).link_up);
    assert_eq!(agent.status().cable_ends, 2);
    assert_eq!(agent.ask(connect(new, adapter, None)), Answer::Done);
    assert_eq!(agent.ask(connect(adapter, new, None)), Answer::Done, "it is there from either end");
    agent.await_link(adapter, true);
    assert_eq!(agent.status().cable_ends, 4);
    let mut client = agent.attach(HCA_A, 1);
    assert_eq!(node_at(&mut client, &[1, 4]), HCA_B);
    drop(client);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn faults_of_a_cable_end_when_it_is_removed() {
    let fabric = Fabric::spread();
    let agents = fabric.up();
    let [_, switch, b] = agents.as_slice() else { panic!() };
    let (here, there) = (end(SWITCH, 2), end(HCA_B, 1));
    let unplugged = Damage::Unplugged(port_end(here));
    let how = Impairment::of(Word::Loss, "100%").unwrap();
    let impaired = Damage::Impaired { at: port_end(here), how, seed: 1 };
    for (id, damage) in [("cut", unplugged), ("lossy", impaired)] {
        let id = id.parse().unwrap();
        assert_eq!(switch.ask(Request::SetFault { id, damage, for_ms: None }), Answer::Done);
    }
    assert_eq!(switch.ask(disconnect(here, there)), Answer::Done);
    assert!(matches!(switch.ask(Request::Faults), Answer::Faults { faults, .. } if faults.is_empty()));
    assert_eq!(b.ask(disconnect(there, here)), Answer::Done);
    assert_eq!(b.ask(connect(there, here, Some(switch))), Answer::Done);
    assert_eq!(switch.ask(connect(here, there, Some(b))), Answer::Done);
    switch.await_link(here, true);
    assert!(switch.port(here).plugged);
    agents.into_iter().for_each(Running::stop);
    assert_eq!(fabric.events("fault-cleared").len(), 2);
}

#[test]
fn a_cable_that_cannot_be_is_refused_and_nothing_changes() {
    let fabric = Fabric::spread();
    let agents = fabric.up();
    let [_, switch, b] = agents.as_slice() else { panic!() };
    let (free, there) = (end(SWITCH, 4), end(HCA_B, 1));
    for (request, code) in [
        (connect(end(SWITCH, 2), end(HCA_C, 1), Some(b)), ErrorCode::Conflict),
        (connect(free, free, None), ErrorCode::InvalidRequest),
        (connect(end(SWITCH, 5), there, Some(b)), ErrorCode::NotFound),
        (connect(end(SWITCH, 0), there, Some(b)), ErrorCode::NotFound),
        (connect(end(Guid(1), 1), there, Some(b)), ErrorCode::NotFound),
        (connect(free, end(Guid(1), 1), None), ErrorCode::NotFound),
        (connect(free, end(SWITCH, 2), None), ErrorCode::Conflict),
        (disconnect(free, there), ErrorCode::NotFound),
        (disconnect(end(SWITCH, 2), end(HCA_C, 1)), ErrorCode::Conflict),
        (disconnect(end(SWITCH, 9), there), ErrorCode::NotFound),
    ] {
        let error = switch.try_ask(request.clone()).unwrap_err();
        assert_eq!(error.code, code, "{request:?}: {error}");
    }
    let nonsense = Request::ConnectCable {
        end: port_end(free),
        peer: port_end(end(HCA_C, 1)),
        peer_address: Some("nowhere".into()),
        delay_ns: 0,
    };
    assert_eq!(switch.try_ask(nonsense).unwrap_err().code, ErrorCode::InvalidRequest);
    assert_eq!((switch.status().cable_ends, switch.status().links_up), (2, 2));
    agents.into_iter().for_each(Running::stop);
    assert_eq!(fabric.events("cable-connected").len() + fabric.events("cable-disconnected").len(), 0);
}
