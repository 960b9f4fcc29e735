//! With `sa_partitions`, subnet administration tells requesters only of ports that they share a
//! partition with: each attribute, from hosts in different partitions.

use std::collections::BTreeSet;

use super::client::*;
use super::events::{everything, reports, subscribe};
use super::fake::{Fake, World};
use super::partitions::{TENANT, fabric, guid, hosts, partitions};
use super::services::service;
use weft_machine::Time;
use weft_routing::{EngineOptions, Member};
use weft_sm::{Activity, GuidToLid, Input, Options, RoutingOptions, SaOptions};
use weft_topology::PortRef;
use weft_wire::*;

/// The fabric's four hosts and its first leaf switch, which is a tenant, too. The first host is the manager's and a full member of
/// the default partition; the others are limited ones, as are all switches.
struct Site {
    world: World,
    hosts: [Lid; 4],
    leaf: Lid,
    /// The other switches.
    switches: Vec<Lid>,
}

/// Whom each host sees, of the hosts, and whether it sees the leaf: worked out by hand from the partitions. The first one sees
/// the other switches, too, as a full member of the default partition where they are limited ones.
const SEEN: [(&[usize], bool); 4] =
    [(&[0, 1, 2, 3], true), (&[0, 1, 2], true), (&[0, 1, 2], false), (&[0, 3], false)];

impl Site {
    fn new(sa_partitions: bool) -> Self {
        let fabric = fabric();
        let ends = hosts(&fabric);
        let leaf = fabric.peer(ends[0]).expect("a leaf").node;
        let mut partitions = partitions(&fabric);
        let tenants = partitions.list.iter_mut().find(|partition| partition.pkey == TENANT).expect("tenants");
        tenants.members.push(Member { guid: fabric.node(leaf).guid, full: true });
        let routing = EngineOptions { partitions: Some(partitions), ..EngineOptions::default() };
        let options = Options {
            routing: RoutingOptions { engine: routing, ..RoutingOptions::default() },
            sa: SaOptions { sa_partitions, ..SaOptions::default() },
            ..Options::default()
        };
        let mut world = World::new(Fake::new(fabric, ends[0]), options, &GuidToLid::default());
        world.run_until(Activity::Up);
        let lid = |world: &World, at: PortRef| lid_of(world, at.node, at.port);
        let others = world.fake.fabric.switches().map(|(index, _)| index).filter(|index| *index != leaf);
        let switches = others.map(|index| lid(&world, PortRef::new(index, PortNum(0)))).collect();
        let hosts =
            ends.iter().map(|at| lid(&world, *at)).collect::<Vec<_>>().try_into().expect("four hosts");
        let leaf = lid(&world, PortRef::new(leaf, PortNum(0)));
        Self { world, hosts, leaf, switches }
    }

    /// The LIDs that a host sees.
    fn seen(&self, host: usize) -> BTreeSet<Lid> {
        let (hosts, leaf) = SEEN[host];
        if host == 0 {
            return self.all();
        }
        hosts.iter().map(|other| self.hosts[*other]).chain(leaf.then_some(self.leaf)).collect()
    }

    /// All LIDs.
    fn all(&self) -> BTreeSet<Lid> {
        self.hosts.iter().chain(&self.switches).copied().chain([self.leaf]).collect()
    }

    /// The answer to a host without a key.
    fn ask<R: SaRecord>(&mut self, host: usize, mask: u64, record: &R) -> Result<Vec<R>, u16> {
        let asked = Asked { from: self.hosts[host], key: SmKey(0), ..Asked::all::<R>() };
        table(&mut self.world, &asked.with(mask, record))
    }

    /// The LIDs of all that a host may see.
    fn lids<R: SaRecord + Default>(&mut self, host: usize, lid: impl Fn(&R) -> Lid) -> BTreeSet<Lid> {
        self.ask(host, 0, &R::default()).expect("a table").iter().map(lid).collect()
    }
}

