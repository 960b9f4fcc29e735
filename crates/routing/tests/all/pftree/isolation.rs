//! Policies: links and lanes of their own, what is refused and what is reported, in whole and in broken trees.

use std::collections::BTreeSet;

use rand::RngExt;
use rand::seq::SliceRandom;
use weft_routing::quality::{
    Figure, Participants, Paths, Pattern, SimulateOptions, Traffic, members, simulate,
};
use weft_routing::{EngineOptions, Isolation, Lids, Member, Partition, Strictness, verify};
use weft_topology::generate::{GenerateOptions, pgft};
use weft_topology::{Fabric, NodeIndex, parse};
use weft_wire::{Guid, PortNum};

use super::common::{
    Carried, TOPOLOGIES, assert_sound, carried, generator, hosts_by_leaf, is_kept, options, partition,
    port_guid, random_partitions, rebuilt, route, seed, tree, try_route, two_ranks, victims, without_cables,
};

#[test]
fn isolated_victims_share_no_link_on_the_papers_trees() {
    let mut random = generator(seed());
    let mut mixed_without_policies = 0;
    for (children, parents, count) in TOPOLOGIES {
        let fabric = tree(&children, &parents);
        let (leaves, roots) = (children[1] as usize, parents[1] as usize);
        // As in the paper, where links divide evenly, and with one more victim on each leaf.
        for count in [count, count + leaves] {
            let list = victims(&fabric, count, Isolation::Phy, &mut random);
            let options = options(list.clone(), Strictness::Strict);
            let (lids, routing) = route("pftree-ext", &fabric, &options);
            let links = carried(&fabric, &lids, &routing, &list);
            assert!(is_kept(&links, &list[0]), "{children:?}");
            assert_eq!(routing.report.lanes, 1, "nothing is shared");
            // The victim has as many roots as is its share of the hosts, and the others have the rest.
            let fair = children[0] as usize / roots;
            let used = [1, 2].map(|pkey| roots_of(&fabric, &links, pkey));
            assert_eq!(used, [(count / leaves).div_ceil(fair), roots - used[0]], "{children:?}");

            let without =
                list.iter().map(|partition| Partition { isolation: Isolation::Def, ..partition.clone() });
            let (lids, routing) =
                route("pftree", &fabric, &self::options(without.collect(), Strictness::Strict));
            mixed_without_policies +=
                usize::from(!is_kept(&carried(&fabric, &lids, &routing, &list), &list[0]));
        }
    }
    assert_eq!(mixed_without_policies, 9, "pftree alone mixes them where links do not divide evenly");
}

/// How many roots the links of a partition begin or end at.
fn roots_of(fabric: &Fabric, links: &Carried, pkey: u16) -> usize {
    let with = links.iter().filter(|(_, users)| users.contains_key(&pkey));
    let is_root = |node: &NodeIndex| fabric.node(*node).description.starts_with("switch-2-");
    with.map(|(link, _)| link.node).filter(is_root).collect::<BTreeSet<_>>().len()
}

/// Algorithm 3 as printed takes a root for each victim of a leaf, and has no end where none is left for the others.
#[test]
fn literal_pftree_takes_a_root_for_each_victim_of_a_leaf() {
    let mut random = generator(seed());
    for (children, parents, count) in TOPOLOGIES {
        let fabric = tree(&children, &parents);
        let (leaves, roots) = (children[1] as usize, parents[1] as usize);
        let list = victims(&fabric, count, Isolation::Phy, &mut random);
        let options = EngineOptions { literal: true, ..options(list.clone(), Strictness::Strict) };
        if count / leaves == roots {
            let lids = Lids::in_guid_order(&fabric, 0).expect("enough");
            let refusal = try_route("pftree-ext", &fabric, &lids, &options).expect_err("no root is left");
            let says = "algorithm 3 as printed never ends at ";
            assert!(refusal.reason.starts_with(says), "{children:?}: {refusal}");
            continue;
        }
        let (lids, routing) = route("pftree-ext", &fabric, &options);
        let links = carried(&fabric, &lids, &routing, &list);
        assert!(is_kept(&links, &list[0]), "{children:?}");
        let used = [1, 2].map(|pkey| roots_of(&fabric, &links, pkey));
        assert_eq!(used, [count / leaves, roots - count / leaves], "{children:?}");
    }
}

