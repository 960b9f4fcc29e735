//! Repath and unpath: who may ask for them, what is forwarded to whom, and what the manager says of its own accord.

use super::client::*;
use super::events::{everything, records, reports, subscribe};
use super::fake::World;
use weft_machine::Time;
use weft_sm::signalling::{Case, messages};
use weft_sm::{Activity, Event, Input, Options, RoutingOptions, SaOptions, Signalling};
use weft_topology::generate::{GenerateOptions, ring};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::*;

const ASKER: Lid = Lid(4);

fn repaths() -> InformInfo {
    InformInfo { trap_number: trap::REPATH, ..everything() }
}

fn details(kind: RepathKind) -> RepathDetails {
    let (slid, dlid, service_level) = (Lid(1), Lid(2), ServiceLevel(3));
    RepathDetails { kind, slid, dlid, service_level, guid: Guid(7), ..RepathDetails::default() }
}

/// The port that asks.
fn asker(world: &World) -> Guid {
    let fabric = &world.fake.fabric;
    let switches = fabric.switches().map(|(at, _)| PortRef::new(at, PortNum(0)));
    let mut ends = hosts(world).into_iter().chain(switches);
    let end = ends.find(|at| lid_of(world, at.node, at.port) == ASKER).expect("somebody asks");
    fabric.port(end).expect("it is in the fabric").guid
}

/// What the port that asks says of its own new LID.
fn new_lid(world: &World) -> RepathDetails {
    RepathDetails { guid: asker(world), dlid: ASKER, ..details(RepathKind::NEW_LID) }
}

fn wish(number: TrapNumber, details: RepathDetails) -> Notice {
    Notice::generic(NodeType::Hca, ASKER, &Details::Repath(number, details))
}

fn ask_with(world: &mut World, key: u64, notice: &Notice) -> u16 {
    let asked = Asked { from: ASKER, key: SmKey(key), ..Asked::new(Method::Set, AttributeId::Notice) };
    world.command(Input::Receive(asked.with_bytes(0, &notice.encode()).mad()));
    let head = world.administration.pop_front().expect("an answer").mad;
    assert_eq!((head.method(), head.attribute_id()), (Method::GetResp, AttributeId::Notice));
    assert_eq!(&head.0[56..56 + Notice::SIZE], &notice.encode()[..], "the answer shows the request");
    head.status()
}

fn ask(world: &mut World, notice: &Notice) -> u16 {
    ask_with(world, 0, notice)
}

fn hosts(world: &World) -> Vec<PortRef> {
    world.fake.fabric.hosts().map(|(index, _)| PortRef::new(index, PortNum(1))).collect()
}

#[test]
fn all_kinds_are_forwarded_to_all_subscribers() {
    for number in [trap::REPATH, trap::UNPATH] {
        for kind in [RepathKind::WILDCARD, RepathKind::PATH, RepathKind::HOT_SPOT, RepathKind::NEW_LID] {
            let mut world = tree();
            for from in [Lid(1), Lid(3)] {
                subscribe(&mut world, from, &InformInfo { trap_number: number, ..everything() }).unwrap();
            }
            subscribe(&mut world, Lid(2), &InformInfo { trap_number: trap::GID_IN_SERVICE, ..everything() })
                .unwrap();
            let details = if kind == RepathKind::NEW_LID { new_lid(&world) } else { details(kind) };
            assert_eq!(ask(&mut world, &wish(number, details)), status::OK, "{kind:?}");
            let mut found = reports(&mut world, true);
            found.sort_by_key(|(to, _)| *to);
            let to: Vec<Lid> = found.iter().map(|(to, _)| *to).collect();
            assert_eq!(to, [Lid(1), Lid(3)]);
            for (_, notice) in found {
                assert_eq!(notice.details(), Details::Repath(number, details));
                assert_eq!(notice.issuer_lid, ASKER);
                let guid = asker(&world);
                assert_eq!(notice.issuer_gid, Gid { prefix: GidPrefix::DEFAULT, guid });
            }
            assert_eq!((world.sm.sa_counts().repaths, world.sm.progress().repaths), (1, 1));
            let told = world.events.iter().find_map(|(_, event)| match event {
                Event::Repath { number, from, kind, told, .. } => Some((*number, *from, *kind, *told)),
                _ => None,
            });
            assert_eq!(told, Some((number, ASKER, kind.into(), 2)));
        }
    }
}

