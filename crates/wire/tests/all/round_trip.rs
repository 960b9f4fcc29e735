//! Every structure: decode and encode are inverses on arbitrary bytes, the table covers every bit, and a field
//! patched in place changes its own bits alone.

use proptest::prelude::*;
use weft_wire::*;

macro_rules! structures {
    ($($name:ident: $size:literal bytes;)*) => {
        #[allow(non_snake_case)]
        mod inverse {
            use super::*;
            proptest! {
                #![proptest_config(ProptestConfig::with_cases(256))]
                $(
                    #[test]
                    fn $name(bytes in proptest::collection::vec(any::<u8>(), $size)) {
                        let bytes: [u8; $size] = bytes.try_into().expect("the strategy gives this many");
                        prop_assert_eq!($name::decode(&bytes).encode(), bytes);
                    }
                )*
            }
        }

        #[test]
        fn tables_cover_their_structures() {
            $(
                assert_eq!($name::SIZE, $size, stringify!($name));
                let mut next = 0;
                for row in $name::TABLE {
                    assert_eq!(row.first, next, "{}.{}", stringify!($name), row.name);
                    assert!(row.width > 0, "{}.{}", stringify!($name), row.name);
                    next += row.width;
                }
                assert_eq!(next, $size * 8, stringify!($name));
            )*
        }

        /// Feeds one input to every decoder, as the fuzz target does.
        fn decode_all(bytes: &[u8]) -> usize {
            let mut decoded = 0;
            $(
                if let Some(chunk) = bytes.first_chunk::<$size>() {
                    assert_eq!(&$name::decode(chunk).encode(), chunk);
                    decoded += 1;
                }
            )*
            decoded
        }

        const STRUCTURES: usize = [$(stringify!($name)),*].len();
    };
}

structures! {
    MadHeader: 24 bytes;
    Smp: 256 bytes;
    DirectedSmp: 256 bytes;
    PerfMad: 256 bytes;
    NodeDescription: 64 bytes;
    NodeInfo: 40 bytes;
    SwitchInfo: 20 bytes;
    GuidInfo: 64 bytes;
    PortInfo: 64 bytes;
    PKeyTable: 64 bytes;
    SlToVlTable: 8 bytes;
    VlArbitrationTable: 64 bytes;
    LinearForwardingTable: 64 bytes;
    MulticastForwardingTable: 64 bytes;
    SmInfo: 21 bytes;
    Notice: 80 bytes;
    GidDetails: 54 bytes;
    SwitchDetails: 54 bytes;
    PortDetails: 54 bytes;
    LocalChangesDetails: 54 bytes;
    SystemImageGuidDetails: 54 bytes;
    MKeyDetails: 54 bytes;
    KeyDetails: 54 bytes;
    SwitchKeyDetails: 54 bytes;
    ClassPortInfo: 72 bytes;
    PortCounters: 44 bytes;
    PortCountersExtended: 184 bytes;
    PortInfoExtended: 64 bytes;
    MlnxExtPortInfo: 64 bytes;
    PortRcvErrorDetails: 16 bytes;
    PortXmitDiscardDetails: 12 bytes;
    PortOpRcvCounters: 12 bytes;
    PortFlowCtlCounters: 12 bytes;
    PortVlOpPackets: 36 bytes;
    PortVlOpData: 68 bytes;
    PortVlXmitFlowCtlUpdateErrors: 8 bytes;
    PortVlXmitWaitCounters: 36 bytes;
    PortSamplesControl: 80 bytes;
    PortSamplesResult: 64 bytes;
    PortSamplesResultExtended: 128 bytes;
    VendorMad: 256 bytes;
    SaMad: 256 bytes;
    NodeRecord: 108 bytes;
    PortInfoRecord: 68 bytes;
    SwitchInfoRecord: 24 bytes;
    GuidInfoRecord: 72 bytes;
    LinkRecord: 6 bytes;
    SmInfoRecord: 25 bytes;
    LinearForwardingTableRecord: 72 bytes;
    MulticastForwardingTableRecord: 72 bytes;
    PKeyTableRecord: 72 bytes;
    SlToVlTableRecord: 16 bytes;
    VlArbitrationRecord: 72 bytes;
    InformInfo: 36 bytes;
    InformInfoRecord: 60 bytes;
    ServiceRecord: 176 bytes;
    PathRecord: 64 bytes;
    VmMove: 200 bytes;
    VmMoveWrite: 16 bytes;
    ReceivedData: 200 bytes;
    Lrh: 8 bytes;
    Bth: 12 bytes;
    Deth: 8 bytes;
}

#[test]
fn the_paths_are_where_the_table_has_them() {
    for (name, range) in [("initial_path", INITIAL_PATH), ("return_path", RETURN_PATH), ("data", SMP_DATA)] {
        let row = DirectedSmp::TABLE.iter().find(|row| row.name == name).expect("a row");
        assert_eq!((row.first / 8, row.width / 8), (range.start, range.len()), "{name}");
    }
    let row = PerfMad::TABLE.iter().find(|row| row.name == "data").expect("a row");
    assert_eq!((row.first / 8, row.width / 8), (PERF_DATA.start, PERF_DATA.len()));
}

#[test]
fn port_info_has_the_specifications_rows() {
    assert_eq!(PortInfo::TABLE.len(), 55);
}

#[test]
fn every_decoder_takes_a_mad_sized_input() {
    assert_eq!(decode_all(&[0xa5; 256]), STRUCTURES);
}