/// The delays of a pattern among the members of the first partition: while the second is silent, and while all of
/// it send to all of it.
fn quiet_and_noisy(
    fabric: &Fabric,
    engine: &str,
    list: &[Partition],
    pattern: Pattern,
    seed: u64,
) -> [Figure; 2] {
    let (lids, routing) = route(engine, fabric, &options(list.to_vec(), Strictness::Strict));
    let paths = Paths::new(fabric, &lids, &routing.routes);
    let [first, second] = [0, 1].map(|place: usize| members(fabric, &lids, &list[place]));
    let participants = Participants { first, second };
    let simulation = SimulateOptions { runs: 4, seed, ..SimulateOptions::default() };
    [Pattern::Null, Pattern::AllToAll].map(|noise| {
        let found = simulate(&paths, &participants, Traffic::Versus(pattern, noise), &simulation);
        let found = found.expect("all have LIDs");
        assert!(found.flows > 0 && found.failures == 0, "{found}");
        found.dep_max_delay
    })
}

#[test]
fn noise_does_not_delay_a_victim_with_links_of_its_own() {
    let seed = seed();
    let mut random = generator(seed);
    let patterns =
        [Pattern::Bisect, Pattern::BisectFbSym, Pattern::Gather, Pattern::Scatter, Pattern::AllToAll];
    // The larger topologies take too long here.
    for (children, parents, count) in &TOPOLOGIES[..7] {
        let fabric = tree(children, parents);
        // As in the paper, and with one more victim on each leaf, so that links do not divide evenly.
        for count in [*count, count + children[1] as usize] {
            let list = victims(&fabric, count, Isolation::Phy, &mut random);
            for pattern in patterns {
                let [quiet, noisy] = quiet_and_noisy(&fabric, "pftree-ext", &list, pattern, seed);
                assert!(quiet.summary.max > 0.0, "{children:?}, {count}, {pattern}");
                assert_eq!(quiet, noisy, "{children:?}, {count}, {pattern}");
            }
        }
        // Without policies, the victim that does not come to whole links waits for the others.
        let list = victims(&fabric, count + children[1] as usize, Isolation::Def, &mut random);
        let [quiet, noisy] = quiet_and_noisy(&fabric, "pftree", &list, Pattern::AllToAll, seed);
        assert!(quiet.summary.mean < noisy.summary.mean, "{children:?}");
    }
}

#[test]
fn partitions_on_different_leaves_find_separate_switches() {
    // The first two have links of their own and no leaf in common; the third is everywhere.
    let fabric = two_ranks(&[&["a", "b", "c"], &["d", "e", "f"], &["g", "h", "i"], &["j", "k", "l"]], 3);
    let of = |hosts: &str| {
        hosts.split("").filter(|id| !id.is_empty()).map(|id| port_guid(&fabric, id)).collect::<Vec<_>>()
    };
    let list = vec![
        partition(1, Isolation::Phy, of("be")),
        partition(2, Isolation::Def, of("acdfgkl")),
        partition(3, Isolation::Phy, of("hi")),
        partition(4, Isolation::Phy, of("ij")),
    ];
    // i is in two partitions, of which one is on a single leaf; h talks to no one on another leaf.
    let options = options(list.clone(), Strictness::Strict);
    let (lids, routing) = route("pftree-ext", &fabric, &options);
    let links = carried(&fabric, &lids, &routing, &list);
    for partition in &list {
        assert!(is_kept(&links, partition), "{}", partition.name);
    }
    assert!(verify(&fabric, &lids, &routing.routes, &[]).is_sound());
}

