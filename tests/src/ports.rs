//! Ports that belong to one test process for as long as it runs.
//!
//! A port that a socket had a moment ago may be another process's at the next: the system gives it to whoever asks for any.
//! These lie below the system's own range and below those of `weft up`, and an abstract socket's name claims each.

#![allow(unreachable_pub, reason = "tests of other crates include this file")]

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Mutex;

/// Where `weft up` begins lies above.
const RANGE: Range<u16> = 1024..19_024;
/// Far from each other, so that processes that begin at the same time rarely meet.
const STRIDE: u32 = 7919;

/// The claims of this process, which end with it.
static CLAIMS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// A UDP and TCP port of the loopback where no one listens, and that no other test process takes.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    free_ports(1)
}

/// The first of `count` such ports in a row.
///
/// # Panics
/// When there are none.
pub fn free_ports(count: u16) -> u16 {
    let span = u32::from(RANGE.end - RANGE.start - count);
    let begin = std::process::id().wrapping_mul(STRIDE) % span;
    let mut firsts = (0..span).map(|nth| RANGE.start + u16::try_from((begin + nth) % span).unwrap_or(0));
    let first = firsts.find(|&first| (first..first + count).all(|port| claim(port) && is_free(port)));
    first.unwrap_or_else(|| panic!("no {count} ports in a row of {RANGE:?} are free"))
}

fn claim(port: u16) -> bool {
    let Ok(name) = SocketAddr::from_abstract_name(format!("weft-test-port-{port}")) else { return false };
    let Ok(held) = UnixListener::bind_addr(&name) else { return false };
    CLAIMS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(held);
    true
}

fn is_free(port: u16) -> bool {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
