//! Cost of a packet and its credit between two agents: eight cables, sixteen agents in threads of their own, each
//! sending at experiment IV's rate, 12 000 packets and as many credits a second in all.
//!
//! Processor time is reported per packet and as part of a core; deadlines pace the packets.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a program to be watched")]

use std::cell::Cell;
use std::net::{SocketAddr, UdpSocket};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use tokio::task::LocalSet;
use weft_link::{
    Alarm, Authority, Cable, CableEnd, Credentials, Handler, LinkConfig, LinkEvent, LinkIndex, Links,
};
use weft_wire::{DataPacket, FlowControl, Guid, LinkParameters, PortNum, VirtualLane, opcode};

const PAIRS: u64 = 8;
const PER_SECOND: u32 = 750;
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(5);
const LINK: LinkIndex = LinkIndex(0);

fn main() {
    let authority = Authority::new("bench").unwrap();
    let mut agents = Vec::new();
    for pair in 0..PAIRS {
        let ends = [Guid(0x100 + pair), Guid(0x200 + pair)];
        let addresses = [free_address(), free_address()];
        for (me, other) in [(0, 1), (1, 0)] {
            let identity = authority.issue(&[ends[me]]).unwrap();
            let end = |guid| CableEnd { guid, port: PortNum(1) };
            let parameters = LinkParameters { width: 2, speed: 2, speed_ext: 0 };
            let cable = Cable {
                local: end(ends[me]),
                remote: end(ends[other]),
                remote_addr: addresses[other].into(),
                parameters,
            };
            let address = addresses[me];
            agents.push(std::thread::spawn(move || agent(address, &identity, cable)));
        }
    }
    std::thread::sleep(WARM_UP);
    let (began, used_before) = (Instant::now(), processor_time());
    std::thread::sleep(MEASURED);
    let (elapsed, used) = (began.elapsed(), processor_time() - used_before);
    let received: u64 = agents.into_iter().map(|agent| agent.join().unwrap()).sum();
    let whole = (WARM_UP + MEASURED + WARM_UP).as_secs_f64();
    let packets = received as f64 / whole * elapsed.as_secs_f64();
    println!(
        "{:.0} packets and as many credits a second: {:.1} us of processor time for each, {:.3} of a core",
        packets / elapsed.as_secs_f64(),
        used.as_secs_f64() * 1e6 / packets,
        used.as_secs_f64() / elapsed.as_secs_f64()
    );
}

fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// What this process has used, in steps of 10 ms.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Answers each packet with a credit.
struct Ear {
    links: Cell<Option<Links>>,
    received: Cell<u64>,
}

impl Handler for Ear {
    fn on_event(&self, event: LinkEvent) {
        if let LinkEvent::ReceivedData { link, packet } = event {
            self.received.set(self.received.get() + 1);
            let links = self.links.take();
            if let Some(links) = &links {
                let _ = links.send_credit(link, FlowControl { op: 0, fctbs: 0, vl: packet.vl, fccl: 100 });
            }
            self.links.set(links);
        }
    }
}

struct Weakly(Weak<Ear>);

impl Handler for Weakly {
    fn on_event(&self, event: LinkEvent) {
        if let Some(ear) = self.0.upgrade() {
            ear.on_event(event);
        }
    }
}

fn agent(address: SocketAddr, identity: &weft_link::Identity, cable: Cable) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let ear = Rc::new(Ear { links: Cell::new(None), received: Cell::new(0) });
        let handler = Rc::new(Weakly(Rc::downgrade(&ear)));
        let links = Links::bind(
            address,
            &Credentials::new(identity.clone()).unwrap(),
            LinkConfig::new("bench", 1),
            vec![cable],
            handler,
        )
        .unwrap();
        ear.links.set(Some(links.clone()));
        links.start_dialling();
        let alarm = Alarm::new().unwrap();
        let step = Duration::from_secs(1) / PER_SECOND;
        let began = Instant::now();
        let mut next = step;
        while began.elapsed() < WARM_UP + MEASURED + WARM_UP {
            alarm.set(next.saturating_sub(began.elapsed()));
            alarm.ring().await.unwrap();
            while next <= began.elapsed() {
                next += step;
                let packet = DataPacket {
                    opcode: opcode::RC_SEND_ONLY,
                    payload: 2048,
                    vl: VirtualLane(0),
                    ..DataPacket::default()
                };
                let _ = links.send_data(LINK, packet);
            }
        }
        ear.links.set(None);
        ear.received.get()
    })
}
