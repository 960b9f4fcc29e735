//! Moves where service levels differ by pair.

use weft_machine::Time;
use weft_sm::{Event, RepathUse};
use weft_topology::generate::{GenerateOptions, ring, xgft};
use weft_wire::*;

use super::site::{Site, options};

/// The level from the manager's own host to a LID, by its path records.
fn level(site: &Site, to: Lid) -> ServiceLevel {
    let own = site.world.fake.own;
    let guid = site.world.fake.fabric.port(own).expect("a port").guid;
    let paths = site.world.sm.paths_from(guid);
    paths.iter().find(|path| path.dlid == to).expect("a path").sl
}

/// A machine gets the levels of the port whose place it takes, and that one gets its. Where queue pairs are held, the answer to a plan
/// says for how long, and the move takes as long.
#[test]
fn the_levels_of_the_new_place_come_with_a_move() {
    let physical = ring(6, 2, &GenerateOptions::default()).expect("a ring");
    let tree = xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).expect("a tree");
    let (mut changed, mut held) = (0, 0);
    for (engine, physical) in [("dfsssp", &physical), ("lash", &physical), ("vftree", &tree)] {
        for (from, to) in [((2, 0), (7, 0)), ((2, 0), (5, 0)), ((4, 0), (11, 0))] {
            let mut site = Site::new(physical, 1, options(engine));
            let lids = (site.lid(from), site.lid(to));
            let before = (level(&site, lids.0), level(&site, lids.1));
            let ask = site.swap(from, to);
            let (planned, _) = site.plan(&ask);
            let done = site.done(&ask);
            assert_eq!((planned.held_us, planned.rounds), (done.held_us, done.rounds), "{engine}");
            assert!(done.took_us >= done.held_us, "{engine}: {done:?}");
            assert_eq!((level(&site, lids.1), level(&site, lids.0)), before, "{engine}: {done:?}");
            let told =
                |kind| site.events(|event| matches!(event, Event::Repath { kind: of, .. } if *of == kind));
            let is_held = done.held_us > 0;
            assert_eq!(told(RepathUse::Hold), usize::from(is_held), "{engine}");
            assert_eq!(
                // No host has subscribed: the proof covers none but the manager's own.
                site.events(|event| matches!(event, Event::MoveHeld { told: 0, untold: 1.., .. })),
                usize::from(is_held),
                "{engine}"
            );
            if is_held {
                assert!(done.reason_text().starts_with("VL "), "{engine}: {}", done.reason_text());
            }
            changed += usize::from(before.0 != before.1);
            held += usize::from(is_held);
            site.exchange(from, to);
            site.world.run_for(Time::from_secs(2));
            assert_eq!((site.lid(to), site.lid(from)), lids, "LIDs are where their GUIDs are");
            assert_eq!((level(&site, lids.1), level(&site, lids.0)), before, "{engine} after sweeps");
        }
    }
    assert!(changed > 0 && held > 0, "{changed} changed, {held} held");
}
