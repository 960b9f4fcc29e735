//! Chance from a seed: SplitMix64 (Steele, Lea and Flood 2014), which needs nothing but a counter.

/// A stream of numbers.
pub(super) struct Random(u64);

impl Random {
    /// The stream of a seed for one purpose.
    pub(super) fn new(seed: u64, purpose: &str) -> Self {
        let mixed = purpose.bytes().fold(seed, |sum, byte| mix(sum ^ u64::from(byte)));
        Self(mixed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Puts a list into random order (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            // The bias of the remainder is below 2^-40 for lists of this length.
            let chosen = (self.next() % (last as u64 + 1)) as usize;
            list.swap(last, chosen);
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
