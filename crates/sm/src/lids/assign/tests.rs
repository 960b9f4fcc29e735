use proptest::prelude::*;

use super::*;

fn claim(guid: u64, present: u16) -> Claim {
    Claim { guid: Guid(guid), present: Lid(present), lmc: 0, is_function: false, is_vm: false }
}

fn bases(claims: &[Claim], file: &str) -> Vec<u16> {
    let mut known = GuidToLid::parse("guid2lid", file).unwrap();
    assign(claims, &mut known, &Room::default())
        .into_iter()
        .map(|lids| lids.map_or(0, |lids| lids.min.0))
        .collect()
}

#[test]
fn lids_count_up_in_order_of_guids() {
    assert_eq!(bases(&[claim(1, 0), claim(5, 0), claim(9, 0)], ""), [1, 2, 3]);
}

#[test]
fn the_file_goes_before_the_port_and_the_port_before_the_lowest() {
    let claims = [claim(1, 7), claim(2, 3), claim(3, 3), claim(4, 0), claim(5, 0xffff)];
    assert_eq!(bases(&claims, ""), [7, 3, 1, 2, 4]);
    assert_eq!(bases(&claims, "0x3 0x3 0x3\n0x4 0x7 0x7"), [1, 2, 3, 7, 4]);
}

#[test]
fn an_absent_node_keeps_its_lids() {
    assert_eq!(bases(&[claim(1, 2), claim(2, 0)], "0x9 0x2 0x3"), [1, 4]);
}

#[test]
fn an_absent_node_loses_its_lids_when_none_are_left() {
    let claims: Vec<_> = (1..=0xbfff).map(|guid| claim(guid, 0)).collect();
    let mut known = GuidToLid::parse("guid2lid", "0xffffff 0x5 0x5").unwrap();
    let given = assign(&claims, &mut known, &Room::default());
    assert!(given.iter().all(Option::is_some));
    assert_eq!((known.range(Guid(0xff_ffff)), known.len()), (None, 0xbfff));
    // And one more gets none.
    let claims: Vec<_> = (1..=0xc000).map(|guid| claim(guid, 0)).collect();
    let given = assign(&claims, &mut GuidToLid::default(), &Room::default());
    assert_eq!(given.iter().filter(|lids| lids.is_none()).count(), 1);
    assert_eq!(given.last(), Some(&None));
}

#[test]
fn an_lmc_that_has_changed_voids_the_file() {
    let claims = [Claim { lmc: 2, ..claim(1, 5) }, Claim { lmc: 2, ..claim(2, 8) }, claim(3, 0)];
    assert_eq!(bases(&claims, "0x1 0x1 0x1"), [4, 8, 1]);
}

#[test]
fn base_lids_stay_where_the_lmc_falls() {
    let file = include_str!("../../../../../tests/inputs/guid2lid-lmc2.txt");
    let guids = [0x2_c900_00c0_0001, 0x2_c900_00d0_0011, 0x2_c900_00d0_0021, 0x2_c900_00d0_0031];
    // OpenSM keeps them too; the last port is new and gets the lowest.
    assert_eq!(bases(&guids.map(|guid| claim(guid, 0)), file), [1, 0x64, 0x68, 2]);
    // What its higher LIDs were is free for the port that has it.
    let claims = [claim(1, 0), claim(2, 0x65), claim(3, 0)];
    assert_eq!(bases(&claims, "0x1 0x64 0x67\n0x3 0x68 0x68"), [0x64, 0x65, 0x68]);
}

#[test]
fn a_takeover_keeps_what_ports_have_and_of_two_the_one_on_file() {
    let file = "0x1 0x9 0x9\n0x3 0x5 0x5\n0x8 0x7 0x7\n0x9 0x20 0x20";
    let mut known = GuidToLid::parse("guid2lid", file).unwrap();
    // 2 and 3 have the same LID, 4 has one that is on file for 8, which is away; 1 was given another.
    let claims = [claim(1, 2), claim(2, 5), claim(3, 5), claim(4, 7), claim(5, 0)];
    adopt(&claims, &mut known);
    assert_eq!(known.range(Guid(9)).map(|lids| lids.min), Some(Lid(0x20)));
    let given: Vec<u16> = assign(&claims, &mut known, &Room::default())
        .into_iter()
        .map(|lids| lids.map_or(0, |lids| lids.min.0))
        .collect();
    assert_eq!(given, [2, 1, 5, 7, 3]);
}