#[test]
fn records_of_ports_are_told_to_who_sees_the_port() {
    let mut site = Site::new(true);
    for host in 0..4 {
        let seen = site.seen(host);
        assert_eq!(site.lids(host, |record: &NodeRecord| record.lid), seen, "host {host}");
        assert_eq!(site.lids(host, |record: &PortInfoRecord| record.lid), seen, "host {host}");
        assert_eq!(site.lids(host, |record: &GuidInfoRecord| record.lid), seen, "host {host}");
        assert_eq!(site.lids(host, |record: &SlToVlTableRecord| record.lid), seen, "host {host}");
        assert_eq!(site.lids(host, |record: &VlArbitrationRecord| record.lid), seen, "host {host}");
        let mut switches: BTreeSet<Lid> = [site.leaf].into();
        switches.extend(&site.switches);
        let seen: BTreeSet<Lid> = seen.intersection(&switches).copied().collect();
        let of_switches = site.lids(host, |record: &SwitchInfoRecord| record.lid);
        assert_eq!(of_switches, seen, "host {host}");
        let tables = site.lids(host, |record: &LinearForwardingTableRecord| record.lid);
        assert_eq!(tables, seen, "host {host}");
    }
}

#[test]
fn a_port_that_is_asked_for_by_lid_is_hidden_too() {
    let mut site = Site::new(true);
    let [_, second, _, fourth] = site.hosts;
    let node = |lid| NodeRecord { lid, ..NodeRecord::default() };
    assert_eq!(site.ask(1, 1, &node(second)).unwrap().len(), 1);
    assert_eq!(site.ask(1, 1, &node(fourth)), Ok(Vec::new()));
    let asked = Asked { from: second, key: SmKey(0), ..Asked::all::<NodeRecord>() }.with(1, &node(fourth));
    assert_eq!(one::<NodeRecord>(&mut site.world, &asked), Err(sa_status::NO_RECORDS));
    let trusted = Asked { key: SmKey(1), ..asked };
    assert_eq!(one::<NodeRecord>(&mut site.world, &trusted).unwrap().lid, fourth);
}

#[test]
fn links_and_paths_need_both_ends() {
    let mut site = Site::new(true);
    for (host, (hosts, sees_leaf)) in SEEN.into_iter().enumerate() {
        let seen = site.seen(host);
        let links = site.ask(host, 0, &LinkRecord::default()).unwrap();
        assert!(links.iter().all(|link| seen.contains(&link.from_lid) && seen.contains(&link.to_lid)));
        // Two hosts are at the tenants' leaf, each link from both ends.
        let (want, all) = (if sees_leaf { 4 } else { 0 }, 16);
        assert_eq!(links.len(), if host == 0 { all } else { want }, "host {host}");

        let paths = site.ask(host, 0, &PathRecord::default()).unwrap();
        let pairs: BTreeSet<(Lid, Lid)> = paths.iter().map(|path| (path.slid, path.dlid)).collect();
        assert!(pairs.iter().all(|(from, to)| seen.contains(from) && seen.contains(to)), "host {host}");
        for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
            let told = [from, to].iter().all(|end| hosts.contains(end)) && SEEN[from].0.contains(&to);
            let pair = (site.hosts[from], site.hosts[to]);
            assert_eq!(pairs.contains(&pair), told, "host {host} about {from} to {to}");
        }
    }
}

#[test]
fn a_gid_that_is_not_seen_is_none() {
    let mut site = Site::new(true);
    let ends = hosts(&site.world.fake.fabric);
    let gid = |site: &Site, host: usize| Gid {
        prefix: GidPrefix::DEFAULT,
        guid: guid(&site.world.fake.fabric, ends[host]),
    };
    let bits = component::<PathRecord>("sgid") | component::<PathRecord>("dgid");
    let (own, third, fourth) = (gid(&site, 1), gid(&site, 2), gid(&site, 3));
    let path = |dgid| PathRecord { sgid: own, dgid, ..PathRecord::default() };
    assert_eq!(site.ask(1, bits, &path(third)).unwrap().len(), 1);
    assert_eq!(site.ask(1, bits, &path(fourth)), Err(sa_status::REQ_INVALID_GID));
    let stranger = Gid { guid: Guid(0x77), ..own };
    assert_eq!(
        site.ask(1, bits, &path(stranger)),
        Err(sa_status::REQ_INVALID_GID),
        "as one that is not there"
    );
}

