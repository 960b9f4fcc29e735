//! The codec on good bytes, cut bytes and garbage.

use proptest::prelude::*;
use weft_umad::{Attached, ClientMessage, Decoder, FrameError, Message, ServerMessage, VERSION, encode_into};
use weft_wire::{AddressedMad, Guid, Lid, Mad, Method, MethodMask, MgmtClass, PortNum, Registration};

fn addressed(seed: u8) -> AddressedMad {
    AddressedMad::smp(Lid(u16::from(seed) + 1), Mad([seed; 256]))
}

fn decode_all<M: Message>(bytes: &[u8], piece: usize) -> Result<Vec<M>, FrameError> {
    let mut decoder = Decoder::new();
    let mut messages = Vec::new();
    for part in bytes.chunks(piece) {
        decoder.feed(part);
        while let Some(message) = decoder.next_message()? {
            messages.push(message);
        }
    }
    Ok(messages)
}

fn client_messages() -> Vec<ClientMessage> {
    let registrations = vec![Registration::new(MgmtClass::SubnLid, 1, [Method::Trap, Method::TrapRepress])];
    vec![
        ClientMessage::Attach { version: VERSION, node: Guid(u64::MAX), port: PortNum(1), registrations },
        ClientMessage::Send(addressed(3)),
    ]
}

fn server_messages() -> Vec<ServerMessage> {
    let attached = Attached { client: 2, node: Guid(1), port_guid: Guid(2), port: PortNum(1) };
    vec![
        ServerMessage::Attached(attached),
        ServerMessage::Receive(addressed(200)),
        ServerMessage::Refused { reason: "no such node".into() },
        ServerMessage::PortChanged { up: true },
    ]
}

#[test]
fn every_message_survives_any_cut() {
    let (mut to_agent, mut to_program) = (Vec::new(), Vec::new());
    for message in client_messages() {
        encode_into(&message, &mut to_agent).unwrap();
    }
    for message in server_messages() {
        encode_into(&message, &mut to_program).unwrap();
    }
    for piece in [1, 2, 3, 5, 64, 1 << 20] {
        assert_eq!(decode_all::<ClientMessage>(&to_agent, piece).unwrap(), client_messages());
        assert_eq!(decode_all::<ServerMessage>(&to_program, piece).unwrap(), server_messages());
    }
}

#[test]
fn a_frame_too_long_is_refused_before_its_bytes_come() {
    let mut decoder = Decoder::<ClientMessage>::new();
    decoder.feed(&u32::MAX.to_le_bytes());
    assert!(matches!(decoder.next_message(), Err(FrameError::TooLong { max: 65536, .. })));

    let registrations = vec![Registration::new(MgmtClass::SubnLid, 1, MethodMask(u128::MAX)); 10_000];
    let message = ClientMessage::Attach { version: VERSION, node: Guid(1), port: PortNum(1), registrations };
    let mut bytes = vec![1, 2, 3];
    assert!(matches!(encode_into(&message, &mut bytes), Err(FrameError::TooLong { .. })));
    assert_eq!(bytes, [1, 2, 3], "a failed encoding leaves nothing behind");
}

#[test]
fn bytes_after_the_message_are_an_error() {
    let mut bytes = Vec::new();
    encode_into(&ServerMessage::PortChanged { up: true }, &mut bytes).unwrap();
    bytes.push(0);
    let length = u32::try_from(bytes.len() - 4).unwrap();
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    let error = decode_all::<ServerMessage>(&bytes, 64).unwrap_err();
    assert!(matches!(error, FrameError::TrailingBytes { bytes: 1 }), "{error}");
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600), piece in 1usize..40) {
        let _ = decode_all::<ClientMessage>(&bytes, piece);
        let _ = decode_all::<ServerMessage>(&bytes, piece);
    }

    #[test]
    fn a_framed_garbage_body_never_panics(body in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut bytes = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend_from_slice(&body);
        let _ = decode_all::<ClientMessage>(&bytes, 1000);
        let _ = decode_all::<ServerMessage>(&bytes, 1000);
    }

    #[test]
    fn any_mad_survives(bytes in proptest::collection::vec(any::<u8>(), 256), lid in any::<u16>()) {
        let mad = AddressedMad { lid: Lid(lid), mad: Mad::try_from(bytes.as_slice()).unwrap(), ..addressed(0) };
        let mut frame = Vec::new();
        encode_into(&ClientMessage::Send(mad), &mut frame).unwrap();
        prop_assert_eq!(decode_all::<ClientMessage>(&frame, 100).unwrap(), vec![ClientMessage::Send(mad)]);
    }
}
