//! The protocol of libibumad's stand-in, over real sockets and with damaged messages.

use std::fs::File;
use std::os::fd::OwnedFd;

use proptest::prelude::*;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};
use weft_umad::user_mad::{
    AgentRegistration, CaAttributes, DATA_BYTES_MAX, Datagram, FromClient, Malformed, PortAttributes, Reply,
    Request, Token, UserMad, decode_client, flatten, receive, unflatten,
};
use weft_wire::{GidPrefix, Guid, Lid, NodeType, PKey, PhysState, PortNum, PortState, ServiceLevel};

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// What an agent makes of what a program sent.
fn carried(datagram: &Datagram) -> Result<FromClient, Malformed> {
    let (program, agent) = pair();
    datagram.send(&program, SendFlags::DONTWAIT).unwrap();
    let mut buffer = [0; 512];
    let incoming = receive(&agent, &mut buffer, RecvFlags::DONTWAIT).unwrap();
    decode_client(&buffer[..incoming.bytes], incoming.file)
}

fn requests() -> Vec<Request> {
    let (token, node, port) = (Token(u64::MAX), Guid(0x0123_4567_89ab_cdef), PortNum(3));
    let registration = AgentRegistration {
        qpn: 1,
        class: 0x32,
        class_version: 1,
        rmpp_version: 1,
        flags: 1,
        oui: 0x1405,
        methods: 1 << 127 | 6,
    };
    vec![
        Request::Open { token, node, port },
        Request::Ca { node },
        Request::Port { node, port },
        Request::Issm { node, port },
        Request::Register { token, registration },
        Request::Unregister { token, agent_id: 31 },
    ]
}

fn replies() -> Vec<Reply> {
    vec![
        Reply::Done,
        Reply::Failed(22),
        Reply::Ca(CaAttributes {
            node_guid: Guid(1),
            system_image_guid: Guid(2),
            node_type: NodeType::Switch,
            vendor_id: 0x2c9,
            device_id: 0x1003,
            revision: 7,
            first_port: PortNum(0),
            last_port: PortNum(0),
            description: "a switch".into(),
        }),
        Reply::Port(PortAttributes {
            port: PortNum(1),
            state: PortState::Active,
            phys_state: PhysState::LinkUp,
            lid: Lid(7),
            lmc: 1,
            sm_lid: Lid(3),
            sm_sl: ServiceLevel(2),
            rate_100mbps: 1000,
            capability_mask: 0x0251_0868,
            gid_prefix: GidPrefix::DEFAULT,
            port_guid: Guid(9),
            p_keys: vec![PKey(0xffff); 65_535],
        }),
        Reply::Issm(b"/run/issm".to_vec()),
        Reply::Registered { agent_id: 4 },
    ]
}

#[test]
fn control_messages_arrive_as_they_were_sent() {
    for request in requests() {
        assert_eq!(carried(&request.encode().into()), Ok(FromClient::Request(request)));
    }
    for reply in replies() {
        assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
    }
}

#[test]
fn a_message_cut_or_lengthened_anywhere_is_none() {
    for request in requests() {
        let bytes = request.encode();
        for cut in 0..bytes.len() {
            assert!(decode_client(&bytes[..cut], None).is_err(), "{request:?} cut at {cut}");
        }
        assert_eq!(decode_client(&[&bytes[..], &[0]].concat(), None), Err(Malformed::Trailing));
        assert!(Reply::decode(&bytes).is_err(), "no answer: {request:?}");
    }
    for reply in replies() {
        assert!(decode_client(&reply.encode(), None).is_err(), "no question: {reply:?}");
    }
    assert_eq!(decode_client(&[0; 600], None), Err(Malformed::Trailing));
    assert_eq!(decode_client(&[0; 8], None), Err(Malformed::Version));
}