#[test]
fn trusted_or_unrestricted_requests_see_every_record() {
    let mut with = Site::new(true);
    let mut without = Site::new(false);
    for host in 0..4 {
        let asked = Asked { from: with.hosts[host], ..Asked::all::<NodeRecord>() };
        let trusted: Vec<NodeRecord> = table(&mut with.world, &asked).unwrap();
        assert_eq!(trusted.iter().map(|record| record.lid).collect::<BTreeSet<_>>(), with.all());
        assert_eq!(without.lids(host, |record: &NodeRecord| record.lid), without.all());
        assert_eq!(without.ask(host, 0, &LinkRecord::default()).unwrap().len(), 16);
    }
    let nobody = Asked { from: Lid(0x1234), key: SmKey(0), ..Asked::all::<NodeRecord>() };
    assert_eq!(table::<NodeRecord>(&mut with.world, &nobody), Ok(Vec::new()), "no port has this LID");
    assert_eq!(table::<NodeRecord>(&mut without.world, &nobody).unwrap().len(), 8);
}

#[test]
fn managers_are_told_of_to_who_sees_them() {
    let mut site = Site::new(true);
    for host in 0..4 {
        // All share the default partition with the manager.
        let found = site.lids(host, |record: &SmInfoRecord| record.lid);
        assert_eq!(found, [site.hosts[0]].into(), "host {host}");
    }
    let nobody = Asked { from: Lid(0x1234), key: SmKey(0), ..Asked::all::<SmInfoRecord>() };
    assert_eq!(table::<SmInfoRecord>(&mut site.world, &nobody), Ok(Vec::new()));
}

#[test]
fn services_are_their_partitions() {
    let mut site = Site::new(true);
    let offered = ServiceRecord { service_p_key: PKey::new(TENANT, true), ..service(&site.world, 1) };
    let tell = |site: &mut Site, host: usize, method, record: &ServiceRecord| {
        let asked = Asked {
            from: site.hosts[host],
            key: SmKey(0),
            ..Asked::new(method, sa_attribute::SERVICE_RECORD)
        };
        exchange(&mut site.world, &asked.with((1 << 37) - 1, record)).0.status()
    };
    // The first two hosts are tenants, and the service is the first one's.
    assert_eq!(tell(&mut site, 2, Method::Set, &offered), sa_status::REQ_INVALID);
    assert_eq!(tell(&mut site, 1, Method::Set, &offered), status::OK);
    let strange = Gid {
        prefix: GidPrefix::DEFAULT,
        guid: guid(&site.world.fake.fabric, hosts(&site.world.fake.fabric)[3]),
    };
    let elsewhere = ServiceRecord { service_gid: strange, ..offered };
    assert_eq!(
        tell(&mut site, 1, Method::Set, &elsewhere),
        sa_status::REQ_INVALID,
        "the fourth is no tenant"
    );
    for host in 0..4 {
        let found = site.ask(host, 0, &ServiceRecord::default()).unwrap();
        assert_eq!(found.len(), usize::from(host < 2), "host {host}");
    }
    assert_eq!(tell(&mut site, 3, Method::Delete, &offered), sa_status::REQ_INVALID);
    assert_eq!(tell(&mut site, 0, Method::Delete, &offered), status::OK);
}

/// Subscribes without the key.
fn subscribe_without_key(site: &mut Site, host: usize, info: &InformInfo) -> u16 {
    let from = site.hosts[host];
    let asked = Asked { from, key: SmKey(0), ..Asked::new(Method::Set, AttributeId::InformInfo) };
    exchange(&mut site.world, &asked.with_bytes(0, &info.encode())).0.status()
}

