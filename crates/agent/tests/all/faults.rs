//! Faults that last, and how they end.

use std::time::{Duration, Instant};

use common::{Fabric, HCA_A, HCA_B, PATIENCE, Running, SWITCH, end, get, port_end};
use weft_control::agent::PortStatus;
use weft_control::fault::{Damage, Impairment, LastingFault, Word};
use weft_control::{Answer, ErrorCode, Request};
use weft_link::CableEnd;
use weft_umad::{Client, ServerMessage};
use weft_wire::{AttributeId, Guid};

use crate::common;

fn set(at: CableEnd, id: &str, for_ms: Option<u64>) -> Request {
    Request::SetFault { id: id.parse().unwrap(), damage: Damage::Unplugged(port_end(at)), for_ms }
}

fn clear(id: &str) -> Request {
    Request::ClearFault { id: id.parse().unwrap() }
}

fn faults(agent: &Running) -> Vec<LastingFault> {
    match agent.ask(Request::Faults) {
        Answer::Faults { faults, .. } => faults,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cut_cable_stays_cut_when_the_agents_at_both_ends_restart() {
    let fabric = Fabric::spread();
    let mut agents = fabric.up();
    let ends = [(1, end(SWITCH, 2)), (2, end(HCA_B, 1))];
    for (agent, at) in ends {
        assert_eq!(agents[agent].ask(set(at, "f1", None)), Answer::Done);
    }
    let before = faults(&agents[1]);
    for agent in [2, 1] {
        agents.remove(agent).kill();
    }
    agents.extend(fabric.agents[1..].iter().map(Running::start));
    // The other cable is back, so both have dialled.
    agents[0].await_link(end(HCA_A, 1), true);
    agents[1].await_link(end(SWITCH, 1), true);
    for (agent, at) in ends {
        let port = agents[agent].port(at);
        assert!(!port.plugged && !port.link_up, "{port:?}");
    }
    assert_eq!(faults(&agents[1]), before, "it is the same fault, with its own beginning");
    for (agent, _) in ends {
        assert_eq!(agents[agent].ask(clear("f1")), Answer::Done);
        assert_eq!(faults(&agents[agent]), []);
    }
    ends.iter().for_each(|(agent, at)| agents[*agent].await_link(*at, true));
    agents.into_iter().for_each(Running::stop);
    assert_eq!(fabric.events("fault-set").len(), 4, "each end twice");
    assert_eq!(fabric.events("fault-cleared").len(), 2);
}

#[test]
fn a_fault_expires_even_while_its_agent_is_dead() {
    let fabric = Fabric::spread();
    let mut agents = fabric.up();
    let at = end(SWITCH, 2);
    assert_eq!(agents[1].ask(set(at, "short", Some(2000))), Answer::Done);
    agents[2].await_link(end(HCA_B, 1), false);
    agents[2].await_link(end(HCA_B, 1), true);
    assert_eq!(faults(&agents[1]), []);
    assert_eq!(agents[1].ask(set(at, "shorter", Some(1))), Answer::Done);
    agents.remove(1).kill();
    agents.insert(1, Running::start(&fabric.agents[1]));
    agents[1].await_link(at, true);
    assert_eq!(faults(&agents[1]), []);
    agents.into_iter().for_each(Running::stop);
    let ended = fabric.events("fault-cleared");
    assert!(ended.len() == 2 && ended.iter().all(|line| line.contains("\"expired\":true")), "{ended:?}");
}

#[test]
fn a_port_is_plugged_in_when_the_last_of_its_faults_has_ended() {
    let fabric = Fabric::packed();
    let agents = fabric.up();
    let (agent, at) = (&agents[0], end(SWITCH, 2));
    for id in ["one", "two"] {
        assert_eq!(agent.ask(set(at, id, None)), Answer::Done);
    }
    assert_eq!(agent.ask(clear("one")), Answer::Done);
    assert!(!agent.port(at).plugged);
    // One fault may break several things, and ends all of them.
    assert_eq!(agent.ask(set(end(SWITCH, 1), "two", None)), Answer::Done);
    assert!(!agent.port(at).plugged && !agent.port(end(SWITCH, 1)).plugged);
    assert_eq!(faults(agent).len(), 2);
    assert_eq!(agent.ask(clear("two")), Answer::Done);
    assert_eq!(faults(agent), []);
    agent.await_link(at, true);
    agent.await_link(end(SWITCH, 1), true);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn faults_at_absent_ports_and_unknown_ids_are_refused() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    for nowhere in [end(SWITCH, 4), end(SWITCH, 99), end(SWITCH, 0), end(Guid(1), 1)] {
        let error = agents[0].try_ask(set(nowhere, "f", None)).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound, "{nowhere}: {error}");
    }
    assert_eq!(agents[0].try_ask(clear("f")).unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(faults(&agents[0]), []);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn a_fault_that_could_not_be_kept_is_none() {
    let fabric = Fabric::packed();
    let mut config = fabric.agents[0].clone();
    config.faults_file = Some(fabric.folder.path().join("no such folder").join("faults"));
    let agent = Running::start(&config);
    let error = agent.try_ask(set(end(SWITCH, 2), "f", None)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Failed);
    assert!(agent.port(end(SWITCH, 2)).plugged && faults(&agent).is_empty());
    agent.stop();
}

#[test]
fn an_agent_whose_faults_make_no_sense_starts_without_them() {
    let fabric = Fabric::packed();
    let file = fabric.agents[0].faults_file.clone().unwrap();
    let nowhere = r#"[{"id":"f1","damage":{"unplugged":{"node":"0x1","port":9}},"since":"2026-01-01T00:00:00Z","until":null}]"#;
    for kept in ["", "[", "{}", nowhere] {
        std::fs::write(&file, kept).unwrap();
        let agents = fabric.up();
        assert_eq!(faults(&agents[0]), [], "{kept}");
        agents.into_iter().for_each(Running::stop);
    }
}

fn impair(at: CableEnd, id: &str, word: Word, amounts: &str) -> Request {
    let how = Impairment::of(word, amounts).unwrap();
    let damage = Damage::Impaired { at: port_end(at), how, seed: 7 };
    Request::SetFault { id: id.parse().unwrap(), damage, for_ms: None }
}

/// Sends a Get of NodeInfo to the switch, and gives the number of answers within a time; the first ends the wait if it is `enough`.
fn answers(client: &mut Client, within: Duration, enough: bool) -> usize {
    client.send(&get(AttributeId::NodeInfo, &[1])).unwrap();
    client.flush().unwrap();
    heard(client, within, enough)
}

/// How many answers come within some time, or until the first.
fn heard(client: &mut Client, within: Duration, enough: bool) -> usize {
    let deadline = Instant::now() + within;
    let mut count = 0;
    while let Some(left) = deadline.checked_duration_since(Instant::now()) {
        if let Some(ServerMessage::Receive(_)) = client.recv(left).unwrap() {
            count += 1;
            if enough {
                break;
            }
        }
    }
    count
}

/// Waits until a request is answered.
fn await_answer(client: &mut Client) {
    let deadline = Instant::now() + PATIENCE;
    while answers(client, Duration::from_secs(1), true) == 0 {
        assert!(Instant::now() < deadline, "no answer");
    }
}

/// What the agent has counted of impaired packets.
fn impaired(agent: &Running, became: &str) -> u64 {
    let Answer::Metrics { text } = agent.ask(Request::Metrics) else { panic!("no metrics") };
    let line = format!("weft_agent_impaired_packets_total{{became=\"{became}\"}} ");
    text.lines().find_map(|text| text.strip_prefix(&line)).unwrap().parse().unwrap()
}

#[test]
fn one_way_loss_outlasts_a_restart_and_keeps_the_link_up() {
    let fabric = Fabric::spread();
    let mut agents = fabric.up();
    let at = end(SWITCH, 1);
    let mut client = agents[0].attach(HCA_A, 1);
    await_answer(&mut client);
    assert_eq!(agents[1].ask(impair(at, "f1", Word::Loss, "100%")), Answer::Done);
    assert_eq!(answers(&mut client, Duration::from_millis(300), false), 0);
    let deadline = Instant::now() + PATIENCE;
    while impaired(&agents[1], "lost") == 0 {
        assert!(Instant::now() < deadline, "no request has come");
    }
    assert_eq!(impaired(&agents[1], "lost"), 1, "the request, at the port that it was on its way to");
    let before = faults(&agents[1]);
    agents.remove(1).kill();
    agents.insert(1, Running::start(&fabric.agents[1]));
    agents[0].await_link(end(HCA_A, 1), true);
    agents[1].await_link(at, true);
    assert_eq!(faults(&agents[1]), before);
    assert_eq!(answers(&mut client, Duration::from_millis(300), false), 0);
    assert!(agents[1].port(at).link_up);
    // Another one of the same cable, with its own end.
    assert_eq!(agents[1].ask(impair(at, "f2", Word::Delay, "50ms")), Answer::Done);
    assert_eq!(agents[1].ask(clear("f1")), Answer::Done);
    let asked = Instant::now();
    assert_eq!(answers(&mut client, PATIENCE, true), 1);
    assert!(asked.elapsed() >= Duration::from_millis(50));
    assert!(impaired(&agents[1], "late") > 0);
    assert_eq!(agents[1].ask(clear("f2")), Answer::Done);
    await_answer(&mut client);
    assert_eq!(faults(&agents[1]), []);
    agents.into_iter().for_each(Running::stop);
    let told = fabric.events("fault-set");
    assert!(told.iter().any(|line| line.contains("\"loss\":1000000")), "{told:?}");
}

#[test]
fn duplicates_arrive_twice_and_damaged_packets_are_counted() {
    let fabric = Fabric::packed();
    let agents = fabric.up();
    let (agent, at) = (&agents[0], end(SWITCH, 1));
    let mut client = agent.attach(HCA_A, 1);
    await_answer(&mut client);
    assert_eq!(agent.ask(impair(at, "f1", Word::Duplicate, "100%")), Answer::Done);
    assert_eq!(answers(&mut client, PATIENCE, true) + heard(&mut client, PATIENCE, true), 2);
    assert_eq!(heard(&mut client, Duration::from_millis(300), false), 0);
    assert_eq!(agent.ask(clear("f1")), Answer::Done);
    // 2.32 wrong bits a packet.
    assert_eq!(agent.ask(impair(at, "f2", Word::BitErrors, "1e-3")), Answer::Done);
    let deadline = Instant::now() + PATIENCE;
    // LocalPhyErrors damaged packets in a row have the link train again.
    while impaired(agent, "damaged") < 10 || agent.port(at).totals.link_error_recovery == 0 {
        assert!(Instant::now() < deadline, "{:?}", agent.port(at).totals);
        answers(&mut client, Duration::from_millis(20), false);
    }
    // What is still under way has come before the two are compared.
    assert_eq!(agent.ask(clear("f2")), Answer::Done);
    await_answer(&mut client);
    let totals = agent.port(at).totals;
    assert_eq!(totals.rcv_errors, impaired(agent, "damaged"));
    assert!(totals.symbol_errors > totals.rcv_errors, "{totals:?}");
    agents.into_iter().for_each(Running::stop);
}

fn lasting(id: &str, damage: Damage) -> Request {
    Request::SetFault { id: id.parse().unwrap(), damage, for_ms: None }
}

/// A frozen node's links are down, also after a restart, and it knows what it knew; a partition of the same cable has its own end.
#[test]
fn a_freeze_and_a_partition_outlast_restarts_separately() {
    let fabric = Fabric::spread();
    let mut agents = fabric.up();
    let (at, far) = (end(SWITCH, 2), end(HCA_B, 1));
    let frozen = Damage::Frozen(port_end(end(SWITCH, 0)));
    assert_eq!(agents[1].ask(lasting("f1", frozen)), Answer::Done);
    assert_eq!(agents[1].ask(lasting("f2", Damage::Parted(port_end(at)))), Answer::Done);
    agents[2].await_link(far, false);
    agents[0].await_link(end(HCA_A, 1), false);
    let before = faults(&agents[1]);
    assert_eq!(before.len(), 2);
    agents.remove(1).kill();
    agents.insert(1, Running::start(&fabric.agents[1]));
    assert_eq!(faults(&agents[1]), before);
    assert_eq!(agents[1].ask(clear("f1")), Answer::Done);
    agents[0].await_link(end(HCA_A, 1), true);
    assert!(!agents[1].port(at).link_up && !agents[1].port(at).plugged, "it is parted still");
    // One of two faults that unplug it, whatever their kinds.
    assert_eq!(agents[1].ask(set(at, "f3", None)), Answer::Done);
    assert_eq!(agents[1].ask(clear("f2")), Answer::Done);
    assert!(!agents[1].port(at).plugged);
    assert_eq!(agents[1].ask(clear("f3")), Answer::Done);
    agents[2].await_link(far, true);
    let error = agents[1].try_ask(lasting("f4", Damage::Frozen(port_end(end(HCA_B, 0))))).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound, "{error}");
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn packets_are_late_by_chance_or_overtaken() {
    let fabric = Fabric::packed();
    let agents = fabric.up();
    let (agent, at) = (&agents[0], end(SWITCH, 1));
    let mut client = agent.attach(HCA_A, 1);
    await_answer(&mut client);
    assert_eq!(agent.ask(impair(at, "f1", Word::Reorder, "100% 50ms")), Answer::Done);
    let asked = Instant::now();
    assert_eq!(answers(&mut client, PATIENCE, true), 1);
    assert!(asked.elapsed() >= Duration::from_millis(50));
    assert_eq!(impaired(agent, "late"), 1);
    assert_eq!(agent.ask(clear("f1")), Answer::Done);
    assert_eq!(agent.ask(impair(at, "f2", Word::Jitter, "20ms")), Answer::Done);
    let deadline = Instant::now() + PATIENCE;
    while impaired(agent, "late") < 10 {
        assert!(Instant::now() < deadline);
        assert_eq!(answers(&mut client, PATIENCE, true), 1);
    }
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn link_impairments_outlast_restarts_until_cleared() {
    let fabric = Fabric::spread();
    let mut agents = fabric.up();
    let (at, far) = (end(SWITCH, 1), end(HCA_A, 1));
    assert_eq!(agents[0].port(far).width_active, 2, "4x");
    assert_eq!(agents[1].ask(impair(at, "f1", Word::Width, "1x")), Answer::Done);
    let narrow = agents[0].await_port(far, |port| port.link_up && port.width_active == 1);
    agents.remove(1).kill();
    agents.insert(1, Running::start(&fabric.agents[1]));
    // Not the link of before, which may be seen still.
    let is_another = |port: &PortStatus| port.totals.link_downed > narrow.totals.link_downed;
    let again = agents[0].await_port(far, |port| is_another(port) && port.link_up && port.width_active == 1);
    let fast = again.speed_active;
    assert_eq!(agents[1].ask(impair(at, "f3", Word::Speed, "sdr")), Answer::Done);
    agents[0].await_port(far, |port| port.link_up && (port.width_active, port.speed_active) == (1, 1));
    assert_eq!(agents[1].ask(clear("f3")), Answer::Done);
    agents[0].await_port(far, |port| port.link_up && (port.width_active, port.speed_active) == (1, fast));
    assert_ne!(fast, 1);
    assert_eq!(agents[1].ask(impair(at, "f2", Word::Flap, "200ms 50ms")), Answer::Done);
    let downs = agents[0].port(far).totals.link_downed;
    agents[0].await_port(far, |port| port.totals.link_downed >= downs + 3);
    for id in ["f1", "f2"] {
        assert_eq!(agents[1].ask(clear(id)), Answer::Done);
    }
    agents[0].await_port(far, |port| port.link_up && port.width_active == 2);
    agents.into_iter().for_each(Running::stop);
}
