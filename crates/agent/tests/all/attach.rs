//! Programs that attach over QUIC.

use std::error::Error as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use common::traffic::await_that;
use common::{Fabric, HCA_A, HCA_B, PATIENCE, Running, SWITCH, end, get, node_at};
use weft_link::{Authority, Credentials, Destination, Identity, Protocol, Tunnel, VisitError};
use weft_umad::{Client, ClientError, ClientMessage, Decoder, ServerMessage, VERSION, encode_into};
use weft_wire::{AttributeId, Guid, Method, MethodMask, MgmtClass, PortNum, Registration};

use crate::common;

/// A conversation with an agent, as soon as it listens.
fn tunnel(agent: &Running, identity: &Identity) -> (UnixStream, Tunnel) {
    open_tunnel(agent, identity).unwrap()
}

fn open_tunnel(agent: &Running, identity: &Identity) -> Result<(UnixStream, Tunnel), VisitError> {
    let node = agent.config.part.devices[0].guid;
    let to = Destination { address: agent.config.part.bind.into(), node };
    drop(agent.client());
    Tunnel::open(&to, &Credentials::new(identity.clone()).unwrap(), Protocol::Mad, PATIENCE)
}

/// Why an agent ends a conversation with a program that has no right to it: as that attaches, or before.
fn refusal_of(agent: &Running, identity: &Identity) -> String {
    let (stream, tunnel) = match open_tunnel(agent, identity) {
        Ok(opened) => opened,
        Err(refused) => return refused.source().unwrap().to_string(),
    };
    let mut client = Client::over(stream).unwrap();
    let refused = client.attach(HCA_A, PortNum(1), vec![], PATIENCE).unwrap_err();
    assert!(matches!(refused, ClientError::Closed | ClientError::Io(_)), "{refused:?}");
    tunnel.end_reason().unwrap().to_owned()
}

fn attach(agent: &Running, identity: &Identity, node: Guid) -> Result<(Client, Tunnel), ClientError> {
    attach_with(agent, identity, node, vec![])
}

fn attach_with(
    agent: &Running,
    identity: &Identity,
    node: Guid,
    registrations: Vec<Registration>,
) -> Result<(Client, Tunnel), ClientError> {
    let (stream, tunnel) = tunnel(agent, identity);
    let mut client = Client::over(stream).unwrap();
    client.attach(node, PortNum(1), registrations, PATIENCE)?;
    Ok((client, tunnel))
}

/// What an agent says to bytes, up to the end that it makes.
fn says_to(agent: &Running, identity: &Identity, bytes: &[u8]) -> Vec<ServerMessage> {
    let (mut stream, _tunnel) = tunnel(agent, identity);
    // It may hang up before it has read everything.
    let _ = stream.write_all(bytes);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let mut decoder = Decoder::<ServerMessage>::new();
    decoder.feed(&answer);
    std::iter::from_fn(|| decoder.next_message().unwrap()).collect()
}

fn refused(answer: &[ServerMessage]) -> &str {
    let [ServerMessage::Refused { reason }] = answer else { panic!("{answer:?}") };
    reason
}

fn attach_message(version: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let attach = ClientMessage::Attach { version, node: HCA_A, port: PortNum(1), registrations: vec![] };
    encode_into(&attach, &mut bytes).unwrap();
    bytes
}

fn count(agent: &Running, name: &str) -> u64 {
    agent.status().counts.get(name).copied().unwrap_or(0)
}

/// What only one program of a port may have.
fn traps() -> Vec<Registration> {
    vec![Registration::new(MgmtClass::SubnLid, 1, MethodMask::from_iter([Method::Trap]))]
}

