//! Component masks, bit by bit, of every record: by the record's own value, and by another one.

use std::collections::BTreeSet;

use super::client::*;
use super::fake::World;
use weft_wire::*;

/// The bits of a component, read by arithmetic that shares nothing with what is tested.
fn bits(record: &[u8], row: &Row) -> Vec<bool> {
    (row.first..row.first + row.width).map(|bit| record[bit / 8] >> (7 - bit % 8) & 1 == 1).collect()
}

fn bytes<R: SaRecord>(record: &R) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.append_to(&mut bytes);
    bytes
}

/// Asks for each component's every value, and for one that differs in a bit; checks what comes against what a
/// comparison of bits says. `ignored`: components that are no condition.
fn each_bit<R: SaRecord + PartialEq + std::fmt::Debug>(world: &mut World, ignored: &[usize]) {
    let all: Vec<R> = table(world, &Asked::all::<R>()).expect("all of them");
    assert!(!all.is_empty(), "{:?}", R::ATTRIBUTE);
    let mut id = 100;
    for (component, row) in R::COMPONENTS.iter().enumerate() {
        let mut values = BTreeSet::new();
        for record in all.iter().map(bytes) {
            let mut other = record.clone();
            let last = row.first + row.width - 1;
            other[last / 8] ^= 0x80 >> (last % 8);
            for value in [record, other] {
                if values.len() < 6 && values.insert(bits(&value, row)) {
                    id += 1;
                    let asked = Asked { id, ..Asked::all::<R>() }.with_bytes(1 << component, &value);
                    let found: Vec<R> = table(world, &asked).expect("a table");
                    let is_wanted = |record: &&R| {
                        ignored.contains(&component) || bits(&bytes(*record), row) == bits(&value, row)
                    };
                    let wanted: Vec<R> = all.iter().filter(is_wanted).copied().collect();
                    assert_eq!(found, wanted, "{:?} {} {component}", R::ATTRIBUTE, row.name);
                }
            }
        }
    }
    // All components at once name one record, and a bit too many names none.
    let whole = u64::MAX >> (64 - R::COMPONENTS.len());
    let first = Asked { id: 90, ..Asked::all::<R>() }.with(whole, &all[0]);
    assert!(one::<R>(world, &first) == Ok(all[0]), "{:?}", R::ATTRIBUTE);
    if R::COMPONENTS.len() < 64 {
        let beyond = Asked { id: 91, mask: whole + 1, ..first };
        assert_eq!(table::<R>(world, &beyond), Err(sa_status::REQ_INVALID), "{:?}", R::ATTRIBUTE);
    }
}

#[test]
fn nodes() {
    each_bit::<NodeRecord>(&mut tree(), &[]);
}

#[test]
fn ports() {
    // The options say what is wanted of a port, not which port.
    each_bit::<PortInfoRecord>(&mut tree(), &[2]);
}

#[test]
fn switches() {
    each_bit::<SwitchInfoRecord>(&mut tree(), &[]);
}

#[test]
fn forwarding_tables() {
    each_bit::<LinearForwardingTableRecord>(&mut tree(), &[]);
}

#[test]
fn cables() {
    each_bit::<LinkRecord>(&mut tree(), &[]);
}

#[test]
fn managers() {
    each_bit::<SmInfoRecord>(&mut tree(), &[]);
}

#[test]
fn lanes() {
    each_bit::<SlToVlTableRecord>(&mut tree(), &[]);
}

#[test]
fn arbitration() {
    each_bit::<VlArbitrationRecord>(&mut tree(), &[]);
}

#[test]
fn p_keys() {
    each_bit::<PKeyTableRecord>(&mut tree(), &[]);
}

#[test]
fn guids() {
    each_bit::<GuidInfoRecord>(&mut tree(), &[]);
}

#[test]
fn services() {
    let mut world = tree();
    for n in 0..3 {
        let record = super::services::service(&world, n);
        let asked = Asked::new(Method::Set, ServiceRecord::ATTRIBUTE).with((1 << 37) - 1, &record);
        assert_eq!(exchange(&mut world, &asked).0.status(), status::OK);
    }
    each_bit::<ServiceRecord>(&mut world, &[]);
}

#[test]
fn subscriptions() {
    let mut world = tree();
    for (n, from) in [(1, Lid(3)), (2, Lid(3)), (3, Lid(4))] {
        let info = InformInfo { trap_number: TrapNumber(n), ..super::events::everything() };
        super::events::subscribe(&mut world, from, &info).unwrap();
    }
    each_bit::<InformInfoRecord>(&mut world, &[]);
}

/// With bit 31 of the modifier, a capability mask is the least that a port must have.
#[test]
fn capabilities_at_least() {
    let mut world = tree();
    let mask = component::<PortInfoRecord>("capability_mask");
    let port_info = |capability_mask| PortInfo { capability_mask, ..PortInfo::default() };
    let record = |mask| PortInfoRecord { port_info: port_info(mask), ..PortInfoRecord::default() };
    let all = table::<PortInfoRecord>(&mut world, &Asked::all::<PortInfoRecord>()).unwrap().len();
    let mut count = |modifier, capability_mask| {
        let asked = Asked { modifier, ..Asked::all::<PortInfoRecord>() }.with(mask, &record(capability_mask));
        table::<PortInfoRecord>(&mut world, &asked).unwrap().len()
    };
    let has = capability::IS_SL_MAPPING_SUPPORTED;
    assert_eq!((count(0, has), count(0, 0)), (all, 0));
    assert_eq!((count(1 << 31, has), count(1 << 31, 0)), (all, all));
    assert_eq!(count(1 << 31, has | capability::IS_SM), 0);
}
