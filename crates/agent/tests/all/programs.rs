//! Programs that do not behave.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use common::{Fabric, HCA_A, PATIENCE, Running, get, node_at};
use weft_control::{LineDecoder, Page, REPLY_BYTES_MAX, ReplyLine, Request, RequestLine};
use weft_umad::{ClientMessage, Decoder, ServerMessage, VERSION, encode_into};
use weft_wire::{AttributeId, PortNum};

use crate::common;

#[test]
fn a_program_that_never_reads_is_sent_away_and_disturbs_nobody() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let mut good = agents[0].attach(HCA_A, 1);
    let stream = UnixStream::connect(&agents[0].config.attach_socket).unwrap();
    let mut bytes = Vec::new();
    let attach =
        ClientMessage::Attach { version: VERSION, node: HCA_A, port: PortNum(1), registrations: vec![] };
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
fn a_client_that_asks_and_never_reads_has_to_wait() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    drop(agents[0].client());
    let mut stream = UnixStream::connect(&agents[0].config.control_socket).unwrap();
    const QUESTIONS: u64 = 20_000;
    let ask = |id| RequestLine { id, request: Request::Ports(Page::default()) }.to_line();
    let questions: String = (0..QUESTIONS).map(ask).collect();
    let mut asking = stream.try_clone().unwrap();
    let asks = std::thread::spawn(move || asking.write_all(questions.as_bytes()).unwrap());
    // Others are answered while this one's answers wait to be read.
    assert_eq!(agents[0].devices().len(), 3);
    // Once it reads, it has an answer to every question after all.
    let mut decoder = LineDecoder::new(REPLY_BYTES_MAX);
    let mut bytes = vec![0; 1 << 16];
    let mut answered = 0;
    while answered < QUESTIONS {
        let count = stream.read(&mut bytes).unwrap();
        assert_ne!(count, 0, "closed after {answered} answers");
        decoder.feed(&bytes[..count]);
        while let Some(line) = decoder.next_line() {
            let reply = ReplyLine::parse(&line.unwrap()).unwrap();
            assert_eq!(reply.id, Some(answered));
            answered += 1;
        }
    }
    asks.join().unwrap();
    drop(stream);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn a_program_of_another_version_is_told_so() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    drop(agents[0].connect());
    let mut stream = UnixStream::connect(&agents[0].config.attach_socket).unwrap();
    let attach =
        ClientMessage::Attach { version: VERSION + 1, node: HCA_A, port: PortNum(1), registrations: vec![] };
    let mut bytes = Vec::new();
    encode_into(&attach, &mut bytes).unwrap();
    stream.write_all(&bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let mut decoder = Decoder::<ServerMessage>::new();
    decoder.feed(&answer);
    let Some(ServerMessage::Refused { reason }) = decoder.next_message().unwrap() else { panic!() };
    assert!(reason.contains("version 2") && reason.contains("version 1"), "{reason}");
    agents.into_iter().for_each(Running::stop);
}
