//! Agents with real devices and real links between them.

use std::io::Write;
use std::time::Instant;

use common::{Fabric, HCA_A, HCA_B, PATIENCE, Running, SWITCH, end, get, node_at};
use weft_agent::AgentError;
use weft_control::agent::{PhysState, PortState};
use weft_control::event::{AgentEvent, ProcessEvent};
use weft_control::{Answer, EventFilter, EventKind, Request, Since};
use weft_umad::{Client, ClientError, ServerMessage};
use weft_wire::{AttributeId, Guid, PortNum};

use crate::common;

/// Every node is where the cabling says, seen from HCA A.
fn walk(agent: &Running) {
    let mut program = agent.attach(HCA_A, 1);
    assert_eq!(node_at(&mut program, &[]), HCA_A);
    assert_eq!(node_at(&mut program, &[1]), SWITCH);
    assert_eq!(node_at(&mut program, &[1, 2]), HCA_B);
}

#[test]
fn a_program_reaches_every_node_of_three_agents() {
    let fabric = Fabric::spread();
    let agents = fabric.start();
    agents[0].await_link(end(HCA_A, 1), true);
    agents[1].await_link(end(SWITCH, 2), true);
    walk(&agents[0]);
    let port = agents[1].port(end(SWITCH, 1));
    assert_eq!((port.phys_state, port.state), (PhysState::LinkUp, PortState::Initialize));
    assert_eq!(port.peer.unwrap().node.0, HCA_A);
    assert!(port.totals.rcv_packets >= 2 && port.totals.rcv_words == port.totals.rcv_packets * 72);
    let devices = agents[1].devices();
    assert_eq!((devices[0].links_up, devices[0].links_total, devices[0].ports), (2, 2, 4));
    let status = agents[1].status();
    assert_eq!((status.devices, status.links_up, status.cable_ends, status.to_dial), (1, 2, 2, 0));
    agents.into_iter().for_each(Running::stop);
    assert_eq!(fabric.events("link-up").len(), 4);
    assert_eq!(fabric.events("process-stopping").len(), 3);
}

#[test]
fn the_same_fabric_packed_in_one_agent_and_in_two() {
    for groups in [&[&[HCA_A, SWITCH, HCA_B][..]][..], &[&[HCA_A, HCA_B][..], &[SWITCH][..]][..]] {
        let fabric = Fabric::new(groups, 500);
        let agents = fabric.start();
        for agent in &agents {
            for at in agent.config.part.cables.iter().map(|cable| cable.local) {
                agent.await_link(at, true);
            }
        }
        walk(&agents[0]);
        let up: u32 = agents.iter().flat_map(Running::devices).map(|device| device.links_up).sum();
        assert_eq!(up, 4, "{groups:?}");
        agents.into_iter().for_each(Running::stop);
    }
}