#[test]
fn a_port_that_was_away_at_a_takeover_keeps_what_it_has() {
    let file = "0x1 0x9 0x9\n0x2 0x5 0x5\n0x3 0x7 0x7\n0x4 0x6 0x6\n0x8 0x20 0x20";
    let mut known = GuidToLid::parse("guid2lid", file).unwrap();
    let mut unseen = [1, 2, 3, 8].map(Guid).into();
    // 1 was given the LID that is on file for 8, which is gone; 2 that of 4, which is there; 3 has none; 4 was there before.
    let claims = [claim(1, 0x20), claim(2, 6), claim(3, 0), claim(4, 11)];
    adopt_late(&claims, &mut known, &mut unseen);
    let lids = [1, 2, 3, 4, 8].map(|guid| known.range(Guid(guid)).map_or(0, |lids| lids.min.0));
    assert_eq!(lids, [0x20, 5, 7, 6, 0]);
    assert_eq!(unseen, [Guid(8)].into(), "each is taken over once");
    let waiting = Room { waiting: [Guid(3)].into(), ..Room::default() };
    let given = assign(&claims, &mut known, &waiting);
    assert_eq!((given[2], known.range(Guid(3)).map(|lids| lids.min)), (None, Some(Lid(7))), "it waits");
}

proptest! {
    #[test]
    fn nobody_shares_and_a_second_time_changes_nothing(
        ports in prop::collection::btree_map(1u64..500, (0u16..80, 0u8..4), 0..60),
        file in prop::collection::btree_map(1u64..500, 0u16..80, 0..30),
    ) {
        let claims: Vec<_> = ports
            .iter()
            .map(|(guid, (present, lmc))| Claim { lmc: *lmc, ..claim(*guid, *present) })
            .collect();
        let mut known = GuidToLid::default();
        let mut taken = std::collections::BTreeSet::new();
        for (guid, lid) in file {
            if let Some(lids) = LidRange::aligned(Lid(lid), 0)
                && taken.insert(lid)
            {
                known.insert(Guid(guid), lids);
            }
        }
        let before = known.clone();
        let given = assign(&claims, &mut known, &Room::default());
        let mut owners = std::collections::BTreeSet::new();
        for (claim, lids) in claims.iter().zip(&given) {
            let lids = lids.expect("there are enough");
            prop_assert_eq!(lids.lmc(), claim.lmc);
            for lid in lids.min.0..=lids.max.0 {
                prop_assert!(Lid(lid).is_unicast() && owners.insert(lid));
            }
        }
        for (guid, lids) in before.iter() {
            if !ports.contains_key(&guid.0) {
                prop_assert_eq!(known.range(guid), Some(lids));
                prop_assert!((lids.min.0..=lids.max.0).all(|lid| !owners.contains(&lid)));
            }
        }
        let present: Vec<_> = claims
            .iter()
            .zip(&given)
            .map(|(claim, lids)| Claim { present: lids.map_or(Lid(0), |lids| lids.min), ..*claim })
            .collect();
        prop_assert_eq!(&assign(&present, &mut known, &Room::default()), &given);
    }
}

fn machine(guid: u64, present: u16) -> Claim {
    Claim { is_function: true, is_vm: true, ..claim(guid, present) }
}

#[test]
fn machines_come_after_all_others_and_leave_what_rests() {
    let resting = [Lid(3), Lid(5)].into();
    let room = Room { resting, is_firm: true, vms_max: 100, ..Room::default() };
    let claims = [machine(1, 0), claim(2, 0), machine(3, 7), claim(4, 0), machine(5, 0)];
    let given = assign(&claims, &mut GuidToLid::default(), &room);
    let bases: Vec<u16> = given.iter().flatten().map(|lids| lids.min.0).collect();
    assert_eq!(bases, [4, 1, 7, 2, 6]);
}

