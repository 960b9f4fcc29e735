//! ServiceRecords: offered, found, changed, withdrawn, and gone when their lease is over.

use super::client::*;
use super::fake::World;
use weft_machine::Time;
use weft_wire::*;

const EVERYTHING: u64 = (1 << 37) - 1;

/// A service of the first host's.
pub fn service(world: &World, number: u64) -> ServiceRecord {
    let guid = world.fake.fabric.port(world.fake.own).expect("a port").guid;
    ServiceRecord {
        service_id: 0x100 + number,
        service_gid: Gid { prefix: GidPrefix::DEFAULT, guid },
        service_p_key: PKey::DEFAULT_FULL,
        service_lease: ServiceRecord::LEASE_INFINITE,
        service_key: [number as u8; 16],
        service_name: [b'a' + number as u8; 64],
        service_data8: std::array::from_fn(|i| number as u8 + i as u8),
        service_data16: [number as u16 + 1; 8],
        service_data32: [number as u32 + 2; 4],
        service_data64: [number + 3; 2],
        ..ServiceRecord::default()
    }
}

fn tell(world: &mut World, method: Method, mask: u64, record: &ServiceRecord) -> Result<ServiceRecord, u16> {
    let asked = Asked::new(method, ServiceRecord::ATTRIBUTE).with(mask, record);
    let (head, bytes) = exchange(world, &asked);
    let wanted = if method == Method::Delete { Method::DeleteResp } else { Method::GetResp };
    assert_eq!(head.method(), wanted);
    if head.status() == status::OK { Ok(ServiceRecord::from_bytes(&bytes)) } else { Err(head.status()) }
}

fn all(world: &mut World) -> Vec<ServiceRecord> {
    table(world, &Asked::all::<ServiceRecord>()).expect("a table")
}

#[test]
fn offered_found_changed_and_withdrawn() {
    let mut world = tree();
    assert_eq!(all(&mut world), []);
    let (a, b) = (service(&world, 1), service(&world, 2));
    assert_eq!(tell(&mut world, Method::Set, EVERYTHING, &b), Ok(b));
    assert_eq!(tell(&mut world, Method::Set, EVERYTHING, &a), Ok(a));
    assert_eq!(all(&mut world), [a, b], "in order of service ids");
    let by_id = Asked::all::<ServiceRecord>().with(1, &a);
    assert_eq!(one(&mut world, &by_id), Ok(a));
    assert_eq!(
        one::<ServiceRecord>(&mut world, &Asked::all::<ServiceRecord>()),
        Err(sa_status::TOO_MANY_RECORDS)
    );
    // The key is hidden from strangers, who can still ask by it.
    let stranger = Asked { key: SmKey(0), ..Asked::all::<ServiceRecord>() }.with(1 << 5, &a);
    assert_eq!(one(&mut world, &stranger), Ok(ServiceRecord { service_key: [0; 16], ..a }));

    let stranger = Asked { key: SmKey(0), ..Asked::new(Method::Set, ServiceRecord::ATTRIBUTE) };
    let (_, told) = exchange(&mut world, &stranger.with(EVERYTHING, &a));
    assert_eq!(ServiceRecord::from_bytes(&told).service_key, [0; 16]);

    let changed = ServiceRecord { service_name: [b'x'; 64], ..a };
    let other_key = ServiceRecord { service_key: [9; 16], ..changed };
    assert_eq!(tell(&mut world, Method::Set, EVERYTHING, &other_key), Ok(other_key));
    assert_eq!(tell(&mut world, Method::Set, EVERYTHING, &changed), Ok(changed));
    assert_eq!(all(&mut world), [changed, b]);

    assert_eq!(tell(&mut world, Method::Delete, EVERYTHING, &a), Ok(changed));
    assert_eq!(tell(&mut world, Method::Delete, EVERYTHING, &a), Err(sa_status::NO_RECORDS));
    assert_eq!(all(&mut world), [b]);
}

#[test]
fn omitted_service_fields_get_defaults() {
    let mut world = tree();
    let a = ServiceRecord { service_p_key: PKey(1), service_lease: 5, ..service(&world, 1) };
    let made = tell(&mut world, Method::Set, 0b11, &a).unwrap();
    assert_eq!(made.service_p_key, PKey::DEFAULT_FULL);
    assert_eq!((made.service_lease, made.service_key), (ServiceRecord::LEASE_INFINITE, [0; 16]));
    for mask in [0, 0b01, 0b10, EVERYTHING - 1] {
        let refused = tell(&mut world, Method::Set, mask, &a);
        assert_eq!(refused, Err(sa_status::INSUFFICIENT_COMPONENTS), "{mask:#x}");
    }
    // What is found can be deleted, by whatever mask, and without its key, which strangers lack.
    assert_eq!(tell(&mut world, Method::Delete, 1 << 6, &made), Ok(made));
    assert_eq!(all(&mut world), []);
}

#[test]
fn a_lease_runs_out() {
    let mut world = tree();
    let (short, long) = (service(&world, 1), service(&world, 2));
    let short = ServiceRecord { service_lease: 10, ..short };
    tell(&mut world, Method::Set, EVERYTHING, &short).unwrap();
    tell(&mut world, Method::Set, EVERYTHING, &long).unwrap();
    world.run_for(Time::from_millis(3500));
    let left: Vec<u32> = all(&mut world).iter().map(|record| record.service_lease).collect();
    assert_eq!(left, [7, ServiceRecord::LEASE_INFINITE]);
    // A new Set begins a new lease.
    tell(&mut world, Method::Set, EVERYTHING, &short).unwrap();
    world.run_for(Time::from_millis(9900));
    assert_eq!(all(&mut world).len(), 2);
    world.run_for(Time::from_millis(200));
    assert_eq!(all(&mut world), [long]);
}

#[test]
fn a_table_of_many_services_arrives_in_segments() {
    let mut world = tree();
    for number in 0..256 {
        let record = ServiceRecord { service_id: number, ..service(&world, 0) };
        tell(&mut world, Method::Set, 0b11, &record).unwrap();
    }
    assert_eq!(all(&mut world).len(), 256);
}
