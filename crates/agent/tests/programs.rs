//! Programs that do not behave.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use common::{Fabric, HCA_A, PATIENCE, Running, get, node_at};
use weft_umad::{ClientMessage, ControlReply, ControlRequest, Decoder, ServerMessage, encode_into};
use weft_wire::{AttributeId, PortNum};

/// Waits until the agent has counted at least this much of something.
#[track_caller]
fn await_count(agent: &Running, name: &str, least: u64) {
    let deadline = Instant::now() + PATIENCE;
    while agent.status().counts[name] < least {
        assert!(Instant::now() < deadline, "{name}: {:?}", agent.status().counts);
    }
}

#[test]
fn a_program_that_never_reads_is_sent_away_and_disturbs_nobody() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let mut good = agents[0].attach(HCA_A, 1);
    let stream = UnixStream::connect(&agents[0].config.attach_socket).unwrap();
    let mut bytes = Vec::new();
    let attach = ClientMessage::Attach { node: HCA_A, port: PortNum(1), registrations: vec![] };
    encode_into(&attach, &mut bytes).unwrap();
    (&stream).write_all(&bytes).unwrap();
    bytes.clear();
    let request = ClientMessage::Send(get(AttributeId::NodeInfo, &[]));
    encode_into(&request, &mut bytes).unwrap();
    let hundred = bytes.repeat(100);
    // Answers pile up until the agent has had enough and closes the connection under us.
    let deadline = Instant::now() + PATIENCE;
    while (&stream).write_all(&hundred).is_ok() {
        assert!(Instant::now() < deadline, "the program was kept");
        assert_eq!(node_at(&mut good, &[]), HCA_A);
    }
    assert!(agents[0].status().counts["program_mads_dropped"] >= 4096);
    agents.into_iter().for_each(Running::stop);
    assert_eq!(fabric.events("slow-program").len(), 1);
}

#[test]
fn a_program_that_asks_and_never_reads_has_to_wait() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    drop(agents[0].connect());
    let mut stream = UnixStream::connect(&agents[0].config.attach_socket).unwrap();
    const QUESTIONS: u32 = 50_000;
    let mut questions = Vec::new();
    for request in 0..QUESTIONS {
        encode_into(&ClientMessage::Control { request, body: ControlRequest::Ports }, &mut questions)
            .unwrap();
    }
    let mut asking = stream.try_clone().unwrap();
    let asks = std::thread::spawn(move || asking.write_all(&questions).unwrap());
    await_count(&agents[0], "programs_paused", 1);
    // Once it reads, it has an answer to every question after all.
    let mut decoder = Decoder::<ServerMessage>::new();
    let mut bytes = vec![0; 1 << 16];
    let mut answered = 0;
    while answered < QUESTIONS {
        let count = stream.read(&mut bytes).unwrap();
        assert_ne!(count, 0, "closed after {answered} answers");
        decoder.feed(&bytes[..count]);
        while let Some(message) = decoder.next_message().unwrap() {
            let ServerMessage::Reply { request, body: ControlReply::Ports(_) } = message else {
                panic!("{message:?}")
            };
            assert_eq!(request, answered);
            answered += 1;
        }
    }
    asks.join().unwrap();
    drop(stream);
    agents.into_iter().for_each(Running::stop);
}
