//! Hosts joined by a toy network, in virtual time, from seeds.

mod bulk;
mod connections;
mod datagrams;
mod desk;
mod images;
mod management;
mod names;
mod network;
mod partitions;
mod schedules;
mod static_rate;
mod suspended;

use weft_machine::Time;

use super::StackOptions;
use super::numbers::{PSN_MASK, first_psn};
use crate::traffic::{Command, Destination, FlowId, FlowSpec, MoveBy, PathSource, Transport, Work};
use network::{Network, guid};

/// Microseconds instead of seconds.
fn options() -> StackOptions {
    StackOptions {
        ack_timeout: Time::from_micros(400),
        retries: 60,
        sa_timeout: Time::from_millis(1),
        ..StackOptions::default()
    }
}

/// The seeds of a randomised test: that of `WEFT_SEED`, or 1 to `count`.
fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("WEFT_SEED") {
        Ok(seed) => vec![seed.parse().expect("WEFT_SEED is a number")],
        Err(_) => (1..=count).collect(),
    }
}

fn spec(flow: u32, to: usize) -> FlowSpec {
    FlowSpec {
        flow: FlowId(flow),
        to: Destination::One(guid(to)),
        transport: Transport::ReliableConnection,
        work: Work::Stream,
        message_bytes: 20_000,
        packet_bytes: 2048,
        bytes_per_second: None,
        bytes_max: None,
        paths: PathSource::PathRecord,
        move_by: MoveBy::Drain,
    }
}

/// Opens a flow at both of its ends.
fn open(network: &mut Network, from: usize, to: usize, spec: FlowSpec) {
    let (flow, transport) = (spec.flow, spec.transport);
    let (work, message_bytes) = (spec.work, spec.message_bytes);
    let expect = Command::Expect { flow, from: Some(guid(from)), transport, work, message_bytes };
    network.command(to, expect);
    network.command(from, Command::Open(spec));
    assert_eq!(network.refusals, Vec::<String>::new());
}

/// A flow whose numbers wrap within its first `within` packets.
fn flow_that_wraps(within: u32) -> u32 {
    (0..).find(|flow| (1..within).contains(&(PSN_MASK + 1 - first_psn(FlowId(*flow))))).unwrap()
}
