//! Chance from a seed.

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// The generator of a run.
pub(crate) fn generator(seed: u64, run: u32) -> Pcg64 {
    // The odd constant keeps the runs of neighbouring seeds apart.
    Pcg64::seed_from_u64(seed.wrapping_add(u64::from(run).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}
