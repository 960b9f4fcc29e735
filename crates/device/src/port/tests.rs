use weft_wire::Lid;

use super::*;
use LinkState::{Active, Armed, Disabled, Initialize, Polling, Sleep};

const STATES: [LinkState; 6] = [Sleep, Polling, Disabled, Initialize, Armed, Active];

/// What the columns of the table below stand for.
const STIMULI: [Stimulus; 9] = [
    Stimulus::Trained,
    Stimulus::Lost,
    Stimulus::Data,
    Stimulus::Down,
    Stimulus::Arm,
    Stimulus::Activate,
    Stimulus::Sleep,
    Stimulus::Poll,
    Stimulus::Disable,
];

/// Every state with every stimulus; D is the state that the port goes down to, x is refused.
const TABLE: &str = "
    state      trained    lost     data       down     arm   activate sleep poll    disable
    Sleep      Sleep      Sleep    Sleep      Sleep    x     x        Sleep Polling Disabled
    Polling    Initialize Polling  Polling    Polling  x     x        Sleep Polling Disabled
    Disabled   Disabled   Disabled Disabled   Disabled x     x        Sleep Polling Disabled
    Initialize Initialize D        Initialize D        Armed x        Sleep Polling Disabled
    Armed      Initialize D        Active     D        Armed Active   Sleep Polling Disabled
    Active     Initialize D        Active     D        x     Active   Sleep Polling Disabled
";

#[test]
fn transition_table_is_exhaustive_and_correct() {
    let mut rows = TABLE.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let header = rows.by_ref().find(|row| !row.is_empty()).unwrap();
    assert_eq!(header.len(), STIMULI.len() + 1);
    let rows: Vec<_> = rows.filter(|row| !row.is_empty()).collect();
    assert_eq!(rows.len(), STATES.len());
    for (state, row) in STATES.into_iter().zip(&rows) {
        assert_eq!(format!("{state:?}"), row[0]);
        for (stimulus, &cell) in STIMULI.into_iter().zip(&row[1..]) {
            for down in [Sleep, Polling] {
                let found = match state.after(stimulus, down) {
                    Ok(after) if cell == "D" => {
                        assert_eq!(after, down, "{state:?} {stimulus:?}");
                        continue;
                    }
                    Ok(after) => format!("{after:?}"),
                    Err(InvalidTransition) => "x".to_owned(),
                };
                assert_eq!(found, cell, "{state:?} {stimulus:?}");
            }
        }
    }
}

#[test]
fn both_states_are_those_of_portinfo() {
    let pairs: Vec<_> = STATES.iter().map(|state| (state.logical(), state.physical())).collect();
    assert_eq!(
        pairs,
        [
            (PortState::Down, PhysState::Sleep),
            (PortState::Down, PhysState::Polling),
            (PortState::Down, PhysState::Disabled),
            (PortState::Initialize, PhysState::LinkUp),
            (PortState::Armed, PhysState::LinkUp),
            (PortState::Active, PhysState::LinkUp),
        ]
    );
    assert!(STATES.iter().all(|state| state.is_up() == (state.physical() == PhysState::LinkUp)));
}

fn port(link: LinkParameters) -> Port {
    Port::new(PortNum(1), Guid(1), link, &DeviceOptions::default())
}

#[test]
fn trains_to_the_best_that_both_have() {
    let all = LinkParameters { width: 0b1_1111, speed: 0b111, speed_ext: 0b1_1111 };
    let ndr = LinkParameters { speed_ext: 0b1111, ..all };
    for (peer, active) in [
        (all, (8, 4, 8, 1)),
        (LinkParameters { width: 2, speed: 0, speed_ext: 0b1_0000 }, (2, 0, 0, 1)),
        (ndr, (8, 4, 8, 0)),
        (LinkParameters { width: 0b1_0011, ..ndr }, (2, 4, 8, 0)),
        (LinkParameters { width: 0b1_0001, ..ndr }, (16, 4, 8, 0)),
        (LinkParameters { width: 1, speed: 0b011, speed_ext: 0 }, (1, 2, 0, 0)),
        (LinkParameters { width: 2, speed: 0, speed_ext: 0b0010 }, (2, 0, 2, 0)),
    ] {
        let mut port = port(all);
        assert!(port.train(peer));
        let info = port.info;
        let (width, speed) = (info.link_width_active, info.link_speed_active);
        let found = (width, speed, info.link_speed_ext_active, info.link_speed_ext2.active);
        assert_eq!(found, active, "{peer:?}");
        port.set_state(LinkState::Polling);
        assert_eq!(port.info.link_speed_ext2.active, 0, "nothing is in use while the link is down");
    }
    for peer in [
        LinkParameters::default(),
        LinkParameters { width: 0, ..all },
        LinkParameters { speed: 8, speed_ext: 0, ..all },
    ] {
        assert!(!port(all).train(peer), "{peer:?}");
    }
}

#[test]
fn a_port_has_two_to_the_lmc_lids() {
    let mut port = port(LinkParameters::default());
    assert!(!port.has_lid(Lid(0)), "a port without LID has none");
    (port.info.lid, port.info.lmc) = (Lid(8), 2);
    let own: Vec<u16> = (0..20).filter(|&lid| port.has_lid(Lid(lid))).collect();
    assert_eq!(own, [8, 9, 10, 11]);
}

#[test]
fn partitions_match_by_their_lower_bits_and_one_full_member() {
    let mut port = port(LinkParameters::default());
    port.p_keys[3] = PKey(0x0005);
    port.p_keys[4] = PKey(0x8006);
    let index = |key: u16| port.p_key_index(PKey(key));
    assert_eq!((index(0xffff), index(0x7fff)), (Some(0), Some(0)));
    assert_eq!((index(0x8005), index(0x0005)), (Some(3), None), "two limited members do not meet");
    assert_eq!((index(0x0006), index(0x8006)), (Some(4), Some(4)));
    assert_eq!((index(0), index(0x8000), index(0x8007)), (None, None, None));
}

/// All tables of up to two keys of one partition, and all keys of two partitions: what a switch's port lets in and out.
#[test]
fn a_switch_port_filters_p_keys_in_and_out_by_its_table() {
    let (none, limited, full) = (0, 0x0005, 0x8005);
    for (table, lets_in, lets_out) in [
        ([none, none], [false, false], [false, false]),
        ([limited, none], [true, false], [false, true]),
        ([none, limited], [true, false], [false, true]),
        ([full, none], [false, true], [true, true]),
        ([none, full], [false, true], [true, true]),
        ([limited, full], [true, true], [true, true]),
        ([full, limited], [true, true], [true, true]),
    ] {
        let mut port = port(LinkParameters::default());
        port.p_keys.fill(PKey(0));
        (port.p_keys[1], port.p_keys[31]) = (PKey(table[0]), PKey(table[1]));
        let passes = |key: u16| (port.p_key_is_sent_here(PKey(key)), port.p_key_index(PKey(key)).is_some());
        let found = [limited, full].map(passes);
        assert_eq!(found.map(|pass| pass.0), lets_in, "in, {table:x?}");
        assert_eq!(found.map(|pass| pass.1), lets_out, "out, {table:x?}");
        for other in [0, 0x8000, 0x0006, 0x8006, 0x7fff, 0xffff] {
            assert_eq!(passes(other), (false, false), "{other:#x} by {table:x?}");
        }
    }
}
