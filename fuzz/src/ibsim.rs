//! The two sockets of the server of ibsim's protocol.

#![allow(clippy::disallowed_types, reason = "the server is told the time as its driver reads it")]

use std::time::{Duration, Instant};

use weft_ibsim::{Address, CONTROL_BYTES, Command, Connect, Control, Data, Output, Server, ServerOptions};
use weft_wire::{AddressedMad, Method, PortNum, Smp};

/// A server with one program, whose node answers everything it is asked.
struct Served {
    server: Server,
    now: Instant,
    program: Address,
}

impl Served {
    fn new() -> Self {
        let program = Address::named("sim", "ctl1");
        let server = Server::new("sim", ServerOptions::default());
        let mut served = Self { server, now: Instant::now(), program };
        let connect = Connect { id: 1, qp: 0, issm: false, node: String::new() };
        served.control(&Control::new(0, Command::Connect, &connect.encode()).encode());
        assert_eq!(served.server.counts().connected, 1);
        served
    }

    fn control(&mut self, bytes: &[u8]) {
        let from = self.program.clone();
        let taken = self.server.control(self.now, &from, bytes);
        assert_eq!(taken.is_ok(), Control::decode(bytes).is_ok());
        self.carry_out();
    }

    /// Does what the server wants, and lets every node answer.
    fn carry_out(&mut self) {
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Attach { slot, .. } => {
                    self.server.attached(self.now, slot, Some(("node".to_owned(), PortNum(1))));
                }
                Output::Register { slot, role } => self.server.registered(slot, role, true),
                Output::Send { slot, mad } => {
                    let mut answer = mad.mad;
                    Smp::method.set(&mut answer.0, Method::GetResp);
                    self.server.received(slot, &AddressedMad { mad: answer, ..mad });
                }
                Output::Deliver { data, form, .. } => {
                    let bytes = data.encode(form);
                    let read = Data::decode(&bytes[..form.size()]);
                    assert_eq!(read, Ok((data, form)), "what is delivered can be read");
                }
                Output::Answer { .. } | Output::Detach { .. } => {}
            }
        }
    }

    /// Afterwards everything has come to its end.
    fn ends(mut self) {
        for _ in 0..=ServerOptions::default().retries {
            self.now += Duration::from_secs(1);
            self.server.handle_timeout(self.now);
            self.carry_out();
        }
        assert_eq!(self.server.poll_timeout(), None);
    }
}

/// The control socket: any datagrams of a program.
pub fn control(bytes: &[u8]) {
    let mut served = Served::new();
    for message in bytes.chunks(CONTROL_BYTES) {
        served.control(message);
    }
    served.ends();
}

/// The data sockets: any datagram of a program that is attached, and the same from the fabric.
pub fn data(bytes: &[u8]) {
    let mut served = Served::new();
    let taken = served.server.data(served.now, 0, bytes);
    let decoded = Data::decode(bytes);
    assert_eq!(taken.is_ok(), decoded.is_ok());
    served.carry_out();
    if let Ok((data, _)) = decoded {
        served.server.received(0, &AddressedMad::smp(data.dlid, data.mad));
        served.carry_out();
    }
    served.ends();
}
