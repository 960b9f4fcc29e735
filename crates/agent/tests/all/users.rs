//! Programs of libibumad that do not behave.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Instant;

use common::{Fabric, HCA_A, PATIENCE, Running, SWITCH};
use rustix::net::{RecvFlags, SendFlags, send};
use weft_umad::user_mad::{
    AgentRegistration, Datagram, Incoming, Reply, Request, Token, UserMad, UserMadAddress, connect, open,
    question, receive, socket_path,
};
use weft_wire::{Guid, Lid, Method, MgmtClass, PortNum, QKey, QpNum, Smp};

use crate::common;

/// A MAD of subnet management along a directed route without hops.
fn node_info() -> [u8; 256] {
    let mut mad = [0; 256];
    Smp::base_version.set(&mut mad, 1);
    Smp::mgmt_class.set(&mut mad, MgmtClass::SubnDirected);
    Smp::class_version.set(&mut mad, 1);
    Smp::method.set(&mut mad, Method::Get);
    Smp::attribute_id.set(&mut mad, weft_wire::AttributeId::NodeInfo);
    mad[32..36].fill(0xff);
    mad
}

fn header(agent_id: u32) -> [u8; 64] {
    let address =
        UserMadAddress { lid: Lid::PERMISSIVE, qpn: QpNum(0), qkey: QKey(0), ..UserMadAddress::default() };
    UserMad { agent_id, timeout_ms: 5000, address, ..UserMad::default() }.encode()
}

struct User {
    path: PathBuf,
    socket: OwnedFd,
}

impl User {
    fn new(agent: &Running, node: Guid, port: u8) -> Self {
        let path = socket_path(&agent.config.attach_socket);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match open(&path, node, PortNum(port)) {
                Ok(socket) => return Self { path, socket },
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        }
    }

    fn register(&self, class: u8, methods: u128) -> std::io::Result<u32> {
        let token = Token::of(&self.socket)?;
        let qpn = u8::from(!matches!(class, 1 | 0x81));
        let registration =
            AgentRegistration { qpn, class, class_version: 1, methods, ..AgentRegistration::default() };
        match question(connect(&self.path)?, &Request::Register { token, registration })? {
            Reply::Registered { agent_id } => Ok(agent_id),
            other => panic!("{other:?}"),
        }
    }

    fn receive(&self) -> Incoming {
        receive(&self.socket, &mut [0; 512], RecvFlags::empty()).unwrap()
    }

    /// Whether it gets an answer to a request.
    fn works(&self, agent: u32) {
        Datagram::mad(&header(agent), &node_info()).unwrap().send(&self.socket, SendFlags::empty()).unwrap();
        assert_eq!(self.receive().bytes, Datagram::MAD_BYTES_MAX);
    }
}

fn count(agent: &Running, name: &str) -> u64 {
    agent.status().counts[name]
}

#[test]
fn an_invalid_message_ends_only_its_connection() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let good = User::new(&agents[0], HCA_A, 1);
    let agent = good.register(0x81, 0).unwrap();
    let mad = Request::Ca { node: HCA_A }.encode();
    let garbage = [&[0xff; 64][..], &[0], b"Wm\x01\x07", &mad[..mad.len() - 1], &[0x57; 2000]];
    for (number, bytes) in garbage.into_iter().enumerate() {
        let bad = User::new(&agents[0], HCA_A, 1);
        send(&bad.socket, bytes, SendFlags::NOSIGNAL).unwrap();
        assert_eq!(bad.receive().bytes, 0, "{bytes:?}");
        assert_eq!(count(&agents[0], "umad_messages_malformed"), number as u64 + 1);
    }
    // A MAD on a connection that is no open port is as wrong.
    let closed = connect(&good.path).unwrap();
    Datagram::mad(&header(0), &node_info()).unwrap().send(&closed, SendFlags::empty()).unwrap();
    assert_eq!(receive(&closed, &mut [0; 512], RecvFlags::empty()).unwrap().bytes, 0);
    good.works(agent);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn absent_or_taken_devices_are_refused_with_an_errno() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let user = User::new(&agents[0], HCA_A, 1);
    let ask = |request: &Request| question(connect(&user.path).unwrap(), request).unwrap_err().raw_os_error();
    let node = HCA_A;
    let token = Token::of(&user.socket).unwrap();
    assert_eq!(ask(&Request::Ca { node: Guid(99) }), Some(19));
    assert_eq!(ask(&Request::Port { node, port: PortNum(0) }), Some(19), "an HCA has no port 0");
    assert_eq!(ask(&Request::Port { node: SWITCH, port: PortNum(1) }), Some(19), "a switch no other");
    assert_eq!(ask(&Request::Issm { node, port: PortNum(9) }), Some(19));
    assert_eq!(ask(&Request::Open { token, node, port: PortNum(1) }), Some(22), "the token is taken");
    let nobody = Token(u64::MAX);
    assert_eq!(ask(&Request::Unregister { token: nobody, agent_id: 0 }), Some(19));
    let registration = AgentRegistration::default();
    assert_eq!(ask(&Request::Register { token: nobody, registration }), Some(19));
    // What one has, another cannot have; until it is gone.
    let traps = 1 << Method::Trap.code();
    user.register(1, traps).unwrap();
    let other = User::new(&agents[0], HCA_A, 1);
    assert_eq!(other.register(1, traps).unwrap_err().raw_os_error(), Some(22));
    drop(user);
    let deadline = Instant::now() + PATIENCE;
    while other.register(1, traps).is_err() {
        assert!(Instant::now() < deadline, "the registration outlived its program");
    }
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn a_program_that_never_reads_loses_mads_and_disturbs_nobody() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let good = User::new(&agents[0], HCA_A, 1);
    let agent = good.register(0x81, 0).unwrap();
    let deaf = User::new(&agents[0], HCA_A, 1);
    let own = deaf.register(0x81, 0).unwrap();
    let mut request = node_info();
    let mut sent = 0_u32;
    let deadline = Instant::now() + PATIENCE;
    while count(&agents[0], "umad_mads_dropped") == 0 {
        for _ in 0..4000 {
            sent += 1;
            request[12..16].copy_from_slice(&sent.to_be_bytes());
            let datagram = Datagram::mad(&header(own), &request).unwrap();
            datagram.send(&deaf.socket, SendFlags::empty()).unwrap();
        }
        good.works(agent);
        assert!(Instant::now() < deadline, "{sent} answers wait, and none was dropped");
    }
    // What was kept is there to be read, in order.
    assert_eq!(deaf.receive().bytes, Datagram::MAD_BYTES_MAX);
    good.works(agent);
    agents.into_iter().for_each(Running::stop);
}

#[test]
fn an_agent_that_stops_leaves_no_socket_and_no_file() {
    let fabric = Fabric::packed();
    let agents = fabric.start();
    let user = User::new(&agents[0], HCA_A, 1);
    let asked = question(connect(&user.path).unwrap(), &Request::Issm { node: HCA_A, port: PortNum(1) });
    let Ok(Reply::Issm(path)) = asked else { panic!("{asked:?}") };
    let path = PathBuf::from(String::from_utf8(path).unwrap());
    assert!(path.exists());
    agents.into_iter().for_each(Running::stop);
    assert!(!path.exists() && !user.path.exists());
    assert_eq!(user.receive().bytes, 0);
    assert_eq!(connect(&user.path).unwrap_err().kind(), ErrorKind::NotFound);
}
