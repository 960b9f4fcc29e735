//! Options of a schedule, drawn from its seed.

use weft_machine::{Random, Time};
use weft_sim::{SimOptions, TraceMode};
use weft_sm::{LidScheme, SwitchLids};
use weft_wire::SmKey;

/// The laboratory's own SA key.
const KEY: SmKey = SmKey(0x77);

const ENGINES: [&str; 6] = ["ftree", "minhop", "updn", "dfsssp", "vswitch-ftree", "vswitch-ftree"];

/// How good tables of machines have to be beside fresh ones, in thousandths.
const BELOW: [u32; 3] = [1000, 900, 800];

/// Draws them.
pub(super) fn options(random: &mut Random, trace: TraceMode) -> SimOptions {
    let mut options =
        SimOptions { recabling: true, with_vmm: true, history: true, trace, ..SimOptions::default() };
    let engine = ENGINES[random.below(ENGINES.len() as u32) as usize];
    options.sm.routing.chain = engine.parse().unwrap();
    if engine == "vswitch-ftree" && random.below(4) > 0 {
        options.sm.vm_lids.rebalance_below = BELOW[random.below(BELOW.len() as u32) as usize];
    }
    if random.below(3) == 0 {
        options.sm.vm_lids.switch_lids = SwitchLids::Shared;
    }
    // On the way tables may then have loops; what they are at the end is as certain as ever.
    options.sm.vm_lids.unproved_moves = random.below(3) == 0;
    options.sm.keys.sa_key = KEY;
    options.sm.sweeps.sweep_interval_ms = 2_000;
    // 67 ms, so that packets of an old way are gone soon.
    options.sm.lanes.packet_life_time = 14;
    options.vmm.answer_within = Time::from_secs(20);
    options.vmm.patience = Time::from_secs(2);
    if random.below(2) == 0 {
        (options.empty_slots, options.sm.vm_lids.scheme) = (true, LidScheme::Dynamic);
    }
    options
}