#[test]
fn subscriptions_are_to_what_is_seen() {
    let mut site = Site::new(true);
    let fabric = &site.world.fake.fabric;
    let gids: Vec<Gid> = hosts(fabric)
        .into_iter()
        .map(|at| Gid { prefix: GidPrefix::DEFAULT, guid: guid(fabric, at) })
        .collect();
    let about = |gid| InformInfo { gid, ..everything() };
    let range = |lid: Lid| InformInfo { lid_range_begin: lid, lid_range_end: lid, ..everything() };
    assert_eq!(subscribe_without_key(&mut site, 1, &about(gids[2])), status::OK);
    assert_eq!(subscribe_without_key(&mut site, 1, &about(gids[3])), sa_status::REQ_INVALID_GID);
    let (third, fourth) = (site.hosts[2], site.hosts[3]);
    assert_eq!(subscribe_without_key(&mut site, 1, &range(third)), status::OK);
    assert_eq!(subscribe_without_key(&mut site, 1, &range(fourth)), sa_status::REQ_INVALID);
    let all = InformInfo { lid_range_begin: Lid(1), lid_range_end: Lid(0xbfff), ..everything() };
    assert_eq!(
        subscribe_without_key(&mut site, 1, &all),
        sa_status::REQ_INVALID,
        "with some that are hidden"
    );
    assert_eq!(subscribe_without_key(&mut site, 3, &everything()), status::OK);
    // The second host has two, and sees the third's none; the fourth has one.
    for (host, want) in [(0, 3), (1, 2), (2, 2), (3, 1)] {
        assert_eq!(site.ask(host, 0, &InformInfoRecord::default()).unwrap().len(), want, "host {host}");
    }
    let end = InformInfo { subscribe: 0, ..range(third) };
    assert_eq!(subscribe_without_key(&mut site, 1, &end), status::OK);
}

#[test]
fn reports_go_to_who_sees_the_source() {
    for (key, want) in [(false, [true, true, false, false]), (true, [true; 4])] {
        let mut site = Site::new(true);
        for host in 0..4 {
            if key {
                subscribe(&mut site.world, site.hosts[host], &everything()).unwrap();
            } else {
                assert_eq!(subscribe_without_key(&mut site, host, &everything()), status::OK);
            }
        }
        // A trap of the tenants' leaf.
        let leaf = site.world.fake.fabric.peer(site.world.fake.own).unwrap();
        site.world.traps(&[leaf]);
        site.world.run_for(Time::from_millis(1));
        let told: BTreeSet<Lid> = reports(&mut site.world, true).into_iter().map(|(to, _)| to).collect();
        let found = site.hosts.map(|lid| told.contains(&lid));
        assert_eq!(found, want, "with the key: {key}");
    }
}

#[test]
fn ports_that_leave_and_come_are_told_to_who_sees_them() {
    let mut site = Site::new(true);
    for host in 0..3 {
        assert_eq!(subscribe_without_key(&mut site, host, &everything()), status::OK);
    }
    let fabric = &site.world.fake.fabric;
    let fourth = hosts(fabric)[3];
    let (leaf, about) = (fabric.peer(fourth).unwrap(), guid(fabric, fourth));
    let gone = |site: &mut Site, number: TrapNumber| -> BTreeSet<Lid> {
        site.world.command(Input::Resweep { heavy: true });
        site.world.run_for(Time::from_secs(2));
        let told = reports(&mut site.world, true).into_iter();
        let told = told.filter(|(_, notice)| matches!(notice.details(), Details::Gid(found, details) if found == number && details.gid.guid == about));
        told.map(|(to, _)| to).collect()
    };
    site.world.fake.cut(leaf);
    assert_eq!(gone(&mut site, trap::GID_OUT_OF_SERVICE), [site.hosts[0]].into());
    site.world.fake.mend(leaf);
    assert_eq!(gone(&mut site, trap::GID_IN_SERVICE), [site.hosts[0]].into());
}
