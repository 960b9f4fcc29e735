use proptest::prelude::*;

use super::*;
use crate::record::Proof;

fn slot(number: u8) -> Slot {
    Slot { host: format!("host-{}", number / 2).parse().unwrap(), vf: number % 2 + 1 }
}

fn record() -> impl Strategy<Value = Record> {
    let name = || (0..3_u8).prop_map(|number| format!("vm-{number}").parse::<VmName>().unwrap());
    let place =
        || (0..6_u8, 1..3_u64).prop_map(|(number, incarnation)| Place { slot: slot(number), incarnation });
    let port = || {
        (1..20_u64).prop_map(|guid| {
            let guid = Guid(guid);
            PortIdentity { node_guid: guid, port_guid: guid, lid: Lid(guid.0 as u16) }
        })
    };
    let identity = port().prop_map(|port| Box::new(Identity { port, ..Identity::default() }));
    prop_oneof![
        (0..6_u8, port()).prop_map(|(number, port)| Record::Spare { slot: slot(number), port }),
        (0..6_u8).prop_map(|number| Record::Tomb(slot(number))),
        (0..6_u8).prop_map(|number| Record::Cleared(slot(number))),
        (name(), identity, place(), 1..90_u64).prop_map(|(name, identity, place, epoch)| Record::Create {
            name,
            identity,
            place,
            epoch
        }),
        name().prop_map(Record::Created),
        (name(), 1..90_u64).prop_map(|(name, epoch)| Record::Destroy { name, epoch }),
        name().prop_map(Record::Gone),
        name().prop_map(Record::Forgotten),
        name().prop_map(|name| Record::Lost { name, proof: Proof::Absent(slot(0)) }),
        (name(), place(), proptest::option::of(port()), 1..90_u64).prop_map(
            |(name, to, displaced, epoch)| { Record::Reserve { name, to, displaced, cold: false, epoch } }
        ),
        (name(), 0..Step::ALL.len(), 1..90_u64).prop_map(|(name, step, epoch)| Record::Step {
            name,
            step: Step::ALL[step],
            epoch
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A journal that is written as a whole again says what the long one said; and no record breaks the book.
    #[test]
    fn the_shortest_journal_comes_to_the_same(
        scheme in prop_oneof![Just(Scheme::Prepopulated), Just(Scheme::Dynamic)],
        records in proptest::collection::vec(record(), 0..120),
    ) {
        let mut book = Book::default();
        let next_guid = Guid(7);
        book.apply(&Record::Started { generation: 1, scheme, adopts: true, epoch: 0, next_guid }).unwrap();
        for record in &records {
            let mut next = book.clone();
            if next.apply(record).is_ok() {
                book = next;
            }
            let again = Book::replay(&book.records());
            prop_assert_eq!(again.as_ref(), Ok(&book));
            // A slot is kept for a machine that is or will be there, and for no other.
            for (slot, name) in &book.claims {
                let vm = book.vm(name).unwrap();
                let moves_there = book.moving(name).is_some_and(|(_, moving)| moving.to.slot == *slot);
                prop_assert!(vm.place.slot == *slot || moves_there);
                prop_assert!(!book.spares.contains_key(slot) || scheme == Scheme::Dynamic);
            }
        }
    }
}

#[test]
fn steps_follow_each_other_as_the_diagram_says() {
    use Step::{Back, Commit, Done, Freeze, Import, Reroute, Reserve, Resume, Undo, Undone};
    let allowed = [
        (Reserve, Freeze),
        (Freeze, Import),
        (Freeze, Reroute),
        (Reroute, Import),
        (Import, Reroute),
        (Reroute, Reroute),
        (Reroute, Commit),
        (Commit, Done),
        (Reserve, Undo),
        (Freeze, Undo),
        (Import, Undo),
        (Reroute, Undo),
        (Undo, Back),
        (Undo, Resume),
        (Undo, Undone),
        (Undo, Reroute),
        (Back, Back),
        (Back, Resume),
        (Back, Reroute),
        (Resume, Resume),
        (Resume, Undone),
    ];
    for earlier in Step::ALL {
        for later in Step::ALL {
            let is_allowed = allowed.contains(&(earlier, later));
            assert_eq!(later.may_follow(earlier), is_allowed, "{later} after {earlier}");
        }
    }
}
