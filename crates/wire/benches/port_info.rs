//! Cost of one PortInfo: decode, encode, and a field patched in place.

use divan::{Bencher, black_box};
use weft_wire::{Lid, Mad, MadRoute, Packet, PortInfo, PortState, icrc, vcrc};

fn main() {
    divan::main();
}

#[divan::bench]
fn decode(bencher: Bencher<'_, '_>) {
    let bytes: [u8; 64] = std::array::from_fn(|i| i as u8);
    bencher.bench_local(|| PortInfo::decode(black_box(&bytes)));
}

#[divan::bench]
fn encode(bencher: Bencher<'_, '_>) {
    let info = PortInfo::decode(&std::array::from_fn(|i| i as u8));
    bencher.bench_local(|| black_box(&info).encode());
}

#[divan::bench]
fn patch_port_state(bencher: Bencher<'_, '_>) {
    let mut bytes = [0u8; 64];
    bencher.bench_local(|| PortInfo::port_state.set(black_box(&mut bytes), black_box(PortState::Armed)));
}

#[divan::bench]
fn patch_lid(bencher: Bencher<'_, '_>) {
    let mut bytes = [0u8; 64];
    bencher.bench_local(|| PortInfo::lid.set(black_box(&mut bytes), black_box(Lid(7))));
}

#[divan::bench]
fn packet_from_mad(bencher: Bencher<'_, '_>) {
    let (route, mad) = (MadRoute::smp(Lid(4), Lid(9)), Mad::default());
    bencher.bench_local(|| Packet::from_mad(black_box(&route), black_box(&mad)));
}

#[divan::bench]
fn packet_parse(bencher: Bencher<'_, '_>) {
    let packet = Packet::from_mad(&MadRoute::smp(Lid(4), Lid(9)), &Mad::default()).into_bytes();
    bencher.with_inputs(|| packet.clone()).bench_local_values(Packet::parse);
}

#[divan::bench]
fn icrc_of_a_mad_packet(bencher: Bencher<'_, '_>) {
    let bytes = [7u8; 284];
    bencher.bench_local(|| icrc(black_box(&bytes)));
}

#[divan::bench]
fn vcrc_of_a_mad_packet(bencher: Bencher<'_, '_>) {
    let bytes = [7u8; 288];
    bencher.bench_local(|| vcrc(black_box(&bytes)));
}
