//! The partitions file: who is where, by chance.

use rand::RngExt;
use rand_pcg::Pcg64;
use weft_routing::{Isolation, Member, Partition, Partitions};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Guid, PKey};

use super::{Roles, STEADY, STRANGE, TENANTS};

/// The GUID of a host's port.
pub(super) fn guid(fabric: &Fabric, port: PortRef) -> Guid {
    fabric.port(port).expect("a port").guid
}

/// The next file: half of the memberships are as before, the others by chance. The steady ones stay in their partition, and the
/// stranger in the one that they are never in.
pub(super) fn drawn(random: &mut Pcg64, fabric: &Fabric, roles: &Roles, before: &Partitions) -> Partitions {
    let full = |port: PortRef| Member { guid: guid(fabric, port), full: true };
    let partition =
        |pkey, members| Partition { name: String::new(), pkey, members, isolation: Isolation::Def };
    let steady = roles.near.iter().chain([&roles.far]).copied().map(full).collect();
    let mut list = vec![partition(STEADY, steady)];
    for pkey in TENANTS {
        let hosts: Vec<PortRef> = roles.hosts().collect();
        list.push(partition(pkey, members(random, fabric, before, pkey, &hosts)));
    }
    let mut strangers = members(random, fabric, before, STRANGE, &roles.others);
    strangers.push(full(roles.stranger));
    list.push(partition(STRANGE, strangers));
    Partitions { list, ..Partitions::default() }
}

fn members(
    random: &mut Pcg64,
    fabric: &Fabric,
    before: &Partitions,
    pkey: u16,
    hosts: &[PortRef],
) -> Vec<Member> {
    let mut members = Vec::new();
    for host in hosts {
        let guid = guid(fabric, *host);
        let full = match membership(before, pkey, guid) {
            before if random.random_bool(0.5) => before,
            _ => random.random_bool(0.4).then(|| random.random_bool(0.7)),
        };
        members.extend(full.map(|full| Member { guid, full }));
    }
    members
}

/// Whether a port is a full member, if it is one.
pub(super) fn membership(file: &Partitions, pkey: u16, guid: Guid) -> Option<bool> {
    let of = file.list.iter().find(|partition| partition.pkey == pkey)?;
    of.members.iter().find(|member| member.guid == guid).map(|member| member.full)
}

/// Whether two may talk in a partition: both are in it, and one is a full member (IBA 10.9.3).
pub(super) fn may_talk(file: &Partitions, pkey: u16, one: Guid, other: Guid) -> bool {
    let both = membership(file, pkey, one).zip(membership(file, pkey, other));
    both.is_some_and(|(one, other)| one || other)
}

/// The keys that a port has by the file, with the default partition's.
pub(super) fn keys(file: &Partitions, guid: Guid) -> impl Iterator<Item = PKey> {
    let keys = file.list.iter().filter_map(move |partition| {
        let members = partition.members.iter().find(|member| member.guid == guid);
        members.map(|member| PKey::new(partition.pkey, member.full))
    });
    keys.chain([PKey(0x7fff)])
}