#[test]
fn isolation_without_room_is_refused_or_reported_by_name() {
    let fabric = two_ranks(&[&["a", "b", "c"], &["d", "e", "f"]], 2);
    let pair =
        |pkey, isolation, a, b| partition(pkey, isolation, [port_guid(&fabric, a), port_guid(&fabric, b)]);
    let list = |isolation| {
        vec![pair(1, isolation, "a", "d"), pair(2, isolation, "b", "e"), pair(3, isolation, "c", "f")]
    };
    let lids = Lids::in_guid_order(&fabric, 0).expect("enough");
    // Three partitions want links, and there are two roots.
    let strict = options(list(Isolation::Phy), Strictness::Strict);
    for engine in ["pftree-ext", "pftree-combined", "pftree", "pftree-wt"] {
        let refusal = try_route(engine, &fabric, &lids, &strict).expect_err(engine);
        assert_eq!(refusal.engine, engine);
        assert!(refusal.reason.starts_with("partition `P"), "{refusal}");
        assert!(refusal.reason.contains("is to have links of its own but shares those of"), "{refusal}");
    }
    let best = options(list(Isolation::Phy), Strictness::BestEffort);
    let (lids, routing) = route("pftree-ext", &fabric, &best);
    assert_eq!(routing.report.unsatisfied.len(), 2, "{:?}", routing.report);
    let links = carried(&fabric, &lids, &routing, &list(Isolation::Phy));
    assert_eq!(list(Isolation::Phy).iter().filter(|partition| is_kept(&links, partition)).count(), 1);
    // Where links are shared, lanes are not.
    assert_eq!(routing.report.lanes, 2);

    // Lanes of their own: three lanes would do for three partitions on one link, two do here, one does not.
    let mut vlane = options(list(Isolation::Vlane), Strictness::Strict);
    let (lids, routing) = route("pftree-ext", &fabric, &vlane);
    let links = carried(&fabric, &lids, &routing, &list(Isolation::Vlane));
    assert!(list(Isolation::Vlane).iter().all(|partition| is_kept(&links, partition)));
    vlane.lanes = 1;
    let refusal = try_route("pftree-ext", &fabric, &lids, &vlane).expect_err("one lane");
    assert!(refusal.reason.contains("is to have lanes of its own but shares"), "{refusal}");
}

#[test]
fn partitions_with_lanes_of_their_own_leave_one_for_the_others() {
    // One root, so that all share everything.
    let fabric = two_ranks(&[&["a", "b", "c", "d"], &["e", "f", "g", "h"]], 1);
    let pair =
        |pkey, isolation, a, b| partition(pkey, isolation, [port_guid(&fabric, a), port_guid(&fabric, b)]);
    let list = vec![
        pair(1, Isolation::Def, "a", "e"),
        pair(2, Isolation::Vlane, "b", "f"),
        pair(3, Isolation::Def, "c", "g"),
        pair(4, Isolation::Vlane, "d", "h"),
    ];
    let mut options = options(list.clone(), Strictness::Strict);
    options.lanes = 3;
    let (lids, routing) = route("pftree-ext", &fabric, &options);
    let links = carried(&fabric, &lids, &routing, &list);
    assert!(list.iter().all(|partition| is_kept(&links, partition)));
    assert_eq!(routing.report.lanes, 3);
    assert_sound(&fabric, &lids, &routing, &options, true);
    options.lanes = 2;
    assert!(try_route("pftree-ext", &fabric, &lids, &options).is_err());
    // pFTree knows no policies, but says what becomes of them.
    options.lanes = 15;
    let (_, routing) = route("pftree", &fabric, &options);
    assert_eq!((routing.report.lanes, routing.report.unsatisfied.len()), (4, 0));
}