#[test]
fn a_killed_switch_is_noticed_and_a_new_one_found() {
    let fabric = Fabric::spread();
    let mut agents = fabric.start();
    agents[0].await_link(end(HCA_A, 1), true);
    agents[2].await_link(end(HCA_B, 1), true);
    agents.remove(1).kill();
    let port = agents[0].await_port(end(HCA_A, 1), |port| !port.link_up);
    assert_eq!((port.state, port.totals.link_downed), (PortState::Down, 1));
    agents.insert(1, Running::start(&fabric.agents[1]));
    agents[0].await_link(end(HCA_A, 1), true);
    agents[2].await_link(end(HCA_B, 1), true);
    walk(&agents[0]);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn a_switch_that_comes_back_at_once_was_gone_all_the_same() {
    // So long that only the restart itself can be what is noticed.
    let fabric = Fabric::new(&[&[HCA_A], &[SWITCH], &[HCA_B]], 60_000);
    let mut agents = fabric.start();
    agents[0].await_link(end(HCA_A, 1), true);
    agents[2].await_link(end(HCA_B, 1), true);
    agents.remove(1).kill();
    agents.insert(1, Running::start(&fabric.agents[1]));
    // The switch has the lower GUID and dials both; each end hears of its new life.
    for (agent, at) in [(0, end(HCA_A, 1)), (2, end(HCA_B, 1))] {
        let port = agents[agent].await_port(at, |port| port.link_up && port.totals.link_downed > 0);
        assert_eq!(port.totals.link_downed, 1);
    }
    walk(&agents[0]);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn a_cable_is_unplugged_and_plugged_in_again() {
    for fabric in [Fabric::spread(), Fabric::packed()] {
        let agents = fabric.start();
        let switch =
            agents.iter().find(|agent| agent.config.part.devices.iter().any(|d| d.guid == SWITCH)).unwrap();
        let at_b = agents.last().unwrap();
        at_b.await_link(end(HCA_B, 1), true);
        assert_eq!(switch.set_cable(end(SWITCH, 2), false), Ok(Answer::Done));
        assert!(!switch.port(end(SWITCH, 2)).plugged);
        at_b.await_port(end(HCA_B, 1), |port| !port.link_up && port.state == PortState::Down);
        switch.await_port(end(SWITCH, 2), |port| port.phys_state == PhysState::Polling);
        assert_eq!(switch.set_cable(end(SWITCH, 2), true), Ok(Answer::Done));
        at_b.await_port(end(HCA_B, 1), |port| port.link_up && port.state == PortState::Initialize);
        for nowhere in [end(SWITCH, 4), end(SWITCH, 99), end(SWITCH, 0), end(Guid(1), 1)] {
            assert!(switch.set_cable(nowhere, false).is_err(), "{nowhere}");
        }
        agents.into_iter().for_each(Running::stop);
        assert!(!fabric.events("link-down").is_empty());
    }
}

#[test]
fn a_stopped_agent_says_goodbye_and_leaves_no_socket() {
    let fabric = Fabric::new(&[&[HCA_A], &[SWITCH], &[HCA_B]], 60_000);
    let mut agents = fabric.start();
    agents[0].await_link(end(HCA_A, 1), true);
    let switch = agents.remove(1);
    let sockets = [switch.config.attach_socket.clone(), switch.config.control_socket.clone()];
    assert_eq!(switch.ask(Request::Shutdown), Answer::Done);
    switch.join().unwrap();
    assert!(sockets.iter().all(|socket| !socket.exists()));
    agents[0].await_link(end(HCA_A, 1), false);
    agents.into_iter().for_each(Running::stop);
    let down = fabric.events("link-down");
    assert!(down.iter().any(|line| line.contains("the other agent stopped")), "{down:?}");
}

#[test]
fn invalid_attach_requests_are_refused() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let agent = &agents[0];
    let refused = |result: Result<_, ClientError>| matches!(result, Err(ClientError::Refused { .. }));
    assert!(refused(agent.connect().attach(Guid(7), PortNum(1), vec![], PATIENCE)));
    assert!(refused(agent.connect().attach(HCA_A, PortNum(9), vec![], PATIENCE)));
    let mut twice = agent.attach(HCA_A, 1);
    assert!(refused(twice.attach(HCA_A, PortNum(1), vec![], PATIENCE)));

    let mut unattached = agent.connect();
    unattached.send(&get(AttributeId::NodeInfo, &[])).unwrap();
    unattached.flush().unwrap();
    assert!(matches!(unattached.recv(PATIENCE), Ok(Some(ServerMessage::Refused { .. }))));
    assert!(matches!(unattached.recv(PATIENCE), Err(ClientError::Closed)));
    walk(agent);
    // Those that were sent away are forgotten.
    let deadline = Instant::now() + PATIENCE;
    while agent.status().programs > 0 {
        assert!(Instant::now() < deadline, "they are not forgotten");
    }
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn garbage_on_the_attach_socket_ends_that_connection_only() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let mut good = agents[0].attach(HCA_A, 1);
    for garbage in [&[0xff; 64][..], &[0, 0, 0, 0], &[1, 0, 0, 0, 77], &[9, 0, 0, 0, 0, 1]] {
        let mut stream = std::os::unix::net::UnixStream::connect(&agents[0].config.attach_socket).unwrap();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        // Refused or just closed, but ended.
        let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
        assert_eq!(node_at(&mut good, &[]), HCA_A);
    }
    // The last of them is a frame that was never finished.
    assert_eq!(agents[0].status().counts["program_frames_malformed"], 3);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn agents_that_wait_dial_when_they_are_told_to_begin() {
    let mut fabric = Fabric::spread();
    fabric.agents.iter_mut().for_each(|agent| agent.waits = true);
    let agents = fabric.start();
    let kinds = vec!["process-ready".to_owned(), "links".to_owned()];
    let mut clients: Vec<_> = agents.iter().map(Running::client).collect();
    for client in &mut clients {
        let filter = EventFilter { from: Since::Start, kinds: kinds.clone(), ..EventFilter::default() };
        client.ask(Request::Events(filter), PATIENCE).unwrap();
        let ready = client.next_event(PATIENCE).unwrap().unwrap();
        assert_eq!(ready.kind, EventKind::Process(ProcessEvent::Ready));
    }
    // None dials before the word.
    assert!(agents.iter().all(|agent| agent.status().links_up == 0));
    for client in &mut clients {
        // An agent that gets the request twice begins once.
        for _ in 0..2 {
            assert_eq!(client.ask(Request::Begin, PATIENCE).unwrap(), Answer::Done);
        }
    }
    let mut total_up = 0;
    for client in &mut clients {
        loop {
            let event = client.next_event(PATIENCE).unwrap().unwrap();
            let EventKind::Agent(AgentEvent::Links { up, total, to_dial }) = event.kind else {
                panic!("{event}")
            };
            if up == total {
                assert_eq!(to_dial, 0);
                total_up += up;
                break;
            }
        }
    }
    assert_eq!(total_up, 4);
    walk(&agents[0]);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn an_agent_that_cannot_start_says_why() {
    let fabric = Fabric::spread();
    let mut busy = fabric.agents[0].clone();
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    busy.part.bind = taken.local_addr().unwrap();
    let error = weft_agent::run(&busy).unwrap_err();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    let said = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    assert!(matches!(error, AgentError::Bind(_)) && said.contains(&busy.part.bind.to_string()), "{said}");

    let mut no_lock = fabric.agents[0].clone();
    no_lock.lock_file = fabric.folder.path().join("no such file");
    assert!(matches!(weft_agent::run(&no_lock), Err(AgentError::Lock(_))));
    let mut no_folder = fabric.agents[0].clone();
    no_folder.attach_socket = fabric.folder.path().join("no such folder").join("socket");
    assert!(matches!(weft_agent::run(&no_folder), Err(AgentError::Listen { .. })));
    assert!(Client::connect(&fabric.agents[0].attach_socket).is_err(), "a socket was left behind");
}