#[test]
fn a_target_alone_is_told() {
    let mut world = tree();
    for from in [Lid(1), Lid(3)] {
        subscribe(&mut world, from, &repaths()).unwrap();
    }
    let to =
        |target| wish(trap::REPATH, RepathDetails { target: Lid(target), ..details(RepathKind::HOT_SPOT) });
    assert_eq!(ask(&mut world, &to(3)), status::OK);
    let found = reports(&mut world, true);
    let [(Lid(3), notice)] = found[..] else { panic!("{found:?}") };
    let Details::Repath(_, told) = notice.details() else { panic!("{notice:?}") };
    assert_eq!(told, details(RepathKind::HOT_SPOT), "the target is named to nobody");
    assert_eq!(ask(&mut world, &to(2)), sa_status::NO_RECORDS, "it has not subscribed");
    assert_eq!(ask(&mut world, &to(0x1234)), sa_status::REQ_INVALID, "nobody has that LID");
    assert_eq!(reports(&mut world, true), []);
    assert_eq!(world.sm.sa_counts().repaths, 1);
}

#[test]
fn invalid_repaths_are_refused_and_not_forwarded() {
    let mut world = tree();
    subscribe(&mut world, Lid(3), &everything()).unwrap();
    let hot = details(RepathKind::HOT_SPOT);
    let nobody = Lid(0x1234);
    let fine = wish(trap::REPATH, hot);
    let own = new_lid(&world);
    for (name, notice) in [
        ("kind", wish(trap::REPATH, RepathDetails { kind: RepathKind(5), ..hot })),
        ("hot spot", wish(trap::REPATH, RepathDetails { dlid: nobody, ..hot })),
        ("source", wish(trap::REPATH, RepathDetails { slid: nobody, ..details(RepathKind::PATH) })),
        ("no source", wish(trap::REPATH, RepathDetails { slid: Lid(0), ..details(RepathKind::PATH) })),
        ("destination", wish(trap::UNPATH, RepathDetails { dlid: nobody, ..details(RepathKind::PATH) })),
        ("new LID", wish(trap::REPATH, RepathDetails { dlid: nobody, ..own })),
        ("another's LID", wish(trap::REPATH, RepathDetails { dlid: Lid(2), ..own })),
        ("no GUID", wish(trap::REPATH, RepathDetails { guid: Guid(0), ..own })),
        ("vendor's", Notice { is_generic: false, ..fine }),
        ("other trap", Notice { trap_number: trap::LINK_STATE_CHANGE, ..fine }),
    ] {
        assert_eq!(ask(&mut world, &notice), sa_status::REQ_INVALID, "{name}");
    }
    assert_eq!(ask_with(&mut world, 9, &fine), sa_status::REQ_DENIED, "a wrong key");
    let stranger = Asked { from: Lid(0x99), ..Asked::new(Method::Set, AttributeId::Notice) };
    let (head, _) = exchange(&mut world, &stranger.with_bytes(0, &fine.encode()));
    assert_eq!(head.status(), status::BUSY, "nobody has that LID yet");
    assert_eq!(reports(&mut world, true), []);
    // No one who has left need have the old LID.
    let moved = wish(trap::REPATH, RepathDetails { slid: nobody, ..own });
    assert_eq!(ask(&mut world, &moved), status::OK);
    assert_eq!(reports(&mut world, true).len(), 1);
}

