//! The deadlocks of the textbooks.

use weft_routing::{
    Expectations, ForwardingTable, Lids, Routes, Routing, ServiceLevels, Verdict, verify_routing,
};
use weft_topology::generate::{GenerateOptions, ring, rlft, torus};
use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, PortNum, ServiceLevel, VirtualLane};

use super::{host, lid_of, routed};

/// The ports by which a ring's switch sends clockwise, and delivers to its host.
const CLOCKWISE: PortNum = PortNum(2);
const HOST: PortNum = PortNum(1);

/// A ring whose switches send everything clockwise. Only hosts have LIDs.
fn clockwise(count: u32) -> (Fabric, Lids, Routing) {
    let fabric = ring(count, 1, &GenerateOptions::default()).expect("the parameters are sound");
    let mut lids = Lids::new();
    for number in 0..count {
        lids.insert(host(&fabric, number), Lid(number as u16 + 1), 0).expect("the LID is free");
    }
    let mut routes = Routes { tables: vec![ForwardingTable::default(); fabric.nodes().len()] };
    for (node, _) in fabric.switches() {
        for lids in lids.iter() {
            let own = fabric.peer(lids.port).map(|peer| peer.node) == Some(node);
            routes.tables[node.index()].set(lids.base, if own { HOST } else { CLOCKWISE });
        }
    }
    (fabric, lids, Routing::on_one_lane("clockwise", routes))
}

fn verdict(fabric: &Fabric, lids: &Lids, routing: &Routing) -> Verdict {
    verify_routing(fabric, lids, routing, &Expectations::default())
}

#[test]
fn four_switches_in_a_circle() {
    let (fabric, lids, routing) = clockwise(4);
    let verdict = verdict(&fabric, &lids, &routing);
    assert!(verdict.is_sound() && !verdict.is_deadlock_free());
    assert_eq!((verdict.lanes[0].channels, verdict.lanes[0].dependencies), (4, 4));
    let id = |number: u32| &fabric.node(fabric.find(&format!("switch-{number}")).unwrap()).id;
    // Whoever sends two on or more. The pair named is the first by destination, then by source.
    let pairs = [(1, 3), (2, 1), (2, 1), (3, 2)];
    let line = |number: u32| {
        let (here, next) = (id(number), id((number + 1) % 4));
        let (source, destination) = pairs[number as usize];
        format!(
            "    {here}[2] -> [3]{next}, held by packets from LID {source} to LID {destination}, which want the next"
        )
    };
    let shown = verdict.cycles[0].to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "on lane 0 4 channels may wait for each other in a circle:");
    assert_eq!(lines.len(), 5);
    for (number, shown) in (0..).zip(&lines[1..]) {
        assert_eq!(*shown, line(number));
    }
}

#[test]
fn two_lanes_cure_it() {
    let (fabric, lids, mut routing) = clockwise(4);
    let mut levels = ServiceLevels::classes(Lid(4), 4, 4);
    for number in 0..4u16 {
        levels.set_source(Lid(number + 1), number);
        levels.set_destination(Lid(number + 1), number);
    }
    // Those who come by the cable from the last switch to the first and go on.
    for (source, destination) in [(3, 1), (3, 2), (2, 1)] {
        levels.set(source, destination, ServiceLevel(1));
    }
    routing.levels = levels;
    let verdict = verdict(&fabric, &lids, &routing);
    assert!(verdict.is_sound() && verdict.is_deadlock_free() && !verdict.is_symmetric(), "{verdict}");
    let dependencies: Vec<_> = verdict.lanes.iter().map(|lane| (lane.lane, lane.dependencies)).collect();
    assert_eq!(dependencies, [(0, 3), (1, 3)]);
    // The other way round all is on lane 0.
    assert_eq!(verdict.asymmetry.pairs, 3);
    assert!(verdict.to_string().ends_with("from LID 2 to LID 3: level 0 there, 1 back"), "{verdict}");
}

#[test]
fn lanes_that_change_on_the_way() {
    // On a ring of three, no one goes further than two on: lane 0 to begin with and lane 1 then.
    let through = |routing: &mut Routing, node| {
        let mut row = routing.lanes.everywhere;
        row.swap(0, 1);
        routing.lanes.exceptions.insert((node, PortNum(3), CLOCKWISE), row);
    };
    let (fabric, lids, mut routing) = clockwise(3);
    assert!(!verdict(&fabric, &lids, &routing).is_deadlock_free());
    fabric.switches().for_each(|(node, _)| through(&mut routing, node));
    let cured = verdict(&fabric, &lids, &routing);
    assert!(cured.is_sound() && cured.is_deadlock_free(), "{cured}");
    // On a ring of four, some go three on, so one change does not open the circle.
    let (fabric, lids, mut routing) = clockwise(4);
    through(&mut routing, fabric.find("switch-0").unwrap());
    let verdict = verdict(&fabric, &lids, &routing);
    assert_eq!((verdict.cycles.len(), verdict.cycles[0].len(), verdict.cycles[0].lane()), (1, 4, None));
    let shown = verdict.cycles[0].to_string();
    assert!(
        shown.starts_with("over several lanes 4 channels may wait for each other in a circle:"),
        "{shown}"
    );
    assert_eq!((shown.matches("on lane 0").count(), shown.matches("on lane 1").count()), (3, 1), "{shown}");
}