#[test]
fn limited_members_do_not_talk_to_each_other_and_share_nothing() {
    let fabric = two_ranks(&[&["a", "b"], &["c", "d"]], 1);
    let mut list = vec![
        partition(1, Isolation::Phy, [port_guid(&fabric, "a"), port_guid(&fabric, "c")]),
        partition(2, Isolation::Def, [port_guid(&fabric, "b"), port_guid(&fabric, "d")]),
    ];
    let lids = Lids::in_guid_order(&fabric, 0).expect("enough");
    assert!(try_route("pftree-ext", &fabric, &lids, &options(list.clone(), Strictness::Strict)).is_err());
    list[0].members.iter_mut().for_each(|member| member.full = false);
    assert!(try_route("pftree-ext", &fabric, &lids, &options(list.clone(), Strictness::Strict)).is_ok());
    list[0].members[1].full = true;
    assert!(try_route("pftree-ext", &fabric, &lids, &options(list, Strictness::Strict)).is_err());
}

#[test]
fn the_default_partition_is_for_management() {
    let fabric = two_ranks(&[&["a", "b"], &["c", "d"]], 2);
    let all = hosts_by_leaf(&fabric).concat();
    let limited = all.iter().map(|guid| Member { guid: *guid, full: true }).collect();
    let default =
        Partition { name: String::new(), pkey: 0x7fff, members: limited, isolation: Isolation::Def };
    let list =
        vec![default, partition(1, Isolation::Phy, [port_guid(&fabric, "a"), port_guid(&fabric, "c")])];
    // b and d are in no other partition, so they talk by it.
    let (lids, routing) = route("pftree-ext", &fabric, &options(list.clone(), Strictness::Strict));
    let named = vec![
        list[1].clone(),
        partition(0x7fff, Isolation::Def, [port_guid(&fabric, "b"), port_guid(&fabric, "d")]),
    ];
    assert!(is_kept(&carried(&fabric, &lids, &routing, &named), &named[0]));
}

/// Whole trees of several shapes, one of them with parallel cables.
fn shapes() -> Vec<Fabric> {
    let pgft = pgft(&[4, 3, 2], &[1, 2, 2], &[1, 2, 1], &GenerateOptions::default()).expect("a tree");
    vec![tree(&[3, 4], &[1, 3]), tree(&[3, 3, 3], &[1, 2, 2]), pgft, tree(&[6, 6], &[1, 2])]
}

fn check(fabric: &Fabric, engine: &str, options: &EngineOptions, whole: bool, context: &str) -> bool {
    let lids = Lids::in_guid_order(fabric, 0).expect("enough");
    let routing = match try_route(engine, fabric, &lids, options) {
        Ok(routing) => routing,
        Err(refusal) => {
            let reasons = ["have hosts and no switch above both", "is sure to be free of deadlock"];
            let known = reasons.iter().any(|reason| refusal.reason.ends_with(reason));
            assert!(!whole && known, "{context}: {refusal}");
            return false;
        }
    };
    let report = verify(fabric, &lids, &routing.routes, &[]);
    assert!(report.is_sound(), "{context}: {report}");
    let list = &options.partitions.as_ref().expect("given").list;
    let links = carried(fabric, &lids, &routing, list);
    for partition in list {
        let reported =
            routing.report.unsatisfied.iter().any(|line| line.contains(&format!("`{}`", partition.name)));
        // Reported first or second: the sentence names both.
        assert!(reported || is_kept(&links, partition), "{context}: {}", partition.name);
    }
    let kept = list.iter().filter(|partition| is_kept(&links, partition)).count();
    assert_eq!(
        routing.report.unsatisfied.len(),
        list.len() - kept,
        "{context}: {:?}",
        routing.report.unsatisfied
    );
    assert!(routing.report.lanes <= options.lanes, "{context}");
    if whole {
        assert!(report.is_minimal(), "{context}: {report}");
        assert!(routing.report.fallbacks.is_empty(), "{context}");
    }
    assert_sound(fabric, &lids, &routing, options, kept == list.len());
    true
}