/// Peers would send to that LID from then on.
#[test]
fn nobody_says_without_the_key_that_another_port_has_moved() {
    let mut world = tree();
    subscribe(&mut world, Lid(3), &repaths()).unwrap();
    let others = hosts(&world).into_iter().find(|at| lid_of(&world, at.node, at.port) != ASKER).unwrap();
    let (guid, dlid) =
        (world.fake.fabric.port(others).unwrap().guid, lid_of(&world, others.node, others.port));
    let notice = wish(trap::REPATH, RepathDetails { guid, dlid, ..new_lid(&world) });
    assert_eq!(ask(&mut world, &notice), sa_status::REQ_DENIED);
    assert_eq!(reports(&mut world, true), []);
    assert_eq!(ask_with(&mut world, 1, &notice), status::OK);
    assert_eq!(reports(&mut world, true).len(), 1);
}

#[test]
fn a_key_may_be_needed() {
    let fabric = ring(4, 1, &GenerateOptions::default()).unwrap();
    let mut world = up(fabric, Options::from(SaOptions { repath_needs_key: true, ..SaOptions::default() }));
    subscribe(&mut world, Lid(3), &repaths()).unwrap();
    let notice = wish(trap::REPATH, details(RepathKind::WILDCARD));
    assert_eq!(ask_with(&mut world, 0, &notice), sa_status::REQ_DENIED);
    assert_eq!(reports(&mut world, true), []);
    assert_eq!(ask_with(&mut world, 1, &notice), status::OK);
    assert_eq!(reports(&mut world, true).len(), 1);
}

/// A ring of switches with one host each, routed by LASH.
fn on_a_ring(switches: u32, signalling: Signalling) -> World {
    let fabric = ring(switches, 1, &GenerateOptions::default()).expect("a ring");
    let engines = "lash".parse().expect("an engine");
    up(
        fabric,
        Options {
            routing: RoutingOptions { chain: engines, ..RoutingOptions::default() },
            sa: SaOptions { signalling, ..SaOptions::default() },
            ..Options::default()
        },
    )
}

/// The service level of every pair of hosts, as path records have it.
fn levels(world: &mut World) -> Vec<((Lid, Lid), ServiceLevel)> {
    let hosts: Vec<Lid> = hosts(world).into_iter().map(|at| lid_of(world, at.node, at.port)).collect();
    let all: Vec<PathRecord> = table(world, &Asked::all::<PathRecord>()).expect("a table");
    let pairs = all.iter().filter(|path| hosts.contains(&path.slid) && hosts.contains(&path.dlid));
    pairs.map(|path| ((path.slid, path.dlid), path.sl)).collect()
}

/// A cable between switches is cut, and the fabric routed again.
fn reroute(world: &mut World) {
    let cut = world.fake.fabric.cables().map(|cable| cable.a).find(|at| {
        let peer = world.fake.fabric.peer(*at).expect("it is cabled");
        let is_switch = |node: NodeIndex| world.fake.fabric.node(node).is_switch();
        is_switch(at.node) && is_switch(peer.node)
    });
    world.fake.cut(cut.expect("a cable"));
    world.command(Input::Resweep { heavy: true });
    world.run_until(Activity::Up);
}

/// The notices after a cable of a ring is gone, and what has changed: one lane does then.
struct Told {
    world: World,
    hosts: Vec<Lid>,
    said: Vec<(Lid, RepathDetails)>,
    changed: Vec<((Lid, Lid), ServiceLevel)>,
}

impl Told {
    fn by(signalling: Signalling, switches: u32) -> Self {
        let mut world = on_a_ring(switches, signalling);
        let before = levels(&mut world);
        let hosts: Vec<Lid> = hosts(&world).into_iter().map(|at| lid_of(&world, at.node, at.port)).collect();
        for lid in &hosts {
            subscribe(&mut world, *lid, &repaths()).expect("a subscription");
        }
        reroute(&mut world);
        let said = said(&mut world);
        let after = levels(&mut world);
        let changed: Vec<_> = after.into_iter().filter(|pair| !before.contains(pair)).collect();
        assert!(!changed.is_empty(), "LASH needs two lanes on a ring of {switches}");
        Self { world, hosts, said, changed }
    }

