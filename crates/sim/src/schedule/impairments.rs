//! Cables that lose, delay, reorder, repeat or damage packets for a while.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_fault::{Impaired, Impairment, Lag, Rate, Share, Way};
use weft_machine::Time;
use weft_topology::Cable;

use super::{FAULTS_FROM, FAULTS_UNTIL};
use crate::Fault;
use crate::rule::below;

/// Separates this generator from the one of the schedule's other faults.
const SALT: u64 = 0x0001_4a16_ed00;

/// Up to three impairments at a time of some cable, each with its end.
pub(super) fn random_impairments(seed: u64, cables: &[Cable], faults: &mut Vec<(Time, Fault)>) {
    let mut random = Pcg64::seed_from_u64(seed ^ SALT);
    for _ in 0..random.random_range(0..4u32) {
        let cable = cables[random.random_range(0..cables.len() as u64) as usize];
        let at = if random.random_bool(0.5) { cable.a } else { cable.b };
        let way = Way::ALL[random.random_range(0..3usize)];
        let how = random_impairment(&mut random);
        let impaired = Impaired { at, way, how, seed: random.random_range(0..u32::MAX) };
        let begins = FAULTS_FROM + below(&mut random, FAULTS_UNTIL.saturating_sub(FAULTS_FROM));
        let ends = (begins + below(&mut random, Time::from_secs(2))).min(FAULTS_UNTIL);
        faults.push((begins, Fault::Impair(impaired)));
        faults.push((ends, Fault::Clear(impaired)));
    }
}

fn random_impairment(random: &mut Pcg64) -> Impairment {
    let mut share = |most| Share::try_from(random.random_range(1..most)).expect("within its bounds");
    let (some, many) = (share(300_000), share(1_000_000));
    let mut lag = |most| Lag::try_from(random.random_range(1..most)).expect("within its bounds");
    let (short, long) = (lag(5_000_000), lag(50_000_000));
    let rate = Rate::try_from(10_u64.pow(random.random_range(7..11))).expect("within its bounds");
    [
        Impairment::Loss(some),
        Impairment::Delay(long),
        Impairment::Jitter(long),
        Impairment::Reorder { share: some, by: short },
        Impairment::Duplicate(many),
        Impairment::BitErrors(rate),
    ][random.random_range(0..6usize)]
}