#[test]
fn random_partitions_on_whole_and_broken_trees() {
    let seed = seed();
    let (mut served, mut refused) = (0, 0);
    for (place, fabric) in shapes().into_iter().enumerate() {
        for round in 0..12 {
            let mut random = generator(seed.wrapping_add(100 * place as u64 + round));
            let cut = if round < 2 { 0 } else { random.random_range(1..4) };
            let broken = without_cables(&fabric, cut, &mut random);
            let list = random_partitions(&broken, random.random_range(1..8), &mut random);
            let mut options = options(list, Strictness::BestEffort);
            options.lanes = random.random_range(1..9);
            for engine in ["pftree", "pftree-ext", "pftree-combined"] {
                let context = format!("shape {place}, round {round}, {cut} cables cut, {engine}");
                match check(&broken, engine, &options, cut == 0, &context) {
                    true => served += 1,
                    false => refused += 1,
                }
            }
        }
    }
    assert!(served > 3 * refused, "{served} served, {refused} refused");
}

#[test]
fn the_order_of_nodes_in_memory_does_not_matter() {
    let mut random = generator(seed());
    for fabric in shapes() {
        let list = random_partitions(&fabric, 5, &mut random);
        let mut places: Vec<usize> = (0..fabric.nodes().len()).collect();
        places.shuffle(&mut random);
        let shuffled = rebuilt(&fabric, |_| true, &places);
        let options = options(list, Strictness::BestEffort);
        for engine in ["pftree-ext", "pftree-wt", "pftree-combined"] {
            let ((_, one), (_, other)) =
                (route(engine, &fabric, &options), route(engine, &shuffled, &options));
            assert_eq!(one.report, other.report);
            assert_eq!(one.levels, other.levels);
            for (index, node) in fabric.switches() {
                let table = other.routes.table(shuffled.by_guid(node.guid).expect("the same nodes"));
                assert_eq!(one.routes.table(index), table, "{engine}: {}", node.description);
            }
        }
    }
}

#[test]
fn pieces_hosts_with_two_ports_and_routers_are_served() {
    let text = "Switch 8 \"a\"\n[1] \"two\"[1]\n[2] \"h1\"\n[7] \"top\"[1]\n[8] \"top\"[2]\n\n\
                Switch 8 \"b\"\n[1] \"two\"[2]\n[2] \"h2\"\n[3] \"router\"\n[7] \"top\"[3]\n\nSwitch 8 \"top\"\n\n\
                Switch 4 \"far\"\n[1] \"h3\"\n[2] \"h4\"\n\n\
                Ca 2 \"two\"\n\nCa 1 \"h1\"\n\nCa 1 \"h2\"\n\nCa 1 \"h3\"\n\nCa 1 \"h4\"\n\nRt 1 \"router\"\n";
    let fabric = parse("pieces", text).expect("a fabric");
    let guid = |id: &str, port: u8| {
        fabric.node(fabric.find(id).expect("a node")).port(PortNum(port)).expect("a port").guid
    };
    let list = vec![
        partition(1, Isolation::Vlane, [guid("two", 1), guid("h2", 1), guid("h3", 1)]),
        partition(2, Isolation::Def, [guid("h1", 1), guid("two", 2), guid("router", 1), Guid(0xdead)]),
    ];
    for engine in ["pftree", "pftree-ext", "pftree-wt", "pftree-combined"] {
        let (lids, routing) = route(engine, &fabric, &options(list.clone(), Strictness::Strict));
        let report = verify(&fabric, &lids, &routing.routes, &[]);
        assert!(report.is_minimal(), "{engine}: {report}");
        assert!(report.disconnected > 0);
    }
}