/// A table's row, read by bit arithmetic that shares nothing with the crate's.
fn bits_of(bytes: &[u8], row: &Row) -> Vec<bool> {
    (row.first..row.first + row.width).map(|bit| bytes[bit / 8] >> (7 - bit % 8) & 1 == 1).collect()
}

proptest! {
    #[test]
    fn a_patch_changes_its_own_bits_alone(
        bytes in proptest::collection::vec(any::<u8>(), 64), lmc in 0u8..8, hoq in 0u8..32, latency in 0u32..1 << 24,
    ) {
        let before: [u8; 64] = bytes.try_into().expect("64 bytes");
        let mut after = before;
        PortInfo::lmc.set(&mut after, lmc);
        PortInfo::hoq_life.set(&mut after, hoq);
        PortInfo::link_round_trip_latency.set(&mut after, latency);
        PortInfo::port_state.set(&mut after, PortState::Armed);
        for row in PortInfo::TABLE {
            let want: u64 = match row.name {
                "lmc" => lmc.into(),
                "hoq_life" => hoq.into(),
                "link_round_trip_latency" => latency.into(),
                "port_state" => 3,
                _ => {
                    prop_assert_eq!(bits_of(&after, row), bits_of(&before, row), "{}", row.name);
                    continue;
                }
            };
            let got = bits_of(&after, row).iter().fold(0, |sum, &bit| sum << 1 | u64::from(bit));
            prop_assert_eq!(got, want, "{}", row.name);
        }
    }

    #[test]
    fn details_keep_every_byte(number in 0u16..300, bytes in proptest::collection::vec(any::<u8>(), 54)) {
        let bytes: [u8; 54] = bytes.try_into().expect("54 bytes");
        let details = Details::decode(TrapNumber(number), &bytes);
        prop_assert_eq!(details.trap_number(), TrapNumber(number));
        prop_assert_eq!(details.encode(), bytes);
    }

    #[test]
    fn packets_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(packet) = Packet::parse(bytes) {
            let _ = (packet.mad(), packet.bth(), packet.deth(), packet.check_icrc(), format!("{packet:?}"));
        }
    }

    #[test]
    fn one_flipped_bit_is_noticed(seed in any::<[u8; 32]>(), bit in 0usize..MAD_PACKET_SIZE * 8) {
        let mut mad = Mad::default();
        mad.0[..32].copy_from_slice(&seed);
        let mut bytes = Packet::from_mad(&MadRoute::smp(Lid(4), Lid(9)), &mad).into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Packet::parse(bytes).is_err(), "bit {} went unnoticed", bit);
    }
}

#[test]
fn unknown_codes_survive() {
    for code in 0..=u8::MAX {
        assert_eq!(NodeType::from_code(code).code(), code);
        assert_eq!(Method::from_code(code).code(), code);
        assert_eq!(MgmtClass::from_code(code).code(), code);
    }
    for code in [AttributeId::from_code(0xff90), AttributeId::NodeInfo] {
        let text = serde_json::to_string(&code).unwrap();
        assert_eq!(serde_json::from_str::<AttributeId>(&text).unwrap(), code, "{text}");
    }
    assert_eq!(serde_json::to_string(&AttributeId::NodeInfo).unwrap(), "\"NodeInfo\"");
    assert_eq!("0xff90".parse(), Ok(AttributeId::from_code(0xff90)));
    assert!("NodeInf0!".parse::<AttributeId>().is_err());
    assert_eq!(Method::from_code(0x81), Method::GetResp);
}

#[test]
fn a_mad_survives_text_and_has_256_bytes() {
    let mut mad = Mad::default();
    for (i, byte) in mad.0.iter_mut().enumerate() {
        *byte = i as u8;
    }
    let text = serde_json::to_string(&mad).unwrap();
    assert_eq!(text.len(), 2 + 512);
    assert_eq!(serde_json::from_str::<Mad>(&text).unwrap(), mad);
    assert!(serde_json::from_str::<Mad>("\"00ff\"").is_err());
    assert!(serde_json::from_str::<Mad>(&text.replace('f', "g")).is_err());
    assert_eq!(Mad::try_from(&[0u8; 255][..]), Err(NotAMad { length: 255 }));
}

#[test]
fn a_key_of_subnet_administration_is_not_shown() {
    let mut mad = [7; 256];
    (mad[0], mad[1]) = (1, 3);
    let sealed = |mad: &[u8]| {
        Packet::from_mad(&MadRoute::smp(Lid(5), Lid(6)), &Mad::try_from(mad).unwrap()).into_bytes()
    };
    let shown = Packet::without_sa_key(&sealed(&mad)).unwrap();
    let key = 36..44;
    let mut without = mad;
    without[key.clone()].fill(0);
    assert_eq!(shown, sealed(&without), "checksums too");
    assert_eq!(Packet::without_sa_key(&shown), None, "there is none");
    let mut damaged = sealed(&mad);
    damaged[100] ^= 1;
    let shown = Packet::without_sa_key(&damaged).unwrap();
    assert!(Packet::parse(shown.clone()).is_err());
    assert!(shown[28..][key].iter().all(|byte| *byte == 0));
    mad[1] = 4;
    assert_eq!(Packet::without_sa_key(&sealed(&mad)), None, "performance management has none there");
    for length in 0..290 {
        assert_eq!(Packet::without_sa_key(&damaged[..length]), None);
    }
}