#[test]
fn mads_of_every_length_arrive_whole() {
    let header = UserMad { agent_id: 3, timeout_ms: 1000, ..UserMad::default() };
    for length in [0, 24, 36, 255, 256, 257, 4096, 65_536, 3 << 20, DATA_BYTES_MAX] {
        let data: Vec<u8> = (0..length).map(|at| ((at * 31) >> 3) as u8).collect();
        let datagram = Datagram::mad(&header.encode(), &data).unwrap();
        assert!(datagram.size() >= length);
        let Ok(FromClient::Mad { header: carried_header, data: carried_data }) = carried(&datagram) else {
            panic!("{length} bytes do not arrive")
        };
        assert_eq!(carried_header, header);
        assert!(carried_data == data, "{length} bytes");
        // And over a way that carries no files.
        let (program, agent) = pair();
        datagram.send(&program, SendFlags::DONTWAIT).unwrap();
        let mut buffer = [0; 512];
        let incoming = receive(&agent, &mut buffer, RecvFlags::DONTWAIT).unwrap();
        let flat = flatten(&buffer[..incoming.bytes], incoming.file).unwrap();
        assert_eq!(flat.len(), 8 + 64 + length);
        let again = carried(&unflatten(flat).unwrap()).unwrap();
        assert!(again == FromClient::Mad { header, data }, "{length} bytes");
    }
    assert!(Datagram::mad(&header.encode(), &vec![0; DATA_BYTES_MAX + 1]).is_err());
}

/// What comes over a network may have any length.
#[test]
fn a_run_of_bytes_that_is_no_datagram_is_refused() {
    let long = [&[b'W', b'm', 1, 7][..], &1000_u32.to_le_bytes(), &[7; 64], &[7; 1000]].concat();
    assert!(unflatten(long.clone()).is_ok());
    for cut in [0, 3, 7, 8, 71, 72, 400, 1071] {
        let cut = long[..cut].to_vec();
        assert!(unflatten(cut.clone()).is_err(), "{} bytes", cut.len());
        assert!(flatten(&cut, None).is_err(), "{} bytes", cut.len());
    }
    assert!(unflatten([&long[..], &[0]].concat()).is_err());
    let mut endless = long;
    endless[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(unflatten(endless.clone()).is_err());
    assert_eq!(flatten(&endless, None), Err(Malformed::TooLong(u32::MAX)));
    for request in requests() {
        assert_eq!(carried(&unflatten(request.encode()).unwrap()), Ok(FromClient::Request(request)));
    }
}

/// A file that its sender can change, that is too short or that is none at all is not read.
#[test]
fn a_long_mad_needs_a_sealed_file() {
    let long = Datagram::mad(&[7; 64], &[7; 1000]).unwrap();
    let (program, agent) = pair();
    long.send(&program, SendFlags::DONTWAIT).unwrap();
    let mut buffer = [0; 512];
    let incoming = receive(&agent, &mut buffer, RecvFlags::DONTWAIT).unwrap();
    let bytes = &buffer[..incoming.bytes];
    assert_eq!(decode_client(bytes, None), Err(Malformed::File));
    let file = tempfile::tempfile().unwrap();
    file.set_len(1000).unwrap();
    assert_eq!(decode_client(bytes, Some(file.into())), Err(Malformed::File));
    assert_eq!(decode_client(bytes, Some(File::open("/dev/zero").unwrap().into())), Err(Malformed::File));
    let mut longer = bytes.to_vec();
    longer[4..8].copy_from_slice(&1001_u32.to_le_bytes());
    assert_eq!(decode_client(&longer, incoming.file), Err(Malformed::File));
    longer[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(decode_client(&longer, None), Err(Malformed::TooLong(u32::MAX)));
}

proptest! {
    #[test]
    fn any_header_keeps_its_fields(bytes in any::<[u8; 32]>(), rest in any::<[u8; 32]>()) {
        let mut all = [0; 64];
        all[..32].copy_from_slice(&bytes);
        all[32..].copy_from_slice(&rest);
        // One byte is a truth value, and six are reserved.
        all[32] &= 1;
        all[58..].fill(0);
        prop_assert_eq!(UserMad::decode(&all).encode(), all);
    }
}
