//! A slow and lossy way between machines: a switch of Ethernet frames in user space, as few kernels at hand have netem. It knows a machine
//! by the frames that come from it, loses frames by chance, and carries the others late and in order.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType};
use weft_machine::Random;

/// `ETH_P_ALL` in the network's order: every frame that arrives.
const EVERY_FRAME: u32 = (3_u16.to_be()) as u32;
const ETHERNET_BYTES: usize = 14;
/// The most that one read gives.
const FRAME_BYTES_MAX: usize = 1 << 17;
/// What the kernel keeps meanwhile, so that nothing is lost that chance does not lose.
const ROOM_BYTES: usize = 16 << 20;

/// How rough a way is.
#[derive(Clone, Copy, Debug)]
pub struct Roughness {
    /// The largest IP packet. Larger ones are lost.
    pub mtu: u16,
    /// How many frames of a thousand are lost, each for itself.
    pub lost_per_mille: u32,
    /// How long a frame takes.
    pub delay: Duration,
    /// Of chance.
    pub seed: u64,
}

/// What a way has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Machines that have sent something.
    pub known: usize,
    /// Frames that have come.
    pub frames: u64,
    /// Of those, the ones that chance has lost.
    pub lost: u64,
    /// Those that were too long.
    pub too_long: u64,
}

/// A way, until dropped.
pub(crate) struct Way {
    carried: Arc<Mutex<Carried>>,
    /// Closed, it ends the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Way {
    /// Between all interfaces of a network namespace, which must have no addresses there.
    pub(crate) fn begin(namespace: &str, roughness: Roughness) -> Self {
        let namespace =
            std::fs::File::open(format!("/run/netns/{namespace}")).expect("the namespace is there");
        let (stopped, stop) = rustix::pipe::pipe().expect("a pipe can be made");
        let carried = Arc::new(Mutex::new(Carried::default()));
        let counts = Arc::clone(&carried);
        let thread = std::thread::spawn(move || {
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), kind)
                .expect("root may enter a namespace");
            Frames::open(roughness, counts).carry(&stopped);
        });
        Self { carried, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn carried(&self) -> Carried {
        *self.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Mac = [u8; 6];

/// The frames of all cables.
struct Frames {
    socket: OwnedFd,
    roughness: Roughness,
    random: Random,
    /// Where each machine is.
    machines: BTreeMap<Mac, SocketAddrAny>,
    under_way: VecDeque<(Instant, SocketAddrAny, Arc<[u8]>)>,
    carried: Arc<Mutex<Carried>>,
}

impl Frames {
    fn open(roughness: Roughness, carried: Arc<Mutex<Carried>>) -> Self {
        let every_frame = NonZeroU32::new(EVERY_FRAME).map(Protocol::from_raw);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, every_frame)
            .expect("root may");
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, ROOM_BYTES).expect("root may");
        let random = Random::of_purpose(roughness.seed, "way");
        Self { socket, roughness, random, machines: BTreeMap::new(), under_way: VecDeque::new(), carried }
    }

    fn carry(mut self, stopped: &OwnedFd) {
        let mut buffer = vec![0; FRAME_BYTES_MAX];
        loop {
            self.deliver(Instant::now());
            let next = self.under_way.front().map(|(due, ..)| due.saturating_duration_since(Instant::now()));
            let next = next.map(|left| left.try_into().expect("delays are short"));
            let mut wanted =
                [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(stopped, PollFlags::empty())];
            match poll(&mut wanted, next.as_ref()) {
                Ok(_) if !wanted[1].revents().is_empty() => return,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => panic!("the cables cannot be awaited: {error}"),
            }
            while let Ok((_, length, Some(from))) =
                rustix::net::recvfrom(&self.socket, &mut buffer, RecvFlags::TRUNC)
            {
                self.comes(&mut buffer[..length.min(FRAME_BYTES_MAX)], from);
            }
        }
    }

    fn comes(&mut self, frame: &mut [u8], from: SocketAddrAny) {
        let Some((&to, rest)) = frame.split_first_chunk::<6>() else { return };
        let Some(&source) = rest.first_chunk::<6>() else { return };
        let too_long = frame.len() > usize::from(self.roughness.mtu) + ETHERNET_BYTES;
        let lost = !too_long && self.random.below(1000) < self.roughness.lost_per_mille;
        self.machines.insert(source, from);
        let mut carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
        carried.known = self.machines.len();
        carried.frames += 1;
        carried.too_long += u64::from(too_long);
        carried.lost += u64::from(lost);
        if too_long || lost {
            return;
        }
        complete_checksum(frame);
        let (due, frame): (_, Arc<[u8]>) = (Instant::now() + self.roughness.delay, (&*frame).into());
        let to_all = to[0] & 1 == 1;
        let others =
            self.machines.iter().filter(|(machine, _)| **machine == to || to_all && **machine != source);
        self.under_way.extend(others.map(|(_, place)| (due, place.clone(), Arc::clone(&frame))));
    }

    fn deliver(&mut self, now: Instant) {
        while let Some((_, to, frame)) = self.under_way.pop_front_if(|(due, ..)| *due <= now) {
            // A cable that was pulled takes nothing.
            let _ = rustix::net::sendto(&self.socket, &frame, SendFlags::empty(), &to);
        }
    }
}

