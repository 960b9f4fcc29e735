//! One function per fuzz target. Each takes any bytes, must not panic, and asserts what must hold of them.
//!
//! `cargo fuzz run TARGET --features libfuzzer` searches for new inputs; `tests/replay.rs` replays those that were
//! kept in `corpus/TARGET/`, so the usual test run covers them too.

use weft_wire::{
    Bth, ClassPortInfo, Details, Deth, DirectedSmp, GidDetails, GuidInfo, KeyDetails, LinearForwardingTable,
    LocalChangesDetails, Lrh, MKeyDetails, MadHeader, MulticastForwardingTable, NodeDescription, NodeInfo,
    Notice, PKeyTable, Packet, PerfMad, PortCounters, PortCountersExtended, PortDetails, PortInfo,
    SlToVlTable, SmInfo, Smp, SwitchDetails, SwitchInfo, SwitchKeyDetails, SystemImageGuidDetails,
    TrapNumber, VlArbitrationTable,
};

/// A fuzz target: its name, which is its corpus' folder, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("decode", decode),
    ("link", link),
    ("notice", notice),
    ("packet", packet),
    ("topology_parse", topology_parse),
    ("umad", umad),
];

macro_rules! inverse {
    ($bytes:expr, $($name:ident)*) => {$(
        if let Some(bytes) = $bytes.first_chunk::<{ $name::SIZE }>() {
            assert_eq!(&$name::decode(bytes).encode(), bytes, stringify!($name));
        }
    )*};
}

/// Every structure: decoding and encoding any bytes gives the same bytes.
pub fn decode(bytes: &[u8]) {
    inverse!(bytes,
        MadHeader Smp DirectedSmp PerfMad NodeDescription NodeInfo SwitchInfo GuidInfo PortInfo PKeyTable
        SlToVlTable VlArbitrationTable LinearForwardingTable MulticastForwardingTable SmInfo Notice GidDetails
        SwitchDetails PortDetails LocalChangesDetails SystemImageGuidDetails MKeyDetails KeyDetails
        SwitchKeyDetails ClassPortInfo PortCounters PortCountersExtended Lrh Bth Deth);
    if let Some(bytes) = bytes.first_chunk::<64>() {
        let _ = NodeDescription::decode(bytes).to_text();
    }
}

/// Notice details of every trap number.
pub fn notice(bytes: &[u8]) {
    if let Some((number, rest)) = bytes.split_first_chunk::<2>()
        && let Some(details) = rest.first_chunk::<54>()
    {
        let number = TrapNumber(u16::from_be_bytes(*number));
        assert_eq!(&Details::decode(number, details).encode(), details);
    }
}

/// A packet from the wire: what is accepted keeps its bytes and can be looked at.
pub fn packet(bytes: &[u8]) {
    if let Ok(packet) = Packet::parse(bytes.to_vec()) {
        let _ = (packet.mad(), packet.bth(), packet.deth(), packet.check_icrc(), format!("{packet:?}"));
        assert_eq!(packet.words() as usize * 4 + 2, bytes.len());
        assert_eq!(packet.into_bytes(), bytes);
    }
}

/// The topology reader: what it accepts, it writes so that it reads the same again.
pub fn topology_parse(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(fabric) = weft_topology::parse("fuzz", text) {
        let written = fabric.write_ibnetdiscover();
        let again = weft_topology::parse("written", &written).expect("what was written can be read");
        assert_eq!(weft_topology::diff(&fabric, &again), Vec::new(), "{written}");
    }
}

/// The attachment protocol's decoder, fed in two pieces.
pub fn umad(bytes: &[u8]) {
    let (head, tail) = bytes.split_at(bytes.len() / 3);
    let mut decoder = weft_umad::Decoder::<weft_umad::ClientMessage>::new();
    for piece in [head, tail] {
        decoder.feed(piece);
        while let Ok(Some(_)) = decoder.next_message() {}
    }
}

/// What the other end of a cable may send: control frames, or a data lane's stream.
pub fn link(bytes: &[u8]) {
    weft_link::fuzz::control(bytes);
    weft_link::fuzz::lane(bytes);
}