#[test]
fn mads_go_out_and_come_back_as_through_the_socket() {
    let fabric = Fabric::spread();
    let agents = fabric.up();
    let sm = fabric.authority.issue_role("sm", &[HCA_A]).unwrap();
    let (mut far, tunnel) = attach(&agents[0], &sm, HCA_A).unwrap();
    let mut near = agents[0].attach(HCA_A, 1);
    for client in [&mut far, &mut near] {
        assert_eq!(node_at(client, &[]), HCA_A);
        assert_eq!(node_at(client, &[1]), SWITCH);
        assert_eq!(node_at(client, &[1, 2]), HCA_B);
    }
    assert_eq!(agents[0].status().programs, 2);
    drop((far, tunnel));
    await_that(&agents[0], "the program has left", || agents[0].status().programs == 1);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn a_program_without_the_right_is_refused() {
    let fabric = Fabric::spread();
    let agents = fabric.up();
    let authority = &fabric.authority;
    let other = authority.issue_role("sm", &[HCA_B]).unwrap();
    let reason = match attach(&agents[0], &other, HCA_A) {
        Err(ClientError::Refused { reason }) => reason,
        attached => panic!("{attached:?}"),
    };
    assert_eq!(reason, format!("the certificate does not let its holder attach to node {HCA_A}"));
    // A node that it may attach to, but which another agent runs.
    let Err(ClientError::Refused { reason }) = attach(&agents[0], &other, HCA_B) else { panic!() };
    assert_eq!(reason, format!("node {HCA_B} is not here"));
    let without = [
        authority.issue_role("viewer", &[]).unwrap(),
        authority.issue_role("sm", &[]).unwrap(),
        authority.issue(&[HCA_A]).unwrap(),
        authority.issue(&[SWITCH]).unwrap(),
    ];
    for identity in &without {
        let reason = refusal_of(&agents[0], identity);
        assert!(reason.contains("does not let its holder attach"), "{reason}");
    }
    assert_eq!(count(&agents[0], "attach_not_allowed"), 1 + without.len() as u64);
    let stranger = Authority::new("test").unwrap().issue_role("sm", &[HCA_A]).unwrap();
    let to = Destination { address: agents[0].config.part.bind.into(), node: HCA_A };
    let error = Tunnel::open(&to, &Credentials::new(stranger).unwrap(), Protocol::Mad, PATIENCE).unwrap_err();
    assert!(error.to_string().contains("no conversation with 127.0.0.1"), "{error}");
    assert_eq!(count(&agents[0], "client_attached"), 0);
    // The links do not mind any of that.
    assert!(agents[0].port(end(HCA_A, 1)).link_up);
    assert_eq!(agents[0].port(end(HCA_A, 1)).totals.link_downed, 0);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn operators_attach_anywhere_and_do_not_take_each_others_places() {
    let fabric = Fabric::spread();
    let agents = fabric.up();
    let operator = fabric.authority.issue_role("operator", &[]).unwrap();
    let hub = fabric.authority.issue_role("hub", &[]).unwrap();
    let mut attached: Vec<_> =
        [&operator, &operator, &hub].map(|who| attach(&agents[0], who, HCA_A).unwrap()).into();
    for (client, _) in &mut attached {
        assert_eq!(node_at(client, &[1, 2]), HCA_B);
    }
    assert_eq!(count(&agents[0], "attachments_superseded"), 0);
    drop(attached);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn junk_long_frames_and_other_versions_are_refused_in_words() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let sm = fabric.authority.issue_role("sm", &[HCA_A]).unwrap();
    let (mut good, _tunnel) = attach(&agents[0], &sm, HCA_A).unwrap();
    let junk = says_to(&agents[0], &sm, &[&7u32.to_le_bytes()[..], b"rubbish"].concat());
    assert_eq!(refused(&junk), "a frame does not decode");
    let long = [&(16u32 << 20).to_le_bytes()[..], &vec![0; 16 << 20]].concat();
    let long = says_to(&agents[0], &sm, &long);
    assert_eq!(refused(&long), "a frame of 16777216 bytes is longer than the 65536 allowed");
    let version = says_to(&agents[0], &sm, &attach_message(VERSION + 1));
    assert!(refused(&version).contains("is not spoken here"), "{version:?}");
    let mut early = Vec::new();
    encode_into(&ClientMessage::Send(get(AttributeId::NodeInfo, &[])), &mut early).unwrap();
    assert_eq!(refused(&says_to(&agents[0], &sm, &early)), "this connection is not attached to a port");
    assert_eq!(count(&agents[0], "program_frames_malformed"), 2);
    // None of that was an attachment, so the one that stands was not superseded.
    assert_eq!(node_at(&mut good, &[1]), SWITCH);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn a_program_that_never_reads_is_sent_away_and_disturbs_nobody() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let (slow, pm) =
        (fabric.authority.issue_role("sm", &[HCA_A]), fabric.authority.issue_role("pm", &[HCA_A]));
    let (mut good, _tunnel) = attach(&agents[0], &pm.unwrap(), HCA_A).unwrap();
    let (stream, _slow) = tunnel(&agents[0], &slow.unwrap());
    (&stream).write_all(&attach_message(VERSION)).unwrap();
    let mut bytes = Vec::new();
    encode_into(&ClientMessage::Send(get(AttributeId::NodeInfo, &[])), &mut bytes).unwrap();
    let hundred = bytes.repeat(100);
    let deadline = Instant::now() + PATIENCE;
    while (&stream).write_all(&hundred).is_ok() {
        assert!(Instant::now() < deadline, "the program was kept");
        assert_eq!(node_at(&mut good, &[]), HCA_A);
    }
    assert!(count(&agents[0], "program_mads_dropped") >= 4096);
    await_that(&agents[0], "the slow program has left", || agents[0].status().programs == 1);
    agents.into_iter().for_each(Running::stop);
    assert_eq!(fabric.events("slow-program").len(), 1);
}

#[test]
fn a_restarted_process_supersedes_its_old_attachment() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let sm = fabric.authority.issue_role("sm", &[HCA_A]).unwrap();
    let pm = fabric.authority.issue_role("pm", &[HCA_A]).unwrap();
    let (mut before, _before) = attach_with(&agents[0], &sm, HCA_A, traps()).unwrap();
    // Another process at the same port is refused what this one has.
    let taken = attach_with(&agents[0], &pm, HCA_A, traps()).unwrap_err();
    assert!(matches!(taken, ClientError::Refused { .. }), "{taken:?}");
    let (mut after, _after) = attach_with(&agents[0], &sm, HCA_A, traps()).unwrap();
    let told = before.recv(PATIENCE).unwrap();
    let Some(ServerMessage::Refused { reason }) = told else { panic!("{told:?}") };
    assert_eq!(reason, "a process with this identity has attached again");
    assert_eq!(node_at(&mut after, &[1]), SWITCH);
    assert_eq!(count(&agents[0], "attachments_superseded"), 1);
    assert_eq!(agents[0].status().programs, 1);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn the_agent_s_end_is_the_end_of_the_stream() {
    let fabric = Fabric::packed();
    let mut agents = fabric.start();
    let sm = fabric.authority.issue_role("sm", &[HCA_A]).unwrap();
    let (mut client, _tunnel) = attach(&agents[0], &sm, HCA_A).unwrap();
    agents.remove(0).stop();
    let ended = client.recv(PATIENCE).unwrap_err();
    assert!(matches!(ended, ClientError::Closed), "{ended:?}");
    // One that is killed and comes again is noticed by the next word, long before its silence would tell.
    let agent = Running::start(&fabric.agents[0]);
    let (mut client, _tunnel) = attach(&agent, &sm, HCA_A).unwrap();
    agent.kill();
    let agent = Running::start(&fabric.agents[0]);
    drop(agent.client());
    let again = Instant::now();
    let ended = client.recv(PATIENCE).unwrap_err();
    assert!(matches!(ended, ClientError::Closed), "{ended:?}");
    assert!(again.elapsed() < Duration::from_secs(8), "noticed only by its silence");
    let (mut client, _tunnel) = attach(&agent, &sm, HCA_A).unwrap();
    assert_eq!(node_at(&mut client, &[1]), SWITCH);
    agent.stop();
}

#[test]
fn an_agent_that_cannot_be_reached_is_named() {
    let fabric = Fabric::packed();
    let sm = Credentials::new(fabric.authority.issue_role("sm", &[HCA_A]).unwrap()).unwrap();
    let bind = fabric.agents[0].part.bind;
    let open = |address: &str| {
        let to = Destination { address: address.parse().unwrap(), node: HCA_A };
        Tunnel::open(&to, &sm, Protocol::Mad, PATIENCE).unwrap_err().to_string()
    };
    assert_eq!(open(&bind.to_string()), format!("no process listens at {bind}"));
    // Reserved never to resolve (RFC 6761).
    let error = open("nowhere.invalid:9");
    assert!(error.starts_with("cannot resolve nowhere.invalid:9: "), "{error}");
}