#[test]
fn switch_traffic_takes_lanes_only_where_it_leaves() {
    let (fabric, mut lids, mut routing) = clockwise(3);
    let own = PortRef::new(fabric.find("switch-1").unwrap(), PortNum::ZERO);
    lids.insert(own, Lid(9), 0).unwrap();
    for (node, _) in fabric.switches() {
        let port = if node == own.node { PortNum::ZERO } else { CLOCKWISE };
        routing.routes.tables[node.index()].set(Lid(9), port);
    }
    // Level 0 has no lane but from this switch to the next one's host.
    let row = routing.lanes.everywhere;
    routing.lanes.everywhere[0] = VirtualLane(15);
    let next = fabric.find("switch-2").unwrap();
    routing.lanes.exceptions.insert((own.node, PortNum::ZERO, CLOCKWISE), row);
    routing.lanes.exceptions.insert((next, PortNum(3), HOST), row);
    let verdict = verdict(&fabric, &lids, &routing);
    // Of six pairs of hosts, three to the switch and three from it, one gets through.
    assert_eq!((verdict.drops.pairs, verdict.reach.is_sound()), (11, true));
    assert_eq!(verdict.lanes.iter().map(|lane| (lane.lane, lane.channels)).collect::<Vec<_>>(), [(0, 1)]);
}

#[test]
fn minhop_on_rings() {
    for (count, cyclic) in [(3, false), (5, true), (6, true), (7, true)] {
        let fabric = ring(count, 1, &GenerateOptions::default()).unwrap();
        let (lids, routing) = routed(&fabric);
        let verdict = verdict(&fabric, &lids, &routing);
        assert!(verdict.reach.is_minimal());
        // A circle on a ring is the whole ring.
        let lengths: Vec<usize> = verdict.cycles.iter().map(weft_routing::Cycle::len).collect();
        assert_eq!(lengths, if cyclic { vec![count as usize] } else { Vec::new() });
    }
}

#[test]
fn trees_have_none_and_tori_have_some() {
    let tree = rlft(8, 3, &GenerateOptions::default()).unwrap();
    let (lids, routing) = routed(&tree);
    let found = verdict(&tree, &lids, &routing);
    assert!(found.is_sound() && found.is_deadlock_free() && found.is_symmetric(), "{found}");
    let torus = torus(&[5, 5], 1, &GenerateOptions::default()).unwrap();
    let (lids, routing) = routed(&torus);
    let found = verdict(&torus, &lids, &routing);
    assert!(found.is_sound() && !found.is_deadlock_free());
    assert!(found.cycles[0].len() >= 4, "{found}");
}

#[test]
fn a_level_without_a_lane_is_dropped() {
    let (fabric, lids, mut routing) = clockwise(3);
    let mut levels = ServiceLevels::classes(Lid(3), 1, 1);
    levels.set_source(Lid(1), 0);
    levels.set_destination(Lid(3), 0);
    levels.set(0, 0, ServiceLevel(4));
    routing.levels = levels;
    let with =
        |lanes| verify_routing(&fabric, &lids, &routing, &Expectations { lanes, ..Expectations::default() });
    assert!(with(5).is_sound());
    let dropped = with(4);
    assert_eq!((dropped.drops.pairs, dropped.is_sound()), (1, false));
    assert!(dropped.to_string().ends_with("from LID 1 to LID 3: level 4 there, 0 back"), "{dropped}");
    assert!(dropped.to_string().contains("packets from LID 1 to LID 3 are dropped"), "{dropped}");
    let (lid, port) = (lid_of(&fabric, &lids, 2), PortRef::new(host(&fabric, 0).node, PortNum(1)));
    assert_eq!((lid, lids.of(port).unwrap().base), (Lid(3), Lid(1)));
}

#[test]
fn unknown_levels_leave_it_open_unless_they_make_no_difference() {
    let (fabric, lids, mut routing) = clockwise(4);
    let unknown = Expectations { levels_known: false, ..Expectations::default() };
    // Levels 0 to 14 take lanes of their own: whether packets wait in a circle depends on their levels.
    let open = verify_routing(&fabric, &lids, &routing, &unknown);
    assert!(open.levels_unknown && open.cycles.is_empty() && !open.is_deadlock_free(), "{open}");
    let said = open.to_string();
    assert!(said.contains("DEADLOCK NOT JUDGED") && !said.contains("DEADLOCK POSSIBLE"), "{said}");
    // Where a port maps them in its own way, not even tables without a circle are proved.
    let tree = rlft(4, 2, &GenerateOptions::default()).unwrap();
    let (tree_lids, mut tree_routing) = routed(&tree);
    let free = verify_routing(&tree, &tree_lids, &tree_routing, &unknown);
    assert!(free.is_deadlock_free() && !free.levels_unknown, "{free}");
    let (node, _) = tree.switches().next().unwrap();
    tree_routing.lanes.exceptions.insert((node, PortNum(1), PortNum(3)), [VirtualLane(1); 16]);
    assert!(verify_routing(&tree, &tree_lids, &tree_routing, &unknown).levels_unknown);
    // On one lane for all levels a circle is one, whatever they are.
    routing.lanes.everywhere = [VirtualLane(0); 16];
    let shut = verify_routing(&fabric, &lids, &routing, &unknown);
    assert!(!shut.levels_unknown && shut.cycles.len() == 1, "{shut}");
}