#[test]
fn machines_get_no_more_than_they_may_have_with_those_that_rest() {
    let claims = [machine(1, 9), claim(2, 0), machine(3, 0), machine(4, 0), machine(5, 0)];
    for (vms_max, resting, without) in [(4, 0, 0), (3, 0, 1), (3, 2, 3), (0, 0, 3), (2, 1, 3)] {
        let rests = (20..20 + resting).map(Lid).collect();
        let room = Room { resting: rests, is_firm: true, vms_max, ..Room::default() };
        let given = assign(&claims, &mut GuidToLid::default(), &room);
        let none = claims.iter().zip(&given).filter(|(_, lids)| lids.is_none());
        assert_eq!(none.count(), without, "{vms_max} at most, {resting} rest");
        assert!(
            given[0].is_some() && given[1].is_some(),
            "what a port has it keeps, and the others have theirs"
        );
    }
}

#[test]
fn a_quarantined_lid_is_not_reused_even_if_none_is_left() {
    let known = "0xffffaa 0x5 0x5\n0xffffbb 0x6 0x6";
    let mut known = GuidToLid::parse("guid2lid", known).unwrap();
    let mut claims: Vec<_> = (1..=0xbffd).map(|guid| claim(guid, 0)).collect();
    claims.extend([machine(0xbffe, 0), machine(0xbfff, 0)]);
    let room = Room { resting: [Lid(5)].into(), is_firm: true, vms_max: usize::MAX, ..Room::default() };
    let given = assign(&claims, &mut known.clone(), &room);
    assert_eq!(given.iter().filter(|lids| lids.is_none()).count(), 1, "one machine gets the other's LID");
    let given = assign(&claims, &mut known, &room);
    assert_eq!((known.range(Guid(0xff_ffbb)), given.last()), (None, Some(&None)));
    assert_eq!(known.range(Guid(0xff_ffaa)).map(|lids| lids.min), Some(Lid(5)));
    let away = Room { away: room.resting.clone(), is_firm: false, ..room.clone() };
    assert_eq!(assign(&claims, &mut known.clone(), &away).last(), Some(&None), "it is on its way");
    // Without a quarantine it is.
    let room = Room { is_firm: false, ..room };
    assert!(assign(&claims, &mut known, &room).iter().all(Option::is_some));
}

#[test]
fn a_lid_on_file_for_a_port_that_waits_goes_to_no_other() {
    let file = "0x3 0x1 0x1\n0x5 0x2 0x2\n0x9 0x3 0x3";
    let mut known = GuidToLid::parse("guid2lid", file).unwrap();
    // 3 waits for its LID, 1 has none, and 4 has at its port what is on file for 5, which waits too.
    let claims = [claim(1, 0), machine(3, 0), claim(4, 2), machine(5, 0)];
    let waiting = Room { waiting: [Guid(3), Guid(5)].into(), vms_max: 100, ..Room::default() };
    let bases = |given: Vec<Option<LidRange>>| -> Vec<u16> {
        given.into_iter().map(|lids| lids.map_or(0, |lids| lids.min.0)).collect()
    };
    assert_eq!(bases(assign(&claims, &mut known, &waiting)), [4, 0, 2, 0]);
    // A file with a LID twice is not read.
    assert_eq!(GuidToLid::parse("guid2lid", &known.to_string()), Ok(known.clone()));
    let room = Room { vms_max: 100, ..Room::default() };
    assert_eq!(bases(assign(&claims, &mut known, &room)), [4, 1, 2, 5], "they wait no more");
}

#[test]
fn of_two_with_one_lid_on_file_the_first_keeps_it() {
    let mut known = GuidToLid::default();
    for guid in [1, 2] {
        known.insert(Guid(guid), LidRange { min: Lid(7), max: Lid(7) });
    }
    let given = assign(&[claim(1, 7), claim(2, 7)], &mut known, &Room::default());
    let given: Vec<u16> = given.into_iter().flatten().map(|lids| lids.min.0).collect();
    assert_eq!(given, [7, 1]);
    assert_eq!(known.range(Guid(2)), LidRange::aligned(Lid(1), 0));
}