/// Where the checksum of UDP or TCP stands within its header.
fn checksum_at(protocol: u8) -> Option<usize> {
    match protocol {
        6 => Some(16),
        17 => Some(6),
        _ => None,
    }
}

/// A sender leaves the checksum to its network card. There is none, and the receiver looks at it.
fn complete_checksum(frame: &mut [u8]) {
    let Some((ethernet, ip)) = frame.split_at_mut_checked(ETHERNET_BYTES) else { return };
    if ethernet[12..] != [8, 0] || ip.len() < 20 {
        return;
    }
    let (header, length) = (usize::from(ip[0] & 15) * 4, usize::from(u16::from_be_bytes([ip[2], ip[3]])));
    let is_fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0;
    let (Some(at), false) = (checksum_at(ip[9]), is_fragment) else { return };
    if length > ip.len() || length < header + at + 2 {
        return;
    }
    let (protocol, addresses) = (u32::from(ip[9]), sum(&ip[12..20]));
    let segment = &mut ip[header..length];
    segment[at..at + 2].fill(0);
    let mut total = addresses + protocol + (length - header) as u32 + sum(segment);
    while total > 0xffff {
        total = (total >> 16) + (total & 0xffff);
    }
    // Zero would say that UDP has none.
    let checksum = match !(total as u16) {
        0 => 0xffff,
        checksum => checksum,
    };
    segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// The sum of words, the last one filled up with a zero.
fn sum(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    bytes.chunks(2).map(word).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram of three bytes from 10.0.0.1:1 to 10.0.0.2:2. By hand: both addresses, protocol 17, the length 11 twice, both ports
    /// and the payload 0x6162 0x0500 sum to 0x7a8f.
    #[test]
    fn a_checksum_is_completed_and_nothing_else_is_touched() {
        let mut frame = vec![0; ETHERNET_BYTES];
        frame[12] = 8;
        let ip = [0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let udp = [0, 1, 0, 2, 0, 11, 0xde, 0xad, 0x61, 0x62, 0x05];
        frame.extend(ip.iter().chain(&udp));
        let mut wanted = frame.clone();
        wanted[40..42].copy_from_slice(&(!0x7a8f_u16).to_be_bytes());
        complete_checksum(&mut frame);
        assert_eq!(frame, wanted);
    }

    #[test]
    fn a_fragment_and_what_is_no_ip_are_left_alone() {
        let ip = [0x45, 0, 0, 31, 0, 0, 0x20, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let fragment = [&[0; 12][..], &[8, 0], &ip, &[0, 1, 0, 2, 0, 11, 0xde, 0xad, 1, 2, 3]].concat();
        let arp = [&[0xff; 12][..], &[8, 6], &[7; 28]].concat();
        for frame in [fragment, arp, vec![1; 9]] {
            let mut now = frame.clone();
            complete_checksum(&mut now);
            assert_eq!(now, frame);
        }
    }
}
