//! Two that change places come to them one after the other.

use super::site::tree;
use weft_machine::Time;

/// Ports of the first are configured as soon as it is there. That says nothing of the other: its rows stay, and traps about it wait.
#[test]
fn one_of_two_that_is_there_is_not_taken_for_both() {
    let mut site = tree();
    let (from, to) = ((1, 0), (9, 1));
    let identities = [from, to].map(|at| site.world.fake.identity(site.vf(at)));
    site.done(&site.swap(from, to));
    let (tables, sets) = (site.tables(), site.lft_sets());
    site.unplug(from);
    site.unplug(to);
    site.plug(to, identities[0]);
    site.world.run_for(Time::from_secs(2));
    assert_eq!((site.heavy_sweeps(), site.lft_sets()), (1, sets), "the other is on its way");
    site.plug(from, identities[1]);
    site.world.run_for(Time::from_secs(2));
    assert_eq!((site.heavy_sweeps(), site.lft_sets()), (1, sets));
    assert_eq!(site.tables(), tables);
    site.world.check();
}
