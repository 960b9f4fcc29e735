//! Another subnet manager that lets machines in, too.

use weft_machine::Time;
use weft_sm::{Activity, Input, SweepPhase};
use weft_wire::{Lid, PortNum, capability};

use super::site::tree;

/// A function starts again and waits for its LID. Before it is written to, another manager puts another machine there.
#[test]
fn a_port_is_not_written_to_where_somebody_else_sits() {
    let mut site = tree();
    let (gone, slot) = ((1, 0), (9, 1));
    let (found, machine) = (site.world.fake.identity(site.vf(slot)), site.world.fake.identity(site.vf(gone)));
    let lids = [slot, gone].map(|at| site.lid(at));
    let manager = site.adapters[4].pf;
    site.world.fake.devices[manager.index()].ports[1].capability_mask |= capability::IS_SM;
    site.unplug(gone);
    site.world.command(Input::Resweep { heavy: true });
    site.world.run_for(Time::from_secs(2));
    site.plug(slot, found);
    site.world.run_until(Activity::Sweeping(SweepPhase::Program));
    site.world.fake.plug(site.vf(slot), machine);
    site.world.run_until(Activity::Sweeping(SweepPhase::Verify));
    assert_eq!(site.lid(slot), Lid(0), "LID {} was that of who sat there before", lids[0]);
    site.world.run_for(Time::from_secs(5));
    let now = super::client::lid_of(&site.world, site.vf(slot), PortNum(1));
    assert_eq!(now, lids[1], "a machine keeps its LID");
}