#[test]
fn without_partitions_all_are_one() {
    let fabric = tree(&[4, 4], &[1, 4]);
    let (lids, routing) = route("pftree", &fabric, &EngineOptions::default());
    assert!(verify(&fabric, &lids, &routing.routes, &[]).is_minimal());
    // A root for every host of a leaf.
    let leaves = hosts_by_leaf(&fabric);
    for hosts in &leaves {
        let roots: BTreeSet<PortNum> = hosts
            .iter()
            .map(|guid| {
                let lids =
                    lids.iter().find(|lids| fabric.port(lids.port).map(|port| port.guid) == Some(*guid));
                let lid = lids.expect("it has one").base;
                let other = fabric.switches().find(|(node, _)| routing.routes.port(*node, lid).0 > 4);
                routing.routes.port(other.expect("another leaf").0, lid)
            })
            .collect();
        assert_eq!(roots.len(), 4);
    }
    assert_eq!(routing.report.lanes, 1);
}

#[test]
fn all_lids_of_a_port_stay_with_its_partition() {
    let fabric = tree(&[8, 4], &[1, 4]);
    let mut random = generator(seed());
    let list = victims(&fabric, 8, Isolation::Phy, &mut random);
    let options = options(list, Strictness::Strict);
    let lids = Lids::in_guid_order(&fabric, 2).expect("enough");
    let routing =
        try_route("pftree-ext", &fabric, &lids, &options).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert!(verify(&fabric, &lids, &routing.routes, &[]).is_minimal());
    assert_sound(&fabric, &lids, &routing, &options, true);
    // The LIDs of a port of the others go over several roots.
    let (leaf, _) = fabric.switches().next().expect("a leaf");
    let spread = lids.iter().any(|lids| {
        let ports: BTreeSet<PortNum> = lids.iter().map(|lid| routing.routes.port(leaf, lid)).collect();
        ports.len() > 1
    });
    assert!(spread);
}

#[test]
fn an_isolated_partition_skips_a_root_without_its_leaf() {
    let whole = two_ranks(&[&["a", "b"], &["c", "d"], &["e", "f"]], 2);
    let of = |ids: [&str; 3]| ids.map(|id| port_guid(&whole, id));
    let list = vec![
        partition(1, Isolation::Phy, of(["a", "c", "e"])),
        partition(2, Isolation::Def, of(["b", "d", "b"])[..2].to_vec()),
    ];
    // R1 would come first, but the third leaf has lost its cable to it.
    let is_cut = |place: usize| {
        let cable = whole.cables().nth(place).expect("counted");
        let ends = [cable.a, cable.b].map(|port| whole.node(port.node).id.clone());
        ends.contains(&"L3".to_owned()) && ends.contains(&"R1".to_owned())
    };
    let order: Vec<usize> = (0..whole.nodes().len()).collect();
    let broken = rebuilt(&whole, |place| !is_cut(place), &order);
    assert_eq!(broken.cables().count() + 1, whole.cables().count());
    let options = options(list, Strictness::Strict);
    let (lids, routing) = route("pftree-ext", &broken, &options);
    assert_sound(&broken, &lids, &routing, &options, true);
}

#[test]
fn bad_options_are_said_in_words() {
    let fabric = tree(&[2, 2], &[1, 2]);
    let lids = Lids::in_guid_order(&fabric, 0).expect("enough");
    let refused = |engine: &str, options: &EngineOptions| {
        try_route(engine, &fabric, &lids, options).expect_err("it is wrong").to_string()
    };
    let lanes = |lanes| EngineOptions { lanes, ..EngineOptions::default() };
    assert_eq!(refused("pftree", &lanes(0)), "pftree: the number of lanes must be 1 to 15, not 0");
    assert_eq!(refused("pftree-ext", &lanes(16)), "pftree-ext: the number of lanes must be 1 to 15, not 16");
    let share = EngineOptions { isolation_share: 1001, ..EngineOptions::default() };
    assert_eq!(
        refused("pftree-combined", &share),
        "pftree-combined: the isolation's share is 0 to 1000 thousandths, not 1001"
    );
    let leave_one = EngineOptions { leave_one: true, ..EngineOptions::default() };
    assert_eq!(
        refused("pftree-ext", &leave_one),
        "pftree-ext: leave-one changes the printed algorithm, which is not asked for: add --literal"
    );
}