    /// Each host once, that everything is to be asked for.
    fn all_once(&self) -> Vec<(Lid, RepathDetails)> {
        self.hosts.iter().map(|lid| (*lid, RepathDetails::default())).collect()
    }

    /// The notices after another routing that changes nothing.
    fn again(&mut self) -> Vec<(Lid, RepathDetails)> {
        self.world.command(Input::Resweep { heavy: true });
        self.world.run_until(Activity::Up);
        said(&mut self.world)
    }
}

/// All repaths that are reported until there are no more, in order.
fn said(world: &mut World) -> Vec<(Lid, RepathDetails)> {
    let mut said = Vec::new();
    loop {
        let found = reports(world, true);
        if found.is_empty() {
            break;
        }
        said.extend(found.iter().map(|(to, notice)| match notice.details() {
            Details::Repath(trap::REPATH, details) => (*to, details),
            other => panic!("{other:?}"),
        }));
        world.run_for(Time::from_millis(10));
    }
    said.sort_by_key(|(to, told)| (*to, told.slid, told.dlid));
    said
}

#[test]
fn the_hybrid_tells_all_once_and_only_of_a_change() {
    let mut told = Told::by(Signalling::Hybrid, 6);
    assert_eq!(told.said, told.all_once());
    assert_eq!(told.again(), []);
}

#[test]
fn the_wildcard_tells_all_after_every_routing() {
    let mut told = Told::by(Signalling::Wildcard, 6);
    assert_eq!(told.said, told.all_once());
    assert_eq!(told.again(), told.all_once(), "it cannot tell that nothing has changed");
}

/// With 12 switches there are more changes than Reports that may wait.
#[test]
fn repath_only_tells_both_ends_of_each_changed_pair() {
    for switches in [5, 6, 12, 16] {
        let mut told = Told::by(Signalling::Repath, switches);
        let ends = |((slid, dlid), service_level): &((Lid, Lid), ServiceLevel)| {
            let (kind, service_level) = (RepathKind::PATH, *service_level);
            let details =
                RepathDetails { kind, service_level, slid: *slid, dlid: *dlid, ..Default::default() };
            [(*slid, details), (*dlid, details)]
        };
        let mut wanted: Vec<_> = told.changed.iter().flat_map(ends).collect();
        wanted.sort_by_key(|(to, told)| (*to, told.slid, told.dlid));
        assert_eq!(told.said, wanted);
        let case = Case { changes: told.changed.len() as u64, ..Case::default() };
        assert_eq!(messages(Signalling::Repath, &case).reports, told.said.len() as u64);
        assert_eq!(told.again(), []);
    }
}

#[test]
fn without_signalling_a_routing_is_told_to_nobody() {
    assert_eq!(Told::by(Signalling::Off, 6).said, []);
}

/// Whoever subscribed before the manager lost its port does not know what has happened since, if routings can differ at all.
#[test]
fn after_an_absence_all_is_to_be_asked_for_again() {
    for signalling in [Signalling::Wildcard, Signalling::Repath, Signalling::Hybrid] {
        let mut world = on_a_ring(6, signalling);
        subscribe(&mut world, Lid(3), &repaths()).unwrap();
        world.command(Input::Detached);
        world.attach();
        world.run_until(Activity::Up);
        assert_eq!(said(&mut world), [(Lid(3), RepathDetails::default())], "{signalling}");
        assert_eq!(records(&mut world).len(), 1);
    }
    // One lane before and after: there is nothing to hear.
    let mut world = tree();
    subscribe(&mut world, Lid(3), &repaths()).unwrap();
    world.command(Input::Detached);
    world.attach();
    world.run_until(Activity::Up);
    assert_eq!(said(&mut world), []);
}
