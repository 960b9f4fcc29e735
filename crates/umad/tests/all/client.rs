//! The blocking client against a hand-driven agent.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;
use std::time::Duration;

use weft_umad::{Attached, Client, ClientError, ClientMessage, Decoder, ServerMessage, encode_into};
use weft_wire::{AddressedMad, Guid, Lid, Mad, PortNum};

const PATIENCE: Duration = Duration::from_secs(20);

fn mad(first: u8) -> AddressedMad {
    AddressedMad::smp(Lid::PERMISSIVE, Mad([first; 256]))
}

/// Answers each message with what `reply` says, until the program leaves.
fn agent(
    listener: UnixListener,
    mut reply: impl FnMut(&ClientMessage) -> Vec<ServerMessage> + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut decoder = Decoder::new();
        let mut bytes = [0; 4096];
        loop {
            while let Some(message) = decoder.next_message().unwrap() {
                let mut out = Vec::new();
                for answer in reply(&message) {
                    encode_into(&answer, &mut out).unwrap();
                }
                stream.write_all(&out).unwrap();
            }
            match stream.read(&mut bytes).unwrap() {
                0 => return,
                count => decoder.feed(&bytes[..count]),
            }
        }
    })
}

fn obliging(message: &ClientMessage) -> Vec<ServerMessage> {
    match message {
        ClientMessage::Attach { node, port, .. } => {
            let port_guid = Guid(node.0 + 1);
            vec![ServerMessage::Attached(Attached { client: 1, node: *node, port_guid, port: *port })]
        }
        ClientMessage::Send(mad) => vec![ServerMessage::Receive(*mad)],
        ClientMessage::User(flat) => vec![ServerMessage::User(flat.clone())],
    }
}

#[test]
fn attach_and_send() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("attach.sock");
    let agent = agent(UnixListener::bind(&path).unwrap(), obliging);
    let mut client = Client::connect(&path).unwrap();
    let attached = client.attach(Guid(10), PortNum(1), Vec::new(), PATIENCE).unwrap();
    assert_eq!((attached.port_guid, attached.port), (Guid(11), PortNum(1)));

    client.send(&mad(1)).unwrap();
    client.send(&mad(2)).unwrap();
    client.flush().unwrap();
    for first in [1, 2] {
        assert_eq!(client.recv(PATIENCE).unwrap(), Some(ServerMessage::Receive(mad(first))));
    }
    assert_eq!(client.recv(Duration::ZERO).unwrap(), None);

    drop(client);
    agent.join().unwrap();
}

#[test]
fn full_buffers_on_both_sides_do_not_lock_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("attach.sock");
    let agent = agent(UnixListener::bind(&path).unwrap(), obliging);
    let mut client = Client::connect(&path).unwrap();
    const MADS: usize = 20_000;
    for index in 0..MADS {
        client.send(&mad(u8::try_from(index % 251).unwrap())).unwrap();
    }
    client.flush().unwrap();
    for index in 0..MADS {
        let expected = mad(u8::try_from(index % 251).unwrap());
        assert_eq!(client.recv(PATIENCE).unwrap(), Some(ServerMessage::Receive(expected)));
    }
    drop(client);
    agent.join().unwrap();
}

#[test]
fn absent_and_closed_agents_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("attach.sock");
    assert!(matches!(Client::connect(&path), Err(ClientError::Connect { .. })));
    let listener = UnixListener::bind(&path).unwrap();
    let mut client = Client::connect(&path).unwrap();
    let (stream, _): (UnixStream, _) = listener.accept().unwrap();
    drop(stream);
    assert!(matches!(client.recv(PATIENCE), Err(ClientError::Closed)));
}
